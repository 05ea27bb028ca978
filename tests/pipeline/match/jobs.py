"""What tests of the match job share: subscriptions in a file, and deliveries as any reader finds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def wishes(folder: Path, **filters: str) -> str:
    path = folder / "wishes.jsonl"
    path.write_text("".join(json.dumps({"id": name, "filter": text}) + "\n" for name, text in filters.items()))
    return str(path)


def delivered(out: Path) -> list[tuple[Any, str]]:
    return sorted((row["id"], row["subscription"]) for row in pq.read_table(out / "deliveries").to_pylist())


def quarantined(out: Path) -> list[str]:
    return sorted(row["reason"] for row in pq.read_table(out / "quarantine").to_pylist())

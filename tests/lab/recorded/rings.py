"""Recordings made up for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.lab.recorded.runs import Configuration

RING = 6
STAY_S = 30.0


def a_ring(folder: Path, walkers: int = 6, hours: float = 1.0) -> Path:
    """Sites on a ring; half of the walkers go round one way, half the other, thirty seconds at each site."""
    rows = []
    for walker in range(walkers):
        step = 1 if walker % 2 else -1
        at, now = walker % RING, 3.0 * walker
        while now < hours * 3600:
            rows.append((f"w{walker}", f"r{at}", now, now + STAY_S - 10.0, "handoff"))
            at, now = (at + step) % RING, now + STAY_S
    write(folder / "visits", ("subscriber", "site", "entered_s", "last_fix_s", "ended"), rows)
    places = [(f"r{at}", 37.7 + 0.01 * (at % 3), -122.4 + 0.01 * (at // 3)) for at in range(RING)]
    write(folder / "sites", ("site", "lat", "lon"), places)
    return folder


def write(folder: Path, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    folder.mkdir(parents=True)
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    pq.write_table(pa.table(columns), folder / "part-0.parquet")


def configured(recording: Path, **others: object) -> Configuration:
    base = Configuration(
        recording=str(recording), learn_from_s=0.0, begin_s=1800.0, measure_s=600.0, scheme="foreseen", size_b=100
    )
    return msgspec.structs.replace(base, **others)

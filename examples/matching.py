"""Subscribe, match a batch, leave: the index from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import godwit
from godwit.tables.matching.batch import Batch

HERE = Path(__file__).parent


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


subscriptions = read("subscriptions.jsonl")
events = read("events.jsonl")

index = godwit.Index()
for number, subscription in enumerate(subscriptions):
    index.add(number, godwit.parse(subscription["filter"]))

for event, found in zip(events, index.match_batch(Batch.from_events(events)), strict=True):
    print(event["id"], "->", ", ".join(sorted(subscriptions[number]["id"] for number in found)))

index.remove(4)
print("without the archive", events[4]["id"], "goes to", len(index.match(events[4])), "subscriptions")

"""Whether a stream that was disturbed has left what batches find in the same input, each row once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from godwit.filters.text import parse
from godwit.net.archive.log import FolderArchive, Position, latest, pieces
from godwit.pipeline.audit import job as audit_job
from godwit.pipeline.gathering import job as gathering_job
from godwit.pipeline.io.source_options import is_live

WINDOW = ("from_s", "area", "readings", "missing", "sensors", "mean", "least", "most")
FIGURE = ("cut", "name", "expected", "delivered", "lost", "dropped", "duplicates", "unexpected")
OUTCOME = ("sequence", "publisher", "client", "is_expected", "copies", "latency_s", "hops")

Faults = list[str]
Rows = Sequence[tuple[Any, ...]]
Events = dict[tuple[Any, ...], dict[str, Any]]


def events(archive: Path) -> Events:
    """What a broker has archived, read without Spark: what filters see, by publisher and sequence."""
    found: Events = {}
    for row in _archived(archive, "events", "publisher", "sequence", "attributes"):
        assert row[:2] not in found, "the archive has an event twice"
        found[row[:2]] = msgspec.json.decode(row[2])
    return found


def traced(archive: Path) -> set[tuple[Any, ...]]:
    """The events that traces speak of."""
    return set(_archived(archive, "traces", "publisher", "sequence"))


def _archived(archive: Path, kind: str, *names: str) -> Iterator[tuple[Any, ...]]:
    folder = FolderArchive(archive, kind)
    files = folder.files()
    for piece in pieces(files, Position(), latest(files, Position())):
        for batch in folder.read(piece):
            yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def file_events(air: Path) -> Events:
    table = pq.read_table(air).to_pylist()
    return {(row["station"], row["ts"]): {"sensor": row["station"], "pm25": row["pm25"] or 0.0} for row in table}


def rows(table: Path, *names: str) -> Rows:
    """As any reader of Parquet finds them, in an order of their own."""
    found = pq.read_table(table, columns=list(names)).to_pylist()
    return sorted((tuple(row[name] for name in names) for row in found), key=repr)


def different(what: str, found: Iterable[tuple[Any, ...]], expected: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    have, should = sorted(found, key=repr), sorted(expected, key=repr)
    if have != should:
        lacks, more = sorted(set(should) - set(have), key=repr), sorted(set(have) - set(should), key=repr)
        repeated = len(have) - len(set(have)) - (len(should) - len(set(should)))
        yield f"{what}: lacks {len(lacks)} {lacks[:3]}, has {len(more)} more {more[:3]}, {repeated} twice"


def judge_archive(published: int, archived: Events) -> Iterator[str]:
    """A broker that is not killed archives what it takes, once."""
    ats = [(event["at"],) for event in archived.values() if "last" not in event]
    yield from different("archive", ats, [(10.0 * number,) for number in range(published)])


def judge_match(out: Path, happened: Events, filters: Mapping[str, str]) -> Iterator[str]:
    """Every event is matched once, with the subscriptions of one moment in each micro-batch, and never older ones."""
    parsed = {name: parse(text) for name, text in filters.items()}
    seen, newest = list[tuple[Any, ...]](), 0
    batches = (out / "deliveries").glob("batch=*")
    for batch in sorted(batches, key=lambda place: int(place.name.removeprefix("batch="))):
        found = [(tuple(key), *name.split(".")) for *key, name in _delivered(batch)]
        generations = {int(generation) for _, _, generation in found}
        matched = [key for key, name, _ in found if name == "all"]
        expected = [
            (key, name) for key in matched for name, one in parsed.items() if one.matches(happened.get(key, {}))
        ]
        yield from different(f"{batch.name} of match", [one[:2] for one in found], expected)
        if len(generations) > 1 or any(generation < newest for generation in generations):
            yield f"{batch.name} of match: has subscriptions of {sorted(generations)} after those of {newest}"
        newest, seen = max({newest, *generations}), seen + matched
    yield from different("match", seen, happened)


def _delivered(batch: Path) -> Rows:
    table = pq.read_table(batch)
    return [tuple(row.values()) for row in table.to_pylist()]


def judge_gathering(spark: SparkSession, options: gathering_job.GatheringOptions) -> Iterator[str]:
    """All windows but the last, which may still get readings."""
    batch = msgspec.structs.replace(options, out=f"{options.out} batch")
    gathering_job.run(spark, batch)
    yield from _compared(options.out, batch.out, "aggregates", *WINDOW, but_last=True)
    yield from _compared(options.out, batch.out, "alerts", "sensor", "time_s", "subscription")
    yield from _compared(options.out, batch.out, "quarantine", "dataset", "reason", "record")


def judge_audit(spark: SparkSession, options: audit_job.AuditOptions) -> Iterator[str]:
    """All events but the last, which has not ended; of a broker, that one is for nobody."""
    batch = msgspec.structs.replace(options, out=f"{options.out} batch")
    audit_job.run(spark, batch)
    yield from _compared(options.out, batch.out, "outcomes", *OUTCOME, but_last=not is_live(options.traces))
    if is_live(options.traces):
        yield from _compared(f"{options.out}/judged", batch.out, "figures", *FIGURE)


def _compared(stream: str, batch: str, table: str, *names: str, but_last: bool = False) -> Iterator[str]:
    """By these columns; the rows of the largest value of the first column may be left out."""
    found, expected = rows(Path(stream, table), *names), rows(Path(batch, table), *names)
    largest = max((row[0] for row in expected), default=None) if but_last else None
    yield from different(f"{stream}/{table}", found, [row for row in expected if not but_last or row[0] != largest])
    if not found:
        yield f"{stream}/{table}: nothing is there that could be lost"

"""Archives of several brokers brought together."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from godwit.net.archive.writer import EVENTS
from godwit.pipeline.ingest import IngestOptions, run


def archived(folder: Path, broker: str, *events: tuple[int, int, str]) -> str:
    """Events of one publisher as a broker archives them: sequence, hour, attributes."""
    folder.mkdir()
    rows = [
        {
            "broker": broker,
            "publisher": "p",
            "sequence": sequence,
            "time": datetime(2026, 11, 15, tzinfo=UTC).replace(hour=hour),
            "attributes": attributes,
        }
        for sequence, hour, attributes in events
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=EVENTS), folder / "events-1.parquet")
    return str(folder)


def test_an_event_that_two_brokers_archived_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    first = archived(tmp_path / "b1", "b1", (1, 5, '{"a": 1}'), (2, 6, '{"a": 2}'))
    second = archived(tmp_path / "b2", "b2", (2, 7, '{"a": 2}'), (3, 8, "oh"))
    for _ in range(2):
        summary = run(spark, IngestOptions(archives=(first, second), out=str(tmp_path / "out")))
    assert (summary.rows_in, summary.rows_out, summary.quarantined) == (4, {"events": 3}, 1)
    events = pq.read_table(tmp_path / "out" / "events").to_pylist()
    assert sorted((event["sequence"], event["broker"]) for event in events) == [(1, "b1"), (2, "b1"), (3, "b2")]
    assert [path.name for path in (tmp_path / "out" / "events").glob("day=*")] == ["day=2026-11-15"]
    (bad,) = pq.read_table(tmp_path / "out" / "quarantine").to_pylist()
    assert json.loads(bad["record"])["sequence"] == 3

"""The gathering job on a month of Beijing's air, in batch and as a stream."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.errors import SchemaError
from godwit.pipeline.gathering.job import GatheringOptions, run, run_stream
from godwit.pipeline.streaming.queries import Pace

AIR = Path(__file__).resolve().parents[2] / "data" / "air.parquet"
SELECT = "station AS sensor, ts AS time_s, pm25, o3"


def options(tmp_path: Path, **others: Any) -> GatheringOptions:
    asked: dict[str, Any] = {"readings": str(AIR), "out": str(tmp_path / "out"), "select": SELECT}
    asked["quantities"] = ("pm25", "o3")
    return GatheringOptions(**(asked | others))


def test_missing_values_are_missing_values_and_not_zeros(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"id": "smog", "filter": "pm25 > 400"}', '{"id": "clean", "filter": "pm25 = 0"}']
    (tmp_path / "alerts.jsonl").write_text("\n".join(lines))
    summary = run(spark, options(tmp_path, alerts=str(tmp_path / "alerts.jsonl")))
    assert summary.rows_in == 8928
    assert summary.notes == ["o3: 147 values missing", "pm25: 47 values missing"]
    days = pq.read_table(tmp_path / "out" / "aggregates").to_pylist()
    pm25 = [day for day in days if day["quantity"] == "pm25"]
    assert (sum(day["readings"] for day in pm25), sum(day["missing"] for day in pm25)) == (8928, 47)
    air = pq.read_table(AIR)
    measured = air.filter(pc.greater(air["pm25"], 400)).num_rows
    alerts = pq.read_table(tmp_path / "out" / "alerts").to_pylist()
    assert [alert["subscription"] for alert in alerts] == ["smog"] * measured


def test_numbers_that_are_none_are_set_aside_and_a_repeated_reading_counts_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    nan, inf = float("nan"), float("inf")
    times, values = [0.0, 60.0, 60.0, 120.0, 180.0, inf], [1.0, 3.0, 3.0, nan, -inf, 5.0]
    pq.write_table(pa.table({"sensor": ["a"] * 6, "time_s": times, "pm25": values}), tmp_path / "air.parquet")
    summary = run(spark, options(tmp_path, readings=f"{tmp_path}/air.parquet", select=None, quantities=("pm25",)))
    [day] = pq.read_table(tmp_path / "out" / "aggregates").to_pylist()
    # Of a reading only the value is set aside: the other quantities of it may be sound.
    assert (day["readings"], day["missing"], day["mean"], day["least"], day["most"]) == (4, 2, 2.0, 1.0, 3.0)
    assert summary.quarantined == 3
    assert sorted(reasons(tmp_path / "out")) == [
        "column 'pm25': -Infinity is no finite number",
        "column 'pm25': NaN is no finite number",
        "column 'time_s': Infinity is no finite number",
    ]


def test_a_stream_of_files_gives_the_windows_that_a_batch_gives(spark: SparkSession, tmp_path: Path) -> None:
    """All windows but the last, which may still get readings."""
    air, folder = pq.read_table(AIR), tmp_path / "air"
    folder.mkdir()
    for week in range(4):
        since, until = datetime(2013, 3, 1 + 7 * week), datetime(2013, 3, 8 + 7 * week)
        part = air.filter(pc.and_(pc.greater_equal(air["ts"], since), pc.less(air["ts"], until)))
        pq.write_table(part, folder / f"{week}.parquet")
        # A stream takes files in the order of their times, which may be equal where they are written at once.
        os.utime(folder / f"{week}.parquet", (1_700_000_000 + week, 1_700_000_000 + week))
    nameless = air.slice(0, 3).set_column(air.schema.get_field_index("station"), "station", pa.nulls(3, pa.string()))
    pq.write_table(nameless.cast(air.schema), folder / "nameless.parquet")
    os.utime(folder / "nameless.parquet", (1_700_000_004, 1_700_000_004))
    (tmp_path / "alerts.jsonl").write_text(
        '{"id": "smog", "filter": "pm25 > 400"}\n{"id": "broken", "filter": "pm25 >"}'
    )
    alerts = str(tmp_path / "alerts.jsonl")
    run(spark, options(tmp_path, readings=str(folder), out=str(tmp_path / "batch"), alerts=alerts))
    asked = options(tmp_path, readings=str(folder), late="1 hour", alerts=alerts, files_per_batch=3)
    for _ in range(2):
        summary = run_stream(spark, asked, Pace())
    assert summary.quarantined == 4, "three readings and a filter, each once"
    assert sorted(reasons(tmp_path / "out")) == sorted(reasons(tmp_path / "batch"))
    assert _alarms(tmp_path / "out") == _alarms(tmp_path / "batch")
    last_s = datetime(2013, 3, 27, 23, tzinfo=UTC).timestamp()
    ended = [gap for gap in _gaps(tmp_path / "batch") if gap[3] < last_s]
    assert [gap for gap in _gaps(tmp_path / "out") if gap[3] < last_s] == ended != []
    found, expected = (_windows(spark, tmp_path / name) for name in ("out", "batch"))
    assert found == {key: value for key, value in expected.items() if key[0] < "2013-03-28"}


def test_a_reading_that_is_said_again_later_alerts_once(spark: SparkSession, tmp_path: Path) -> None:
    """As by a publisher that was not answered before its broker was killed."""
    folder, alerts = tmp_path / "air", tmp_path / "alerts.jsonl"
    folder.mkdir()
    alerts.write_text('{"id": "smog", "filter": "pm25 > 400"}\n')
    for number, times in enumerate(([0.0, 60.0], [60.0, 120.0], [0.0, 180.0])):
        pq.write_table(
            pa.table({"sensor": ["a", "a"], "time_s": times, "pm25": [500.0, 500.0]}), folder / f"{number}.parquet"
        )
        os.utime(folder / f"{number}.parquet", (1_700_000_000 + number, 1_700_000_000 + number))
    asked = options(tmp_path, readings=str(folder), select=None, quantities=("pm25",), alerts=str(alerts))
    run_stream(spark, msgspec.structs.replace(asked, files_per_batch=1, late="1 hour"), Pace())
    assert _alarms(tmp_path / "out") == [("a", 0.0), ("a", 60.0), ("a", 120.0), ("a", 180.0)]


def reasons(out: Path) -> list[str]:
    return [row["reason"] for row in pq.read_table(out / "quarantine").to_pylist()]


def _gaps(out: Path) -> list[tuple[Any, ...]]:
    names = ("sensor", "quantity", "from_s", "until_s", "missing", "reason")
    return sorted(tuple(row[name] for name in names) for row in pq.read_table(out / "gaps").to_pylist())


def _alarms(out: Path) -> list[tuple[str, float]]:
    return sorted((row["sensor"], row["time_s"]) for row in pq.read_table(out / "alerts").to_pylist())


def _windows(spark: SparkSession, folder: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    rows = spark.read.parquet(f"{folder}/aggregates").collect()
    told = {
        (str(datetime.fromtimestamp(row["from_s"], UTC))[:10], row["quantity"]): (
            row["readings"],
            row["missing"],
            round(row["mean"], 6),
        )
        for row in rows
    }
    assert len(told) == len(rows), "a window is there twice"
    return told


def test_a_quantity_that_is_not_measured_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="as selected: there is no column 'pm1'"):
        run(spark, options(tmp_path, quantities=("pm1",)))

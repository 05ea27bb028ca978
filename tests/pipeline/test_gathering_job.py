"""The gathering job on a month of Beijing's air, in batch and as a stream."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.errors import SchemaError
from godwit.pipeline.gathering_job import GatheringOptions, run, stream
from godwit.pipeline.subscriptions import Shipper

AIR = Path(__file__).resolve().parent.parent / "data" / "air.parquet"
SELECT = "station AS sensor, ts AS time, pm25, o3"


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


def test_a_stream_of_files_gives_the_windows_that_a_batch_gives(spark: SparkSession, tmp_path: Path) -> None:
    """All windows but the last, which may still get readings."""
    air, folder = pq.read_table(AIR), tmp_path / "air"
    folder.mkdir()
    for week in range(4):
        since, until = datetime(2013, 3, 1 + 7 * week), datetime(2013, 3, 8 + 7 * week)
        part = air.filter(pc.and_(pc.greater_equal(air["ts"], since), pc.less(air["ts"], until)))
        pq.write_table(part, folder / f"{week}.parquet")
    run(spark, options(tmp_path, readings=str(folder), out=str(tmp_path / "batch")))
    shipper = Shipper(spark)
    asked = options(tmp_path, readings=str(folder), late="1 hour")
    for _ in range(2):
        stream(spark, asked, shipper).awaitTermination()
    found, expected = (_windows(spark, tmp_path / name) for name in ("out", "batch"))
    assert found == {key: value for key, value in expected.items() if key[0] < "2013-03-28"}


def _windows(spark: SparkSession, folder: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    rows = spark.read.parquet(f"{folder}/aggregates").collect()
    told = {
        (str(row["start"])[:10], row["quantity"]): (row["readings"], row["missing"], round(row["mean"], 6))
        for row in rows
    }
    assert len(told) == len(rows), "a window is there twice"
    return told


def test_a_quantity_that_is_not_measured_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="as selected: there is no column 'pm1'"):
        run(spark, options(tmp_path, quantities=("pm1",)))

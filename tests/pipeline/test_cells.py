"""Cells of H3 and days of time zones, beside the libraries that everybody has."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("h3")

import h3
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from godwit.pipeline.cells import associated, check_resolution, check_zone, local_day, with_cell
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.gathering.aggregates import located
from godwit.pipeline.mobility.job import MobilityOptions
from godwit.pipeline.mobility.job import run as learn
from godwit.pipeline.schemas import MEASURES

PLACES = [(37.77, -122.42), (0.0, 0.0), (-33.9, 151.2), (89.9, 12.0)]


def test_rows_get_the_cell_that_the_library_names_and_nowhere_has_none(spark: SparkSession) -> None:
    rows = [(*place, number) for number, place in enumerate(PLACES)] + [(None, 1.0, 9), (95.0, 1.0, 10)]
    frame = spark.createDataFrame(rows, "lat double, lon double, n long")
    found = {row.n: row.cell for row in with_cell(frame, 8, "cell").collect()}
    assert found == {number: h3.latlng_to_cell(*place, 8) for number, place in enumerate(PLACES)} | {9: None, 10: None}


def test_a_fix_is_near_the_middle_of_its_cell(spark: SparkSession) -> None:
    rows = [("c", float(number), *place) for number, place in enumerate(PLACES)]
    frame = spark.createDataFrame(rows, "subscriber string, time_s double, lat double, lon double")
    for row in associated(frame, 9).collect():
        place = PLACES[int(row.time_s)]
        assert row.site == h3.latlng_to_cell(*place, 9)
        wanted = h3.great_circle_distance(place, h3.cell_to_latlng(row.site), unit="m")
        assert row.distance_m == pytest.approx(wanted, rel=1e-3)


def test_days_are_those_on_the_clocks_of_the_zone_through_summer_time(spark: SparkSession) -> None:
    zone = "America/Los_Angeles"
    times = [1_793_530_800.0 + hours * 3600 for hours in range(0, 48, 5)] + [1_772_960_400.0, 1_773_036_000.0]
    frame = spark.createDataFrame([(time,) for time in times], "time_s double")
    found = frame.select("time_s", local_day(sf.col("time_s"), zone).alias("day")).collect()
    assert {row.time_s: row.day for row in found} == {
        time: datetime.fromtimestamp(time, ZoneInfo(zone)).strftime("%Y-%m-%d") for time in times
    }


def test_what_is_no_resolution_and_no_zone_is_told_with_one_that_is() -> None:
    with pytest.raises(PipelineError, match=r"--h3 16: right would be 0"):
        check_resolution(16)
    with pytest.raises(PipelineError, match=r"--zone 'Mars/Base': right would be"):
        check_zone("Mars/Base")


def test_mobility_learns_between_cells_and_gathering_aggregates_in_them(spark: SparkSession, tmp_path: Path) -> None:
    here, there = (37.77, -122.42), (37.79, -122.40)
    rows = [f"c,{time},{lat},{lon}" for time, (lat, lon) in ((0, here), (60, here), (120, there))]
    (tmp_path / "positions.csv").write_text("\n".join(["subscriber,time_s,lat,lon", *rows]))
    options = MobilityOptions(positions=str(tmp_path / "positions.csv"), h3=8, out=str(tmp_path / "moves"))
    learn(spark, options)
    (move,) = pq.read_table(tmp_path / "moves" / "handoffs").to_pylist()
    assert (move["site"], move["next_site"]) == (h3.latlng_to_cell(*here, 8), h3.latlng_to_cell(*there, 8))
    assert pq.read_table(tmp_path / "moves" / "sites").num_rows == 2
    measured = spark.createDataFrame([("s", 0.0, "pm25", 1.0, *here), ("s", 1.0, "pm25", 3.0, None, None)], MEASURES)
    found = located(measured, None, None, 8).groupBy("area").count().collect()
    assert {row["area"]: row["count"] for row in found} == {"everywhere": 2, f"h3 {h3.latlng_to_cell(*here, 8)}": 1}

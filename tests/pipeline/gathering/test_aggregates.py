"""Readings gathered by place and time, on frames of a few rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline.gathering import aggregates as gathering
from godwit.pipeline.io.reading import Dataset, checked
from godwit.pipeline.match.subscriptions import Shipper
from godwit.pipeline.schemas import MEASURES, SUBSCRIPTIONS

NOON = datetime(2013, 3, 1, 12, tzinfo=UTC)


def at(hours: float) -> float:
    return (NOON + timedelta(hours=hours)).timestamp()


def hour(time_s: float) -> int:
    return datetime.fromtimestamp(time_s, UTC).hour


def measured(spark: SparkSession, rows: list[tuple[str, float, float | None]]) -> DataFrame:
    """Of PM2.5 at one place: sensor, hour, value."""
    return spark.createDataFrame([(who, at(when), "pm25", value, 39.9, 116.4) for who, when, value in rows], MEASURES)


def test_a_reading_becomes_a_row_for_each_quantity_and_a_missing_value_stays_missing(spark: SparkSession) -> None:
    rows = [("a", at(0), 39.9, 116.4, 12.0, None), ("a", at(1), 39.9, 116.4, None, 0.0)]
    frame = spark.createDataFrame(rows, "sensor string, time_s double, lat double, lon double, pm25 double, o3 double")
    found = gathering.measures(frame, ["pm25", "o3"]).collect()
    values = sorted((hour(row["time_s"]), row["quantity"], str(row["value"])) for row in found)
    assert values == [(12, "o3", "None"), (12, "pm25", "12.0"), (13, "o3", "0.0"), (13, "pm25", "None")]


def test_missing_values_do_not_lower_the_mean(spark: SparkSession) -> None:
    frame = measured(spark, [("a", 0, 10.0), ("a", 1, None), ("b", 1, 30.0), ("a", 25, None)])
    found = gathering.aggregates(gathering.located(frame, None, None), "1 day").orderBy("from_s").collect()
    told = [(row["readings"], row["missing"], row["sensors"], row["mean"], row["most"]) for row in found]
    assert told == [(3, 1, 2, 20.0, 30.0), (1, 1, 1, None, None)]


def test_areas_are_filters_and_may_overlap(spark: SparkSession) -> None:
    areas = {
        "centre": "within(lat, lon, 39.9, 116.4, 5km)",
        "city": "within(lat, lon, 39.9, 116.4, 50km)",
        "sea": "lon > 120",
        gathering.EVERYWHERE: "TRUE",
    }
    chosen = checked(spark.createDataFrame(list(areas.items()), SUBSCRIPTIONS), SUBSCRIPTIONS, "areas")
    rows = [
        ("a", at(0), "pm25", 1.0, 39.9, 116.4),
        ("b", at(0), "pm25", None, 40.2, 116.2),
        ("c", at(0), "pm25", 1.0, None, None),
    ]
    wanted = Shipper(spark).ship(Dataset(chosen.good, chosen.bad))
    found = gathering.located(spark.createDataFrame(rows, MEASURES), wanted, None).where("area <> 'everywhere'")
    assert sorted((row["sensor"], row["area"]) for row in found.collect()) == [
        ("a", "centre"),
        ("a", "city"),
        ("b", "city"),
    ]

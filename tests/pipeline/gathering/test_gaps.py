"""When sensors told nothing, on frames of a few rows; whole, and part by part."""

from __future__ import annotations

from random import Random

from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline.gathering import gaps
from godwit.pipeline.schemas import GAPS, MEASURES

HOUR_S = 3600.0

Row = tuple[str, float, float | None]


def measured(spark: SparkSession, rows: list[Row]) -> DataFrame:
    told = [(sensor, hours * HOUR_S, "pm25", value, None, None) for sensor, hours, value in rows]
    return spark.createDataFrame(told, MEASURES)


def told(found: DataFrame) -> list[tuple[object, ...]]:
    return sorted(
        (row["sensor"], row["from_s"] / HOUR_S, row["until_s"] / HOUR_S, row["missing"], row["reason"])
        for row in found.collect()
    )


def test_gaps_are_runs_without_a_value_and_silences(spark: SparkSession) -> None:
    rows: list[Row] = [("a", 0, 1.0), ("a", 1, None), ("a", 2, None), ("a", 3, 1.0), ("a", 7, 1.0), ("b", 0, None)]
    assert told(gaps.gaps(measured(spark, rows), HOUR_S)) == [
        ("a", 1, 2, 2, "no value"),
        ("a", 3, 7, 3, "silent"),
        ("b", 0, 0, 1, "no value"),
    ]


def test_readings_that_come_part_by_part_have_the_gaps_that_they_have_together(spark: SparkSession) -> None:
    dice = Random(3)
    rows: list[Row] = [
        (sensor, hour, 1.0 if dice.random() < 0.5 else None)
        for sensor in "abc"
        for hour in range(40)
        if dice.random() < 0.7
    ]
    last, found = spark.createDataFrame([], gaps.LAST), spark.createDataFrame([], GAPS)
    for begin in range(0, 40, 8):
        part = measured(spark, [row for row in rows if begin <= row[1] < begin + 8])
        found = found.unionByName(gaps.ended(last, part, HOUR_S))
        last = spark.createDataFrame(gaps.left(last, part, HOUR_S).collect(), gaps.LAST)
    assert told(found.unionByName(gaps.still_open(last))) == told(gaps.gaps(measured(spark, rows), HOUR_S))

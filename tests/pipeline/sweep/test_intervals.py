"""Means over runs and Student's intervals around them, beside scipy's."""

from __future__ import annotations

import math

import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.sweep.intervals import intervals

VALUES = {"mft": [0.91, 0.88, 0.97, 0.93, 0.9], "aodv": [0.5, 0.7]}


def test_intervals_are_those_of_scipy(spark: SparkSession) -> None:
    # Half a second of work, which only whoever runs this should have.
    import scipy.stats

    runs = [(name, 8.0, seed, value) for name, values in VALUES.items() for seed, value in enumerate(values)]
    frame = spark.createDataFrame(runs, "protocol string, `speed.mps` double, seed long, rate double")
    found = {row.protocol: row for row in intervals(frame, ["protocol", "speed.mps"], ["rate"]).collect()}
    assert found.keys() == VALUES.keys()
    for name, values in VALUES.items():
        low, high = scipy.stats.t.interval(0.95, len(values) - 1, sum(values) / len(values), scipy.stats.sem(values))
        assert found[name].asDict() == {
            "protocol": name,
            "speed.mps": 8.0,
            "measure": "rate",
            "runs": len(values),
            "mean": pytest.approx(sum(values) / len(values)),
            "low": pytest.approx(low),
            "high": pytest.approx(high),
        }


def test_runs_without_a_value_do_not_count_and_one_run_has_no_interval(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(["h1"], 1.0, 4), (["h1"], math.nan, 5), (["h1"], None, 6)], "w array<string>, d double, n int"
    )
    told = {row.measure: row for row in intervals(frame, ["w"], ["d", "n"]).collect()}
    assert (told["d"].runs, told["d"].mean, told["d"].low, told["d"].high) == (1, 1.0, None, None)
    assert (told["n"].runs, told["n"].mean) == (3, 5.0)
    assert told["n"].low < 5.0 < told["n"].high


def test_the_more_confidence_the_wider(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2.0), (1, 3.0), (1, 7.0)], "size int, delay double")
    (usual,) = intervals(frame, ["size"], ["delay"]).collect()
    (sure,) = intervals(frame, ["size"], ["delay"], confidence=0.99).collect()
    assert sure.low < usual.low < usual.mean < usual.high < sure.high

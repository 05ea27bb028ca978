"""Jobs that are watched, and works that run at the same time."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.progress import at_once, watched


def test_works_at_once_are_all_done_and_their_stages_are_the_job_s(spark: SparkSession) -> None:
    counted: list[int] = []
    with watched(spark, "toy") as summary:
        at_once(spark, *(lambda rows=rows: counted.append(spark.range(rows).rdd.count()) for rows in (3, 4)))
    assert sorted(counted) == [3, 4]
    assert summary.stages == 2


def test_where_one_work_fails_the_jobs_of_the_others_end_and_its_error_goes_on(spark: SparkSession) -> None:
    context, ended = spark.sparkContext, list[str]()

    def long() -> None:
        try:
            context.parallelize([600], 1).foreach(time.sleep)
        except Exception as error:
            ended.append(str(error))
            raise

    def wrong() -> None:
        while not context.statusTracker().getActiveJobsIds():
            time.sleep(0.02)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), watched(spark, "toy"):
        at_once(spark, long, wrong)
    assert len(ended) == 1
    assert "cancelled" in ended[0]

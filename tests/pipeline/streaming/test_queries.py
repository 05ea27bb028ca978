"""Streams, of a live broker and of files, whose driver is killed: nothing is lost, nothing is there twice.

`python -m tests.pipeline.streaming.killing --seeds 10` does it more often.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.streaming.killing import Plan, killed

from godwit.pipeline.errors import reason
from godwit.pipeline.streaming.queries import ending


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan(seed=7), id="a live broker that is killed too"),
        # The same drivers on the source that Spark itself brings.
        pytest.param(Plan(seed=7, live=False), id="files", marks=pytest.mark.explore),
    ],
)
def test_what_is_left_by_drivers_that_are_killed_is_what_batches_find(
    spark: SparkSession, tmp_path: Path, plan: Plan
) -> None:
    """While all streams work: ingest, match, gathering and audit; subscriptions change before and after."""
    assert killed(plan, tmp_path, spark) == []


def test_of_a_failure_the_reason_is_told() -> None:
    told = "[STREAM_FAILED] Query failed\n  File x\ngodwit.net.archive_reading.ArchiveError: north: it is gone\nmore\n"
    assert reason(told) == "north: it is gone"
    assert reason("[STREAM_FAILED] Query failed\nat java") == "[STREAM_FAILED] Query failed"
    assert "too busy" in ending("[STREAM_FAILED] Query failed: Python worker failed to connect back.\nat java")

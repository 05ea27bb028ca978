"""Streams, of a live broker and of files, whose driver is killed: nothing is lost, nothing is there twice.

A driver is a Java of its own, half a minute of the processor before its first row, so `make test` leaves them out:
`pytest -m explore` kills two, `python -m tests.pipeline.streaming.killing --seeds 10` more. That each stream goes on
where it stopped, and that what a killed run left is put right, is tested beside its job and in io/test_writing.py.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.streaming.disturbed import LAST, NOBODY, Wishes, jobs_of_a_broker, reading
from tests.pipeline.streaming.judging import judge_gathering, rows
from tests.pipeline.streaming.killing import Plan, killed

from godwit.pipeline.errors import reason
from godwit.pipeline.gathering import job as gathering_job
from godwit.pipeline.streaming.queries import Pace, ending

FIRST = 31
"""A broker numbers publications from the microsecond of its start on, so that any number may be that of the last event.
Once readings with numbers as this one were nobody's: 157 of the last one, 7 beyond a multiple of 50."""


@pytest.mark.explore
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan(seed=7), id="a live broker that is killed too"),
        # The same drivers on the source that Spark itself brings.
        pytest.param(Plan(seed=7, live=False), id="files"),
    ],
)
def test_what_is_left_by_drivers_that_are_killed_is_what_batches_find(
    spark: SparkSession, tmp_path: Path, plan: Plan
) -> None:
    """While all streams work: ingest, match, gathering and audit; subscriptions change before and after."""
    assert killed(plan, tmp_path, spark) == []


def test_the_last_reading_closes_all_windows_whatever_its_number_is(spark: SparkSession, tmp_path: Path) -> None:
    told = [*(reading(number) for number in range(126)), LAST]
    (tmp_path / "said").mkdir()
    attributes = [msgspec.json.encode(one).decode() for one in told]
    said = pa.table({"attributes": attributes, "sequence": range(FIRST, FIRST + len(told))})
    pq.write_table(said, tmp_path / "said" / "0.parquet")
    jobs = jobs_of_a_broker(tmp_path, str(tmp_path / "said"), Wishes(tmp_path / "wishes.jsonl"))
    gathering_job.run_stream(spark, jobs.gathering, Pace())
    assert [*judge_gathering(spark, jobs.gathering)] == []
    set_aside = rows(tmp_path / "gathering" / "quarantine", "dataset")
    nobodys = sum(one["sensor"] == NOBODY for one in told)
    assert set_aside.count(("readings",)) == nobodys == 3


def test_of_a_failure_the_reason_is_told() -> None:
    told = "[STREAM_FAILED] Query failed\n  File x\ngodwit.net.archive_reading.ArchiveError: north: it is gone\nmore\n"
    assert reason(told) == "north: it is gone"
    assert reason("[STREAM_FAILED] Query failed\nat java") == "[STREAM_FAILED] Query failed"
    assert "too busy" in ending("[STREAM_FAILED] Query failed: Python worker failed to connect back.\nat java")

"""What disturbed streams read: it must not depend on chance whether a batch finds the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.pipeline.streaming.disturbed import LAST, NOBODY, Wishes, jobs_of_a_broker, reading
from tests.pipeline.streaming.judging import judge_gathering, rows

from godwit.pipeline.gathering import job as gathering_job
from godwit.pipeline.streaming.queries import Pace

FIRST = 31
"""A broker numbers publications from the microsecond of its start on, so that any number may be that of the last event.
Once readings with numbers as this one were nobody's: 157 of the last one, 7 beyond a multiple of 50."""


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

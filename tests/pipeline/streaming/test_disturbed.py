"""What disturbed streams read: it must not depend on chance whether a batch finds the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.streaming.disturbed import LAST, NOBODY, Wishes, jobs_of_a_broker, reading
from tests.pipeline.streaming.judging import judge_gathering, rows

from godwit.pipeline.gathering import job as gathering_job
from godwit.pipeline.streaming.queries import Pace


@pytest.mark.parametrize("first", [31, 0])
def test_the_last_reading_closes_all_windows_whatever_its_number_is(
    spark: SparkSession, tmp_path: Path, first: int
) -> None:
    """A broker numbers publications from the microsecond of its start on: any number may be that of the last event."""
    told = [*(reading(number) for number in range(126)), LAST]
    (tmp_path / "said").mkdir()
    attributes = [msgspec.json.encode(one).decode() for one in told]
    said = pa.table({"attributes": attributes, "sequence": range(first, first + len(told))})
    pq.write_table(said, tmp_path / "said" / "0.parquet")
    jobs = jobs_of_a_broker(tmp_path, str(tmp_path / "said"), Wishes(tmp_path / "wishes.jsonl"))
    gathering_job.run_stream(spark, jobs.gathering, Pace())
    assert [*judge_gathering(spark, jobs.gathering)] == []
    nobodys = [record for _, record in rows(tmp_path / "gathering" / "quarantine", "dataset", "record")]
    assert sum(NOBODY in record for record in nobodys) == 3

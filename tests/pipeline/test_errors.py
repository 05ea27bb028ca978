"""What a worker says when it fails is what the user reads: whole, and without the traces of the machines between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError, reason

TOLD = "b7/traces-3.parquet: row group 4 is damaged;\nright would be to fetch it again from http://b7:9884/traces-3"


def failing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise PipelineError(TOLD)


def dividing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if len(batch) > 0:
            raise ValueError(f"the batch of {len(batch)} rows:\nits second line: and its end")
        yield batch


@pytest.mark.parametrize(
    ("work", "whole"),
    [
        (failing, TOLD.replace("\n", " ")),
        (dividing, "ValueError: the batch of 3 rows: its second line: and its end"),
    ],
)
def test_a_worker_s_error_reaches_the_last_line_whole(spark: SparkSession, work: object, whole: str) -> None:
    frame = spark.range(0, 3, numPartitions=1).mapInArrow(work, "id long")  # type: ignore[arg-type]
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    assert reason(str(raised.value)) == whole


@pytest.mark.parametrize(
    ("told", "whole"),
    [
        ("godwit.pipeline.errors.SchemaError: no column 'x'", "no column 'x'"),
        ("[DIVIDE_BY_ZERO] Division by zero.\n== SQL ==\n1/0", "[DIVIDE_BY_ZERO] Division by zero."),
        ("", "Spark failed"),
    ],
)
def test_what_has_no_trace_is_told_by_its_first_line(told: str, whole: str) -> None:
    assert reason(told) == whole

"""Which files workers read themselves, in which shares, and which are left to Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.io.row_groups import SHARE_ROWS_MAX, SHARE_ROWS_MIN, _shared_out, planned, wanted_columns

NAMES = ["id", "word"]


def write(path: Path, **columns: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=2)


def test_every_row_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a%20 b.parquet", id=[1, 2, 3, 4, 5], word=["a", None, "c", "d", "e"], other=[0] * 5)
    write(tmp_path / "c.parquet", id=[6], word=pa.array(["f"], pa.large_string()), other=[0])
    write(tmp_path / "none.parquet", id=pa.array([], pa.int64()), word=pa.array([], pa.string()), other=[])
    frame = spark.read.parquet(str(tmp_path))
    wanted = wanted_columns(frame, NAMES)
    assert wanted is not None
    shares = planned(frame, wanted)
    assert shares is not None
    records = [record for share in shares for groups in share for record in groups.read(wanted, 2)]
    assert max(len(record) for record in records) == 2
    found = pa.Table.from_batches(records)
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": at, "word": word} for at, word in enumerate(["a", None, "c", "d", "e", "f"], 1)
    ]


def test_what_spark_may_understand_otherwise_is_left_to_it(spark: SparkSession, tmp_path: Path) -> None:
    """A column that folders are named by, and one that a file has as an unsigned number."""
    write(tmp_path / "by" / "word=x" / "a.parquet", id=[1])
    write(tmp_path / "unsigned" / "a.parquet", id=pa.array([1], pa.uint32()), word=["a"])
    for folder in ("by", "unsigned"):
        frame = spark.read.parquet(str(tmp_path / folder))
        wanted = wanted_columns(frame, NAMES)
        assert wanted is not None
        assert planned(frame, wanted) is None


@pytest.mark.parametrize("kind", ["timestamp", "date", "decimal(20, 0)", "binary", "array<int>"])
def test_columns_that_spark_must_convert_are_left_to_it(spark: SparkSession, kind: str) -> None:
    assert wanted_columns(spark.createDataFrame([], f"id long, word {kind}"), NAMES) is None


@pytest.mark.parametrize("total", [10, 90_000, 1_000_000, 100_000_000])
def test_shares_keep_all_cores_busy_and_are_not_too_small(total: int) -> None:
    size = max(total // 1000, 1)
    groups = [(f"{at // 7}.parquet", at % 7, size) for at in range(total // size)]
    shares = _shared_out(groups, 2)
    read = [(groups.path, number) for share in shares for groups in share for number in groups.numbers]
    assert read == [(path, number) for path, number, _ in groups]
    rows = [size * sum(len(groups.numbers) for groups in share) for share in shares]
    assert all(SHARE_ROWS_MIN <= some <= SHARE_ROWS_MAX + size for some in rows[:-1])
    assert len(shares) >= min(total // SHARE_ROWS_MIN, 8)

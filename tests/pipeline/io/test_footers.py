"""Files whose columns differ: what can be united is, and what cannot is set apart by file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, DateType, DecimalType, DoubleType, IntegerType, LongType, StringType

from godwit.pipeline.io import footers
from godwit.pipeline.io.footers import united, wider
from godwit.pipeline.io.reading import events, legible


def put(folder: Path, name: str, **columns: Any) -> str:
    pq.write_table(pa.table(columns), folder / name)
    return str(folder / name)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (IntegerType(), LongType(), LongType()),
        (LongType(), DoubleType(), DoubleType()),
        (DecimalType(5, 2), DecimalType(6, 4), DecimalType(7, 4)),
        (LongType(), StringType(), None),
        (DateType(), LongType(), None),
    ],
)
def test_types_are_united_where_one_holds_the_values_of_both(one: DataType, other: DataType, both: object) -> None:
    assert wider(one, other) == both
    assert wider(other, one) == both


def test_a_new_column_in_a_later_file_is_read_and_numbers_are_widened(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", id=pa.array([1, 2], pa.int32()), speed=pa.array([1, 2], pa.int32()))
    put(tmp_path, "2.parquet", id=pa.array([2**40], pa.int64()), speed=[2.5], kind=["bus"])
    good = legible(events(spark, str(tmp_path))).good.orderBy("id")
    assert [tuple(row) for row in good.select("id", "speed", "kind").collect()] == [
        (1, 1.0, None),
        (2, 2.0, None),
        (2**40, 2.5, "bus"),
    ]


def test_a_file_that_cannot_be_united_with_most_rows_is_set_apart(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", id=["a"], speed=["fast"])
    put(tmp_path, "2.parquet", id=["b", "c"], speed=[1, 2])
    (tmp_path / "3.parquet").write_bytes(b"nothing of the kind")
    found = legible(events(spark, str(tmp_path)))
    assert sorted(row["id"] for row in found.good.collect()) == ["b", "c"]
    bad = {Path(row["file"]).name: row["reason"] for row in found.set_aside().collect()}
    assert sorted(bad) == ["1.parquet", "3.parquet"]
    assert bad["1.parquet"].startswith("column 'speed' is string; in ")
    assert bad["1.parquet"].endswith("2.parquet and most rows it is bigint")


def test_footers_of_many_files_are_read_by_executors_alike(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [put(tmp_path, f"{at}.parquet", id=[at], **({"late": [1.5]} if at == 3 else {})) for at in range(4)]
    here = united(spark, names)
    monkeypatch.setattr(footers, "ON_EXECUTORS", 2)
    monkeypatch.setattr(footers, "_footer", None)  # here, and not where executors are
    assert united(spark, names) == here
    assert here.schema.names == ["id", "late"]


def test_a_folder_called_007_has_text_for_its_value(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "unit=007").mkdir()
    put(tmp_path, "unit=007/1.parquet", id=[1])
    put(tmp_path, "unit=007/2.parquet", id=[2], more=[1.5])
    good = legible(events(spark, str(tmp_path))).good
    assert sorted((row["id"], row["unit"]) for row in good.collect()) == [(1, "007"), (2, "007")]

"""Folders that are tables of other formats are refused by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.listing import data_files, kind_of, table_format
from godwit.pipeline.io.reading import events

LOGS = {"Delta": "_delta_log/0.json", "Iceberg": "metadata/v1.metadata.json", "Hudi": ".hoodie/x"}


@pytest.mark.parametrize("form", LOGS)
@pytest.mark.parametrize("inside", ["", "day=1"])
def test_a_table_with_a_log_is_never_read_as_plain_parquet(
    spark: SparkSession, tmp_path: Path, form: str, inside: str
) -> None:
    """Of Delta and Iceberg, the reader of the format says what is wrong with such a log."""
    table = tmp_path / "table"
    (table / LOGS[form]).parent.mkdir(parents=True)
    (table / LOGS[form]).write_text("{}")
    (table / "day=1").mkdir()
    pq.write_table(pa.table({"id": [1]}), table / "day=1" / "part.parquet")
    assert table_format(spark, str(table / inside)) == (form, str(table))
    with pytest.raises(PipelineError, match="table"):
        events(spark, str(table / inside))


def test_hidden_files_do_not_count_and_most_files_decide_the_format(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet", "c.csv", "_SUCCESS", ".a.crc", "_x/d.parquet", "_day=1/e.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [Path(name).relative_to(tmp_path).as_posix() for name in data_files(spark, str(tmp_path))]
    assert found == ["_day=1/e.parquet", "a.parquet", "b.parquet", "c.csv"]
    assert kind_of("x", found) == "parquet"

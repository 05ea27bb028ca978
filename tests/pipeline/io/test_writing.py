"""A folder of tables: one run at a time, whole or not at all, and never another run's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.marks import BATCH, STREAM, Mark
from godwit.pipeline.io.writing import Output
from godwit.pipeline.schemas import QUARANTINE, SITES

MARK = Mark(job="mobility", mode=BATCH)


def written(spark: SparkSession, path: Path, site: str) -> None:
    with Output(spark, str(path), MARK) as out:
        out.write("sites", spark.createDataFrame([(site, 1.0, 2.0)], SITES), SITES)
        out.finish()


def sites(path: Path) -> list[str]:
    return [row["site"] for row in pq.read_table(path / "sites").to_pylist()]


def test_of_two_runs_that_overlap_the_second_is_refused_and_told_who_the_first_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    with Output(spark, str(tmp_path / "out"), MARK) as first:
        with pytest.raises(
            PipelineError, match=rf"out: mobility of .*process {os.getpid()}, since .* is at work there"
        ):
            Output(spark, str(tmp_path / "out"), MARK)
        first.write("sites", spark.createDataFrame([("a", 1.0, 2.0)], SITES), SITES)
        first.finish()
    assert sites(tmp_path / "out") == ["a"]
    written(spark, tmp_path / "out", "b")
    assert sites(tmp_path / "out") == ["b"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_lock_of_a_process_that_was_killed_holds_nobody(spark: SparkSession, tmp_path: Path) -> None:
    lock = tmp_path / ".out.lock"
    holding = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(1, flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", holding, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(PipelineError, match="another run is at work there"):
        Output(spark, str(tmp_path / "out"), MARK)
    holder.kill()
    holder.wait()
    written(spark, tmp_path / "out", "a")
    assert sites(tmp_path / "out") == ["a"]


def test_a_run_that_fails_leaves_the_older_tables_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    written(spark, tmp_path / "out", "a")
    broken = spark.createDataFrame([("b", 1.0, 2.0)], SITES)
    with pytest.raises(PipelineError), Output(spark, str(tmp_path / "out"), MARK) as out:
        out.write("sites", broken.withColumn("site", sf.lit(None).cast("string")), SITES)
    assert sites(tmp_path / "out") == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_run_left_is_put_right_by_the_next(spark: SparkSession, tmp_path: Path) -> None:
    written(spark, tmp_path / "out", "a")
    (tmp_path / "out").rename(tmp_path / ".out.old")
    (tmp_path / ".out.run-0123").mkdir()
    with pytest.raises(ZeroDivisionError), Output(spark, str(tmp_path / "out"), MARK):
        raise ZeroDivisionError
    assert sites(tmp_path / "out") == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_that_no_run_marked_are_not_replaced(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").touch()
    with pytest.raises(PipelineError, match=r"is not empty, and has no _godwit\.json"):
        Output(spark, str(tmp_path / "out"), MARK)
    assert (tmp_path / "out" / "thesis.txt").exists()


@pytest.mark.parametrize("mark", [Mark(job="match", mode=BATCH), Mark(job="mobility", mode=STREAM)])
def test_tables_of_another_job_or_of_a_stream_are_not_replaced(spark: SparkSession, tmp_path: Path, mark: Mark) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_godwit.json").write_text(mark.encoded())
    right = "another --out for mobility" if mark.job == "match" else "`godwit pipeline mobility ... --out .*out-batch`"
    with pytest.raises(PipelineError, match=right):
        Output(spark, str(tmp_path / "out"), MARK)


def test_a_table_without_rows_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    with Output(spark, str(tmp_path / "out"), MARK) as out:
        out.write("quarantine", spark.createDataFrame([], QUARANTINE), QUARANTINE, ["dataset"])
        out.finish()
    found = spark.read.parquet(str(tmp_path / "out" / "quarantine"))
    assert (found.columns, found.count()) == (QUARANTINE.names, 0)
    assert pq.read_table(tmp_path / "out" / "quarantine").column_names == QUARANTINE.names


def test_a_row_without_a_required_value_ends_the_run(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", 1.0, None)], "site string, lat double, lon double")
    with (
        pytest.raises(PipelineError, match="table sites: 1 of 1 rows have no 'lon', which the schema requires"),
        Output(spark, str(tmp_path / "out"), MARK) as out,
    ):
        out.write("sites", frame, SITES)
    assert not (tmp_path / "out").exists()

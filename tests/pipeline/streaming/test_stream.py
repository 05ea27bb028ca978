"""Streams of files: whose folder it is, columns that come later, files that cannot be read, and rows counted once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.match.jobs import delivered, quarantined, wishes

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.gathering.job import GatheringOptions
from godwit.pipeline.gathering.job import run_stream as gather
from godwit.pipeline.io.marks import BATCH
from godwit.pipeline.io.writing import Output
from godwit.pipeline.match.job import MatchOptions, run, run_stream
from godwit.pipeline.streaming.queries import Pace


def put(folder: Path, name: str, **columns: Any) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / name)


@pytest.fixture
def asked(tmp_path: Path) -> MatchOptions:
    put(tmp_path / "events", "1.parquet", id=pa.array([1, 2], pa.int32()), speed=[60.0, 10.0])
    wanted = wishes(tmp_path, quick="speed > 50", bus="kind = 'bus'")
    return MatchOptions(events=str(tmp_path / "events"), subscriptions=wanted, out=str(tmp_path / "out"))


def test_columns_that_come_later_are_read_and_one_bad_file_blocks_nothing(
    spark: SparkSession, tmp_path: Path, asked: MatchOptions
) -> None:
    run_stream(spark, asked, Pace())
    put(tmp_path / "events", "2.parquet", id=pa.array([2**40], pa.int64()), speed=[70.0], kind=["bus"])
    (tmp_path / "events" / "3.parquet").write_bytes(b"no Parquet at all")
    put(tmp_path / "events", "4.parquet", id=[4], speed=["fast"])
    summary = run_stream(spark, asked, Pace())
    assert delivered(tmp_path / "out") == [(1, "quick"), (2**40, "bus"), (2**40, "quick")]
    assert (summary.rows_in, summary.quarantined) == (1, 2)
    assert quarantined(tmp_path / "out")[0].startswith("column 'speed' is string; in ")
    put(tmp_path / "events", "5.parquet", id=[5], speed=[80.0])
    assert run_stream(spark, asked, Pace()).rows_in == 1
    assert (5, "quick") in delivered(tmp_path / "out")


def test_a_file_that_is_damaged_beyond_its_footer_is_set_aside_too(
    spark: SparkSession, tmp_path: Path, asked: MatchOptions
) -> None:
    put(tmp_path / "events", "2.parquet", id=list(range(9000)), speed=[float(at % 977) for at in range(9000)])
    whole = bytearray((tmp_path / "events" / "2.parquet").read_bytes())
    whole[4:4000] = b"\xff" * 3996
    (tmp_path / "events" / "2.parquet").write_bytes(whole)
    summary = run_stream(spark, asked, Pace())
    assert delivered(tmp_path / "out") == [(1, "quick")]
    assert (summary.rows_in, summary.quarantined) == (2, 1)
    assert quarantined(tmp_path / "out")[0].startswith("cannot be read to its end")


def test_a_stream_whose_checkpoint_is_gone_is_refused_and_adds_nothing_twice(
    spark: SparkSession, tmp_path: Path, asked: MatchOptions
) -> None:
    run_stream(spark, asked, Pace())
    shutil.rmtree(tmp_path / "out" / "_checkpoint")
    with pytest.raises(
        PipelineError, match=r"a second time; right would be `godwit pipeline match \.\.\. --out .*out-2"
    ):
        run_stream(spark, asked, Pace())
    assert delivered(tmp_path / "out") == [(1, "quick")]


def test_a_batch_and_a_stream_do_not_share_a_folder(spark: SparkSession, tmp_path: Path, asked: MatchOptions) -> None:
    run(spark, asked)
    with pytest.raises(PipelineError, match=r"has the tables of a batch.*--out .*out-stream --stream`"):
        run_stream(spark, asked, Pace())
    shutil.rmtree(tmp_path / "out")
    run_stream(spark, asked, Pace())
    with pytest.raises(PipelineError, match=r"belongs to a stream.*--out .*out-batch`, or --stream"):
        run(spark, asked)


def test_a_stream_is_refused_where_a_run_is_at_work(spark: SparkSession, asked: MatchOptions) -> None:
    with (
        Output(spark, asked.out, asked.mark(BATCH)),
        pytest.raises(PipelineError, match=r"match of .* is at work there"),
    ):
        run_stream(spark, asked, Pace())


def test_a_condition_that_a_stream_cannot_keep_is_refused_and_not_forgotten(
    spark: SparkSession, tmp_path: Path, asked: MatchOptions
) -> None:
    strict = msgspec.structs.replace(asked, fail_on=("quarantined > 0",))
    with pytest.raises(PipelineError, match="--fail-on 'quarantined > 0' is for batches"):
        run_stream(spark, strict, Pace())
    air = GatheringOptions(readings="air", out=str(tmp_path / "out"), quantities=("pm25",), fail_on=("rows < 1",))
    with pytest.raises(PipelineError, match="--fail-on 'rows < 1' is for batches"):
        gather(spark, air, Pace())
    assert not (tmp_path / "out").exists()


def test_a_changed_window_is_refused_with_the_one_that_would_be_right(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "air", "1.parquet", sensor=["a"], time_s=[0.0], pm25=[1.0])
    day = GatheringOptions(readings=str(tmp_path / "air"), out=str(tmp_path / "out"), quantities=("pm25",))
    gather(spark, day, Pace())
    hour = msgspec.structs.replace(day, window="1 hour")
    with pytest.raises(PipelineError, match=r"begun with --window '1 day'.*right would be --window '1 day', or"):
        gather(spark, hour, Pace())


def test_late_readings_are_kept_repeated_ones_count_once_and_a_clock_in_2099_closes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    minutes = [60.0 * at for at in range(6)]
    put(tmp_path / "air", "1.parquet", sensor=["a"] * 6, time_s=minutes, pm25=[1.0] * 6)
    put(tmp_path / "air", "2.parquet", sensor=["b"], time_s=[4_070_908_800.0], pm25=[9.0])
    options = GatheringOptions(
        readings=str(tmp_path / "air"),
        out=str(tmp_path / "out"),
        quantities=("pm25",),
        window="1 minute",
        late="2 minutes",
        files_per_batch=1,
    )
    for step, (sensor, time_s) in enumerate([("a", [300.0, 300.0, 360.0]), ("a", [0.0, float("nan")])]):
        gather(spark, options, Pace())
        put(
            tmp_path / "air",
            f"{step + 3}.parquet",
            sensor=[sensor] * len(time_s),
            time_s=time_s,
            pm25=[1.0] * len(time_s),
        )
    summary = gather(spark, options, Pace())
    written = {row["from_s"]: row["readings"] for row in pq.read_table(tmp_path / "out" / "aggregates").to_pylist()}
    assert written == {0.0: 1, 60.0: 1, 120.0: 1, 180.0: 1}, "nothing but what two minutes of waiting allow"
    assert [row["time_s"] for row in pq.read_table(tmp_path / "out" / "late").to_pylist()] == [0.0]
    assert quarantined(tmp_path / "out") == ["column 'time_s': NaN is no finite number"]
    assert (summary.rows_in, summary.quarantined) == (1, 1)

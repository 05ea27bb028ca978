"""Folders of jobs published to Iceberg and Delta, read back by jobs, and kept apart from plain Parquet."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.lake.address import TableAddress, parsed
from godwit.pipeline.io.lake.publication import published
from godwit.pipeline.io.lake.source import frame
from godwit.pipeline.io.reading import read
from godwit.pipeline.schemas import SITES

TARGETS = pytest.mark.parametrize("form", ["iceberg", "delta"])


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog in a file, as the library has it by its configuration."""
    (tmp_path / "warehouse").mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path / 'catalog.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{tmp_path / 'warehouse'}")
    # The library looks at the environment once, when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return tmp_path


def target(form: str, lake: Path) -> str:
    return "iceberg:lake.fleet" if form == "iceberg" else f"delta:{lake / 'delta'}"


def table(form: str, lake: Path, name: str) -> str:
    return f"iceberg:lake.fleet.{name}" if form == "iceberg" else f"delta:{lake / 'delta' / name}"


def leave(file: Path, **columns: list[object]) -> None:
    """What a job would write."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


def finish(out: Path, number: int) -> None:
    """What Spark notes when a micro-batch is complete."""
    commits = out / "_checkpoint" / "commits"
    commits.mkdir(parents=True, exist_ok=True)
    (commits / str(number)).write_text("v1\n{}")


def rows(address: str) -> list[dict[str, object]]:
    """By the library alone, which knows nothing of us."""
    found = parsed(address)
    assert found is not None
    if found.format == "delta":
        told = DeltaTable(found.place).to_pyarrow_table()
    else:
        told = load_catalog("lake").load_table(found.place.removeprefix("lake.")).scan().to_arrow()
    return sorted(told.to_pylist(), key=str)


@TARGETS
def test_a_run_replaces_the_rows_of_the_one_before_and_is_published_once(form: str, lake: Path) -> None:
    leave(lake / "out" / "visits" / "day=007" / "a.parquet", site=["x", "y"])
    assert published(str(lake / "out"), target(form, lake)) == {"visits": 2}
    assert published(str(lake / "out"), target(form, lake)) == {"visits": 0}
    (lake / "out" / "visits" / "day=007" / "a.parquet").unlink()
    leave(lake / "out" / "visits" / "day=007" / "b.parquet", site=["z"])
    assert published(str(lake / "out"), target(form, lake)) == {"visits": 1}
    assert rows(table(form, lake, "visits")) == [{"site": "z", "day": "007"}]


@TARGETS
def test_micro_batches_are_added_once_and_only_when_spark_calls_them_complete(form: str, lake: Path) -> None:
    out = lake / "out"
    leave(out / "events" / "batch=0" / "a.parquet", n=[0])
    leave(out / "events" / "batch=1" / "a.parquet", n=[1])
    leave(out / "events" / "batch=2" / "a.parquet", n=[2])
    finish(out, 0)
    finish(out, 1)
    assert published(str(out), target(form, lake)) == {"events": 2}
    finish(out, 2)
    assert published(str(out), target(form, lake)) == {"events": 1}
    assert published(str(out), target(form, lake)) == {"events": 0}
    assert [row["n"] for row in rows(table(form, lake, "events"))] == [0, 1, 2]


@TARGETS
def test_a_new_column_of_a_later_batch_becomes_one_of_the_table(form: str, lake: Path) -> None:
    out = lake / "out"
    leave(out / "events" / "batch=0" / "a.parquet", n=[0])
    finish(out, 0)
    published(str(out), target(form, lake))
    leave(out / "events" / "batch=1" / "a.parquet", n=[1], pm25=[3.5])
    finish(out, 1)
    published(str(out), target(form, lake))
    assert rows(table(form, lake, "events")) == [{"n": 0, "pm25": None}, {"n": 1, "pm25": 3.5}]


@TARGETS
def test_moments_that_spark_wrote_are_the_same_in_the_table(form: str, lake: Path) -> None:
    when = datetime(2026, 11, 16, 12, 0, 0, 5, tzinfo=UTC)
    (lake / "out" / "events").mkdir(parents=True)
    told = pa.table({"time": pa.array([when], pa.timestamp("us", "UTC"))})
    pq.write_table(told, lake / "out" / "events" / "a.parquet", use_deprecated_int96_timestamps=True)
    published(str(lake / "out"), target(form, lake))
    assert [row["time"] for row in rows(table(form, lake, "events"))] == [when]


@TARGETS
def test_a_job_reads_a_table_as_it_is_and_as_it_was(form: str, lake: Path, spark: SparkSession) -> None:
    out = lake / "out"
    leave(out / "sites" / "batch=0" / "a.parquet", site=["a"], lat=[1.0], lon=[2.0])
    finish(out, 0)
    published(str(out), target(form, lake))
    address = table(form, lake, "sites")
    first = (
        DeltaTable(str(lake / "delta" / "sites")).version()
        if form == "delta"
        else load_catalog("lake").load_table("fleet.sites").snapshots()[0].snapshot_id
    )
    leave(out / "sites" / "batch=1" / "a.parquet", site=["b"], lat=[1.0], lon=[2.0], height=[3.0])
    finish(out, 1)
    published(str(out), target(form, lake))
    assert {row.site for row in read(spark, address, SITES, "sites").good.collect()} == {"a", "b"}
    assert {row.site for row in read(spark, f"{address}@{first}", SITES, "sites").good.collect()} == {"a"}
    then = frame(spark, parsed(f"{address}@{first}") or TableAddress("", ""))
    assert "height" not in then.columns
    with pytest.raises(PipelineError, match=r"4711|not there yet"):
        read(spark, f"{address}@4711", SITES, "sites")


def test_renamed_and_widened_columns_of_iceberg_keep_their_values(lake: Path, spark: SparkSession) -> None:
    out = lake / "out"
    pq_table = pa.table({"n": pa.array([1], pa.int32()), "old": ["x"]})
    (out / "events" / "batch=0").mkdir(parents=True)
    pq.write_table(pq_table, out / "events" / "batch=0" / "a.parquet")
    finish(out, 0)
    published(str(out), "iceberg:lake.fleet")
    with load_catalog("lake").load_table("fleet.events").update_schema() as change:
        change.rename_column("old", "new")
    leave(out / "events" / "batch=1" / "a.parquet", n=[2**40], new=["y"])
    finish(out, 1)
    published(str(out), "iceberg:lake.fleet")
    found = frame(spark, TableAddress("iceberg", "lake.fleet.events"))
    assert sorted((row.n, row.new) for row in found.collect()) == [(1, "x"), (2**40, "y")]


def test_a_folder_of_a_table_is_read_as_the_table_and_never_as_its_files(lake: Path, spark: SparkSession) -> None:
    place = lake / "delta"
    write_deltalake(str(place), pa.table({"site": ["a", "b"], "lat": [1.0, 1.0], "lon": [2.0, 2.0]}))
    DeltaTable(str(place)).delete("site = 'a'")
    assert len(list(place.glob("*.parquet"))) == 2
    assert [row.site for row in read(spark, str(place), SITES, "sites").good.collect()] == ["b"]
    (part,) = {str(path) for path in place.glob("*.parquet")} - {str(place / uri) for uri in _files(place)}
    with pytest.raises(PipelineError, match="belongs to the table delta:"):
        read(spark, part, SITES, "sites")


def _files(place: Path) -> list[str]:
    return [uri.rpartition("/")[2] for uri in DeltaTable(str(place)).file_uris()]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lake.fleet", "right would be iceberg:"),
        ("iceberg:/folder", "commits through a catalog"),
        ("delta:fleet", "delta:FOLDER"),
        ("delta:/folder@3", "right would be"),
        ("iceberg:nowhere.fleet", "PYICEBERG_CATALOG__NOWHERE__URI"),
    ],
)
def test_a_target_that_cannot_be_is_told_with_one_that_can(text: str, told: str, lake: Path) -> None:
    leave(lake / "out" / "visits" / "a.parquet", site=["x"])
    with pytest.raises(PipelineError, match=told):
        published(str(lake / "out"), text)

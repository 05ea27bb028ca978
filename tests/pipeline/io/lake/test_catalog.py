"""Names of Spark's own catalogs, as source and as target; here the catalog is the one in the session's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.lake.address import TABLE, TableAddress
from godwit.pipeline.io.lake.catalog import replaced
from godwit.pipeline.io.lake.publication import published
from godwit.pipeline.io.marks import BATCH, STREAM, Mark
from godwit.pipeline.io.reading import read
from godwit.pipeline.io.writing import Output
from godwit.pipeline.schemas import SITES

FLEET = TableAddress(TABLE, "test_fleet")


@pytest.fixture
def namespace(spark: SparkSession, tmp_path: Path) -> str:
    """Its tables are in this test's folder, and it is forgotten by the next test that makes it."""
    spark.sql("DROP DATABASE IF EXISTS test_fleet CASCADE")
    spark.sql(f"CREATE DATABASE test_fleet LOCATION '{tmp_path / 'warehouse'}'")
    return "test_fleet"


def write_sites(spark: SparkSession, out: Path, *names: str) -> None:
    with Output(spark, str(out), Mark(job="mobility", mode=BATCH)) as tables:
        tables.write("sites", spark.createDataFrame([(name, 1.0, 2.0) for name in names], SITES), SITES)
        tables.finish()


def test_a_batch_is_published_to_a_catalog_and_read_back_by_name(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    for names in (("a", "b", "c"), ("a", "d")):
        write_sites(spark, tmp_path / "out", *names)
        assert replaced(spark, str(tmp_path / "out"), FLEET) == {"sites": len(names)}
        found = read(spark, "table:test_fleet.sites", SITES, "sites").good.collect()
        assert sorted(row.site for row in found) == sorted(names)


def test_a_name_that_no_catalog_knows_is_told(spark: SparkSession, namespace: str) -> None:
    with pytest.raises(PipelineError, match=r"table:test_fleet\.nothing: .*TABLE_OR_VIEW_NOT_FOUND"):
        read(spark, "table:test_fleet.nothing", SITES, "sites").good.collect()


def test_a_stream_s_tables_are_not_for_a_catalog_that_cannot_say_what_it_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "_godwit.json").write_text(Mark(job="ingest", mode=STREAM).encoded())
    with pytest.raises(PipelineError, match="right for a stream would be iceberg"):
        replaced(spark, str(tmp_path), FLEET)


def test_without_a_session_a_name_of_its_catalogs_cannot_be_published_to(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="right would be --tables table:fleet with the job itself"):
        published(str(tmp_path), "table:fleet")

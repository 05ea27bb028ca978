"""Tables of Spark's own catalogs, by name: what a batch wrote takes the place of what a table had.

A catalog of a format with commits (Iceberg, Delta) replaces the rows in one commit. Spark's own keeps plain files, and
a reader may meet the moment between the old ones and the new.
"""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io import marks
from godwit.pipeline.io.files import Files, within
from godwit.pipeline.io.lake.address import TableAddress
from godwit.pipeline.schemas import quoted


def replaced(spark: SparkSession, out: str, address: TableAddress) -> dict[str, int]:
    """Every table of a job's folder below the namespace; the rows of each. Raises `PipelineError`."""
    files = Files(spark)
    mark = marks.read(files, out)
    if mark is None or mark.mode != marks.BATCH:
        raise PipelineError(
            f"{address.text}: takes the tables of a batch; Spark's catalogs cannot say which micro-batches a table has:"
            " right for a stream would be iceberg:CATALOG.NAMESPACE or delta:FOLDER"
        )
    names = [name for name in files.names(out) if name[0] not in "._" and "." not in name]
    try:
        _make_namespace(spark, address.place)
        return {name: _replaced(spark, within(out, name), f"{address.place}.{quoted(name)}") for name in names}
    except PySparkException as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise PipelineError(f"{address.text}: {told}") from None


def _make_namespace(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")


def _replaced(spark: SparkSession, folder: str, table: str) -> int:
    rows = spark.read.parquet(folder)
    if _is_sparks_own(spark, table):
        rows.write.mode("overwrite").saveAsTable(table)
    else:
        rows.writeTo(table).createOrReplace()
    return spark.table(table).count()


def _is_sparks_own(spark: SparkSession, table: str) -> bool:
    """Whether the catalog is the one that Spark has by itself, which cannot replace a table in one step."""
    catalog = table.partition(".")[0]
    return not spark.conf.get(f"spark.sql.catalog.{catalog}", "")

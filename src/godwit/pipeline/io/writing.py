"""What a job leaves behind: a folder of Parquet tables that appears whole, or not at all.

Each run writes to a folder of its own beside the place, by Spark's own committer, and the finished folder takes the
place of an older one in one step. A lock keeps other runs away meanwhile. A job killed at any moment leaves the older
result, or both under names that the next run recognises.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from types import TracebackType

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io import marks
from godwit.pipeline.io.files import Files, beside, within
from godwit.pipeline.io.locks import Lock
from godwit.pipeline.io.marks import Mark
from godwit.pipeline.schemas import column, shaped

RUN, OLD = "run", "old"

_ROWS = "_rows"


class Output:
    """The folder at `path`, on any file system that Spark can write to; `with` it, and `finish` it.

    Without `finish`, nothing has happened. Raises `PipelineError` where another run is at work there, or where the
    folder is not one that such a run may replace.
    """

    def __init__(self, spark: SparkSession, path: str, mark: Mark) -> None:
        self.spark = spark
        self.path = path.rstrip("/")
        self.rows: dict[str, int] = {}
        self._files, self._mark = Files(spark), mark
        self._own, self._old = beside(self.path, f"{RUN}-{uuid.uuid4().hex[:12]}"), beside(self.path, OLD)
        self._lock = Lock(self._files, self.path, mark.job)
        try:
            self._recover()
            marks.claim_batch(self._files, self.path, mark)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._files.delete(self._own)
        self._lock.release()

    def write(
        self,
        table: str,
        frame: DataFrame,
        schema: StructType,
        partitioned_by: Sequence[str] = (),
        files: int | None = None,
    ) -> DataFrame:
        """Write a table of this schema and read it back, so that what follows from it is not computed twice.

        A row without a value that the schema requires ends the run: it would be a fault of the job.
        """
        place, seen = within(self._own, table), Observation()
        ready = shaped(frame, schema)
        if files is not None:
            ready = ready.coalesce(files)
        ready.observe(seen, *_contract(schema)).write.partitionBy(*partitioned_by).parquet(place)
        self.rows[table] = _kept(table, seen)
        if partitioned_by and not self.rows[table]:
            # Without rows there are no folders, and readers of Parquet would find no schema.
            write_empty(self.spark, place, schema)
        return self.spark.read.schema(schema).parquet(place)

    def write_text(self, name: str, text: str) -> None:
        self._files.write(within(self._own, name), text)

    def finish(self) -> None:
        """Let the new tables take the place of the old."""
        self.write_text(marks.MARK, self._mark.encoded())
        if self._files.exists(self.path):
            self._files.rename(self.path, self._old)
        self._files.rename(self._own, self.path)
        self._files.delete(self._old)

    def refuse(self) -> str:
        """Put the tables where people can look at them, and leave the older ones in their place."""
        place = f"{self.path}.refused"
        self._files.delete(place)
        self._files.rename(self._own, place)
        return place

    def _recover(self) -> None:
        """Undo what a killed run left: the older result was moved aside, and the newer had not arrived."""
        files = self._files
        if files.exists(self._old) and not files.exists(self.path):
            files.rename(self._old, self.path)
        files.delete(self._old)
        folder, _, name = self.path.rpartition("/")
        for left in files.names(folder or "."):
            if left.startswith(f".{name}.{RUN}-"):
                files.delete(f"{folder}/{left}" if folder else left)


def _contract(schema: StructType) -> list[Column]:
    nulls = [sf.count_if(column(field.name).isNull()).alias(field.name) for field in schema if not field.nullable]
    return [sf.count("*").alias(_ROWS), *nulls]


def _kept(table: str, seen: Observation) -> int:
    found = dict(seen.get)
    rows = int(found.pop(_ROWS))
    for name, nulls in found.items():
        if nulls:
            raise PipelineError(
                f"table {table}: {nulls:,} of {rows:,} rows have no {name!r}, which the schema requires"
            )
    return rows


def write_empty(spark: SparkSession, place: str, schema: StructType) -> None:
    spark.createDataFrame([], schema).coalesce(1).write.mode("append").parquet(place)

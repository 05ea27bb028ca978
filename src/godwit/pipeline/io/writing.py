"""What a job leaves behind: a folder of Parquet tables that appears whole, or not at all.

Tables are written beside their place by Spark's own committer, and the finished folder takes the place of an older one.
A job killed at any moment leaves the older result, or both under names that the next run recognises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.schemas import shaped

UNFINISHED, OLD = "unfinished", "old"


class Output:
    """The folder at `path`, on any file system that Spark can write to. Call `finish`, or nothing has happened."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.path = path.rstrip("/")
        self.rows: dict[str, int] = {}
        self._files = Files(spark)
        self._unfinished, self._old = beside(self.path, UNFINISHED), beside(self.path, OLD)
        self._recover()

    def write(
        self,
        table: str,
        frame: DataFrame,
        schema: StructType,
        partitioned_by: Sequence[str] = (),
        files: int | None = None,
    ) -> DataFrame:
        """Write a table of this schema and read it back, so that what follows from it is not computed twice."""
        place = f"{self._unfinished}/{table}"
        ready = shaped(frame, schema)
        if files is not None:
            ready = ready.coalesce(files)
        seen = Observation()
        ready.observe(seen, sf.count("*").alias("rows")).write.partitionBy(*partitioned_by).parquet(place)
        self.rows[table] = seen.get["rows"]
        return self.spark.read.schema(schema).parquet(place)

    def write_text(self, name: str, text: str) -> None:
        self._files.write(f"{self._unfinished}/{name}", text)

    def finish(self) -> None:
        """Let the new tables take the place of the old."""
        files = self._files
        if files.exists(self.path):
            files.rename(self.path, self._old)
        files.rename(self._unfinished, self.path)
        files.delete(self._old)

    def _recover(self) -> None:
        """Undo what a killed run left: the older result was moved aside, and the newer had not arrived."""
        files = self._files
        if files.exists(self._old) and not files.exists(self.path):
            files.rename(self._old, self.path)
        files.delete(self._old)
        files.delete(self._unfinished)


def beside(path: str, word: str) -> str:
    """A hidden name in the same folder."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.{word}"


class Files:
    """Hadoop's file systems, which are those that Spark writes to."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._hadoop: Any = spark._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        return bool(self._system(path).exists(self._path(path)))

    def signature(self, path: str) -> tuple[tuple[str, int, int], ...]:
        """Name, time of change and size of every file there: whatever is written there changes it."""
        system, found = self._system(path), list[tuple[str, int, int]]()
        for place in system.globStatus(self._path(path)) or ():
            files = system.listFiles(place.getPath(), True)
            while files.hasNext():
                file = files.next()
                found.append((file.getPath().toString(), file.getModificationTime(), file.getLen()))
        return tuple(sorted(found))

    def rename(self, path: str, to: str) -> None:
        if not self._system(path).rename(self._path(path), self._path(to)):
            raise PipelineError(f"{path} cannot be renamed to {to}: may this user write there?")

    def delete(self, path: str) -> None:
        self._system(path).delete(self._path(path), True)

    def write(self, path: str, text: str) -> None:
        stream = self._system(path).create(self._path(path), True)
        stream.write(text.encode())
        stream.close()

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._hadoop)

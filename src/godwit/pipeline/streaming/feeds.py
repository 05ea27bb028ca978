"""What a stream is fed with: the rows of a live source, or the names of files as they appear in a folder.

Spark fixes the columns of a stream of files when it starts, and one file that it cannot read would end it for good.
So it watches names only, and each micro-batch reads its files as a batch would: columns may be added, and a bad file is
set aside by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from godwit.pipeline.io import foreign
from godwit.pipeline.io.footers import Apart
from godwit.pipeline.io.foreign import is_foreign
from godwit.pipeline.io.listing import PARQUET, kind_of
from godwit.pipeline.io.reading import CORRUPT, FILE, Raw, events_of_files, first_line, found_at, of_files
from godwit.pipeline.io.source import frame
from godwit.pipeline.io.source_options import EVENTS, EVERYTHING, TRACES, Live, is_live

NAMES = "path string, modificationTime timestamp, length long, content binary"


@dataclass(frozen=True, slots=True)
class Feed:
    """`is_events` of any columns; else a dataset, of which JSON lines have the columns of these `names`."""

    path: str
    dataset: str
    live: Live = EVERYTHING
    kind: str = EVENTS
    files_per_batch: int | None = None
    is_events: bool = False
    as_columns: bool = False
    names: Collection[str] = ()

    @property
    def gives_rows(self) -> bool:
        """Whether a micro-batch is rows already, and not names of files."""
        return is_live(self.path) or is_foreign(self.path)

    def frame(self, spark: SparkSession) -> DataFrame:
        """To be started; each micro-batch of it is for `rows` or `files`."""
        if is_live(self.path):
            told = TRACES if self.kind == TRACES else EVENTS
            return frame(spark, self.path, self.live, kind=told, stream=True).withColumn(FILE, sf.lit(self.path))
        there = foreign.found(
            spark,
            self.path,
            CORRUPT,
            kind=self.kind,
            stream=True,
            files_per_batch=self.files_per_batch,
            rows_per_batch=self.live.events_per_batch,
        )
        if there is not None:
            return there.withColumn(FILE, sf.lit(self.path))
        found_at(spark, self.path)
        reader = spark.readStream.format("binaryFile").schema(NAMES)
        if self.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", self.files_per_batch)
        return reader.load(self.path).select("path")

    def files(self, batch: DataFrame) -> list[str]:
        """The names in a micro-batch."""
        return sorted(_plain(row["path"]) for row in batch.collect())

    def read(self, spark: SparkSession, files: Sequence[str], settled: StructType | None) -> Raw:
        """The rows of these files, with the columns of earlier ones too."""
        if self.is_events:
            return events_of_files(spark, self.path, files, as_columns=self.as_columns, settled=settled)
        return of_files(spark, self.path, files, self.names, settled=settled)

    def damaged(self, spark: SparkSession, files: Sequence[str]) -> tuple[Apart, ...]:
        """Those that cannot be read to their end, each tried by itself."""
        return tuple(apart for name in files if (apart := _tried(spark, name)) is not None)


def _plain(address: str) -> str:
    place = urlsplit(address)
    return unquote(place.path) if place.scheme == "file" else address


def _tried(spark: SparkSession, name: str) -> Apart | None:
    try:
        found = spark.read.parquet(name) if kind_of(name, [name]) == PARQUET else spark.read.text(name)
        found.write.format("noop").mode("overwrite").save()
    except (PySparkException, Py4JJavaError) as error:
        return Apart(name, f"cannot be read to its end: {first_line(error)}")
    return None

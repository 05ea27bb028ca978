"""Windows of a stream that still wait for readings: kept as files by the end of the window, until it is written.

A window is closed when the latest time seen is `late` beyond its end. A clock that is ahead cannot close the windows of
others: a time counts for this no later than it arrived, and not at all if it is more than a day ahead. Every reading is
written once and read once; which windows a micro-batch closes follows from what the one before it left, so that a
repeated one does the same again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.gathering.aggregates import in_window
from godwit.pipeline.io.files import Files, within
from godwit.pipeline.streaming.queries import BATCH

OPEN, UNTIL = "_open", "until_s"


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """In the folder `_open` of the stream's tables, which readers of tables do not see."""

    out: str
    window: str
    late_s: float
    schema: StructType

    def closed_before_s(self, latest_s: float | None) -> float:
        """Windows that end by then are closed."""
        return float("-inf") if latest_s is None else latest_s - self.late_s

    def dated(self, readings: DataFrame) -> DataFrame:
        """With the end of the window that each is in."""
        return readings.withColumn(UNTIL, in_window(sf.col("time_s"), self.window)[UNTIL])

    def add(self, dated: DataFrame, number: int) -> None:
        """Keep what a micro-batch brings, in the place of what an earlier try of it has left."""
        writer = dated.withColumn(BATCH, sf.lit(number)).write.mode("overwrite")
        writer.option("partitionOverwriteMode", "dynamic").partitionBy(UNTIL, BATCH).parquet(self._place)

    def closed(self, spark: SparkSession, since_s: float, by_s: float) -> DataFrame | None:
        """The readings of windows that end after the one time and by the other; None where there are none."""
        own = [name for until_s, name in self._folders(spark) if since_s < until_s <= by_s]
        return self._read(spark, own) if own else None

    def waiting(self, spark: SparkSession, since_s: float) -> int:
        """How many readings are in windows that are not written yet."""
        own = [name for until_s, name in self._folders(spark) if until_s > since_s]
        return self._read(spark, own).count() if own else 0

    def forget(self, spark: SparkSession, by_s: float) -> None:
        """Remove what was written by micro-batches that Spark has committed."""
        for until_s, name in self._folders(spark):
            if until_s <= by_s:
                Files(spark).delete(name)

    def _read(self, spark: SparkSession, folders: list[str]) -> DataFrame:
        reader = spark.read.schema(self.schema).option("basePath", self._place)
        return reader.parquet(*folders).select(*self.schema.names)

    @property
    def _place(self) -> str:
        return within(self.out, OPEN)

    def _folders(self, spark: SparkSession) -> list[tuple[float, str]]:
        names = [name for name in Files(spark).names(self._place) if name.startswith(f"{UNTIL}=")]
        return sorted((float(name.partition("=")[2]), within(self._place, name)) for name in names)


def seconds(spark: SparkSession, option: str, text: str) -> float:
    """A time as people type it, as in '10 minutes'."""
    origin = sf.lit(0).cast("timestamp")
    try:
        row = spark.range(1).select(sf.unix_micros(origin + sf.lit(text).try_cast("interval"))).first()
    except Exception as error:
        raise PipelineError(f"{option} {text!r}: right would be as in '10 minutes' or '1 day'") from error
    if row is None or row[0] is None or row[0] < 0:
        raise PipelineError(f"{option} {text!r}: right would be as in '10 minutes' or '1 day'")
    return float(row[0]) / 1e6

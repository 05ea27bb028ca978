"""Events of a stream of traces that have not ended: their records are kept from micro-batch to micro-batch.

An event has ended when nothing was recorded of it for so long, by the latest time seen, which counts no later than it
arrived. Then it is judged, once. A record that comes even later is in the table `late`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from godwit.pipeline.audit.figures import EVENT, IS_ABOUT_AN_EVENT
from godwit.pipeline.io.files import Files, within
from godwit.pipeline.schemas import TRACES
from godwit.pipeline.streaming.queries import BATCH, write_batch

OPEN = "_open"
IS_NEW, LAST_S, IS_KNOWN = "is_new", "last_s", "is_known"


@dataclass(frozen=True, slots=True)
class OpenEvents:
    """In the folder `_open` of the stream's tables, which readers of tables do not see."""

    out: str
    late_s: float

    def joined(self, spark: SparkSession, traces: DataFrame, before: int, latest_s: float | None) -> DataFrame:
        """The records of a micro-batch about events, with those of events that were open after the one before.

        Each says whether it is late: of an event that is not open, and so old that it must have ended.
        """
        new = traces.where(IS_ABOUT_AN_EVENT).withColumn(IS_NEW, sf.lit(True))
        whole = new.unionByName(self._open(spark, before).withColumn(IS_NEW, sf.lit(False)))
        event = Window.partitionBy(*EVENT)
        known = whole.withColumn(LAST_S, sf.max("time_s").over(event)).withColumn(
            IS_KNOWN, sf.bool_or(~sf.col(IS_NEW)).over(event)
        )
        closed_s = float("-inf") if latest_s is None else latest_s - self.late_s
        return known.withColumn("is_late", ~sf.col(IS_KNOWN) & (sf.col(LAST_S) <= closed_s))

    def ended(self, known: DataFrame, latest_s: float | None) -> DataFrame:
        """The records of events that nothing more is expected of."""
        return known.where(~sf.col("is_late") & self._has_ended(latest_s)).select(*TRACES.names)

    def keep(self, known: DataFrame, latest_s: float | None, number: int) -> None:
        """The records of the others."""
        still = known.where(~sf.col("is_late") & ~self._has_ended(latest_s))
        write_batch(still.select(*TRACES.names), self._place, number, TRACES)

    def forget(self, spark: SparkSession, before: int) -> None:
        """Remove what only micro-batches that Spark has committed could ask for."""
        files = Files(spark)
        for name in files.names(self._place):
            if name.startswith(f"{BATCH}=") and int(name.partition("=")[2]) < before:
                files.delete(within(self._place, name))

    def _has_ended(self, latest_s: float | None) -> Column:
        return sf.lit(False) if latest_s is None else sf.col(LAST_S) <= sf.lit(latest_s - self.late_s)

    def _open(self, spark: SparkSession, number: int) -> DataFrame:
        place = f"{self._place}/{BATCH}={number}"
        if not Files(spark).exists(place):
            return spark.createDataFrame([], TRACES)
        return spark.read.schema(TRACES).parquet(place)

    @property
    def _place(self) -> str:
        return within(self.out, OPEN)

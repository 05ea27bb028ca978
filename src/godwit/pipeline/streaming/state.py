"""Tables that a stream keeps for itself from micro-batch to micro-batch, in a folder that readers of tables do not see.

Each micro-batch leaves them as they are after it, so that one that Spark repeats after a crash begins with what the one
before it left, and leaves the same again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from godwit.pipeline.io.files import Files, within
from godwit.pipeline.streaming.queries import BATCH, write_batch

FOLDER = "_state"


@dataclass(frozen=True, slots=True)
class State:
    """Of the stream whose tables are in `out`: tables with their schemas."""

    out: str
    tables: dict[str, StructType]

    def left(self, spark: SparkSession, table: str, before: int) -> DataFrame:
        """As it was after this micro-batch, or the last one before it that left something; empty before the first."""
        number = self._last(spark, table, before)
        if number is None:
            return spark.createDataFrame([], self.tables[table])
        return spark.read.schema(self.tables[table]).parquet(f"{self._place(table)}/{BATCH}={number}")

    def keep(self, frame: DataFrame, table: str, number: int) -> None:
        write_batch(frame, self._place(table), number, self.tables[table])

    def forget(self, spark: SparkSession, before: int) -> None:
        """Remove what only micro-batches that Spark has committed could ask for."""
        for table in self.tables:
            last = self._last(spark, table, before)
            for number in self._numbers(spark, table):
                if last is not None and number < last:
                    Files(spark).delete(f"{self._place(table)}/{BATCH}={number}")

    def _last(self, spark: SparkSession, table: str, before: int) -> int | None:
        return max((number for number in self._numbers(spark, table) if number <= before), default=None)

    def _numbers(self, spark: SparkSession, table: str) -> list[int]:
        names = Files(spark).names(self._place(table))
        return [int(name.partition("=")[2]) for name in names if name.startswith(f"{BATCH}=")]

    def _place(self, table: str) -> str:
        return within(within(self.out, FOLDER), table)

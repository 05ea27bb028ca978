"""When sensors told nothing: runs of readings without a value, and silences between two readings.

Readings may come part by part, in the order of time. Of each sensor and quantity the last reading is carried on, with
the run of missing values that it may be the end of.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from godwit.pipeline.schemas import BOOL, DOUBLE, GAPS, LONG, STRING, shaped

NO_VALUE, SILENT = "no value", "silent"

LAST = StructType(
    [
        *(StructField(name, STRING) for name in ("sensor", "quantity")),
        StructField("time_s", DOUBLE),
        StructField("is_missing", BOOL),
        StructField("since_s", DOUBLE),
        StructField("rows", LONG),
    ]
)
"""The last reading of a sensor, and since when and how often readings were like it: with a value, or without."""


def gaps(measured: DataFrame, period_s: float) -> DataFrame:
    """Runs of readings without a value, and silences of more than one and a half periods between two readings."""
    return _told(_runs(readings(measured), period_s), include_last=True)


def readings(measured: DataFrame) -> DataFrame:
    """Measures as rows of `LAST`, each by itself."""
    told = measured.select(
        *("sensor", "quantity", "time_s", sf.col("value").isNull().alias("is_missing")),
        *(sf.col("time_s").alias("since_s"), sf.lit(1).cast("long").alias("rows")),
    )
    return shaped(told, LAST)


def ended(last: DataFrame, measured: DataFrame, period_s: float) -> DataFrame:
    """Gaps that have ended in this part of the readings; `last` is what the part before left."""
    return _told(_runs(last.unionByName(readings(measured)), period_s), include_last=False)


def left(last: DataFrame, measured: DataFrame, period_s: float) -> DataFrame:
    """What this part leaves for the next."""
    found = _runs(last.unionByName(readings(measured)), period_s).where("is_last")
    return shaped(found.select(*LAST.names), LAST)


def still_open(last: DataFrame) -> DataFrame:
    """Runs of missing values that may go on, as gaps so far."""
    told = last.where("is_missing").select(
        *("sensor", "quantity", sf.col("since_s").alias("from_s"), sf.col("time_s").alias("until_s")),
        *(sf.col("rows").alias("missing"), sf.lit(NO_VALUE).alias("reason")),
    )
    return shaped(told, GAPS)


def _runs(rows: DataFrame, period_s: float) -> DataFrame:
    """Readings in a row that are alike, with the silences before each of them."""
    own = Window.partitionBy("sensor", "quantity").orderBy("time_s")
    steps = rows.select("*", sf.lag("time_s").over(own).alias("before_s"), sf.row_number().over(own).alias("number"))
    alike = Window.partitionBy("sensor", "quantity", "is_missing").orderBy("time_s")
    runs = steps.withColumn("run", sf.col("number") - sf.row_number().over(alike))
    found = runs.groupBy("sensor", "quantity", "is_missing", "run").agg(
        sf.min("since_s").alias("since_s"),
        sf.max("time_s").alias("time_s"),
        sf.sum("rows").alias("rows"),
        sf.collect_list(_silence(period_s)).alias("silences"),
    )
    latest = sf.max("time_s").over(Window.partitionBy("sensor", "quantity"))
    return found.withColumn("is_last", sf.col("time_s") == latest)


def _silence(period_s: float) -> Column:
    silence_s = sf.col("time_s") - sf.col("before_s")
    return sf.when(
        silence_s > 1.5 * period_s,
        sf.struct(
            sf.col("before_s").alias("from_s"),
            sf.col("time_s").alias("until_s"),
            (sf.round(silence_s / period_s) - 1).cast("long").alias("missing"),
            sf.lit(SILENT).alias("reason"),
        ),
    )


def _told(runs: DataFrame, *, include_last: bool) -> DataFrame:
    """A step may be both: the reading after a silence may have no value."""
    own = sf.struct(
        sf.col("since_s").alias("from_s"),
        sf.col("time_s").alias("until_s"),
        sf.col("rows").alias("missing"),
        sf.lit(NO_VALUE).alias("reason"),
    )
    is_told = sf.col("is_missing") & (sf.lit(include_last) | ~sf.col("is_last"))
    both = sf.when(is_told, sf.concat("silences", sf.array(own))).otherwise(sf.col("silences"))
    return shaped(runs.select("sensor", "quantity", sf.inline(both)).select(*GAPS.names), GAPS)

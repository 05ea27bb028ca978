"""Sensor readings -> areas -> windows: what a place looked like, when it told nothing, and what needs attention."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from godwit.pipeline.gathering.cells import cell_of
from godwit.pipeline.match.deliveries import SUBSCRIPTION, deliveries
from godwit.pipeline.match.subscriptions import Compiled
from godwit.pipeline.schemas import AGGREGATES, GAPS, MEASURES, column, shaped
from godwit.protocols.gathering.space import Tree

EVERYWHERE = "everywhere"
NO_VALUE, SILENT = "no value", "silent"


def placed(readings: DataFrame, sensors: DataFrame) -> DataFrame:
    """Readings with the places of their sensors, where these do not move and the readings do not say."""
    return readings.drop("lat", "lon").join(sf.broadcast(sensors.select("sensor", "lat", "lon")), "sensor", "left")


def measures(readings: DataFrame, quantities: Sequence[str]) -> DataFrame:
    """A row for each quantity of each reading, missing values included. NaN is what some loggers write for them."""
    missing = sf.lit(None).cast("double")
    one = [
        sf.struct(sf.lit(name).alias("quantity"), sf.nanvl(column(name).cast("double"), missing).alias("value"))
        for name in quantities
    ]
    long = readings.withColumn("one", sf.explode(sf.array(*one)))
    return shaped(long.select("sensor", "time", "one.quantity", "one.value", "lat", "lon"), MEASURES)


def in_areas(measured: DataFrame, areas: Compiled) -> DataFrame:
    """Each measure with each area that wants it, as `area`: the areas' filters are matched as a broker matches."""
    found = deliveries(measured, areas, measured.columns)
    return found.withColumnRenamed(SUBSCRIPTION, "area").select(*MEASURES.names, "area")


def in_cells(measured: DataFrame, tree: Tree) -> DataFrame:
    """Each measure with the cell of the space partition that it was taken in, as `area`."""
    cell = sf.concat(sf.lit("cell "), cell_of(tree, sf.col("lat"), sf.col("lon")))
    return measured.withColumn("area", cell).where("area IS NOT NULL").select(*MEASURES.names, "area")


def everywhere(measured: DataFrame) -> DataFrame:
    return measured.withColumn("area", sf.lit(EVERYWHERE)).select(*MEASURES.names, "area")


def aggregates(located: DataFrame, window: str, late: str | None = None) -> DataFrame:
    """What each area looked like in each window. With `late`, of a stream: a window waits so long for its readings."""
    timed = located if late is None else located.withWatermark("time", late)
    told = timed.groupBy(sf.window("time", window).alias("window"), "area", "quantity").agg(
        sf.count("*").alias("readings"),
        sf.count_if(sf.col("value").isNull()).alias("missing"),
        # An exact count of different sensors cannot be kept in a stream; a set of their names can.
        sf.size(sf.collect_set("sensor")).cast("long").alias("sensors"),
        sf.avg("value").alias("mean"),
        sf.min("value").alias("least"),
        sf.max("value").alias("most"),
    )
    named = told.select("*", sf.col("window.start").alias("start"), sf.col("window.end").alias("end"))
    return shaped(named.select(*AGGREGATES.names), AGGREGATES)


def gaps(measured: DataFrame, period_s: float) -> DataFrame:
    """Runs of readings without a value, and silences of more than one and a half periods between two readings."""
    order = Window.partitionBy("sensor", "quantity").orderBy("time")
    seconds = sf.unix_micros("time") / 1e6
    steps = measured.select(
        "sensor",
        "quantity",
        "time",
        sf.col("value").isNull().alias("is_missing"),
        sf.lag("time").over(order).alias("before"),
        (seconds - sf.lag(seconds).over(order)).alias("step_s"),
        sf.row_number().over(order).alias("number"),
    )
    alike = Window.partitionBy("sensor", "quantity", "is_missing").orderBy("time")
    runs = steps.withColumn("run", sf.col("number") - sf.row_number().over(alike)).where("is_missing")
    without = runs.groupBy("sensor", "quantity", "run").agg(
        sf.min("time").alias("since"), sf.max("time").alias("until"), sf.count("*").alias("missing")
    )
    silent = steps.where(sf.col("step_s") > 1.5 * period_s).select(
        "sensor",
        "quantity",
        sf.col("before").alias("since"),
        sf.col("time").alias("until"),
        (sf.round(sf.col("step_s") / period_s) - 1).cast("long").alias("missing"),
    )
    told = without.drop("run").withColumn("reason", sf.lit(NO_VALUE))
    told = told.unionByName(silent.withColumn("reason", sf.lit(SILENT)))
    return shaped(told.select(*GAPS.names), GAPS)

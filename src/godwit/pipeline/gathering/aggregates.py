"""Sensor readings -> areas -> windows: what a place looked like, when it told nothing, and what needs attention."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from godwit.pipeline.cells import H3_AREA, with_cell
from godwit.pipeline.gathering.cells import cell_of
from godwit.pipeline.match.deliveries import SUBSCRIPTION, deliveries
from godwit.pipeline.match.subscriptions import Compiled
from godwit.pipeline.schemas import AGGREGATES, MEASURES, column, shaped
from godwit.protocols.gathering.space import Tree

EVERYWHERE = "everywhere"
"""The name of the area that has every reading; as a filter, it is TRUE."""


def placed(readings: DataFrame, sensors: DataFrame) -> DataFrame:
    """Readings with the places of their sensors, where these do not move and the readings do not say."""
    return readings.drop("lat", "lon").join(sf.broadcast(sensors.select("sensor", "lat", "lon")), "sensor", "left")


def once(readings: DataFrame) -> DataFrame:
    """Of readings of one sensor at one time, the first in the log. All readings of a sensor are together then, which is
    what gaps need too."""
    order = Window.partitionBy("sensor", "time_s").orderBy("log_row")
    ordered = readings.withColumn("log_row", sf.monotonically_increasing_id()).repartition("sensor")
    return ordered.withColumn("nth", sf.row_number().over(order)).where("nth = 1").drop("log_row", "nth")


def measures(readings: DataFrame, quantities: Sequence[str]) -> DataFrame:
    """A row for each quantity of each reading, missing values included."""
    one = [sf.struct(sf.lit(name).alias("quantity"), column(name).cast("double").alias("value")) for name in quantities]
    long = readings.withColumn("one", sf.explode(sf.array(*one)))
    return shaped(long.select("sensor", "time_s", "one.quantity", "one.value", "lat", "lon"), MEASURES)


def located(measured: DataFrame, areas: Compiled | None, tree: Tree | None, resolution: int | None = None) -> DataFrame:
    """Each measure with each area that it counts in, as `area`, in one pass: everywhere, the cell of the space
    partition, that of H3 at this resolution, and the areas whose filters match, which have one that matches all."""
    if areas is None:
        known = measured.withColumn("area", sf.lit(EVERYWHERE))
    else:
        known = deliveries(measured, areas, measured.columns).withColumnRenamed(SUBSCRIPTION, "area")
    cells = list[Column]()
    if tree is not None:
        cells.append(sf.concat(sf.lit("cell "), cell_of(tree, sf.col("lat"), sf.col("lon"))))
    if resolution is not None:
        known = with_cell(known, resolution, "h3_cell")
        cells.append(sf.concat(sf.lit(H3_AREA), sf.col("h3_cell")))
    if cells:
        whole = sf.array_compact(sf.array(sf.col("area"), *cells))
        of_everywhere = sf.when(sf.col("area") == EVERYWHERE, whole).otherwise(sf.array("area"))
        known = known.withColumn("area", sf.explode(of_everywhere))
    return known.select(*MEASURES.names, "area")


def in_window(time_s: Column, window: str) -> Column:
    """The window that a time is in, as `begin` and `finish` in seconds."""
    found = sf.window(sf.timestamp_seconds(time_s), window)
    seconds = [sf.unix_micros(found[edge]) / sf.lit(1e6) for edge in ("start", "end")]
    return sf.struct(seconds[0].alias("from_s"), seconds[1].alias("until_s"))


def aggregates(known: DataFrame, window: str) -> DataFrame:
    """What each area looked like in each window."""
    frame = sf.window(sf.timestamp_seconds("time_s"), window).alias("window")
    told = known.groupBy(frame, "area", "quantity").agg(
        sf.count("*").alias("readings"),
        sf.count_if(sf.col("value").isNull()).alias("missing"),
        sf.count_distinct("sensor").alias("sensors"),
        sf.avg("value").alias("mean"),
        sf.min("value").alias("least"),
        sf.max("value").alias("most"),
    )
    edges = [
        (sf.unix_micros(f"window.{edge}") / sf.lit(1e6)).alias(name)
        for edge, name in (("start", "from_s"), ("end", "until_s"))
    ]
    return shaped(told.select("*", *edges).select(*AGGREGATES.names), AGGREGATES)

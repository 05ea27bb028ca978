"""The gathering job: readings, the places of their sensors, areas and alerts, in batch or as a stream."""

from __future__ import annotations

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructField, StructType

from godwit.pipeline import gathering
from godwit.pipeline.match import deliveries, deliveries_schema
from godwit.pipeline.reading import Dataset, read
from godwit.pipeline.running import Progress, Summary, watched
from godwit.pipeline.schemas import AGGREGATES, AREAS, DOUBLE, GAPS, QUARANTINE, READINGS, SITES, SUBSCRIPTIONS
from godwit.pipeline.space import partition
from godwit.pipeline.subscriptions import Compiled, Shipper
from godwit.pipeline.writing import Output

KEY = ("sensor", "time")


class GatheringOptions(msgspec.Struct, frozen=True, kw_only=True):
    readings: str
    out: str
    quantities: tuple[str, ...]
    select: str | None = None
    sensors: str | None = None
    """Where the sensors stand, where the readings do not say: sensor, lat, lon."""
    sensors_select: str | None = None
    areas: str | None = None
    alerts: str | None = None
    """Filters on whole readings: id, filter."""
    cells: bool = False
    """Also aggregate by the cells of the space partition that has a broker at every sensor."""
    window: str = "1 day"
    period_s: float = 3600.0
    late: str = "1 day"
    """Of a stream: how long a window waits for readings that are late."""


def run(spark: SparkSession, options: GatheringOptions, progress: Progress | None = None) -> Summary:
    """Gather all readings that there are, and put the tables in the place of older ones."""
    shipper = Shipper(spark)
    try:
        with watched(spark, "gathering", progress) as summary:
            source = _readings(spark, options)
            readings, out = _placed(spark, source.good, options), Output(spark, options.out)
            measured = gathering.measures(readings, options.quantities)
            located, bad = _located(spark, measured, options, shipper)
            bad = source.bad.unionByName(bad)
            out.write("aggregates", gathering.aggregates(located, options.window), AGGREGATES, ["quantity"])
            gaps = out.write("gaps", gathering.gaps(measured, options.period_s), GAPS, ["quantity"])
            if options.alerts is not None:
                wanted = shipper.ship(read(spark, options.alerts, SUBSCRIPTIONS, "alerts"))
                out.write("alerts", deliveries(readings, wanted, KEY), deliveries_schema(readings, KEY))
                bad = bad.unionByName(wanted.quarantine(spark))
            out.write("quarantine", bad, QUARANTINE, ["dataset"])
            summary.notes += _missing(gaps)
            out.finish()
            summary.rows_in = source.good.count()
            summary.rows_out = {table: rows for table, rows in out.rows.items() if table != "quarantine"}
            summary.quarantined = out.rows["quarantine"]
    finally:
        shipper.close()
    return summary


def stream(spark: SparkSession, options: GatheringOptions, shipper: Shipper, *, follow: bool = False) -> StreamingQuery:
    """Aggregate readings as files of them come. A window is written once, when no reading of it can come any more.

    Spark's own file sink and checkpoint make it exactly once; areas are those of the start.
    """
    source = _readings(spark, options, stream=True)
    measured = gathering.measures(_placed(spark, source.good, options), options.quantities)
    located, _ = _located(spark, measured, options, shipper)
    told = gathering.aggregates(located, options.window, options.late)
    writer = told.writeStream.format("parquet").outputMode("append").queryName("godwit gathering")
    writer = writer.option("path", f"{options.out}/aggregates")
    writer = writer.option("checkpointLocation", f"{options.out}/_checkpoint")
    return (writer if follow else writer.trigger(availableNow=True)).start()


def _readings(spark: SparkSession, options: GatheringOptions, *, stream: bool = False) -> Dataset:
    columns = [StructField(name, DOUBLE) for name in options.quantities]
    schema = StructType([*READINGS, *columns])
    return read(spark, options.readings, schema, "readings", options.select, needed=options.quantities, stream=stream)


def _placed(spark: SparkSession, readings: DataFrame, options: GatheringOptions) -> DataFrame:
    if options.sensors is None:
        return readings
    return gathering.placed(readings, _sensors(spark, options))


def _sensors(spark: SparkSession, options: GatheringOptions) -> DataFrame:
    assert options.sensors is not None
    select = options.sensors_select or "sensor AS site, lat, lon"
    return read(spark, options.sensors, SITES, "sensors", select).good.withColumnRenamed("site", "sensor")


def _located(
    spark: SparkSession, measured: DataFrame, options: GatheringOptions, shipper: Shipper
) -> tuple[DataFrame, DataFrame]:
    """The measures in all areas that are asked for, and the areas that are none."""
    located, bad = gathering.everywhere(measured), spark.createDataFrame([], QUARANTINE)
    if options.areas is not None:
        areas = _areas(spark, options, shipper)
        located, bad = located.unionByName(gathering.in_areas(measured, areas)), areas.quarantine(spark)
    if options.cells and options.sensors is not None:
        rows = _sensors(spark, options).orderBy("sensor").collect()
        tree = partition((row["sensor"], row["lat"], row["lon"]) for row in rows)
        located = located.unionByName(gathering.in_cells(measured, tree))
    return located, bad


def _areas(spark: SparkSession, options: GatheringOptions, shipper: Shipper) -> Compiled:
    assert options.areas is not None
    found = read(spark, options.areas, AREAS, "areas")
    return shipper.ship(Dataset(found.good.withColumnRenamed("area", "id"), found.bad))


def _missing(gaps: DataFrame) -> list[str]:
    counts = gaps.where(gaps["reason"] == gathering.NO_VALUE).groupBy("quantity").sum("missing").orderBy("quantity")
    return [f"{row['quantity']}: {row['sum(missing)']:,} values missing" for row in counts.collect()]

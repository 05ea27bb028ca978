"""The gathering job: readings, the places of their sensors, areas and alerts, in batch or as a stream."""

from __future__ import annotations

from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructField, StructType

from godwit.pipeline.gathering import aggregates as gathering
from godwit.pipeline.gathering.cells import partition
from godwit.pipeline.io.reading import Dataset, conforming, read, source
from godwit.pipeline.io.source_options import EVERYTHING, RECORDS, Live
from godwit.pipeline.io.writing import Output
from godwit.pipeline.match.deliveries import deliveries, deliveries_schema
from godwit.pipeline.match.subscriptions import Compiled, Shipper
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import AGGREGATES, AREAS, DOUBLE, GAPS, QUARANTINE, READINGS, SITES, SUBSCRIPTIONS
from godwit.pipeline.streaming.queries import (
    CHECKPOINT,
    Pace,
    dropped_late,
    finished,
    quarantine_once,
    rows_in,
    started,
    write_batch,
    written,
)

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
    files_per_batch: int | None = None
    live: Live = EVERYTHING


def run(spark: SparkSession, options: GatheringOptions, progress: Progress | None = None) -> Summary:
    """Gather all readings that there are, and put the tables in the place of older ones."""
    shipper = Shipper(spark)
    try:
        with watched(spark, "gathering", progress) as summary:
            found = _conforming(source(spark, options.readings, live=options.live, kind=RECORDS), options)
            readings, out = _placed(spark, found.good, options), Output(spark, options.out)
            measured = gathering.measures(readings, options.quantities)
            located, bad = _located(spark, measured, options, shipper)
            bad = found.bad.unionByName(bad)
            out.write("aggregates", gathering.aggregates(located, options.window), AGGREGATES, ["quantity"])
            gaps = out.write("gaps", gathering.gaps(measured, options.period_s), GAPS, ["quantity"])
            if options.alerts is not None:
                wanted = _alerts(spark, options, shipper)
                out.write("alerts", deliveries(readings, wanted, KEY), deliveries_schema(readings, KEY))
                bad = bad.unionByName(wanted.quarantine(spark))
            out.write("quarantine", bad, QUARANTINE, ["dataset"])
            summary.notes += _missing(gaps)
            out.finish()
            summary.rows_in = found.good.count()
            summary.rows_out = {table: rows for table, rows in out.rows.items() if table != "quarantine"}
            summary.quarantined = out.rows["quarantine"]
    finally:
        shipper.close()
    return summary


def stream(
    spark: SparkSession,
    options: GatheringOptions,
    shipper: Shipper,
    pace: Pace = Pace(),  # noqa: B008
) -> tuple[StreamingQuery, StreamingQuery]:
    """Gather readings as they come: windows of time, and readings by themselves (alerts, quarantine).

    A window is written once, when no reading of it can come any more. Areas and alerts are those of the start.
    """
    raw = source(
        spark,
        options.readings,
        stream=True,
        files_per_batch=options.files_per_batch,
        live=options.live,
        kind=RECORDS,
    )
    measured = gathering.measures(_placed(spark, _conforming(raw, options).good, options), options.quantities)
    located, bad = _located(spark, measured, options, shipper)
    bad.write.mode("overwrite").parquet(f"{options.out}/quarantine/batch=areas")
    told = gathering.aggregates(located, options.window, options.late)
    alerts = None if options.alerts is None else _alerts(spark, options, shipper)
    if alerts is not None:
        quarantine_once(spark, alerts, f"{options.out}/quarantine")
    place = f"{options.out}/{CHECKPOINT}"
    return (
        started(told, f"{place}/windows", "gathering windows", partial(_windows_batch, options), pace),
        started(raw, f"{place}/readings", "gathering readings", partial(_readings_batch, options, alerts), pace),
    )


def _windows_batch(options: GatheringOptions, batch: DataFrame, number: int) -> None:
    write_batch(batch, f"{options.out}/aggregates", number, AGGREGATES)


def _readings_batch(options: GatheringOptions, alerts: Compiled | None, batch: DataFrame, number: int) -> None:
    found = _conforming(batch.persist(), options)
    write_batch(found.bad, f"{options.out}/quarantine", number, QUARANTINE)
    if alerts is not None:
        readings = _placed(batch.sparkSession, found.good, options)
        alarms, schema = deliveries(readings, alerts, KEY), deliveries_schema(readings, KEY)
        write_batch(alarms, f"{options.out}/alerts", number, schema)
    batch.unpersist()


def run_stream(spark: SparkSession, options: GatheringOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Stream until all is gathered or, where it is to follow, until interrupted."""
    shipper = Shipper(spark)
    try:
        with watched(spark, "gathering", progress) as summary:
            windows, readings = stream(spark, options, shipper, pace)
            finished(windows, readings)
            summary.rows_in, batches = rows_in(readings)
            summary.rows_out = {"aggregates": written(spark, f"{options.out}/aggregates", AGGREGATES).count()}
            if options.alerts is not None:
                summary.rows_out["alerts"] = written(spark, f"{options.out}/alerts", READINGS).count()
            summary.quarantined = written(spark, f"{options.out}/quarantine", QUARANTINE).count()
            summary.notes += [
                f"{batches} micro-batches in this run; tables count all runs from this checkpoint",
                f"{dropped_late(windows):,} rows came too late for their windows; those of the last"
                f" {options.late} may still get more",
            ]
    finally:
        shipper.close()
    return summary


def _conforming(raw: DataFrame, options: GatheringOptions) -> Dataset:
    columns = [StructField(name, DOUBLE) for name in options.quantities]
    schema = StructType([*READINGS, *columns])
    return conforming(raw, options.readings, schema, "readings", options.select, needed=options.quantities)


def _alerts(spark: SparkSession, options: GatheringOptions, shipper: Shipper) -> Compiled:
    assert options.alerts is not None
    return shipper.ship(read(spark, options.alerts, SUBSCRIPTIONS, "alerts"))


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

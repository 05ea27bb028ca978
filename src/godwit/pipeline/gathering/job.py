"""The gathering job: readings, the places of their sensors, areas and alerts, in batch or as a stream."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import msgspec
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from godwit.pipeline import quality
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.gathering import aggregates as gathering
from godwit.pipeline.gathering import gaps as silences
from godwit.pipeline.gathering.cells import partition
from godwit.pipeline.gathering.windows import UNTIL, OpenWindows, seconds
from godwit.pipeline.io.marks import BATCH, STREAM, Mark, deciding
from godwit.pipeline.io.reading import Dataset, Raw, conforming, read, source
from godwit.pipeline.io.source_options import EVERYTHING, RECORDS, Live, is_live
from godwit.pipeline.io.writing import Output
from godwit.pipeline.match.deliveries import deliveries, deliveries_schema
from godwit.pipeline.match.subscriptions import Compiled, Shipper
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import (
    AGGREGATES,
    AREAS,
    DOUBLE,
    GAPS,
    LATE,
    QUARANTINE,
    READINGS,
    SITES,
    STRING,
    SUBSCRIPTIONS,
    shaped,
)
from godwit.pipeline.streaming.feeds import Feed
from godwit.pipeline.streaming.ledger import Entry, arrived_by
from godwit.pipeline.streaming.queries import BATCH as BATCH_FOLDER
from godwit.pipeline.streaming.queries import Pace, quarantine_once, write_batch, written
from godwit.pipeline.streaming.state import State
from godwit.pipeline.streaming.stream import MicroBatch, Stream
from godwit.protocols.gathering.space import Tree

KEY = ("sensor", "time_s")
ALERTS = StructType([*READINGS.fields[:2], StructField("subscription", STRING)])
LATE_TABLE, LAST_TABLE, ALERTED_TABLE = "late", "last_readings", "alerted"


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
    h3: int | None = None
    """Also aggregate by the cells of H3 at this resolution."""
    window: str = "1 day"
    period_s: float = 3600.0
    late: str = "1 day"
    """Of a stream: how long a window waits for readings that are late."""
    files_per_batch: int | None = None
    live: Live = EVERYTHING
    fail_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        quality.check(self.fail_on)

    def mark(self, mode: str, areas: str = "") -> Mark:
        """`areas` tells sets of areas apart: a window is written once, and has those of its stream's start."""
        asked = deciding(
            readings=None if is_live(self.readings) else self.readings,
            quantities=self.quantities,
            select=self.select,
            sensors=self.sensors,
            sensors_select=self.sensors_select,
            areas=f"{self.areas} ({areas})" if areas else self.areas,
            cells=self.cells,
            h3=self.h3,
            window=self.window,
            period=self.period_s,
            filter=self.live.filter,
            topics=self.live.topics,
        )
        return Mark(job="gathering", mode=mode, options=asked)

    def schema(self) -> StructType:
        return StructType([*READINGS, *(StructField(name, DOUBLE) for name in self.quantities)])


@dataclass(frozen=True, slots=True)
class Areas:
    """Where measures are counted: everywhere, and perhaps in areas and cells."""

    wanted: Compiled | None
    tree: Tree | None
    resolution: int | None = None

    def located(self, readings: DataFrame, quantities: tuple[str, ...]) -> DataFrame:
        return gathering.located(gathering.measures(readings, quantities), self.wanted, self.tree, self.resolution)

    def quarantine(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame([], QUARANTINE) if self.wanted is None else self.wanted.quarantine(spark)


def run(spark: SparkSession, options: GatheringOptions, progress: Progress | None = None) -> Summary:
    """Gather all readings that there are, read once, and put the tables in the place of older ones."""
    shipper = Shipper(spark)
    try:
        with watched(spark, "gathering", progress) as summary, Output(spark, options.out, options.mark(BATCH)) as out:
            found = _conforming(source(spark, options.readings, live=options.live, kind=RECORDS), options)
            readings = gathering.once(_placed(spark, found.good, options)).persist(StorageLevel.MEMORY_AND_DISK)
            try:
                _gather(spark, out, readings, found, options, shipper, summary)
            finally:
                readings.unpersist()
    finally:
        shipper.close()
    return summary


def _gather(
    spark: SparkSession,
    out: Output,
    readings: DataFrame,
    found: Dataset,
    options: GatheringOptions,
    shipper: Shipper,
    summary: Summary,
) -> None:
    areas, measured = _areas(spark, options, shipper), gathering.measures(readings, options.quantities)
    known = areas.located(readings, options.quantities)
    out.write("aggregates", gathering.aggregates(known, options.window), AGGREGATES, ["quantity"])
    gaps = out.write("gaps", silences.gaps(measured, options.period_s), GAPS, ["quantity"])
    bad = found.set_aside().unionByName(areas.quarantine(spark))
    if options.alerts is not None:
        wanted = _alerts(spark, options, shipper)
        out.write("alerts", deliveries(readings, wanted, KEY), deliveries_schema(readings, KEY))
        bad = bad.unionByName(wanted.quarantine(spark))
    table = out.write("quarantine", bad, QUARANTINE, ["dataset"])
    quality.judge(out, {"readings": found.counted}, table, options.fail_on)
    summary.notes += _missing(gaps)
    repeated = found.counted.good() - readings.count()
    summary.notes += [f"{repeated:,} repeated readings left out"] if repeated else []
    out.finish()
    summary.rows_in = found.counted.good()
    summary.rows_out = {name: rows for name, rows in out.rows.items() if name not in ("quarantine", quality.TABLE)}
    summary.quarantined = out.rows["quarantine"]


def stream(spark: SparkSession, options: GatheringOptions, pace: Pace = Pace()) -> Stream:  # noqa: B008
    """Gather readings as they come: windows of time, and readings by themselves (alerts, late ones, quarantine).

    A window is written once, when it has waited long enough; what comes later is in the table `late`. Areas and alerts
    are those of the start. Close the stream at the end.
    """
    quality.refuse_in_a_stream(options.fail_on)
    shipper = Shipper(spark)
    areas = _areas(spark, options, shipper)
    alerts = None if options.alerts is None else _alerts(spark, options, shipper)
    feed = Feed(
        options.readings,
        "readings",
        live=options.live,
        kind=RECORDS,
        files_per_batch=options.files_per_batch,
        names=options.schema().names,
    )
    each = partial(_gather_batch, options, _windows(spark, options), areas, alerts)
    tables = {"aggregates": AGGREGATES, "gaps": GAPS, LATE_TABLE: LATE} | ({} if alerts is None else {"alerts": ALERTS})
    mark = options.mark(STREAM, _digest(spark, options))
    running = Stream(spark, options.out, mark, feed, each, pace, tables, shipper.close)
    for compiled in (areas.wanted, alerts):
        if compiled is not None:
            quarantine_once(spark, compiled, f"{options.out}/quarantine")
    return running


def _windows(spark: SparkSession, options: GatheringOptions) -> OpenWindows:
    return OpenWindows(options.out, options.window, seconds(spark, "--late", options.late), options.schema())


def _gather_batch(
    options: GatheringOptions, windows: OpenWindows, areas: Areas, alerts: Compiled | None, batch: MicroBatch
) -> Entry:
    closed_s = windows.closed_before_s(batch.before.latest_s)
    windows.forget(batch.spark, closed_s)
    _state(options).forget(batch.spark, batch.before.number)
    found, seen = _conforming(batch.raw, options), Observation()
    latest_s = sf.max(arrived_by(sf.col("time_s"), time.time())).alias("latest_s")
    readings = windows.dated(found.good.observe(seen, latest_s)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        windows.add(readings.where(sf.col(UNTIL) > closed_s), batch.number)
        _write_late(options, readings.where(sf.col(UNTIL) <= closed_s), batch)
        if alerts is not None:
            placed = gathering.once(_placed(batch.spark, readings.drop(UNTIL), options))
            _write_alerts(options, windows, deliveries(placed, alerts, KEY), batch, closed_s)
    finally:
        readings.unpersist()
    if found.counted.quarantined():
        write_batch(found.set_aside(), f"{options.out}/quarantine", batch.number, QUARANTINE)
    done = batch.done(rows=found.counted.good(), latest_s=seen.get.get("latest_s"))
    _write_closed(options, windows, areas, batch, closed_s, windows.closed_before_s(done.latest_s))
    return done


def _write_late(options: GatheringOptions, late: DataFrame, batch: MicroBatch) -> None:
    record = sf.to_json(sf.struct(*options.schema().names)).alias("record")
    write_batch(late.select("sensor", "time_s", record), f"{options.out}/{LATE_TABLE}", batch.number, LATE)


def _write_alerts(
    options: GatheringOptions, windows: OpenWindows, found: DataFrame, batch: MicroBatch, closed_s: float
) -> None:
    """But those of a reading that came before: whoever publishes at least once may say it again after a crash.

    It is known while its window waits for readings."""
    state, table = _state(options), f"{options.out}/alerts"
    before = state.left(batch.spark, ALERTED_TABLE, batch.before.number)
    new = shaped(found, ALERTS).join(sf.broadcast(before), ALERTS.names, "left_anti")
    if write_batch(new, table, batch.number, ALERTS):
        known = before.unionByName(written(batch.spark, f"{table}/{BATCH_FOLDER}={batch.number}", ALERTS))
        waiting = windows.dated(known).where(sf.col(UNTIL) > closed_s).drop(UNTIL)
        state.keep(waiting, ALERTED_TABLE, batch.number)


def _write_closed(
    options: GatheringOptions, windows: OpenWindows, areas: Areas, batch: MicroBatch, since_s: float, by_s: float
) -> None:
    kept = windows.closed(batch.spark, since_s, by_s)
    if kept is not None:
        readings = gathering.once(_placed(batch.spark, kept, options)).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            told = gathering.aggregates(areas.located(readings, options.quantities), options.window)
            write_batch(told, f"{options.out}/aggregates", batch.number, AGGREGATES)
            _write_gaps(options, readings, batch)
        finally:
            readings.unpersist()


def _write_gaps(options: GatheringOptions, readings: DataFrame, batch: MicroBatch) -> None:
    """Those that have ended by the readings of windows that are closed now: these come in the order of time."""
    state, measured = _state(options), gathering.measures(readings, options.quantities)
    last = state.left(batch.spark, LAST_TABLE, batch.before.number)
    write_batch(silences.ended(last, measured, options.period_s), f"{options.out}/gaps", batch.number, GAPS)
    state.keep(silences.left(last, measured, options.period_s), LAST_TABLE, batch.number)


def _state(options: GatheringOptions) -> State:
    return State(options.out, {LAST_TABLE: silences.LAST, ALERTED_TABLE: ALERTS})


def run_stream(spark: SparkSession, options: GatheringOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Stream until all is gathered or, where it is to follow, until interrupted."""
    with watched(spark, "gathering", progress) as summary:
        running = stream(spark, options, pace)
        try:
            running.finish()
            running.tell(summary)
            _tell(spark, options, running, summary)
        finally:
            running.close()
    return summary


def _tell(spark: SparkSession, options: GatheringOptions, running: Stream, summary: Summary) -> None:
    summary.rows_out = {"aggregates": written(spark, f"{options.out}/aggregates", AGGREGATES).count()}
    if options.alerts is not None:
        summary.rows_out["alerts"] = written(spark, f"{options.out}/alerts", ALERTS).count()
    summary.rows_out["gaps"] = written(spark, f"{options.out}/gaps", GAPS).count()
    summary.rows_out[LATE_TABLE] = written(spark, f"{options.out}/{LATE_TABLE}", LATE).count()
    windows = _windows(spark, options)
    waiting = windows.waiting(spark, windows.closed_before_s(running.latest_s()))
    summary.notes.append(f"{waiting:,} readings wait in windows of the last {options.late}, which may still get more")


def _conforming(raw: Raw, options: GatheringOptions) -> Dataset:
    own = options.quantities
    return conforming(raw, options.readings, options.schema(), "readings", options.select, needed=own, spared=own)


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


def _areas(spark: SparkSession, options: GatheringOptions, shipper: Shipper) -> Areas:
    tree, wanted = None, None
    if options.cells and options.sensors is not None:
        rows = _sensors(spark, options).orderBy("sensor").collect()
        tree = partition((row["sensor"], row["lat"], row["lon"]) for row in rows)
    if options.areas is not None:
        found = _asked_areas(spark, options)
        if found.good.where(sf.col("id") == gathering.EVERYWHERE).count():
            raise PipelineError(
                f"{options.areas}: the area {gathering.EVERYWHERE!r} is that of all readings; rename it"
            )
        everywhere = spark.createDataFrame([(gathering.EVERYWHERE, "TRUE")], found.good.schema)
        wanted = shipper.ship(Dataset(found.good.unionByName(everywhere), found.bad))
    return Areas(wanted, tree, options.h3)


def _asked_areas(spark: SparkSession, options: GatheringOptions) -> Dataset:
    assert options.areas is not None
    found = read(spark, options.areas, AREAS, "areas")
    return Dataset(found.good.withColumnRenamed("area", "id"), found.bad)


def _digest(spark: SparkSession, options: GatheringOptions) -> str:
    """Of the areas as they are."""
    if options.areas is None:
        return ""
    rows = sorted((row["id"], row["filter"]) for row in _asked_areas(spark, options).good.collect())
    return blake2b(msgspec.msgpack.encode(rows), digest_size=6).hexdigest()


def _missing(gaps: DataFrame) -> list[str]:
    counts = gaps.where(gaps["reason"] == silences.NO_VALUE).groupBy("quantity").sum("missing").orderBy("quantity")
    return [f"{row['quantity']}: {row['sum(missing)']:,} values missing" for row in counts.collect()]

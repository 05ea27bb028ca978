"""The mobility job as a stream: new files only, with what was learned of all of them at the end of each run."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b

import msgspec
from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline import cells, quality, schemas
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.reading import conforming, read
from godwit.pipeline.io.writing import Output
from godwit.pipeline.mobility import movement as mobility
from godwit.pipeline.mobility.increments import LATE, Increments
from godwit.pipeline.mobility.job import POSITIONS, MobilityOptions, write_learned
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import HANDOFFS, QUARANTINE, SITES, VISITS
from godwit.pipeline.streaming.feeds import Feed
from godwit.pipeline.streaming.ledger import Entry
from godwit.pipeline.streaming.queries import BATCH as BATCH_FOLDER
from godwit.pipeline.streaming.queries import Pace, write_batch, written
from godwit.pipeline.streaming.stream import MicroBatch, Stream

LEARNED, OPEN, LATE_TABLE = "learned", "open_visits", "late"


class Places(msgspec.Struct, frozen=True):
    """Where sites stand, as they were at the start; none where cells of H3 are sites."""

    frame: DataFrame | None
    box: mobility.Box | None
    digest: str
    count: int


def places_of(spark: SparkSession, options: MobilityOptions) -> Places:
    if options.kind != POSITIONS:
        raise PipelineError(f"--stream takes positions; {options.kind} are for a batch")
    if options.h3 is not None:
        return Places(None, None, "", 0)
    if options.sites is None:
        raise PipelineError(f"{options.positions}: positions need SITES, site, lat and lon, or --h3 for cells instead")
    parts = read(spark, options.sites, SITES, "sites", options.sites_select).good
    rows = sorted(tuple(row) for row in mobility.sites(parts, options.most).collect())
    margin_m = options.rules.margin_m
    box = None if margin_m is None else mobility.box_around(parts).widened(margin_m)
    digest = blake2b(msgspec.msgpack.encode([rows, box]), digest_size=6).hexdigest()
    return Places(spark.createDataFrame(rows, SITES), box, digest, len(rows))


def stream(spark: SparkSession, options: MobilityOptions, places: Places, pace: Pace = Pace()) -> Stream:  # noqa: B008
    """Start taking positions as they come. Visits and handoffs are written once, when nothing can change them."""
    quality.refuse_in_a_stream(options.fail_on)
    feed = Feed(
        options.positions,
        "positions",
        live=options.live,
        files_per_batch=options.files_per_batch,
        names=schemas.POSITIONS.names,
    )
    increments = Increments(options.out, options.rules)
    each = partial(_take_batch, options, increments, places)
    tables = {"visits": VISITS, "handoffs": HANDOFFS, LATE_TABLE: LATE}
    return Stream(spark, options.out, options.stream_mark(places.digest), feed, each, pace, tables)


def _take_batch(options: MobilityOptions, increments: Increments, places: Places, batch: MicroBatch) -> Entry:
    spark, before, number = batch.spark, batch.before.number, batch.number
    increments.forget(spark, before)
    found = conforming(batch.raw, options.positions, schemas.POSITIONS, "positions", options.positions_select)
    asked = found.good if options.where is None else found.good.where(options.where)
    usable = mobility.fixes(asked, places.box)
    taken = increments.taken(_near(usable.good, options, places), before)
    try:
        write_batch(taken.decided, f"{options.out}/visits", number, VISITS)
        decided = written(spark, f"{options.out}/visits/{BATCH_FOLDER}={number}", VISITS)
        write_batch(mobility.handoffs(decided, options.rules), f"{options.out}/handoffs", number, HANDOFFS)
        moves = written(spark, f"{options.out}/handoffs/{BATCH_FOLDER}={number}", HANDOFFS)
        if taken.late_fixes():
            write_batch(taken.late, f"{options.out}/{LATE_TABLE}", number, LATE)
        increments.keep(taken, decided, moves, before, number)
    finally:
        taken.found.unpersist()
    if found.counted.quarantined() + usable.counted.quarantined():
        bad = found.set_aside().unionByName(usable.set_aside())
        write_batch(bad, f"{options.out}/quarantine", number, QUARANTINE)
    return batch.done(rows=usable.counted.rows())


def _near(fixes: DataFrame, options: MobilityOptions, places: Places) -> DataFrame:
    if options.h3 is not None:
        return cells.associated(fixes, options.h3)
    assert places.frame is not None
    return mobility.associations(fixes, places.frame, options.rules.plane_latitude)


def run_stream(spark: SparkSession, options: MobilityOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Take what is there and was not taken before, or follow until interrupted; then write what was learned of all."""
    with watched(spark, "mobility", progress) as summary:
        places = places_of(spark, options)
        running = stream(spark, options, places, pace)
        try:
            running.finish()
            running.tell(summary)
            _tell(spark, options, places, running.number(), summary)
        finally:
            running.close()
    return summary


def _tell(spark: SparkSession, options: MobilityOptions, places: Places, number: int, summary: Summary) -> None:
    increments = Increments(options.out, options.rules)
    with Output(spark, f"{options.out}/{LEARNED}", options.mark()) as out:
        still_open = out.write(OPEN, increments.open(spark, number), VISITS)
        spells, ways = (part(spark, number, still_open) for part in (increments.spells, increments.ways))
        brokers = places.count
        if places.frame is None:
            visits = written(spark, f"{options.out}/visits", VISITS).unionByName(still_open)
            names = sorted(row["site"] for row in visits.select("site").distinct().collect())
            out.write("sites", spark.createDataFrame(cells.middles(names), SITES), SITES, files=1)
            brokers = len(names)
        else:
            out.write("sites", places.frame, SITES, files=1)
        write_learned(spark, out, spells, ways, brokers, options, summary)
        out.finish()
        summary.rows_out = dict(out.rows)
    for table, schema in (("visits", VISITS), ("handoffs", HANDOFFS), (LATE_TABLE, LATE)):
        summary.rows_out[table] = written(spark, f"{options.out}/{table}", schema).count()
    if late := summary.rows_out[LATE_TABLE]:
        summary.notes.append(f"{late:,} fixes came after later ones of the same subscriber: table {LATE_TABLE}")

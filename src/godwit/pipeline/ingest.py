"""Archives of brokers, and logs of devices, brought together: every event once, by day, in one dataset."""

from __future__ import annotations

from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.kafka.events import write_events
from godwit.pipeline.io.reading import conforming, read, source
from godwit.pipeline.io.source_options import EVERYTHING, Live, is_live
from godwit.pipeline.io.writing import Output
from godwit.pipeline.match.deliveries import unreadable
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import ARCHIVE, INGESTED, QUARANTINE, shaped
from godwit.pipeline.streaming.queries import BATCH, CHECKPOINT, Pace, finished, rows_in, started, write_batch, written

EVENTS, BAD = "events", "quarantine"


class IngestOptions(msgspec.Struct, frozen=True, kw_only=True):
    archives: tuple[str, ...]
    out: str
    select: str | None = None
    live: Live = EVERYTHING
    files_per_batch: int | None = None
    to: str | None = None
    """A topic of Kafka that gets the events too, as kafka://host:port/topic."""


def ingested(archived: DataFrame) -> DataFrame:
    """Every event once, with the day of its time in UTC.

    Several brokers may have taken the same event, and (publisher, sequence) names it for ever: of its copies the one
    that was archived first is kept, so that a second run keeps the same.
    """
    rest = [name for name in ARCHIVE.names if name not in ("publisher", "sequence")]
    first = sf.min_by(sf.struct(*rest), sf.struct("time", "broker")).alias("first")
    once = archived.groupBy("publisher", "sequence").agg(first).select("publisher", "sequence", "first.*")
    return _dated(once)


def _dated(events: DataFrame) -> DataFrame:
    return shaped(events.withColumn("day", sf.date_format("time", "yyyy-MM-dd")).select(*INGESTED.names), INGESTED)


def run(spark: SparkSession, options: IngestOptions, progress: Progress | None = None) -> Summary:
    """Read all archives, and put one dataset in the place of an older one."""
    with watched(spark, "ingest", progress) as summary:
        out = Output(spark, options.out)
        sources = [
            read(spark, path, ARCHIVE, "archive", options.select, live=options.live) for path in options.archives
        ]
        good, bad = sources[0].good, sources[0].bad
        for one in sources[1:]:
            good, bad = good.unionByName(one.good), bad.unionByName(one.bad)
        events = out.write(EVENTS, ingested(good), INGESTED, ["day"])
        if options.to is not None:
            write_events(events, options.to)
        out.write(BAD, bad.unionByName(unreadable(good)), QUARANTINE, ["dataset"])
        out.finish()
        summary.rows_in, summary.quarantined = good.count(), out.rows[BAD]
        summary.rows_out = {EVENTS: out.rows[EVENTS]}
        summary.notes.append(f"{summary.rows_in - out.rows[EVENTS]:,} copies of the same events left out")
    return summary


def stream(spark: SparkSession, options: IngestOptions, pace: Pace = Pace()) -> StreamingQuery:  # noqa: B008
    """Start adding events as they come. Every row of the sources is added once, whatever is killed.

    Events of a micro-batch are in `events/day=YYYY-MM-DD/batch=N`. A broker's archive has no event twice, and no two
    brokers take the same one; what logs repeat stays repeated, other than in a batch.
    """
    path = _one(options.archives)
    raw = source(spark, path, stream=True, files_per_batch=options.files_per_batch, live=options.live)
    return started(raw, f"{options.out}/{CHECKPOINT}", "ingest", partial(_ingest_batch, options, path), pace)


def _one(archives: tuple[str, ...]) -> str:
    """The sources as one: a live source follows any number of brokers, a stream of files one folder."""
    if len(archives) == 1 or all(map(is_live, archives)):
        return ",".join(archives)
    raise PipelineError("--stream takes brokers, as godwit://host:port each, or one folder; not several folders")


def _ingest_batch(options: IngestOptions, path: str, batch: DataFrame, number: int) -> None:
    # What a broker sends has been checked by the broker, so that one pass is enough.
    is_checked = is_live(path) and options.select is None
    batch = batch if is_checked else batch.persist()
    found = conforming(batch, path, ARCHIVE, "archive", options.select)
    dated = _dated(found.good).withColumn(BATCH, sf.lit(number))
    writer = dated.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.partitionBy("day", BATCH).parquet(f"{options.out}/{EVENTS}")
    if options.to is not None:
        write_events(dated, options.to)
    if not is_checked:
        bad = found.bad.unionByName(unreadable(found.good))
        write_batch(bad, f"{options.out}/{BAD}", number, QUARANTINE)
        batch.unpersist()


def run_stream(spark: SparkSession, options: IngestOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Stream until all is taken or, where it is to follow, until interrupted."""
    with watched(spark, "ingest", progress) as summary:
        query = stream(spark, options, pace)
        finished(query)
        summary.rows_in, batches = rows_in(query)
        summary.rows_out = {EVENTS: written(spark, f"{options.out}/{EVENTS}", INGESTED).count()}
        summary.quarantined = written(spark, f"{options.out}/{BAD}", QUARANTINE).count()
        summary.notes.append(f"{batches} micro-batches in this run; tables count all runs from this checkpoint")
    return summary

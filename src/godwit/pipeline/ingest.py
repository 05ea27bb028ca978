"""Archives of brokers, and logs of devices, brought together: every event once, by day, in one dataset."""

from __future__ import annotations

from functools import partial

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType

from godwit.pipeline import quality
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.counting import Counted, combined
from godwit.pipeline.io.kafka.events import write_events
from godwit.pipeline.io.marks import BATCH as ONCE
from godwit.pipeline.io.marks import STREAM, Mark, deciding
from godwit.pipeline.io.reading import conforming, read
from godwit.pipeline.io.source_options import EVERYTHING, Live, is_live
from godwit.pipeline.io.writing import Output
from godwit.pipeline.match.deliveries import ATTRIBUTES, are_objects, unreadable
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import ARCHIVE, INGESTED, QUARANTINE, shaped
from godwit.pipeline.streaming.feeds import Feed
from godwit.pipeline.streaming.ledger import Entry
from godwit.pipeline.streaming.queries import BATCH, Pace, write_batch, written
from godwit.pipeline.streaming.stream import MicroBatch, Stream

EVENTS, BAD = "events", "quarantine"


class IngestOptions(msgspec.Struct, frozen=True, kw_only=True):
    archives: tuple[str, ...]
    out: str
    select: str | None = None
    live: Live = EVERYTHING
    files_per_batch: int | None = None
    to: str | None = None
    """A topic of Kafka that gets the events too, as kafka://host:port/topic."""
    fail_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        quality.check(self.fail_on)

    def mark(self, mode: str) -> Mark:
        files = tuple(path for path in self.archives if not is_live(path))
        live = {"filter": self.live.filter, "topics": self.live.topics}
        return Mark(job="ingest", mode=mode, options=deciding(select=self.select, archive=files, **live))


def ingested(archived: DataFrame) -> DataFrame:
    """Every event once, with the day of its time in UTC.

    Several brokers may have taken the same event, and (publisher, sequence) names it for ever: of its copies the one
    that was archived first is kept, so that a second run keeps the same. Rows are told apart by eight bytes of their
    key, which fit beside Spark's pointers to them: the rows themselves are hardly looked at.
    """
    key = sf.xxhash64("publisher", "sequence")
    order = Window.partitionBy("key", "publisher", "sequence").orderBy("time_s", "broker")
    first = archived.withColumn("key", key).repartition("key").withColumn("nth", sf.row_number().over(order))
    return _dated(first.where("nth = 1").drop("key", "nth"))


def _dated(events: DataFrame) -> DataFrame:
    day = sf.date_format(sf.timestamp_seconds("time_s"), "yyyy-MM-dd")
    return shaped(events.withColumn("day", day).select(*INGESTED.names), INGESTED)


def _is_object() -> Column:
    return arrow_udf(are_objects, BooleanType())(sf.col(ATTRIBUTES))  # type: ignore[call-overload, no-any-return]


def _judged(events: DataFrame, counted: Counted) -> DataFrame:
    """The same events, of which those are counted whose attributes no filter could look into."""
    looked_at = events.withColumn("is_object", _is_object())
    return counted.observed(looked_at, ~sf.col("is_object")).drop("is_object")


def run(spark: SparkSession, options: IngestOptions, progress: Progress | None = None) -> Summary:
    """Read all archives, each once, and put one dataset in the place of an older one."""
    with watched(spark, "ingest", progress) as summary, Output(spark, options.out, options.mark(ONCE)) as out:
        sources = [
            read(spark, path, ARCHIVE, "archive", options.select, live=options.live) for path in options.archives
        ]
        good = sources[0].good
        for one in sources[1:]:
            good = good.unionByName(one.good)
        objects = Counted()
        events = out.write(EVENTS, ingested(_judged(good, objects)), INGESTED, ["day"])
        if options.to is not None:
            write_events(events, options.to)
        bad = sources[0].set_aside()
        for one in sources[1:]:
            bad = bad.unionByName(one.set_aside())
        table = out.write(BAD, bad.unionByName(_without_object(good, objects)), QUARANTINE, ["dataset"])
        quality.judge(out, {"archive": combined([one.counted for one in sources])}, table, options.fail_on)
        out.finish()
        summary.rows_in, summary.quarantined = sum(one.counted.good() for one in sources), out.rows[BAD]
        summary.rows_out = {EVENTS: out.rows[EVENTS]}
        summary.notes.append(f"{summary.rows_in - out.rows[EVENTS]:,} copies of the same events left out")
    return summary


def _without_object(good: DataFrame, objects: Counted) -> DataFrame:
    return unreadable(good) if objects.quarantined() else good.sparkSession.createDataFrame([], QUARANTINE)


def stream(spark: SparkSession, options: IngestOptions, pace: Pace = Pace()) -> Stream:  # noqa: B008
    """Start adding events as they come. Every row of the sources is added once, whatever is killed.

    Events of a micro-batch are in `events/day=YYYY-MM-DD/batch=N`. A broker's archive has no event twice, and no two
    brokers take the same one; what logs repeat stays repeated, other than in a batch.
    """
    quality.refuse_in_a_stream(options.fail_on)
    feed = Feed(
        _one(options.archives),
        "archive",
        live=options.live,
        files_per_batch=options.files_per_batch,
        names=ARCHIVE.names,
    )
    return Stream(spark, options.out, options.mark(STREAM), feed, partial(_ingest_batch, options, feed.path), pace, {})


def _one(archives: tuple[str, ...]) -> str:
    """The sources as one: a live source follows any number of brokers, a stream of files one folder."""
    if len(archives) == 1 or all(map(is_live, archives)):
        return ",".join(archives)
    raise PipelineError("--stream takes brokers, as godwit://host:port each, or one folder; not several folders")


def _ingest_batch(options: IngestOptions, path: str, batch: MicroBatch) -> Entry:
    found = conforming(batch.raw, path, ARCHIVE, "archive", options.select)
    # What a broker sends has been checked by the broker.
    is_checked = is_live(path) and options.select is None
    objects = Counted()
    dated = _dated(found.good if is_checked else _judged(found.good, objects)).withColumn(BATCH, sf.lit(batch.number))
    writer = dated.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.partitionBy("day", BATCH).parquet(f"{options.out}/{EVENTS}")
    if options.to is not None:
        write_events(_dated(found.good), options.to)
    if found.counted.quarantined() or (not is_checked and objects.quarantined()):
        bad = found.set_aside() if is_checked else found.set_aside().unionByName(_without_object(found.good, objects))
        write_batch(bad, f"{options.out}/{BAD}", batch.number, QUARANTINE)
    return batch.done(rows=found.counted.good())


def run_stream(spark: SparkSession, options: IngestOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Stream until all is taken or, where it is to follow, until interrupted."""
    with watched(spark, "ingest", progress) as summary:
        running = stream(spark, options, pace)
        try:
            running.finish()
            running.tell(summary)
            summary.rows_out = {EVENTS: written(spark, f"{options.out}/{EVENTS}", INGESTED).count()}
        finally:
            running.close()
    return summary

"""The match job: once over files, or as a stream over files as they come, with deliveries written exactly once."""

from __future__ import annotations

from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from godwit.pipeline.io.kafka.events import write_rows
from godwit.pipeline.io.reading import PARQUET, events, kind_of, legible, read
from godwit.pipeline.io.source_options import EVERYTHING, Live, is_live
from godwit.pipeline.io.writing import Files, Output
from godwit.pipeline.match.deliveries import SUBSCRIPTION, deliveries, deliveries_schema, key_of, unreadable
from godwit.pipeline.match.subscriptions import PART_MAX, Compiled, Shipper
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import QUARANTINE, SUBSCRIPTIONS, column
from godwit.pipeline.streaming.queries import (
    BATCH,
    CHECKPOINT,
    Pace,
    finished,
    quarantine_once,
    rows_in,
    started,
    write_batch,
    written,
)


class MatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    events: str
    subscriptions: str
    out: str
    key: tuple[str, ...] = ()
    select: str | None = None
    where: str | None = None
    part_max: int = PART_MAX
    files_per_batch: int | None = None
    """Of a stream: how many files a micro-batch takes at most."""
    live: Live = EVERYTHING
    to: str | None = None
    """A topic that gets the deliveries too, as kafka://host:port/topic: JSON objects, keyed by subscription."""


def run(spark: SparkSession, options: MatchOptions, progress: Progress | None = None) -> Summary:
    """Match all events of the files there are, and put the deliveries in the place of older ones."""
    subscriptions = _Subscriptions(spark, options)
    try:
        with watched(spark, "match", progress) as summary:
            compiled = subscriptions.now()
            source = legible(events(spark, options.events, live=options.live), options.select)
            asked = source.good if options.where is None else source.good.where(options.where)
            key, out = key_of(asked, options.key), Output(spark, options.out)
            found = deliveries(asked, compiled, key, is_as_filed=_is_as_filed(options))
            made = out.write("deliveries", found, deliveries_schema(asked, key))
            if options.to is not None:
                write_rows(made, options.to, SUBSCRIPTION)
            bad = source.bad.unionByName(unreadable(asked)).unionByName(compiled.quarantine(spark))
            out.write("quarantine", bad, QUARANTINE, ["dataset"])
            out.finish()
            summary.rows_in = _counted(asked, key[0])
            summary.rows_out = {"deliveries": out.rows["deliveries"]}
            summary.quarantined = out.rows["quarantine"]
            summary.notes.append(f"{compiled.count:,} subscriptions in {len(compiled.parts)} parts")
    finally:
        subscriptions.shipper.close()
    return summary


def _is_as_filed(options: MatchOptions) -> bool:
    if options.select is not None or options.where is not None or is_live(options.events):
        return False
    return kind_of(options.events) == PARQUET


def _counted(asked: DataFrame, name: str) -> int:
    """Rows; Spark refuses to count lines of text while it looks at nothing but whether they can be read."""
    return sum(row["count"] for row in asked.groupBy(column(name).isNull()).count().collect())


def stream(
    spark: SparkSession,
    options: MatchOptions,
    pace: Pace = Pace(),  # noqa: B008
) -> tuple[StreamingQuery, Shipper]:
    """Start matching events as they come, from a folder or from a broker.

    Deliveries of micro-batch N are in `deliveries/batch=N`, each of them once, whatever is killed. Subscriptions are
    read again before a batch where they have changed. Close the shipper at the end.
    """
    subscriptions = _Subscriptions(spark, options)
    raw = events(spark, options.events, stream=True, files_per_batch=options.files_per_batch, live=options.live)
    query = started(raw, f"{options.out}/{CHECKPOINT}", "match", partial(_match_batch, options, subscriptions), pace)
    return query, subscriptions.shipper


def run_stream(spark: SparkSession, options: MatchOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Stream until all is matched or, where it is to follow, until interrupted."""
    with watched(spark, "match", progress) as summary:
        query, shipper = stream(spark, options, pace)
        try:
            finished(query)
        finally:
            shipper.close()
        summary.rows_in, batches = rows_in(query)
        if Files(spark).exists(f"{options.out}/deliveries"):
            summary.rows_out["deliveries"] = spark.read.parquet(f"{options.out}/deliveries").count()
        summary.quarantined = written(spark, f"{options.out}/quarantine", QUARANTINE).count()
        summary.notes.append(f"{batches} micro-batches in this run; tables count all runs from this checkpoint")
    return summary


def _match_batch(options: MatchOptions, subscriptions: _Subscriptions, batch: DataFrame, number: int) -> None:
    compiled = subscriptions.now_in_a_stream()
    source = legible(batch, options.select)
    asked = source.good if options.where is None else source.good.where(options.where)
    key = key_of(asked, options.key)
    found = deliveries(asked, compiled, key)
    write_batch(found, f"{options.out}/deliveries", number, deliveries_schema(asked, key))
    if options.to is not None:
        written_now = batch.sparkSession.read.parquet(f"{options.out}/deliveries/{BATCH}={number}")
        write_rows(written_now, options.to, SUBSCRIPTION)
    # What a broker sends can be read, and to look again would double the work.
    if not is_live(options.events):
        write_batch(source.bad.unionByName(unreadable(asked)), f"{options.out}/quarantine", number, QUARANTINE)


class _Subscriptions:
    """The subscriptions of the file as it is now, read only when it has changed: micro-batches should not wait."""

    def __init__(self, spark: SparkSession, options: MatchOptions) -> None:
        self.shipper = Shipper(spark, options.part_max)
        self._spark, self._path = spark, options.subscriptions
        self._quarantine = f"{options.out}/quarantine"
        self._known: tuple[object, Compiled] | None = None

    def now(self) -> Compiled:
        signature = Files(self._spark).signature(self._path)
        while self._known is None or self._known[0] != signature:
            found = read(self._spark, self._path, SUBSCRIPTIONS, "subscriptions")
            self._known = (signature, self.shipper.ship(found))
            # What was written meanwhile may have been read in part.
            signature = Files(self._spark).signature(self._path)
        return self._known[1]

    def now_in_a_stream(self) -> Compiled:
        """The same; those that are none are in quarantine once, not with every micro-batch."""
        before, compiled = self._known, self.now()
        if before is None or before[1] is not compiled:
            quarantine_once(self._spark, compiled, self._quarantine)
        return compiled

"""The match job: once over files, or as a stream over files as they come, with deliveries written exactly once."""

from __future__ import annotations

from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from godwit.pipeline.match import deliveries, deliveries_schema, key_of, unreadable
from godwit.pipeline.reading import events, legible, read
from godwit.pipeline.running import Progress, Summary, watched
from godwit.pipeline.schemas import QUARANTINE, SUBSCRIPTIONS
from godwit.pipeline.subscriptions import PART_MAX, Compiled, Shipper
from godwit.pipeline.writing import Files, Output, write_batch

CHECKPOINT = "_checkpoint"


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


def run(spark: SparkSession, options: MatchOptions, progress: Progress | None = None) -> Summary:
    """Match all events of the files there are, and put the deliveries in the place of older ones."""
    subscriptions = _Subscriptions(spark, options)
    try:
        with watched(spark, "match", progress) as summary:
            compiled = subscriptions.now()
            source = legible(events(spark, options.events), options.select)
            asked = source.good if options.where is None else source.good.where(options.where)
            key, out = key_of(asked, options.key), Output(spark, options.out)
            found = deliveries(asked, compiled, key)
            out.write("deliveries", found, deliveries_schema(asked, key))
            bad = source.bad.unionByName(unreadable(asked)).unionByName(compiled.quarantine(spark))
            out.write("quarantine", bad, QUARANTINE, ["dataset"])
            out.finish()
            summary.rows_in = asked.count()
            summary.rows_out = {"deliveries": out.rows["deliveries"]}
            summary.quarantined = out.rows["quarantine"]
            summary.notes.append(f"{compiled.count:,} subscriptions in {len(compiled.parts)} parts")
    finally:
        subscriptions.shipper.close()
    return summary


def stream(spark: SparkSession, options: MatchOptions, *, follow: bool = False) -> tuple[StreamingQuery, Shipper]:
    """Start matching files as they come; without `follow`, those that are there now, in micro-batches.

    Deliveries of micro-batch N are in `deliveries/batch=N`. A batch that is repeated after a crash overwrites its own,
    so that each delivery is there once. Subscriptions are read again before a batch where they have changed. Close the
    shipper at the end.
    """
    subscriptions = _Subscriptions(spark, options)
    source = events(spark, options.events, stream=True, files_per_batch=options.files_per_batch)
    writer = source.writeStream.foreachBatch(partial(_match_batch, options, subscriptions))
    writer = writer.option("checkpointLocation", f"{options.out}/{CHECKPOINT}").queryName("godwit match")
    writer = writer.trigger(processingTime="0 seconds") if follow else writer.trigger(availableNow=True)
    return writer.start(), subscriptions.shipper


def run_stream(spark: SparkSession, options: MatchOptions, follow: bool, progress: Progress | None = None) -> Summary:
    """Stream until all is matched or, with `follow`, until interrupted."""
    with watched(spark, "match", progress) as summary:
        query, shipper = stream(spark, options, follow=follow)
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            query.stop()
        finally:
            shipper.close()
        done = [one for one in query.recentProgress if one.numInputRows]
        summary.rows_in = sum(one.numInputRows for one in done)
        for table in ("deliveries", "quarantine"):
            summary.rows_out[table] = spark.read.parquet(f"{options.out}/{table}").count()
        summary.quarantined = summary.rows_out.pop("quarantine")
        summary.notes.append(f"{len(done)} micro-batches in this run; tables count all runs from this checkpoint")
    return summary


def _match_batch(options: MatchOptions, subscriptions: _Subscriptions, batch: DataFrame, number: int) -> None:
    compiled = subscriptions.now()
    source = legible(batch, options.select)
    asked = source.good if options.where is None else source.good.where(options.where)
    key = key_of(asked, options.key)
    found = deliveries(asked, compiled, key)
    write_batch(found, f"{options.out}/deliveries", number, deliveries_schema(asked, key))
    bad = source.bad.unionByName(unreadable(asked)).unionByName(compiled.quarantine(batch.sparkSession))
    write_batch(bad, f"{options.out}/quarantine", number, QUARANTINE)


class _Subscriptions:
    """The subscriptions of the file as it is now, read only when it has changed: micro-batches should not wait."""

    def __init__(self, spark: SparkSession, options: MatchOptions) -> None:
        self.shipper = Shipper(spark, options.part_max)
        self._spark, self._path = spark, options.subscriptions
        self._known: tuple[object, Compiled] | None = None

    def now(self) -> Compiled:
        signature = Files(self._spark).signature(self._path)
        if self._known is None or self._known[0] != signature:
            found = read(self._spark, self._path, SUBSCRIPTIONS, "subscriptions")
            self._known = (signature, self.shipper.ship(found))
        return self._known[1]

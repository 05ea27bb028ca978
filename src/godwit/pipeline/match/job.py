"""The match job: once over files, or as a stream over files as they come, with deliveries written exactly once."""

from __future__ import annotations

from functools import partial

import msgspec
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructType

from godwit.pipeline import quality
from godwit.pipeline.errors import PipelineError, SchemaError
from godwit.pipeline.io.counting import Counted
from godwit.pipeline.io.files import Files
from godwit.pipeline.io.foreign import is_foreign
from godwit.pipeline.io.kafka.events import write_rows
from godwit.pipeline.io.listing import PARQUET, kind_of
from godwit.pipeline.io.marks import BATCH, STREAM, Mark, deciding
from godwit.pipeline.io.reading import CORRUPT, Dataset, Raw, events, found_at, legible, read
from godwit.pipeline.io.source_options import EVERYTHING, Live, is_live
from godwit.pipeline.io.writing import Output
from godwit.pipeline.match.compilation import Bad
from godwit.pipeline.match.deliveries import SUBSCRIPTION, deliveries, deliveries_schema, key_of, keyed, unreadable
from godwit.pipeline.match.subscriptions import PART_MAX, Compiled, Shipper
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import QUARANTINE, SUBSCRIPTIONS
from godwit.pipeline.streaming.feeds import Feed
from godwit.pipeline.streaming.ledger import Entry
from godwit.pipeline.streaming.queries import BATCH as BATCH_FOLDER
from godwit.pipeline.streaming.queries import Pace, quarantine_once, write_batch
from godwit.pipeline.streaming.stream import MicroBatch, Stream

KNOWN = "_subscriptions"
"""The folder in which a stream keeps which subscriptions executors have."""

SCHEMA_LIKE = "as in 'id BIGINT, speed DOUBLE'"


class MatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    events: str
    subscriptions: str
    out: str
    key: tuple[str, ...] = ()
    schema: str | None = None
    """Types of columns that text formats do not say, as in 'id BIGINT, speed DOUBLE'."""
    select: str | None = None
    where: str | None = None
    part_max: int = PART_MAX
    files_per_batch: int | None = None
    """Of a stream: how many files a micro-batch takes at most."""
    live: Live = EVERYTHING
    to: str | None = None
    """A topic that gets the deliveries too, as kafka://host:port/topic: JSON objects, keyed by subscription."""
    fail_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        quality.check(self.fail_on)

    def mark(self, mode: str) -> Mark:
        source = None if is_live(self.events) else self.events
        asked = deciding(
            events=source,
            key=self.key,
            schema=self.schema,
            select=self.select,
            where=self.where,
            filter=self.live.filter,
            topics=self.live.topics,
        )
        return Mark(job="match", mode=mode, options=asked)

    def typed(self) -> StructType | None:
        if self.schema is None:
            return None
        try:
            found = StructType.fromDDL(self.schema)
        except ParseException as error:
            told = str(error).strip().splitlines()[0]
            raise PipelineError(f"--schema {self.schema!r}: {told}; right would be {SCHEMA_LIKE}") from None
        if not isinstance(found, StructType):
            raise PipelineError(f"--schema {self.schema!r}: right would be {SCHEMA_LIKE}")
        return found

    @property
    def as_columns(self) -> bool:
        return self.select is not None or self.where is not None


class Asked(msgspec.Struct, frozen=True):
    """Events that can be matched, and what names them."""

    events: DataFrame
    key: list[str]
    source: Dataset

    @classmethod
    def of(cls, raw: Raw, options: MatchOptions) -> Asked:
        typed = options.typed()
        source = legible(raw, options.select, options.where, typed)
        key = key_of(source.good, options.key)
        return cls(keyed(source.good, key, typed), key, source)

    def schema(self) -> StructType:
        return deliveries_schema(self.events, self.key)

    def set_aside(self, compiled: Compiled, matched: Counted) -> DataFrame:
        """What could not be read, or not be matched: looked for only where the pass that matched has met some."""
        bad = self.source.set_aside()
        return bad.unionByName(unreadable(self.events, compiled)) if matched.quarantined() else bad


def run(spark: SparkSession, options: MatchOptions, progress: Progress | None = None) -> Summary:
    """Match all events of the files there are, and put the deliveries in the place of older ones."""
    subscriptions = _Subscriptions(spark, options)
    try:
        with watched(spark, "match", progress) as summary, Output(spark, options.out, options.mark(BATCH)) as out:
            compiled = subscriptions.now()
            raw = events(spark, options.events, live=options.live, as_columns=options.as_columns)
            asked, matched = Asked.of(raw, options), Counted()
            _check_types(raw, asked.events, compiled, options)
            is_as_filed = _is_as_filed(spark, options)
            found = deliveries(asked.events, compiled, asked.key, is_as_filed=is_as_filed, counted=matched)
            made = out.write("deliveries", found, asked.schema())
            if options.to is not None:
                write_rows(made, options.to, SUBSCRIPTION)
            bad = asked.set_aside(compiled, matched).unionByName(compiled.quarantine(spark))
            table = out.write("quarantine", bad, QUARANTINE, ["dataset"])
            summary.rows_in = matched.rows()
            summary.rows_out = {"deliveries": out.rows["deliveries"]}
            summary.quarantined = out.rows["quarantine"]
            quality.judge(out, {"events": matched}, table, options.fail_on)
            out.finish()
            summary.notes.append(f"{compiled.count:,} subscriptions in {len(compiled.parts)} parts")
    finally:
        subscriptions.shipper.close()
    return summary


def _is_as_filed(spark: SparkSession, options: MatchOptions) -> bool:
    if options.as_columns or is_live(options.events) or is_foreign(options.events):
        return False
    return kind_of(options.events, found_at(spark, options.events)) == PARQUET


def _check_types(raw: Raw, found: DataFrame, compiled: Compiled, options: MatchOptions) -> None:
    """Text of CSV that filters compare with numbers would match nothing, and nobody would be told."""
    if CORRUPT not in raw.frame.columns:
        return
    texts = {field.name for field in found.schema if isinstance(field.dataType, StringType)}
    if wrong := sorted(texts & compiled.numbers):
        types = ", ".join(f"{name} DOUBLE" for name in wrong)
        raise SchemaError(
            f"{options.events}: CSV has no types, and filters compare {', '.join(map(repr, wrong))} with numbers;"
            f" right would be --schema '{types}'"
        )


def stream(spark: SparkSession, options: MatchOptions, pace: Pace = Pace()) -> Stream:  # noqa: B008
    """Start matching events as they come, from a folder or from a broker.

    Deliveries of micro-batch N are in `deliveries/batch=N`, each of them once, whatever is killed. Subscriptions are
    read again before a batch where they have changed. Close the stream at the end.
    """
    quality.refuse_in_a_stream(options.fail_on)
    subscriptions = _Subscriptions(spark, options, f"{options.out}/{KNOWN}")
    feed = Feed(
        options.events,
        "events",
        live=options.live,
        files_per_batch=options.files_per_batch,
        is_events=True,
        as_columns=options.as_columns,
    )
    each = partial(_match_batch, options, subscriptions)
    return Stream(spark, options.out, options.mark(STREAM), feed, each, pace, {}, subscriptions.shipper.close)


def run_stream(spark: SparkSession, options: MatchOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Stream until all is matched or, where it is to follow, until interrupted."""
    with watched(spark, "match", progress) as summary:
        running = stream(spark, options, pace)
        try:
            running.finish()
            running.tell(summary)
            if Files(spark).exists(f"{options.out}/deliveries"):
                summary.rows_out["deliveries"] = spark.read.parquet(f"{options.out}/deliveries").count()
        finally:
            running.close()
    return summary


def _match_batch(options: MatchOptions, subscriptions: _Subscriptions, batch: MicroBatch) -> Entry:
    compiled = subscriptions.now_in_a_stream()
    asked, matched = Asked.of(batch.raw, options), Counted()
    _check_types(batch.raw, asked.events, compiled, options)
    found = deliveries(asked.events, compiled, asked.key, counted=matched)
    write_batch(found, f"{options.out}/deliveries", batch.number, asked.schema())
    if options.to is not None:
        written_now = batch.spark.read.parquet(f"{options.out}/deliveries/{BATCH_FOLDER}={batch.number}")
        write_rows(written_now, options.to, SUBSCRIPTION)
    if asked.source.counted.quarantined() + matched.quarantined():
        bad = asked.set_aside(compiled, matched)
        write_batch(bad, f"{options.out}/quarantine", batch.number, QUARANTINE)
    return batch.done(rows=matched.rows())


class _Subscriptions:
    """The subscriptions of the file as it is now, read only when it has changed: micro-batches should not wait."""

    def __init__(self, spark: SparkSession, options: MatchOptions, memory: str | None = None) -> None:
        self.shipper = Shipper(spark, options.part_max, memory)
        self._spark, self._path = spark, options.subscriptions
        self._quarantine = f"{options.out}/quarantine"
        self._known: tuple[object, Compiled] | None = None
        self._told = set[Bad]()

    def now(self) -> Compiled:
        signature = Files(self._spark).walk(self._path)
        while self._known is None or self._known[0] != signature:
            found = read(self._spark, self._path, SUBSCRIPTIONS, "subscriptions")
            self._known = (signature, self.shipper.ship(found, None if self._known is None else self._known[1]))
            # What was written meanwhile may have been read in part.
            signature = Files(self._spark).walk(self._path)
        return self._known[1]

    def now_in_a_stream(self) -> Compiled:
        """The same; those that are none are in quarantine once, not with every micro-batch or every change."""
        before, compiled = self._known, self.now()
        if before is None or before[1] is not compiled:
            new = tuple(one for one in compiled.bad if one not in self._told)
            self._told.update(new)
            quarantine_once(self._spark, msgspec.structs.replace(compiled, bad=new), self._quarantine)
            if before is not None:
                self.shipper.forget(before[1])
        return compiled

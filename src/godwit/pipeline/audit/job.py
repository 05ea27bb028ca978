"""The audit job: traces, and where they do not say it who should have got what, to tables and one page.

A stream judges each event once, when it has ended, and adds to its outcomes and figures; none is looked at again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import msgspec
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as sf

from godwit.pipeline import quality
from godwit.pipeline.audit import figures as audit
from godwit.pipeline.audit.open_events import OpenEvents
from godwit.pipeline.audit.page import page
from godwit.pipeline.audit.running import MOVES, RunningFigures
from godwit.pipeline.gathering.windows import seconds
from godwit.pipeline.io.marks import BATCH, STREAM, Mark, deciding
from godwit.pipeline.io.reading import Dataset, conforming, read
from godwit.pipeline.io.source_options import EVERYTHING, Live, is_live
from godwit.pipeline.io.source_options import TRACES as KIND
from godwit.pipeline.io.writing import Output
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import EXPECTED, FIGURES, OUTCOMES, OVERHEAD, QUARANTINE, RELOCATIONS, TRACES
from godwit.pipeline.streaming.feeds import Feed
from godwit.pipeline.streaming.ledger import Entry, arrived_by
from godwit.pipeline.streaming.queries import BATCH as BATCH_FOLDER
from godwit.pipeline.streaming.queries import Pace, write_batch, written
from godwit.pipeline.streaming.stream import MicroBatch, Stream

PAGE = "audit.html"
ENDED, OTHERS, LATE, COSTS, BAD, JUDGED = "outcomes", "others", "late", "overhead", "quarantine", "judged"
JUDGED_EVERY_S = 60.0


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    traces: str
    out: str
    expected: str | None = None
    """Who should get what: publisher, sequence, client; what the traces themselves matched, where it is not given."""
    expected_select: str | None = None
    late: str = "10 minutes"
    """Of a stream: an event has ended when nothing was recorded of it for so long."""
    files_per_batch: int | None = None
    live: Live = EVERYTHING
    fail_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        quality.check(self.fail_on)

    def mark(self, mode: str) -> Mark:
        source = None if is_live(self.traces) else self.traces
        asked = deciding(traces=source, expected=self.expected, expected_select=self.expected_select)
        return Mark(job="audit", mode=mode, options=asked)


def run(spark: SparkSession, options: AuditOptions, progress: Progress | None = None) -> Summary:
    """Judge a run by its traces."""
    with watched(spark, "audit", progress) as summary, Output(spark, options.out, options.mark(BATCH)) as out:
        found = read(spark, options.traces, TRACES, "traces", live=options.live)
        wanted = _expected(spark, options)
        told = audit.expecting(found.good, None if wanted is None else wanted.good)
        became = out.write("outcomes", audit.outcomes(told), OUTCOMES)
        moves = out.write("relocations", audit.relocations(found.good, became), RELOCATIONS)
        costs = out.write(COSTS, audit.overhead(found.good), OVERHEAD, files=1)
        bad = found.set_aside() if wanted is None else found.set_aside().unionByName(wanted.bad)
        table = out.write(BAD, bad, QUARANTINE, ["dataset"])
        quality.judge(out, {"traces": found.counted}, table, options.fail_on)
        summary.notes = _publish(out, options, audit.figures(became), moves, costs)
        out.finish()
        summary.rows_in, summary.quarantined = found.counted.good(), out.rows[BAD]
        summary.rows_out = {name: rows for name, rows in out.rows.items() if name not in (BAD, quality.TABLE)}
    return summary


def _publish(out: Output, options: AuditOptions, found: DataFrame, moves: DataFrame, costs: DataFrame) -> list[str]:
    """The figures, the page, and the verdict."""
    cuts = out.write("figures", found, FIGURES, ["cut"])
    overall = cuts.where(sf.col("cut") == audit.ALL).first()
    rest = cuts.where(sf.col("cut") != audit.ALL).collect()
    out.write_text(PAGE, page(options.traces, overall, rest, moves.collect(), costs.collect()))
    return verdict(overall)


def stream(spark: SparkSession, options: AuditOptions, pace: Pace = Pace()) -> Stream:  # noqa: B008
    """Start judging traces as they come: outcomes of events that have ended, and records that are about no event."""
    quality.refuse_in_a_stream(options.fail_on)
    feed = Feed(
        options.traces,
        "traces",
        live=options.live,
        kind=KIND,
        files_per_batch=options.files_per_batch,
        names=TRACES.names,
    )
    late_s = seconds(spark, "--late", options.late)
    events, running = OpenEvents(options.out, late_s), _running(options, late_s)
    tables = {ENDED: OUTCOMES, OTHERS: TRACES, LATE: TRACES, COSTS: OVERHEAD, MOVES: RELOCATIONS}
    each = partial(_audit_batch, options, events, running)
    return Stream(spark, options.out, options.mark(STREAM), feed, each, pace, tables)


def _running(options: AuditOptions, late_s: float) -> RunningFigures:
    return RunningFigures(options.out, late_s)


def _audit_batch(options: AuditOptions, events: OpenEvents, running: RunningFigures, batch: MicroBatch) -> Entry:
    spark, before, number = batch.spark, batch.before, batch.number
    events.forget(spark, before.number)
    running.forget(spark, before.number)
    found, seen = conforming(batch.raw, options.traces, TRACES, "traces", None), Observation()
    latest = sf.max(arrived_by(sf.col("time_s"), time.time())).alias("latest_s")
    traces = found.good.observe(seen, latest).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        write_batch(traces.where(f"NOT ({audit.IS_ABOUT_AN_EVENT})"), f"{options.out}/{OTHERS}", number, TRACES)
        write_batch(audit.overhead(traces), f"{options.out}/{COSTS}", number, OVERHEAD)
        done = batch.done(rows=found.counted.good(), latest_s=seen.get.get("latest_s"))
        known = events.joined(spark, traces, before.number, before.latest_s).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            write_batch(known.where("is_late").select(*TRACES.names), f"{options.out}/{LATE}", number, TRACES)
            ended = events.ended(known, done.latest_s)
            write_batch(_judged(spark, ended, options), f"{options.out}/{ENDED}", number, OUTCOMES)
            events.keep(known, done.latest_s, number)
            closed_s = None if done.latest_s is None else done.latest_s - events.late_s
            now = written(spark, f"{options.out}/{ENDED}/{BATCH_FOLDER}={number}", OUTCOMES)
            running.add(traces, now, before.number, number, closed_s)
        finally:
            known.unpersist()
    finally:
        traces.unpersist()
    if found.counted.quarantined():
        write_batch(found.set_aside(), f"{options.out}/{BAD}", number, QUARANTINE)
    return done


def _judged(spark: SparkSession, ended: DataFrame, options: AuditOptions) -> DataFrame:
    """What became of the events that have ended; who should get them is asked of these only."""
    wanted = _expected(spark, options)
    if wanted is None:
        return audit.outcomes(audit.expecting(ended, None))
    events = ended.select(*audit.EVENT).distinct()
    return audit.outcomes(audit.expecting(ended, wanted.good.join(events, audit.EVENT, "left_semi")))


def judge_stream(spark: SparkSession, options: AuditOptions, summary: Summary, number: int) -> None:
    """Figures and page of all outcomes up to a micro-batch, in the folder `judged`: from what is kept of them."""
    running = _running(options, seconds(spark, "--late", options.late))
    costs = audit.summed(written(spark, f"{options.out}/{COSTS}", OVERHEAD))
    with Output(spark, f"{options.out}/{JUDGED}", options.mark(BATCH)) as out:
        moves = out.write(MOVES, running.relocations(spark, number), RELOCATIONS)
        told = out.write(COSTS, costs, OVERHEAD, files=1)
        summary.notes = _publish(out, options, running.figures(spark, number), moves, told)
        out.finish()
        summary.rows_out = dict(out.rows)


def run_stream(spark: SparkSession, options: AuditOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Stream until all is taken or, where it is to follow, until interrupted; figures every minute, and at the end."""
    with watched(spark, "audit", progress) as summary:
        running = stream(spark, options, pace)
        try:
            running.finish(_every(JUDGED_EVERY_S, lambda: judge_stream(spark, options, summary, running.number())))
            judge_stream(spark, options, summary, running.number())
            running.tell(summary)
            summary.rows_out[ENDED] = written(spark, f"{options.out}/{ENDED}", OUTCOMES).count()
            late = written(spark, f"{options.out}/{LATE}", TRACES).count()
            summary.notes.append(f"{late:,} records of events came after they had ended: table {LATE}")
        finally:
            running.close()
    return summary


def _every(period_s: float, call: Callable[[], None]) -> Callable[[], None]:
    due_s = time.monotonic() + period_s

    def meanwhile() -> None:
        nonlocal due_s
        if time.monotonic() >= due_s:
            call()
            due_s = time.monotonic() + period_s

    return meanwhile


def verdict(overall: Row | None) -> list[str]:
    """The figures that matter, in words."""
    if overall is None:
        return ["nothing was published, matched or delivered in these traces"]
    if not overall["expected"]:
        return [
            f"{overall['delivered']:,} deliveries; the traces do not say who should have got what:"
            " --expected takes the deliveries of the match job"
        ]
    return [
        f"{overall['expected']:,} expected, {overall['delivered']:,} delivered, {overall['lost']:,} lost"
        f" ({overall['dropped']:,} of them dropped knowingly)",
        f"{overall['duplicates']:,} came twice, {overall['out_of_order']:,} out of order,"
        f" {overall['unexpected']:,} unasked",
    ]


def _expected(spark: SparkSession, options: AuditOptions) -> Dataset | None:
    """Who should get what, where it is not for the traces to say."""
    if options.expected is None:
        return None
    return read(spark, options.expected, EXPECTED, "expected", options.expected_select)

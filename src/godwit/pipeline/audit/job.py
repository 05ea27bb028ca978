"""The audit job: traces, and where they do not say it who should have got what, to tables and one page.

A stream keeps the records of events that have ended, and judges them as a batch would: `judged` has the same tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from godwit.pipeline.audit import figures as audit
from godwit.pipeline.audit.page import page
from godwit.pipeline.io.reading import Dataset, conforming, read, source
from godwit.pipeline.io.source_options import EVERYTHING, Live
from godwit.pipeline.io.source_options import TRACES as KIND
from godwit.pipeline.io.writing import Output
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.schemas import EXPECTED, FIGURES, OUTCOMES, OVERHEAD, QUARANTINE, RELOCATIONS, TRACES
from godwit.pipeline.streaming.queries import (
    CHECKPOINT,
    Pace,
    dropped_late,
    finished,
    rows_in,
    started,
    write_batch,
    written,
)

PAGE = "audit.html"
ENDED, OTHERS, BAD, JUDGED = "ended", "others", "quarantine", "judged"
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


def run(spark: SparkSession, options: AuditOptions, progress: Progress | None = None) -> Summary:
    """Judge a run by its traces."""
    with watched(spark, "audit", progress) as summary:
        found = read(spark, options.traces, TRACES, "traces", live=options.live)
        wanted = _expected(spark, found.good, options)
        out = Output(spark, options.out)
        _judge(out, Dataset(found.good, found.bad.unionByName(wanted.bad)), wanted.good, options, summary)
    return summary


def _judge(out: Output, traces: Dataset, wanted: DataFrame, options: AuditOptions, summary: Summary) -> None:
    """Write all tables and the page in the place of older ones, and tell the verdict."""
    became = out.write("outcomes", audit.outcomes(traces.good, wanted), OUTCOMES)
    cuts = out.write("figures", audit.figures(became, audit.disorder(traces.good)), FIGURES, ["by"])
    moves = out.write("relocations", audit.relocations(traces.good), RELOCATIONS)
    costs = out.write("overhead", audit.overhead(traces.good), OVERHEAD, files=1)
    out.write(BAD, traces.bad, QUARANTINE, ["dataset"])
    overall = cuts.where(sf.col("by") == audit.ALL).first()
    out.write_text(PAGE, page(options.traces, overall, _rows(cuts), moves.collect(), costs.collect()))
    out.finish()
    summary.rows_in = traces.good.count()
    summary.rows_out = {table: rows for table, rows in out.rows.items() if table != BAD}
    summary.quarantined = out.rows[BAD]
    summary.notes = verdict(overall)


def stream(
    spark: SparkSession,
    options: AuditOptions,
    pace: Pace = Pace(),  # noqa: B008
) -> tuple[StreamingQuery, StreamingQuery]:
    """Start keeping traces as they come: those of events that have ended, and those that are about no event."""
    raw = source(
        spark,
        options.traces,
        stream=True,
        files_per_batch=options.files_per_batch,
        live=options.live,
        kind=KIND,
    )
    told = audit.ended(conforming(raw, options.traces, TRACES, "traces", None).good, options.late)
    place = f"{options.out}/{CHECKPOINT}"
    return (
        started(told, f"{place}/{ENDED}", "audit events", partial(_ended_batch, options), pace),
        started(raw, f"{place}/{OTHERS}", "audit others", partial(_others_batch, options), pace),
    )


def _ended_batch(options: AuditOptions, batch: DataFrame, number: int) -> None:
    write_batch(batch, f"{options.out}/{ENDED}", number, TRACES)


def _others_batch(options: AuditOptions, batch: DataFrame, number: int) -> None:
    found = conforming(batch.persist(), options.traces, TRACES, "traces", None)
    others = found.good.where(f"NOT ({audit.IS_ABOUT_AN_EVENT})")
    write_batch(others, f"{options.out}/{OTHERS}", number, TRACES)
    write_batch(found.bad, f"{options.out}/{BAD}", number, QUARANTINE)
    batch.unpersist()


def judge_stream(spark: SparkSession, options: AuditOptions, summary: Summary) -> None:
    """Judge what the stream has kept so far. Where the match job says who should get what, of these events only."""
    about = written(spark, f"{options.out}/{ENDED}", TRACES)
    kept = about.unionByName(written(spark, f"{options.out}/{OTHERS}", TRACES))
    wanted = _expected(spark, kept, options)
    of_these = wanted.good.join(about.select(*audit.EVENT).distinct(), audit.EVENT, "left_semi")
    bad = written(spark, f"{options.out}/{BAD}", QUARANTINE).unionByName(wanted.bad)
    _judge(Output(spark, f"{options.out}/{JUDGED}"), Dataset(kept, bad), of_these, options, summary)


def run_stream(spark: SparkSession, options: AuditOptions, pace: Pace, progress: Progress | None = None) -> Summary:
    """Stream until all is kept or, where it is to follow, until interrupted; judged every minute, and at the end."""
    with watched(spark, "audit", progress) as summary:
        queries = stream(spark, options, pace)
        finished(*queries, meanwhile=_every(JUDGED_EVERY_S, lambda: judge_stream(spark, options, summary)))
        judge_stream(spark, options, summary)
        rows, batches = rows_in(queries[1])
        summary.notes += [
            f"{rows:,} rows in {batches} micro-batches in this run; judged are events that have ended",
            f"{dropped_late(queries[0]):,} records of events came after they had ended",
        ]
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


def _expected(spark: SparkSession, traces: DataFrame, options: AuditOptions) -> Dataset:
    if options.expected is None:
        return Dataset(audit.expected(traces), spark.createDataFrame([], QUARANTINE))
    return read(spark, options.expected, EXPECTED, "expected", options.expected_select)


def _rows(cuts: DataFrame) -> list[Row]:
    return cuts.where(sf.col("by") != audit.ALL).collect()

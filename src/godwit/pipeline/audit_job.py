"""The audit job: reads traces and, where they do not say it, who should have got what; writes tables and one page."""

from __future__ import annotations

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from godwit.pipeline import audit
from godwit.pipeline.audit_page import page
from godwit.pipeline.reading import Dataset, read
from godwit.pipeline.running import Progress, Summary, watched
from godwit.pipeline.schemas import EXPECTED, FIGURES, OUTCOMES, OVERHEAD, QUARANTINE, RELOCATIONS, TRACES
from godwit.pipeline.writing import Output

PAGE = "audit.html"


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    traces: str
    out: str
    expected: str | None = None
    """Who should get what: publisher, sequence, client; what the traces themselves matched, where it is not given."""
    expected_select: str | None = None


def run(spark: SparkSession, options: AuditOptions, progress: Progress | None = None) -> Summary:
    """Judge a run by its traces."""
    with watched(spark, "audit", progress) as summary:
        source, out = read(spark, options.traces, TRACES, "traces"), Output(spark, options.out)
        wanted = _expected(spark, source.good, options)
        became = out.write("outcomes", audit.outcomes(source.good, wanted.good), OUTCOMES)
        cuts = out.write("figures", audit.figures(became, audit.disorder(source.good)), FIGURES, ["by"])
        moves = out.write("relocations", audit.relocations(source.good), RELOCATIONS)
        costs = out.write("overhead", audit.overhead(source.good), OVERHEAD, files=1)
        out.write("quarantine", source.bad.unionByName(wanted.bad), QUARANTINE, ["dataset"])
        overall = cuts.where(sf.col("by") == audit.ALL).first()
        out.write_text(PAGE, page(options.traces, overall, _rows(cuts), moves.collect(), costs.collect()))
        out.finish()
        summary.rows_in = source.good.count()
        summary.rows_out = {table: rows for table, rows in out.rows.items() if table != "quarantine"}
        summary.quarantined = out.rows["quarantine"]
        summary.notes += verdict(overall)
    return summary


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

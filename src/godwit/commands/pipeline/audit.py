"""`godwit pipeline audit`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from godwit.commands.pipeline.session import SparkOptions, TableOptions, options_told, told
from godwit.commands.pipeline.streams import LiveOptions, StreamOptions, live


class AuditCommand(msgspec.Struct, frozen=True, kw_only=True):
    traces: Annotated[str, typer.Argument(metavar="TRACES", help="Of `godwit sim --trace`, of brokers, or godwit://.")]
    table: TableOptions
    expected: Annotated[
        str | None, typer.Option(metavar="FILE", help="publisher, sequence, client: who should get what.")
    ] = None
    expected_select: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Makes these columns, as in 'publisher, sequence, subscription AS client'."),
    ] = None
    late: Annotated[
        str, typer.Option(metavar="TIME", help="Of a stream: an event has ended when not heard of for so long.")
    ] = "10 minutes"
    streaming: StreamOptions
    spark: SparkOptions


def audit(asked: AuditCommand) -> int:
    """Judge a run by its traces: what was lost, came twice, out of order or late, and what it cost.

    Writes the tables outcomes, figures, relocations, overhead, quality and quarantine, and audit.html. A stream judges
    each event once it has ended, and writes figures and page to the folder judged.

    Examples:

        godwit sim examples/scenarios/walking.toml --trace run.parquet && godwit pipeline audit run.parquet --out audit

    Exit status: 0, whatever is found; 2 where an input cannot be used or --fail-on holds; 130 after Ctrl-C.
    """
    with options_told():
        from godwit.pipeline.audit.job import AuditOptions, run, run_stream

        options = AuditOptions(
            traces=asked.traces,
            out=asked.table.out,
            expected=asked.expected,
            expected_select=asked.expected_select,
            late=asked.late,
            files_per_batch=asked.streaming.files_per_batch,
            live=live(asked.streaming, LiveOptions(), asked.traces),
            fail_on=tuple(asked.table.fail_on or ()),
        )
    inputs = (asked.traces, asked.expected)
    if asked.streaming.asked:
        pace = asked.streaming.pace()
        return told("audit", asked.spark, asked.table, lambda spark, bar: run_stream(spark, options, pace, bar), inputs)
    return told("audit", asked.spark, asked.table, lambda spark, bar: run(spark, options, bar), inputs)

"""`godwit pipeline ingest`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from godwit.commands.pipeline.session import SparkOptions, TableOptions, options_told, told
from godwit.commands.pipeline.streams import LiveOptions, StreamOptions, live


class IngestCommand(msgspec.Struct, frozen=True, kw_only=True):
    archives: Annotated[
        list[str],
        typer.Argument(metavar="ARCHIVE...", help="Folders of brokers, logs of devices, or godwit://host:port."),
    ]
    table: TableOptions
    select: Annotated[
        str | None, typer.Option(metavar="SQL", help="Expressions that make the archive's columns of a log's.")
    ] = None
    to: Annotated[str | None, typer.Option(metavar="TOPIC", help="Send to kafka://host:port/topic too.")] = None
    # Each micro-batch leaves files in many folders, so that it should not come too often.
    streaming: StreamOptions = StreamOptions(every="10 seconds")
    narrowed: LiveOptions
    spark: SparkOptions


def ingest(asked: IngestCommand) -> int:
    """Bring archives of events together: each event once, whichever brokers archived it, in folders by day.

    Writes the tables events, quality and quarantine. A stream adds what comes, once, whatever is killed.

    Examples:

        godwit pipeline ingest b1/archive b2/archive --out events

        godwit pipeline ingest godwit://127.0.0.1:9884 --out events --follow --filter "pm25 > 150"

        godwit pipeline ingest godwit://127.0.0.1:9884 --out events --follow --to kafka://127.0.0.1:9092/fleet

    Exit status: 0; 2 where an input cannot be used or --fail-on holds; 130 after Ctrl-C.
    """
    with options_told():
        from godwit.pipeline.ingest import IngestOptions, run, run_stream

        options = IngestOptions(
            archives=tuple(asked.archives),
            out=asked.table.out,
            select=asked.select,
            to=asked.to,
            live=live(asked.streaming, asked.narrowed, *asked.archives),
            files_per_batch=asked.streaming.files_per_batch,
            fail_on=tuple(asked.table.fail_on or ()),
        )
    inputs = tuple(asked.archives)
    if asked.streaming.asked:
        pace = asked.streaming.pace()
        return told(
            "ingest", asked.spark, asked.table, lambda spark, bar: run_stream(spark, options, pace, bar), inputs
        )
    return told("ingest", asked.spark, asked.table, lambda spark, bar: run(spark, options, bar), inputs)

"""`godwit pipeline match`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from godwit.commands.pipeline.session import SparkOptions, TableOptions, listed, options_told, told
from godwit.commands.pipeline.streams import LiveOptions, StreamOptions, live


class MatchCommand(msgspec.Struct, frozen=True, kw_only=True):
    events: Annotated[
        str,
        typer.Argument(
            metavar="EVENTS", help="A column for each attribute, a broker's archive, or godwit://host:port."
        ),
    ]
    subscriptions: Annotated[str, typer.Argument(metavar="SUBS", help="id, filter: Parquet, CSV or JSON lines.")]
    table: TableOptions
    key: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="What names an event: publisher,sequence of an archive, else id."),
    ] = None
    schema: Annotated[
        str | None,
        typer.Option(metavar="TYPES", help="Of columns of CSV, and of a key of JSON, as in 'id BIGINT, speed DOUBLE'."),
    ] = None
    select: Annotated[str | None, typer.Option(metavar="SQL", help="Expressions that make the attributes.")] = None
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Take only these events.")] = None
    to: Annotated[str | None, typer.Option(metavar="TOPIC", help="Send to kafka://host:port/topic too.")] = None
    part_max: Annotated[
        int, typer.Option(min=1, metavar="N", help="More subscriptions than this are split over executors.")
    ] = 2_000_000
    streaming: StreamOptions
    narrowed: LiveOptions
    spark: SparkOptions


def match(asked: MatchCommand) -> int:
    """Match events with subscriptions: the broker's own filters, index and meaning, on any number of machines.

    Writes the tables deliveries (the key of the event, and subscription), quality and quarantine. A stream reads the
    subscriptions again before every micro-batch, and writes each delivery once, whatever is killed.

    Examples:

        godwit pipeline match archive/events subscriptions.jsonl --out deliveries --stream

        godwit pipeline match godwit://127.0.0.1:9884 subscriptions.jsonl --out deliveries --follow

    Exit status: 0; 2 where an input cannot be used or --fail-on holds; 130 after Ctrl-C.
    """
    with options_told():
        from godwit.pipeline.match.job import MatchOptions, run, run_stream

        options = MatchOptions(
            events=asked.events,
            subscriptions=asked.subscriptions,
            out=asked.table.out,
            key=listed(asked.key),
            schema=asked.schema,
            select=asked.select,
            where=asked.where,
            to=asked.to,
            part_max=asked.part_max,
            files_per_batch=asked.streaming.files_per_batch,
            live=live(asked.streaming, asked.narrowed, asked.events),
            fail_on=tuple(asked.table.fail_on or ()),
        )
    inputs = (asked.events, asked.subscriptions)
    if asked.streaming.asked:
        pace = asked.streaming.pace()
        return told("match", asked.spark, asked.table, lambda spark, bar: run_stream(spark, options, pace, bar), inputs)
    return told("match", asked.spark, asked.table, lambda spark, bar: run(spark, options, bar), inputs)

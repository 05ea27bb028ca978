"""`godwit match`: what can be typed. The work is in `godwit.commands.match.join`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from godwit.commands.command import Json


class MatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    events: Annotated[
        str,
        typer.Argument(
            metavar="EVENTS",
            help="Flat JSON lines (.jsonl, or - for stdin), .csv or .tsv with a header, or .parquet, a file or a"
            " directory. Text files may be gzipped (.gz).",
        ),
    ]
    subscriptions: Annotated[
        str,
        typer.Argument(
            metavar="SUBS",
            help='JSON lines {"id": ..., "filter": "..."} (.jsonl), Parquet with these columns (.parquet), or one'
            " filter a line (.txt). Without an id the line number is the id.",
        ),
    ]
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write deliveries to a .jsonl or .parquet file, or - for stdout.")
    ] = None
    limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="At most so many events.", show_default="all")
    ] = None
    as_json: Json = False


def match(options: MatchOptions) -> int:
    """Match every event of one file with every subscription of another, and say who gets what.

    Examples:

        godwit match events.jsonl subscriptions.jsonl

        godwit match flights.parquet wishes.txt --out deliveries.parquet

        zcat readings.jsonl.gz | godwit match - alerts.jsonl --out - | head

    A delivery names the event by its line or row, from 1, and by its `id` where it has one. Nulls, and empty cells of
    CSV, are missing attributes. Timestamps are seen as seconds since 1970.

    Exit status: 0; 1 where some lines were bad and left out; 2 where a file could not be read or written to its end;
    130 after Ctrl-C. In the last two cases what was finished stays beside FILE, in NAME.partial.SUFFIX.
    """
    from godwit.commands.match.join import joined

    return joined(options)

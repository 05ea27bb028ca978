"""`godwit neighbors ... --help`: what can be typed about the neighbor graph. The work is in `godwit.commands.ways`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

neighbors = typer.Typer(help="Where clients go from a broker.", no_args_is_help=True, rich_markup_mode=None)

Broker = Annotated[
    str, typer.Argument(metavar="BROKER", help="HOST:PORT of its status, or its data folder, running or not.")
]


@neighbors.command()
def show(broker: Broker) -> None:
    """What a broker has learned of where its clients go, the likeliest first; then the same by where they came from.

    Examples:

        godwit neighbors show 127.0.0.1:9883

        godwit neighbors show /var/lib/godwit/north

    Exit status: 0; 2 where there is no such broker.
    """
    from godwit.commands import ways
    from godwit.commands.console import errors_told

    with errors_told():
        status = ways.show(broker)
    raise typer.Exit(status)


@neighbors.command()
def export(
    broker: Broker,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .json, .csv or .parquet file; CSV to the terminal where none is named."),
    ] = None,
) -> None:
    """The same as a file: from, to, count, weight, last_used, before.

    Examples:

        godwit neighbors export 127.0.0.1:9883 --out north.csv

        godwit neighbors export /var/lib/godwit/north > north.csv

    Exit status: 0; 2 where there is no such broker, or the file cannot be written.
    """
    from godwit.commands import ways
    from godwit.commands.console import errors_told

    with errors_told():
        status = ways.export(broker, out)
    raise typer.Exit(status)


@neighbors.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .json, .csv or .parquet file, or the pipeline's folder neighbors.")
    ],
    data: Annotated[Path, typer.Argument(metavar="DIR", help="The broker's data folder.")],
    sites: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Which broker stands at which site: JSON, or CSV with site and broker."),
    ] = None,
) -> None:
    """Give a broker, running or not, what others have learned, instead of what it knows.

    Only the rows from this broker are of use to it: one file serves all. The newest `last_used` of the file counts as
    now.

    Examples:

        godwit neighbors import north.csv /var/lib/godwit/north

        godwit neighbors import moves/neighbors /var/lib/godwit/north --sites brokers.csv

    Exit status: 0; 2 where the file or the folder is wrong, or a running broker does not take it.
    """
    from godwit.commands import ways
    from godwit.commands.console import errors_told

    with errors_told():
        status = ways.import_(file, data, sites)
    raise typer.Exit(status)

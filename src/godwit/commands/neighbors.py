"""`godwit neighbors`: look at what a broker has learned of where clients go, take it along, and give it to others."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.command import Json, command
from godwit.commands.console import InputError, print_json
from godwit.commands.top import fetched
from godwit.net.ops.report import NeighborRow, OnwardRow, PathRow

if TYPE_CHECKING:
    from rich.table import Table

    from godwit.net.neighbors.files import Way

FINISHED = 0
TAKEN_S = 10.0
"""How long a running broker may take to look into its folder."""
PATHS_SHOWN, ONWARD_SHOWN = 12, 5
"""By where clients came from: so many origins, and of each so many brokers that get no copy."""


class Told(msgspec.Struct, frozen=True):
    """What a broker says of where its clients go."""

    name: str
    neighbors: list[NeighborRow]
    paths: list[PathRow]


neighbors = typer.Typer(help="Where clients go from a broker.", no_args_is_help=True, rich_markup_mode=None)

Broker = Annotated[
    str, typer.Argument(metavar="BROKER", help="HOST:PORT of its status, or its data folder, running or not.")
]


class ShowOptions(msgspec.Struct, frozen=True, kw_only=True):
    broker: Broker
    as_json: Json = False


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    broker: Broker
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .json, .csv or .parquet file; CSV to the terminal where none is named."),
    ] = None


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .json, .csv or .parquet file, or the pipeline's folder neighbors.")
    ]
    data: Annotated[Path, typer.Argument(metavar="DIR", help="The broker's data folder.")]
    sites: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Which broker stands at which site: JSON, or CSV with site and broker."),
    ] = None


@command(neighbors)
def show(options: ShowOptions) -> int:
    """What a broker has learned of where its clients go, the likeliest first; then the same by where they came from.

    Examples:

        godwit neighbors show 127.0.0.1:9883

        godwit neighbors show /var/lib/godwit/north

    Exit status: 0; 2 where there is no such broker.
    """
    from rich.console import Console
    from rich.table import Table

    told = known(options.broker)
    if options.as_json:
        print_json(told)
        return FINISHED
    console = Console(highlight=False, soft_wrap=True)
    if not told.neighbors:
        console.print(f"{told.name} knows no neighbors yet: nobody has moved from it or to it", markup=False)
        return FINISHED
    table = Table(box=None, padding=(0, 2), title=f"from {told.name}", title_justify="left", title_style="bold")
    for heading in ("to", "share", "moves", "last used"):
        table.add_column(heading, justify="right" if heading in ("share", "moves") else "left")
    for row in told.neighbors:
        table.add_row(row.peer, f"{row.share:.1%}", f"{row.uses:,}", _time(row.last_used))
    console.print(table)
    if told.paths:
        console.print(_paths(told))
    return FINISHED


def _paths(told: Told) -> Table:
    from rich.table import Table

    title = "by where they came from (in brackets: gets no copy)"
    table = Table(box=None, padding=(0, 2), title=title, title_justify="left", title_style="bold")
    for heading in ("came from", "share", "goes on to"):
        table.add_column(heading, justify="right" if heading == "share" else "left")
    for path in told.paths[:PATHS_SHOWN]:
        before = "nowhere" if path.before == told.name else path.before
        table.add_row(before, f"{path.share:.1%}", ", ".join(_onward(path.onward)))
    return table


def _onward(rows: list[OnwardRow]) -> list[str]:
    copied = [f"{row.peer} {row.share:.0%}" for row in rows if row.copied]
    others = [f"({row.peer} {row.share:.0%})" for row in rows if not row.copied]
    return [*copied, *others[:ONWARD_SHOWN], *(["..."] if len(others) > ONWARD_SHOWN else [])]


@command(neighbors)
def export(options: ExportOptions) -> int:
    """The same as a file: from, to, count, weight, last_used, before.

    Examples:

        godwit neighbors export 127.0.0.1:9883 --out north.csv

        godwit neighbors export /var/lib/godwit/north > north.csv

    Exit status: 0; 2 where there is no such broker, or the file cannot be written.
    """
    from godwit.net.neighbors.files import NeighborsError, text, ways_of, write

    out = options.out
    if out is not None and out.suffix not in (".json", ".csv", ".parquet"):
        raise InputError(f"{out}: right would be a name that ends in .json, .csv or .parquet")
    told = known(options.broker)
    ways = ways_of(told.name, told.neighbors)
    if out is None:
        sys.stdout.write(text(ways, "csv"))
        return FINISHED
    try:
        write(ways, out)
    except NeighborsError as error:
        raise InputError(str(error)) from None
    return FINISHED


@command(neighbors, "import")
def import_(options: ImportOptions) -> int:
    """Give a broker, running or not, what others have learned, instead of what it knows.

    Only the rows from this broker are of use to it: one file serves all. The newest `last_used` of the file counts as
    now.

    Examples:

        godwit neighbors import north.csv /var/lib/godwit/north

        godwit neighbors import moves/neighbors /var/lib/godwit/north --sites brokers.csv

    Exit status: 0; 2 where the file or the folder is wrong, or a running broker does not take it.
    """
    from godwit.net.neighbors.files import NeighborsError, leave, mapped, read, read_names
    from godwit.net.store.sqlite import StoreError, glance, is_served

    file, folder = options.file, options.data
    try:
        (meta,) = glance(folder, "meta")
        name = _name(meta)
        ways = read(file)
        if options.sites is not None:
            ways = mapped(ways, read_names(options.sites))
        mine = [way for way in ways if way.origin == name]
        if not mine:
            raise InputError(_nothing_of(name, file, ways))
        path = leave(folder, mine)
    except (NeighborsError, StoreError) as error:
        raise InputError(str(error)) from None
    if is_served(folder):
        _wait_until_taken(path, name)
        told = f"{name} knows {len(mine)} neighbors now"
    else:
        told = f"{name} does not run: it takes {len(mine)} neighbors when it starts"
    sys.stdout.write(f"{told}\n")
    return FINISHED


def known(broker: str) -> Told:
    """Of a broker that runs, or of its folder; how it is configured is not known there, so the usual is taken."""
    from godwit.net.neighbors.files import neighbor_row, path_row
    from godwit.net.store.sqlite import StoreError, glance
    from godwit.protocols.broker.handoff.prediction import TABLE, Neighbors
    from godwit.protocols.broker.store import MemoryStore

    folder = Path(broker)
    if not folder.is_dir():
        report = fetched(f"http://{broker}/status")
        return Told(report.name, report.neighbors, report.paths)
    try:
        meta, rows = glance(folder, "meta", TABLE)
    except StoreError as error:
        raise InputError(str(error)) from None
    store = MemoryStore({TABLE: {(peer, number): row for peer, number, row in rows}}, lambda call: None)
    name = _name(meta)
    found = Neighbors(name, store, time.time)
    return Told(name, [neighbor_row(one) for one in found.known()], [path_row(one) for one in found.foreseen()])


def _name(meta: list[tuple[str, int, bytes]]) -> str:
    return next((value.decode() for what, _, value in meta if what == "name"), "")


def _nothing_of(name: str, file: Path, ways: list[Way]) -> str:
    others = ", ".join(sorted({way.origin for way in ways})[:5]) or "nobody that --sites names"
    return f"{file}: nothing of {name!r} in column from, but of {others}"


def _wait_until_taken(path: Path, name: str) -> None:
    end = time.monotonic() + TAKEN_S
    while path.exists():
        if time.monotonic() > end:
            raise InputError(f"{path}: {name} has not taken it within {TAKEN_S:g} s; its log may say why")
        time.sleep(0.05)


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))

"""`godwit neighbors`: look at what a broker has learned of where clients go, take it along, and give it to others."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from godwit.commands.console import InputError
from godwit.commands.top import fetched
from godwit.net.neighbors.files import (
    NeighborsError,
    Way,
    leave,
    mapped,
    neighbor_row,
    path_row,
    read,
    read_names,
    text,
    ways_of,
    write,
)
from godwit.net.ops.report import NeighborRow, OnwardRow, PathRow
from godwit.net.store.sqlite import StoreError, glance, is_served
from godwit.protocols.broker.handoff.prediction import TABLE, Neighbors
from godwit.protocols.broker.store import MemoryStore

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


def show(broker: str) -> int:
    told = known(broker)
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


def export(broker: str, out: Path | None) -> int:
    if out is not None and out.suffix not in (".json", ".csv", ".parquet"):
        raise InputError(f"{out}: right would be a name that ends in .json, .csv or .parquet")
    told = known(broker)
    ways = ways_of(told.name, told.neighbors)
    if out is None:
        sys.stdout.write(text(ways, "csv"))
        return FINISHED
    try:
        write(ways, out)
    except NeighborsError as error:
        raise InputError(str(error)) from None
    return FINISHED


def import_(file: Path, folder: Path, sites: Path | None) -> int:
    try:
        (meta,) = glance(folder, "meta")
        name = _name(meta)
        ways = read(file)
        if sites is not None:
            ways = mapped(ways, read_names(sites))
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

"""`godwit neighbors`: look at what a broker has learned of where clients go, take it along, and give it to others."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from godwit.commands.reports import InputError
from godwit.commands.top import fetched
from godwit.net.neighbors import NeighborsError, Way, leave, mapped, read, read_names, text, ways_of
from godwit.net.report import NeighborRow
from godwit.net.store import StoreError, glance, is_served
from godwit.protocols.broker.neighbours import TABLE, Neighbours
from godwit.protocols.broker.store import Memory

FINISHED = 0
TAKEN_S = 10.0
"""How long a running broker may take to look into its folder."""


def show(broker: str) -> int:
    name, rows = known(broker)
    console = Console(highlight=False, soft_wrap=True)
    if not rows:
        console.print(f"{name} knows no neighbors yet: nobody has moved from it or to it", markup=False)
        return FINISHED
    table = Table(box=None, padding=(0, 2), title=f"from {name}", title_justify="left", title_style="bold")
    for heading in ("to", "share", "moves", "last used"):
        table.add_column(heading, justify="right" if heading in ("share", "moves") else "left")
    for row in rows:
        table.add_row(row.peer, f"{row.share:.1%}", f"{row.uses:,}", _time(row.last_used))
    console.print(table)
    return FINISHED


def export(broker: str, out: Path | None) -> int:
    if out is not None and out.suffix not in (".json", ".csv"):
        raise InputError(f"{out}: right would be a name that ends in .json or .csv")
    ways = ways_of(*known(broker))
    told = text(ways, "csv" if out is None else out.suffix[1:])
    if out is None:
        sys.stdout.write(told)
        return FINISHED
    try:
        out.write_text(told)
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from None
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


def known(broker: str) -> tuple[str, list[NeighborRow]]:
    """The name of a broker, and its neighbors."""
    folder = Path(broker)
    if not folder.is_dir():
        report = fetched(f"http://{broker}/status")
        return report.name, report.neighbors
    try:
        meta, rows = glance(folder, "meta", TABLE)
    except StoreError as error:
        raise InputError(str(error)) from None
    store = Memory({TABLE: {(peer, number): row for peer, number, row in rows}}, lambda call: None)
    name = _name(meta)
    found = Neighbours(name, store, time.time).known()
    return name, [
        NeighborRow(peer=one.peer, share=one.share, uses=one.uses, weight=one.weight, last_used=one.last_used)
        for one in found
    ]


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

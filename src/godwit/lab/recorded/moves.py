"""Recorded stays of subscribers at sites, as `godwit pipeline mobility` writes them, and what brokers learn of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from godwit.protocols.host import NodeId
from godwit.protocols.neighbors.nearness import Site

STAYS = {"subscriber": "string", "site": "string", "entered_s": "double", "last_fix_s": "double", "ended": "string"}
SITES = {"site": "string", "lat": "double", "lon": "double"}


class RecordedError(ValueError):
    """Recorded movement that cannot be used: which file, what of it, what would be right."""


class Stay(msgspec.Struct, frozen=True):
    """From when to when a subscriber was heard at a site; it left for the next one without a gap, or not."""

    site: NodeId
    entered_s: float
    last_s: float
    handoff: bool


Stays = Mapping[NodeId, list[Stay]]
"""By subscriber, in order of time."""


def read_stays(folder: Path, since_s: float, until_s: float) -> dict[NodeId, list[Stay]]:
    """Those that begin in this time. The last one of a subscriber is cut off where the next would begin later."""
    table = _table(folder / "visits", STAYS)
    entered = table["entered_s"]
    table = table.filter(pc.and_(pc.greater_equal(entered, since_s), pc.less(entered, until_s)))
    table = table.sort_by([("subscriber", "ascending"), ("entered_s", "ascending")])
    stays: dict[NodeId, list[Stay]] = {}
    for subscriber, site, entered_s, last_s, ended in zip(*(table[name].to_pylist() for name in STAYS), strict=True):
        stays.setdefault(subscriber, []).append(Stay(site, entered_s, last_s, ended == "handoff"))
    return stays


def read_sites(folder: Path) -> dict[NodeId, Site]:
    table = _table(folder / "sites", SITES)
    columns = (table[name].to_pylist() for name in SITES)
    return {name: Site(lat, lon) for name, lat, lon in zip(*columns, strict=True)}


def span_s(folder: Path) -> tuple[float, float]:
    """When the first stay begins, and the last one."""
    entered = _table(folder / "visits", STAYS)["entered_s"]
    found = pc.min_max(entered).as_py()
    if found["min"] is None:
        raise RecordedError(f"{folder / 'visits'} has no rows: nobody was anywhere")
    return found["min"], found["max"]


def _table(path: Path, columns: Mapping[str, str]) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise RecordedError(f"{path} is no table of `godwit pipeline mobility`: {error}") from error
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise RecordedError(f"{path} has no column {', '.join(missing)}")
    try:
        return table.select(list(columns)).cast(pa.schema([(name, kind) for name, kind in columns.items()]))
    except pa.ArrowException as error:
        raise RecordedError(f"{path}: {error}") from error


class Habits(msgspec.Struct):
    """Handoffs from one site: by the site before, where they went and how often."""

    moves: dict[NodeId, Counter[NodeId]]

    @property
    def uses(self) -> Counter[NodeId]:
        return sum(self.moves.values(), Counter())


def habits(stays: Stays) -> dict[NodeId, Habits]:
    """What every site has seen of those who left it; whoever came out of a gap came from nowhere, for all it knows."""
    found: dict[NodeId, Habits] = {}
    for some in stays.values():
        before = ""
        for stay, following in pairwise(some):
            if stay.handoff:
                moves = found.setdefault(stay.site, Habits({})).moves
                moves.setdefault(before, Counter())[following.site] += 1
            before = stay.site if stay.handoff else ""
    return found


class Movement(msgspec.Struct, frozen=True):
    """All that a run needs of a recording."""

    stays: Stays
    sites: Mapping[NodeId, Site]
    learned: Mapping[NodeId, Habits]


@lru_cache(maxsize=2)
def read(folder: str, learn_s: tuple[float, float], measure_s: tuple[float, float]) -> Movement:
    """What is learned and what is measured, each from when to when."""
    path = Path(folder)
    stays = read_stays(path, *measure_s)
    if not stays:
        raise RecordedError(f"{folder}: nobody arrives anywhere in the time to be measured")
    return Movement(stays, read_sites(path), habits(read_stays(path, *learn_s)))

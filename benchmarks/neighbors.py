"""How many copies it takes to be where clients go: what a broker learns of its neighbors, on recorded moves.

    python benchmarks/neighbors.py moves            what `godwit pipeline mobility --out moves` wrote

Every site is a broker with the learning of the deployed one. The moves of the first `--learn` hours teach it; of those
in the next `--hours` it says for each who would have a copy, and learns on. `use` goes by how often ways were gone,
`before` also by where the client came from, and `near` also by how near the sites are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from godwit.net.neighbors.files import read_sites
from godwit.protocols.broker.handoff.prediction import HABITS, Neighbors
from godwit.protocols.broker.store import MemoryStore
from godwit.protocols.neighbors.graph import GraphOptions
from godwit.protocols.neighbors.nearness import Site, closeness

HOUR_S = 3600.0
MASSES = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
COLUMNS = ("time_s", "site", "next_site", "previous_site")


class Moves(msgspec.Struct, frozen=True):
    """In their order."""

    times_s: list[float]
    sites: list[str]
    next_sites: list[str]
    previous_sites: list[str | None]


class Found(msgspec.Struct, frozen=True):
    hit_rate: float
    copies: float
    """For each move."""
    seconds: float


def read(folder: Path, hours: float) -> Moves:
    table = pq.read_table(folder / "handoffs", columns=list(COLUMNS))
    times_s = table["time_s"].to_numpy()
    order = np.argsort(times_s, kind="stable")
    order = order[times_s[order] < times_s.min() + hours * HOUR_S]
    return Moves(*(table[name].take(order).to_pylist() for name in COLUMNS))


def replayed(moves: Moves, options: GraphOptions, places: dict[str, Site], learn_s: float) -> Found:
    now_s = moves.times_s[0]
    begun_s, started_s = now_s + learn_s, time.process_time()

    def clock() -> float:
        return now_s

    def broker(site: str) -> Neighbors:
        near = msgspec.structs.replace(options, closeness=closeness(site, places))
        return Neighbors(site, MemoryStore({}, _never), clock, near)

    brokers = {site: broker(site) for site in {*moves.sites, *moves.next_sites}}
    handoffs = hits = copies = 0
    rows = zip(moves.times_s, moves.sites, moves.next_sites, moves.previous_sites, strict=True)
    for now_s, site, next_site, before in rows:
        likely = brokers[site].likely(before or "") if now_s >= begun_s else ()
        if now_s >= begun_s:
            handoffs, hits, copies = handoffs + 1, hits + (next_site in likely), copies + len(likely)
        brokers[site].went(next_site, likely, before or "")
        brokers[next_site].came(site)
    return Found(hits / handoffs, copies / handoffs, time.process_time() - started_s)


def _never(call: Callable[[], None]) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description="Copies and hit rate by mass, on recorded moves.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--learn", type=float, default=24.0, metavar="H")
    parser.add_argument("--hours", type=float, default=24.0, metavar="H")
    parser.add_argument("--mass", type=float, nargs="*", default=MASSES)
    told = parser.parse_args()
    moves, places = read(told.folder, told.learn + told.hours), read_sites(told.folder / "sites")
    usual, learn_s = msgspec.structs.replace(HABITS, degree_max=0), told.learn * HOUR_S
    choices = {"use": (False, {}), "before": (True, {}), "near": (True, places)}
    table = Table("choice", "mass", "found a copy", "copies each", "against all", "CPU s")
    table.title = f"{len(moves.times_s):,} moves"
    every = replayed(moves, msgspec.structs.replace(usual, mass=1.0, foresight=False), {}, learn_s)
    found = {("all", 1.0): every}
    for choice, (foresight, known) in choices.items():
        for mass in told.mass:
            options = msgspec.structs.replace(usual, mass=mass, foresight=foresight)
            found[choice, mass] = replayed(moves, options, known, learn_s)
    for (choice, mass), one in found.items():
        against = f"{one.copies / every.copies:.0%}"
        table.add_row(choice, f"{mass:g}", f"{one.hit_rate:.2%}", f"{one.copies:.2f}", against, f"{one.seconds:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()

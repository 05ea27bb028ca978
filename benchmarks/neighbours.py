"""How many copies it takes to be where clients go: what a broker learns of its neighbours, on recorded moves.

    python benchmarks/neighbours.py moves            what `godwit pipeline mobility --out moves` wrote

Every site is a broker with the learning of the deployed one. The moves of the first `--learn` hours teach it; of those
in the next `--hours` it says for each who would have a copy, and learns on.
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

from godwit.protocols.broker.neighbours import HABITS, Neighbours
from godwit.protocols.broker.store import Memory

HOUR_S = 3600.0
MASSES = (0.8, 0.9, 0.95, 0.98, 0.99, 1.0)


class Moves(msgspec.Struct, frozen=True):
    """In their order."""

    times_s: list[float]
    sites: list[str]
    next_sites: list[str]


def read(folder: Path, hours: float) -> Moves:
    table = pq.read_table(folder / "handoffs", columns=["time_s", "site", "next_site"])
    times_s = table["time_s"].to_numpy()
    order = np.argsort(times_s, kind="stable")
    order = order[times_s[order] < times_s.min() + hours * HOUR_S]
    columns = (table[name].take(order).to_pylist() for name in ("time_s", "site", "next_site"))
    return Moves(*columns)


def replayed(moves: Moves, mass: float, learn_s: float) -> tuple[float, float, float]:
    """Hit rate, copies for each move, and seconds."""
    now_s = moves.times_s[0]
    begun_s, started_s = now_s + learn_s, time.perf_counter()
    options = msgspec.structs.replace(HABITS, mass=mass, degree_max=0)

    def clock() -> float:
        return now_s

    later: Callable[[Callable[[], None]], None] = _never
    brokers = {site: Neighbours(site, Memory({}, later), clock, options) for site in {*moves.sites, *moves.next_sites}}
    handoffs = hits = copies = 0
    for now_s, site, next_site in zip(moves.times_s, moves.sites, moves.next_sites, strict=True):
        likely = brokers[site].likely() if now_s >= begun_s else ()
        if now_s >= begun_s:
            handoffs, hits, copies = handoffs + 1, hits + (next_site in likely), copies + len(likely)
        brokers[site].went(next_site, likely)
        brokers[next_site].came(site)
    return hits / handoffs, copies / handoffs, time.perf_counter() - started_s


def _never(call: Callable[[], None]) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description="Copies and hit rate by mass, on recorded moves.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--learn", type=float, default=24.0, metavar="H")
    parser.add_argument("--hours", type=float, default=24.0, metavar="H")
    told = parser.parse_args()
    moves = read(told.folder, told.learn + told.hours)
    table = Table("mass", "found a copy", "copies each", "against all", "s", title=f"{len(moves.times_s):,} moves")
    found = {mass: replayed(moves, mass, told.learn * HOUR_S) for mass in MASSES}
    everywhere = found[1.0][1]
    for mass, (hit_rate, copies, seconds) in found.items():
        table.add_row(f"{mass:g}", f"{hit_rate:.2%}", f"{copies:.2f}", f"{copies / everywhere:.0%}", f"{seconds:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()

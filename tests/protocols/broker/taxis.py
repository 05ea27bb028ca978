"""What the taxis of San Francisco did on two days, between forty places where brokers might stand (tests/data)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pyarrow.csv
import pyarrow.parquet as pq

from godwit.protocols.broker.handoff.prediction import RETURN_WEIGHT, Learned
from godwit.protocols.neighbors.nearness import Site

DATA = Path(__file__).resolve().parents[2] / "data"


class Trail(msgspec.Struct, frozen=True):
    """How many went from `here` on to `to`, having come from `before`, or from nowhere where that is empty."""

    before: str
    here: str
    to: str
    learned: int
    """On the first day."""
    measured: int
    """On the next."""


@cache
def trails() -> list[Trail]:
    return [Trail(**row) for row in pq.read_table(DATA / "paths.parquet").to_pylist()]


@cache
def sites() -> dict[str, Site]:
    rows = pyarrow.csv.read_csv(DATA / "sites.csv").to_pylist()
    return {row["site"]: Site(row["lat"], row["lon"]) for row in rows}


@cache
def first_day() -> dict[str, list[Learned]]:
    """What each broker knows after it."""
    weights: dict[str, dict[str, float]] = {site: {} for site in sites()}
    before: dict[tuple[str, str], dict[str, float]] = {}
    for one in trails():
        if one.learned:
            for here, to, weight in ((one.here, one.to, 1.0), (one.to, one.here, RETURN_WEIGHT)):
                weights[here][to] = weights[here].get(to, 0.0) + weight * one.learned
            before.setdefault((one.here, one.to), {})[one.before or one.here] = float(one.learned)
    return {
        here: [Learned(peer=to, weight=weight, before=before.get((here, to), {})) for to, weight in some.items()]
        for here, some in weights.items()
    }

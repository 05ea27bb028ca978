"""Few nodes in a large area (E17): how much C2 delivers as its square grows, at each range of the radio."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from godwit.lab.claims import Finding, Margin, Point, along
from godwit.lab.intervals import Interval, of_worlds
from godwit.lab.mft.claims import CLAIMS, HARDLY
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import SIDES_M, Configuration
from godwit.lab.pages import Table
from godwit.lab.parts import all_hold

PROTOCOLS = ("mft", "aodv")
USUAL_M = SIDES_M[2]


class AreaPlan(msgspec.Struct, frozen=True, kw_only=True):
    sides_m: tuple[float, ...] = (35.0, 60.0, 85.0, 110.0, 160.0, 220.0)
    ranges_m: tuple[float, ...] = (18.0, 28.0, 46.0)
    seeds: int = 5
    first_seed: int = 251
    publish_s: float = 200.0
    drain_s: float = 80.0

    def runs(self) -> list[Configuration]:
        return [
            Configuration(
                size=2,
                speed_mps=8.0,
                seed=seed,
                protocol=protocol,
                side_m=side_m,
                range_m=range_m,
                publish_s=self.publish_s,
                drain_s=self.drain_s,
            )
            for side_m in self.sides_m
            for range_m in self.ranges_m
            for protocol in PROTOCOLS
            for seed in range(self.first_seed, self.first_seed + self.seeds)
        ]


def delivered(rows: Iterable[Row], protocol: str, side_m: float, range_m: float) -> Interval | None:
    """Of all that somebody wanted."""
    return of_worlds(
        (row.configuration.seed, row.result.honest_rate)
        for row in rows
        if (row.configuration.protocol, row.configuration.side_m, row.configuration.range_m)
        == (protocol, side_m, range_m)
    )


def finding(plan: AreaPlan, rows: Sequence[Row], range_m: float = 46.0) -> Finding:
    """E17 along the side of the square, at the range that the text's power has."""
    points = []
    for side_m in plan.sides_m:
        margins = [_margin(rows, protocol, side_m, range_m) for protocol in PROTOCOLS]
        below = tuple(
            Margin(f"{protocol.upper()}: half of the usual area's delivery, less what is delivered here", margin)
            for protocol, margin in zip(PROTOCOLS, margins, strict=True)
            if margin is not None
        )
        told = ", ".join(
            f"{protocol.upper()} delivers {delivered(rows, protocol, side_m, range_m)}" for protocol in PROTOCOLS
        )
        holds = all_hold([None if margin is None else margin.is_positive for margin in margins])
        points.append(Point(f"{side_m:g} m", holds, told, below))
    numbers = "; ".join(f"{point.at}: {point.numbers}" for point in points)
    return along(CLAIMS["E17"], "how large the area is", points, numbers)


def _margin(rows: Sequence[Row], protocol: str, side_m: float, range_m: float) -> Interval | None:
    """How far this is below half of what the usual area gives."""
    dense, sparse = (delivered(rows, protocol, side, range_m) for side in (USUAL_M, side_m))
    if dense is None or sparse is None:
        return None
    return Interval(HARDLY * dense.mean - sparse.mean, sparse.half, sparse.runs)


def table(plan: AreaPlan, rows: Sequence[Row]) -> Table:
    lines = [
        (f"{side_m:g}", *(str(delivered(rows, p, side_m, r) or "-") for r in plan.ranges_m for p in PROTOCOLS))
        for side_m in plan.sides_m
    ]
    header = ("side m", *(f"{p.upper()}, {r:g} m" for r in plan.ranges_m for p in PROTOCOLS))
    note = "C2 at 8 m/s: the share of all wanted that is delivered, by the side of the square and the radio's range."
    return Table("Few nodes in a large area (E17)", note, header, lines)

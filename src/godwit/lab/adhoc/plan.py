"""Which runs make up the published evaluation (spec manet-cbr 4.3), its sensitivity to readings, and what is beyond."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from godwit.lab.adhoc.runs import Configuration
from godwit.protocols.adhoc.options import Delay
from godwit.protocols.adhoc.table import Estimate

CREDITS = (0, 1, 2, 3, 5)
SUBSCRIBER_CREDITS = (0, 2, 5)
PERIODS_S = (2.0, 4.0, 6.0)

READINGS: Mapping[str, Mapping[str, Any]] = {
    "the spec's default": {},
    "every broker beacons, as the text says": {"beacon_when_empty": True},
    "longest delay 20 ms": {"delay_max_s": 0.02},
    "longest delay 0.1 s": {"delay_max_s": 0.1},
    "longest delay 1 s": {"delay_max_s": 1.0},
    "no jitter": {"jitter": 0.0},
    "nothing taken back from the radio's queue": {"withdraw": False},
    "no jitter, nothing taken back": {"jitter": 0.0, "withdraw": False},
    "a publisher that knows nobody is silent": {"publish_to_nobody": False},
    "proximity not rounded to tenths": {"estimate": Estimate.CONTINUOUS},
    "radio: 150 m for all": {"radio": "all alike"},
    "radio: no capture": {"radio": "no capture"},
    "radio: ideal disc of 150 m": {"radio": "ideal disc"},
    "payload 64 B": {"payload_b": 64},
}
"""Of the text, where it leaves something open or contradicts itself; one at a time."""

CONTROLS: Mapping[str, Mapping[str, Any]] = {
    "nobody is silenced": {"suppress": False},
    "random delay in place of proximity": {"delay": Delay.RANDOM},
}

BEYOND: Mapping[str, Mapping[str, Any]] = {
    "as published": {},
    "2 credits": {"credits": 2},
    "adaptive beacons": {"adaptive": True},
    "residence": {"estimate": Estimate.RESIDENCE},
    "hints in beacons": {"hints_max": 4},
    "hints in data": {"hints_in_data": True},
    "carry 20 s": {"carry_s": 20.0},
    "carry 60 s": {"carry_s": 60.0},
    "carry, 2 credits": {"carry_s": 60.0, "credits": 2},
    "carry, hints in data": {"carry_s": 60.0, "hints_in_data": True},
    "carry, adaptive": {"carry_s": 60.0, "adaptive": True},
    "carry, residence": {"carry_s": 60.0, "estimate": Estimate.RESIDENCE},
    "carry, hints in data, adaptive, residence": {
        "carry_s": 60.0,
        "hints_in_data": True,
        "adaptive": True,
        "estimate": Estimate.RESIDENCE,
    },
}
"""Improvements singly, with carrying, and all together."""

PLACES: Mapping[str, Mapping[str, Any]] = {"default": {}, "half the density": {"nodes": 50}}

SPEED_EXTRAS: Mapping[str, Mapping[str, Any]] = {"adaptive": {"adaptive": True}}


def receptions_per_s(cell: Configuration) -> float:
    """About: how many send an event, how many hear each, how often."""
    sending = cell.probability if cell.protocol == "gossip" else 0.3
    heard = cell.nodes * math.pi * 0.15**2 * 1e6 / cell.side_m**2
    return cell.nodes * sending * heard * cell.publishers * cell.rate_per_s


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The sweeps; values that the text does not give are the spec's suggestions."""

    seeds: int = 10
    warm_s: float = 100.0
    measure_s: float = 300.0
    probabilities: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0)
    subscribers: tuple[int, ...] = (2, 5, 10, 20, 50)
    rates_per_s: tuple[float, ...] = (0.1, 0.5, 1.0, 2.5, 5.0)
    speeds_mps: tuple[float, ...] = (1.0, 5.0, 15.0, 30.0, 40.0)
    sizes: tuple[int, ...] = (50, 100, 200, 400)
    densities: tuple[int, ...] = (50, 100, 150, 200, 300)
    quick: bool = False
    first_seed: int = 1
    radio: str = "per node"
    gossip_jitter_s: float = 0.01
    claims_only: bool = False
    """Without other readings and without what is beyond the published protocol."""
    gossip_only: bool = False
    """Only gossip over its probability, and proximity-driven routing with its credits: E1 and E2."""
    heavy: float = math.inf
    """A setting with so many receptions a second is measured for `heavy_s` only, and with `heavy_seeds` seeds."""
    heavy_s: float = 60.0
    heavy_seeds: int = 3

    def cell(self, **changes: Any) -> Configuration:
        """A setting; its runs differ in their seeds."""
        usual: dict[str, Any] = {"warm_s": self.warm_s, "measure_s": self.measure_s, "radio": self.radio}
        if changes.get("protocol") == "gossip":
            usual["gossip_jitter_s"] = self.gossip_jitter_s
        found = Configuration(seed=0, **{**usual, **changes})
        return msgspec.structs.replace(found, measure_s=self.heavy_s) if self.is_heavy(found) else found

    def is_heavy(self, cell: Configuration) -> bool:
        return receptions_per_s(cell) >= self.heavy

    def gossip(self, probability: float, **changes: Any) -> Configuration:
        return self.cell(protocol="gossip", probability=probability, **changes)

    def at_speed(self, mean_mps: float, **changes: Any) -> Configuration:
        """Speeds a third below and above the mean, as published."""
        return self.cell(speed_min_mps=mean_mps * 2 / 3, speed_max_mps=mean_mps * 4 / 3, **changes)

    def grown(self, nodes: int, **changes: Any) -> Configuration:
        """As many nodes, subscribers and publishers in proportion, at the published density."""
        return self.denser(nodes, side_m=1000.0 * (nodes / 100) ** 0.5, **changes)

    def denser(self, nodes: int, **changes: Any) -> Configuration:
        return self.cell(nodes=nodes, subscribers=nodes // 10, publishers=max(1, nodes // 50), **changes)

    def cells(self) -> list[Configuration]:
        return list(dict.fromkeys(self._all()))

    def runs(self) -> list[Configuration]:
        """All cells with the first seed first, so that an interrupted run says something about everything."""
        return [
            msgspec.structs.replace(cell, seed=self.first_seed + i)
            for i in range(self.seeds)
            for cell in self.cells()
            if not self.is_heavy(cell) or i < self.heavy_seeds
        ]

    def _all(self) -> Iterable[Configuration]:
        yield from (self.gossip(p) for p in self.probabilities)
        yield from (self.cell(credits=c) for c in CREDITS)
        if not self.gossip_only:
            yield from self._swept()
        if not self.claims_only:
            yield from self._beyond()

    def _swept(self) -> Iterable[Configuration]:
        for count in self.subscribers:
            yield from (self.cell(subscribers=count, credits=c) for c in SUBSCRIBER_CREDITS)
            yield from (self.gossip(p, subscribers=count) for p in (0.5, 1.0))
        for rate in self.rates_per_s:
            yield self.cell(rate_per_s=rate)
            yield from (self.gossip(p, rate_per_s=rate) for p in (0.3, 0.5, 1.0))
        for speed in self.speeds_mps:
            yield from (self.at_speed(speed, period_s=period) for period in PERIODS_S)
            yield from (self.at_speed(speed, **extra) for extra in SPEED_EXTRAS.values())
        for nodes in self.sizes:
            yield from (self.grown(nodes), self.grown(nodes, protocol="gossip", probability=0.5))
        for nodes in self.densities:
            yield from (self.denser(nodes), self.cell(nodes=nodes))
            yield from (self.denser(nodes, protocol="gossip", probability=p) for p in (0.3, 0.5, 1.0))

    def _beyond(self) -> Iterable[Configuration]:
        yield from (self.cell(**changes) for changes in READINGS.values())
        yield from (self.cell(**changes) for changes in CONTROLS.values())
        for place in PLACES.values():
            yield from (self.cell(**{**place, **changes}) for changes in BEYOND.values())


QUICK = Plan(
    seeds=3,
    warm_s=60.0,
    measure_s=60.0,
    rates_per_s=(0.1, 0.5, 2.5),
    speeds_mps=(1.0, 15.0, 40.0),
    sizes=(50, 100, 200),
    densities=(50, 100, 200),
    quick=True,
)
"""About four minutes on two quiet cores."""

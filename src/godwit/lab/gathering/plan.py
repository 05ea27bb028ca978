"""Which runs make up the published evaluation (spec data-gathering 4), its baselines, and the defect table (6.2-H)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from godwit.lab.gathering.races import VARIANTS
from godwit.lab.gathering.runs import SERVING, Configuration
from godwit.lab.studies import seed_by_seed

SIZES = (8, 16, 24, 32, 40, 48, 56, 64)
BITS = (1, 2, 4)
RADII = (1.0, 5.0, 12.0)
RIVAL_SIZES = (8, 24, 64)
MISSING = 0.05
JUDGED_RACES = (
    "as published",
    "epochs, pending handovers by epoch",
    "the same, 12 brokers, 2 pointers",
)
"""What C15 needs; `--defects` runs all."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    sizes: tuple[int, ...] = SIZES
    seeds: int = 10
    maps: int = 25
    """Of the main curve of S1, whose means differ from map to map more than the others."""
    close: int = 0
    """Of S2 with 64 brokers, if more than the others: ten maps left C7 too close to its tolerance to tell."""
    rival_seeds: int = 3
    races: int = 60
    joins: int = 300
    requests: int = 1000
    evaluation: bool = True
    """What was published, its baselines, and the races that C15 needs."""
    defects: bool = False
    """All races and joins."""
    quick: bool = False

    def s1(self, brokers: int, bits: int = 4, radius: float = 1.0, **others: object) -> Configuration:
        return self._cell("S1", brokers, bits=bits, radius=radius, **others)

    def s2(self, brokers: int, bits: int = 4) -> Configuration:
        return self._cell("S2", brokers, bits=bits)

    def m(self, brokers: int, scheme: str = "ring") -> Configuration:
        return self._cell("M", brokers, scheme=scheme)

    def race(self, variant: str) -> Configuration:
        return Configuration(seed=0, experiment="race", brokers=5, variant=variant)

    def join(self, serving: str) -> Configuration:
        return Configuration(seed=0, experiment="join", brokers=6, variant=serving)

    def _cell(self, experiment: str, brokers: int, **others: object) -> Configuration:
        return msgspec.convert(
            {"seed": 0, "experiment": experiment, "brokers": brokers, "requests": self.requests, **others},
            Configuration,
        )

    @property
    def rival_sizes(self) -> tuple[int, ...]:
        return tuple(size for size in RIVAL_SIZES if size in self.sizes)

    def runs(self) -> list[Configuration]:
        return seed_by_seed(self.cells())

    def cells(self) -> Iterable[tuple[Configuration, int]]:
        """Each setting with the number of its seeds."""
        if self.defects:
            yield from ((self.race(variant), self.races) for variant in VARIANTS)
            yield from ((self.join(serving), self.joins) for serving in SERVING)
        if self.evaluation:
            yield from self._evaluated()

    def _evaluated(self) -> Iterable[tuple[Configuration, int]]:
        for size in self.sizes:
            yield from ((self.s1(size, bits), self.seeds) for bits in BITS[:2])
            yield self.s1(size), self.maps
            yield from ((self.s1(size, 4, radius), self.seeds) for radius in RADII[1:])
            close = self.close if size == SIZES[-1] else 0
            yield from ((self.s2(size, bits), max(self.seeds, close)) for bits in BITS)
            yield self.s1(size, missing=MISSING), self.seeds
            yield self.m(size), self.seeds
        for size in self.rival_sizes:
            yield from ((self.s1(size, scheme=scheme), self.rival_seeds) for scheme in ("flooding", "rendezvous"))
            yield from ((self.m(size, scheme), self.rival_seeds) for scheme in ("resubscribing", "home only"))
        yield from ((self.race(variant), self.races) for variant in JUDGED_RACES)


QUICK = Plan(sizes=(8, 24, 64), seeds=3, maps=5, rival_seeds=1, races=20, requests=200, quick=True)
"""About half a minute on two quiet cores."""


def cost(one: Configuration) -> float:
    """Seconds, about: what is longest begins first."""
    weight = {"M": 0.03, "race": 0.02, "join": 0.01}.get(one.experiment, 0.003)
    return weight * one.brokers * one.requests / 1000 + 0.05


def named(one: Configuration) -> str:
    if one.variant:
        return f"{one.experiment}, {one.variant}"
    return f"{one.experiment}, {one.brokers} brokers" + (f", {one.scheme}" if one.scheme != "ring" else "")

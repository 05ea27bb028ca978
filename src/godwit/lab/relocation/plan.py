"""Which runs make up the published evaluation of mobility (spec content-routing 4.1, E6 to E9), and the trials."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from godwit.lab.relocation.networks import WIRINGS
from godwit.lab.relocation.runs import BATCH, BROKERS, DEPLOYED, FILTERS, MOBILITY, PROTOCOLS, Configuration
from godwit.lab.relocation.trials import VARIANTS
from godwit.lab.studies import seed_by_seed

SUBSCRIBERS, PUBLISHERS = 50, 1
TABLE = (
    "ping/pong",
    "ping/pong RP",
    "incomplete acyclic",
    "incomplete acyclic RP",
    "complete acyclic",
    "complete acyclic RP",
)
"""Those of table 5.4."""
JOINED = ("incomplete acyclic RP, joined", "complete acyclic RP, joined")
"""The second reading of two of them."""
RATIO = ("ping/pong", "incomplete acyclic", "complete acyclic")
"""Whose latencies are compared."""
THE_SPEC_TRIES = ("subscriptions, covering, forest", "subscriptions, covering, approximate forest", "adverts, covering")
"""200 and 250 trees of these (spec 6.4); fifty of each other kind."""
DEPLOYED_BROKERS = 32
"""The deployed tree is for some sixty brokers: beside it the other protocols run at its size too."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    seeds: int = 10
    handovers: int = 100
    subscribers: tuple[int, ...] = (5, 10, 20, 30, 40, 50, 75, 100)
    publishers: tuple[int, ...] = (1, 5, 10, 20)
    trials: int = 30
    """Batches of each way to move."""
    trees: int = 5
    """Batches of each kind of network."""
    deployed_handovers: int = 20
    further: int = 0
    """Topologies after the seeds, of what the ratio of latencies compares: ten left it at the edge of its tolerance."""
    fresh: int = 0
    """Topologies after those, of what C12 and C14 hang on, and twice as many for C15's covering and C17."""
    only_trials: bool = False
    quick: bool = False

    def cell(self, protocol: str, mobility: str = "border", filters: str = "one", **others: int) -> Configuration:
        return msgspec.convert(
            {
                "seed": 0,
                "protocol": protocol,
                "mobility": mobility,
                "filters": filters,
                "handovers": self.handovers,
                "subscribers": SUBSCRIBERS,
                "publishers": PUBLISHERS,
                **others,
            },
            Configuration,
        )

    def small(self, protocol: str) -> Configuration:
        """What the deployed broker plays too."""
        return self.cell(protocol, brokers=DEPLOYED_BROKERS, subscribers=16, handovers=self.deployed_handovers)

    def trial(self, variant: str) -> Configuration:
        return Configuration(seed=0, protocol="", variant=variant)

    def runs(self) -> list[Configuration]:
        """Seed by seed, but what was left open first and in all of its seeds."""
        first = [] if self.only_trials else [*self._fresh(), *seed_by_seed([*self._further(), *self._left_open()])]
        return list(dict.fromkeys([*first, *seed_by_seed(self.cells())]))

    def _fresh(self) -> list[Configuration]:
        """Their seeds begin where all others end."""
        means = [self.cell(protocol) for protocol in (*TABLE, *JOINED)]
        means += [self.cell(protocol, "full") for protocol in TABLE if protocol != "incomplete acyclic"]
        shares = [self.cell("complete acyclic", mobility, filters) for mobility in MOBILITY for filters in FILTERS]
        shares += [self.cell("complete acyclic", subscribers=count) for count in self.subscribers]
        runs = seed_by_seed([*((cell, self.fresh) for cell in means), *((cell, 2 * self.fresh) for cell in shares)])
        used = self.seeds + self.further
        return [msgspec.structs.replace(one, seed=one.seed + used) for one in runs]

    def _further(self) -> Iterable[tuple[Configuration, int]]:
        if self.further:
            yield from ((self.cell(protocol), self.seeds + self.further) for protocol in RATIO)

    def _left_open(self) -> Iterable[tuple[Configuration, int]]:
        """The settings of C13, C14 ratio, C15 path and C17."""
        for filters in FILTERS:
            yield from ((self.cell(protocol, "border", filters), self.seeds) for protocol in TABLE)
            yield self.cell("incomplete acyclic", "full", filters), self.seeds
            for count in self.subscribers:
                yield self.cell("complete acyclic", "border", filters, subscribers=count), self.seeds

    def cells(self) -> Iterable[tuple[Configuration, int]]:
        """Each setting with the number of its seeds."""
        yield from ((self.trial(variant), self.trials) for variant in VARIANTS)
        yield from ((self.trial(wiring), self.trees if wiring in THE_SPEC_TRIES else 1) for wiring in WIRINGS)
        if self.only_trials:
            return
        for mobility in MOBILITY:
            for filters in FILTERS:
                yield from ((self.cell(protocol, mobility, filters), self.seeds) for protocol in PROTOCOLS)
        for protocol in TABLE:
            for filters in FILTERS:
                yield from (
                    (self.cell(protocol, "border", filters, subscribers=count), self.seeds)
                    for count in self.subscribers
                )
            yield from ((self.cell(protocol, publishers=count), self.seeds) for count in self.publishers)
        yield from ((self.small(protocol), self.seeds) for protocol in (*PROTOCOLS, *DEPLOYED))


PUBLISHED = Plan(further=10, fresh=10)
SHORT = Plan(seeds=3, handovers=15, subscribers=(5, 10, 20, 50, 100), publishers=(1, 5, 20), deployed_handovers=10)
"""The trials in full: they are what decides whether a way to move is safe."""
QUICK = Plan(
    seeds=2,
    handovers=20,
    subscribers=(10, 20, 50),
    publishers=(1, 10),
    trials=2,
    trees=1,
    deployed_handovers=8,
    quick=True,
)
"""A few minutes of a core."""


def cost(one: Configuration) -> float:
    """Seconds, about, on a core of its own."""
    if one.variant:
        return 0.012 * BATCH if one.variant in VARIANTS else 0.04 * BATCH
    if one.protocol in DEPLOYED:
        return 20.0
    weight = {"ping/pong": 0.06, "ping/pong RP": 0.025}.get(one.protocol, 0.008)
    return weight * one.handovers * (one.brokers / BROKERS) * (1 + one.publishers / 10) + 0.1


def named(one: Configuration) -> str:
    if one.variant:
        return f"trials, {one.variant}"
    return f"{one.protocol}, {one.mobility}, {one.subscribers} subscribers, {one.publishers} publishers"

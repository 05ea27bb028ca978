"""What runs have shown: means over topologies of each setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from godwit.lab.evidence import BySetting
from godwit.lab.intervals import Interval, interval_if_any
from godwit.lab.relocation.plan import Plan
from godwit.lab.relocation.runs import Configuration, Result
from godwit.lab.results import Row

Quantity = Callable[[Result], float]
TOPOLOGIES_MIN = 3


class Evidence(BySetting[Configuration, Result]):
    """The results of a plan."""

    def __init__(self, plan: Plan, rows: Iterable[Row[Configuration, Result]]) -> None:
        super().__init__(rows)
        self.plan = plan

    def mean(self, quantity: Quantity, setting: Configuration) -> Interval | None:
        """Over topologies."""
        return _enough(super().mean(quantity, setting))

    def difference(self, quantity: Quantity, one: Configuration, other: Configuration) -> Interval | None:
        """`one` minus `other`, topology by topology."""
        return _enough(super().difference(quantity, one, other))

    def lead(self, quantity: Quantity, one: Configuration, other: Configuration, weight: float) -> Interval | None:
        """`one` minus so many times `other`, topology by topology."""
        here, there = self.values(quantity, one), self.values(quantity, other)
        return _enough(interval_if_any(value - weight * there[seed] for seed, value in here.items() if seed in there))

    def ratio(self, quantity: Quantity, one: Configuration, other: Configuration) -> Interval | None:
        """`one` by `other`, topology by topology."""
        here, there = self.values(quantity, one), self.values(quantity, other)
        return _enough(interval_if_any(value / there[seed] for seed, value in here.items() if there.get(seed)))

    def trials(self, variant: str) -> tuple[int, int]:
        """Those that went wrong, of how many."""
        results = self.results(self.plan.trial(variant))
        return sum(one.bad for one in results), sum(one.trials for one in results)

    def flaws(self) -> tuple[int, int]:
        """Events lost, repeated or strange in all replays, and how many handovers they had."""
        every = [one for one in self.every() if not one.trials]
        return sum(one.flaws for one in every), sum(one.moved for one in every)


def _enough(found: Interval | None) -> Interval | None:
    """Two topologies that happen to agree show nothing: their interval is as wide as that of one."""
    if found is None or found.runs >= TOPOLOGIES_MIN:
        return found
    return Interval(found.mean, math.inf, found.runs)


def signalling(result: Result) -> float:
    return result.signalling


def latency(result: Result) -> float:
    """In milliseconds."""
    return 1000 * result.latency_s


def direct(result: Result) -> float:
    return result.direct


def path(result: Result) -> float:
    return result.path

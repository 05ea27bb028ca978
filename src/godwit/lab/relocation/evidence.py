"""What runs have shown: means over topologies of each setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from godwit.lab.intervals import Interval, difference, interval_if_any
from godwit.lab.relocation.plan import Plan
from godwit.lab.relocation.runs import Configuration, Result
from godwit.lab.results import Row

Quantity = Callable[[Result], float]
TOPOLOGIES_MIN = 3


class Evidence:
    """The results of a plan, setting by setting; a setting is a configuration with seed 0."""

    def __init__(self, plan: Plan, rows: Iterable[Row[Configuration, Result]]) -> None:
        self.plan = plan
        self._found: dict[Configuration, dict[int, Result]] = {}
        for row in rows:
            setting = msgspec.structs.replace(row.configuration, seed=0)
            self._found.setdefault(setting, {})[row.configuration.seed] = row.result

    def results(self, setting: Configuration) -> list[Result]:
        return list(self._found.get(setting, {}).values())

    def mean(self, quantity: Quantity, setting: Configuration) -> Interval | None:
        return interval_if_any(map(quantity, self.results(setting)))

    def means(self, quantity: Quantity, settings: Sequence[Configuration]) -> list[Interval] | None:
        """None unless there are runs of each."""
        found = [self.mean(quantity, setting) for setting in settings]
        known = [mean for mean in found if mean is not None]
        return known if len(known) == len(found) and known else None

    def difference(self, quantity: Quantity, one: Configuration, other: Configuration) -> Interval | None:
        """`one` minus `other`, topology by topology."""
        return _enough(difference(self._by_seed(quantity, one), self._by_seed(quantity, other)))

    def ratio(self, quantity: Quantity, one: Configuration, other: Configuration) -> Interval | None:
        """`one` by `other`, topology by topology."""
        here, there = self._by_seed(quantity, one), self._by_seed(quantity, other)
        return _enough(interval_if_any(value / there[seed] for seed, value in here.items() if there.get(seed)))

    def _by_seed(self, quantity: Quantity, setting: Configuration) -> dict[int, float]:
        return {seed: quantity(result) for seed, result in self._found.get(setting, {}).items()}

    def trials(self, variant: str) -> tuple[int, int]:
        """Those that went wrong, of how many."""
        results = self.results(self.plan.trial(variant))
        return sum(one.bad for one in results), sum(one.trials for one in results)

    def flaws(self) -> tuple[int, int]:
        """Events lost, repeated or strange in all replays, and how many handovers they had."""
        every = [one for found in self._found.values() for one in found.values() if not one.trials]
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

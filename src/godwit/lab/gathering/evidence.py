"""What runs have shown: means over maps of each setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from godwit.lab.gathering.plan import Plan
from godwit.lab.gathering.runs import Configuration, Result
from godwit.lab.intervals import Interval, difference, interval_if_any
from godwit.lab.results import Row

Quantity = Callable[[Result], float]


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
        """`one` minus `other`, map by map."""
        here = {seed: quantity(result) for seed, result in self._found.get(one, {}).items()}
        there = {seed: quantity(result) for seed, result in self._found.get(other, {}).items()}
        return difference(here, there)

    def bad(self, setting: Configuration) -> tuple[int, int]:
        """Runs that went wrong, of how many."""
        results = self.results(setting)
        return sum(result.bad for result in results), len(results)

    def series(self) -> dict[str, Any] | None:
        """What one run of M at 24 brokers looked like over time: the one whose client was away longest."""
        told = [result.series for result in self.results(self.plan.m(24)) if result.series]
        decoded = [msgspec.json.decode(one) for one in told]
        return max(decoded, key=lambda one: len(one["short"]["associations"]), default=None)

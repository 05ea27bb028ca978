"""What runs have shown: means over seeds of each setting, and differences between settings in the same worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import msgspec

from godwit.lab.adhoc.plan import Plan
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.intervals import Interval, interval_if_any
from godwit.lab.results import Row

Quantity = Callable[[Result], float]


def delivery(result: Result) -> float:
    return result.delivery


def overhead(result: Result) -> float:
    return result.overhead


def beacon_share(result: Result) -> float:
    return result.beacon_share


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

    def by_seed(self, setting: Configuration) -> dict[int, Result]:
        return self._found.get(setting, {})

    def mean(self, quantity: Quantity, setting: Configuration) -> Interval | None:
        return interval_if_any(map(quantity, self.results(setting)))

    def means(self, quantity: Quantity, settings: Iterable[Configuration]) -> list[Interval] | None:
        """None unless there are runs of each."""
        found = [self.mean(quantity, setting) for setting in settings]
        known = [mean for mean in found if mean is not None]
        return known if len(known) == len(found) else None

    def difference(self, quantity: Quantity, one: Configuration, other: Configuration) -> Interval | None:
        """`one` minus `other`, seed by seed."""
        here, there = self._found.get(one, {}), self._found.get(other, {})
        return interval_if_any(quantity(here[seed]) - quantity(there[seed]) for seed in here if seed in there)


def crossing(xs: Sequence[float], ys: Sequence[float], y: float) -> float | None:
    """Where the line through the points last rises to `y`; None where it does not."""
    found = None
    for (x0, y0), (x1, y1) in pairwise(zip(xs, ys, strict=True)):
        if y0 <= y <= y1 and y1 > y0:
            found = x0 + (x1 - x0) * (y - y0) / (y1 - y0)
    return found


def between(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """The height of the line through the points at `x`, which lies among them."""
    for (x0, y0), (x1, y1) in pairwise(zip(xs, ys, strict=True)):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    raise ValueError(f"{x} is outside {xs[0]}..{xs[-1]}")

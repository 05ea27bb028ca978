"""What runs have shown: means over maps of each setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from godwit.lab.evidence import BySetting
from godwit.lab.gathering.plan import Plan
from godwit.lab.gathering.runs import Configuration, Result
from godwit.lab.results import Row

Quantity = Callable[[Result], float]


class Evidence(BySetting[Configuration, Result]):
    """The results of a plan."""

    def __init__(self, plan: Plan, rows: Iterable[Row[Configuration, Result]]) -> None:
        super().__init__(rows)
        self.plan = plan

    def bad(self, setting: Configuration) -> tuple[int, int]:
        """Runs that went wrong, of how many."""
        results = self.results(setting)
        return sum(result.bad for result in results), len(results)

    def series(self) -> dict[str, Any] | None:
        """What one run of M at 24 brokers looked like over time: the one whose client moved the most."""
        return max(self.every_series(), key=lambda one: len(one["short"]["associations"]), default=None)

    def every_series(self) -> list[dict[str, Any]]:
        """What every run of M at 24 brokers looked like over time."""
        return [msgspec.json.decode(one.series) for one in self.results(self.plan.m(24)) if one.series]

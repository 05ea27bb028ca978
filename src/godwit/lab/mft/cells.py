"""Figures of a grid: means over seeds, and differences between runs that saw the same world."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

import msgspec

from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import Result

Quantity = Callable[[Result], float]


class Mean(msgspec.Struct, frozen=True):
    """`error` is the standard error; infinite for a single run, about whose spread nothing is known."""

    mean: float
    error: float
    runs: int

    @property
    def is_positive(self) -> bool | None:
        """None where zero is within two standard errors."""
        if not abs(self.mean) > 2 * self.error:
            return None
        return self.mean > 0

    def __str__(self) -> str:
        spread = f" ± {self.error:.2g}" if math.isfinite(self.error) else ""
        return f"{round(self.mean, 9):.3g}{spread}"


def mean_of(values: Iterable[float]) -> Mean | None:
    """None where there are no values."""
    known = list(values)
    if not known:
        return None
    error = statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else math.inf
    return Mean(statistics.fmean(known), error, len(known))


class Cells:
    """The rows of a grid by protocol, size and speed."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.protocols = list(dict.fromkeys(row.configuration.protocol for row in rows))
        self.sizes = sorted({row.configuration.size for row in rows})
        self.speeds = sorted({row.configuration.speed_mps for row in rows})
        self._known = {
            (c.protocol, c.size, c.speed_mps, c.seed): row.result for row in rows for c in [row.configuration]
        }

    def results(self, protocol: str, size: int, speed_mps: float | None = None) -> list[Result]:
        """Of one cell, or of one size at all speeds."""
        return [
            result
            for (a, b, c, _), result in self._known.items()
            if (a, b) == (protocol, size) and speed_mps in (None, c)
        ]

    def mean(self, quantity: Quantity, protocol: str, size: int, speed_mps: float | None = None) -> Mean | None:
        return mean_of(map(quantity, self.results(protocol, size, speed_mps)))

    def between_protocols(
        self, quantity: Quantity, one: str, other: str, sizes: Sequence[int], speeds: Sequence[float]
    ) -> Mean | None:
        """`one` minus `other`, run by run in the same world."""
        return mean_of(
            quantity(result) - quantity(self._known[other, size, speed, seed])
            for (protocol, size, speed, seed), result in self._known.items()
            if protocol == one and size in sizes and speed in speeds and (other, size, speed, seed) in self._known
        )

    def between_speeds(self, quantity: Quantity, protocol: str, fast: float, slow: float) -> Mean | None:
        """Fast minus slow, for each size and seed that has both."""
        return mean_of(
            quantity(result) - quantity(self._known[protocol, size, slow, seed])
            for (name, size, speed, seed), result in self._known.items()
            if (name, speed) == (protocol, fast) and (protocol, size, slow, seed) in self._known
        )

    def between_sizes(self, quantity: Quantity, protocol: str, large: int, small: int) -> Mean | None:
        """Large minus small, for each speed and seed that has both."""
        return mean_of(
            quantity(result) - quantity(self._known[protocol, small, speed, seed])
            for (name, size, speed, seed), result in self._known.items()
            if (name, size) == (protocol, large) and (protocol, small, speed, seed) in self._known
        )

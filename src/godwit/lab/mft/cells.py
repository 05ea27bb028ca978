"""Figures of a grid: means over seeds, and differences between runs that saw the same world.

Nodes of one seed roll the same dice at every size and speed, so that a seed is one world however many cells it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from godwit.lab.intervals import Interval, of_worlds
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import Result

Quantity = Callable[[Result], float]
Cell = tuple[str, int, float, int]
"""Protocol, size, speed and seed."""


class Cells:
    """The rows of a grid by protocol, size and speed."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.protocols = list(dict.fromkeys(row.configuration.protocol for row in rows))
        self.sizes = sorted({row.configuration.size for row in rows})
        self.speeds = sorted({row.configuration.speed_mps for row in rows})
        self._known: dict[Cell, Result] = {
            (c.protocol, c.size, c.speed_mps, c.seed): row.result for row in rows for c in [row.configuration]
        }

    def results(self, protocol: str, size: int, speed_mps: float | None = None) -> list[Result]:
        """Of one cell, or of one size at all speeds."""
        return [result for _, result in self._of(protocol, size, speed_mps)]

    def mean(self, quantity: Quantity, protocol: str, size: int, speed_mps: float | None = None) -> Interval | None:
        return of_worlds((seed, quantity(result)) for seed, result in self._of(protocol, size, speed_mps))

    def between_protocols(
        self, quantity: Quantity, one: str, other: str, sizes: Sequence[int], speeds: Sequence[float]
    ) -> Interval | None:
        """`one` minus `other`, run by run in the same world."""
        return of_worlds(
            (seed, quantity(result) - quantity(self._known[other, size, speed, seed]))
            for (protocol, size, speed, seed), result in self._known.items()
            if protocol == one and size in sizes and speed in speeds and (other, size, speed, seed) in self._known
        )

    def between_speeds(self, quantity: Quantity, protocol: str, fast: float, slow: float) -> Interval | None:
        """Fast minus slow, for each size and seed that has both."""
        return of_worlds(
            (seed, quantity(result) - quantity(self._known[protocol, size, slow, seed]))
            for (name, size, speed, seed), result in self._known.items()
            if (name, speed) == (protocol, fast) and (protocol, size, slow, seed) in self._known
        )

    def between_sizes(self, quantity: Quantity, protocol: str, large: int, small: int) -> Interval | None:
        """Large minus small, for each speed and seed that has both."""
        return of_worlds(
            (seed, quantity(result) - quantity(self._known[protocol, small, speed, seed]))
            for (name, size, speed, seed), result in self._known.items()
            if (name, size) == (protocol, large) and (protocol, small, speed, seed) in self._known
        )

    def _of(self, protocol: str, size: int, speed_mps: float | None) -> Iterator[tuple[int, Result]]:
        for (name, nodes, speed, seed), result in self._known.items():
            if (name, nodes) == (protocol, size) and speed_mps in (None, speed):
                yield seed, result

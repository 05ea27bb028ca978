"""How long things took, in few numbers: so many took at most so long."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

BOUNDS_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0),
)


class Histogram:
    """One thread adds; others may read meanwhile, and see it nearly as it is."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, took_s: float) -> None:
        took_s = max(took_s, 0.0)
        self.counts[bisect_left(BOUNDS_S, took_s)] += 1
        self.sum_s += took_s

    def buckets(self) -> list[tuple[str, float]]:
        """As Prometheus wants them: how many took at most so long, for each bound and for infinity."""
        names = [*(f"{bound:g}" for bound in BOUNDS_S), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))

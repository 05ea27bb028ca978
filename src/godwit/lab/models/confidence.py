"""Means of a few runs and how far to trust them (spec proactive-handoff 3.7)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

import msgspec


class Interval(msgspec.Struct, frozen=True):
    """Mean ± half; half is infinite for a single run, about whose spread nothing is known."""

    mean: float
    half: float
    runs: int

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def overlaps(self, low: float, high: float) -> bool:
        return self.low <= high and low <= self.high

    def __str__(self) -> str:
        return f"{self.mean:.4g}" + (f" ± {self.half:.2g}" if math.isfinite(self.half) else "")


def interval(values: Iterable[float], confidence: float = 0.95) -> Interval:
    """By Student's t; of five runs 2.776 standard errors."""
    known = list(values)
    if not known:
        raise ValueError("no runs, no mean")
    if len(known) == 1:
        return Interval(known[0], math.inf, 1)
    half = student(len(known) - 1, confidence) * statistics.stdev(known) / math.sqrt(len(known))
    return Interval(statistics.fmean(known), half, len(known))


def student(freedom: int, confidence: float = 0.95) -> float:
    """The two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))

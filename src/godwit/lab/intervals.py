"""Means of a few runs and how far to trust them, by Student's t with the degrees of freedom that there are.

What is pooled must come from independent worlds: runs of one seed share their dice, so that they are averaged first
and count as one (`of_worlds`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping

import msgspec

CONFIDENCE = 0.95


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

    @property
    def is_positive(self) -> bool | None:
        """None where zero is within the interval."""
        return self.exceeds(0.0)

    def exceeds(self, limit: float) -> bool | None:
        """Whether the mean is above a limit; None where the interval cannot tell."""
        if self.low <= limit <= self.high:
            return None
        return self.mean > limit

    def within(self, low: float, high: float) -> bool | None:
        """True where the whole interval is between the limits, False where it is outside, else None."""
        if low <= self.low and self.high <= high:
            return True
        return None if self.overlaps(low, high) else False

    def scaled(self, by: float) -> Interval:
        """In another unit; `by` is above zero."""
        return Interval(self.mean * by, self.half * by, self.runs)

    def overlaps(self, low: float, high: float) -> bool:
        return self.low <= high and low <= self.high

    def __str__(self) -> str:
        return f"{round(self.mean, 9):.3g}" + (f" ± {self.half:.2g}" if math.isfinite(self.half) else "")


def interval(values: Iterable[float], confidence: float = CONFIDENCE) -> Interval:
    """By Student's t; of five runs 2.776 standard errors."""
    known = list(values)
    if not known:
        raise ValueError("no runs, no mean")
    if len(known) == 1:
        return Interval(known[0], math.inf, 1)
    half = student(len(known) - 1, confidence) * statistics.stdev(known) / math.sqrt(len(known))
    return Interval(statistics.fmean(known), half, len(known))


def interval_if_any(values: Iterable[float]) -> Interval | None:
    """None where there are no values."""
    known = list(values)
    return interval(known) if known else None


def of_worlds(values: Iterable[tuple[int, float]]) -> Interval | None:
    """Of (seed, value) pairs: the values of a seed are averaged, and the seeds are what there is to count."""
    by_seed: dict[int, list[float]] = {}
    for seed, value in values:
        by_seed.setdefault(seed, []).append(value)
    return interval_if_any(statistics.fmean(own) for own in by_seed.values())


def difference(one: Mapping[int, float], other: Mapping[int, float]) -> Interval | None:
    """`one` minus `other`, seed by seed in the same worlds."""
    return interval_if_any(value - other[seed] for seed, value in one.items() if seed in other)


def welch(one: Iterable[float], other: Iterable[float], confidence: float = CONFIDENCE) -> Interval:
    """`one` minus `other` of different worlds, with Welch's degrees of freedom."""
    here, there = list(one), list(other)
    apart = statistics.fmean(here) - statistics.fmean(there)
    if min(len(here), len(there)) < 2:
        return Interval(apart, math.inf, len(here) + len(there))
    parts = [statistics.variance(own) / len(own) for own in (here, there)]
    if not sum(parts):
        return Interval(apart, 0.0, len(here) + len(there))
    freedom = sum(parts) ** 2 / sum(part**2 / (len(own) - 1) for part, own in zip(parts, (here, there), strict=True))
    return Interval(apart, student(freedom, confidence) * math.sqrt(sum(parts)), len(here) + len(there))


def student(freedom: float, confidence: float = CONFIDENCE) -> float:
    """The two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))

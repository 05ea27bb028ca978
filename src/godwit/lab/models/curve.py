"""Throughput of a broker by the number of its subscribers: a cubic, fitted or published (proactive-handoff 3.6)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np


class Curve(msgspec.Struct, frozen=True):
    """y = c3 x³ + c2 x² + c1 x + c0 + dummy · (active dummies), known from data between `low` and `high`."""

    c3: float
    c2: float
    c1: float
    c0: float
    low: float
    high: float
    r_squared: float
    dummy: float = 0.0
    """F44: what one wakeful stand-in changes; 0 in the published model, which ignores them."""

    def __call__(self, subscribers: float, dummies: float = 0.0) -> float:
        x = subscribers
        return ((self.c3 * x + self.c2) * x + self.c1) * x + self.c0 + self.dummy * dummies

    def extrapolates(self, subscribers: float) -> bool:
        """Whether no data say anything about this point: a cubic turns where it likes beyond them."""
        return not self.low <= subscribers <= self.high


PUBLISHED = Curve(0.0019, -0.2256, 12.362, 1.7111, low=0.0, high=44.0, r_squared=0.9198)
"""(6.18); beyond about 44 subscribers per broker it accelerates, which no broker does."""


def fit(x: Sequence[float], y: Sequence[float], dummies: Sequence[float] | None = None) -> Curve:
    """Least squares; with `dummies` the refined model of F44. At least as many different points as coefficients."""
    columns = [np.asarray(x, float) ** power for power in (3, 2, 1, 0)]
    if dummies is not None:
        columns.append(np.asarray(dummies, float))
    design, target = np.stack(columns, axis=1), np.asarray(y, float)
    coefficients, _, rank, _ = np.linalg.lstsq(design, target, rcond=None)
    if rank < design.shape[1]:
        raise ValueError(f"{len(set(x))} different points do not determine {design.shape[1]} coefficients")
    c3, c2, c1, c0, *dummy = map(float, coefficients)
    residual = float(((target - design @ coefficients) ** 2).sum())
    spread = float(((target - target.mean()) ** 2).sum())
    r_squared = 1 - residual / spread if spread else 1.0
    return Curve(c3, c2, c1, c0, min(x), max(x), r_squared, *dummy)

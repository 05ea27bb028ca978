"""Delivery over probability as a sigmoid (E1a): where it rises, how steeply, and how well it fits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np


class Sigmoid(msgspec.Struct, frozen=True):
    """top / (1 + exp(-(p - middle) / width))."""

    top: float
    middle: float
    width: float
    r_squared: float

    @property
    def steepest(self) -> float:
        """The rise in the middle, for a whole unit of probability."""
        return self.top / (4 * self.width)

    def __str__(self) -> str:
        return (
            f"to {self.top:.2f}, half of it at p {self.middle:.2f}, steepest {self.steepest / 10:.2f} for 0.1,"
            f" R² {self.r_squared:.3f}"
        )


def fitted(x: Sequence[float], y: Sequence[float]) -> Sigmoid:
    """By least squares; the best of a grid of middles and widths, for each of which the top is linear."""
    at, height = np.asarray(x, float), np.asarray(y, float)
    spread = float(((height - height.mean()) ** 2).sum())
    best: tuple[float, float, float, float] | None = None
    for middle in np.linspace(0.02, 0.98, 97):
        for width in np.geomspace(0.01, 0.5, 60):
            shape = 1 / (1 + np.exp(-np.clip((at - middle) / width, -60, 60)))
            top = float(np.clip(shape @ height / (shape @ shape), 0.0, 1.0))
            residual = float(((height - top * shape) ** 2).sum())
            if best is None or residual < best[0]:
                best = residual, top, float(middle), float(width)
    assert best is not None
    residual, top, middle, width = best
    return Sigmoid(top, middle, width, 1 - residual / spread if spread else 1.0)

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
    middle, width = (grid.ravel() for grid in np.meshgrid(np.linspace(0.02, 0.98, 97), np.geomspace(0.01, 0.5, 60)))
    shape = 1 / (1 + np.exp(-np.clip((at - middle[:, None]) / width[:, None], -60, 60)))
    top = np.clip(shape @ height / (shape * shape).sum(axis=1), 0.0, 1.0)
    residual = ((height - top[:, None] * shape) ** 2).sum(axis=1)
    best = int(residual.argmin())
    spread = float(((height - height.mean()) ** 2).sum())
    r_squared = 1 - float(residual[best]) / spread if spread else 1.0
    return Sigmoid(float(top[best]), float(middle[best]), float(width[best]), r_squared)

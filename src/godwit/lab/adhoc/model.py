"""Elapsed time as distance (spec manet-cbr 3): two nodes on a torus, and how far apart they are k ticks after the link
between them broke, given that it has not come back. Solved exactly, by pushing the whole distribution forward.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import msgspec
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
MOVES = (-1, 0, 1)


class Torus(msgspec.Struct, frozen=True, kw_only=True):
    """2A x 2A points; a link reaches to L - 1. `alpha` is how surely an axis at rest stays at rest, `beta` how surely a
    moving one moves on."""

    half_side: int = 20
    reach: int = 10
    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if not (0 <= self.alpha < 1 and 0 <= self.beta < 1):
            raise ValueError(f"alpha {self.alpha:g}, beta {self.beta:g}: both from 0 to below 1")
        if not 1 <= self.reach < self.half_side:
            raise ValueError(f"reach {self.reach}: from 1 to below half the side, {self.half_side}")

    @property
    def speed(self) -> float:
        """s: the mean absolute relative speed of an axis. The published text calls it the chance of one direction; it
        is that of both together."""
        return (1 - self.alpha) / (2 - self.alpha - self.beta)

    @property
    def stationary(self) -> dict[int, float]:
        return {-1: self.speed / 2, 0: 1 - self.speed, 1: self.speed / 2}

    def next_move(self, before: int, after: int) -> float:
        """The chance of a move after another; nobody turns round without stopping."""
        if before == 0:
            return self.alpha if after == 0 else (1 - self.alpha) / 2
        if after == before:
            return self.beta
        return 1 - self.beta if after == 0 else 0.0

    def distances(self) -> Array:
        """Of every point from the origin, the larger of both axes'."""
        axis = np.minimum(np.arange(2 * self.half_side), 2 * self.half_side - np.arange(2 * self.half_side))
        found: Array = np.maximum(axis[:, None], axis[None, :]).astype(float)
        return found


def torus_of(speed: float, beta: float, *, half_side: int = 20, reach: int = 10) -> Torus:
    """With this mean speed: alpha follows."""
    return Torus(half_side=half_side, reach=reach, alpha=1 - speed * (1 - beta) / (1 - speed), beta=beta)


def start(torus: Torus) -> list[tuple[int, int, int, int, float]]:
    """The first tick after the break: x, y, both moves and their chance, on one of the eight equal half-edges.

    The point before must have been inside, so that x grew; at the corner both did.
    """
    reach, chance = torus.reach, torus.stationary
    found = []
    for y in range(reach + 1):
        moves = {reach: (1,), reach - 1: (0, 1)}.get(y, MOVES)
        total = chance[1] * sum(chance[m] for m in moves)
        found += [(reach, y, 1, m, chance[1] * chance[m] / total / (reach + 1)) for m in moves]
    return found


def expected_distances(torus: Torus, ticks: int) -> list[float]:
    """E[D(k)] for k from 0 to `ticks`.

    The chance at k is conditioned on no reconnection before k, separately for each start, as the spec's recurrence
    says; starts keep their first weights.
    """
    starts = start(torus)
    weights = np.array([one[4] for one in starts])
    side = 2 * torus.half_side
    state = np.zeros((len(starts), 3, 3, side, side))
    for number, (x, y, mx, my, _) in enumerate(starts):
        state[number, mx + 1, my + 1, x, y] = 1.0
    apart, distances = torus.distances() >= torus.reach, torus.distances()
    law = np.array([[torus.next_move(before, after) for after in MOVES] for before in MOVES])
    found = [_expected(state, weights, distances)]
    for _ in range(ticks):
        state = _stepped(state * apart, law)
        state /= state.sum(axis=(1, 2, 3, 4), keepdims=True)
        found.append(_expected(state, weights, distances))
    return found


def _stepped(state: Array, law: Array) -> Array:
    """Draw the next move of each axis, then make it."""
    starts, _, _, side, _ = state.shape
    drawn = law.T @ (law.T @ state.reshape(starts, 3, -1)).reshape(starts, 3, 3, side * side)
    drawn = drawn.reshape(state.shape)
    moved: Array = np.empty_like(drawn)
    for mx, my in product(MOVES, MOVES):
        moved[:, mx + 1, my + 1] = np.roll(drawn[:, mx + 1, my + 1], (mx, my), axis=(1, 2))
    return moved


def _expected(state: Array, weights: Array, distances: Array) -> float:
    return float(weights @ state.sum(axis=(1, 2)).reshape(len(weights), -1) @ distances.ravel())


def simulated_distances(torus: Torus, ticks: int, walks: int, dice: Random) -> list[float]:
    """The same by walking: each start tried as often, and walks that met again before k do not count at k."""
    totals: list[float] = [0.0] * (ticks + 1)
    for x, y, mx, my, weight in start(torus):
        sums, counts = [0.0] * (ticks + 1), [0] * (ticks + 1)
        for _ in range(walks):
            _walk(torus, (x, y, mx, my), sums, counts, dice)
        for k in range(ticks + 1):
            totals[k] += weight * sums[k] / counts[k] if counts[k] else 0.0
    return totals


def _walk(torus: Torus, at: tuple[int, int, int, int], sums: list[float], counts: list[int], dice: Random) -> None:
    side = 2 * torus.half_side
    x, y, mx, my = at
    for k in range(len(sums)):
        if k:
            mx, my = _drawn(torus, mx, dice), _drawn(torus, my, dice)
            x, y = (x + mx) % side, (y + my) % side
        distance = max(min(x, side - x), min(y, side - y))
        sums[k] += distance
        counts[k] += 1
        if distance < torus.reach:
            return


def _drawn(torus: Torus, before: int, dice: Random) -> int:
    if before == 0:
        return 0 if dice.random() < torus.alpha else dice.choice((-1, 1))
    return before if dice.random() < torus.beta else 0

"""The four-state chain of messaging costs and the bounds R1 and R2 (spec proactive-handoff 3.2).

States: 0 connected, 1 disconnected, 2 handing off to a neighbor, 3 handing off to a non-neighbor; the source's list
swaps the last two (G2).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

TAU_S = 0.001
"""How often the chain is sampled."""

PROACTIVE_S, REACTIVE_S = 0.32, 3.29
"""Mean handoff times of the testbed."""

MATCHING_WORST_S, MATCHING_BEST_S = 7.5, 0.32
"""Handoff times to non-neighbors that give the quoted values of R2, found by fitting (G8); specified is 3.29 s."""


class Jumps(msgspec.Struct, frozen=True):
    """Where a subscriber goes when it leaves a state; both handoff states lead back to connected."""

    a01: float
    a02: float
    a03: float
    a10: float
    a12: float
    a13: float

    def __post_init__(self) -> None:
        for row in ((self.a01, self.a02, self.a03), (self.a10, self.a12, self.a13)):
            if min(row) < 0 or not math.isclose(sum(row), 1.0):
                raise ValueError(f"jump probabilities {row} must be at least 0 and sum to 1")


CASES = {
    1: Jumps(0.1, 0.7, 0.2, 0.4, 0.4, 0.2),
    2: Jumps(0.2, 0.4, 0.4, 0.1, 0.7, 0.2),
    3: Jumps(0.2, 0.7, 0.1, 0.2, 0.7, 0.1),
    4: Jumps(0.2, 0.6, 0.2, 0.3, 0.6, 0.1),
    5: Jumps(0.4, 0.5, 0.1, 0.3, 0.5, 0.2),
}


class Sojourn(msgspec.Struct, frozen=True, kw_only=True):
    """Mean residence in each state: 1/λ0 to 1/λ3."""

    connected_s: float
    away_s: float
    neighbor_s: float
    stranger_s: float

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} {getattr(self, name):g}: must be more than 0 and finite")

    def leaving(self, tau_s: float = TAU_S) -> tuple[float, float, float, float]:
        """The probability of leaving each state within one sample."""
        means = (self.connected_s, self.away_s, self.neighbor_s, self.stranger_s)
        p0, p1, p2, p3 = (-math.expm1(-tau_s / mean) for mean in means)
        return p0, p1, p2, p3


def reactive(connected_s: float, away_s: float) -> Sojourn:
    return Sojourn(connected_s=connected_s, away_s=away_s, neighbor_s=REACTIVE_S, stranger_s=REACTIVE_S)


def proactive(connected_s: float, away_s: float, stranger_s: float = REACTIVE_S) -> Sojourn:
    return Sojourn(connected_s=connected_s, away_s=away_s, neighbor_s=PROACTIVE_S, stranger_s=stranger_s)


def transitions(jumps: Jumps, stays: Sojourn, tau_s: float = TAU_S) -> np.ndarray:
    """The matrix (3.7)."""
    p0, p1, p2, p3 = stays.leaving(tau_s)
    j = jumps
    return np.array(
        [
            [1 - p0, j.a01 * p0, j.a02 * p0, j.a03 * p0],
            [j.a10 * p1, 1 - p1, j.a12 * p1, j.a13 * p1],
            [p2, 0.0, 1 - p2, 0.0],
            [p3, 0.0, 0.0, 1 - p3],
        ]
    )


def stationary(jumps: Jumps, stays: Sojourn, tau_s: float = TAU_S) -> tuple[float, float, float, float]:
    """(3.15): the share of time in each state."""
    p0, p1, p2, p3 = stays.leaving(tau_s)
    weights = (
        p1 * p2 * p3,
        jumps.a01 * p0 * p2 * p3,
        (jumps.a02 + jumps.a01 * jumps.a12) * p0 * p1 * p3,
        (jumps.a03 + jumps.a01 * jumps.a13) * p0 * p1 * p2,
    )
    phi = sum(weights)
    w0, w1, w2, w3 = weights
    return w0 / phi, w1 / phi, w2 / phi, w3 / phi


def average(jumps: Jumps, stays: Sojourn, costs: np.ndarray) -> float:
    """(3.8): what is sent per second. Not weighted by the leaving probabilities: published numbers come out only so."""
    j = jumps
    alpha = np.array([[0, j.a01, j.a02, j.a03], [j.a10, 0, j.a12, j.a13], [1, 0, 0, 0], [1, 0, 0, 0]])
    return float(np.array(stationary(jumps, stays)) @ (alpha * costs).sum(axis=1))


def reactive_costs(shipping: float, control: float = 0.0) -> np.ndarray:
    costs = np.zeros((4, 4))
    costs[2, 0] = costs[3, 0] = shipping + control
    return costs


def proactive_costs(caching: float, shipping: float, control: float = 0.0) -> np.ndarray:
    """(3.9)."""
    costs = np.zeros((4, 4))
    costs[1, :] = caching + control
    costs[3, 0] = shipping + control
    return costs


def durable_costs(storing: float) -> np.ndarray:
    return np.full((4, 4), storing)


def r1(jumps: Jumps, connected_s: float, away_s: float, stranger_s: float = REACTIVE_S) -> float:
    """(3.16): pro-active is cheaper than reactive where caching over shipping is below this."""
    r = stationary(jumps, msgspec.structs.replace(reactive(connected_s, away_s), stranger_s=stranger_s))
    p = stationary(jumps, proactive(connected_s, away_s, stranger_s))
    return (r[2] + r[3] - p[3]) / p[1]


def r2(
    jumps: Jumps, connected_s: float, away_s: float, shipping_over_caching: float, stranger_s: float = REACTIVE_S
) -> float:
    """(3.17): pro-active is cheaper than durable where caching over storing everywhere is below this."""
    p = stationary(jumps, proactive(connected_s, away_s, stranger_s))
    return 1 / (p[1] + shipping_over_caching * p[3])


def caching_over_shipping(
    copies: float, away_s: float, stranger_s: float = REACTIVE_S, shipments: float = 1.0
) -> float:
    """ξn/ξm: `copies` (N1) extra sends to neighbors against `shipments` (N2) of the whole backlog."""
    return copies / shipments * stranger_s / away_s


def caching_over_storing(copies: float, stores: float) -> float:
    """ξn/ξn3."""
    return copies / stores

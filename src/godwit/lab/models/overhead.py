"""What the pro-active scheme costs per handoff, and how good its neighbor graph is (spec proactive-handoff 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Subscription = TypeVar("Subscription")


def propagation(subscriptions: int, neighbors: int) -> int:
    """(3.2): every subscription is stored on every neighbor."""
    return subscriptions * neighbors


def propagation_covered(
    subscriptions: Sequence[Subscription], neighbors: int, covers: Callable[[Subscription, Subscription], bool]
) -> int:
    """(3.3): only those count that none propagated before them covers; `covers(a, b)`: all that matches b matches a."""
    propagated: list[Subscription] = []
    for subscription in subscriptions:
        if not any(covers(earlier, subscription) for earlier in propagated):
            propagated.append(subscription)
    return len(propagated) * neighbors


def caching(covered: Sequence[Sequence[bool]], rate_per_s: float, away_s: float) -> float:
    """(3.4): messages cached while the subscriber is away, where a neighbor does not store them for somebody else.

    `covered` has a row for each subscription and in it a flag for each neighbor. The source's sign would charge less
    for uncovered subscriptions (G11); counted are the neighbors at which a subscription is not covered.
    """
    return rate_per_s * away_s * sum(not flag for row in covered for flag in row)


def total(propagated: float, cached: float) -> float:
    """(3.1)."""
    return propagated + cached


def false_negatives(additions: int, handoffs: int) -> float:
    """(3.5): the share of handoffs in a window that met no edge; 0 where nobody moved."""
    return additions / handoffs if handoffs else 0.0


def false_positives(removals: int, edge_timeout_s: float, residence_s: Iterable[float]) -> float:
    """(3.6): the share of edge time that was waiting for removal; `residence_s` of each edge within the window."""
    total_s = sum(residence_s)
    return removals * edge_timeout_s / total_s if total_s else 0.0

"""Where subscribers are in the long run, and how many at each broker (spec proactive-handoff 3.3 to 3.5, 3.7)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import msgspec
import numpy as np

Graph = Mapping[str, Collection[str]]
"""Who is next to whom, both ways."""

Z_95 = 1.96


class Stays(msgspec.Struct, frozen=True):
    """Mean stays of the mobility process; the defaults of the testbed."""

    connect_s: float = 60.0
    disconnect_s: float = 12.0
    handoff_s: float = 3.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} {getattr(self, name):g}: must be more than 0 and finite")

    @property
    def cycle_s(self) -> float:
        """From one arrival at a broker to the next: 4/3 connects, 2/3 disconnects and a handoff."""
        return (4 * self.connect_s + 2 * self.disconnect_s) / 3 + self.handoff_s


class Shares(msgspec.Struct, frozen=True):
    """Of a subscriber's time in the random pattern: at one broker, disconnected, in handoff."""

    broker: float
    disconnect: float
    handoff: float


def random_shares(brokers: int, stays: Stays) -> Shares:
    """(6.4) to (6.9), closed. The chain goes from disconnect to any broker, which is off by less than 1 % (G18)."""
    n = brokers
    beta, delta = 1 / (2 * stays.connect_s), 1 / ((n + 1) * stays.disconnect_s)
    alpha = 1 / (n * stays.handoff_s)
    handoff = (n + 2) * beta / ((n + 1) * alpha)
    disconnect = n * beta / ((n + 1) * delta)
    broker = 1 / (n + handoff + disconnect)
    return Shares(broker, disconnect * broker, handoff * broker)


def random_generator(brokers: int, stays: Stays) -> np.ndarray:
    """The matrix M of 3.4: handoff, disconnect, then the brokers."""
    n = brokers
    beta, delta = 1 / (2 * stays.connect_s), 1 / ((n + 1) * stays.disconnect_s)
    alpha = 1 / (n * stays.handoff_s)
    m = np.zeros((n + 2, n + 2))
    m[0, 2:] = alpha
    m[1, 0] = m[1, 2:] = delta
    m[2:, 0] = m[2:, 1] = beta
    return _balanced(m)


def neighbor_generator(graph: Graph, stays: Stays) -> np.ndarray:
    """The matrix M of 3.5 for any graph: connects, disconnects and handoffs, each in the graph's order."""
    names = list(graph)
    n = len(names)
    m = np.zeros((3 * n, 3 * n))
    for i, name in enumerate(names):
        if not graph[name]:
            raise ValueError(f"{name} has no neighbor: nobody could leave it")
        m[i, i + n] = m[i, i + 2 * n] = 1 / (2 * stays.connect_s)
        m[i + n, i] = m[i + n, i + 2 * n] = 1 / (2 * stays.disconnect_s)
        for other in graph[name]:
            m[i + 2 * n, names.index(other)] = 1 / (len(graph[name]) * stays.handoff_s)
    return _balanced(m)


def _balanced(m: np.ndarray) -> np.ndarray:
    np.fill_diagonal(m, 0.0)
    np.fill_diagonal(m, -m.sum(axis=1))
    return m


def long_run_shares(generator: np.ndarray) -> np.ndarray:
    """π with πM = 0 and Σπ = 1, by the null space. Of a graph in pieces there is more than one: refused."""
    _, singular, rows = np.linalg.svd(generator.T)
    if len(singular) > 1 and singular[-2] < 1e-12 * singular[0]:
        raise ValueError("the states fall into pieces that never meet: the long run depends on the start")
    null = rows[-1]
    return np.asarray(null / null.sum())


class Places(msgspec.Struct, frozen=True):
    """Shares of a subscriber's time at each broker, by what it does there or did last."""

    connected: Mapping[str, float]
    disconnected: Mapping[str, float]
    moving: Mapping[str, float]

    def away(self, broker: str) -> float:
        return self.disconnected[broker] + self.moving[broker]


def neighbor_places(graph: Graph, stays: Stays) -> Places:
    names = list(graph)
    pi = long_run_shares(neighbor_generator(graph, stays))
    n = len(names)
    parts = [dict(zip(names, map(float, pi[k * n : (k + 1) * n]), strict=True)) for k in range(3)]
    return Places(*parts)


def random_places(names: Collection[str], stays: Stays) -> Places:
    """The published approximation of the random pattern, spread evenly."""
    shares = random_shares(len(names), stays)
    n = len(names)
    return Places(
        dict.fromkeys(names, shares.broker),
        dict.fromkeys(names, shares.disconnect / n),
        dict.fromkeys(names, shares.handoff / n),
    )


def active_dummies(places: Places, graph: Graph, subscribers: int) -> dict[str, float]:
    """F44: how many wakeful stand-ins each broker holds: one for everybody away from a broker next to it."""
    return {name: subscribers * sum(places.away(other) for other in graph[name]) for name in graph}


class Population(msgspec.Struct, frozen=True):
    """Binomial(K, share): how many subscribers are in one state."""

    subscribers: int
    share: float

    @property
    def mean(self) -> float:
        """(6.10)."""
        return self.subscribers * self.share

    @property
    def deviation(self) -> float:
        return math.sqrt(self.mean * (1 - self.share))

    @property
    def bounds(self) -> tuple[float, float]:
        """95 %, by the normal approximation; see `applicable`."""
        return self.mean - Z_95 * self.deviation, self.mean + Z_95 * self.deviation

    @property
    def applicable(self) -> bool:
        """Whether two deviations on either side are possible numbers of subscribers."""
        return self.mean - 2 * self.deviation >= 0 and self.mean + 2 * self.deviation <= self.subscribers

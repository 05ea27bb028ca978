"""The neighbor graph: each broker's own star, learned from those who move (spec proactive-handoff 2.5, 2.6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import exp2, inf

import msgspec

from godwit.protocols.host import NodeId
from godwit.protocols.neighbors.forecast import Forecast


class GraphOptions(msgspec.Struct, frozen=True, kw_only=True):
    edge_timeout_s: float = 300.0
    """An edge unused for so long is dropped."""
    window_s: float = 300.0
    """Over which the accuracy is counted (Δ)."""
    degree_max: int = 0
    """At most so many neighbors get copies, the most used first; 0: all."""
    share_min: float = 0.0
    """Edges with a smaller share of this broker's handoffs get no copies (ignoreRare, p >= θ_min)."""
    mass: float = 1.0
    """Only the most used neighbors that together make up this share get copies (ignoreRare, Σp >= θ)."""
    foresight: bool = False
    """Neighbors are weighed by where the subscriber was before, and by closeness, not by their uses alone."""
    closeness: dict[NodeId, float] = {}
    """With foresight: how near others are, for moves that nobody has made yet."""
    half_life_s: float = inf
    """After so long a use weighs half: old habits fade. Without one the uses are counted as they are."""
    directed: bool = False
    """Only where subscribers went to counts, not where they came from."""
    static: frozenset[NodeId] | None = None
    """Given, and never learned nor forgotten."""

    def __post_init__(self) -> None:
        if self.edge_timeout_s <= 0 or self.window_s <= 0 or self.half_life_s <= 0:
            raise ValueError("edge_timeout_s, window_s and half_life_s must be more than 0")
        if not 0 < self.mass <= 1 or not 0 <= self.share_min <= 1 or self.degree_max < 0:
            raise ValueError("mass lies in 0..1 without 0, share_min in 0..1, degree_max is not negative")


class Edge:
    __slots__ = ("last_used_s", "since_s", "uses", "weight")

    def __init__(self, now_s: float) -> None:
        self.since_s = self.last_used_s = now_s
        self.uses = 0
        self.weight = 0.0
        """The uses, each faded since, as of the last one."""

    def use(self, now_s: float, weight: float, half_life_s: float) -> None:
        self.weight = self.weight_at(now_s, half_life_s) + weight
        self.last_used_s = now_s
        self.uses += 1

    def weight_at(self, now_s: float, half_life_s: float) -> float:
        return self.weight * exp2((self.last_used_s - now_s) / half_life_s)


class NeighborGraph:
    """Who is next to this broker. Every change is the caller's to tell."""

    def __init__(self, own: NodeId, options: GraphOptions) -> None:
        self.own = own
        self.options = options
        self.edges: dict[NodeId, Edge] = {peer: Edge(0.0) for peer in sorted(options.static or ())}
        self.forecast = Forecast(options.closeness)
        self.lists: dict[NodeId, frozenset[NodeId]] = {}
        """NBR_List of each peer, as last heard."""
        self._additions: deque[float] = deque()
        self._handoffs: deque[float] = deque()
        self._removals: deque[float] = deque()
        self._gone: deque[tuple[float, float]] = deque()

    def __contains__(self, peer: NodeId) -> bool:
        return peer in self.edges

    @property
    def names(self) -> frozenset[NodeId]:
        return frozenset(self.targets())

    def handoff_seen(self, now_s: float) -> None:
        self._note(self._handoffs, now_s)

    def touch(self, peer: NodeId, now_s: float, *, left: bool = False, weight: float = 1.0) -> bool:
        """The edge was used, `left` if by somebody leaving; True where it is new."""
        if self.options.static is not None or (self.options.directed and not left):
            return False
        new = peer not in self.edges
        self.edges.setdefault(peer, Edge(now_s)).use(now_s, weight, self.options.half_life_s)
        if new:
            self._note(self._additions, now_s)
        return new

    def learn(self, before: NodeId, to: NodeId) -> None:
        """A subscriber that came from `before` went on to `to`."""
        if self.options.foresight:
            self.forecast.learn(before, to)

    def aged(self, now_s: float) -> list[NodeId]:
        """Drop what was not used for long, and say what that was."""
        if self.options.static is not None:
            return []
        old = [p for p, edge in self.edges.items() if now_s - edge.last_used_s >= self.options.edge_timeout_s]
        for peer in old:
            self.drop(peer, now_s)
        return old

    def drop(self, peer: NodeId, now_s: float) -> None:
        edge = self.edges.pop(peer, None)
        if edge is not None:
            self._note(self._removals, now_s)
            self._gone.append((edge.since_s, now_s))
            while self._gone[0][1] < now_s - self.options.window_s:
                self._gone.popleft()

    def weights(self) -> dict[NodeId, float]:
        """How much each edge is used, as of the last use of any: all fade alike, so that their shares stay."""
        newest_s = max((edge.last_used_s for edge in self.edges.values()), default=0.0)
        return {peer: edge.weight_at(newest_s, self.options.half_life_s) for peer, edge in self.edges.items()}

    def targets(self, before: NodeId = "") -> list[NodeId]:
        """The neighbors that are worth a copy, of a subscriber that came from `before`."""
        if not (self.options.degree_max or self.options.share_min or self.options.mass < 1):
            return list(self.edges)
        if self.options.foresight:
            weights = self.forecast.weights(before)
            return worthwhile({peer: weights.get(peer, 0.0) for peer in self.edges}, self.options)
        return worthwhile(self.weights(), self.options)

    def false_negatives(self, now_s: float) -> float:
        """(3.5): of the handoffs in the window, those that added an edge."""
        handoffs = _within(self._handoffs, now_s - self.options.window_s)
        return _within(self._additions, now_s - self.options.window_s) / handoffs if handoffs else 0.0

    def false_positives(self, now_s: float) -> float:
        """(3.6): of all edge time in the window, that which only waited for removal."""
        since_s = now_s - self.options.window_s
        spans = [*self._gone, *((edge.since_s, now_s) for edge in self.edges.values())]
        residence_s = sum(max(0.0, end - max(start, since_s)) for start, end in spans)
        wasted_s = _within(self._removals, since_s) * self.options.edge_timeout_s
        return wasted_s / residence_s if residence_s else 0.0

    def _note(self, times: deque[float], now_s: float) -> None:
        times.append(now_s)
        _within(times, now_s - self.options.window_s)


def _within(times: deque[float], since_s: float) -> int:
    while times and times[0] < since_s:
        times.popleft()
    return len(times)


def worthwhile(uses: Mapping[NodeId, float], options: GraphOptions) -> list[NodeId]:
    """The most used first, until the mass, the degree or the smallest share says enough."""
    total = sum(uses.values()) or 1
    chosen: list[NodeId] = []
    mass = 0.0
    for peer in sorted(uses, key=lambda peer: (-uses[peer], peer)):
        share = uses[peer] / total
        full = options.degree_max and len(chosen) >= options.degree_max
        if full or share < options.share_min or mass >= options.mass - 1e-12:
            break
        chosen.append(peer)
        mass += share
    return chosen


def hit_rate(chosen: Iterable[NodeId], uses: Mapping[NodeId, int]) -> float:
    """Of these uses, the share that the chosen neighbors would have met."""
    total = sum(uses.values())
    return sum(uses.get(peer, 0) for peer in chosen) / total if total else 0.0

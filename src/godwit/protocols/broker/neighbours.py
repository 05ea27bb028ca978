"""Where clients go from this broker: its own star of the neighbor graph (spec proactive-handoff 2.5), kept on disk.

Each move weighs 1 for the broker that it leads to and `RETURN_WEIGHT` for the one that it comes from, since some go
back; after `half_life_s` it weighs half. Copies go to the most used neighbours that together make up `mass` of the
weight. As all weights fade alike, only moves and ageing change that choice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

import msgspec

from godwit.protocols.broker.store import Store
from godwit.protocols.handoff.neighbors import Edge, GraphOptions, NeighborGraph, worthwhile
from godwit.protocols.host import NodeId

TABLE = "neighbours"
DAY_S = 24 * 3600.0

HABITS = GraphOptions(mass=0.95, degree_max=16, edge_timeout_s=7 * DAY_S, half_life_s=DAY_S, window_s=3600.0)
"""What a deployed broker goes by: people who move have habits of days, not of minutes."""

RETURN_WEIGHT = 0.25
"""What an arrival says of the way back, against 1 for somebody who really went that way."""

STEPS = 60
"""The window moves in so many steps."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """An edge on the disk, at (peer, 0); times are seconds since 1970."""

    uses: int
    weight: float
    since: float
    last_used: float


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """An edge that somebody else has counted: a broker before this one, or a job over traces."""

    peer: NodeId
    weight: float
    last_used: float | None = None
    uses: int = 0


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """One edge, to look at."""

    peer: NodeId
    share: float
    """Of all that is known of where clients go, the newer weighing more."""
    uses: int
    weight: float
    """The uses, faded until the last one."""
    last_used: float
    copied: bool
    """It gets copies."""


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Of the sessions that left in the window; shares are 0 where there was none."""

    handoffs: int = 0
    hit_rate: float = 0.0
    """Of them, those that found a copy where they went."""
    copies: float = 0.0
    """Brokers that had a copy, for each of them."""
    false_negatives: float = 0.0
    """(3.5): of all moves from and to here, those over an edge that was not known."""
    false_positives: float = 0.0
    """(3.6): of the time of all edges, that in which one only waited for its removal."""


class Totals(msgspec.Struct):
    """Since the start."""

    hits: int = 0
    misses: int = 0
    unused: int = 0
    """Copies at brokers to which the client did not go."""


class Window:
    """Sums of several figures over the last `window_s`, exact to a step."""

    def __init__(self, window_s: float, figures: int) -> None:
        self.step_s = window_s / STEPS
        self.figures = figures
        self._steps: deque[tuple[int, list[int]]] = deque()

    def add(self, now_s: float, *figures: int) -> None:
        step = self._trimmed(now_s)
        if not self._steps or self._steps[-1][0] != step:
            self._steps.append((step, [0] * self.figures))
        sums = self._steps[-1][1]
        for at, figure in enumerate(figures):
            sums[at] += figure

    def sums(self, now_s: float) -> list[int]:
        self._trimmed(now_s)
        return [sum(column) for column in zip(*(sums for _, sums in self._steps), strict=True)] or [0] * self.figures

    def _trimmed(self, now_s: float) -> int:
        step = int(now_s // self.step_s)
        while self._steps and self._steps[0][0] <= step - STEPS:
            self._steps.popleft()
        return step


class Neighbours:
    """Of the broker `own`. `clock` gives seconds since 1970; should it go back, time stands still here meanwhile. Only
    who is `present` is likely, however often clients went there.

    Everything that is learned is written to the store in the same turn. While nothing is known, nobody is likely.
    """

    def __init__(
        self,
        own: NodeId,
        store: Store,
        clock: Callable[[], float],
        options: GraphOptions = HABITS,
        present: Callable[[NodeId], bool] = lambda peer: True,
    ) -> None:
        self.graph = NeighborGraph(own, options)
        self.totals = Totals()
        self._store = store
        self._clock = clock
        self._present = present
        self._now_s = 0.0
        self._window = Window(options.window_s, 3)
        self._load()

    def likely(self) -> tuple[NodeId, ...]:
        self._age()
        weights = {peer: weight for peer, weight in self.graph.weights().items() if self._present(peer)}
        return tuple(worthwhile(weights, self.graph.options))

    def went(self, to: NodeId, copied: Collection[NodeId]) -> None:
        now_s, hit = self._now(), to in copied
        self.totals.hits += hit
        self.totals.misses += not hit
        self.totals.unused += len(copied) - hit
        self._window.add(now_s, 1, hit, len(copied))
        self._use(to, now_s, 1.0, left=True)

    def came(self, source: NodeId) -> None:
        self._use(source, self._now(), RETURN_WEIGHT, left=False)

    def take(self, learned: Iterable[Learned]) -> None:
        """These instead of whatever was known. The newest of their times counts as now: what was learned from an old
        trace is meant to hold today."""
        edges = [edge for edge in learned if edge.peer != self.graph.own]
        now_s = self._now()
        newest = max((edge.last_used for edge in edges if edge.last_used is not None), default=now_s)
        for peer in self.graph.edges:
            self._store.delete(TABLE, peer, 0)
        self.graph.edges.clear()
        for edge in edges:
            last_used = now_s - (newest - edge.last_used) if edge.last_used is not None else now_s
            self._install(edge.peer, Row(edge.uses, edge.weight, now_s, last_used))
            self._write(edge.peer)
        self._age()

    def known(self) -> list[Neighbour]:
        """All edges, the most used first."""
        likely, weights = self.likely(), self.graph.weights()
        total = sum(weights.values()) or 1.0
        return [
            Neighbour(
                peer=peer,
                share=weights[peer] / total,
                uses=self.graph.edges[peer].uses,
                weight=self.graph.edges[peer].weight,
                last_used=self.graph.edges[peer].last_used_s,
                copied=peer in likely,
            )
            for peer in sorted(weights, key=lambda peer: (-weights[peer], peer))
        ]

    def accuracy(self) -> Accuracy:
        now_s = self._now()
        handoffs, hits, copies = self._window.sums(now_s)
        return Accuracy(
            handoffs=handoffs,
            hit_rate=hits / handoffs if handoffs else 0.0,
            copies=copies / handoffs if handoffs else 0.0,
            false_negatives=self.graph.false_negatives(now_s),
            false_positives=self.graph.false_positives(now_s),
        )

    def _now(self) -> float:
        self._now_s = max(self._now_s, self._clock())
        return self._now_s

    def _use(self, peer: NodeId, now_s: float, weight: float, *, left: bool) -> None:
        if peer == self.graph.own:
            return
        self._age()
        self.graph.handoff_seen(now_s)
        self.graph.touch(peer, now_s, left=left, weight=weight)
        if peer in self.graph:
            self._write(peer)

    def _age(self) -> None:
        for peer in self.graph.aged(self._now()):
            self._store.delete(TABLE, peer, 0)

    def _write(self, peer: NodeId) -> None:
        edge = self.graph.edges[peer]
        row = Row(edge.uses, edge.weight, edge.since_s, edge.last_used_s)
        self._store.put(TABLE, peer, 0, msgspec.msgpack.encode(row))

    def _install(self, peer: NodeId, row: Row) -> None:
        """Times that lie ahead, of a clock that was wrong, are now."""
        now_s = self._now()
        edge = self.graph.edges[peer] = Edge(min(row.since, now_s))
        edge.uses, edge.weight, edge.last_used_s = row.uses, row.weight, min(row.last_used, now_s)

    def _load(self) -> None:
        for peer, _, value in self._store.load(TABLE):
            self._install(peer, msgspec.msgpack.decode(value, type=Row))

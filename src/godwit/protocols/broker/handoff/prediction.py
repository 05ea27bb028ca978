"""Where clients go from this broker: its own star of the neighbor graph (spec proactive-handoff 2.5), kept on disk.

Each move weighs 1 for the broker that it leads to and `RETURN_WEIGHT` for the one that it comes from, since some go
back; after `half_life_s` it weighs half. With foresight a client's next broker is forecast as the simulated scheme does
it (`handoff.forecast`): by where others went who had come from the same broker, by where all went, and by how near
brokers are. Copies go to the likeliest that together make up `mass` of the weight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from math import exp2

import msgspec

from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId
from godwit.protocols.neighbors.forecast import foreseen
from godwit.protocols.neighbors.graph import Edge, GraphOptions, NeighborGraph, worthwhile

TABLE = "neighbors"
DAY_S = 24 * 3600.0

HABITS = GraphOptions(
    mass=0.98, degree_max=16, foresight=True, edge_timeout_s=7 * DAY_S, half_life_s=DAY_S, window_s=3600.0
)
"""What a deployed broker goes by: people who move have habits of days, not of minutes."""

RETURN_WEIGHT = 0.25
"""What an arrival says of the way back, against 1 for somebody who really went that way."""

PATHS_SHOWN = 32
"""To look at, of each so many as anybody reads."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """An edge on the disk, at (peer, 0); times are seconds since 1970."""

    uses: int
    weight: float
    since: float
    last_used: float
    before: dict[NodeId, float] = {}
    """Of those who went there, how many had come from where: see `Paths`."""
    counted: float = 0.0
    """As of when."""


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """An edge that somebody else has counted: a broker before this one, or a job over traces."""

    peer: NodeId
    weight: float
    last_used: float | None = None
    uses: int = 0
    before: Mapping[NodeId, float] = {}
    """How much of the weight is of clients that had come from there; this broker itself stands for those that had not
    been elsewhere."""


class Neighbor(msgspec.Struct, frozen=True, kw_only=True):
    """One edge, to look at."""

    peer: NodeId
    share: float
    """Of all that is known of where clients go, the newer weighing more."""
    uses: int
    weight: float
    """The uses, faded until the last one."""
    last_used: float
    copied: bool
    """It gets copies, if only of some."""
    copied_share: float
    """Of the sessions that come to rest here, as far as it is known where they come from."""
    before: dict[NodeId, float]
    """How much of the weight is of clients that had come from there, as in `Learned`."""


class Onward(msgspec.Struct, frozen=True, kw_only=True):
    """One of the brokers that a client may go on to."""

    peer: NodeId
    share: float
    copied: bool


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """Where those go on to who came from one broker, to look at."""

    before: NodeId
    """This broker itself: those that had not been elsewhere."""
    share: float
    """Of all who left."""
    onward: list[Onward]
    """The likeliest first."""


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


class Neighbors:
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
        self.paths = Paths(options.half_life_s)
        self.totals = Totals()
        self._store = store
        self._clock = clock
        self._present = present
        self._now_s = 0.0
        self._window = Window(options.window_s, 3)
        self._load()

    def likely(self, before: NodeId = "") -> tuple[NodeId, ...]:
        """Who gets copies of a session that came from `before`, the most likely first."""
        self._age()
        return tuple(worthwhile(self._weights(before), self.graph.options))

    def went(self, to: NodeId, copied: Collection[NodeId], before: NodeId = "") -> None:
        now_s, hit = self._now(), to in copied
        self.totals.hits += hit
        self.totals.misses += not hit
        self.totals.unused += len(copied) - hit
        self._window.add(now_s, 1, hit, len(copied))
        self._use(to, now_s, 1.0, left=True, before=before or self.graph.own)

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
        self.paths.clear()
        for edge in edges:
            last_used = now_s - (newest - edge.last_used) if edge.last_used is not None else now_s
            row = Row(edge.uses, edge.weight, now_s, last_used, _within(edge.before, edge.weight), last_used)
            self._install(edge.peer, row)
            self._write(edge.peer)
        self._age()

    def shares(self) -> dict[NodeId, float]:
        """Of all that is known of where clients go."""
        weights = self.graph.weights()
        total = sum(weights.values()) or 1.0
        return {peer: weight / total for peer, weight in weights.items()}

    def known(self) -> list[Neighbor]:
        """All edges, the most used first."""
        self._age()
        shares, copied, edges = self.shares(), self._copied(), self.graph.edges
        return [
            Neighbor(
                peer=peer,
                share=shares[peer],
                uses=edges[peer].uses,
                weight=edges[peer].weight,
                last_used=edges[peer].last_used_s,
                copied=peer in copied,
                copied_share=copied.get(peer, 0.0),
                before=self.paths.as_of(peer, edges[peer].last_used_s),
            )
            for peer in sorted(shares, key=lambda peer: (-shares[peer], peer))
        ]

    def foreseen(self) -> list[Path]:
        """Where clients go on to, by where they came from: the commonest first, and not all of them."""
        return [
            Path(before=before, share=share, onward=self._onward(before)[:PATHS_SHOWN])
            for before, share in self._befores()
        ]

    def _befores(self) -> list[tuple[NodeId, float]]:
        """Where most came from, and their shares of all."""
        found = self.paths.befores(self._now())
        total = sum(found.values()) or 1.0
        order = sorted(found, key=lambda before: (-found[before], before))
        return [(before, found[before] / total) for before in order[:PATHS_SHOWN]]

    def _onward(self, before: NodeId) -> list[Onward]:
        weights = self._weights(before)
        total, likely = sum(weights.values()) or 1.0, set(worthwhile(weights, self.graph.options))
        return [
            Onward(peer=peer, share=weights[peer] / total, copied=peer in likely)
            for peer in sorted(weights, key=lambda peer: (-weights[peer], peer))
        ]

    def _copied(self) -> dict[NodeId, float]:
        """Who gets copies, and of what share of all sessions."""
        befores = self._befores() or [(self.graph.own, 1.0)]
        total = sum(share for _, share in befores)
        found: dict[NodeId, float] = {}
        for before, share in befores:
            for peer in self.likely(before):
                found[peer] = found.get(peer, 0.0) + share / total
        return found

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

    def _weights(self, before: NodeId) -> dict[NodeId, float]:
        """How likely each broker is that is there, for a client that came from `before`."""
        options = self.graph.options
        uses = {peer: weight for peer, weight in self.graph.weights().items() if self._present(peer)}
        if not options.foresight:
            return uses
        near = {peer: pull for peer, pull in options.closeness.items() if self._present(peer)}
        alike = self.paths.alike(before or self.graph.own, self._now())
        found = foreseen(near, uses, {peer: count for peer, count in alike.items() if peer in uses})
        return {peer: found.get(peer, 0.0) for peer in dict.fromkeys((*uses, *near))}

    def _use(self, peer: NodeId, now_s: float, weight: float, *, left: bool, before: NodeId = "") -> None:
        if peer == self.graph.own:
            return
        self._age()
        self.graph.handoff_seen(now_s)
        self.graph.touch(peer, now_s, left=left, weight=weight)
        if left:
            self.paths.learn(before, peer, now_s)
        if peer in self.graph:
            self._write(peer)

    def _age(self) -> None:
        for peer in self.graph.aged(self._now()):
            self.paths.drop(peer)
            self._store.delete(TABLE, peer, 0)

    def _write(self, peer: NodeId) -> None:
        edge, known = self.graph.edges[peer], self.paths.of(peer)
        row = Row(edge.uses, edge.weight, edge.since_s, edge.last_used_s, known.by, known.as_of_s)
        self._store.put(TABLE, peer, 0, msgspec.msgpack.encode(row))

    def _install(self, peer: NodeId, row: Row) -> None:
        """Times that lie ahead, of a clock that was wrong, are now."""
        now_s = self._now()
        edge = self.graph.edges[peer] = Edge(min(row.since, now_s))
        edge.uses, edge.weight, edge.last_used_s = row.uses, row.weight, min(row.last_used, now_s)
        self.paths.put(peer, row.before, min(row.counted, now_s))

    def _load(self) -> None:
        for peer, _, value in self._store.load(TABLE):
            self._install(peer, msgspec.msgpack.decode(value, type=Row))


def _within(before: Mapping[NodeId, float], weight: float) -> dict[NodeId, float]:
    """No more can have gone on from somewhere than have gone this way at all; what says otherwise is scaled down."""
    total = sum(before.values())
    scale = weight / total if total > weight else 1.0
    return {name: count * scale for name, count in before.items() if count > 0}


# Where clients went on to, by where they had come from: counts over two steps, which fade and are bounded.

BEFORES_MAX = 64
"""Of those who went to one broker so many origins are told apart; when there are more, the lightest eighth goes."""
NAME_MAX = 255
"""No broker has a longer name."""
FADED = 1 / 128
"""What has faded to less than this of one move says nothing any more."""


class Counted:
    """Of those who went on to one broker: how many had come from where, as of a time."""

    __slots__ = ("as_of_s", "by")

    def __init__(self, as_of_s: float, by: Mapping[NodeId, float]) -> None:
        self.as_of_s = as_of_s
        self.by = dict(by)


class Paths:
    """After `half_life_s` a move counts half. All that changes by a call is at the `to` of that call."""

    def __init__(self, half_life_s: float) -> None:
        self.half_life_s = half_life_s
        self._counted: dict[NodeId, Counted] = {}

    def learn(self, before: NodeId, to: NodeId, now_s: float) -> None:
        """Somebody who had come from `before` went on to `to`."""
        by = self.as_of(to, now_s)
        by[before] = by.get(before, 0.0) + 1.0
        self.put(to, by, now_s)

    def put(self, to: NodeId, by: Mapping[NodeId, float], as_of_s: float) -> None:
        """These instead of what was counted there."""
        kept = {name: count for name, count in by.items() if count >= FADED and len(name) <= NAME_MAX}
        if len(kept) > BEFORES_MAX:
            spared = sorted(kept, key=lambda name: (-kept[name], name))[: BEFORES_MAX - BEFORES_MAX // 8]
            kept = {name: kept[name] for name in spared}
        self._counted[to] = Counted(as_of_s, kept)

    def drop(self, to: NodeId) -> None:
        self._counted.pop(to, None)

    def clear(self) -> None:
        self._counted.clear()

    def alike(self, before: NodeId, now_s: float) -> dict[NodeId, float]:
        """Where those went who had come from there."""
        return {
            to: known.by[before] * self._share(known, now_s)
            for to, known in self._counted.items()
            if before in known.by
        }

    def befores(self, now_s: float) -> dict[NodeId, float]:
        """How many had come from where, wherever they went."""
        found: dict[NodeId, float] = {}
        for known in self._counted.values():
            share = self._share(known, now_s)
            for before, count in known.by.items():
                found[before] = found.get(before, 0.0) + count * share
        return found

    def of(self, to: NodeId) -> Counted:
        return self._counted.get(to) or Counted(0.0, {})

    def as_of(self, to: NodeId, time_s: float) -> dict[NodeId, float]:
        """How many of those who went there had come from where, faded until then."""
        known = self.of(to)
        share = self._share(known, time_s)
        return {before: count * share for before, count in known.by.items()}

    def _share(self, known: Counted, now_s: float) -> float:
        return exp2((known.as_of_s - now_s) / self.half_life_s)


# Figures of the last while.

STEPS = 60
"""The window moves in so many steps."""


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

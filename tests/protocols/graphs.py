"""Brokers that only elect, on graphs and on the air, and what can be said of their trees at any moment."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random

from hypothesis import strategies as st

from godwit.protocols.host import Host, Message, NodeId
from godwit.protocols.topology.election import Election, ElectionOptions, Heartbeat
from godwit.sim.mobility import Model
from godwit.sim.radio import Disc
from godwit.sim.wired import Wired
from godwit.sim.world import Medium, Node, World

Edge = tuple[NodeId, NodeId]


class Voter:
    """An election alone, with a list of the migrations it called for and of the children that came back."""

    def __init__(self, host: Host, options: ElectionOptions, incarnation: int) -> None:
        self.election = Election(host, options, incarnation=incarnation)
        self.election.on_migrate = lambda old, new: self.moves.append((old, new))
        self.election.on_returned = lambda child: self.returned.append(child)
        self.moves: list[tuple[NodeId | None, NodeId]] = []
        self.returned: list[NodeId] = []

    def receive(self, sender: NodeId, message: Message, /) -> None:
        assert isinstance(message, Heartbeat)
        self.election.receive(sender, message)


class Electorate:
    """A world of voters. Boots are counted on disk, as a broker would."""

    def __init__(self, medium: Callable[[World], Medium], options: ElectionOptions, seed: int = 0) -> None:
        self.world = World(seed, medium)
        self.options = options
        self.beats: Counter[tuple[NodeId, NodeId, int, int]] = Counter()
        broadcast = self.world.medium.broadcast

        def counted(sender: NodeId, message: Message, /) -> None:
            assert isinstance(message, Heartbeat)
            self.beats[sender, message.leader, message.incarnation, message.round] += 1
            broadcast(sender, message)

        self.world.medium.broadcast = counted  # type: ignore[method-assign]

    def add(self, name: NodeId) -> None:
        self.world.add(name, self._start)

    def _start(self, node: Node) -> Voter:
        node.disk["boots"] = node.disk.get("boots", 0) + 1
        return Voter(node, self.options, node.disk["boots"])

    def voter(self, name: NodeId) -> Voter:
        core = self.world.nodes[name].core
        assert isinstance(core, Voter)
        return core

    @property
    def elections(self) -> dict[NodeId, Election]:
        return {name: self.voter(name).election for name, node in self.world.nodes.items() if node.alive}

    def leaders(self) -> dict[NodeId, NodeId]:
        return {name: election.leader for name, election in self.elections.items()}

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def watch(self, for_s: float, check: Callable[[], None]) -> None:
        """Run, and check after every single step."""
        engine, until = self.world.engine, self.world.engine.now + for_s
        while engine.now < until and engine.run(until, calls=1):
            check()

    def cycle(self) -> list[NodeId]:
        """Brokers of one leader whose parents lead round in a circle, if there are any."""
        elections = self.elections
        for start in elections:
            way, at = [start], start
            while True:
                parent = elections[at].parent
                if parent not in elections or elections[parent].leader != elections[at].leader:
                    break
                if parent in way:
                    return way
                way.append(parent)
                at = parent
        return []


def wired(edges: Iterable[Edge], options: ElectionOptions = ElectionOptions(), seed: int = 0) -> Electorate:  # noqa: B008
    """Voters on a graph; heartbeats take one to five milliseconds over each link."""
    electorate = Electorate(Wired, options, seed)
    assert isinstance(electorate.world.medium, Wired)
    for a, b in edges:
        for name in (a, b):
            if name not in electorate.world.nodes:
                electorate.add(name)
        electorate.world.medium.connect(a, b, latency_s=lambda dice: dice.uniform(0.001, 0.005))
    return electorate


def on_air(
    places: Mapping[NodeId, Model],
    options: ElectionOptions = ElectionOptions(),  # noqa: B008
    *,
    range_m: float,
    seed: int = 0,
) -> Electorate:
    electorate = Electorate(partial(Disc, range_m=range_m), options, seed)
    assert isinstance(electorate.world.medium, Disc)
    for name, model in places.items():
        electorate.world.medium.place(name, model)
        electorate.add(name)
    return electorate


@st.composite
def connected(draw: st.DrawFn, most: int = 8) -> list[Edge]:
    """A random connected graph: a random tree and a few edges more."""
    count = draw(st.integers(2, most))
    names = [f"b{i}" for i in range(count)]
    edges = {(names[draw(st.integers(0, i - 1))], names[i]) for i in range(1, count)}
    more = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda edge: edge[0] < edge[1])
    return sorted(edges | set(draw(st.lists(more, max_size=count))))


def random_tree(dice: Random, count: int) -> list[Edge]:
    return [(f"b{dice.randrange(i)}", f"b{i}") for i in range(1, count)]


def distances(edges: Iterable[Edge], start: NodeId) -> dict[NodeId, int]:
    """Fewest links from a node to every other that it can reach."""
    near: dict[NodeId, set[NodeId]] = {}
    for a, b in edges:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    found, queue = {start: 0}, deque([start])
    while queue:
        at = queue.popleft()
        for there in sorted(near.get(at, ())):
            if there not in found:
                found[there] = found[at] + 1
                queue.append(there)
    return found

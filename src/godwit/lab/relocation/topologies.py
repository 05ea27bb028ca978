"""Networks like those of the BRITE generator: autonomous systems of routers on a plane, joined by a few long links.

The source names the generator, four autonomous systems, a hundred routers and the longest delay. How routers are joined
within a system it does not say: here each newcomer prefers routers with many links (Barabasi and Albert, two links).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import pairwise
from random import Random

import msgspec

from godwit.protocols.host import NodeId
from godwit.protocols.topology.graphs import Edge, adjacent, next_hops, path, spanning_tree

SYSTEMS = 4
LINKS = 2
DELAY_MAX_S = 0.0257
SIDE = 1000.0
SYSTEM_SIDE = 250.0


class Topology(msgspec.Struct, frozen=True):
    """`delays_s` are those of the links of the tree, `direct_s` those of the network below between any two."""

    names: tuple[NodeId, ...]
    tree: tuple[Edge, ...]
    delays_s: Mapping[Edge, float]
    direct_s: Mapping[NodeId, Mapping[NodeId, float]]
    hops: Mapping[NodeId, Mapping[NodeId, NodeId]]

    @property
    def graph(self) -> dict[NodeId, list[NodeId]]:
        return adjacent(self.names, self.tree)

    @property
    def border(self) -> list[NodeId]:
        """Brokers with one neighbor only."""
        return [name for name, near in self.graph.items() if len(near) == 1]

    @property
    def inner(self) -> list[NodeId]:
        return [name for name, near in self.graph.items() if len(near) > 1]

    def between(self, start: NodeId, end: NodeId) -> int:
        """Brokers on the way from one to another, neither counted."""
        return max(0, len(path(self.hops, start, end)) - 2)


def generate(brokers: int, dice: Random) -> Topology:
    """A connected graph, its breadth-first tree from an arbitrary broker, and delays that follow distances."""
    names = [f"r{number:03}" for number in range(brokers)]
    systems = min(SYSTEMS, max(1, brokers // 3))
    members = [names[start::systems] for start in range(systems)]
    places = _places(members, dice)
    edges = [edge for group in members for edge in _joined(group, dice)]
    edges += [(dice.choice(members[at]), dice.choice(members[dice.randrange(at)])) for at in range(1, systems)]
    edges += [(dice.choice(one), dice.choice(other)) for one, other in pairwise(members)]
    lengths = {edge: math.dist(places[edge[0]], places[edge[1]]) for edge in edges if edge[0] != edge[1]}
    far = {name: _shortest(lengths, name) for name in names}
    scale = DELAY_MAX_S / max(max(row.values()) for row in far.values())
    graph = adjacent(names, lengths)
    tree = spanning_tree(graph, dice.choice(names))
    delays = {(a, b): scale * math.dist(places[a], places[b]) for a, b in tree}
    direct = {a: {b: scale * length for b, length in row.items()} for a, row in far.items()}
    return Topology(tuple(names), tuple(tree), delays, direct, next_hops(adjacent(names, tree)))


def _places(members: list[list[NodeId]], dice: Random) -> dict[NodeId, tuple[float, float]]:
    found = {}
    for group in members:
        x, y = dice.uniform(0, SIDE), dice.uniform(0, SIDE)
        for name in group:
            found[name] = (x + dice.uniform(0, SYSTEM_SIDE), y + dice.uniform(0, SYSTEM_SIDE))
    return found


def _joined(group: list[NodeId], dice: Random) -> list[Edge]:
    """Preferential attachment: who has many links gets more."""
    edges: list[Edge] = []
    ends = [group[0]]
    for at, name in enumerate(group[1:], 1):
        chosen: set[NodeId] = set()
        while len(chosen) < min(LINKS, at):
            chosen.add(dice.choice(ends if dice.random() < 0.9 else group[:at]))
        edges += [(other, name) for other in sorted(chosen)]
        ends += [*sorted(chosen), name]
    return edges


def _shortest(lengths: Mapping[Edge, float], start: NodeId) -> dict[NodeId, float]:
    near: dict[NodeId, list[tuple[NodeId, float]]] = {}
    for (a, b), length in lengths.items():
        near.setdefault(a, []).append((b, length))
        near.setdefault(b, []).append((a, length))
    found: dict[NodeId, float] = {}
    ahead = [(0.0, start)]
    while ahead:
        length, name = heappop(ahead)
        if name not in found:
            found[name] = length
            for other, step in near.get(name, ()):
                heappush(ahead, (length + step, other))
    return found

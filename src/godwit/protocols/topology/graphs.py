"""Static graphs of brokers: a tree taken breadth-first out of any graph, and the ways along it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from godwit.protocols.host import LocalError, NodeId

Edge = tuple[NodeId, NodeId]
Adjacent = Mapping[NodeId, Sequence[NodeId]]


def adjacent(nodes: Iterable[NodeId], edges: Iterable[Edge]) -> dict[NodeId, list[NodeId]]:
    """The neighbors of each, sorted, so that whatever is derived from them does not depend on the order of edges."""
    found: dict[NodeId, set[NodeId]] = {node: set() for node in nodes}
    for a, b in edges:
        found[a].add(b)
        found[b].add(a)
    return {node: sorted(near) for node, near in found.items()}


def spanning_tree(graph: Adjacent, root: NodeId) -> list[Edge]:
    """The edges over which a breadth-first walk from the root first reaches each broker; (nearer, farther).

    Raises `LocalError` where some broker cannot be reached.
    """
    edges: list[Edge] = []
    reached = {root}
    ahead = deque([root])
    while ahead:
        node = ahead.popleft()
        for near in graph[node]:
            if near not in reached:
                reached.add(near)
                ahead.append(near)
                edges.append((node, near))
    if missing := sorted(set(graph) - reached):
        raise LocalError(f"{missing[0]} cannot be reached from {root}; a tree needs a connected graph")
    return edges


def next_hops(graph: Adjacent) -> dict[NodeId, dict[NodeId, NodeId]]:
    """By broker and destination, the neighbor on a shortest way there; in a tree it is the only way.

    All ways to one destination form a tree, in a graph with cycles as well.
    """
    hops: dict[NodeId, dict[NodeId, NodeId]] = {node: {} for node in graph}
    for destination in graph:
        for nearer, farther in spanning_tree(graph, destination):
            hops[farther][destination] = nearer
    return hops


def path(hops: Mapping[NodeId, Mapping[NodeId, NodeId]], start: NodeId, end: NodeId) -> list[NodeId]:
    """From one broker to another, both included."""
    nodes = [start]
    while nodes[-1] != end:
        nodes.append(hops[nodes[-1]][end])
    return nodes

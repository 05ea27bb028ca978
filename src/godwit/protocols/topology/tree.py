"""What a routing protocol sees of the overlay, whoever maintains it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Protocol

from godwit.protocols.host import NodeId

Migrate = Callable[[NodeId | None, NodeId], None]
"""`migrate(old, new)`: the way to the leader is now `new`, and was `old` (the last, if this broker led meanwhile)."""


class Tree(Protocol):
    """The provider calls `on_migrate` exactly once for each change of parent, from none to somebody included."""

    on_migrate: Migrate
    on_returned: Callable[[NodeId], None]
    """A child that had been given up is back and never noticed that it was gone."""

    @property
    def neighbors(self) -> Set[NodeId]:
        """N_i: the brokers next to this one in the tree, now."""

    @property
    def parent(self) -> NodeId | None: ...

    def adopt(self, child: NodeId) -> None:
        """A broker has announced itself as our child by migrating here; its heartbeat would follow anyway."""

    def heard_since(self, neighbor: NodeId, time_s: float) -> bool:
        """Whether the neighbor has given a sign of life after that time of this node's clock."""


def ignore(*_: object) -> None:
    """The listener before anybody listens."""


class StaticTree:
    """Neighbors given by hand: for protocols with fixed brokers, golden traces, and deployments with a fixed tree."""

    def __init__(self, neighbors: Iterable[NodeId] = (), parent: NodeId | None = None) -> None:
        self.neighbors: set[NodeId] = set(neighbors)
        self.parent = parent
        self.last_parent: NodeId | None = None
        self.on_migrate: Migrate = ignore
        self.on_returned: Callable[[NodeId], None] = ignore

    def adopt(self, child: NodeId) -> None:
        self.neighbors.add(child)
        if self.last_parent == child:
            self.last_parent = None

    def drop(self, neighbor: NodeId) -> None:
        """The link is gone; losing the parent sends nothing and is remembered."""
        self.neighbors.discard(neighbor)
        if self.parent == neighbor:
            self.last_parent, self.parent = neighbor, None

    def move(self, parent: NodeId) -> None:
        """Take another parent, as a heartbeat through a new neighbor would."""
        old = self.parent
        if old is not None and old != parent:
            self.neighbors.discard(old)
        self.parent = parent
        self.neighbors.add(parent)
        self.on_migrate(old if old is not None else self.last_parent, parent)
        self.last_parent = parent

    def heard_since(self, neighbor: NodeId, time_s: float) -> bool:
        return neighbor in self.neighbors

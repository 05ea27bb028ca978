"""What a protocol sees of a ring, whoever maintains it: every key has one node in charge, and prefixes are regions.

Pastry (`pastry/`) is the provider; any overlay that routes by prefixes can take its place (spec data-gathering F3). And
a ring can take the place of an election: `RootedTree` is a `Tree` as any other, whose leader is in charge of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from godwit.protocols.host import Host, Message, NodeId
from godwit.protocols.topology.pastry.keys import Key
from godwit.protocols.topology.pastry.messages import Destination
from godwit.protocols.topology.pastry.peers import Peer
from godwit.protocols.topology.tree import Migrate, ignore


class Ring(Protocol):
    """Sending never blocks and never fails here: a dead next hop is noticed, forgotten and gone around."""

    @property
    def me(self) -> Peer: ...

    def begin(self, peers: Iterable[Peer] = ()) -> None:
        """Be a member at once: the first of a ring, or one whose tables are given by hand."""

    def enter(self, via: NodeId) -> None:
        """Join through any member; `Application.entered` follows."""

    def add(self, peers: Iterable[Peer]) -> None:
        """These are members too."""

    def fail(self, peer: Peer) -> None:
        """It does not answer: no hop leads there any more, until it speaks again."""

    def receive(self, sender: NodeId, body: Any) -> None:
        """What came over a hop; what is not the ring's own goes to the application."""

    def next_hop(self, key: Key) -> Peer | None:
        """None where this node is in charge of the key."""

    def nodes_with_prefix(self, prefix: str) -> list[Peer]:
        """Those known here, the nearest first; never this node."""

    def nearest(self, key: Key, count: int) -> list[Peer]:
        """Those among the members nearest to this node that are nearest to the key, other than its own node: they are
        the first to be in charge of it should that fail."""

    def send(self, to: NodeId, body: Any, failed: Callable[[], None] | None = None) -> None:
        """Over one hop, confirmed; `failed` after the last try."""

    def route(self, key: Key, body: Any) -> None:
        """To the live node in charge of the key, perhaps this one."""

    def cast(self, destinations: Sequence[Destination], body: Any, hops: int = 0) -> None:
        """To the nodes in charge of all these keys, one copy for each distinct next hop."""

    def towards(self, prefix: str, body: Any) -> None:
        """To some live node of this region: in one hop if any is known, else through the one in charge of its key."""


class Application(Protocol):
    """Who uses the ring. Calls come one at a time, never from within a call of the ring to itself."""

    def hear(self, sender: NodeId, body: Any, /) -> None:
        """Over one hop, from a node that meant this one."""

    def deliver(self, destinations: Sequence[Destination], body: Any, hops: int, /) -> None:
        """This node is in charge of these keys; so many hops have been made to it."""

    def entered(self) -> None:
        """This node has become a member: it has announced itself to all that it was told of."""

    def met(self, peer: Peer, /) -> None:
        """A peer has become a leaf of this node: some keys may be its now."""

    def gone(self, peer: Peer, /) -> None:
        """A peer has failed: some keys may be this node's now."""


class Below(Message, frozen=True):
    """To the node above in a tree, and its answer: we are beside one another there."""

    answer: bool = False


class RootedTree:
    """A `Tree` made of a ring: the node above is the next hop towards a key, so that who is in charge of it leads.

    All hops come nearer to the key; where tables are right there are no circles. Give it every `Below` that the ring's
    application hears.
    """

    def __init__(self, host: Host, ring: Ring, root: Key, *, period_s: float = 1.0) -> None:
        self.host = host
        self.ring = ring
        self.root = root
        self.period_s = period_s
        self.parent: NodeId | None = None
        self.last_parent: NodeId | None = None
        self.on_migrate: Migrate = ignore
        self.on_returned: Callable[[NodeId], None] = ignore
        self._children: set[NodeId] = set()
        self._given_up: set[NodeId] = set()
        self._heard_s: dict[NodeId, float] = {}
        host.after(host.random.uniform(0, period_s), self._tick)

    @property
    def neighbors(self) -> set[NodeId]:
        return self._children if self.parent is None else self._children | {self.parent}

    def adopt(self, child: NodeId) -> None:
        self._children.add(child)
        self._given_up.discard(child)
        self._heard_s[child] = self.host.now()
        if self.last_parent == child:
            self.last_parent = None

    def heard_since(self, neighbor: NodeId, time_s: float) -> bool:
        return self._heard_s.get(neighbor, -1.0) > time_s

    def receive(self, sender: NodeId, message: Below) -> None:
        self._heard_s[sender] = self.host.now()
        if message.answer:
            return
        returned = sender in self._given_up
        self.adopt(sender)
        self.ring.send(sender, Below(answer=True))
        if returned:
            self.on_returned(sender)

    def _tick(self) -> None:
        self._drop_silent()
        above = self.ring.next_hop(self.root)
        new = None if above is None else above.name
        if new != self.parent:
            self._move(new)
        if above is not None:
            self.ring.send(above.name, Below(), partial(self.ring.fail, above))
        self.host.after(self.period_s, self._tick)

    def _move(self, new: NodeId | None) -> None:
        old, self.parent = self.parent, new
        if new is None:
            self.last_parent = old
            return
        self._children.discard(new)
        self._heard_s.setdefault(new, self.host.now())
        self.on_migrate(old if old is not None else self.last_parent, new)
        self.last_parent = new

    def _drop_silent(self) -> None:
        due_s = self.host.now() - 3 * self.period_s
        silent = {child for child in self._children if self._heard_s[child] <= due_s}
        self._children -= silent
        self._given_up |= silent

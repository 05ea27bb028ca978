"""What a protocol sees of a ring, whoever maintains it: every key has one node in charge, and prefixes are regions.

Pastry (`pastry/`) is the provider; any overlay that routes by prefixes can take its place (spec data-gathering F3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from godwit.protocols.host import NodeId
from godwit.protocols.topology.pastry.keys import Key
from godwit.protocols.topology.pastry.messages import Destination
from godwit.protocols.topology.pastry.peers import Peer


class Ring(Protocol):
    """Sending never blocks and never fails here: a dead next hop is noticed, forgotten and gone around."""

    @property
    def me(self) -> Peer: ...

    def next_hop(self, key: Key) -> Peer | None:
        """None where this node is in charge of the key."""

    def nodes_with_prefix(self, prefix: str) -> list[Peer]:
        """Those known here, the nearest first; never this node."""

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

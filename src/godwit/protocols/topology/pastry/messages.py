"""What nodes of the ring tell each other. All of it travels in a `Hop`, which a `HopAck` answers."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from godwit.protocols.host import Message
from godwit.protocols.topology.pastry.keys import Key
from godwit.protocols.topology.pastry.peers import Peer

Body = TypeVar("Body")
"""What the users of the ring say to each other; with their own type for it `Hop[Mine]` is a complete wire format."""


class Hop(Message, Generic[Body], frozen=True):
    """One transmission over one overlay hop; repeated under the same number until it is confirmed."""

    number: int
    body: Body


class HopAck(Message, frozen=True):
    number: int


class Destination(msgspec.Struct, frozen=True, array_like=True):
    """A key and, for a notice, the clients that it is for there."""

    key: Key
    clients: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Client and the subscriptions of its that matched."""


class Cast(Message, Generic[Body], frozen=True):
    """To the nodes in charge of some keys: one copy for each distinct next hop (spec 2.8). Unicast has one key."""

    destinations: tuple[Destination, ...]
    body: Body
    hops: int = 0


class Join(Message, frozen=True):
    """Towards the newcomer's own key; everybody on the way adds the peers that the newcomer can use."""

    newcomer: Peer
    peers: tuple[Peer, ...] = ()


class Joined(Message, frozen=True):
    """The answer of the node in charge: all that was collected on the way, and its leaves."""

    peers: tuple[Peer, ...]


class Announce(Message, frozen=True):
    """I am here now; whoever hears it puts me where I fit."""

    peer: Peer


class KeepAlive(Message, frozen=True):
    """A sign of life, with the leaves as the sender knows them: what one has missed the next round repairs."""

    peer: Peer
    leaves: tuple[Peer, ...] = ()
    answer: bool = False


class Gone(Message, frozen=True):
    """This node is presumed to have failed."""

    peer: Peer


class PeersAsked(Message, frozen=True):
    """For a hole: who do you know in this row? Row -1 asks for leaves."""

    peer: Peer
    row: int


class PeersTold(Message, frozen=True):
    peers: tuple[Peer, ...]

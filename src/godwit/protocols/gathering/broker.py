"""The gathering broker: a core without I/O that owns one cell of space and serves the clients that attach to it.

Its parts are `dissemination` (where subscriptions and events go), `mobility` (clients that move), `membership` (how
brokers join) and `takeover` (how brokers that failed are replaced). All of them know only what messages told them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from godwit.protocols.gathering.assurance import Assurance
from godwit.protocols.gathering.clients import CareOfStore, PointerTable, ProfileStore
from godwit.protocols.gathering.dissemination import Dissemination
from godwit.protocols.gathering.membership import JOINING, Membership, Stage
from godwit.protocols.gathering.messages import (
    Assigned,
    Associate,
    CareOfMoved,
    Change,
    Copied,
    Entrusted,
    Forward,
    Handover,
    HandoverAnswer,
    Locate,
    Located,
    Lookup,
    LookupAnswer,
    Matched,
    NotifyAck,
    Pub,
    Publish,
    Ready,
    Refused,
    Register,
    Registered,
    Replica,
    State,
    Stored,
    Sub,
    Subscribe,
    Unsub,
    Unsubscribe,
    Update,
    UpdateAnswer,
)
from godwit.protocols.gathering.mobility import Mobility
from godwit.protocols.gathering.rules import CORRECTED, Rules
from godwit.protocols.gathering.space import WHOLE, Cell, Point
from godwit.protocols.gathering.subscriptions import SubscriptionStore
from godwit.protocols.gathering.takeover import Takeover
from godwit.protocols.host import Host, Message, NodeId, Record, RemoteError
from godwit.protocols.topology.pastry.keys import Key, number_of, padded
from godwit.protocols.topology.pastry.links import Links
from godwit.protocols.topology.pastry.messages import Destination, Hop, HopAck, KeepAlive
from godwit.protocols.topology.pastry.node import PastryNode, RingOptions
from godwit.protocols.topology.pastry.peers import Peer
from godwit.protocols.topology.ring import Application, Ring

Overlay = Callable[[Host, Links, Peer, Application, RingOptions], Ring]
"""Who decides the next hop: Pastry, or another overlay that routes by prefixes."""


class GatheringBroker:
    """`begin` makes it a member at once, `join` lets it in through others; before either it hears nobody."""

    def __init__(self, host: Host, place: Point, rules: Rules = CORRECTED, overlay: Overlay = PastryNode) -> None:
        self.host = host
        self.place = place
        self.rules = rules
        self.overlay = overlay
        self.links = Links(host, ack_s=rules.ack_s, tries=rules.tries)
        self.store = SubscriptionStore()
        self.profiles = ProfileStore()
        self.pointers = PointerTable(rules.pointers_max, epochs=rules.epochs)
        self.care_of = CareOfStore(epochs=rules.epochs)
        self.counts: Counter[str] = Counter()
        self.key: Key = b""
        self.number = 0
        self.cell = WHOLE
        self._ring: Ring | None = None
        self.membership = Membership(self)
        self.dissemination = Dissemination(self)
        self.mobility = Mobility(self)
        self.assurance = Assurance(self)
        self.takeover = Takeover(self)

    @property
    def ring(self) -> Ring:
        assert self._ring is not None, "a broker that is outside routes nothing"
        return self._ring

    @property
    def is_member(self) -> bool:
        return self.membership.stage is Stage.MEMBER

    def begin(self, cell: Cell = WHOLE, peers: Sequence[Peer] = ()) -> None:
        """The first of a ring, or one whose cell and tables come from a map."""
        self.become(padded(cell.prefix), cell)
        self.membership.begin()
        self.ring.begin(peers)

    def join(self, *via: NodeId) -> None:
        self.membership.join(*via)

    def become(self, key: Key, cell: Cell) -> None:
        """Take a name and a cell; from now on this broker can be on the ring."""
        self.key, self.number, self.cell = key, number_of(key), cell
        me = Peer(self.host.name, key, self.place)
        self._ring = self.overlay(self.host, self.links, me, self, self.rules.ring)

    def leave(self) -> None:
        """Be outside again, after a join that came to nothing."""
        self._ring = None
        self.store = SubscriptionStore()

    def count(self, what: str, how_many: int = 1) -> None:
        self.counts[what] += how_many
        self.host.trace(Record("counted", note=what, size_b=how_many))

    def forget_elsewhere(self) -> None:
        """Drop the subscriptions that touch no region served here."""
        boxes = [cell.box(dimensions=len(self.place)) for cell in (self.cell, *self.takeover.cells())]
        self.store.keep_only(lambda one: any(one.area.meets(box) for box in boxes))

    # From the world

    def receive(self, sender: NodeId, message: Message, /) -> None:
        kind = type(message)
        if kind is HopAck:
            self.links.confirm(message)  # type: ignore[arg-type]
        elif kind is Hop:
            self._hop(sender, message)  # type: ignore[arg-type]
        elif kind is KeepAlive:
            if self._ring is not None:
                self._ring.receive(sender, message)
        elif (handler := CLIENTS.get(kind)) is None:
            raise RemoteError(f"a broker has no use for {kind.__name__}")
        elif self._ring is not None:
            handler(self, sender, message)

    def _hop(self, sender: NodeId, hop: Hop[Any]) -> None:
        """Who is not on the ring confirms nothing: the sender must find another way."""
        if self._ring is not None:
            if self.links.opened(sender, hop):
                self._ring.receive(sender, hop.body)
        elif isinstance(hop.body, JOINING) and self.links.opened(sender, hop):
            self.hear(sender, hop.body)

    # From the ring

    def hear(self, sender: NodeId, body: Any, /) -> None:
        kind = type(body)
        if kind in LOCATED:
            self.dissemination.take(body)
        elif (handler := DIRECT.get(kind)) is None:
            raise RemoteError(f"a broker has no use for {kind.__name__} over one hop")
        else:
            handler(self, sender, body)

    def deliver(self, destinations: Sequence[Destination], body: Any, hops: int, /) -> None:
        kind = type(body)
        if kind is Matched:
            self._notices(destinations, body, hops)
        elif kind in LOCATED:
            self._located(body, hops)
        elif (handler := KEYED.get(kind)) is None:
            raise RemoteError(f"a broker has no use for {kind.__name__} at a key")
        else:
            handler(self, body)

    def _located(self, message: Located, hops: int) -> None:
        """By way of a key, since nobody of the region was known: count the hops that it took."""
        self.dissemination.take(replace(message, hops=message.hops - 1 + hops))

    def _notices(self, destinations: Sequence[Destination], body: Matched, hops: int) -> None:
        for destination in destinations:
            self.host.trace(Record("notified", event=body.notice.item.item, hops=hops))
            for client, sids in destination.clients:
                self.mobility.deliver(client, body.notice, sids)

    def entered(self) -> None:
        self.membership.entered()

    def met(self, peer: Peer, /) -> None:
        self.membership.met(peer)
        self.takeover.met(peer)

    def gone(self, peer: Peer, /) -> None:
        self.takeover.gone(peer)

    def _care_of_moved(self, sender: NodeId, message: CareOfMoved) -> None:
        for entry in message.entries:
            self.care_of.put(entry.client, entry.broker, entry.epoch)

    def _nothing(self, *_: object) -> None:
        """Answers that end a conversation; they are counted where they travel."""


Handler = Callable[[GatheringBroker, NodeId, Any], None]

LOCATED = frozenset((Sub, Unsub, Pub, Locate))

CLIENTS: dict[type[Message], Handler] = {
    Associate: lambda broker, sender, message: broker.mobility.associate(sender, message),
    Subscribe: lambda broker, sender, message: broker.dissemination.subscribe(message),
    Unsubscribe: lambda broker, sender, message: broker.dissemination.unsubscribe(message),
    Publish: lambda broker, sender, message: broker.dissemination.publish(message.item),
    NotifyAck: lambda broker, sender, message: broker.mobility.acknowledged(message),
}
"""Over the radio."""

DIRECT: dict[type[Message], Handler] = {
    Assigned: lambda broker, sender, message: broker.membership.assigned(message),
    Ready: lambda broker, sender, message: broker.membership.ready(sender, message),
    State: lambda broker, sender, message: broker.membership.told(message),
    Refused: lambda broker, sender, message: broker.membership.refused(message),
    CareOfMoved: GatheringBroker._care_of_moved,
    Replica: lambda broker, sender, message: broker.takeover.keep(message),
    Entrusted: lambda broker, sender, message: broker.takeover.entrusted(message),
    Change: lambda broker, sender, message: broker.assurance.change(sender, message),
    Copied: lambda broker, sender, message: broker.assurance.copied(sender, message),
}
"""Over one hop."""

KEYED: dict[type[Message], Callable[[GatheringBroker, Any], None]] = {
    Forward: lambda broker, body: broker.mobility.deliver(body.client, body.notice, body.sids),
    Register: lambda broker, body: broker.mobility.register(body),
    Registered: lambda broker, body: broker.mobility.registered(body),
    Lookup: lambda broker, body: broker.mobility.lookup(body),
    LookupAnswer: lambda broker, body: broker.mobility.found(body),
    Handover: lambda broker, body: broker.mobility.hand_over(body),
    HandoverAnswer: GatheringBroker._nothing,
    Update: lambda broker, body: broker.mobility.update(body),
    UpdateAnswer: GatheringBroker._nothing,
    Stored: lambda broker, body: broker.assurance.stored(body),
}
"""At the node in charge of a key."""

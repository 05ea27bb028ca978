"""Publishers that move (spec 2.11.5, 2.11.6): no state travels, but nobody who wants the events may be left behind.

The destination advertises and sends a marker behind that to the source, which sends an acknowledgement back along the
same links, behind the subscriptions that the advert has drawn. Until it comes, publications wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import LocalError, NodeId
from godwit.protocols.relocation.messages import Mark
from godwit.protocols.routing.covering.messages import Marker
from godwit.protocols.routing.covering.router import Changes

if TYPE_CHECKING:
    from godwit.protocols.relocation.broker import Outgoing, RelocationBroker


class Desk:
    """One stay of a publisher. While it is not `ready`, what it publishes waits, and so does whoever asks for it.

    Who comes back to where it just was goes on with the same stay: `hop` grows, `born` does not.
    """

    def __init__(self, publisher: str, hop: int, adverts: Iterable[Filter], *, ready: bool) -> None:
        self.publisher = publisher
        self.hop = self.born = hop
        self.interface = f"{publisher}#{hop}!"
        """Its name as a client of the routing network."""
        self.adverts = tuple(adverts)
        self.ready = ready
        self.waiting: list[Event] = []
        self.asking: Marker | None = None


class Publishers:
    """The stays of publishers at one broker, by publisher and hop."""

    def __init__(self, broker: RelocationBroker) -> None:
        self.broker = broker
        self.desks: dict[tuple[str, int], Desk] = {}
        self._born: dict[tuple[str, int], Desk] = {}

    def open(self, publisher: str, adverts: Iterable[Filter], hop: int = 0) -> None:
        adverts = tuple(adverts)
        self.broker.check(adverts, self.broker.name)
        desk = self._new(Desk(publisher, hop, adverts, ready=True))
        self.broker.say(self._advertise(desk))

    def is_served(self, publisher: str, hop: int) -> bool:
        """Whether what it publishes here goes out at once."""
        desk = self.desks.get((publisher, hop))
        return desk is not None and desk.ready

    def publish(self, publisher: str, hop: int, event: Event) -> None:
        desk = self.desks.get((publisher, hop))
        if desk is None:
            raise LocalError(f"{publisher} has no stay {hop} at {self.broker.name}: it cannot publish here")
        if desk.ready:
            self.broker.publish(desk.interface, event)
        else:
            desk.waiting.append(event)

    def come(
        self, publisher: str, hop: int, adverts: Iterable[Filter], source: NodeId, *, announced: bool = False
    ) -> None:
        """The publisher is here for its stay `hop`, and was at `source` for the one before.

        `announced` says that the source has laid the way, so that what is not here yet is only waited for.
        """
        adverts = tuple(adverts)
        self.broker.check(adverts, source)
        if source == self.broker.name:
            self._back(publisher, hop)
        elif (publisher, hop) not in self.desks:
            desk = self._new(Desk(publisher, hop, adverts, ready=False))
            if not announced:
                self._ask(desk, source)

    def move_out(self, publisher: str, hop: int, to: NodeId, *, one_direction: bool = False) -> None:
        """Make before break; the publisher goes on here until `on_ready`. One direction makes it ready at once."""
        broker, desk = self.broker, self.desks.get((publisher, hop))
        if desk is None or not desk.ready:
            return
        if not one_direction:
            marker = Marker(Mark.TRIGGER, publisher, hop + 1, to, broker.name, "", desk.adverts, publisher=True)
            broker.tell({}, broker.onward(marker))
            return
        broker.pave("", Marker(Mark.ADVERT_PATH, publisher, hop + 1, to, broker.name, "", desk.adverts))
        self._close(desk)
        broker.on_ready(publisher, to)

    # The destination.

    def _ask(self, desk: Desk, source: NodeId) -> None:
        broker = self.broker
        via = broker.place(desk.adverts)
        marker = Marker(Mark.ADVERT, desk.publisher, desk.hop, source, broker.name, via)
        changes = self._advertise(desk)
        broker.say(changes, self.met(marker) if via == broker.name else broker.onward(marker))

    def triggered(self, marker: Marker) -> None:
        if (marker.client, marker.hop) not in self.desks:
            desk = self._new(Desk(marker.client, marker.hop, marker.filters, ready=False))
            self._ask(desk, marker.origin)

    def acknowledged(self, sender: NodeId, marker: Marker) -> None:
        desk = self._born.get((marker.client, marker.hop))
        if desk is not None and not desk.ready:
            self._start(desk)

    def path_ended(self, sender: NodeId, marker: Marker) -> None:
        key = marker.client, marker.hop
        self.broker.presume(sender, marker)
        desk = self.desks.get(key) or self._new(Desk(*key, marker.filters, ready=False))
        self.broker.say(self._advertise(desk))
        self._start(desk)

    def _start(self, desk: Desk) -> None:
        desk.ready = True
        for event in desk.waiting:
            self.broker.publish(desk.interface, event)
        desk.waiting = []
        if desk.asking is not None:
            self._yield(desk, desk.asking)

    # On the way.

    def met(self, marker: Marker) -> Outgoing:
        """The rendezvous point answers itself, behind the subscriptions that it has just sent, and tells the source."""
        broker = self.broker
        ack = Marker(Mark.ACK, marker.client, marker.hop, marker.origin, broker.name)
        told = msgspec.structs.replace(marker, via="", kind=Mark.ADVERT)
        ways: Outgoing = {}
        for one in (ack, told):
            for neighbor, markers in (broker.end(one) if one.to == broker.name else broker.onward(one)).items():
                ways.setdefault(neighbor, []).extend(markers)
        return ways

    # The source.

    def asked(self, sender: NodeId, marker: Marker) -> None:
        """Acknowledge before withdrawing, so that the way back is behind nothing that takes subscriptions away."""
        desk = self.desks.get((marker.client, marker.hop - 1))
        if desk is None:
            self._ack(marker)
        elif desk.ready:
            self._yield(desk, marker)
        else:
            desk.asking = marker

    def _yield(self, desk: Desk, marker: Marker) -> None:
        self._ack(marker)
        self._close(desk)
        self.broker.on_ready(desk.publisher, marker.origin)

    def _ack(self, marker: Marker) -> None:
        """With rendezvous points the point itself has done so."""
        broker = self.broker
        if not broker.rules.rendezvous:
            ack = Marker(Mark.ACK, marker.client, marker.hop, marker.origin, broker.name)
            broker.tell({}, broker.onward(ack))

    def _close(self, desk: Desk) -> None:
        del self.desks[desk.publisher, desk.hop]
        del self._born[desk.publisher, desk.born]
        for offered in desk.adverts:
            self.broker.unadvertise(desk.interface, offered)

    # Both.

    def _back(self, publisher: str, hop: int) -> None:
        desk = self.desks.get((publisher, hop - 1))
        if desk is None or desk.asking is not None:
            raise LocalError(f"{publisher} says that it comes back, but its stay {hop - 1} is not here any more")
        del self.desks[publisher, desk.hop]
        desk.hop = hop
        self.desks[publisher, hop] = desk

    def _new(self, desk: Desk) -> Desk:
        self.desks[desk.publisher, desk.hop] = desk
        self._born[desk.publisher, desk.born] = desk
        return desk

    def _advertise(self, desk: Desk) -> list[Changes]:
        return [self.broker.router.advertise(desk.interface, offered) for offered in desk.adverts]

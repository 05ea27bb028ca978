"""A broker whose clients may move: sessions, what is kept for them, and the markers that travel behind statements."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import Host, LocalError, Message, NodeId, Record, RemoteError
from godwit.protocols.relocation.checks import Checks
from godwit.protocols.relocation.messages import Late, Mark, Transfer, TransferRequest
from godwit.protocols.relocation.pings import Pings
from godwit.protocols.relocation.publishers import Publishers
from godwit.protocols.relocation.rules import ADDRESSED, Rules
from godwit.protocols.relocation.subscribers import Subscribers
from godwit.protocols.routing.covering.broker import Broker
from godwit.protocols.routing.covering.messages import Marker
from godwit.protocols.routing.covering.router import Changes, Router
from godwit.protocols.routing.covering.scopes import Rendezvous, kind_of
from godwit.tables.table import Interface

Outgoing = dict[NodeId, list[Marker]]


class RelocationBroker(Broker):
    """A client names each of its stays by a number that grows: `hop`. It tells a new broker where it was and what it
    wants; all else is between brokers.

    `toward` names the neighbor on the way to each broker: the overlay's own addressing.
    """

    def __init__(self, host: Host, router: Router, toward: Mapping[NodeId, NodeId], rules: Rules = ADDRESSED) -> None:
        super().__init__(host, router)
        self.toward = toward
        self.rules = rules
        self.on_ready: Callable[[str, NodeId], None] = lambda client, to: None
        """Make before break: the client may go there now."""
        self.subscribers = Subscribers(self)
        self.publishers = Publishers(self)
        self.pings = Pings(self)
        self.checks = Checks(self)
        self._ended: deque[tuple[NodeId, Marker]] = deque()
        self._arrivals: dict[str, Callable[[NodeId, Marker], None]] = {
            Mark.UPDATE: self.subscribers.asked,
            Mark.SEARCH: self.subscribers.asked,
            Mark.BACK: self.subscribers.asked,
            Mark.TRIGGER: self._triggered,
            Mark.PATH: self._paved,
            Mark.ADVERT: self.publishers.asked,
            Mark.ACK: self.publishers.acknowledged,
            Mark.ADVERT_PATH: self._paved,
            Mark.CHECK: self.checks.arrived,
            Mark.CHECKED: self.checks.answered,
        }

    def receive(self, sender: NodeId, message: Message, /) -> None:
        match message:
            case TransferRequest(client, hop, to):
                self.subscribers.requested(to or sender, client, hop)
            case Transfer():
                self.subscribers.filled(message)
            case Late():
                self.subscribers.came_late(message)
            case _:
                super().receive(sender, message)

    def heard(self, sender: NodeId, markers: Iterable[Marker]) -> Mapping[NodeId, Sequence[Marker]]:
        onward: Outgoing = {}
        for marker in markers:
            for neighbor, more in self._heard(sender, marker).items():
                onward.setdefault(neighbor, []).extend(more)
        return onward

    def settle(self) -> None:
        """An acknowledgement must follow the subscriptions that the same message has drawn, never go before them."""
        while self._ended:
            sender, marker = self._ended.popleft()
            self._arrivals[marker.kind](sender, marker)

    def _heard(self, sender: NodeId, marker: Marker) -> Outgoing:
        if marker.via == self.name:
            return self.publishers.met(marker) if marker.kind == Mark.ADVERT else self.subscribers.met(marker)
        paving = marker.kind in (Mark.PATH, Mark.ADVERT_PATH)
        if (marker.to == self.name and not marker.via) or paving:
            self._ended.append((sender, marker))
            return {}
        if marker.kind in (Mark.SEARCH, Mark.BACK):
            return self.subscribers.searching(sender, marker)
        if marker.kind in (Mark.CHECK, Mark.CHECKED):
            return self.checks.passing(marker)
        return self.onward(marker)

    def end(self, marker: Marker) -> Outgoing:
        """A marker that need not travel: it is where it should come to."""
        self._ended.append((self.name, marker))
        return {}

    def _triggered(self, sender: NodeId, marker: Marker) -> None:
        if marker.publisher:
            self.publishers.triggered(marker)
        else:
            self.subscribers.triggered(marker)

    def _paved(self, sender: NodeId, marker: Marker) -> None:
        if marker.to != self.name:
            self.pave(sender, marker)
        elif marker.kind == Mark.PATH:
            self.subscribers.path_ended(sender, marker)
        else:
            self.publishers.path_ended(sender, marker)

    def onward(self, marker: Marker) -> Outgoing:
        """Relay it one hop, behind whatever this turn says on the same link."""
        return {self.way(marker.via or marker.to): [marker]}

    def way(self, to: NodeId) -> NodeId:
        """The neighbor on the way to a broker."""
        if to not in self.toward:
            raise RemoteError(f"{self.name} was asked for the way to {to!r}, which is no broker of this network")
        return self.toward[to]

    def check(self, filters: Iterable[Filter], source: NodeId) -> None:
        """A client may say anything; what it says is checked before anything is changed."""
        if source not in self.toward and source != self.name:
            raise LocalError(
                f"{source!r} is no broker of this network: a client that moves must name the last it was at"
            )
        for said in filters:
            self.router.check(said)
        self.place(filters)

    def pave(self, sender: NodeId, marker: Marker) -> None:
        """One direction (spec 2.11.7): note the filters as if the next hop had said them, and go on.

        Whoever is next takes them for told to us. `sender` is empty at the source itself.
        """
        ahead = self.way(marker.to)
        self.presume(sender, marker)
        changes = self.router.note(ahead, marker.filters, adverts=marker.kind == Mark.ADVERT_PATH)
        self.tell(changes, {ahead: [marker]})

    def presume(self, sender: NodeId, marker: Marker) -> None:
        if sender:
            book = self.router.offered if marker.kind == Mark.ADVERT_PATH else self.router.wanted
            book.statements.presume(sender, marker.filters)

    def place(self, filters: Iterable[Filter]) -> NodeId:
        """The rendezvous point by which an update goes; empty where the rules go without."""
        return self.point(filters) if self.rules.rendezvous else ""

    def point(self, filters: Iterable[Filter]) -> NodeId:
        """The rendezvous point of these filters, which must have one in common."""
        scope = self.router.scope
        if not isinstance(scope, Rendezvous):
            raise LocalError("only a network with rendezvous points has one; this one goes without")
        places = {scope.place(kind_of(wanted)) for wanted in filters}
        if len(places) != 1:
            raise LocalError("the filters of a client that moves by a rendezvous point must be of one type")
        return places.pop()

    def notify(self, client: Interface, event: Event) -> None:
        if not self.pings.heard(client, event) and not self.subscribers.keep(client, event):
            super().notify(client, event)

    def deliver(self, client: str, event: Event) -> None:
        self.host.trace(Record("delivered", event.id, client=client))
        self.on_notify(client, event)

    def say(self, changes: Sequence[Changes], markers: Outgoing | None = None) -> bool:
        """Several changes, the markers behind the last; whether anybody had to be told anything."""
        *first, last = changes or [{}]
        for change in first:
            self.tell(change)
        self.tell(last, markers)
        self.settle()
        return any(changes)

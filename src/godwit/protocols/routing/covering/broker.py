"""A broker of a routing network: the router with messages, and clients that subscribe, advertise and publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from godwit.events import Event, Value
from godwit.filters.filters import TYPE_ATTRIBUTE, Filter
from godwit.protocols.host import Host, Message, NodeId, Record, RemoteError
from godwit.protocols.routing.covering.messages import Marker, Published, RootSet, Stated
from godwit.protocols.routing.covering.router import Change, Changes, Router
from godwit.protocols.routing.covering.scopes import Rendezvous, kind_of, lifted
from godwit.tables.table import Interface

Notify = Callable[[Interface, Event], None]
Supertypes = Mapping[str, Sequence[str]]
"""By type all those above it, whose rendezvous points hear of it too."""

RECENT_MAX = 4096
"""Events that a broker remembers having told a client, where an event travels as several types."""


class Broker:
    """`receive` takes what neighbors say; the verbs are for clients, whom it knows by names that are no broker's.

    What a client gets goes to `on_notify`: each event once, also where it travels as several types.
    """

    def __init__(self, host: Host, router: Router, *, supertypes: Supertypes | None = None) -> None:
        self.host = host
        self.router = router
        self.supertypes = supertypes or {}
        self.on_notify: Notify = lambda client, event: None
        self._recent: dict[tuple[Interface, tuple[str, int]], None] = {}

    @property
    def name(self) -> NodeId:
        return self.host.name

    def subscribe(self, client: Interface, wanted: Filter) -> None:
        self.tell(self.router.subscribe(client, wanted))

    def unsubscribe(self, client: Interface, wanted: Filter) -> None:
        self.tell(self.router.unsubscribe(client, wanted))

    def advertise(self, client: Interface, offered: Filter) -> None:
        for one in self.lifted(offered):
            self.tell(self.router.advertise(client, one))

    def unadvertise(self, client: Interface, offered: Filter) -> None:
        for one in self.lifted(offered):
            self.tell(self.router.unadvertise(client, one))

    def publish(self, client: Interface, event: Event) -> None:
        for kind in self.kinds(event.type):
            self.route(Published(event, kind), client)

    def report(self) -> None:
        """Tell the master all that is wanted here, in place of what it was told before (spec 2.7.1)."""
        for master in sorted(self.router.scope.told):
            self.host.send(master, RootSet(tuple(self.router.wanted.table.roots())))

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if sender not in self.router.neighbors:
            raise RemoteError(f"{sender} is no neighbor of {self.name}, and said {type(message).__name__}")
        match message:
            case Stated():
                changes = self.router.hear(sender, message.adverts, message.subscriptions)
                self.tell(changes, self.heard(sender, message.markers))
                self.settle()
            case Published():
                self.route(message, sender)
            case RootSet(filters):
                self.tell(self.router.replace(sender, filters))
            case _:
                raise RemoteError(f"{sender} said {type(message).__name__}, which a broker does not understand")

    def heard(self, sender: NodeId, markers: Iterable[Marker]) -> Mapping[NodeId, Sequence[Marker]]:
        """Markers that came behind what was just noted; returns those that go on, by neighbor."""
        return {}

    def settle(self) -> None:
        """Do what markers ask for that end here: only now has been told what came before them."""

    def tell(self, changes: Changes, markers: Mapping[NodeId, Sequence[Marker]] | None = None) -> None:
        """One message for each neighbor: what it must know, and the markers behind that."""
        markers = markers or {}
        for neighbor in sorted({*changes, *markers}):
            change = changes.get(neighbor, Change())
            self.host.send(
                neighbor,
                Stated(
                    change.adverts.removed,
                    change.adverts.added,
                    change.subscriptions.removed,
                    change.subscriptions.added,
                    tuple(markers.get(neighbor, ())),
                ),
            )

    def route(self, message: Published, source: Interface) -> None:
        values = self.values(message)
        for neighbor in sorted(self.router.ways(values, message.kind, source)):
            self.host.send(neighbor, message)
        for client in sorted(self.router.clients(values) - {source}):
            self.notify(client, message.event)

    def notify(self, client: Interface, event: Event) -> None:
        if len(self.kinds(event.type)) > 1 and not self._is_new(client, event):
            return
        self.host.trace(Record("delivered", event.id, client=client))
        self.on_notify(client, event)

    def kinds(self, kind: str) -> Sequence[str]:
        """The types as which something of this type travels."""
        return (kind, *self.supertypes.get(kind, ()))

    def lifted(self, offered: Filter) -> list[Filter]:
        if not self.supertypes:
            return [offered]
        return [lifted(offered, kind) for kind in self.kinds(kind_of(offered))]

    def values(self, message: Published) -> Mapping[str, Value]:
        """What filters see: an event that travels as one of its supertypes is of that type."""
        event = message.event
        if message.kind == event.type:
            return event.values()
        return {**event.values(), TYPE_ATTRIBUTE: message.kind}

    def _is_new(self, client: Interface, event: Event) -> bool:
        key = (client, event.id)
        if key in self._recent:
            return False
        self._recent[key] = None
        if len(self._recent) > RECENT_MAX:
            del self._recent[next(iter(self._recent))]
        return True


class TypeBroker(Broker):
    """Type-based rendezvous (spec 2.11.6): all events of a type pass its point.

    With `turned` nodes on the way up only relay, and the point turns the event downwards, also to where it came from.
    Otherwise each node on the way already serves everybody but the sender, and the point sends nothing back. Either
    rule delivers once; mixed they do not, so that all brokers of a network follow the same one.
    """

    def __init__(
        self, host: Host, router: Router, *, supertypes: Supertypes | None = None, turned: bool = False
    ) -> None:
        super().__init__(host, router, supertypes=supertypes)
        self.turned = turned

    def route(self, message: Published, source: Interface) -> None:
        scope = self.router.scope
        assert isinstance(scope, Rendezvous)
        up = frozenset() if message.down else scope.up(message.kind)
        for neighbor in sorted(up):
            self.host.send(neighbor, message)
        if self.turned and up:
            return
        # Only the point itself sends back: it is where nothing goes up, and what came up is turned.
        skipped = "" if self.turned and not message.down else source
        self._serve(Published(message.event, message.kind, down=True), skipped, source)

    def _serve(self, message: Published, skipped: Interface, source: Interface) -> None:
        values = self.values(message)
        for neighbor in sorted((self.router.wanted.table.match(values) & self.router.neighbors) - {skipped}):
            self.host.send(neighbor, message)
        for client in sorted(self.router.clients(values) - {source}):
            self.notify(client, message.event)

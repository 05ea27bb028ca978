"""Gossip, the baseline (spec manet-cbr 2.8): whoever hears an event for the first time sends it on with a probability.

No beacons, no lists, no credits, nobody is silenced: who wants what plays no part in it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from godwit.events import Event
from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.clients import Clients
from godwit.protocols.adhoc.messages import Data
from godwit.protocols.adhoc.seen import Recent
from godwit.protocols.host import Host, LocalError, Message, NodeId, Record, RemoteError


class GossipOptions(msgspec.Struct, frozen=True, kw_only=True):
    probability: float = 0.5
    jitter_s: float = 0.01
    """A wait from nothing up to this before an event is sent on: else all hearers speak at once."""
    seen_max: int = 4096
    seen_s: float = 60.0

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability {self.probability:g}: from 0 to 1")


class GossipBroker:
    """The same verbs as `ProximityBroker`."""

    def __init__(
        self,
        host: Host,
        options: GossipOptions | None = None,
        *,
        on_event: Callable[[str, Event], None] = lambda client, event: None,
    ) -> None:
        self.host = host
        self.options = options or GossipOptions()
        self.on_event = on_event
        self.clients = Clients(summary_max_b=1)
        self.seen: Recent[None] = Recent(self.options.seen_max, self.options.seen_s)

    def subscribe(self, wanted: FilterSet, client: str) -> None:
        self.clients.subscribe(wanted, client)

    def unsubscribe(self, wanted: FilterSet, client: str) -> None:
        self.clients.unsubscribe(wanted, client)

    def publish(self, event: Event) -> None:
        if event.id in self.seen:
            raise LocalError(f"event {event.id} has been published before; its publisher must count on")
        self.host.trace(Record("published", event.id))
        self._take(event)
        self.host.broadcast(Data(event))

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if not isinstance(message, Data):
            raise RemoteError(f"{type(message).__name__} is no message of gossip")
        if sender == self.host.name or message.event.id in self.seen:
            return
        self._take(message.event)
        if self.host.random.random() < self.options.probability:
            onward = Data(message.event)
            self.host.after(self.host.random.random() * self.options.jitter_s, lambda: self.host.broadcast(onward))

    def _take(self, event: Event) -> None:
        self.seen.add(event.id, None, self.host.now())
        for client in self.clients.wanting(event):
            self.host.trace(Record("delivered", event.id, client=client))
            self.on_event(client, event)

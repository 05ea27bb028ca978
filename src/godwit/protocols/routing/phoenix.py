"""Phoenix (spec mft-pubsub 2.2): fixed brokers, moving clients, and replay of what they missed by local time stamps."""

from __future__ import annotations

from collections import deque

from godwit.events import Event
from godwit.protocols.host import Host, Message, NodeId, Record
from godwit.protocols.routing.messages import Mig, Pub, Rep, Sub, Uns
from godwit.protocols.routing.routes import Routes
from godwit.protocols.topology.tree import Tree


class PhoenixBroker:
    """Logs every event for its local clients, delivered or not, and replays the newer ones to wherever a client went.

    Stamps are this broker's own clock and are compared nowhere else. A log keeps at most `log_max` events per client;
    the thesis leaves it unbounded.
    """

    def __init__(self, host: Host, tree: Tree, *, log_max: int = 10_000) -> None:
        self.host = host
        self.tree = tree
        self.routes = Routes()
        self.local: set[NodeId] = set()
        self.logs: dict[NodeId, deque[tuple[Event, float]]] = {}
        self.log_max = log_max

    def receive(self, sender: NodeId, message: Message, /) -> None:
        match message:
            case Sub(wanted, subscriber):
                self.routes.add(wanted, sender, subscriber)
                if sender not in self.tree.neighbors:
                    self.local.add(subscriber)
                self._spread(message, sender)
            case Uns(wanted, subscriber):
                self.routes.discard(wanted, subscriber)
                if sender not in self.tree.neighbors and subscriber not in self.routes:
                    self.local.discard(subscriber)
                self._spread(message, sender)
            case Pub(event, hops):
                self._publish(sender, event, hops)
            case Mig(subscriber):
                self._client_moved(sender, subscriber, message)
            case Rep():
                self._replay(message)

    def _spread(self, message: Message, arrived: NodeId) -> None:
        for neighbor in sorted(self.tree.neighbors):
            if neighbor != arrived:
                self.host.send(neighbor, message)

    def _publish(self, sender: NodeId, event: Event, hops: int) -> None:
        stamp = self.host.now()
        for hop in self.routes.interested(event.values(), sender):
            if hop in self.local:
                self._log(hop, event, stamp)
            self.host.send(hop, Pub(event, hops + 1, stamp))

    def _client_moved(self, sender: NodeId, subscriber: NodeId, message: Mig) -> None:
        if subscriber not in self.local:
            if sender == subscriber:
                self.local.add(subscriber)
            hop = self.routes.hop(subscriber)
            self.routes.point(subscriber, sender)
            if hop is not None and hop in self.tree.neighbors:
                self.host.send(hop, message)
            return
        if sender != subscriber:
            self.local.discard(subscriber)
        self.routes.point(subscriber, sender)
        for event, stamp in self.logs.pop(subscriber, ()):
            if message.last is None or stamp > message.last:
                self.host.trace(Record("replayed", event.id, client=subscriber, peer=sender))
                self._pass_on(sender, event, subscriber)

    def _replay(self, message: Rep) -> None:
        hop = self.routes.hop(message.subscriber)
        if hop is not None:
            for event in message.events:
                self._pass_on(hop, event, message.subscriber)

    def _pass_on(self, hop: NodeId, event: Event, subscriber: NodeId) -> None:
        """Towards the subscriber; its own broker logs the event again, since the client may move on meanwhile."""
        stamp = None
        if hop == subscriber:
            stamp = self.host.now()
            self._log(subscriber, event, stamp)
        self.host.send(hop, Rep((event,), subscriber, stamp=stamp))

    def _log(self, subscriber: NodeId, event: Event, stamp: float) -> None:
        log = self.logs.setdefault(subscriber, deque())
        log.append((event, stamp))
        if len(log) > self.log_max:
            log.popleft()

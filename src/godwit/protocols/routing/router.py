"""What the recursive approach and MFT-PubSub share: attached clients, queues of undelivered events, PUB and REP.

The next hop of every subscriber stands in `routes`. An event whose next hop is no interface of ours, or does not
acknowledge it, is stored here for each subscriber that wants it, and replayed when a new way opens.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice

from godwit.events import Event
from godwit.protocols.host import Host, Message, NodeId, Record
from godwit.protocols.routing.courier import Carried, Courier, Numbered
from godwit.protocols.routing.messages import Ack, Pub, Rep
from godwit.protocols.routing.routes import Routes
from godwit.protocols.routing.rules import HOPS_MAX, Rules
from godwit.protocols.topology.tree import Tree

Queue = dict[tuple[str, int], Event]
"""Events by their names, oldest first. A lost acknowledgement makes copies; they must not pile up where they meet."""


class Router:
    """A broker with identities in its table. Subclasses say how tables follow movement."""

    def __init__(
        self,
        host: Host,
        tree: Tree,
        rules: Rules,
        *,
        acknowledge: bool = False,
        acknowledge_brokers: bool = True,
        retry_s: float = 1.0,
        replay_batch: int = 1,
        queue_max: int | None = None,
        courier: Courier | None = None,
    ) -> None:
        self.host = host
        self.tree = tree
        self.rules = rules
        self.acknowledge = acknowledge
        self.acknowledge_brokers = acknowledge_brokers
        """False: as the text says, only subscribers acknowledge events; what a broker was sent is taken for arrived."""
        self.retry_s = retry_s
        self.replay_batch = replay_batch
        self.queue_max = queue_max
        self.routes = Routes()
        self.attached: set[NodeId] = set()
        self.queues: dict[NodeId, Queue] = {}
        self.courier = courier or Courier(host)
        self._failed_at: dict[NodeId, float] = {}
        tree.on_migrate = self.migrate
        tree.on_returned = self.returned
        if acknowledge and retry_s:
            host.after(retry_s, self._retry)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        """Handle one message. Whoever is no interface of ours is ignored, unless the message makes it one (D5)."""
        if isinstance(message, Ack):
            # It answers what this broker has sent, to a client that was given up perhaps: that is how one comes back.
            self.courier.acknowledged(sender, message)
            return
        parts = message.parts if isinstance(message, Numbered) else (message,)
        if not self.admits(sender, parts[0]):
            return
        for part in self.courier.open(sender, message) if isinstance(message, Numbered) else parts:
            if self.admits(sender, part):
                self.handle(sender, part)

    def admits(self, sender: NodeId, message: Message) -> bool:
        raise NotImplementedError

    def handle(self, sender: NodeId, message: Message) -> None:
        raise NotImplementedError

    def migrate(self, old: NodeId | None, new: NodeId) -> None:
        raise NotImplementedError

    def returned(self, child: NodeId) -> None:
        """A child that never noticed it was given up; the published protocol does nothing."""

    def undelivered(self, message: Carried) -> None:
        """A control message did not reach its neighbor before that left; the published protocol does nothing."""

    def is_interface(self, name: NodeId | None) -> bool:
        return name in self.attached or name in self.tree.neighbors

    def point(self, subscriber: NodeId, hop: NodeId) -> None:
        """Re-point a subscriber, unless it is attached here and the rules say that it stays (H5)."""
        if self.rules.attached_stay and subscriber in self.attached and hop != subscriber:
            return
        self.routes.point(subscriber, hop)

    def tell(self, to: NodeId, message: Carried) -> None:
        """Send a control message; if the rules say so, until a neighbor has it or is none any more (2.7)."""
        if self.acknowledge and self.rules.acknowledge_control and self.is_interface(to):
            failed = partial(self._not_told, to)
            self.courier.tell(to, message, failed, keep_on=lambda: to in self.tree.neighbors)
        else:
            self.courier.send(to, message)

    def _not_told(self, to: NodeId, message: Carried) -> None:
        self.detach(to)
        self.undelivered(message)

    def spread(self, message: Carried, arrived: NodeId) -> None:
        for neighbor in sorted(self.tree.neighbors):
            if neighbor != arrived:
                self.tell(neighbor, message)

    def publish(self, sender: NodeId, message: Pub) -> None:
        event = message.event
        interested = self.routes.interested(event.values(), sender)
        if sender not in self.tree.neighbors:
            for subscribers in interested.values():
                for subscriber in subscribers:
                    self.host.trace(Record("routed", event.id, client=subscriber))
        for hop, subscribers in interested.items():
            if self.is_interface(hop):
                named = tuple(subscribers) if self.rules.addressed and hop in self.tree.neighbors else ()
                self._hand_event(hop, Pub(event, message.hops + 1, to=named), [event], subscribers)
            else:
                self._store([event], subscribers)
        self._keep(sender, event, message.to)

    def _keep(self, sender: NodeId, event: Event, named: Iterable[NodeId]) -> None:
        """Store an event that was sent here for somebody whom this broker cannot send it on to."""
        stuck = [s for s in named if self.routes.hop(s) in (None, sender) and not self.has_left(s)]
        self._store([event], stuck)
        self.led_back(s for s in stuck if s in self.routes)

    def has_left(self, subscriber: NodeId) -> bool:
        """Whether the subscriber is known to want nothing any more."""
        return False

    def led_back(self, subscribers: Iterable[NodeId]) -> None:
        """Their events come from where they should go; the published protocol does nothing."""

    def replay(self, sender: NodeId, message: Rep) -> None:
        """Relay stored events towards their subscriber; never back where they come from (H9)."""
        subscriber, hop = message.subscriber, self.routes.hop(message.subscriber)
        tired = self.rules.loops_end and message.hops >= HOPS_MAX
        if hop is not None and self.is_interface(hop) and hop != sender and not tired:
            self._hand_event(hop, Rep(message.events, subscriber, message.hops + 1), message.events, [subscriber])
        else:
            self._store(message.events, [subscriber])
            if hop == sender:
                self.led_back([subscriber])

    def send_queued(self, subscriber: NodeId, hop: NodeId) -> None:
        """Replay what is stored for a subscriber, in order, as long as the way is open."""
        queue = self.queues.get(subscriber)
        while queue and self.is_interface(hop):
            events = tuple(queue.pop(name) for name in list(islice(queue, self.replay_batch)))
            for event in events:
                self.host.trace(Record("replayed", event.id, client=subscriber, peer=hop))
            self._hand_event(hop, Rep(events, subscriber, 1), events, [subscriber])
        if not queue:
            self.queues.pop(subscriber, None)

    def detach(self, subscriber: NodeId) -> None:
        """The client has gone elsewhere or does not answer; its next hop is not touched, so its events are stored."""
        self.attached.discard(subscriber)

    def _hand_event(self, hop: NodeId, message: Pub | Rep, events: Iterable[Event], subscribers: list[NodeId]) -> None:
        if not self.acknowledge or (hop in self.tree.neighbors and not self.acknowledge_brokers):
            self.courier.send(hop, message)
            return

        def failed() -> None:
            self._failed_at[hop] = self.host.now()
            self.detach(hop)
            self._store(events, subscribers)

        self.courier.hand(hop, message, failed)

    def _store(self, events: Iterable[Event], subscribers: Iterable[NodeId]) -> None:
        for subscriber in subscribers:
            queue = self.queues.setdefault(subscriber, {})
            for event in events:
                if event.id in queue:
                    continue
                queue[event.id] = event
                self.host.trace(Record("queued", event.id, client=subscriber))
                if self.queue_max is not None and len(queue) > self.queue_max:
                    oldest = next(iter(queue))
                    del queue[oldest]
                    self.host.trace(Record("dropped", oldest, client=subscriber, note="queue full"))

    def look_round(self) -> None:
        """Called once in a while; the published protocol does nothing."""

    def _retry(self) -> None:
        """Without this a short failure that causes no migration would strand events for ever."""
        self.look_round()
        for subscriber in list(self.queues):
            hop = self.routes.hop(subscriber)
            if hop is None:
                continue
            if hop in self.tree.neighbors and self.tree.heard_since(hop, self._failed_at.get(hop, 0.0)):
                self.send_queued(subscriber, hop)
            elif hop == subscriber and self.queues[subscriber]:
                self._probe(subscriber)
        self.host.after(self.retry_s, self._retry)

    def _probe(self, subscriber: NodeId) -> None:
        """Offer a silent client the oldest event stored for it; if it takes that, it is back."""
        event = next(iter(self.queues[subscriber].values()))

        def back() -> None:
            self.queues.get(subscriber, {}).pop(event.id, None)
            if self.routes.hop(subscriber) == subscriber:
                self.attached.add(subscriber)
                self.send_queued(subscriber, subscriber)

        self.courier.hand(subscriber, Rep((event,), subscriber, 1), failed=lambda: None, arrived=back)


def is_client(name: NodeId) -> bool:
    """The role is part of a process id: brokers begin with b."""
    return not name.startswith("b")

"""The testbed, emulated: brokers that take their time, a wireless cell at each, and a wired network between them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

import msgspec

from godwit.protocols.handoff.broker import HandoffBroker
from godwit.protocols.handoff.client import MobileClient
from godwit.protocols.handoff.messages import CtxRequest, CtxResponse, Deliver, FwdMsg, Publish
from godwit.protocols.handoff.reactive import Reactive
from godwit.protocols.host import Message, NodeId
from godwit.sim.engine import Engine
from godwit.sim.wired import Wired
from godwit.sim.world import Node, World


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker of the testbed takes; chosen by hand, near the rates that 4.2 derives from the published tables."""

    accept_s: float = 0.016
    """A publication, whoever wants it: persistent, synchronous."""
    deliver_s: float = 0.0012
    store_s: float = 0.00065
    """Each subscriber for whom an event is kept."""
    control_s: float = 0.002
    transfer_s: float = 0.003
    """Each event of a context or a catch-up, at either end."""
    connection_s: float = 0.15
    """Reactive: proxies open a connection for each handoff."""


class Air(msgspec.Struct, frozen=True, kw_only=True):
    """IEEE 802.11 as emulated; the published text gives the bandwidth only."""

    bits_per_s: float = 11e6
    delay_s: tuple[float, float] = (0.002, 0.005)
    loss: float = 0.005
    recovery_s: float = 0.2
    """What a lost packet costs until it is repeated; TCP keeps the order."""
    late_s: float = 2.0
    """An acknowledgement later than this makes the broker send again."""
    ahead_s: float = 1.0
    """A broker takes the next publication when no more than this waits for the channel."""


class Channel:
    """The wireless cell of one broker: one transmission after the other."""

    __slots__ = ("free_at_s",)

    def __init__(self) -> None:
        self.free_at_s = 0.0


class Testbed(Wired):
    """Wired between brokers; whoever is a client is reached through the cell of the broker it is attached to."""

    __test__ = False

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.clients: dict[NodeId, MobileClient] = {}
        self.air = Air()
        self.cells: dict[NodeId, Channel] = {}
        self.last_arrival_s: dict[tuple[NodeId, int, bool], float] = {}
        self.redelivered = 0
        self.dice = world.streams.stream("air")

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        if to in self.clients:
            self._transmit(self.clients[to], sender, sender, to, message)
        elif sender in self.clients:
            self._transmit(self.clients[sender], to, sender, to, message)
        else:
            super().send(sender, to, message)

    def waiting_s(self, broker: NodeId) -> float:
        """How much of the future of a cell is spoken for."""
        return self.cells[broker].free_at_s - self.world.engine.now

    def _transmit(self, client: MobileClient, broker: NodeId, sender: NodeId, to: NodeId, message: Message) -> None:
        if client.broker != broker:
            return
        now = self.world.engine.now
        arrival_s = self._arrival_s(client, broker, message)
        self._arrive_at(arrival_s, client, broker, sender, to, message)
        if isinstance(message, Deliver) and arrival_s - now > self.air.late_s:
            self.redelivered += 1
            self._arrive_at(self._arrival_s(client, broker, message), client, broker, sender, to, message)

    def _arrival_s(self, client: MobileClient, broker: NodeId, message: Message) -> float:
        cell, air = self.cells[broker], self.air
        start = max(self.world.engine.now, cell.free_at_s)
        cell.free_at_s = start + message.size_b * 8 / air.bits_per_s
        delay_s = self.dice.uniform(*air.delay_s)
        if air.loss and self.dice.random() < air.loss:
            delay_s += air.recovery_s
        down = isinstance(message, Deliver)
        key = (client.host.name, client.number, down)
        arrival_s = max(cell.free_at_s + delay_s, self.last_arrival_s.get(key, 0.0))
        self.last_arrival_s[key] = arrival_s
        return arrival_s

    def _arrive_at(
        self, time_s: float, client: MobileClient, broker: NodeId, sender: NodeId, to: NodeId, message: Message
    ) -> None:
        number = client.number

        def arrive() -> None:
            if client.broker == broker and client.number == number:
                self.world.deliver(sender, to, message)

        self.world.engine.at(time_s, arrive)


class Server:
    """A broker that does one thing after the other, each taking its time."""

    def __init__(
        self,
        node: Node,
        core: HandoffBroker,
        costs: Costs,
        slowness: float,
        bed: Testbed,
        on_accepted: Callable[[NodeId], None],
    ) -> None:
        self.name = node.name
        self.engine: Engine = node.world.engine
        self.core = core
        self.costs = costs
        self.slowness = slowness
        self.bed = bed
        self.on_accepted = on_accepted
        self.queue: deque[tuple[float, NodeId, Message]] = deque()
        self.busy = False
        self.publications = 0
        self.sojourn_s = 0.0
        self.forwarded = 0
        self.handled: Counter[str] = Counter()

    @property
    def processing_s(self) -> float:
        """M: from a publication's arrival here to the end of its processing, in the mean."""
        return self.sojourn_s / self.publications if self.publications else 0.0

    def receive(self, sender: NodeId, message: Message) -> None:
        self.queue.append((self.engine.now, sender, message))
        if not self.busy:
            self._next()

    def _next(self) -> None:
        self.busy = bool(self.queue)
        if self.busy:
            arrived_s, sender, message = self.queue.popleft()
            due_s = self.engine.now + self._cost_s(message) * self.slowness
            self.engine.at(due_s, lambda: self._done(arrived_s, sender, message))

    def _done(self, arrived_s: float, sender: NodeId, message: Message) -> None:
        self.core.receive(sender, message)
        self.handled[type(message).__name__] += 1
        if isinstance(message, Publish):
            self.publications += 1
            self.sojourn_s += self.engine.now - arrived_s
            wait_s = max(0.0, self.bed.waiting_s(self.name) - self.bed.air.ahead_s)
            self.engine.at(self.engine.now + wait_s, self._accepted)
        else:
            self._next()

    def _accepted(self) -> None:
        self.on_accepted(self.name)
        self._next()

    def _cost_s(self, message: Message) -> float:
        costs = self.costs
        if isinstance(message, Publish):
            live, kept = self._wanted(message)
            self.forwarded += live
            return costs.accept_s + costs.deliver_s * live + costs.store_s * kept
        if isinstance(message, FwdMsg):
            return costs.transfer_s
        if isinstance(message, CtxResponse):
            return costs.control_s + costs.transfer_s * len(message.events)
        if isinstance(message, CtxRequest):
            return costs.control_s + self._reading_s(message)
        return costs.control_s / 4 if type(message).__name__ == "Ack" else costs.control_s

    def _wanted(self, message: Publish) -> tuple[int, int]:
        live = kept = 0
        for subscriber in self.core.interest.of(message.event):
            record = self.core.records[subscriber]
            if self.core.is_live(record):
                live += 1
            elif record.is_active:
                kept += 1
        return live, kept

    def _reading_s(self, message: CtxRequest) -> float:
        record = self.core.records.get(message.subscriber)
        waiting = len(self.core.buffer.peek(message.subscriber, record.marks)) if record else 0
        setup_s = self.costs.connection_s if isinstance(self.core, Reactive) else 0.0
        return setup_s + waiting * self.costs.transfer_s

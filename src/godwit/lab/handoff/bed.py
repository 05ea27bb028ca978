"""The testbed, emulated: brokers that take their time, a wireless cell at each, and a wired network between them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from godwit.protocols.handoff_schemes.broker import HandoffBroker
from godwit.protocols.handoff_schemes.client import MobileClient
from godwit.protocols.handoff_schemes.home import Home
from godwit.protocols.handoff_schemes.messages import (
    Ack,
    Connect,
    Connected,
    CtxRequest,
    CtxResponse,
    Deliver,
    FwdMsg,
    FwdMsgs,
    Leaving,
    Publish,
    Recall,
    Recalled,
)
from godwit.protocols.handoff_schemes.reactive import Reactive
from godwit.protocols.handoff_schemes.records import ACTIVE, REAL
from godwit.protocols.host import Message, NodeId
from godwit.sim.engine import Engine
from godwit.sim.wired import Wired
from godwit.sim.world import Node, World


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker of the testbed takes. The four times are fitted to the durable scheme's published tables and to
    nothing else (`lab.handoff.calibration`); what that scheme never does is tied to them by what it consists of."""

    accept_s: float = 0.0165
    """A publication, whoever wants it: persistent, synchronous."""
    deliver_s: float = 0.00075
    store_s: float = 0.00046
    """Each subscriber for whom an event is kept."""
    connect_s: float = 0.0141
    """A connection is opened."""
    notice_s: float = -1.0
    """A control message between brokers; negative: as a delivery. Fitted to X2 and X10 where it is given."""
    standin_s: float = -1.0
    """Each stand-in for which an event is kept; negative: as any other subscriber."""
    moved_event_s: float = -1.0
    """Each event that comes from another broker; negative: one publication a message, and a store an event."""

    @property
    def control_s(self) -> float:
        """A message on an open connection, as any delivery is, unless it was fitted."""
        return self.deliver_s if self.notice_s < 0 else self.notice_s

    @property
    def kept_for_standin_s(self) -> float:
        return self.store_s if self.standin_s < 0 else self.standin_s

    @property
    def ack_s(self) -> float:
        return self.deliver_s / 4

    def moved_s(self, events: int) -> float:
        """Events that come from another broker in one message: written as a publication is, all at once."""
        if self.moved_event_s >= 0:
            return self.control_s + events * self.moved_event_s
        return self.control_s + (self.accept_s + events * self.store_s if events else 0.0)


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
        self.sent_after = 0
        """Events to stand-ins that have missed them."""
        self.delivered: Counter[NodeId] = Counter()
        self.open: dict[NodeId, tuple[NodeId, int]] = {}
        """By client: which broker has let it in last, and at which attempt. What is sent before goes nowhere."""
        self.dice = world.streams.stream("air")

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        if to in self.clients:
            self._transmit(self.clients[to], sender, sender, to, message)
        elif sender in self.clients:
            self._transmit(self.clients[sender], to, sender, to, message)
        else:
            super().send(sender, to, message)

    def count(self, sender: NodeId, message: Message) -> int:
        if isinstance(message, FwdMsg | FwdMsgs):
            self.sent_after += len(message.events) if isinstance(message, FwdMsgs) else 1
        return super().count(sender, message)

    def waiting_s(self, broker: NodeId) -> float:
        """How much of the future of a cell is spoken for."""
        return self.cells[broker].free_at_s - self.world.engine.now

    def _transmit(self, client: MobileClient, broker: NodeId, sender: NodeId, to: NodeId, message: Message) -> None:
        down = isinstance(message, Deliver)
        if down:
            self.delivered[broker] += 1
        elif isinstance(message, Connected):
            self.open[to] = broker, message.epoch
        if client.broker != broker or (to in self.clients and self.open.get(to) != (broker, client.number)):
            return
        arrival_s = self._arrival_s(client, broker, message, down)
        self._arrive_at(arrival_s, client, broker, sender, to, message)
        if down and arrival_s - self.world.engine.now > self.air.late_s:
            self.redelivered += 1
            self._arrive_at(self._arrival_s(client, broker, message, down), client, broker, sender, to, message)

    def _arrival_s(self, client: MobileClient, broker: NodeId, message: Message, down: bool) -> float:
        cell, air, random = self.cells[broker], self.air, self.dice.random
        start = max(self.world.engine.now, cell.free_at_s)
        cell.free_at_s = start + message.size_b * 8 / air.bits_per_s
        least_s, most_s = air.delay_s
        delay_s = least_s + (most_s - least_s) * random()  # as `uniform` does, without the call
        if air.loss and random() < air.loss:
            delay_s += air.recovery_s
        key = (client.host.name, client.number, down)
        arrival_s = max(cell.free_at_s + delay_s, self.last_arrival_s.get(key, 0.0))
        self.last_arrival_s[key] = arrival_s
        return arrival_s

    def _arrive_at(
        self, time_s: float, client: MobileClient, broker: NodeId, sender: NodeId, to: NodeId, message: Message
    ) -> None:
        number = client.number

        def arrive() -> None:
            goodbye = isinstance(message, Leaving)
            if goodbye or (client.broker == broker and client.number == number):
                self.world.deliver(sender, to, message)

        self.world.engine.at(time_s, arrive)


class Turns:
    """Which message comes next, where several wait. Senders' messages stay in order."""

    def __init__(self) -> None:
        self.queues: tuple[deque[Arrival], ...] = (deque(), deque())
        self._last = 0

    def add(self, arrival: Arrival, *, from_peer: bool) -> None:
        self.queues[from_peer].append(arrival)

    def next(self) -> Arrival | None:
        """Broker and proxy are two processes on one machine (2.1): each gets its turn."""
        for i in (1 - self._last, self._last):
            if self.queues[i]:
                self._last = i
                return self.queues[i].popleft()
        return None


class Express(Turns):
    """Ours: publications wait until everything else is done, since nobody's handoff waits for a publication."""

    def add(self, arrival: Arrival, *, from_peer: bool) -> None:
        self.queues[not isinstance(arrival.message, Publish)].append(arrival)

    def next(self) -> Arrival | None:
        for queue in reversed(self.queues):
            if queue:
                return queue.popleft()
        return None


class Arrival(NamedTuple):
    at_s: float
    sender: NodeId
    message: Message


class Server:
    """A broker that does one thing after the other, each taking its time.

    What a backlog's delivery takes is paid after its first event is out, one event at a time between other work.
    """

    def __init__(
        self,
        node: Node,
        core: HandoffBroker,
        costs: Costs,
        slowness: float,
        bed: Testbed,
        on_accepted: Callable[[NodeId], None],
        *,
        express: bool = False,
    ) -> None:
        self.name = node.name
        self.engine: Engine = node.world.engine
        self.core = core
        self.costs = costs
        self.slowness = slowness
        self.bed = bed
        self.on_accepted = on_accepted
        self.turns = Express() if express else Turns()
        self.owed = 0
        """Events of backlogs that are out and not paid for."""
        self._pays = False
        self.busy = False
        self.publications = 0
        self.sojourn_s = 0.0
        self.forwarded = 0

    @property
    def processing_s(self) -> float:
        """M: from a publication's arrival here to the end of its processing, in the mean."""
        return self.sojourn_s / self.publications if self.publications else 0.0

    def receive(self, sender: NodeId, message: Message) -> None:
        self.turns.add(Arrival(self.engine.now, sender, message), from_peer=sender in self.bed.cells)
        if not self.busy:
            self._next()

    def _next(self) -> None:
        """Work and debts take turns."""
        self._pays = not self._pays
        arrival = None if self._pays and self.owed else self.turns.next()
        self.busy = arrival is not None or self.owed > 0
        if arrival is not None:
            cost_s = self._cost_s(arrival.message) * self.slowness
            self.engine.at(self.engine.now + cost_s, lambda: self._done(arrival))
        elif self.owed:
            self.owed -= 1
            self.engine.at(self.engine.now + self.costs.deliver_s * self.slowness, self._next)

    def _done(self, arrival: Arrival) -> None:
        message = arrival.message
        before = self.bed.delivered[self.name]
        self.core.receive(arrival.sender, message)
        if isinstance(message, Publish):
            self.publications += 1
            self.sojourn_s += self.engine.now - arrival.at_s
            wait_s = max(0.0, self.bed.waiting_s(self.name) - self.bed.air.ahead_s)
            self.engine.at(self.engine.now + wait_s, self._accepted)
        else:
            self.owed += self.bed.delivered[self.name] - before
            self._next()

    def _accepted(self) -> None:
        self.on_accepted(self.name)
        self._next()

    def _cost_s(self, message: Message) -> float:
        costs = self.costs
        match message:
            case Publish():
                live, kept, standing_in = self._wanted(message)
                self.forwarded += live
                kept_s = costs.store_s * kept + costs.kept_for_standin_s * standing_in
                return costs.accept_s + costs.deliver_s * live + kept_s
            case Ack():
                return costs.ack_s
            case Connect():
                return costs.connect_s
            case FwdMsg() if isinstance(self.core, Home):
                return costs.control_s + costs.deliver_s
            case FwdMsg():
                return costs.moved_s(message.event.id not in self.core.buffer)
            case FwdMsgs():
                return costs.moved_s(sum(event.id not in self.core.buffer for event in message.events))
            case CtxResponse() | Recalled():
                return costs.moved_s(len(message.events))
            case Recall():
                return costs.control_s + len(message.events) * costs.deliver_s
            case CtxRequest():
                return costs.control_s + self._dialling_s() + self._reading_s(message)
        return costs.control_s

    def _wanted(self, message: Publish) -> tuple[int, int, int]:
        """How many it is sent to, kept for, and kept for by a stand-in."""
        live = kept = standing_in = 0
        records, is_live = self.core.records, self.core.is_live
        for subscriber in self.core.interest.of(message.event):
            record = records[subscriber]
            if record.kind is REAL:
                if is_live(record):
                    live += 1
                elif record.mode is ACTIVE:
                    kept += 1
            elif record.mode is ACTIVE:
                standing_in += 1
        return live, kept, standing_in

    def _dialling_s(self) -> float:
        """Reactive: proxies open a connection for each handoff."""
        return self.costs.connect_s if isinstance(self.core, Reactive) else 0.0

    def _reading_s(self, message: CtxRequest) -> float:
        record = self.core.records.get(message.subscriber)
        waiting = len(self.core.buffer.peek(message.subscriber, record.marks)) if record else 0
        return waiting * self.costs.deliver_s

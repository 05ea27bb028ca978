"""The strategy interface: what every scheme does alike, and the few points where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

import msgspec

from godwit.events import Event, Value
from godwit.filters.filters import Filter
from godwit.protocols.handoff_schemes.buffer import SharedBuffer
from godwit.protocols.handoff_schemes.lifecycle import Life, Step
from godwit.protocols.handoff_schemes.marks import above, merged, ordered, raised
from godwit.protocols.handoff_schemes.messages import (
    Ack,
    Connect,
    Connected,
    Deliver,
    Leaving,
    Publish,
    Unsubscribe,
    Wishes,
)
from godwit.protocols.handoff_schemes.records import ACTIVE, REAL, Kind, Mode, Record
from godwit.protocols.handoff_schemes.rules import HARDENED, Rules
from godwit.protocols.host import Host, Message, NodeId, RemoteError
from godwit.protocols.host import Record as Fact
from godwit.protocols.neighbors.graph import GraphOptions


class HandoffOptions(msgspec.Struct, frozen=True, kw_only=True):
    buffer_b: float = inf
    disk: bool = False
    """What does not fit into the buffer goes to the disk below it."""
    latest_b: float = 0.0
    """So much of the buffer is for the latest events, whoever wants them (rule `own_memory`)."""
    timeout_s: float = 60.0
    """T_timeout: who is away for so long is given up; infinite: never."""
    guard_s: float = 0.2
    """How long delivery is held for a catch-up's end; infinite: until it comes."""
    chunk: int = 50
    """Events of a context in one message."""
    dedupe: bool = False
    """Reactive: fetched and local copies of an event are delivered once (`reactiveDedupe`)."""
    covering: bool = False
    """Pro-active: no copy is placed for who wants nothing that another copy from here does not want already (2.11)."""
    prefetch: bool = False
    """Pro-active: nothing is placed before the disconnect, and nothing kept for later (Burcea's prefetching, 2.15)."""
    summaries: bool = False
    """Pro-active: copies that sleep are one filter that covers all wishes; the client brings them again (2.11)."""
    nearest_holder: bool = False
    """Pro-active: on a miss a common neighbor that collects already is asked before the old broker (2.8)."""
    pool: bool = False
    """Pro-active: those who collect for one subscriber share out what to keep when memory is short, and fetch the rest
    from each other when it appears."""
    pool_wait_s: float = 1.0
    """How long an answer is waited for."""
    rules: Rules = HARDENED
    graph: GraphOptions = GraphOptions()


CONNECTED = Life.CONNECTED


class Interest:
    """Which subscribers' filters match an event. Equal filters are looked at once, equal events remembered."""

    MEMORY_MAX = 10_000

    def __init__(self) -> None:
        self._by_filter: dict[Filter, dict[NodeId, None]] = {}
        self._known: dict[tuple[tuple[str, Value], ...], list[dict[NodeId, None]]] = {}

    def add(self, subscriber: NodeId, wishes: Iterable[Filter]) -> None:
        for wish in wishes:
            if wish not in self._by_filter:
                self._known.clear()
            self._by_filter.setdefault(wish, {})[subscriber] = None

    def remove(self, subscriber: NodeId, wishes: Iterable[Filter]) -> None:
        for wish in wishes:
            self._by_filter.get(wish, {}).pop(subscriber, None)

    def of(self, event: Event) -> dict[NodeId, None]:
        values = event.values()
        key = tuple(values.items())
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self.MEMORY_MAX:
                self._known.clear()
            found = [held for wish, held in self._by_filter.items() if wish.matches(values)]
            self._known[key] = found
        return {subscriber: None for held in found for subscriber in held}


class HandoffBroker:
    """A broker of one scheme. Its world calls `receive`, and `lost` when a subscriber does not answer any more.

    Between brokers messages must arrive in the order of sending, and each publisher's events in theirs (A2).
    """

    def __init__(self, host: Host, options: HandoffOptions) -> None:
        self.host = host
        self.options = options
        self.rules = options.rules
        self.records: dict[NodeId, Record] = {}
        self.interest = Interest()
        self.buffer = SharedBuffer(options.buffer_b, self._overflown, disk=options.disk, latest_b=options.latest_b)
        self.seen: dict[str, int] = {}
        """The last event of each publisher that has come by."""
        self.overlay: tuple[NodeId, ...] = ()
        """Who gets each publication from here, where publishers do not reach every broker themselves."""
        self.handlers: dict[type[Message], Callable[[NodeId, Message], None]] = {}
        self.on(Publish, self.published)
        self.on(Connect, self.connected)
        self.on(Ack, self.acknowledged)
        self.on(Unsubscribe, self.unsubscribed)
        self.on(Leaving, self.departed)

    def on(self, kind: type[Message], handler: Callable[[NodeId, object], None] | Callable[..., None]) -> None:
        self.handlers[kind] = handler

    def receive(self, sender: NodeId, message: Message) -> None:
        handler = self.handlers.get(type(message))
        if handler is None:
            raise RemoteError(f"{sender} sends {type(message).__name__}, which {type(self).__name__} does not know")
        handler(sender, message)

    def connected(self, sender: NodeId, message: Connect) -> None:
        """A client comes for the first time, back, or from elsewhere."""
        since = None if message.previous else merged(self.seen, message.marks)
        self.host.send(message.subscriber, Connected(message.subscriber, message.epoch, since))
        if not message.previous:
            self.first_contact(message)
        elif message.previous == self.host.name:
            self.returned(message)
        else:
            self.arrived(message)

    def first_contact(self, message: Connect) -> None:
        raise NotImplementedError

    def returned(self, message: Connect) -> None:
        raise NotImplementedError

    def arrived(self, message: Connect) -> None:
        raise NotImplementedError

    def lost(self, subscriber: NodeId) -> None:
        """The subscriber does not answer any more."""
        raise NotImplementedError

    def departed(self, sender: NodeId, message: Leaving) -> None:
        """The subscriber says goodbye: nobody need wait for missing answers."""
        self.lost(message.subscriber)

    def unsubscribed(self, sender: NodeId, message: Unsubscribe) -> None:
        raise NotImplementedError

    def published(self, sender: NodeId, message: Publish) -> None:
        """Once per broker, whoever passes it on: what was seen is dropped. Over links that keep their order a flood
        does, too: who sends a publication on has sent all before it on."""
        event = message.event
        if above(event, self.seen):
            self.seen[event.publisher] = event.sequence
            for peer in self.overlay:
                if peer != sender:
                    self.host.send(peer, message)
            self.take(event)

    def take(self, event: Event) -> None:
        if self.options.latest_b:
            self.buffer.remember(event)
        keep, records = [], self.records
        for subscriber in self.interest.of(event):
            record = records[subscriber]
            if record.mode is ACTIVE and self.is_due(record, event):
                keep.append(subscriber)
        self.buffer.put(event, keep)
        for subscriber in keep:
            record = records[subscriber]
            if self.is_live(record):
                self.deliver(record, event)

    def is_due(self, record: Record, event: Event) -> bool:
        """Whether the subscriber has not had it; the text asks only where an event is cached."""
        if self.is_live(record) and not self.rules.live_mark_check:
            return True
        return above(event, record.marks) and above(event, record.sent)

    def is_live(self, record: Record) -> bool:
        """Real, connected and not held; spelled out, since nothing is asked more often."""
        return record.kind is REAL and record.life is CONNECTED and record.held_for <= 0 and not record.recalls

    def deliver(self, record: Record, event: Event) -> None:
        """Pass on; the event stays in the buffer until it is acknowledged."""
        record.sent = raised(record.sent, event.publisher, event.sequence)
        moved = self.buffer.was_moved(record.subscriber, event)
        self.host.send(record.subscriber, Deliver(record.subscriber, record.epoch, event, moved))

    def deliver_backlog(self, record: Record) -> None:
        """All that waits, as published; while held only what no late catch-up can come before."""
        if record.recalls:
            return
        had = merged(record.marks, record.sent)
        waiting = {event.id: event for event in self.buffer.peek(record.subscriber, had)}
        waiting |= {event.id: event for event in record.called_in if above(event, had)}
        self.put_back(record)
        for event in ordered(waiting.values()):
            if not record.held or not above(event, record.forwarded):
                self.deliver(record, event)

    def put_back(self, record: Record) -> None:
        """What was called in is kept like everything else, as far as there is room."""
        called_in, record.called_in = record.called_in, []
        for event in called_in:
            if above(event, record.marks):
                self.buffer.put(event, [record.subscriber], moved=True)

    def acknowledged(self, sender: NodeId, message: Ack) -> None:
        record = self.records.get(message.subscriber)
        if record is None or not record.is_real or not record.attached or message.epoch != record.epoch:
            return
        record.marks = raised(record.marks, message.publisher, message.sequence)
        self.buffer.drop(record.subscriber, {message.publisher: message.sequence})

    def store(self, record: Record) -> Record:
        """Into the table, in place of whatever was there under this name."""
        self.forget(record.subscriber, purge=False)
        self.records[record.subscriber] = record
        self.interest.add(record.subscriber, record.wishes.values())
        return record

    def forget(self, subscriber: NodeId, *, purge: bool = True) -> None:
        record = self.records.pop(subscriber, None)
        if record is not None:
            record.quiet()
            self.interest.remove(subscriber, record.wishes.values())
        if purge:
            self.buffer.purge(subscriber)

    def new_real(self, subscriber: NodeId, wishes: Wishes, epoch: int) -> Record:
        return self.store(Record(subscriber, wishes, Kind.REAL, Mode.ACTIVE, epoch))

    def trace(self, kind: str, subscriber: NodeId, note: str = "") -> None:
        self.host.trace(Fact(kind, client=subscriber, note=note))

    def _overflown(self, subscriber: NodeId, event: Event) -> None:
        self.host.trace(Fact("dropped", event=event.id, client=subscriber, note="buffer"))


def attach(record: Record, epoch: int) -> None:
    """The subscriber is here, under this number; what it was sent before without acknowledging it may lack."""
    record.epoch = epoch
    record.attached = True
    record.sent = {}
    record.keep()


def leave(record: Record) -> None:
    record.attached = False
    record.step(Step.NO_REPLY)

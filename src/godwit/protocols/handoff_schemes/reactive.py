"""Baseline B: the new broker fetches from the old one, on arrival (spec proactive-handoff 2.14)."""

from __future__ import annotations

from godwit.events import Event
from godwit.protocols.handoff_schemes.broker import attach, leave
from godwit.protocols.handoff_schemes.fetching import Fetching
from godwit.protocols.handoff_schemes.lifecycle import Life, Step
from godwit.protocols.handoff_schemes.marks import above, ordered
from godwit.protocols.handoff_schemes.messages import Connect, CtxRequest, Deliver, Unsubscribe
from godwit.protocols.handoff_schemes.records import Record
from godwit.protocols.host import NodeId


class Reactive(Fetching):
    """The whole backlog is read, sent, merged, then delivered. Unless `dedupe` is set, an event that both brokers had
    is delivered twice, as in the measured baseline."""

    def first_contact(self, message: Connect) -> None:
        record = self.new_real(message.subscriber, message.wishes, message.epoch)
        record.marks = dict(self.seen)
        attach(record, message.epoch)
        record.step(Step.CONNECT)

    def returned(self, message: Connect) -> None:
        record = self.records.get(message.subscriber)
        if record is None:
            self.first_contact(message)
            return
        if record.life is Life.CONNECTED:
            leave(record)
        attach(record, message.epoch)
        if record.life is Life.DISCONNECTED:
            record.step(Step.RETURN)
            self.deliver_backlog(record)

    def arrived(self, message: Connect) -> None:
        self.fetch(message)

    def lost(self, subscriber: NodeId) -> None:
        """The durable subscription goes on collecting; nobody is told."""
        record = self.records.get(subscriber)
        if record is None:
            return
        record.attached = False
        if record.life is Life.CONNECTED:
            leave(record)

    def unsubscribed(self, sender: NodeId, message: Unsubscribe) -> None:
        self.forget(message.subscriber)

    def asked(self, sender: NodeId, message: CtxRequest) -> None:
        """Taken over: stop collecting and hand out, but for a context that is itself still under way to here."""
        record = self.records.get(message.subscriber)
        if record is not None and any(number < message.epoch for number in record.fetches):
            record.requests.append((sender, message))
            return
        self.answer(record, sender, message)
        if record is not None and record.epoch < message.epoch:
            self.forget(message.subscriber)

    def is_due(self, record: Record, event: Event) -> bool:
        """Without removal of duplicates nobody looks at marks."""
        return above(event, record.marks) if self.options.dedupe else True

    def fetched(self, record: Record, events: list[Event]) -> None:
        local = self.buffer.peek(record.subscriber, {})
        known = {event.id for event in local}
        twice = [event for event in events if event.id in known]
        self.buffer_all(record, events)
        if record.life is Life.MOVE_IN and not record.fetches:
            record.step(Step.READY)
            if record.attached:
                self._hand_over(record, twice)
            else:
                leave(record)
        for sender, request in record.requests[:]:
            if not any(number < request.epoch for number in record.fetches):
                record.requests.remove((sender, request))
                self.asked(sender, request)

    def buffer_all(self, record: Record, events: list[Event]) -> None:
        for event in events:
            self.buffer.put(event, [record.subscriber], moved=True)

    def _hand_over(self, record: Record, twice: list[Event]) -> None:
        """Everything in the order of publication; copies that came both ways are told apart only with `dedupe`."""
        if self.options.dedupe:
            self.buffer.drop(record.subscriber, record.marks)
            self.deliver_backlog(record)
            return
        for event in ordered([*self.buffer.peek(record.subscriber, {}), *twice]):
            self.host.send(record.subscriber, Deliver(record.subscriber, record.epoch, event, True))

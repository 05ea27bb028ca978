"""Baseline A: durable subscriptions that stay wherever they were made (spec proactive-handoff 2.13)."""

from __future__ import annotations

from godwit.protocols.handoff_schemes.broker import HandoffBroker, attach, leave
from godwit.protocols.handoff_schemes.lifecycle import Life, Step
from godwit.protocols.handoff_schemes.messages import Connect, Unsubscribe, Wishes
from godwit.protocols.handoff_schemes.records import Record
from godwit.protocols.host import NodeId


class Durable(HandoffBroker):
    """No broker knows of any other: what is stored here is delivered here, whoever had delivered it before."""

    def provide(self, subscriber: NodeId, wishes: Wishes) -> None:
        """D2: the subscription exists although the subscriber has never been here."""
        if subscriber not in self.records:
            self._opened(subscriber, wishes)

    def first_contact(self, message: Connect) -> None:
        self._attach(message)

    def returned(self, message: Connect) -> None:
        self._attach(message)

    def arrived(self, message: Connect) -> None:
        self._attach(message)

    def lost(self, subscriber: NodeId) -> None:
        record = self.records.get(subscriber)
        if record is not None and record.life is Life.CONNECTED:
            leave(record)

    def unsubscribed(self, sender: NodeId, message: Unsubscribe) -> None:
        self.forget(message.subscriber)

    def _attach(self, message: Connect) -> None:
        record = self.records.get(message.subscriber) or self._opened(message.subscriber, message.wishes)
        if record.life is Life.CONNECTED:
            leave(record)
        attach(record, message.epoch)
        record.step(Step.RETURN)
        self.trace("attached", record.subscriber, "durable")
        self.deliver_backlog(record)

    def _opened(self, subscriber: NodeId, wishes: Wishes) -> Record:
        record = self.new_real(subscriber, wishes, 0)
        record.step(Step.CONNECT)
        leave(record)
        return record

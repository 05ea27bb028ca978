"""The home-broker scheme: one broker keeps everything, and sends it to wherever its subscriber is (spec 2.15).

Simple and safe, and every event takes the way by way of home for ever.
"""

from __future__ import annotations

from godwit.events import Event
from godwit.protocols.handoff_schemes.broker import HandoffBroker, HandoffOptions, attach, leave
from godwit.protocols.handoff_schemes.lifecycle import Life, Step
from godwit.protocols.handoff_schemes.marks import merged
from godwit.protocols.handoff_schemes.messages import Ack, Connect, Deliver, FwdMsg, Leaving, Unsubscribe, Visit
from godwit.protocols.handoff_schemes.records import Record
from godwit.protocols.host import Host, NodeId


class Home(HandoffBroker):
    """Home to those who came here first, and host to the visitors of others."""

    def __init__(self, host: Host, options: HandoffOptions) -> None:
        super().__init__(host, options)
        self.away: dict[NodeId, NodeId] = {}
        """Where those are who are at home here."""
        self.visitors: dict[NodeId, tuple[NodeId, int]] = {}
        """Whose home is elsewhere: where, and the number of the attachment."""
        self.on(Visit, self.visited)
        self.on(FwdMsg, self.relayed)

    def first_contact(self, message: Connect) -> None:
        record = self.new_real(message.subscriber, message.wishes, message.epoch)
        record.marks = merged(self.seen, message.marks)
        attach(record, message.epoch)
        record.step(Step.CONNECT)

    def returned(self, message: Connect) -> None:
        self.arrived(message)

    def arrived(self, message: Connect) -> None:
        if message.home == self.host.name:
            self.found(message.subscriber, message.epoch, "")
            return
        self.visitors[message.subscriber] = message.home, message.epoch
        self.trace("attached", message.subscriber, "visit")
        self.host.send(message.home, Visit(message.subscriber, message.epoch))

    def visited(self, sender: NodeId, message: Visit) -> None:
        self.found(message.subscriber, message.epoch, sender)

    def found(self, subscriber: NodeId, epoch: int, place: NodeId) -> None:
        """At home again or with a host. Who asks late is out of date."""
        record = self.records.get(subscriber)
        if record is None or epoch <= record.epoch:
            return
        if record.life is Life.CONNECTED:
            leave(record)
        attach(record, epoch)
        self.away[subscriber] = place
        record.step(Step.RETURN)
        self.deliver_backlog(record)

    def deliver(self, record: Record, event: Event) -> None:
        place = self.away.get(record.subscriber, "")
        if not place:
            super().deliver(record, event)
            return
        record.sent = merged(record.sent, {event.publisher: event.sequence})
        self.host.send(place, FwdMsg(record.subscriber, record.epoch, event))

    def relayed(self, sender: NodeId, message: FwdMsg) -> None:
        if self.visitors.get(message.subscriber) == (sender, message.epoch):
            self.host.send(message.subscriber, Deliver(message.subscriber, message.epoch, message.event, True))

    def acknowledged(self, sender: NodeId, message: Ack) -> None:
        if message.subscriber in self.visitors:
            self.host.send(self.visitors[message.subscriber][0], message)
        else:
            super().acknowledged(sender, message)

    def lost(self, subscriber: NodeId) -> None:
        if subscriber in self.visitors:
            home, epoch = self.visitors.pop(subscriber)
            self.host.send(home, Leaving(subscriber, epoch))
        else:
            self._gone(subscriber)

    def departed(self, sender: NodeId, message: Leaving) -> None:
        record = self.records.get(message.subscriber)
        if record is None or sender == message.subscriber:
            self.lost(message.subscriber)
        elif message.epoch == record.epoch:
            self._gone(message.subscriber)

    def _gone(self, subscriber: NodeId) -> None:
        """It is nowhere: what comes waits here."""
        record = self.records.get(subscriber)
        if record is not None and record.life is Life.CONNECTED:
            record.attached = False
            leave(record)

    def unsubscribed(self, sender: NodeId, message: Unsubscribe) -> None:
        if message.subscriber in self.visitors:
            self.host.send(self.visitors.pop(message.subscriber)[0], message)
        else:
            self.away.pop(message.subscriber, None)
            self.forget(message.subscriber)

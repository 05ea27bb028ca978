"""Memory that brokers share: who collects for the same subscriber need not all keep the same events."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite

from godwit.events import Event
from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.buffer import EventId
from godwit.protocols.handoff_schemes.messages import Recall, Recalled
from godwit.protocols.handoff_schemes.proactive.replicas import Replicas
from godwit.protocols.handoff_schemes.records import Record
from godwit.protocols.host import Host, NodeId


class Pooled(Replicas):
    """Every event that a subscriber lacks has one keeper among those who collect for it; the others drop it first when
    memory is short. Where the subscriber appears, what was dropped is fetched from its keepers before anything is
    delivered, and only then does its old broker hear of the move: until then nobody throws away anything.
    """

    def __init__(self, host: Host, options: HandoffOptions) -> None:
        super().__init__(host, options)
        if options.pool:
            self.buffer.keeps = self._is_kept_here
        self.on(Recall, self.recall)
        self.on(Recalled, self.recalled)

    def share_out(self, record: Record, peers: Collection[NodeId]) -> None:
        """Before they are woken: from now on each knows what it is to keep."""
        if self.options.pool:
            record.holders = tuple(sorted({self.host.name, *peers}))

    def _is_kept_here(self, subscriber: str, event: Event) -> bool:
        """What was called in gives way last: nobody else has to have it any more."""
        record = self.records[subscriber]
        return bool(record.recalls) or keeper(record.holders, event.id) == self.host.name

    def call_in(self, record: Record) -> None:
        """The subscriber is here: ask for what gave way."""
        missing = self.buffer.missing.pop(record.subscriber, {})
        if missing:
            self.buffer.keep_all(record.subscriber)
        holders, record.holders = record.holders, ()
        by_keeper: dict[NodeId, list[EventId]] = {}
        for name in missing:
            if name[1] > record.marks.get(name[0], -1):
                by_keeper.setdefault(keeper(holders, name), []).append(name)
        for peer, names in by_keeper.items():
            if peer not in ("", self.host.name):
                self.host.send(peer, Recall(record.subscriber, record.epoch, tuple(names)))
                record.recalls.add((peer, record.epoch))
        if record.recalls and isfinite(self.options.pool_wait_s):
            epoch = record.epoch
            self.host.after(self.options.pool_wait_s, lambda: self._give_up(record, epoch))

    def recall(self, sender: NodeId, message: Recall) -> None:
        """Whatever became of the copy here: what is still there is sent."""
        self.host.send(sender, Recalled(message.subscriber, message.epoch, self.buffer.found(message.events)))

    def recalled(self, sender: NodeId, message: Recalled) -> None:
        record = self.records.get(message.subscriber)
        if record is None or (sender, message.epoch) not in record.recalls:
            return
        record.called_in += message.events
        record.recalls.discard((sender, message.epoch))
        self._see(record)

    def _give_up(self, record: Record, epoch: int) -> None:
        late = {asked for asked in record.recalls if asked[1] == epoch}
        if late and self.records.get(record.subscriber) is record:
            record.recalls -= late
            self._see(record)

    def _see(self, record: Record) -> None:
        if not record.recalls:
            if not record.attached:
                self.put_back(record)
            self.completed(record)

    def all_here(self, record: Record) -> None:
        raise NotImplementedError


def keeper(holders: tuple[NodeId, ...], event: EventId) -> NodeId:
    """One of them, by turns; nobody where nobody was told."""
    return holders[event[1] % len(holders)] if holders else ""

"""Copies of other brokers' subscribers, and the catch-ups that wake them (spec proactive-handoff 2.7 to 2.10)."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from godwit.events import Event
from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.fetching import Fetching
from godwit.protocols.handoff_schemes.lifecycle import Life
from godwit.protocols.handoff_schemes.marks import above, merged, reaches
from godwit.protocols.handoff_schemes.messages import (
    NO_WISHES,
    Activate,
    ActivateAck,
    ActivateMiss,
    Control,
    Deactivate,
    Delete,
    FwdEnd,
    FwdMsg,
    FwdMsgs,
    Moved,
    StoreSub,
    Wishes,
)
from godwit.protocols.handoff_schemes.records import CatchUp, Kind, Mode, Record
from godwit.protocols.host import Host, NodeId
from godwit.protocols.neighbors.graph import NeighborGraph


class Replicas(Fetching):
    """What neighbors ask for is done here. Each handler follows its rule in the spec's order."""

    graph: NeighborGraph

    def __init__(self, host: Host, options: HandoffOptions) -> None:
        super().__init__(host, options)
        self.catchups: dict[tuple[NodeId, NodeId, int], CatchUp] = {}
        self.waiting: dict[NodeId, None] = {}
        """Whose contexts somebody has asked for and not got yet."""
        self.whereabouts: dict[NodeId, tuple[NodeId, Moved]] = {}
        """Where those went who were here, and under which number."""
        self.tombstones: dict[NodeId, tuple[int, bool]] = {}
        """Z6: the highest attachment deleted here, and whether by an unsubscription."""
        self.on(StoreSub, self.store_copy)
        self.on(Activate, self.woken)
        self.on(ActivateAck, self.confirmed)
        self.on(ActivateMiss, self.missed)
        self.on(FwdMsg, self.forwarded)
        self.on(FwdMsgs, self.forwarded)
        self.on(FwdEnd, self.ended)
        self.on(Deactivate, self.sleep)
        self.on(Delete, self.delete)

    def settle(self, record: Record) -> None:
        raise NotImplementedError

    def completed(self, record: Record) -> None:
        raise NotImplementedError

    # The broker that wakes

    def wake(self, record: Record, peer: NodeId, wishes: Wishes = NO_WISHES) -> None:
        """Tell a neighbor to collect from the mark on, and send after what it may have missed already."""
        subscriber, marks = record.subscriber, dict(record.marks)
        catchup = CatchUp(subscriber, peer, record.epoch, marks, wants=record.matches)
        self.catchups[subscriber, peer, record.epoch] = catchup
        self.host.send(peer, Activate(subscriber, record.epoch, marks, wishes, record.holders))
        if not self.rules.own_memory:
            self._send_after(catchup)

    def _send_after(self, catchup: CatchUp) -> None:
        catchup.began = True
        missed = self.buffer.peek(catchup.subscriber, catchup.marks)
        if self.rules.own_memory:
            # Only what is older than all that the neighbor remembers: seldom anything, and then very much.
            for piece in self.in_pieces(missed):
                self.host.send(catchup.peer, FwdMsgs(catchup.subscriber, catchup.epoch, piece))
        else:
            for event in missed:
                self.host.send(catchup.peer, FwdMsg(catchup.subscriber, catchup.epoch, event))

    def take(self, event: Event) -> None:
        super().take(event)
        for key, catchup in list(self.catchups.items()):
            self._pass_on(catchup, event)
            if catchup.up_to is not None and reaches(self.seen, catchup.up_to):
                self._end(key)
        for subscriber in list(self.waiting):
            self.settle(self.records[subscriber])

    def _pass_on(self, catchup: CatchUp, event: Event) -> None:
        due = catchup.began and (catchup.up_to is None or not above(event, catchup.up_to))
        if due and above(event, catchup.marks) and catchup.wants(event):
            self.host.send(catchup.peer, FwdMsg(catchup.subscriber, catchup.epoch, event))

    def confirmed(self, sender: NodeId, message: ActivateAck) -> None:
        key = (message.subscriber, sender, message.epoch)
        catchup = self.catchups.get(key)
        if catchup is None:
            return
        if message.complete:
            del self.catchups[key]
            return
        if not catchup.began:
            self._send_after(catchup)
        if self.rules.ack_high_water and not reaches(self.seen, message.seen):
            catchup.up_to = message.seen
        else:
            self._end(key)

    def _end(self, key: tuple[NodeId, NodeId, int]) -> None:
        catchup = self.catchups.pop(key)
        if self.rules.gap_safe:
            self.host.send(catchup.peer, FwdEnd(catchup.subscriber, catchup.epoch))

    def missed(self, sender: NodeId, message: ActivateMiss) -> None:
        """The neighbor has no copy: send the whole context, where it is still of use (Z13)."""
        if self.catchups.pop((message.subscriber, sender, message.epoch), None) is None:
            return
        record = self.records.get(message.subscriber)
        if record is not None and self._is_needed(record, sender, message.epoch):
            self.wake(record, sender, record.wishes)

    def _is_needed(self, record: Record, peer: NodeId, epoch: int) -> bool:
        if not self.rules.needed_contexts:
            return record.is_real and record.life is Life.DISCONNECTED
        waiting = record.is_real and record.life is Life.DISCONNECTED and record.moved is None
        return waiting and record.epoch == epoch and peer in self.graph

    def cancel_catchups(self, subscriber: NodeId, epoch: int, keep: NodeId = "") -> None:
        """Of one attachment (Z12), but for the one towards the broker where the subscriber is now."""
        for key in [key for key in self.catchups if key[0] == subscriber]:
            if not self.rules.own_catchups or (key[2] == epoch and key[1] != keep):
                del self.catchups[key]

    # The broker that holds a copy

    def store_copy(self, sender: NodeId, message: StoreSub) -> None:
        record = self.records.get(message.subscriber)
        if self._is_buried(message):
            return
        if record is None:
            record = Record(message.subscriber, message.wishes, Kind.DUMMY, Mode.PASSIVE, message.epoch)
            record.propagated_from = sender
            self.store(record)
        elif record.is_real:
            self._queue_if_newer(record, sender, message)
        elif self.rules.newer_copies and message.epoch > record.epoch:
            self._put_to_sleep(record, message.epoch)

    def woken(self, sender: NodeId, message: Activate) -> None:
        """Every ACTIVATE is answered, also one that changes nothing (Z11)."""
        if self._is_buried(message):
            self._confirm(sender, message)
            return
        record = self.records.get(message.subscriber)
        if record is None and message.wishes:
            record = self.store(Record(message.subscriber, message.wishes, Kind.DUMMY, Mode.PASSIVE, message.epoch))
            record.propagated_from = sender
        if record is None:
            self.host.send(sender, ActivateMiss(message.subscriber, message.epoch))
        elif record.is_real and self.rules.spare_attached:
            if not self._queue_if_newer(record, sender, message):
                self._confirm(sender, message)
        else:
            if not self.rules.epochs or message.epoch >= record.epoch:
                self._wake_up(record, sender, message)
            self._confirm(sender, message, complete=not record.catching_up)

    def _wake_up(self, record: Record, sender: NodeId, message: Activate) -> None:
        record.mode = Mode.ACTIVE
        record.controller = sender
        record.marks = dict(message.marks)
        record.epoch = message.epoch
        record.forwarded = dict(message.marks)
        record.woken_for = message.epoch
        record.holders = message.holders
        record.catching_up = True
        self.buffer.drop(record.subscriber, record.marks)
        if self.rules.own_memory and self.remembered(record):
            record.catching_up = False

    def remembered(self, record: Record) -> bool:
        """Take all above the record's marks from the latest events, if they reach so far back."""
        latest = self.buffer.recall(record.marks)
        for event in latest or ():
            if record.matches(event):
                self.buffer.put(event, [record.subscriber])
        return latest is not None

    def _confirm(self, sender: NodeId, message: Activate, *, complete: bool = True) -> None:
        complete = complete and self.rules.own_memory
        self.host.send(sender, ActivateAck(message.subscriber, message.epoch, dict(self.seen), complete))

    def forwarded(self, sender: NodeId, message: FwdMsg | FwdMsgs) -> None:
        record = self.records.get(message.subscriber)
        if record is None or not record.is_active or self._is_foreign(record, message):
            return
        if record.is_real and not record.held and record.life is Life.CONNECTED:
            return
        events = message.events if isinstance(message, FwdMsgs) else (message.event,)
        wanted = [event for event in events if above(event, record.marks)]
        for event in wanted:
            self.buffer.put(event, [record.subscriber], moved=True)
            record.forwarded = merged(record.forwarded, {event.publisher: event.sequence})
        if wanted and record.held and record.attached:
            self.deliver_backlog(record)

    def ended(self, sender: NodeId, message: FwdEnd) -> None:
        record = self.records.get(message.subscriber)
        if record is None or self._is_foreign(record, message):
            return
        record.catching_up = False
        if record.held:
            self.release(record)

    def _is_foreign(self, record: Record, message: Control) -> bool:
        """Z12: of another attachment than the one this record was woken for."""
        if not self.rules.own_catchups:
            return False
        if not record.catching_up:
            return True
        return message.epoch != record.woken_for

    def release(self, record: Record) -> None:
        """The catch-up is over, or nobody waits for it any longer."""
        if record.held:
            record.held_for, record.catching_up = 0, False
            self.completed(record)

    def sleep(self, sender: NodeId, message: Deactivate) -> None:
        record = self.records.get(message.subscriber)
        if record is None:
            return
        if record.is_real and self.rules.spare_attached:
            self._queue_if_newer(record, sender, message)
        elif self._may_order(record, sender, message):
            self._put_to_sleep(record, message.epoch)

    def delete(self, sender: NodeId, message: Delete) -> None:
        record = self.records.get(message.subscriber)
        if record is not None and not message.privileged:
            if record.is_real and self.rules.spare_attached:
                self._queue_if_newer(record, sender, message)
                return
            if not self._may_order(record, sender, message):
                return
        if record is None:
            self.bury(message.subscriber, message.epoch, message.privileged)
        else:
            if record.is_real and self.rules.spread:
                self._spread(sender, message)
            self.remove(record, message.epoch, privileged=message.privileged)

    def _spread(self, sender: NodeId, message: Delete) -> None:
        """An unsubscription has overtaken the news that its subscriber had left here: who holds copies on behalf of
        this record would never hear of either."""
        for peer in self.graph.edges:
            if peer != sender:
                self.host.send(peer, message)

    def _may_order(self, record: Record, sender: NodeId, message: Control) -> bool:
        """Z4: by number; in the text by the controller (2.9)."""
        if self.rules.numbered_orders:
            return message.epoch >= record.epoch
        return record.controller in ("", sender)

    def _put_to_sleep(self, record: Record, epoch: int) -> None:
        record.mode = Mode.PASSIVE
        record.controller = ""
        record.epoch = max(record.epoch, epoch) if self.rules.attach_no else record.epoch
        record.catching_up = False
        self.buffer.purge(record.subscriber)

    def remove(self, record: Record, epoch: int, *, privileged: bool = False) -> None:
        """Whoever still waits for this context gets what is there (Z8)."""
        for sender, request in record.requests:
            self.answer(record, sender, request)
        record.requests.clear()
        self.waiting.pop(record.subscriber, None)
        self.cancel_gone(record.subscriber, privileged)
        self.forget(record.subscriber)
        self.bury(record.subscriber, epoch, privileged)

    def cancel_gone(self, subscriber: NodeId, privileged: bool) -> None:
        if privileged:
            for key in [key for key in self.catchups if key[0] == subscriber]:
                del self.catchups[key]

    def bury(self, subscriber: NodeId, epoch: int, privileged: bool) -> None:
        if self.rules.tombstones:
            stone = max(self.tombstones.get(subscriber, (-1, False)), (epoch, privileged))
            self.tombstones[subscriber] = stone
            if isfinite(self.options.timeout_s):
                self.host.after(self.options.timeout_s, lambda: self._decay(subscriber, stone))

    def _decay(self, subscriber: NodeId, stone: tuple[int, bool]) -> None:
        if self.tombstones.get(subscriber) == stone:
            del self.tombstones[subscriber]

    def _is_buried(self, message: Control) -> bool:
        epoch, privileged = self.tombstones.get(message.subscriber, (-1, False))
        return message.epoch < epoch or (privileged and message.epoch == epoch)

    # Z10: what is newer than a record that does not know yet that it is history

    def _queue_if_newer(self, record: Record, sender: NodeId, message: Control) -> bool:
        if not self.rules.stale_records or message.epoch <= record.epoch:
            return False
        record.queued.append((sender, message))
        return True

    def replay(self, queued: Iterable[tuple[NodeId, Control]]) -> None:
        """After the demotion. An ACTIVATE came too early for its catch-up: its sender must begin again."""
        for sender, message in queued:
            if isinstance(message, Activate):
                self.host.send(sender, ActivateMiss(message.subscriber, message.epoch))
            else:
                self.receive(sender, message)

    def answer_queue(self, record: Record) -> None:
        """The subscriber is here itself: what waited is void, but everybody who asked gets an answer."""
        queued, record.queued = record.queued, []
        for sender, message in queued:
            if isinstance(message, Activate):
                self._confirm(sender, message)

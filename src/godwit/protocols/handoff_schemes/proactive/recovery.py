"""Brokers that fail and come back: noticed by their neighbors, and made to agree again (proactive-handoff 2.12)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.lifecycle import Life, Step
from godwit.protocols.handoff_schemes.marks import Marks
from godwit.protocols.handoff_schemes.messages import Deactivate, Delete, Wishes
from godwit.protocols.handoff_schemes.proactive.scheme import ProActive
from godwit.protocols.handoff_schemes.records import Kind, Mode, Record
from godwit.protocols.host import Host, Message, NodeId, Timer


class Bping(Message, frozen=True):
    pass


class Bpong(Message, frozen=True):
    pass


class Recovered(Message, frozen=True):
    """What the sender still holds of the receiver's subscribers: the attachment, and whether the copy is awake."""

    copies: tuple[tuple[NodeId, int, bool], ...] = ()


class Saved(msgspec.Struct, frozen=True):
    """One record, as it lies on the disk."""

    subscriber: NodeId
    wishes: Wishes
    real: bool
    active: bool
    epoch: int
    controller: NodeId
    propagated_from: NodeId
    marks: Marks


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    heartbeat_s: float = 1.0
    fail_s: float = 3.0
    orphan_s: float = 60.0
    """A copy whose waker has failed is given up after so long."""


class Recovering(ProActive):
    """A pro-active broker that watches its neighbors. `watch` starts it; after a crash `recover` takes what was saved.

    What it keeps for subscribers survives as records; their backlog is the store's business.
    """

    def __init__(self, host: Host, options: HandoffOptions, watch: WatchOptions | None = None) -> None:
        super().__init__(host, options)
        self.watch_options = watch or WatchOptions()
        self.heard_s: dict[NodeId, float] = {}
        self._beat: Timer | None = None
        self.on(Bping, self._pinged)
        self.on(Bpong, self._ponged)
        self.on(Recovered, self.reconcile)

    def watch(self) -> None:
        """One heartbeat to each neighbor, and a look at who has not answered; goes on by itself."""
        now = self.host.now()
        for peer in list(self.graph.edges):
            if now - self.heard_s.setdefault(peer, now) >= self.watch_options.fail_s:
                self.failed(peer)
            else:
                self.host.send(peer, Bping())
        self._beat = self.host.after(self.watch_options.heartbeat_s, self.watch)

    def stop(self) -> None:
        if self._beat is not None:
            self._beat.cancel()

    def _pinged(self, sender: NodeId, message: Bping) -> None:
        self.host.send(sender, Bpong())

    def _ponged(self, sender: NodeId, message: Bpong) -> None:
        self.heard_s[sender] = self.host.now()

    def failed(self, peer: NodeId) -> None:
        """Its edge goes, nothing is placed there, and what it has woken here does not stay awake for ever."""
        self.heard_s.pop(peer, None)
        self.graph.drop(peer, self.host.now())
        self._tell_neighbors()
        for key in [key for key in self.catchups if key[1] == peer]:
            del self.catchups[key]
        for record in self.records.values():
            if record.kind is Kind.DUMMY and record.is_active and record.controller == peer:
                self._expire_later(record, record.epoch)

    def _expire_later(self, record: Record, epoch: int) -> None:
        def expire() -> None:
            still = self.records.get(record.subscriber) is record and record.kind is Kind.DUMMY
            if still and record.is_active and record.epoch == epoch:
                self.remove(record, epoch)

        self.host.after(self.watch_options.orphan_s, expire)

    def saved(self) -> list[Saved]:
        """For the disk."""
        return [
            Saved(
                r.subscriber,
                dict(r.wishes),
                r.is_real,
                r.is_active,
                r.epoch,
                r.controller,
                r.propagated_from,
                dict(r.marks),
            )
            for r in self.records.values()
        ]

    def recover(self, saved: Iterable[Saved], neighbors: Iterable[NodeId]) -> None:
        """After a restart: take up what was saved, and tell the former neighbors which of their copies are here."""
        copies: dict[NodeId, list[tuple[NodeId, int, bool]]] = {peer: [] for peer in neighbors}
        for one in saved:
            record = self._restored(one)
            owner = one.controller or one.propagated_from
            if not record.is_real and owner in copies:
                copies[owner].append((one.subscriber, one.epoch, one.active))
        for peer, held in copies.items():
            self.host.send(peer, Recovered(tuple(held)))

    def _restored(self, one: Saved) -> Record:
        kind, mode = (Kind.REAL if one.real else Kind.DUMMY), (Mode.ACTIVE if one.active else Mode.PASSIVE)
        record = self.store(Record(one.subscriber, one.wishes, kind, mode, one.epoch))
        record.controller, record.propagated_from, record.marks = one.controller, one.propagated_from, one.marks
        if one.real:
            record.step(Step.CONNECT)
            record.step(Step.NO_REPLY)
            record.timeout = self.host.after(self.options.timeout_s, lambda: self.timed_out(record))
        return record

    def reconcile(self, sender: NodeId, message: Recovered) -> None:
        """The sender is back: its copies of our subscribers are deleted, woken or put to sleep, as they stand now."""
        self.heard_s[sender] = self.host.now()
        self.touch(sender, left=True)
        for subscriber, epoch, _ in message.copies:
            record = self.records.get(subscriber)
            if record is None or not record.is_real or record.moved is not None:
                self.host.send(sender, Delete(subscriber, epoch))
            elif record.life is Life.DISCONNECTED:
                self.wake(record, sender, record.wishes)
            else:
                self.host.send(sender, Deactivate(subscriber, record.epoch))

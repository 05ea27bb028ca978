"""Clients that come, go and move (spec 2.9 to 2.11): association, homes, delivery, absence, redirection, handover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from godwit.protocols.gathering.clients import Buffered, Cause, Presence, Profile, home_keys
from godwit.protocols.gathering.messages import (
    Associate,
    Associated,
    CareOf,
    ClientId,
    Forward,
    Handover,
    HandoverAnswer,
    Lookup,
    LookupAnswer,
    Notice,
    Notify,
    NotifyAck,
    Pointer,
    Register,
    Registered,
    Update,
    UpdateAnswer,
)
from godwit.protocols.host import Message, NodeId, Record, Timer
from godwit.protocols.topology.pastry.keys import Key
from godwit.protocols.topology.pastry.messages import Destination

if TYPE_CHECKING:
    from godwit.protocols.gathering.broker import GatheringBroker

BACK_OFF_MAX_S = 64.0

Kept = tuple[Notice, tuple[str, ...]]


class Pending(msgspec.Struct):
    """A handover that waits until a home has registered the client here."""

    epoch: int
    olds: tuple[Key, ...]
    tries: int = 1
    timer: Timer | None = None


class Orphans(msgspec.Struct):
    """Notices for a client of whom nothing is known here, while its homes are asked."""

    waiting: list[Kept]
    wait_s: float
    timer: Timer | None = None


class Mobility:
    def __init__(self, broker: GatheringBroker) -> None:
        self.broker = broker
        self.pending: dict[tuple[ClientId, int], Pending] = {}
        self.orphans: dict[ClientId, Orphans] = {}

    # Association and registration

    def associate(self, address: NodeId, message: Associate) -> None:
        broker, rules = self.broker, self.broker.rules
        client, epoch = message.client, message.epoch
        profile = broker.profiles.get(client)
        if rules.epochs and profile is not None and profile.epoch >= epoch:
            broker.host.send(address, Associated(broker.key, epoch))
            return
        pointer = broker.pointers.get(client)
        if rules.epochs and rules.late_guard and pointer is not None and pointer.epoch >= epoch:
            return
        broker.pointers.remove(client)
        profile = broker.profiles.open_or_refresh(client, address, epoch)
        broker.host.send(address, Associated(broker.key, epoch))
        broker.host.trace(Record("attached", client=client))
        self._register(client, epoch)
        olds = {message.last, *(message.tried if rules.tried else ())} - {b"", broker.key}
        if olds and rules.handover:
            self._expect(client, Pending(epoch, tuple(sorted(olds))))
        self.flush(profile)
        self.settle(client)

    def _register(self, client: ClientId, epoch: int) -> None:
        self._to_homes(client, Register(client, self.broker.key, epoch))

    def _to_homes(self, client: ClientId, body: Message) -> None:
        homes = home_keys(client, self.broker.rules.homes)
        self.broker.ring.cast([Destination(key) for key in homes], body)

    def _slot(self, client: ClientId, epoch: int) -> tuple[ClientId, int]:
        return (client, epoch if self.broker.rules.keyed_handovers else 0)

    def _expect(self, client: ClientId, pending: Pending) -> None:
        slot = self._slot(client, pending.epoch)
        overwritten = self.pending.get(slot)
        if overwritten is not None and overwritten.timer is not None:
            overwritten.timer.cancel()
        self.pending[slot] = pending
        self._await_home(client, slot, pending)

    def _await_home(self, client: ClientId, slot: tuple[ClientId, int], pending: Pending) -> None:
        def late() -> None:
            if self.pending.get(slot) is not pending:
                return
            if pending.tries < self.broker.rules.registers_max:
                pending.tries += 1
                self._register(client, pending.epoch)
                self._await_home(client, slot, pending)
            else:
                self._hand_over(client, slot)

        pending.timer = self.broker.host.after(self.broker.rules.register_s, late)

    def register(self, message: Register) -> None:
        """This broker is a home of the client."""
        self.broker.care_of.put(message.client, message.broker, message.epoch)
        self.broker.ring.route(message.broker, Registered(message.client, message.epoch))

    def registered(self, message: Registered) -> None:
        """The first answer counts."""
        self._hand_over(message.client, self._slot(message.client, message.epoch))

    def _hand_over(self, client: ClientId, slot: tuple[ClientId, int]) -> None:
        pending = self.pending.pop(slot, None)
        if pending is None:
            return
        if pending.timer is not None:
            pending.timer.cancel()
        for old in pending.olds:
            self.broker.ring.route(old, Handover(client, self.broker.key, pending.epoch))

    # Delivery

    def deliver(self, client: ClientId, notice: Notice, sids: tuple[str, ...] = ()) -> None:
        """Deliver or redirect: to the client, after it, or keep it until somebody knows where the client is."""
        broker = self.broker
        profile = broker.profiles.get(client)
        if profile is not None:
            if profile.push(notice, sids, broker.rules.buffer_max) and profile.presence is Presence.ATTACHED:
                self._send(profile, (profile.buffer[notice.item.item],))
            return
        if (onwards := self._onwards(client)) is not None:
            self._redirect(client, onwards, notice, sids)
            return
        if (orphans := self.orphans.get(client)) is not None:
            orphans.waiting.append((notice, sids))
            return
        self.orphans[client] = Orphans([(notice, sids)], broker.rules.lookup_s)
        self._ask(client)

    def _onwards(self, client: ClientId) -> tuple[Key, int] | None:
        """The broker to send on to; never one that failed and for which this one stands in."""
        broker = self.broker
        known: Pointer | CareOf | None = broker.pointers.get(client)
        if broker.rules.via_home:
            told = [one for one in (known, broker.care_of.get(client)) if one is not None]
            known = max(told, key=lambda one: one.epoch, default=None)
        if known is None or broker.ring.next_hop(known.broker) is None:
            return None
        return known.broker, known.epoch

    def _redirect(self, client: ClientId, onwards: tuple[Key, int], notice: Notice, sids: tuple[str, ...]) -> None:
        self.broker.counts["redirected"] += 1
        self._send_on(client, onwards[0], notice, sids)
        self._update(client, *onwards, (notice.matcher,))

    def _send_on(self, client: ClientId, broker: Key, notice: Notice, sids: tuple[str, ...]) -> None:
        further = replace(notice, chain=notice.chain + 1)
        if further.chain > self.broker.rules.chain_max:
            self.broker.count("dead letters")
            return
        self.broker.ring.route(broker, Forward(further, client, sids))

    def _update(self, client: ClientId, broker: Key, epoch: int, matchers: Iterable[Key]) -> None:
        if self.broker.rules.via_home:
            return
        keys = dict.fromkeys(matchers)
        if keys:
            update = Update(client, broker, epoch, self.broker.key)
            self.broker.ring.cast([Destination(key) for key in keys], update)

    def flush(self, profile: Profile) -> None:
        profile.fails = 0
        self._send(profile, tuple(profile.buffer.values()))

    def _send(self, profile: Profile, some: Sequence[Buffered]) -> None:
        for one in some:
            one.sent = True
            self.broker.host.send(profile.address, Notify(one.notice.item, one.sids))
        if some and profile.timer is None:
            self._await_ack(profile)

    def _await_ack(self, profile: Profile) -> None:
        def late() -> None:
            profile.timer = None
            if not profile.buffer or profile.presence is Presence.ABSENT:
                return
            profile.fails += 1
            if profile.fails >= self.broker.rules.fails_max:
                self._absent(profile)
            else:
                self._send(profile, tuple(profile.buffer.values()))

        profile.timer = self.broker.host.after(self.broker.rules.ack_s, late)

    def acknowledged(self, message: NotifyAck) -> None:
        profile = self.broker.profiles.get(message.client)
        if profile is None:
            return
        profile.ack(message.item)
        profile.fails = 0
        if not profile.buffer and profile.timer is not None:
            profile.timer.cancel()
            profile.timer = None

    # Absence

    def _absent(self, profile: Profile) -> None:
        profile.become(Cause.SILENT)
        profile.absent_since_s = self.broker.host.now()
        self.broker.host.trace(Record("absent", client=profile.client))
        if self.broker.rules.recheck_s:
            self.recheck(profile)

    def recheck(self, profile: Profile) -> None:
        """While it is absent, ask now and then whether it is elsewhere; a handover may never come."""

        def due() -> None:
            there = self.broker.profiles.get(profile.client)
            if there is not profile or profile.presence is not Presence.ABSENT:
                return
            if self._outlived(profile):
                self.broker.count("profiles expired")
                self.broker.count("dead letters", len(profile.buffer))
                self.broker.profiles.close(profile.client)
                return
            self._to_homes(profile.client, Lookup(profile.client, self.broker.key))
            self.recheck(profile)

        self.broker.host.after(self.broker.rules.recheck_s, due)

    def _outlived(self, profile: Profile) -> bool:
        since = profile.absent_since_s
        return since is not None and self.broker.host.now() - since > self.broker.rules.profile_ttl_s

    # Looking up

    def _ask(self, client: ClientId) -> None:
        orphans = self.orphans[client]

        def again() -> None:
            if self.orphans.get(client) is orphans:
                orphans.wait_s = min(2 * orphans.wait_s, BACK_OFF_MAX_S)
                self._ask(client)

        orphans.timer = self.broker.host.after(orphans.wait_s, again)
        self._to_homes(client, Lookup(client, self.broker.key))

    def lookup(self, message: Lookup) -> None:
        """This broker is a home of the client."""
        found = self.broker.care_of.get(message.client)
        broker, epoch = (b"", 0) if found is None else (found.broker, found.epoch)
        self.broker.ring.route(message.reply_to, LookupAnswer(message.client, broker, epoch))

    def found(self, message: LookupAnswer) -> None:
        client, broker = message.client, self.broker
        profile = broker.profiles.get(client)
        if profile is not None and profile.presence is Presence.ABSENT and self._has_left(profile, message):
            self.hand_over(Handover(client, message.broker, message.epoch), answer=False)
        if client not in self.orphans:
            return
        if not broker.profiles.has(client):
            if not self._usable(message):
                return
            broker.pointers.put(client, message.broker, message.epoch)
            self._send_orphans(client, (message.broker, message.epoch))
        self.settle(client)

    def _has_left(self, profile: Profile, message: LookupAnswer) -> bool:
        return message.broker not in (b"", self.broker.key) and message.epoch > profile.epoch

    def _usable(self, message: LookupAnswer) -> bool:
        """Not this broker itself, by news that are old, nor one that failed and for which this one stands in."""
        if not message.broker or self.broker.ring.next_hop(message.broker) is None:
            return False
        pointer = self.broker.pointers.get(message.client)
        return not self.broker.rules.epochs or pointer is None or pointer.epoch <= message.epoch

    def _send_orphans(self, client: ClientId, onwards: tuple[Key, int]) -> None:
        """Not through the pointer table, in which there may be no room."""
        waiting = self._taken(client)
        for notice, sids in waiting:
            self._send_on(client, onwards[0], notice, sids)
        self._update(client, *onwards, (notice.matcher for notice, _ in waiting))

    def _taken(self, client: ClientId) -> list[Kept]:
        orphans = self.orphans.pop(client, None)
        if orphans is None:
            return []
        if orphans.timer is not None:
            orphans.timer.cancel()
        return orphans.waiting

    def settle(self, client: ClientId) -> None:
        """Something is known of the client now: what waited for that is delivered or sent on."""
        for notice, sids in self._taken(client):
            self.deliver(client, notice, sids)

    # Handover

    def hand_over(self, message: Handover, *, answer: bool = True) -> None:
        """This broker is the old one: everything that waits goes after the client, and a pointer stays."""
        broker, client, epoch = self.broker, message.client, message.epoch
        profile = broker.profiles.get(client)
        if broker.rules.epochs and profile is not None and profile.epoch >= epoch:
            self._answer(message, HandoverAnswer(client, epoch, stale=True), answer)
            return
        if profile is None:
            self._answer(message, HandoverAnswer(client, epoch), answer)
            self._chase(message)
        else:
            self._answer(message, HandoverAnswer(client, epoch, len(profile.buffer)), answer)
            self._replay(profile, message)
        self.settle(client)

    def _answer(self, message: Handover, body: HandoverAnswer, wanted: bool) -> None:
        if wanted:
            self.broker.ring.route(message.broker, body)

    def _replay(self, profile: Profile, message: Handover) -> None:
        broker, client = self.broker, message.client
        items = profile.drain()
        broker.profiles.close(client)
        broker.pointers.put(client, message.broker, message.epoch)
        broker.host.trace(Record("handed over", client=client, size_b=len(items)))
        for one in items:
            self._send_on(client, message.broker, one.notice, one.sids)
        self._update(client, message.broker, message.epoch, (one.notice.matcher for one in items))

    def _chase(self, message: Handover) -> None:
        """No profile here, and perhaps never was: whoever this broker points to may have it. The pointer is put first:
        the broker that the old one names may have failed, with this one standing in for it."""
        broker, rules = self.broker, self.broker.rules
        pointer = broker.pointers.get(message.client)
        broker.pointers.put(message.client, message.broker, message.epoch)
        if pointer is None or not (rules.chase and rules.epochs):
            return
        if pointer.epoch < message.epoch and pointer.broker != message.broker:
            broker.ring.route(pointer.broker, message)

    def update(self, message: Update) -> None:
        """This broker matched for the client."""
        store, always = self.broker.store, not self.broker.rules.epochs
        store.update_location(message.client, message.broker, message.epoch, always=always)
        self.broker.ring.route(message.reply_to, UpdateAnswer(message.client, message.epoch))

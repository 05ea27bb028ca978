"""The copies of other brokers' sessions that a broker holds: docs/broker.md, "Copies"."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import isinf

from godwit.protocols.broker import contents
from godwit.protocols.broker.contents import Drop, Uncopied
from godwit.protocols.broker.keeping import size_b
from godwit.protocols.broker.registry import TIMER_MAX_S, Registry
from godwit.protocols.broker.sessions import Copy, Gate, Item, Session, Upstream, copy_owner
from godwit.protocols.broker.turning import Turning, item_of
from godwit.protocols.broker.understanding import remembered
from godwit.protocols.host import NodeId

COPY_B = 2_048
"""What a copy costs beside what waits in it, about."""


class Holding:
    """A copy collects as a session that has moved here does, and whoever asks for its session commits it first: from
    then on it is on the disk and no bound applies to it. All others together cost up to `bytes_max`; what would be
    beyond is not held at all, so that no copy has a hole."""

    def __init__(self, registry: Registry, turning: Turning, bytes_max: int, *, holds: bool) -> None:
        self.registry = registry
        self.switch = registry.switch
        self.turning = turning
        self.bytes_max = bytes_max
        self.holds = holds
        self.bytes = 0
        self.switch.weigh = self._weigh

    def get(self, client: str, source: NodeId) -> Copy | None:
        """The copy of this client's session that this broker has made."""
        copy = self.registry.copies.get(client)
        return copy if copy is not None and copy.source == source else None

    def on_copy(self, origin: NodeId, content: contents.Copy) -> None:
        client, old = content.client, self.registry.copies.get(content.client)
        cost = COPY_B + sum(len(kept.publication.payload) for kept in content.kept)
        if (
            not self.holds
            or client in self.registry.sessions
            or (old is not None and (old.fetched or old.epoch >= content.epoch))
            or self.bytes + cost > self.bytes_max
        ):
            self._say_not(origin, content.client, content.epoch)
            return
        if old is not None:
            self.forget(old)
        copy = Copy(self._session(origin, content), origin, content.epoch, content.lasts_s, content.token)
        self._hold(copy, cost)

    def _session(self, origin: NodeId, content: contents.Copy) -> Session:
        session = Session(content.client, content.epoch)
        session.clean, session.started = content.clean, content.started
        session.memory, session.strange = content.memory, content.strange
        session.passages, session.since = dict.fromkeys(content.passages), self.switch.host.now()
        session.incoming = set(content.incoming)
        for wanted in content.subscriptions:
            session.row += 1
            sub = remembered(session, wanted, session.row)
            if sub is not None:
                session.subscriptions[wanted.key] = sub
        for kept in content.kept:
            session.flying[kept.number] = item_of(kept, under_way=True)
            session.number = kept.number
        origins = {*content.origins, self.switch.name, *self.switch.fabric.brokers}
        session.gates = {name: Gate() for name in sorted(origins)}
        session.upstreams.append(Upstream(content.epoch, origin, (), origins, main=True, copy=True))
        return session

    def _hold(self, copy: Copy, cost: int) -> None:
        session, switch = copy.session, self.switch
        session.copy, copy.bytes = copy, cost
        session.review()
        self.bytes += cost
        self.registry.copies[session.client] = copy
        switch.counts.copies += 1
        for sub in session.subscriptions.values():
            switch.add_sub(sub)
        if not isinf(copy.lasts_s):
            copy.expiry_timer = switch.host.after(min(copy.lasts_s, TIMER_MAX_S), partial(self._expire, copy))
        self.turning.turn_all(session, session.upstreams[0])

    def _expire(self, copy: Copy) -> None:
        copy.lasts_s -= TIMER_MAX_S
        if copy.session.ended or copy.fetched:
            return
        if copy.lasts_s > 0:
            copy.expiry_timer = self.switch.host.after(min(copy.lasts_s, TIMER_MAX_S), partial(self._expire, copy))
        else:
            self.forget(copy)

    def _weigh(self, copy: Copy, item: Item) -> None:
        """One more has come. Where that is too much, the copy goes when this turn is over: somebody may be in the midst
        of giving to all who want the same."""
        cost, session = size_b(item), copy.session
        copy.bytes += cost
        self.bytes += cost
        if self.bytes > self.bytes_max or len(session.waiting) > self.registry.limits.queue_max:
            self.switch.host.after(0.0, partial(self._refuse, copy))

    def _refuse(self, copy: Copy) -> None:
        if not copy.session.ended and not copy.fetched:
            self.forget(copy)
            self._say_not(copy.source, copy.session.client, copy.epoch)

    def _say_not(self, source: NodeId, client: str, epoch: int) -> None:
        self.switch.counts.copies_refused += 1
        self.switch.say((source,), Uncopied(client, epoch))

    def on_drop(self, origin: NodeId, drop: Drop) -> None:
        """Where the session has been asked for, the answer says what becomes of the copy."""
        copy = self.get(drop.client, origin)
        if copy is not None and copy.epoch <= drop.epoch and not copy.fetched:
            self.forget(copy)

    def commit(self, copy: Copy) -> None:
        """Onto the disk, with the packet identifiers of what the client gets first: its source is about to be told that
        it need not send what is in it."""
        if copy.fetched:
            return
        session, switch = copy.session, self.switch
        copy.fetched = True
        self.bytes -= copy.bytes
        if copy.expiry_timer is not None:
            copy.expiry_timer.cancel()
        session.copy = None
        session.owner = copy_owner(session.client, copy.epoch)
        session.limits = self.registry.limits
        session.expiry_s, session.left = copy.lasts_s, switch.clock()
        session.review()
        switch.counts.waiting += len(session.flying) + len(session.waiting)
        switch.flows.number_first(session)
        switch.ledger.save_together(session)

    def enliven(self, copy: Copy, epoch: int) -> Session:
        """It is the session from now on."""
        self.commit(copy)
        session, registry = copy.session, self.registry
        del registry.copies[session.client]
        self.switch.counts.copies -= 1
        session.epoch = epoch
        session.sequence = registry.first_sequence()
        registry.sessions[session.client] = session
        self.switch.counts.sessions += 1
        self.switch.counts.copies_used += 1
        self.switch.counts.moved_in += 1
        return session

    def forget(self, copy: Copy) -> None:
        session, switch = copy.session, self.switch
        del self.registry.copies[session.client]
        session.ended = True
        switch.counts.copies -= 1
        if copy.fetched:
            switch.counts.waiting -= len(session.flying) + len(session.waiting)
            switch.ledger.forget(session)
        else:
            self.bytes -= copy.bytes
        if copy.expiry_timer is not None:
            copy.expiry_timer.cancel()
        self.turning.forget(session)
        for sub in session.subscriptions.values():
            switch.remove_sub(sub)

    def loaded(self, session: Session) -> None:
        """A copy that was asked for before a crash; the answer is still to come."""
        way = session.upstreams[0]
        copy = Copy(session, way.source, way.epoch, session.expiry_s, session.token)
        copy.fetched = True
        session.limits = self.registry.limits
        self.registry.copies[session.client] = copy
        self.switch.counts.copies += 1
        self.switch.counts.waiting += len(session.flying) + len(session.waiting)
        for sub in session.subscriptions.values():
            self.switch.add_sub(sub)

    def met(self, brokers: Iterable[NodeId]) -> None:
        """New brokers, of which a copy's source may know or not."""
        for session in [*(copy.session for copy in self.registry.copies.values()), *self.registry.sessions.values()]:
            if session.upstreams:
                self.turning.met(session, brokers)

    def given_up(self, broker: NodeId) -> None:
        for copy in list(self.registry.copies.values()):
            if copy.source == broker:
                self.forget(copy)


def is_pending(session: Session) -> bool:
    """Whether it is a copy that was asked for: until the answer comes its epoch is the copy's."""
    return any(way.copy and way.epoch == session.epoch for way in session.upstreams)

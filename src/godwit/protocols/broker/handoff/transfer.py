"""How a session leaves a broker for another: docs/broker.md, "A session moves" and "Copies"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from godwit.protocols.broker import messages
from godwit.protocols.broker.api import Reason
from godwit.protocols.broker.fabric.base import ANYTHING
from godwit.protocols.broker.handoff.copies import Copying
from godwit.protocols.broker.handoff.cutover import Turning
from godwit.protocols.broker.handoff.directory import At, Places
from godwit.protocols.broker.handoff.publisher_order import Speaking
from godwit.protocols.broker.messages import Carried, Claim, Forwarded, Given, Kept, Line, Memory
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.session.lifecycle import Cause
from godwit.protocols.broker.session.memory import (
    born_of_session,
    had_without,
    is_forsaken,
    is_outdated,
    lines_of,
    merge,
    note,
    tokens_of,
)
from godwit.protocols.broker.session.parse import are_matched, filters_of, remembered
from godwit.protocols.broker.session.proofs import unite
from godwit.protocols.broker.session.rows import item_of, kept_of
from godwit.protocols.broker.session.state import Gate, Session, Upstream, shadow_owner
from godwit.protocols.broker.session.stays import left, unite_stays
from godwit.protocols.host import NodeId, Record

if TYPE_CHECKING:
    from godwit.protocols.broker.handoff.coordinator import Moves


class Luggage(NamedTuple):
    """All that goes to another broker of a session, in this order."""

    moved: messages.Session
    waiting: list[Kept]


def packed(
    session: Session,
    epoch: int,
    carried: Carried,
    origins: Iterable[NodeId] = (),
    chain: Iterable[NodeId] = (),
) -> Luggage:
    """What it has, for its place of this epoch; before anything is taken from it."""
    moved = messages.Session(
        session.client,
        epoch,
        carried,
        tuple(sub.wanted for sub in session.subscriptions.values()),
        tuple(sorted(session.queue.incoming)),
        tuple(kept_of(item) for item in session.queue.flying.values()),
        tuple(sorted(origins)),
        session.sequence,
        tuple(sorted(chain)),
        session.queue.digests,
    )
    return Luggage(moved, [kept_of(item) for item in session.queue.waiting])


class Leaving:
    """What stays of a session is a shadow, which passes on what still comes."""

    def __init__(
        self, registry: Registry, places: Places, turning: Turning, speaking: Speaking, copying: Copying
    ) -> None:
        self.registry = registry
        self.switch = registry.switch
        self.name = registry.switch.name
        self.places = places
        self.turning = turning
        self.speaking = speaking
        self.copying = copying

    def transfer(self, session: Session, to: NodeId) -> None:
        """All of it into the stream to the other broker. Its epochs are its own: a broker that asks for it may know of
        another session of the client, which this one must not outrank."""
        switch, client = self.switch, session.client
        if self.registry.moves.abroad.defer(session, to):
            return
        epoch = self._begin(session, to, 0)
        unheard, kept = self.speaking.leave(session, to, epoch)
        chain = {one for way in session.inflow.upstreams for one in (*way.chain, way.source)} - {to}
        origins = self._origins(session, to).union(*(way.origins for way in session.inflow.upstreams))
        # Whoever has made a copy and not confirmed it is waited for last of all.
        origins |= {way.source for way in session.inflow.upstreams if way.copy}
        carried = msgspec.structs.replace(
            self.registry.reunion.carried(session), token="", unheard=unheard, claims=self.claims(session)
        )
        luggage = packed(session, epoch, carried, origins, chain)
        if session.standing.in_vain:
            luggage = Luggage(msgspec.structs.replace(luggage.moved, subscriptions=()), [])
        self._leave(session, to, epoch, origins)
        session.carried.unheard = kept
        self.places.put(client, At(epoch, to))
        self._send(session, to, luggage)
        self._pass_on(session)
        self.turning.go_on(session)
        if switch.tracing:
            switch.host.trace(Record("moved", client=client, peer=to))

    def give(self, session: Session, to: NodeId, epoch: int) -> None:
        """The copy that `to` holds is the session from now on: only what it does not get by itself is passed on."""
        switch, client, copied = self.switch, session.client, session.standing.copied
        origins = self._origins(session, to) - session.standing.copies[to]
        epoch = self._begin(session, to, max(epoch, copied + 1))
        unheard = self.speaking.leave_copy(session, to, copied)
        self._leave(session, to, copied, origins)
        session.carried.unheard = unheard
        self.places.put(client, At(epoch, to))
        switch.fabric.send((to,), Given(client, epoch, copied, tuple(sorted(origins)), heard=not unheard))
        self._pass_on(session)
        if switch.tracing:
            switch.host.trace(Record("moved", client=client, peer=to, note="copy"))

    def transfer_abroad(self, session: Session, peer: NodeId, lines: Mapping[str, int]) -> int:
        """All of it into the stream to the gateway of another site; the epoch there. What stays of it takes all that
        comes, and passes it on to that gateway. `lines` says how far the streams of our site have come."""
        self.copying.drop(session)
        standing, shadows = session.standing, self.registry.shadows.get(session.client, {})
        while standing.epoch in shadows:
            standing.epoch += 1
        used = [shadow.standing.next_epoch for shadow in shadows.values()]
        epoch = max(standing.epoch, standing.copied, *used, 0) + 1
        self.registry.let_go(session)
        session.carried.stays = left(session.carried.stays, self.switch.site, lines)
        carried = msgspec.structs.replace(
            self.registry.reunion.carried(session), token="", unheard=frozenset(), claims=(), memory=None
        )
        luggage = packed(session, epoch, carried)
        self._leave(session, peer, epoch, {peer})
        session.standing.abroad, session.standing.marked = True, 0
        self._send(session, peer, luggage)
        self._pass_on(session)
        return epoch

    def _send(self, session: Session, to: NodeId, luggage: Luggage) -> None:
        fabric = self.switch.fabric
        fabric.send((to,), luggage.moved)
        session.standing.handed = fabric.sent  # it is written with the shadow
        for kept in luggage.waiting:
            fabric.send((to,), Forwarded(session.client, luggage.moved.epoch, kept))

    def _begin(self, session: Session, to: NodeId, epoch: int) -> int:
        """Nobody is connected any more, nobody else holds a copy; the epoch at the next place."""
        standing, shadows = session.standing, self.registry.shadows.get(session.client, {})
        # Two sessions of a client may go the same way after one another: they must not go under the same epoch, nor
        # leave two shadows of the same epoch.
        while standing.epoch in shadows:
            standing.epoch += 1
        # Nor under that of any copies, by which brokers may still turn to those; the last have the highest.
        epoch = max(epoch, standing.epoch + 1, standing.copied + 1)
        while any(epoch == shadow.standing.next_epoch for shadow in shadows.values()):
            epoch += 1
        self.copying.neighbors.went(to, tuple(session.standing.copies), session.standing.came_from)
        self.copying.drop(session, but=to)
        self.registry.let_go(session)
        return epoch

    def _origins(self, session: Session, to: NodeId) -> set[NodeId]:
        """The brokers that may send something that it wants."""
        subs = session.subscriptions.values()
        filters = filters_of(subs)
        if session.carried.memory is None and are_matched(subs):  # else something comes from older sessions, too
            return self.switch.fabric.origins(filters, (self.name, to))
        return {self.name, to, *self.switch.fabric.sources(filters)}

    def claims(self, session: Session) -> tuple[Claim, ...]:
        """The copies by which the session came that may still be thought of as such."""
        own = [Claim(way.source, way.epoch, self.name) for way in session.inflow.upstreams if way.copy]
        return tuple(dict.fromkeys((*session.carried.claims, *own)))

    def _leave(self, session: Session, to: NodeId, epoch: int, origins: set[NodeId]) -> None:
        """From now on it is only a shadow of itself."""
        switch = self.switch
        switch.ledger.forget(session)
        del self.registry.sessions[session.client]
        switch.counts.waiting -= len(session.queue.flying) + len(session.queue.waiting)
        session.queue.clear()
        session.queue.incoming = {}
        session.become(Cause.MOVED)
        session.standing.moved_to, session.standing.next_epoch, session.standing.left_under = to, epoch, session.line
        session.owner = shadow_owner(session.client, session.standing.epoch)
        session.standing.open_origins = session.standing.owed = frozenset(origins)
        session.carried.unheard, session.carried.claims, session.standing.reserved_for = frozenset(), (), ""
        switch.counts.sessions -= 1
        switch.counts.moved_out += 1

    def _pass_on(self, shadow: Session) -> None:
        """The shadow stays as long as it owes anything to anybody: perhaps not at all."""
        if shadow.standing.owed or shadow.carried.unheard:
            self.registry.add_shadow(shadow)
            self.switch.ledger.save(shadow)
            self.switch.audiences.changed()
        else:
            self.switch.withdraw(shadow)
            shadow.become(Cause.OVER)


# How a session arrives where there may be another of the same client: docs/broker.md, "A session moves".


class Arriving:
    """It is the client's session here from now on; or, where the client has one here already, goes into that."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.registry = moves.registry
        self.switch = moves.switch

    def on_session(self, origin: NodeId, moved: messages.Session) -> None:
        waiting = self.moves.waiting.get(moved.client)
        present, copy = self.registry.sessions.get(moved.client), self.moves.holding.get(moved.client, origin)
        if copy is not None:
            self.moves.holding.forget(copy)
        older = present if present is not None and present.carried.age < moved.carried.age else None
        if older is not None and older.standing.arriving:
            older = None  # it cannot leave yet
        if older is not None:
            # The older goes into the newer: to where that came from, and from there it comes after it.
            self.moves.leaving.transfer(older, origin)
            present = None
        way = Upstream(moved.epoch, origin, moved.chain, set(moved.origins), present is None)
        way.lines = tuple(sorted(lines_of(moved.carried.memory)))
        way.had = self.moves.taking.void(origin, moved.client)
        if present is not None:
            self.moves.waiting.pop(moved.client, None)  # it hears of nothing before the two are one
            self._add_to(present, moved, way)
            if waiting is not None:
                self.moves.waiting[moved.client] = waiting
                self.moves.united(present, origin)
            return
        session = self.installed(moved, way)
        if older is not None:
            self.registry.reunion.sent_round(session, origin)
        self.switch.counts.moved_in += 1
        self.switch.counts.handoffs_missed += waiting is not None
        self.moves.copying.neighbors.came(origin)
        self.moves.turning.turn_all(session, way)
        if self.registry.sessions.get(moved.client) is not session:
            self.moves.passed_by(moved.client)  # all were through, and somebody to whom this gateway leads has waited
        elif not self._follows(session):
            self.moves.arrive(session, self.moves.stop_waiting(moved.client))

    def _follows(self, session: Session) -> bool:
        """Where a newer session of the client has left from here, and may not have arrived yet, an older one goes after
        it. If it stayed, the newer would find it here or hear of it, and go into it with all that it remembers. A
        client that is here goes on waiting, for the newer: that knows what it has had."""
        shadows = self.registry.shadows.get(session.client, {}).values()
        newest = max(shadows, key=lambda one: (one.carried.age, one.standing.next_epoch), default=None)
        if newest is None or not self.switch.fabric.is_known(newest.standing.moved_to):
            return False
        if newest.carried.age <= session.carried.age:
            return False
        self.moves.leaving.transfer(session, newest.standing.moved_to)
        return True

    def add_from_abroad(self, session: Session, moved: messages.Session, way: Upstream) -> None:
        """The client has another session here, of which its site did not know: what the one kept goes to the other."""
        session.inflow.upstreams += (way,)
        session.standing.epoch = max(session.standing.epoch, moved.epoch)
        unite(session.carried, moved.carried)
        unite_stays(session, moved.carried.stays, moved.subscriptions)
        self.registry.inherit(session, moved.subscriptions, moved.carried.replays)
        for kept in moved.kept:
            if not kept.received:
                self.moves.turning.pass_to(session, way, item_of(kept, under_way=False))

    def _become(self, session: Session, memory: Memory, age: Line) -> None:
        """It is crossing to here and cannot leave, so that a newer one goes into it: it knows what that one has had."""
        keys, origins = session.subscriptions, (self.switch.name, *self.switch.fabric.sources(ANYTHING))
        memory.firsts, memory.awaited = {origin: dict.fromkeys(keys, 0) for origin in origins}, {}
        session.carried.memory, session.carried.age = memory, age
        self.switch.flows.take_back(session, memory.had)
        note(memory, session.queue.names())

    def installed(self, moved: messages.Session, way: Upstream) -> Session:
        session = Session(moved.client, moved.epoch, moved.carried)
        session.become(Cause.ARRIVED)
        session.sequence = max(moved.sequence, self.registry.first_sequence())
        session.queue.take_over(moved.incoming, moved.digests)
        session.standing.came_from, session.standing.came_under = way.source, session.line
        session.inflow.upstreams += (way,)
        session.inflow.gates = {origin: Gate() for origin in moved.origins}
        for wanted in moved.subscriptions:
            session.row += 1
            sub = remembered(session, wanted, session.row)
            if sub is not None:
                session.want(sub)
        for kept in moved.kept:
            session.queue.fly(item_of(kept, under_way=True))
            session.queue.number = kept.number
        if session.carried.memory is not None:
            note(session.carried.memory, session.queue.names())
            self._redirect(session)
            self.moves.recognize(session)
        self.registry.add(session)
        self.switch.counts.waiting += len(session.queue.flying)
        self.switch.ledger.save(session)
        self.moves.speaking.arrive(session)
        return session

    def _redirect(self, session: Session) -> None:
        self.registry.reunion.redirect(session, self.registry.shadows.get(session.client, {}).values())

    def _add_to(self, session: Session, moved: messages.Session, way: Upstream) -> None:
        """The client could not wait, or was at two brokers: what the other session kept goes to this one, unless the
        client has started clean since. Where it started the other clean, what still older ones kept is for neither.
        One that began as a copy of the other has started together with it. Either way all brokers turn from the other,
        also those that are met later: what stays of it waits for them."""
        self.moves.copying.drop(session)
        together = session.carried.started == moved.carried.started
        if not together and is_outdated(session.carried, moved.carried.age):
            if moved.carried.started and self.registry.still_asks(moved.carried):
                session.untold = True  # calendars alone say which of two clean starts is the older
            notes = self._note_had(session, moved.carried.memory)
            session.inflow.upstreams += (way,)
            self.switch.ledger.put_session(session)
            self.moves.turning.turn_all(session, way)
            for kept in moved.kept:
                if kept.group is not None and kept.qos == 1:
                    self.moves.turning.pass_to(session, way, item_of(kept, under_way=False))
            if notes:
                self.moves.announce(session)
            return
        # Which of the two the client was in last only the client knows: packet identifiers that it used in the one may
        # be others' in the other. Unless it shows that it was in this one it is told to begin anew.
        session.carried.strange = session.carried.strange or bool(session.queue.incoming or moved.incoming)
        session.carried.unshown = session.carried.unshown and moved.carried.unshown
        # What is under way there counts as had, but this session begins deliveries anew: it is yet to come.
        again = {kept.publication.passage for kept in moved.kept if not kept.received}
        had = dict.fromkeys(one for one in moved.carried.passages if one not in again)
        session.carried.passages = {**session.carried.passages, **had}
        unite_stays(session, moved.carried.stays, moved.subscriptions)
        self.registry.inherit(session, moved.subscriptions, moved.carried.replays)
        session.carried.started = max(session.carried.started, moved.carried.started)
        unite(session.carried, moved.carried)
        way.born = born_of_session(moved.carried)
        session.inflow.upstreams += (way,)  # from now on: it is not copied before all has come on it
        older = moved.carried.memory
        if session.standing.arriving and session.carried.memory is None:
            if older is not None:
                self._become(session, older, moved.carried.age)
        else:
            memory = self.registry.reunion.remember(session)
            if is_forsaken(memory, moved.carried):
                self._yield_to_original(session, memory)
                self.registry.reunion.yielded(session, moved.subscriptions, way.origins)
            if memory.original in tokens_of(moved.carried):
                memory.original = None  # it is here, and the client may know of it
            way.forsaken = is_forsaken(older, session.carried)
            merge(memory, moved.carried)
            self.moves.recognize(session)
            self._redirect(session)
            self.switch.flows.take_back(session, older.had if older is not None else {})
        session.standing.epoch = max(session.standing.epoch, moved.epoch)
        session.standing.announced = False
        self.switch.ledger.put_session(session)
        self.moves.turning.turn_all(session, way)
        self.moves.announce(session)
        for kept in moved.kept:
            if not kept.received:
                self.moves.turning.pass_to(session, way, item_of(kept, under_way=False))

    def _note_had(self, session: Session, outdated: Memory | None) -> bool:
        """Which of two began first calendars say where nobody knew of both, and one may be behind: the client may have
        been in the other since it started this one clean. Nothing that waits there is for it, but what it has had it
        has. Whether the session remembers that, and must be announced."""
        if outdated is None or not outdated.had or session.standing.arriving:
            return False
        note(self.registry.reunion.remember(session), outdated.had)
        self.switch.flows.take_back(session, outdated.had)
        session.standing.announced = False
        return True

    def _yield_to_original(self, session: Session, memory: Memory) -> None:
        """The client was let into this copy, and with the same token into what it was made of: that knows what waits.

        If it has had nothing of the copy it need not know of this. Else it has said in one of the two that it was not
        in the other, and nobody knows where it was last: what it has had here stays had, and it is to begin anew."""
        knows = session.standing.answered or memory.known
        memory.had = had_without(memory, session.queue.names()) if knows else {}
        if knows:
            session.carried.strange, session.carried.token = True, ""
        leaves = knows and session.outlet is not None and not session.ends_with_connection
        if leaves:
            self.registry.hang_up(session, Reason.SESSION_TAKEN_OVER, "the client was in two sessions at once")
        self.switch.empty(session)
        if leaves:
            self.registry.rest(session)  # its will may be for itself

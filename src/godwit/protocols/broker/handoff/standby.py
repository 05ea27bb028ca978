"""The copies of other brokers' sessions that a broker holds: docs/broker.md, "Copies"."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import isinf
from typing import TYPE_CHECKING

from godwit.protocols.broker import messages
from godwit.protocols.broker.api import UNSURE, Opening, Outlet
from godwit.protocols.broker.dispatch import IN_VAIN
from godwit.protocols.broker.handoff.cutover import Turning, way_of
from godwit.protocols.broker.handoff.directory import At
from godwit.protocols.broker.messages import (
    FIRST,
    Drop,
    Fetch,
    Given,
    Memory,
    Nothing,
    Reserve,
    Reserved,
    Through,
    Uncopied,
)
from godwit.protocols.broker.registry import TIMER_MAX_S, Registry
from godwit.protocols.broker.session.lifecycle import OURS, Cause, State
from godwit.protocols.broker.session.memory import born_of_session, lines_of, note, still_awaits
from godwit.protocols.broker.session.parse import filters_of, remembered
from godwit.protocols.broker.session.rows import item_of, items_of, kept_of
from godwit.protocols.broker.session.state import Copy, Gate, Item, Session, Upstream, copy_owner
from godwit.protocols.broker.vacant import own
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.protocols.broker.handoff.coordinator import Moves


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

    def get(self, client: str, source: NodeId) -> Copy | None:
        """The copy of this client's session that this broker has made."""
        copy = self.registry.copies.get(client)
        return copy if copy is not None and copy.source == source else None

    def on_copy(self, origin: NodeId, content: messages.Copy) -> None:
        client, old = content.client, self.registry.copies.get(content.client)
        cost = COPY_B + sum(len(kept.publication.payload) for kept in content.kept)
        if (
            not self.holds
            or client in self.registry.sessions
            or (old is not None and (old.session.standing.state is State.COMMITTED or old.epoch >= content.epoch))
            or self.bytes + cost > self.bytes_max
        ):
            self._say_not(origin, content.client, content.epoch)
            return
        if old is not None:
            self.forget(old)
        copy = Copy(self, self._session(origin, content), origin, content.epoch, content.carried.expiry_s)
        self._hold(copy, cost)

    def _session(self, origin: NodeId, content: messages.Copy) -> Session:
        session = Session(content.client, content.epoch, content.carried)
        session.standing.crossings = self.switch.fabric.crossings
        session.queue.take_over(content.incoming, content.digests)
        for wanted in content.subscriptions:
            session.row += 1
            sub = remembered(session, wanted, session.row)
            if sub is not None:
                session.want(sub)
        for kept in content.kept:
            session.queue.fly(item_of(kept, under_way=True))
            session.queue.number = kept.number
        if session.carried.memory is not None:
            note(session.carried.memory, session.queue.names())
        sources = self.switch.fabric.sources(filters_of(session.subscriptions.values()))
        origins = {*content.origins, *sources}
        if origin in content.origins:  # else it knows that neither of the two has anything to send
            origins.add(self.switch.name)
        session.inflow.gates = {name: Gate() for name in sorted(origins)}
        # What it is a copy of remembers something, or nothing any longer by the time that it is given.
        lines = tuple(sorted({FIRST, *lines_of(content.carried.memory)}))
        session.inflow.upstreams += (Upstream(content.epoch, origin, (), origins, main=True, copy=True, lines=lines),)
        return session

    def _hold(self, copy: Copy, cost: int) -> None:
        session, switch = copy.session, self.switch
        session.become(Cause.COPIED)
        session.copy, copy.bytes = copy, cost
        self.bytes += cost
        self.registry.copies[session.client] = copy
        switch.counts.copies += 1
        for sub in session.subscriptions.values():
            switch.add_sub(sub)
        if not isinf(copy.lasts_s):
            copy.expiry_timer = switch.host.after(min(copy.lasts_s, TIMER_MAX_S), partial(self._expire, copy))
        self.turning.turn_all(session, session.inflow.upstreams[0])

    def _expire(self, copy: Copy) -> None:
        copy.lasts_s -= TIMER_MAX_S
        if copy.session.standing.state is not State.STANDBY:
            return
        if copy.lasts_s > 0:
            copy.expiry_timer = self.switch.host.after(min(copy.lasts_s, TIMER_MAX_S), partial(self._expire, copy))
        else:
            self.forget(copy)

    def weigh(self, copy: Copy, item: Item) -> None:
        """One more has come. Where that is too much, the copy goes when this turn is over: somebody may be in the midst
        of giving to all who want the same."""
        cost, session = item.size_b, copy.session
        copy.bytes += cost
        self.bytes += cost
        if self.bytes > self.bytes_max or len(session.queue.waiting) > self.registry.limits.queue_max:
            self.switch.host.after(0.0, partial(self._refuse, copy))

    def decline(self, client: str) -> None:
        """A session of this client comes from another site, and cannot give way to a copy until it is whole. What the
        copy was made of goes into it instead, if the client wants that."""
        copy = self.registry.copies.get(client)
        if copy is not None:
            self._refuse(copy)

    def _refuse(self, copy: Copy) -> None:
        if copy.session.standing.state is State.STANDBY:
            self.forget(copy)
            self._say_not(copy.source, copy.session.client, copy.epoch)

    def _say_not(self, source: NodeId, client: str, epoch: int) -> None:
        self.switch.counts.copies_refused += 1
        self.switch.fabric.send((source,), Uncopied(client, epoch))

    def on_drop(self, origin: NodeId, drop: Drop) -> None:
        """It never becomes the session any more. That holds also where the session was asked for: the answer may have
        been lost in a crash of the source, and brings no copy back."""
        copy = self.get(drop.client, origin)
        if copy is not None and copy.epoch <= drop.epoch:
            self.forget(copy)
        elif copy is None:
            self.registry.moves.taking.dropped(origin, drop)

    def commit(self, copy: Copy) -> None:
        """Onto the disk, with the packet identifiers of what the client gets first: its source is about to be told that
        it need not send what is in it."""
        if copy.session.standing.state is not State.STANDBY:
            return
        session, switch = copy.session, self.switch
        session.become(Cause.ASKED)
        session.outlive(copy.lasts_s)
        self.bytes -= copy.bytes
        if copy.expiry_timer is not None:
            copy.expiry_timer.cancel()
        session.copy = None
        session.owner = copy_owner(session.client, copy.epoch)
        session.limits = self.registry.limits
        session.standing.left = switch.steady()
        switch.counts.waiting += len(session.queue.flying) + len(session.queue.waiting)
        session.queue.count_from(copy.epoch)
        switch.flows.number_first(session)
        switch.ledger.save_together(session)

    def enliven(self, copy: Copy, epoch: int) -> Session:
        """It is the session from now on."""
        self.commit(copy)
        session, registry = copy.session, self.registry
        session.become(Cause.TAKEN_UP)
        del registry.copies[session.client]
        self.switch.counts.copies -= 1
        session.standing.epoch = epoch
        registry.sessions[session.client] = session
        self.switch.counts.sessions += 1
        self.switch.counts.copies_used += 1
        self.switch.counts.moved_in += 1
        return session

    def forget(self, copy: Copy) -> None:
        session, switch = copy.session, self.switch
        del self.registry.copies[session.client]
        was_committed = session.standing.state is State.COMMITTED
        switch.withdraw(session)
        session.become(Cause.OVER)
        switch.counts.copies -= 1
        if was_committed:
            switch.counts.waiting -= len(session.queue.flying) + len(session.queue.waiting)
            switch.ledger.forget(session)
        else:
            self.bytes -= copy.bytes
        if copy.expiry_timer is not None:
            copy.expiry_timer.cancel()
        self.turning.forget(session)

    def loaded(self, session: Session) -> None:
        """A copy that was asked for before a crash; the answer is still to come."""
        way = session.inflow.upstreams[0]
        copy = Copy(self, session, way.source, way.epoch, session.carried.expiry_s)
        session.limits = self.registry.limits
        self.registry.copies[session.client] = copy
        self.switch.counts.copies += 1
        self.switch.counts.waiting += len(session.queue.flying) + len(session.queue.waiting)
        for sub in session.subscriptions.values():
            self.switch.add_sub(sub)

    def met(self, brokers: Iterable[NodeId]) -> None:
        """New brokers, of which a copy's source may know or not."""
        for session in [*(copy.session for copy in self.registry.copies.values()), *self.registry.sessions.values()]:
            if session.inflow.upstreams:
                self.turning.met(session, brokers)

    def given_up(self, broker: NodeId) -> None:
        """It says no longer what becomes of its copies. A session of the client that is here gets what is in one, if it
        still waits for what this is a copy of."""
        for copy in [one for one in self.registry.copies.values() if one.source == broker]:
            kept = [kept_of(item) for item in items_of(copy.session) if not item.received]
            present = self.registry.sessions.get(copy.session.client)
            self.forget(copy)
            born = born_of_session(copy.session.carried)
            if present is None or not still_awaits(present.carried, copy):
                continue
            for one in kept:
                self.turning.pass_older(present, born, item_of(one, under_way=False))


# How a client gets its session from a copy: docs/broker.md, "Copies".


class Taking:
    """A copy becomes the session when its source has said so (`Given`), or before: at once where the client shows that
    nobody can have had the session since, and without the source where that is away."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.registry = moves.registry
        self.switch = moves.switch

    def open(self, copy: Copy, epoch: int, opening: Opening, outlet: Outlet) -> None:
        """The client is here and shows that it was nowhere else since the copy was made. So nobody else can get the
        session, and the client need not wait until the source says that. The other brokers hear of it afterwards: if
        the client does not learn that it is in, and tries elsewhere, they must go by what the source says."""
        session = self._take_up(copy, epoch, opening.token)
        self.switch.fabric.send((copy.source,), Fetch(opening.client, epoch, copy.epoch, held=True))
        self.expect(session)
        if session.carried.unproven:
            self.moves.return_to(session, opening)
        self.registry.attach(session, opening, outlet, present=True)

    def take_reserved(self, copy: Copy, opening: Opening, outlet: Outlet) -> None:
        """The same for a client that shows nothing: the source has said that nobody else gets the session, and is asked
        for it already. All that is under way first is on the disk."""
        for item in copy.session.queue.flying.values():
            item.safe = True
        session = self._take_up(copy, copy.asked_epoch, opening.token)
        self.expect(session)
        self.moves.return_to(session, opening)
        self.registry.attach(session, opening, outlet, present=True)

    def claim(self, copy: Copy, epoch: int, token: str) -> Session:
        """The source is away, and the client has waited long enough. The epoch is of when it came: it may have gone on
        since, unnoticed, and been let in elsewhere."""
        session = self._take_up(copy, epoch, token)
        self._go_on(session)
        return session

    def _take_up(self, copy: Copy, epoch: int, token: str = "", *, given: Given | None = None) -> Session:
        """What the client says is kept back until the source tells that all have what it said there. Whoever goes on
        with the session writes it."""
        session = self.moves.holding.enliven(copy, epoch)
        if given is None:
            self.registry.reunion.begin_with(session, copy, session.queue.names(), token)
        is_heard = given is not None and given.heard
        session.carried.unheard = frozenset() if is_heard else frozenset({(copy.epoch, copy.source)})
        session.standing.came_from = copy.source
        self.moves.speaking.arrive(session)
        self.moves.copying.neighbors.came(copy.source)
        return session

    def expect(self, session: Session) -> None:
        """The source should confirm before long. If it does not, it is away."""
        self.switch.host.after(self.moves.session_wait_s, partial(self._go_on_without, session))

    def _go_on_without(self, session: Session) -> None:
        if self.registry.sessions.get(session.client) is not session or not session.inflow.is_unconfirmed:
            return  # it has ended or moved on; or it is still only a copy, asked for before a crash
        self._go_on(session)
        if not self.moves.pass_on(session):
            self.moves.announce(session)

    def _go_on(self, session: Session) -> None:
        """The source hears of the claim when it is back, and passes on then what has not come through. Nobody waits for
        that any longer."""
        session.carried.claims = self.moves.leaving.claims(session)
        for origin, gate in session.inflow.gates.items():
            gate.through = True
            self.moves.turning.release(session, origin)
        self.switch.ledger.put_session(session)

    def on_given(self, origin: NodeId, given: Given) -> None:
        """The copy here is the session, or was rightly taken for it."""
        copy = self.moves.holding.get(given.client, origin)
        present = self.registry.sessions.get(given.client)
        if copy is None or copy.epoch != given.copy:
            self._confirm(origin, given)
        elif present is None:
            for item in copy.session.queue.flying.values():
                item.safe = True  # the question left when the copy was on the disk, and this answers it
            session = self._take_up(copy, given.epoch, given=given)
            self.moves.turning.confirm(session, way_by_copy(session, origin), given.origins)
            self.moves.arrive(session, self.moves.stop_waiting(given.client))
        else:
            self._send_round(present, copy, given)

    def _confirm(self, origin: NodeId, given: Given) -> None:
        for session in self.moves.turning.all_of(given.client):
            way = way_of(session, given.copy, origin)
            if way is None or not way.copy:
                continue
            self.resolve(session, is_given=True)
            self.registry.reunion.confirmed(session, origin)
            if given.heard:
                self.moves.speaking.all_heard(session, given.copy, origin)
            self.moves.turning.confirm(session, way, given.origins)
            if session.standing.state in OURS:
                session.standing.announced = session.standing.announced and session.standing.epoch >= given.epoch
                session.standing.epoch = max(session.standing.epoch, given.epoch)
                if not self.moves.pass_on(session):
                    self.moves.announce(session)

    def _send_round(self, present: Session, copy: Copy, given: Given) -> None:
        """The client has begun anew here while its session was asked for, which is here now too: the older one goes
        into the newer."""
        del self.registry.sessions[given.client]
        session = self._take_up(copy, given.epoch, given=given)
        self.moves.turning.confirm(session, way_by_copy(session, copy.source), given.origins)
        self.moves.leaving.transfer(session, copy.source)
        self.registry.sessions[given.client] = present
        self.registry.reunion.sent_round(present, copy.source)

    def disclaim(self, source: NodeId, nothing: Nothing) -> None:
        """The source has no session for a copy that was taken up here. If another broker has it, nobody has heard of
        this one and the client has never answered, then the client does not know that it was in here either: there is
        nothing to be kept. If it does know, what it has had here must not come again there."""
        session = self.registry.sessions.get(nothing.client)
        elsewhere = nothing.at not in ("", self.switch.name)
        if session is None or not elsewhere or session.standing.announced or way_by_copy(session, source) is None:
            pass
        elif session.standing.answered:
            self.moves.pass_on(session)
        else:
            self.take_back(session)
        self.void(source, nothing.client)

    def was_in_vain(self, session: Session, shown: At, token: str) -> bool:
        """Whether the client was let in by a copy, here or where the session comes from, and does not know it: it has
        never answered, and shows the token that it was given elsewhere."""
        if session.standing.answered:
            return False
        # It is sure of that token, so it has asked nobody since.
        is_sure = not token.startswith(UNSURE) and token != session.carried.token
        return (session.inflow.is_unconfirmed and is_sure) or is_unheard_of(session.carried.memory, shown, token)

    def take_back(self, session: Session) -> None:
        """What was taken up has never been the client's, and what is in it the source has too."""
        self.registry.let_go(session)
        self.registry.end(session)

    def dropped(self, source: NodeId, drop: Drop) -> None:
        """The copy was taken up before its source could say that it never becomes the session. That says so, whether or
        not an answer to `Fetch` follows; what nobody has heard of yet waits for the answer, which may end it."""
        for session in self.moves.turning.all_of(drop.client):
            way = way_by_copy(session, source)
            if way is not None and way.epoch <= drop.epoch and session.standing.announced:
                self.void(source, drop.client)
                return

    def void(self, source: NodeId, client: str) -> set[NodeId]:
        """What was taken up here as a copy gets nothing more from its source as such; the brokers whose publications it
        has nevertheless had, all that the source may send again."""
        found: set[NodeId] = set()
        for session in self.moves.turning.all_of(client):
            way = way_by_copy(session, source)
            if way is None or session.standing.state is State.STANDBY:
                continue
            if session.standing.state is not State.SHADOW and session.carried.memory is None:
                found = session.inflow.gates.keys() - way.origins
            self.resolve(session, is_given=False)
            self.moves.turning.confirm(session, way, ())
            if session.standing.state is not State.SHADOW:
                self.moves.announce(session)
        return found

    def give_way(self, session: Session) -> None:
        """The same where others have heard of it: it goes into any other session of the client, with nothing in it. The
        client has never heard of it. Where the source can still say that it was the session, what stays here keeps
        what was in it, and collects; else it wants nothing on its way, since the other one does."""
        session.carried.age, session.carried.strange = FIRST, True
        session.standing.in_vain = session.inflow.is_unconfirmed or _is_claimed(session)
        for key, sub in list(session.subscriptions.items()):
            if not session.standing.in_vain or sub.wanted.lasting or sub.wanted.group:
                self.registry.unsubscribe(session, key)
            else:
                self.switch.replays.end(sub)
        if session.carried.memory is not None:
            session.carried.memory.had.clear()
        waiting = (*session.queue.flying.values(), *session.queue.waiting)
        kept = [kept_of(item) for item in waiting if not item.received and not item.view]
        self.switch.empty(session)
        if session.standing.in_vain and kept:
            session.inflow.held = own(session.inflow.held)
            session.inflow.held[IN_VAIN] = [item_of(one, under_way=False) for one in kept]

    def hear(self, session: Session, way: Upstream, through: Through) -> None:
        """The source of a copy that was taken up elsewhere, and came here, has said there what it was: nothing comes
        through of that broker before it has."""
        memory = session.carried.memory
        if memory is None or through.origin != memory.source or not way.main or way.copy:
            return
        self.resolve(session, is_given=not through.void)
        if memory.original is not None and not through.void:
            self.registry.reunion.confirmed(session, memory.source)

    def resolve(self, session: Session, *, is_given: bool) -> None:
        """The source has said what became of a copy. Those after it hear that too. If one that gave way was the
        session, all that it had goes after it; if not, the session has that, and nothing more is collected here."""
        standing = session.standing
        standing.void = standing.void or not is_given
        if not standing.in_vain:
            return
        standing.in_vain = False
        for item in session.inflow.held.pop(IN_VAIN, ()):
            self.switch.ledger.delete_item(session, item)
            if is_given:
                self.switch.take(session, item)
        for key in () if is_given else list(session.subscriptions):
            self.registry.unsubscribe(session, key)


def is_unheard_of(memory: Memory | None, shown: At, token: str) -> bool:
    """Whether a client that shows this token cannot have heard of a copy that was taken up without a word of its
    source. It had shown the token that is in the copy there, and was given one of a higher epoch. This one is neither,
    so it was in elsewhere since. What has gone into the copy meanwhile it may have heard of."""
    if memory is None or not memory.shown or memory.original is None or memory.known or memory.lines:
        return False
    return shown.epoch < memory.born[0] and token.removeprefix(UNSURE) != memory.last


def _is_claimed(session: Session) -> bool:
    """Whether it was taken up out of a copy elsewhere, and the source has said nothing there yet: what that passes on
    of the source has not come through."""
    sources = {claim.source for claim in session.carried.claims}
    return any(way.main and sources & way.origins for way in session.inflow.upstreams)


def way_by_copy(session: Session, source: NodeId) -> Upstream | None:
    """The way on which a copy of it came that this broker has made and not confirmed."""
    return next((way for way in session.inflow.upstreams if way.copy and way.source == source), None)


# How a client without a token is let in out of a copy before its session is handed over: docs/broker.md, "Copies".


class Reserving:
    """Whoever holds a copy and has the client asks for the session twice: at once, that nobody else may have it
    (`Reserve`), and with `Fetch` when its disk has the copy. It lets the client in as soon as its disk has the copy and
    the source has agreed; what is left of handing over happens behind the client's back, as if it had shown its token.

    The source has the reservation on its disk before it agrees. From then on it does to nobody what would let the
    client have the session anywhere else, before it has heard from the holder: that it has taken the session, or that
    it has nothing, which after a crash may be so.
    """

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.registry = moves.registry
        self.switch = moves.switch

    # At the holder

    def ask(self, copy: Copy, epoch: int) -> None:
        """Before the copy is written, so that this need not wait for that."""
        copy.asked_epoch = epoch
        self.switch.fabric.send((copy.source,), Reserve(copy.session.client, copy.epoch), durable=False)

    def written_soon(self, copy: Copy) -> None:
        """It has just been written."""
        self.switch.store.settled(partial(self._written, copy))

    def _written(self, copy: Copy) -> None:
        copy.kept = True
        self._take_if_ready(copy)

    def on_reserved(self, origin: NodeId, reserved: Reserved) -> None:
        """It counts for the client that waits now: one that comes later asks again."""
        copy = self.moves.holding.get(reserved.client, origin)
        if copy is None or copy.session.standing.state is not State.COMMITTED:
            return
        if copy.epoch == reserved.copy and copy.asked_epoch:
            copy.reserved = True
            self._take_if_ready(copy)

    def _take_if_ready(self, copy: Copy) -> None:
        client = copy.session.client
        waiting = self.moves.waiting.get(client)
        if not (copy.kept and copy.reserved) or copy.session.standing.state is not State.COMMITTED:
            return
        if waiting is None or waiting.outlet is None or waiting.wanted_by is not None:
            return
        if waiting.source == copy.source:
            self.moves.stop_waiting(client)
            self.moves.taking.take_reserved(copy, waiting.opening, waiting.outlet)

    def renounce(self, client: str, source: NodeId) -> None:
        """The source asks for the session itself, and is told that there is none here: it relies on that."""
        copy = self.moves.holding.get(client, source)
        if copy is not None:
            copy.reserved = False

    # At the source

    def on_reserve(self, origin: NodeId, reserve: Reserve) -> None:
        """Nothing is said where it cannot be: the answer to `Fetch`, which follows, says what is."""
        session = self.registry.sessions.get(reserve.client)
        if (
            session is not None
            and session.standing.state in (State.RESTING, State.RESERVED)
            and session.standing.copied == reserve.copy
            and origin in session.standing.copies
            and session.standing.reserved_for in ("", origin)
            and reserve.client not in self.moves.waiting
        ):
            self._reserve(session, origin)
            self.switch.fabric.send((origin,), Reserved(reserve.client, reserve.copy))

    def _reserve(self, session: Session, holder: NodeId) -> None:
        session.become(Cause.RESERVED)
        session.standing.reserved_for = holder
        self.switch.ledger.put_session(session)

    def presume(self, session: Session, holder: NodeId) -> bool:
        """The client shows that this broker has let it in. If that holds a copy, its word that it has taken the copy up
        is on its way, in front of all that it answers: with it the copy is the session. To send the session after the
        client would make two sessions of one, and they keep no common order."""
        if holder not in session.standing.copies or session.standing.state not in (State.RESTING, State.RESERVED):
            return False
        if session.standing.reserved_for not in ("", holder):
            return False
        self._reserve(session, holder)
        return True

    def holder(self, session: Session) -> NodeId:
        """Who must be asked before anybody has this session; empty where nobody must."""
        holder = session.standing.reserved_for
        return holder if session.standing.state is State.RESERVED and self.switch.fabric.is_known(holder) else ""

    def recall(self, session: Session, epoch: int, to: NodeId) -> None:
        """Another broker wants it: it gets it from here, or through here, when the holder has said."""
        opening = Opening(client=session.client, clean=False, expiry_s=session.carried.expiry_s)
        waiting = self.moves.wait_for(opening, None, At(session.standing.epoch, session.standing.reserved_for))
        waiting.wanted_by = max(waiting.wanted_by or (0, ""), (epoch, to))

    def wake(self, session: Session) -> None:
        """Somebody with a newer session was to get this one before a crash, when the holder has said: who wants it and
        for how long it waits is on no disk, but where the newer one is."""
        at = self.moves.places.known.get(session.client)
        if at is not None and self.holder(session) and At(session.standing.epoch, self.switch.name) < at:
            self.recall(session, at.epoch, at.broker)

    def on_nothing(self, origin: NodeId, nothing: Nothing) -> bool:
        """Whether the holder has not taken what was reserved for it, and somebody has waited to know."""
        session = self.registry.sessions.get(nothing.client)
        if session is None or session.standing.state is not State.RESERVED or session.standing.reserved_for != origin:
            return False
        self.free(session)
        waiting = self.moves.waiting.get(nothing.client)
        if waiting is None or waiting.source != origin or self.moves.pass_on(session):
            return False  # or it goes where the client was let in since, and the client waits for that
        self.moves.go_on_with(session)
        return True

    def free(self, session: Session) -> None:
        if session.standing.state is State.RESERVED:
            session.become(Cause.FREED)
            session.standing.reserved_for = ""
            self.switch.ledger.put_session(session)

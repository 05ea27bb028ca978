"""How the publications for a session that moves are divided between its places: docs/broker.md, "A session moves"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from godwit.protocols.broker.handoff.directory import Asked, Places
from godwit.protocols.broker.handoff.reconcile import born_of, key_of
from godwit.protocols.broker.messages import Forwarded, Line, Through, Turn, Turned
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.memory import is_outdated, is_own
from godwit.protocols.broker.session.rows import item_of
from godwit.protocols.broker.session.state import Item, Session, Upstream
from godwit.protocols.host import NodeId

CLEAR_S = 0.05
"""How often it is looked whether sessions still wait for somebody."""


class Turning:
    """One place of a session after another is told apart by its epoch. What a broker A publishes for it is divided by
    A's `Turned`: each place gets what A sends after its own `Turned` and before that of a later epoch. A place passes
    on to the next all that it gets, in A's order: first what earlier places pass on to it, then its own.
    """

    def __init__(self, registry: Registry, places: Places) -> None:
        self.registry = registry
        self.switch = registry.switch
        self.fabric = registry.switch.fabric
        self.name = registry.switch.name
        self.places = places
        self.switch.on_older = self.pass_older
        self._arriving: dict[Session, None] = {}
        """Those to which something may still be passed on, or from which somebody has not turned."""
        self._asked: dict[tuple[str, int, NodeId], set[NodeId]] = {}
        """By client, epoch and source: the brokers that were asked to turn in this life."""

    @property
    def pending(self) -> int:
        """For how many ways it is remembered who was asked, or is still to be."""
        return len(self._asked) + len(self._arriving)

    def turn_all(self, session: Session, way: Upstream) -> None:
        """Ask every broker to send here what it sent to the place before; this one does it at once."""
        self._arriving[session] = None
        self._ask(session, way)
        self._turn_here(session, way)

    def _turn_here(self, session: Session, way: Upstream) -> None:
        turn = Turn(session.client, way.epoch, way.source, 0, way.chain, way.copy, way.lines)
        self.make_turn(self.name, turn, told=self.name in way.origins or bool(way.chain))

    def _ask(self, session: Session, way: Upstream) -> None:
        asked = self._asked.setdefault((session.client, way.epoch, way.source), set())
        to = sorted(one for one in way.origins - asked if self.fabric.is_known(one))
        if to:
            asked.update(to)
            self.registry.reunion.expect(session, way.epoch, to)
            interest = self.switch.restate()
            turn = Turn(session.client, way.epoch, way.source, interest, way.chain, way.copy, way.lines)
            self.fabric.send(to, turn)

    def on_turn(self, origin: NodeId, turn: Turn) -> None:
        if self.fabric.heard(origin) >= turn.interest:
            self.make_turn(origin, turn)
        else:
            self.places.wait(Asked(origin, turn))

    def make_turn(self, by: NodeId, turn: Turn, *, told: bool = True) -> None:
        """From this moment on. Nobody is told where nobody waits for it."""
        shadows = self.registry.shadows.get(turn.client, {}).values()
        inside = (one.standing.moved_to for one in shadows if not one.standing.abroad)
        passed_to = next((to for to in inside if to != by), "")
        if by != self.name and not turn.copy and self._may_have(turn.client):
            passed_to = self.name  # a copy does not ask for older ones
        turned = Turned(turn.client, turn.epoch, by if turn.copy else "", turn.lines, passed_to)
        if told:
            self.fabric.send(sorted({by, turn.source, *turn.chain} - {self.name}), turned)
        self.on_turned(self.name, self.fabric.sent, turned)

    def _may_have(self, client: str) -> bool:
        """Whether a session may yet go from here to whoever asks for older ones, who is to ask here again: one is here,
        a copy that was asked for may become one, or one may come from another site."""
        copy = self.registry.copies.get(client)
        asked_for = copy is not None and copy.session.standing.state is State.COMMITTED
        return asked_for or client in self.registry.sessions or self.registry.moves.abroad.is_awaited(client)

    def on_turned(self, origin: NodeId, number: int, turned: Turned) -> None:
        """That broker has turned, under this number of its stream."""
        if not turned.lines:
            self.registry.moves.abroad.sounded(origin, turned)
            return
        for session in self.all_of(turned.client):
            gate = session.inflow.gates.get(origin)
            begins = gate is not None and not gate.begun and self._begins(session, turned)
            ends = origin in session.standing.open_origins and _ends(session, turned)
            if gate is not None and begins:
                gate.begun, gate.number = True, number
            if ends:
                session.standing.open_origins -= {origin}
            if begins or ends:
                self.progress(session, origin)
        if turned.copy:
            self.registry.moves.copying.on_turned(origin, turned)
        for session in self.all_of(turned.client):
            if (
                self.registry.reunion.answered(session, origin, turned, number)
                and session.standing.state is not State.SHADOW
            ):
                self.go_on(session)
        if turned.client in self.registry.moves.waiting:
            self.registry.moves.answered(turned.client)

    def _begins(self, session: Session, turned: Turned) -> bool:
        if turned.copy:
            return (turned.epoch, turned.copy) == (session.standing.entered, self.name)
        return turned.epoch >= session.standing.entered and session.goes_under(turned.lines)

    def on_through(self, origin: NodeId, through: Through) -> None:
        for session in self.all_of(through.client):
            way = way_of(session, through.epoch, origin)
            if way is not None:
                self.registry.moves.taking.hear(session, way, through)
                self._come_through(session, way, through.origin)

    def _come_through(self, session: Session, way: Upstream, origin: NodeId) -> None:
        way.origins.discard(origin)
        if way.main and not way.origins and not way.copy:
            self.registry.moves.taking.resolve(session, is_given=True)  # nobody can say otherwise any more
        gate = session.inflow.gates.get(origin)
        if gate is not None and way.main:
            gate.through = True
            if origin != self.name and not self.fabric.is_known(origin):
                gate.begun = True  # it lost its disk, and nobody here could ask it to turn: all it sends is for here
            self.release(session, origin)
        self.progress(session, origin)

    def release(self, session: Session, origin: NodeId) -> None:
        """What was kept back of this origin is the session's now."""
        for item in session.inflow.held.pop(origin, ()):
            self.switch.ledger.delete_item(session, item)
            self.switch.take(session, item, origin)

    def progress(self, session: Session, origin: NodeId) -> None:
        """One origin has come further: keep that, and what follows from it."""
        self._leave_behind(session)
        if session.carried.memory is not None and session.standing.state not in (State.SHADOW, State.STANDBY):
            self.go_on(session)
        if session.standing.state is State.SHADOW and self._is_through(session, origin):
            session.standing.owed -= {origin}
            standing = session.standing
            through = Through(session.client, standing.next_epoch, origin, standing.void)
            self.fabric.send((standing.moved_to,), through)
        if session.standing.state is State.SHADOW:
            self.end_if_done(session)
        if session.standing.state is not State.ENDED:
            self.switch.ledger.put_session(session)
        if session.outlet is None and not session.inflow.upstreams and not session.inflow.gates:
            self.registry.moves.copying.rested(session)
            self.registry.moves.abroad.settled(session)

    def has_come(self, session: Session, source: NodeId) -> None:
        """All that this source had to pass on; others may still have something."""
        for way in session.inflow.upstreams:
            if way.source == source:
                way.origins.clear()
        self._leave_behind(session)

    def _leave_behind(self, session: Session) -> None:
        """Gates that are passed and ways that are done with. A copy keeps both, to tell whom it has heard of."""
        inflow, passed = session.inflow, list[NodeId]()
        if not inflow.is_unconfirmed:
            passed = [origin for origin, gate in inflow.gates.items() if gate.begun and gate.through]
        for origin in passed:
            del inflow.gates[origin]
        for way in [way for way in session.inflow.upstreams if not way.origins and not way.copy]:
            session.inflow.upstreams = tuple(one for one in session.inflow.upstreams if one is not way)
            self._asked.pop((session.client, way.epoch, way.source), None)
        if not session.inflow.upstreams:
            session.carried.claims = ()
        if not _is_arriving(session):
            self._arriving.pop(session, None)
        if passed:
            session.standing.crossings = self.fabric.crossings
            self.switch.audiences.changed()

    def end_if_done(self, shadow: Session) -> None:
        """A shadow that owes nothing to anybody."""
        if not shadow.standing.owed and not shadow.carried.unheard and shadow.standing.state is not State.ENDED:
            self.registry.end(shadow)

    def _is_through(self, shadow: Session, origin: NodeId) -> bool:
        """The source of a copy comes last of all: there is more to hear of it until it has confirmed the copy."""
        return (
            origin in shadow.standing.owed
            and origin not in shadow.standing.open_origins
            and not any(origin in way.origins or (way.copy and origin == way.source) for way in shadow.inflow.upstreams)
        )

    def on_forwarded(self, origin: NodeId, forwarded: Forwarded) -> None:
        for session in self.all_of(forwarded.client):
            way, item = way_of(session, forwarded.epoch, origin), item_of(forwarded.kept, under_way=False)
            if way is not None and forwarded.born is not None:
                self.pass_older(session, forwarded.born, item)
            elif way is not None:
                self.pass_to(session, way, item)

    def pass_to(self, session: Session, way: Upstream, item: Item) -> None:
        """What came on this way."""
        if way.main and (_comes_otherwise(session, way, item) or not self._is_news(session, item)):
            self.switch.counts.late_duplicates += 1
        elif way.main:
            self.switch.take(session, item)
        elif (way.forsaken and item.group is None) or (item.stamp is not None and item.stamp[0] in way.had):
            self.switch.counts.late_duplicates += 1
        else:
            self.pass_older(session, way.born, item)

    def _is_news(self, session: Session, item: Item) -> bool:
        """A shadow leaves it to whoever it passes it on to."""
        is_here = session.standing.state is not State.SHADOW
        return self._is_first(session, item) and (not is_here or self.switch.replays.admits(session, item))

    def _is_first(self, session: Session, item: Item) -> bool:
        """Whether no other bridge has brought it before; one that brings nothing says nothing about that."""
        passage, is_here = item.publication.passage, session.standing.state is not State.SHADOW
        return passage is None or not is_here or session.passes(passage)

    def pass_older(self, session: Session, born: Line, item: Item) -> None:
        """What another session kept; unless a newer than that may have had it, and is still to come, or the client has
        started clean since."""
        reunion = self.registry.reunion
        if is_outdated(session.carried, born):
            # What was dealt to it as a member of a group is for another one.
            if item.group is None or not self.switch.dealing.hand_on(item.publication, item.group):
                self.switch.counts.drop("ended")
        elif self.switch.replays.brings(session, born, item):
            self.switch.counts.late_duplicates += 1
        elif session.standing.state is State.SHADOW and session.carried.memory is not None:
            self.switch.forward(session, item, born)
        elif reunion.must_wait(session, item, born):
            session.inflow.hold(key_of(born), item)
            if session.durable:
                self.switch.ledger.put_item(session, item, key_of(born))
        elif self._is_first(session, item):
            self.switch.take(session, item)
        else:
            self.switch.counts.late_duplicates += 1

    def go_on(self, session: Session) -> None:
        """Somebody for whom what older sessions kept had to wait has come, or does not come any more."""
        self.switch.release_brought(session)
        kept = [(born, key) for key in session.inflow.held if (born := born_of(key)) is not None]
        for born, key in sorted(kept, reverse=True):
            items, free = session.inflow.held.pop(key), []
            for item in items:
                if session.standing.state is State.SHADOW or not self.registry.reunion.must_wait(session, item, born):
                    free.append(item)
                else:
                    session.inflow.hold(key, item)
            for item in free:
                self.switch.ledger.delete_item(session, item)
                self.pass_older(session, born, item)
        self.registry.reunion.settle(session)
        if kept and not session.inflow.held:
            self.registry.moves.copying.rested(session)

    def loaded(self, session: Session) -> None:
        """It was here before a crash; what it waits for goes on."""
        if _is_arriving(session):
            self._arriving[session] = None

    def met(self, session: Session, brokers: Iterable[NodeId]) -> None:
        """A copy, whose source may have heard of these brokers or not: from now on they are asked like the others."""
        way = next((way for way in session.inflow.upstreams if way.copy), None)
        strangers = sorted(set(brokers) - session.inflow.gates.keys())
        if way is None or not strangers:
            return
        for name in strangers:
            session.inflow.close_gate(name)
        way.origins.update(strangers)
        self._arriving[session] = None
        self.switch.ledger.put_session(session)

    def confirm(self, session: Session, way: Upstream | None, origins: Iterable[NodeId]) -> None:
        """The source of a copy has said that the session is here, and of whom it still passes on."""
        if way is None:
            return
        way.copy, way.origins = False, set(origins)
        for origin in sorted(way.origins - session.inflow.gates.keys()):
            session.inflow.close_gate(origin)
        for origin, gate in list(session.inflow.gates.items()):
            if origin not in way.origins and not gate.through:
                gate.through = True
                self.release(session, origin)
        if way.origins:
            self._arriving[session] = None
            self._ask(session, way)
        if self.name in way.origins and not session.inflow.gates[self.name].begun:
            self._turn_here(session, way)  # it has something to send since the copy was made
        for origin in sorted(session.standing.owed) or [way.source]:
            self.progress(session, origin)

    def when_clear(self, owner: NodeId, heir: NodeId, then: Callable[[], None]) -> None:
        """Call `then` when no session here waits any longer for this broker that waits for it now, and the heir has
        turned to all that remember. Whoever begins to wait for it from now on waits for the heir too, or its place
        before does not agree yet."""
        registry = self.registry
        remember = [one for one in registry.sessions.values() if one.carried.memory is not None]
        self._look_again(owner, heir, list(dict.fromkeys((*self._moving(), *remember))), then)

    def _look_again(self, owner: NodeId, heir: NodeId, waiting: list[Session], then: Callable[[], None]) -> None:
        waiting = [one for one in waiting if one.standing.state is not State.ENDED and self._waits(one, owner, heir)]
        if waiting:
            self.switch.host.after(CLEAR_S, partial(self._look_again, owner, heir, waiting, then))
        else:
            then()

    def _waits(self, session: Session, owner: NodeId, heir: NodeId) -> bool:
        """For the owner and not for the heir; or for the heir to turn to it under a mark, where it remembers. What that
        matches before, no older session need have."""
        return _depends(session, owner, heir) or (
            session.copy is None and self.registry.reunion.is_unturned(session, heir)
        )

    def forget(self, session: Session) -> None:
        """It is here no longer, and nobody is to be asked for it."""
        self._arriving.pop(session, None)
        for way in session.inflow.upstreams:
            self._asked.pop((session.client, way.epoch, way.source), None)

    def interests_changed(self) -> None:
        """Somebody's interest may be the one that a turn waits for, or a broker may be there that had to be asked."""
        for key, asked in list(self.places.turns.items()):
            if self.fabric.heard(asked.by) >= asked.turn.interest:
                self.places.done(key)
                self.make_turn(asked.by, asked.turn)
        for session in list(self._arriving):
            if session.standing.state is State.ENDED:
                del self._arriving[session]
            for way in () if session.standing.state is State.ENDED else list(session.inflow.upstreams):
                self._ask(session, way)

    def given_up(self, broker: NodeId) -> None:
        """It counts as turned, and what it would have passed on as passed on."""
        for session in self._moving():
            if session.standing.moved_to == broker:
                self.registry.end(session)
                continue
            ways = [way for way in session.inflow.upstreams if way.source == broker]
            for way in ways:
                way.copy = False
                for origin in sorted(way.origins):
                    self._come_through(session, way, origin)
            gate = session.inflow.gates.get(broker)
            if gate is not None:
                gate.begun = True
            session.standing.open_origins -= {broker}
            if ways or gate is not None or broker in session.standing.owed:
                self.progress(session, broker)

    def reborn(self, broker: NodeId) -> None:
        """All that it would have passed on is lost, and so is what went there and was confirmed. But it can turn: it is
        asked again by whoever has not heard that all is through."""
        for session in self._moving():
            standing = session.standing
            if standing.moved_to == broker and self.has_taken(session):
                self.registry.end(session)
                continue
            for way in [way for way in session.inflow.upstreams if way.source == broker]:
                way.copy = False
                for origin in sorted(way.origins):
                    self._come_through(session, way, origin)
            self._turn_again(session, broker)

    def has_taken(self, shadow: Session) -> bool:
        """Whether the session was on the lost disk. Else it is still under way to there, and lost nothing."""
        standing = shadow.standing
        return not standing.handed or self.fabric.is_confirmed(standing.moved_to, standing.handed)

    def _turn_again(self, session: Session, broker: NodeId) -> None:
        gate, ways = session.inflow.gates.get(broker), session.inflow.upstreams
        again = [way for way in ways if broker in way.origins]
        if gate is not None:
            # It is asked to turn to this session on the way by which that came; on others from older ones.
            gate.begun, gate.number = not any(way.main for way in again), 0
        for way in again:
            self._asked.get((session.client, way.epoch, way.source), set()).discard(broker)
            self._ask(session, way)
        if not again:
            session.standing.open_origins -= {broker}
            self.progress(session, broker)

    def _moving(self) -> list[Session]:
        registry = self.registry
        present = [*registry.sessions.values(), *(copy.session for copy in registry.copies.values())]
        shadows = [one for some in registry.shadows.values() for one in some.values()]
        return [one for one in present if one.inflow.upstreams or one.inflow.gates] + shadows

    def all_of(self, client: str) -> list[Session]:
        found = list(self.registry.shadows.get(client, {}).values())
        live, copy = self.registry.sessions.get(client), self.registry.copies.get(client)
        if live is not None:
            found.append(live)
        if copy is not None:
            found.append(copy.session)
        return found


def _depends(session: Session, owner: NodeId, heir: NodeId) -> bool:
    """Whether it matters to the session, or to what stays of it, when the owner turns; and not when the heir does. A
    copy depends on its source instead, which passes on what the copy does not know of."""
    inflow, standing = session.inflow, session.standing
    if session.copy is not None or standing.state is State.STANDBY:
        return False
    gate = inflow.gates.get(owner)
    waits = gate is not None and not (gate.begun and gate.through) and heir not in inflow.gates
    ways = any(owner in way.origins and heir not in way.origins for way in inflow.upstreams)
    opens = owner in standing.open_origins and heir not in standing.open_origins
    return waits or ways or opens or inflow.is_unconfirmed


def _ends(shadow: Session, turned: Turned) -> bool:
    """Whether what this broker sends from now on is for a later place than the shadow's."""
    if turned.copy:
        return (turned.epoch, turned.copy) == (shadow.standing.next_epoch, shadow.standing.moved_to)
    return turned.epoch >= shadow.standing.next_epoch and (shadow.standing.left_under or shadow.line) in turned.lines


def _comes_otherwise(session: Session, way: Upstream, item: Item) -> bool:
    """Whether its broker had turned to this place before: then it is sent here too, and whoever passes it on had not
    heard of the turn, as the source of a copy that was taken up without its word. Or whether a copy got it which has
    yielded here to its original: that has had it, or passes it on itself."""
    if item.stamp is None or item.group is not None:
        return False
    if way.forsaken and not is_own(session, item.stamp, item.publication):
        return True
    origin, number = item.stamp
    gate = session.inflow.gates.get(origin)
    return gate is not None and 0 < gate.number < number


def _is_arriving(session: Session) -> bool:
    return any(way.origins for way in session.inflow.upstreams) or any(
        not (gate.begun and gate.through) for gate in session.inflow.gates.values()
    )


def way_of(session: Session, epoch: int, source: NodeId) -> Upstream | None:
    return next((way for way in session.inflow.upstreams if (way.epoch, way.source) == (epoch, source)), None)

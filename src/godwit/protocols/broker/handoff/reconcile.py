"""Two sessions of one client become one, and what both were owed is taken once: docs/broker.md, "If O is out of reach".

A session that begins while an older one is out of reach knows what it has by itself (`memory`). When it subscribes,
every broker is asked to turn to it, under a mark instead of an epoch: what a broker sends after its `Turned` is this
session's, what it sent before is the old one's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from godwit.protocols.broker.api import UNSURE, Subscription
from godwit.protocols.broker.dispatch import Switch
from godwit.protocols.broker.fabric.base import ANYTHING
from godwit.protocols.broker.handoff.directory import At
from godwit.protocols.broker.messages import FIRST, Carried, Line, Mark, Memory, Name, Turn, Turned
from godwit.protocols.broker.session.lifecycle import OURS, State
from godwit.protocols.broker.session.memory import born_of_session, had_without, is_own, is_same, lines_of, note
from godwit.protocols.broker.session.parse import filters_of
from godwit.protocols.broker.session.state import Copy, Item, Session, Sub
from godwit.protocols.host import NodeId

ASKED_AGAIN_S = 1.0
"""How long a broker from which an older session has left is given to hand it over."""


def key_of(born: Line) -> str:
    """Under which is kept back what that session had; no broker can be named so."""
    return f"/born {born[0]} {born[1]}"


def born_of(key: str) -> Line | None:
    if not key.startswith("/born "):
        return None
    epoch, _, broker = key[6:].partition(" ")
    return int(epoch), broker


class Reunion:
    """Whoever has answered a mark that was asked for behind the session's `Place` has given away what it had of older
    sessions: when all have, and all that they passed on is here, nothing need be remembered any longer."""

    def __init__(self, switch: Switch) -> None:
        self.switch = switch
        self.fabric = switch.fabric
        self.is_settled: Callable[[str], bool] = lambda client: True
        """Whether whoever might know of an older place has been heard."""
        self.are_missing: Callable[[Session], bool] = lambda session: False
        """Whether some session that it waits for is known to have been somewhere, and has not come."""

    def begin(self, session: Session, source: NodeId, since: int, unmet: At | None = None) -> None:
        """It is new, and the one that `source` had since then may turn up; or the one in which its client was last, at
        a broker that is asked as soon as it is met. It is to be announced next."""
        memory = session.carried.memory = self._memory(session, source, since)
        if unmet is not None:
            memory.unmet.add(unmet.broker)
            memory.awaited[unmet.broker] = unmet.epoch
        session.queue.count_from(session.standing.epoch)
        self._write(session)

    def begin_again(self, session: Session, unmet: Iterable[NodeId]) -> None:
        """From now on it remembers what it has: another session of the client may turn up of which nobody has heard
        here. It is as old as its epoch, of which the others are to be told next."""
        before = session.line
        memory = self.remember(session)
        memory.united[session.carried.age] = ""  # its client is let in here now, with a token that no copy has
        memory.born = session.carried.age = (session.standing.epoch, self.switch.name)
        memory.continued.add(before)
        memory.lines.add(before)
        session.queue.count_from(session.standing.epoch)
        for broker in self.fabric.sources(ANYTHING):
            self._doubt(memory, broker)
        memory.unmet.update(unmet)
        self._write(session)

    def remember(self, session: Session) -> Memory:
        """From now on it knows what it has, and is as old as it was. To be announced next, so that all are asked."""
        carried, before = session.carried, session.line
        if carried.memory is None:
            carried.passages = dict.fromkeys(self.switch.had(session))
            carried.memory = self._memory(session, "", 0)
            carried.memory.born = carried.age
            carried.memory.continued.add(before)
            carried.memory.lines.add(before)
            self.claim_all(session)
        note(carried.memory, session.queue.names())
        return carried.memory

    def claim_all(self, session: Session) -> None:
        """Whatever is sent to it is its own: everybody has turned to it before."""
        if session.carried.memory is not None:
            origins = (self.switch.name, *self.fabric.sources(ANYTHING))
            session.carried.memory.firsts = {origin: dict.fromkeys(_keys(session), 0) for origin in origins}

    def begin_with(self, session: Session, copy: Copy, names: dict[Name, None], token: str) -> None:
        """It is taken for the session, since its client shows this token or since nobody else can have it, and its
        source has not said yet that it is. Until then it is one of its own: brokers that turn to it do not turn away
        from what it is a copy of. Whoever takes it up writes it.

        Of brokers whose catch-up has come through, all that the source kept is in it or comes to it."""
        carried, before = session.carried, session.carried.memory
        memory = self._memory(session, copy.source, copy.epoch)
        memory.continued = {FIRST}  # brokers have turned to the copy under this
        memory.original, memory.last = carried.age, carried.last
        memory.shown = bool(token) and token.removeprefix(UNSURE) == memory.last
        carried.memory, carried.age = memory, memory.born
        keys = _keys(session)
        memory.marks[copy.epoch] = Mark(keys, announced=False)
        for origin, gate in session.inflow.gates.items():
            if gate.begun:
                memory.firsts[origin] = dict.fromkeys(keys, 0 if gate.through else gate.number)
        memory.had = names
        if before is not None:
            memory.continued = lines_of(before)  # or under these
            memory.stays, memory.had, memory.united = True, before.had, before.united
            memory.awaited.update(before.awaited)
            for origin, firsts in before.firsts.items():
                memory.firsts.setdefault(origin, {}).update(firsts)

    def confirmed(self, session: Session, source: NodeId) -> None:
        """The copy that this source had made is the session, and nobody else has an older one."""
        memory = session.carried.memory
        if memory is None or memory.source != source or memory.original is None:
            return
        if memory.stays or _keeps_back(session):
            # Somebody else may have a newer one, or an older one is on its way into this, or has been kept back.
            memory.lines |= memory.continued
            memory.original, memory.stays = None, False
        else:
            session.carried.age = memory.original
            self._forget(session)

    def _memory(self, session: Session, source: NodeId, since: int) -> Memory:
        # Marks are far below every epoch, and none is used twice.
        mark = int(self.switch.clock() * 100)
        awaited = {source: since} if source else {}
        session.carried.hasty = True  # nobody waits for what the client said in an older one
        return Memory((session.standing.epoch, self.switch.name), mark, source, since, awaited=awaited)

    def subscribed(self, session: Session, wanted: Subscription, old: Sub | None) -> bool:
        """To be called before it takes the place of the old one; whether `ask` must follow after that."""
        if session.carried.memory is None or (old is not None and is_same(old.wanted, wanted)):
            return False
        if old is not None:
            self.unsubscribed(session, old.wanted)
        return not wanted.group and not wanted.lasting

    def unsubscribed(self, session: Session, wanted: Subscription) -> None:
        """Answers that are still to come are not for what takes its place."""
        memory = session.carried.memory
        if memory is not None:
            session.standing.joined -= {wanted.key}
            for known in memory.firsts.values():
                known.pop(wanted.key, None)
            for mark in memory.marks.values():
                mark.keys.discard(wanted.key)
            self._write(session)

    def yielded(self, session: Session, granted: Iterable[Subscription], origins: Iterable[NodeId]) -> None:
        """To its original, which gets the same by these, and passes on what these brokers send until they have turned
        from it. None of that is this session's by itself. To be announced next, so that all are asked."""
        memory, inflow = session.carried.memory, session.inflow
        for wanted in granted:
            sub = session.subscriptions.get(wanted.key)
            if memory is None or sub is None or not is_same(sub.wanted, wanted):
                continue
            for origin in origins:
                memory.firsts.get(origin, {}).pop(wanted.key, None)
            for mark in memory.marks.values():
                mark.keys.discard(wanted.key)
        for way in inflow.upstreams:
            way.forsaken = way.forsaken or way.main
        for origin in sorted(inflow.held.keys() & inflow.gates.keys()):
            for item in inflow.held.pop(origin):
                if item.group is not None or is_own(session, item.stamp, item.publication):
                    inflow.hold(origin, item)
                else:
                    self.switch.ledger.delete_item(session, item)
                    self.switch.counts.late_duplicates += 1

    def ask(self, session: Session, to: Iterable[NodeId], keys: Iterable[str] = ()) -> None:
        """Ask these brokers to turn to these subscriptions, and whether they have older sessions."""
        memory, switch = session.carried.memory, self.switch
        if memory is not None:
            memory.mark += 1
            to = sorted(to)
            self.expect(session, memory.mark, to, keys, announced=session.standing.announced)
            switch.fabric.send(to, Turn(session.client, memory.mark, switch.name, switch.restate()))

    def expect(
        self,
        session: Session,
        mark: int,
        to: Iterable[NodeId],
        keys: Iterable[str] | None = None,
        *,
        announced: bool = False,
    ) -> None:
        """These brokers are asked, under this mark or epoch, to turn to these subscriptions, or to all. This one does
        it at once. Only a mark is asked for once, so that its answer surely stands behind what was announced before."""
        memory = session.carried.memory
        if memory is None:
            return
        asked = _keys(session) if keys is None else _keys(session).intersection(keys)
        before = memory.marks.get(mark)
        memory.marks[mark] = Mark(asked, announced, {*to, *(before.to if before is not None else ())})
        memory.unmet.difference_update(to)
        own = memory.firsts.setdefault(self.switch.name, {})
        for key in asked:
            own.setdefault(key, self.fabric.sent)
        self._write(session)

    def answered(self, session: Session, origin: NodeId, turned: Turned, number: int) -> bool:
        """That broker has turned, under this number of its stream; whether that was asked for."""
        memory, mark = session.carried.memory, turned.epoch
        asked = memory.marks.get(mark) if memory is not None else None
        if memory is None or asked is None or turned.copy not in ("", self.switch.name):
            return False
        asked.to.discard(origin)
        known = memory.firsts.setdefault(origin, {})
        for key in asked.keys:
            known.setdefault(key, number)
        if asked.announced and mark >= memory.counts_from.get(origin, 0):
            self._believe(session, memory, origin, turned.passed_to)
        self._write(session)
        return True

    def _believe(self, session: Session, memory: Memory, origin: NodeId, passed_to: NodeId) -> None:
        """It has no older session, unless one is on its way from there to another broker. Then it is asked again until
        that has arrived, and after it the other one, whose answer stands behind all that it sent after this session."""
        before = memory.passed.pop(origin, "")
        if passed_to and self.fabric.is_known(passed_to):
            memory.passed[origin] = passed_to
            self._doubt(memory, origin)
            self.switch.host.after(ASKED_AGAIN_S, partial(self._ask_again, session, origin))
        else:
            memory.answered.add(origin)
        if before not in ("", passed_to, self.switch.name) and self.fabric.is_known(before):
            if origin in memory.awaited:
                memory.awaited[before] = max(memory.awaited[origin], memory.awaited.get(before, 0))
            self._doubt(memory, before)
            self.ask(session, (before,))

    def redirect(self, session: Session, shadows: Iterable[Session]) -> None:
        """It waits for one that was at this broker, where it is itself now, and that has gone on: for where to. To be
        announced next, so that all are asked; this broker too, should the session move on before the other has come."""
        memory, here = session.carried.memory, self.switch.name
        if memory is None or here not in memory.awaited:
            return
        memory.answered.discard(here)
        since = memory.awaited[here]
        for shadow in shadows:
            to, beyond = shadow.standing.moved_to, shadow.standing.next_epoch
            if since < beyond and self.fabric.is_known(to):
                memory.awaited[to] = max(since, memory.awaited.get(to, 0))
                self._doubt(memory, to)

    def _doubt(self, memory: Memory, broker: NodeId) -> None:
        memory.answered.discard(broker)
        memory.counts_from[broker] = memory.mark + 1

    def sent_round(self, session: Session, broker: NodeId) -> None:
        """An older session has gone from here to this broker, and comes from there into this one. The broker's answer
        to what it is asked now stands behind it."""
        memory = session.carried.memory
        if memory is not None:
            self._doubt(memory, broker)
            self.ask(session, (broker,))

    def _ask_again(self, session: Session, broker: NodeId) -> None:
        memory = session.carried.memory
        if memory is None or broker not in memory.passed or session.standing.state not in OURS:
            return
        if self.fabric.is_known(broker):
            self.ask(session, (broker,))

    def loaded(self, session: Session) -> None:
        """It was here before a crash: whoever had to be asked again is."""
        memory = session.carried.memory
        for broker in memory.passed if memory is not None else ():
            self.switch.host.after(ASKED_AGAIN_S, partial(self._ask_again, session, broker))

    def reborn(self, session: Session, broker: NodeId) -> None:
        """Its stream begins anew, from a new disk: what was known by numbers of the old one says nothing any more. All
        that comes from there now is this session's."""
        memory = session.carried.memory
        if memory is None:
            return
        memory.firsts[broker] = dict.fromkeys(_keys(session), 0)
        memory.passed.pop(broker, None)
        for mark in memory.marks.values():
            mark.to.discard(broker)  # what the old disk was asked it cannot answer any more
        self._write(session)

    def settle(self, session: Session) -> None:
        """Forget, where no older session can turn up any more."""
        memory, others = session.carried.memory, self.fabric.sources(ANYTHING)
        waits = session.inflow.upstreams or _keeps_back(session)
        if memory is None or waits or not others <= memory.answered or not self.is_settled(session.client):
            return
        if session.standing.state is State.SHADOW:
            return  # where it went it is known by the line that it left under
        if memory.unmet or any(others & mark.to for mark in memory.marks.values()):
            return
        # Of what is under way from a broker that has not answered for a subscription, an older one has had a part.
        keys, sources = _keys(session), self.fabric.sources(filters_of(session.subscriptions.values()))
        if not all(keys <= memory.firsts.get(broker, {}).keys() for broker in sources):
            return
        if others and self.are_missing(session):
            # Who had it has given it away, perhaps to somebody who had answered before: that one hands it on by now.
            memory.awaited.clear()
            for broker in others:
                self._doubt(memory, broker)
            self.ask(session, others)
        else:
            self._forget(session)
            self.switch.audiences.changed()
            self._write(session)

    def _forget(self, session: Session) -> None:
        """Nothing need be remembered any longer. What it has asked of the past it has asked as the session that it is
        known as from now on: what it keeps is not taken for an older one's."""
        session.carried.memory, session.standing.crossings = None, self.fabric.crossings
        session.standing.joined = frozenset()
        for replay in session.carried.replays.values():
            replay.born = born_of_session(session.carried)

    def ask_sources(self, session: Session) -> None:
        """Whoever may send something now and was not asked: in a ring that changes with the cells."""
        memory = session.carried.memory
        if memory is None or session.standing.state not in OURS:
            return
        for broker in sorted(self.fabric.sources(filters_of(session.subscriptions.values()))):
            asked = [mark.keys for mark in memory.marks.values() if broker in mark.to]
            missing = _keys(session).difference(memory.firsts.get(broker, {}), *asked)
            if missing:
                self.ask(session, (broker,), missing)

    def is_unturned(self, session: Session, broker: NodeId) -> bool:
        """Whether something that the session wants may come from this broker before that has turned to it under a mark.
        What stays of it takes the same as it did."""
        memory, shadow = session.carried.memory, session.standing.state is State.SHADOW
        if memory is None or broker == self.switch.name or (shadow and broker not in session.standing.open_origins):
            return False
        if _keys(session) <= memory.firsts.get(broker, {}).keys():
            return False
        return broker in self.fabric.sources(filters_of(session.subscriptions.values()))

    def must_wait(self, session: Session, item: Item, born: Line) -> bool:
        """Whether a newer session than the one that began at this epoch may have had what that kept. The newest is
        waited for first: the one for which this session was too hasty, the one for which that was, and so on, and all
        of them; then those that pass on to it."""
        memory = session.carried.memory
        if memory is None:
            return False
        awaited = {one for one in memory.awaited if one in memory.unmet or self.fabric.is_known(one)}
        if session.standing.joined and item.stamp is not None and self.fabric.is_known(item.stamp[0]):
            awaited.add(item.stamp[0])  # what has come from there by itself another session there may have had
        if awaited - memory.answered:
            return True
        if item.stamp is not None:
            awaited.add(item.stamp[0])
        return any(awaited & way.origins if way.main else way.born > born for way in session.inflow.upstreams)

    def carried(self, session: Session) -> Carried:
        """What goes with the session to another broker, where all are asked anew."""
        passages = dict.fromkeys(self.switch.had(session))
        return msgspec.structs.replace(session.carried, memory=self._remembered(session), passages=passages)

    def _remembered(self, session: Session) -> Memory | None:
        memory = session.carried.memory
        if memory is None:
            return None
        had = had_without(memory, session.queue.names())
        known = memory.known or session.standing.answered
        return msgspec.structs.replace(
            memory, had=had, marks={}, passed={}, counts_from={}, known=known, continued=set()
        )

    def _write(self, session: Session) -> None:
        self.switch.ledger.put_session(session)


def _keeps_back(session: Session) -> bool:
    """Whether something that an older session kept waits for somebody who may have had it."""
    return any(born_of(key) is not None for key in session.inflow.held)


def _keys(session: Session) -> set[str]:
    """Members of a group get their share only, whoever has turned to them; what lasts asks nobody else."""
    return {key for key, sub in session.subscriptions.items() if not sub.wanted.group and not sub.wanted.lasting}

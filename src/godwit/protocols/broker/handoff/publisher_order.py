"""How what a client says keeps its order when the client moves: docs/broker.md, "A publisher moves"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from godwit.protocols.broker.messages import Heard, Said
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.session.lifecycle import OURS, State
from godwit.protocols.broker.session.state import Session
from godwit.protocols.host import NodeId

Offered = Sequence[tuple[Publication, int]]
Unheard = frozenset[tuple[int, NodeId]]
"""As in `Carried`. In a shadow also its own broker, by the number of each question behind what is kept there."""

KEPT_BACK_MAX = 10_000
"""So many publications of one client may wait; when there are more, its order is given up."""
HOPS_MAX = 16


class Speaking:
    """Keeps back what a client says here until all brokers have what it said elsewhere, or until `wait_s` is over.

    Nothing that is kept back is acknowledged, so it needs no disk: a client whose connection ends says it again.
    `publish(session, offered)` is called with what was kept back.
    """

    def __init__(self, registry: Registry, wait_s: float, publish: Callable[[Session, Offered], None]) -> None:
        self.registry = registry
        self.switch = registry.switch
        self.wait_s = wait_s
        self.publish = publish

    def leave(self, session: Session, to: NodeId, epoch: int) -> tuple[tuple[tuple[int, NodeId], ...], Unheard]:
        """The client goes on at another broker: whoever may still get something that it said here tells that one when
        it has all; these, and those whom this broker still waits for. And what its shadow here waits for, which tells
        that one too."""
        hearers, kept = self._hearers(session, to), self._kept(session)
        self.switch.fabric.send(sorted(hearers), Said(session.client, epoch, to))
        if kept:
            hearers.add(self.switch.name)
        return tuple(sorted(session.carried.unheard.union((epoch, hearer) for hearer in hearers))), kept

    def leave_copy(self, session: Session, to: NodeId, copied: int) -> Unheard:
        """The same where the session is not sent: they tell this broker, and this one tells the other when all have.
        So it does not matter where the client is by then, nor whom it has let in before it could know of them."""
        hearers = self._hearers(session, to)
        self.switch.fabric.send(sorted(hearers), Said(session.client, copied, self.switch.name))
        return session.carried.unheard.union(((copied, hearer) for hearer in hearers), self._kept(session))

    def _hearers(self, session: Session, to: NodeId) -> set[NodeId]:
        said_to = self.switch.said_to.pop(session.client, set())
        return {one for one in said_to if one != to and self.switch.fabric.is_known(one)}

    def _kept(self, session: Session) -> Unheard:
        """Questions behind what it said here and was sent to nobody yet: none of the others can tell of that."""
        return frozenset((number, self.switch.name) for number in self.switch.follow(session.client))

    def tell_if_heard(self, shadow: Session) -> None:
        standing = shadow.standing
        if not shadow.carried.unheard and standing.state is State.SHADOW:
            self.switch.fabric.send((standing.moved_to,), Heard(shadow.client, standing.next_epoch, self.switch.name))

    def heard_for(self, shadow: Session, heard: set[tuple[int, NodeId]]) -> bool:
        """Whether a shadow has waited for this."""
        if not shadow.carried.unheard & heard:
            return False
        shadow.carried.unheard -= heard
        self.switch.ledger.put_session(shadow)
        self.tell_if_heard(shadow)
        return True

    def arrive(self, session: Session) -> None:
        """It is here now, or again after a crash."""
        if session.carried.unheard:
            self.switch.host.after(self.wait_s, partial(self._give_up, session, set(session.carried.unheard)))

    def on_said(self, origin: NodeId, said: Said) -> None:
        """It came behind all that the client said there."""
        if said.to != self.switch.name:
            self.switch.fabric.send((said.to,), Heard(said.client, said.epoch, self.switch.name))

    def on_heard(self, heard: Heard, session: Session | None, elsewhere: NodeId | None) -> None:
        """For the session, wherever it is: it may have moved on, or this may have come before it."""
        if session is not None:
            self._forget(session, {(heard.epoch, heard.broker)})
        elif elsewhere is not None and self.switch.fabric.is_known(elsewhere) and heard.hops < HOPS_MAX:
            self.switch.fabric.send((elsewhere,), msgspec.structs.replace(heard, hops=heard.hops + 1))

    def all_heard(self, session: Session, epoch: int, broker: NodeId) -> None:
        """Everybody has what the client said at the source of its copy: here, or wherever the session is by now."""
        if session.standing.state in OURS:
            self._release(session, {(epoch, broker)})
        else:
            self.registry.moves.on_heard(Heard(session.client, epoch, broker))

    def given_up(self, session: Session, broker: NodeId) -> None:
        self._forget(session, {one for one in session.carried.unheard if one[1] == broker})

    def keep_back(self, session: Session, offered: Offered) -> None:
        session.kept_back += tuple(offered)
        if len(session.kept_back) > KEPT_BACK_MAX:
            self._give_up(session, set(session.carried.unheard))

    def _give_up(self, session: Session, awaited: set[tuple[int, NodeId]]) -> None:
        missing = awaited & session.carried.unheard
        if missing and session.standing.state in OURS:
            self.switch.counts.overtaken += 1
            session.carried.hasty = True
            self._forget(session, missing)

    def _forget(self, session: Session, heard: set[tuple[int, NodeId]]) -> None:
        if session.carried.unheard & heard:
            self.switch.ledger.put_session(session)
            self._release(session, heard)

    def _release(self, session: Session, heard: set[tuple[int, NodeId]]) -> None:
        """These have all; whoever says so writes the session."""
        session.carried.unheard -= heard
        if not session.carried.unheard:
            offered, session.kept_back = session.kept_back, ()
            if offered:
                self.publish(session, offered)
            if session.outlet is None:
                self.registry.moves.copying.rested(session)

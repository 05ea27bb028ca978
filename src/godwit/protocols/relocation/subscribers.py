"""Subscribers that move (spec 2.11.4, 2.11.6, 2.11.7).

The destination subscribes as anybody would, and sends a marker behind that on the same links, hop by hop to the source.
Links keep their order: whatever was routed before the switch is at the source when the marker is, and whatever is
routed later goes to the destination as well. So the source hands over when the marker comes, and never by a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import LocalError, NodeId, Record
from godwit.protocols.relocation.lifecycle import TRANSITIONS, Stay, Step
from godwit.protocols.relocation.messages import Late, Mark, Transfer, TransferRequest
from godwit.protocols.relocation.rules import Covering, Notice
from godwit.protocols.relocation.sessions import Session
from godwit.protocols.routing.covering.messages import Marker
from godwit.protocols.routing.covering.router import Changes

if TYPE_CHECKING:
    from godwit.protocols.relocation.broker import Outgoing, RelocationBroker

HERE = (Stay.CONNECTED, Stay.MOVING_IN)


class Subscribers:
    """The sessions of subscribers at one broker: by client and hop, by client and first hop, and by interface."""

    def __init__(self, broker: RelocationBroker) -> None:
        self.broker = broker
        self.sessions: dict[tuple[str, int], Session] = {}
        self._born: dict[tuple[str, int], Session] = {}
        self._by_interface: dict[str, Session] = {}
        self._gone_to: dict[tuple[str, int], tuple[NodeId, int]] = {}
        """Where sessions went of late: what still comes for them goes after them."""

    def open(self, client: str, filters: Iterable[Filter], hop: int = 0) -> None:
        """A client begins here."""
        filters = tuple(filters)
        self.broker.check(filters, self.broker.name)
        session = self._new(Session(client, hop, filters))
        session.step(Step.OPEN)
        self.broker.say(self._subscribe(session))

    def leave(self, client: str, hop: int) -> None:
        """The client is gone; where it will appear nobody knows yet."""
        session = self._of(client, hop)
        if session is None or session.stay not in HERE:
            return
        session.step(Step.LEAVE)
        if self.broker.rules.pings:
            self.broker.pings.expect(session)

    def come(self, client: str, hop: int, filters: Iterable[Filter], source: NodeId) -> None:
        """The client is here for its stay `hop`, and was at `source` for the one before."""
        filters = tuple(filters)
        self.broker.check(filters, source)
        if source == self.broker.name:
            self._back(client, hop)
            return
        prepared = self.sessions.get((client, hop))
        if prepared is not None:
            self._enter(prepared)
            return
        session = self._new(Session(client, hop, filters, source))
        session.step(Step.ARRIVE)
        self._ask(session)

    def move_out(self, client: str, hop: int, to: NodeId, *, one_direction: bool = False) -> None:
        """Make before break: have a place prepared at `to`. The client stays until `on_ready` says that it may go."""
        session = self._of(client, hop)
        if session is None or session.stay is not Stay.CONNECTED:
            return
        broker, kind = self.broker, Mark.PATH if one_direction else Mark.TRIGGER
        marker = Marker(kind, client, hop + 1, to, broker.name, "", session.filters)
        if one_direction:
            broker.pave("", marker)
        else:
            broker.tell({}, broker.onward(marker))

    def is_served(self, client: str, hop: int) -> bool:
        """Whether the client is here, with all that it missed."""
        session = self._of(client, hop)
        return session is not None and session.stay is Stay.CONNECTED

    def keep(self, interface: str, event: Event) -> bool:
        """An event for a session, by its interface; False where there is none."""
        session = self._by_interface.get(interface)
        if session is None:
            return False
        if session.stay is Stay.CONNECTED:
            if session.take(event):
                self.broker.deliver(session.client, event)
        elif session.stay is Stay.LINGERING:
            self.broker.host.send(session.next, Late(session.client, session.hop + 1, event))
        else:
            session.keep(event)
        return True

    # The destination.

    def _ask(self, session: Session) -> None:
        broker, rules = self.broker, self.broker.rules
        changes = self._subscribe(session)
        if rules.pings:
            broker.say(changes)
            broker.pings.begin(session)
            return
        if rules.covering is not Covering.IGNORED and not any(changes):
            broker.host.send(session.source, TransferRequest(session.client, session.hop - 1))
            return
        broker.say(changes, self._updates(session))
        if rules.limit_s is not None:
            broker.host.after(rules.limit_s, partial(self._limit, session))

    def _updates(self, session: Session) -> Outgoing:
        broker = self.broker
        via = broker.place(session.filters)
        kind = Mark.UPDATE if broker.rules.addressed or via else Mark.SEARCH
        marker = Marker(kind, session.client, session.hop, session.source, broker.name, via, session.filters)
        if via == broker.name:
            return self.met(marker)
        return broker.onward(marker) if kind is Mark.UPDATE else self.searching("", marker)

    def _limit(self, session: Session) -> None:
        """Nothing has come for too long: the update found no way, or lost it to an advert that was withdrawn."""
        if session.stay in (Stay.MOVING_IN, Stay.WAITING, Stay.PREPARING, Stay.DRAINING):
            self.broker.host.send(session.source, TransferRequest(session.client, session.born - 1))

    def filled(self, transfer: Transfer) -> None:
        session = self._born.get((transfer.client, transfer.hop))
        if session is None or Step.FILL not in TRANSITIONS[session.stay]:
            return
        session.fill(transfer.events, transfer.seen)
        if self.broker.rules.pings:
            self.broker.pings.end(session)
        stay = session.step(Step.FILL)
        if stay is Stay.CONNECTED:
            self._give(session)
        elif stay is Stay.ENDED:
            self._send(session)
        elif session.asked_by:
            self._linger(session, session.asked_by)

    def came_late(self, late: Late) -> None:
        session = self._born.get((late.client, late.hop))
        if session is not None:
            self.keep(session.interface, late.event)
        elif (late.client, late.hop) in self._gone_to:
            to, hop = self._gone_to[late.client, late.hop]
            self.broker.host.send(to, Late(late.client, hop, late.event))

    def triggered(self, marker: Marker) -> None:
        """The source asks for a place while it still serves the client: what follows is the ordinary exchange."""
        if (marker.client, marker.hop) not in self.sessions:
            session = self._new(Session(marker.client, marker.hop, marker.filters, marker.origin))
            session.step(Step.PREPARE)
            self._ask(session)

    def path_ended(self, sender: NodeId, marker: Marker) -> None:
        """One direction: the way is laid already, and the answer travels it back, behind what was routed before."""
        broker = self.broker
        broker.presume(sender, marker)
        if (marker.client, marker.hop) in self.sessions:
            return
        session = self._new(Session(marker.client, marker.hop, marker.filters, marker.origin))
        session.step(Step.PREPARE)
        answer = Marker(Mark.UPDATE, session.client, session.hop, session.source, broker.name)
        broker.say(self._subscribe(session), broker.onward(answer))

    # On the way.

    def met(self, marker: Marker) -> Outgoing:
        """The rendezvous point sends the update on to the source: over the links, behind the subscription."""
        broker = self.broker
        told = msgspec.structs.replace(marker, via="")
        if marker.to == broker.name:
            return broker.end(told)
        if broker.rules.notice is Notice.DIRECT:
            broker.host.send(marker.to, TransferRequest(marker.client, marker.hop - 1, marker.origin))
            return {}
        return broker.onward(told)

    def searching(self, sender: NodeId, marker: Marker) -> Outgoing:
        """Content flooding: on towards adverts, and where others want as much, back to them.

        What goes back follows subscriptions only. What goes on must go on even so: who wants as much need not be the
        source, whose own subscription may join the way further up.
        """
        router = self.broker.router
        back = set().union(*(self._covering(wanted) for wanted in marker.filters)) & router.neighbors
        on: set[str] = set()
        if marker.kind == Mark.SEARCH:
            on = set().union(*(router.offers(wanted) for wanted in marker.filters)) & router.neighbors
        returning = msgspec.structs.replace(marker, kind=Mark.BACK)
        ways = {neighbor: [marker if neighbor in on else returning] for neighbor in sorted(on | back)}
        ways.pop(sender, None)
        return ways

    def _covering(self, wanted: Filter) -> set[str]:
        """The interfaces from which something as wide is wanted."""
        router, found = self.broker.router, set[str]()
        for one in router.wanted.table:
            if router.language.covers(one, wanted):
                found |= router.wanted.table.interfaces(one)
        return found

    # The source.

    def asked(self, sender: NodeId, marker: Marker) -> None:
        self._yield(marker.client, marker.hop - 1, marker.origin)

    def requested(self, sender: NodeId, client: str, hop: int) -> None:
        """Out of band: with `Covering.LINGERING` whatever is still on its way here will be sent after it."""
        session = self._of(client, hop)
        if self.broker.rules.covering is not Covering.LINGERING:
            self._yield(client, hop, sender)
        elif session is not None and not session.next:
            self._linger(session, sender)

    def _linger(self, session: Session, to: NodeId) -> None:
        if session.stay in HERE:
            session.step(Step.LEAVE)
        session.asked_by = to
        if session.stay is Stay.BUFFERING:
            session.next = to
            session.step(Step.LINGER)
            had = session.had
            self.broker.host.send(to, Transfer(session.client, session.hop + 1, tuple(session.drain()), had))
            self.broker.host.after(self.broker.rules.linger_s, partial(self._gone, session))

    def _gone(self, session: Session) -> None:
        self._close(session, Step.END)
        self._point_on(session)

    def _yield(self, client: str, hop: int, to: NodeId) -> None:
        """Hand over, or note to whom as soon as there is what to hand over."""
        session = self._of(client, hop)
        if session is None or session.next:
            return
        session.next = to
        if session.stay is Stay.MOVING_IN:
            session.step(Step.LEAVE)
        served = session.stay is Stay.CONNECTED
        if self._close(session, Step.YIELD) is Stay.ENDED:
            self._send(session)
        if served:
            self.broker.on_ready(client, to)

    def _close(self, session: Session, step: Step) -> Stay:
        stay = session.step(step)
        self._unsubscribe(session)
        if stay is Stay.ENDED:
            self._forget(session)
        if self.broker.rules.pings:
            self.broker.pings.close(session)
        return stay

    def _send(self, session: Session) -> None:
        self._forget(session)
        if self.broker.rules.covering is Covering.LINGERING:
            self._point_on(session)
        had = session.had
        transfer = Transfer(session.client, session.hop + 1, tuple(session.drain()), had)
        self.broker.host.send(session.next, transfer)

    def _point_on(self, session: Session) -> None:
        """Another broker before this one may linger for it still."""
        key = session.client, session.born
        self._gone_to[key] = session.next, session.hop + 1
        self.broker.host.after(self.broker.rules.linger_s, partial(self._forget_way, key))

    def _forget_way(self, key: tuple[str, int]) -> None:
        self._gone_to.pop(key, None)

    # Both.

    def _enter(self, session: Session) -> None:
        """The client has come to a place that was prepared for it."""
        if session.step(Step.ARRIVE) is Stay.CONNECTED:
            self._give(session)

    def _back(self, client: str, hop: int) -> None:
        """It is where it was before: the stay goes on under its new number."""
        session = self._of(client, hop - 1)
        if session is None or session.next or session.asked_by:
            raise LocalError(f"{client} says that it comes back, but its stay {hop - 1} is not here any more")
        if self.broker.rules.pings:
            self.broker.pings.close(session)
        del self.sessions[client, session.hop]
        session.hop = hop
        self.sessions[client, hop] = session
        if session.stay in HERE:
            session.step(Step.LEAVE)
        if session.step(Step.RETURN) is Stay.CONNECTED:
            self._give(session)

    def _give(self, session: Session) -> None:
        self.broker.host.trace(Record("attached", client=session.client))
        for event in session.drain():
            self.broker.deliver(session.client, event)

    def _of(self, client: str, hop: int) -> Session | None:
        return self.sessions.get((client, hop))

    def _new(self, session: Session) -> Session:
        if (session.client, session.hop) in self.sessions:
            raise LocalError(f"{session.client} is here already for its stay {session.hop}")
        self.sessions[session.client, session.hop] = session
        self._born[session.client, session.born] = session
        self._by_interface[session.interface] = session
        return session

    def _forget(self, session: Session) -> None:
        self.sessions.pop((session.client, session.hop), None)
        self._born.pop((session.client, session.born), None)

    def _subscribe(self, session: Session) -> list[Changes]:
        return [self.broker.router.subscribe(session.interface, wanted) for wanted in session.filters]

    def _unsubscribe(self, session: Session) -> None:
        self._by_interface.pop(session.interface, None)
        for wanted in session.filters:
            self.broker.unsubscribe(session.interface, wanted)

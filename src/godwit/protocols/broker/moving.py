"""How sessions move between brokers: docs/broker.md, "A session moves"."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from godwit.protocols.broker import contents
from godwit.protocols.broker.contents import Fetch, Forwarded, Heard, Nothing, Place, Turn
from godwit.protocols.broker.outlet import Opening, Outlet, Reason
from godwit.protocols.broker.places import At, Places
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.sessions import Gate, Item, Session, Upstream
from godwit.protocols.broker.speaking import Speaking
from godwit.protocols.broker.turning import Turning, item_of, kept_of
from godwit.protocols.broker.understanding import remembered
from godwit.protocols.host import NodeId, Timer

ASKED_MAX = 16
"""So many brokers may send a fetch on to another before the client gets a new session."""


class Waiting:
    """A client that is here while its session is elsewhere. Without outlet it has left again."""

    def __init__(self, opening: Opening, outlet: Outlet, source: NodeId, timer: Timer) -> None:
        self.opening = opening
        self.outlet: Outlet | None = outlet
        self.source = source
        self.timer = timer
        self.asked = 1
        self.wanted_by: tuple[int, NodeId] | None = None
        """Another broker where the client has appeared since: it gets the session as soon as it is here."""


class Moves:
    """Clients that arrive before their sessions, sessions that leave and arrive, and who has which."""

    def __init__(self, registry: Registry, session_wait_s: float) -> None:
        self.registry = registry
        self.switch = registry.switch
        self.fabric = registry.switch.fabric
        self.name = registry.switch.name
        self.session_wait_s = session_wait_s
        self.places = Places(registry.switch.store)
        self.waiting: dict[str, Waiting] = {}
        self.turning = Turning(registry, self.places)
        self.speaking = Speaking(registry.switch, session_wait_s)
        self.switch.forward = self._forward
        registry.on_end = self._ended

    # A client arrives

    def open_elsewhere(self, opening: Opening, outlet: Outlet) -> bool:
        """Fetch the session from wherever it is; False where no broker is known to have one."""
        if self._replace_waiting(opening, outlet):
            return True
        at = self.places.get(opening.client)
        source = at.broker if at is not None else opening.previous
        if not source or source == self.name or source not in self.fabric.brokers:
            return False
        timer = self.switch.host.after(self.session_wait_s, partial(self._new_session, opening.client))
        self.waiting[opening.client] = Waiting(opening, outlet, source, timer)
        self._fetch(opening.client, source)
        return True

    def give_up(self, opening: Opening, outlet: Outlet) -> None:
        waiting = self.waiting.get(opening.client)
        if waiting is not None and waiting.outlet is outlet:
            waiting.outlet = None

    def _replace_waiting(self, opening: Opening, outlet: Outlet) -> bool:
        """The client has come once more while its session is on its way."""
        waiting = self.waiting.get(opening.client)
        if waiting is None:
            return False
        if waiting.outlet is not None:
            waiting.outlet.refused(Reason.SESSION_TAKEN_OVER, "the client has connected again")
        waiting.opening, waiting.outlet = opening, outlet
        return True

    def stop_waiting(self, client: str) -> Waiting | None:
        waiting = self.waiting.pop(client, None)
        if waiting is not None:
            waiting.timer.cancel()
        return waiting

    def next_epoch(self, client: str) -> int:
        """Above all that is known of this client. The clock helps where old news is still under way."""
        at, live = self.places.get(client), self.registry.sessions.get(client)
        shadows = self.registry.shadows.get(client, {}).values()
        known = max(at.epoch if at else 0, live.epoch if live else 0, *(one.next_epoch for one in shadows), 0)
        return max(known + 1, int(self.switch.clock() * 1000))

    def announce(self, session: Session, *, clean: bool = False) -> None:
        """Tell all brokers that a session that may outlive its connection is here."""
        at = At(session.epoch, self.name)
        known = self.places.get(session.client)
        if session.announced:
            return
        if session.expiry_s > 0:
            session.announced = True
            self.switch.ledger.put_session(session)
            self._send(self.fabric.brokers, Place(session.client, session.epoch, clean=clean))
        elif clean and known is not None:
            self._send(self.fabric.brokers, Place(session.client, session.epoch, gone=True))
        self.places.forget(session.client, at)

    def _ended(self, session: Session) -> None:
        if session.announced:
            self._send(self.fabric.brokers, Place(session.client, session.epoch, gone=True))

    def _fetch(self, client: str, source: NodeId) -> None:
        self._send((source,), Fetch(client, self.next_epoch(client)))

    def _new_session(self, client: str) -> None:
        """The session cannot be had now. Should it turn up, what it kept is added to the new one."""
        waiting = self.stop_waiting(client)
        if waiting is None or (waiting.outlet is None and waiting.wanted_by is None):
            return
        session = self.registry.create(waiting.opening, self.next_epoch(client))
        self.announce(session)
        self._begin(session, waiting, present=False)

    def _begin(self, session: Session, waiting: Waiting | None, *, present: bool) -> None:
        """It is here: let the client in, unless it has left, or is elsewhere by now."""
        if waiting is not None and waiting.wanted_by is not None:
            if waiting.outlet is not None:
                waiting.outlet.refused(Reason.SESSION_TAKEN_OVER, "the client has connected at another broker")
            epoch, to = waiting.wanted_by
            self._transfer(session, to, epoch)
        elif waiting is not None and waiting.outlet is not None:
            self.registry.attach(session, waiting.opening, waiting.outlet, present)
        else:
            session.left = self.switch.clock()
            self.registry.rest(session)

    # A session leaves

    def on_fetch(self, origin: NodeId, fetch: Fetch) -> None:
        session, waiting = self.registry.sessions.get(fetch.client), self.waiting.get(fetch.client)
        if session is not None:
            self._transfer(session, origin, fetch.epoch)
        elif waiting is not None and waiting.source != origin:
            waiting.wanted_by = max(waiting.wanted_by or (0, ""), (fetch.epoch, origin))
        else:
            at = self.places.get(fetch.client) if waiting is None else None
            lead = (at.broker, at.epoch) if at is not None else ("", 0)
            self._send((origin,), Nothing(fetch.client, fetch.epoch, *lead))

    def _transfer(self, session: Session, to: NodeId, epoch: int) -> None:
        """All of it into the stream to the other broker; what stays is a shadow that passes on what still comes."""
        switch, client = self.switch, session.client
        known, shadows = self.places.get(client), self.registry.shadows.get(client, {})
        # Two sessions of a client may go the same way after one another: they must not go under the same epoch, nor
        # leave two shadows of the same epoch.
        while session.epoch in shadows:
            session.epoch += 1
        epoch = max(epoch, session.epoch + 1, known.epoch + 1 if known is not None else 0)
        self._leave(session)
        unheard = self.speaking.leave(session, to, epoch)
        chain = {one for way in session.upstreams for one in (*way.chain, way.source)} - {to}
        origins = {self.name, to, *self.fabric.brokers}.union(*(way.origins for way in session.upstreams))
        moved = contents.Session(
            client,
            epoch,
            session.expiry_s,
            tuple(sub.wanted for sub in session.subscriptions.values()),
            tuple(sorted(session.incoming)),
            tuple(kept_of(item) for item in session.flying.values()),
            tuple(sorted(origins)),
            session.sequence,
            tuple(sorted(chain)),
            session.clean,
            unheard,
        )
        waiting = [kept_of(item) for item in session.waiting]
        self._become_shadow(session, to, epoch, origins)
        self.places.put(client, At(epoch, to))
        self._send((to,), moved)
        for kept in waiting:
            self._send((to,), Forwarded(client, epoch, kept))
        switch.trace("moved", client=client, peer=to)

    def _leave(self, session: Session) -> None:
        """The client is at another broker. Its will is only said where it asked for no delay."""
        connected, will = session.outlet is not None, session.will
        self.registry.cancel_timers(session)
        if connected and will is not None and will.delay_s == 0:
            self.registry.say_will(session)
        session.will = None
        self.registry.hang_up(session, Reason.SESSION_TAKEN_OVER, "the client has connected at another broker")

    def _become_shadow(self, session: Session, to: NodeId, epoch: int, origins: set[NodeId]) -> None:
        switch = self.switch
        switch.ledger.forget(session)
        del self.registry.sessions[session.client]
        switch.counts.waiting -= len(session.flying) + len(session.waiting)
        session.flying, session.incoming, session.waiting_b = {}, set(), 0
        session.waiting.clear()
        session.unsent.clear()
        session.moved_to, session.next_epoch = to, epoch
        session.open_origins, session.owed = set(origins), set(origins)
        session.unheard = set()
        self.registry.add_shadow(session)
        switch.ledger.save(session)
        switch.directory.changed()
        switch.counts.sessions -= 1
        switch.counts.moved_out += 1

    def _forward(self, shadow: Session, item: Item) -> None:
        """For a shadow: on to where the session went."""
        assert shadow.moved_to is not None
        self._send((shadow.moved_to,), Forwarded(shadow.client, shadow.next_epoch, kept_of(item)))

    # A session arrives

    def on_session(self, origin: NodeId, moved: contents.Session) -> None:
        waiting = self.stop_waiting(moved.client)
        present = self.registry.sessions.get(moved.client)
        way = Upstream(moved.epoch, origin, moved.chain, set(moved.origins), present is None)
        if present is not None:
            self._add_to(present, moved, way)
            return
        session = self._installed(moved, way)
        self.switch.counts.moved_in += 1
        newer = self.places.get(moved.client)
        if newer is not None and At(session.epoch, self.name) < newer and newer.broker in self.fabric.brokers:
            self.turning.turn_all(session, way)
            self._transfer(session, newer.broker, newer.epoch)
            return
        if waiting is not None:
            session.expiry_s = waiting.opening.expiry_s or session.expiry_s
        self.turning.turn_all(session, way)
        self.announce(session)
        self._begin(session, waiting, present=True)

    def _installed(self, moved: contents.Session, way: Upstream) -> Session:
        session = Session(moved.client, moved.epoch)
        session.expiry_s = moved.expiry_s
        session.sequence = max(moved.sequence, self.registry.first_sequence())
        session.incoming = set(moved.incoming)
        session.clean = moved.clean
        session.unheard = set(moved.unheard)
        session.upstreams.append(way)
        session.gates = {origin: Gate() for origin in moved.origins}
        for wanted in moved.subscriptions:
            session.row += 1
            sub = remembered(session, wanted, session.row)
            if sub is not None:
                session.subscriptions[wanted.key] = sub
        for kept in moved.kept:
            session.flying[kept.number] = item_of(kept, under_way=True)
            session.number = kept.number
        self.registry.add(session)
        self.switch.counts.waiting += len(session.flying)
        self.switch.ledger.save(session)
        self.speaking.arrive(session)
        return session

    def _add_to(self, session: Session, moved: contents.Session, way: Upstream) -> None:
        """The client could not wait, or was at two brokers: what the other session kept goes to this one, unless the
        client wanted to start clean."""
        if session.clean:
            to = sorted(way.origins & self.fabric.brokers)
            self._send(to, Turn(moved.client, moved.epoch, way.source, self.switch.restate(), way.chain))
            self.turning.make_turn(self.name, Turn(moved.client, moved.epoch, way.source, 0, way.chain))
            return
        session.epoch = max(session.epoch, moved.epoch)
        session.announced = False
        session.upstreams.append(way)
        if session.durable:
            self.switch.ledger.put_session(session)
        self.turning.turn_all(session, way)
        self.announce(session)
        for kept in moved.kept:
            if not kept.received:
                self.switch.take(session, item_of(kept, under_way=False))

    def on_nothing(self, origin: NodeId, nothing: Nothing) -> None:
        client, waiting = nothing.client, self.waiting.get(nothing.client)
        if nothing.at and nothing.at != self.name:
            self.places.put(client, At(nothing.since, nothing.at))
        if waiting is None or waiting.source != origin:
            return
        at = self.places.get(client)
        lead = at.broker if at is not None else ""
        if lead == origin:
            return  # it does not know yet that the session is on its way there; it will say so when it has come
        if lead in self.fabric.brokers and waiting.asked < ASKED_MAX:
            waiting.source, waiting.asked = lead, waiting.asked + 1
            self._fetch(client, lead)
        else:
            self._new_session(client)

    def on_heard(self, heard: Heard) -> None:
        waiting, at = self.waiting.get(heard.client), self.places.get(heard.client)
        elsewhere = waiting.source if waiting is not None else at.broker if at is not None else None
        self.speaking.on_heard(heard, self.registry.sessions.get(heard.client), elsewhere)

    # Places, and brokers that come and go

    def on_place(self, origin: NodeId, place: Place) -> None:
        at, session = At(place.epoch, origin), self.registry.sessions.get(place.client)
        if place.gone:
            self.places.forget(place.client, at)
        elif session is None or At(session.epoch, self.name) < at:
            self.places.put(place.client, at)
        waiting = self.waiting.get(place.client)
        if waiting is not None and not place.gone:
            waiting.source = origin
            self._fetch(place.client, origin)
        if session is None or at < At(session.epoch, self.name):
            return
        if place.gone or place.clean:
            session.announced = False
            session.will = None
            self.registry.hang_up(session, Reason.SESSION_TAKEN_OVER, "the client has connected at another broker")
            self.registry.end(session)
        else:
            self._transfer(session, origin, place.epoch)

    def greet(self, brokers: Iterable[NodeId]) -> None:
        """Tell new brokers where sessions are."""
        to = sorted(brokers)
        for session in self.registry.sessions.values():
            if session.announced and to:
                self._send(to, Place(session.client, session.epoch))

    def given_up(self, broker: NodeId) -> None:
        """It counts as turned, and what it would have passed on as passed on."""
        self.places.forget_broker(broker)
        self.turning.given_up(broker)
        for session in list(self.registry.sessions.values()):
            self.speaking.given_up(session, broker)
        for client, waiting in list(self.waiting.items()):
            if waiting.source == broker:
                self._new_session(client)

    def _send(self, to: Iterable[NodeId], content: contents.Content) -> None:
        self.switch.say(to, content)

"""How the publications for a session that moves are divided between its places: docs/broker.md, "A session moves"."""

from __future__ import annotations

from godwit.protocols.broker.contents import Forwarded, Kept, Through, Turn, Turned
from godwit.protocols.broker.keeping import DONE_WITH
from godwit.protocols.broker.places import Asked, Places
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.sessions import Item, Session, Upstream
from godwit.protocols.host import NodeId


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
        self._arriving: dict[Session, None] = {}
        """Those to which something may still be passed on, or from which somebody has not turned."""
        self._asked: dict[tuple[str, int, NodeId], set[NodeId]] = {}
        """By client, epoch and source: the brokers that were asked to turn in this life."""

    def turn_all(self, session: Session, way: Upstream) -> None:
        """Ask every broker to send here what it sent to the place before; this one does it at once."""
        self._arriving[session] = None
        self._ask(session, way)
        self.make_turn(self.name, Turn(session.client, way.epoch, way.source, 0, way.chain))

    def _ask(self, session: Session, way: Upstream) -> None:
        asked = self._asked.setdefault((session.client, way.epoch, way.source), set())
        to = sorted((way.origins & self.fabric.brokers) - asked)
        if to:
            asked.update(to)
            self.switch.say(to, Turn(session.client, way.epoch, way.source, self.switch.restate(), way.chain))

    def on_turn(self, origin: NodeId, turn: Turn) -> None:
        if self.fabric.heard(origin) >= turn.interest:
            self.make_turn(origin, turn)
        else:
            self.places.wait(Asked(origin, turn))

    def make_turn(self, by: NodeId, turn: Turn) -> None:
        """From this moment on."""
        turned = Turned(turn.client, turn.epoch)
        self.switch.say(sorted({by, turn.source, *turn.chain} - {self.name}), turned)
        self.on_turned(self.name, turned)

    def on_turned(self, origin: NodeId, turned: Turned) -> None:
        for session in self._all_of(turned.client):
            gate = session.gates.get(origin)
            begins = gate is not None and not gate.begun and turned.epoch >= session.entered
            ends = turned.epoch >= session.next_epoch and origin in session.open_origins
            if gate is not None and begins:
                gate.begun = True
            if ends:
                session.open_origins.discard(origin)
            if begins or ends:
                self._progress(session, origin)

    def on_through(self, origin: NodeId, through: Through) -> None:
        for session in self._all_of(through.client):
            way = _way(session, through.epoch, origin)
            if way is not None:
                self._come_through(session, way, through.origin)

    def _come_through(self, session: Session, way: Upstream, origin: NodeId) -> None:
        way.origins.discard(origin)
        gate = session.gates.get(origin)
        if gate is not None and way.main:
            gate.through = True
            self._release(session, origin)
        self._progress(session, origin)

    def _release(self, session: Session, origin: NodeId) -> None:
        for item in session.held.pop(origin, ()):
            self.switch.ledger.delete_item(session, item)
            self.switch.take(session, item)

    def _progress(self, session: Session, origin: NodeId) -> None:
        """One origin has come further: keep that, and what follows from it."""
        gate = session.gates.get(origin)
        if gate is not None and gate.begun and gate.through:
            del session.gates[origin]
            self.switch.directory.changed()
        for way in [way for way in session.upstreams if not way.origins]:
            session.upstreams.remove(way)
            self._asked.pop((session.client, way.epoch, way.source), None)
        if not session.upstreams and not session.gates:
            self._arriving.pop(session, None)
        if session.moved_to is not None and self._is_through(session, origin):
            session.owed.discard(origin)
            self.switch.say((session.moved_to,), Through(session.client, session.next_epoch, origin))
        if session.moved_to is not None and not session.owed:
            self.registry.end(session)
        elif session.durable:
            self.switch.ledger.put_session(session)

    def _is_through(self, shadow: Session, origin: NodeId) -> bool:
        return (
            origin in shadow.owed
            and origin not in shadow.open_origins
            and not any(origin in way.origins for way in shadow.upstreams)
        )

    def on_forwarded(self, origin: NodeId, forwarded: Forwarded) -> None:
        for session in self._all_of(forwarded.client):
            if _way(session, forwarded.epoch, origin) is not None:
                self.switch.take(session, item_of(forwarded.kept, under_way=False))

    def loaded(self, session: Session) -> None:
        """It was here before a crash; what it waits for goes on."""
        if session.upstreams or session.gates:
            self._arriving[session] = None

    def interests_changed(self) -> None:
        """Somebody's interest may be the one that a turn waits for, or a broker may be there that had to be asked."""
        for key, asked in list(self.places.turns.items()):
            if self.fabric.heard(asked.by) >= asked.turn.interest:
                self.places.done(key)
                self.make_turn(asked.by, asked.turn)
        for session in list(self._arriving):
            if session.ended:
                del self._arriving[session]
            for way in () if session.ended else list(session.upstreams):
                self._ask(session, way)

    def given_up(self, broker: NodeId) -> None:
        """It counts as turned, and what it would have passed on as passed on."""
        for session in [*self._arriving, *(one for some in self.registry.shadows.values() for one in some.values())]:
            if session.ended:
                continue
            if session.moved_to == broker:
                self.registry.end(session)
                continue
            for way in [way for way in session.upstreams if way.source == broker]:
                for origin in sorted(way.origins):
                    self._come_through(session, way, origin)
            gate = session.gates.get(broker)
            if gate is not None:
                gate.begun = True
            session.open_origins.discard(broker)
            if gate is not None or broker in session.owed:
                self._progress(session, broker)

    def _all_of(self, client: str) -> list[Session]:
        shadows, live = self.registry.shadows.get(client, {}).values(), self.registry.sessions.get(client)
        return [*shadows, live] if live is not None else list(shadows)


def _way(session: Session, epoch: int, source: NodeId) -> Upstream | None:
    return next((way for way in session.upstreams if (way.epoch, way.source) == (epoch, source)), None)


def kept_of(item: Item) -> Kept:
    publication = DONE_WITH if item.received else item.publication
    return Kept(publication, item.qos, item.retain, item.identifiers, item.number, item.received, item.group)


def item_of(kept: Kept, *, under_way: bool) -> Item:
    item = Item(
        kept.publication,
        kept.qos,
        kept.retain,
        kept.identifiers,
        number=kept.number if under_way else 0,
        received=kept.received and under_way,
        group=kept.group,
    )
    # The old broker has the number on its disk until this one has: it comes again from there after a crash.
    item.safe = item.sent = under_way
    return item

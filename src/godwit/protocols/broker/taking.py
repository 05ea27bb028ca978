"""How a client gets its session from a copy: docs/broker.md, "Copies"."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from godwit.protocols.broker.contents import Fetch, Given, Nothing
from godwit.protocols.broker.outlet import Opening, Outlet, Reason
from godwit.protocols.broker.sessions import Copy, Session, Upstream
from godwit.protocols.broker.turning import item_of, kept_of, way_of
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.protocols.broker.moving import Moves


class Taking:
    """A copy becomes the session when its source has said so (`Given`), or before: at once where the client shows that
    nobody can have had the session since, and without the source where that is away."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.registry = moves.registry
        self.switch = moves.switch

    def open(self, copy: Copy, opening: Opening, outlet: Outlet) -> None:
        """The client is here and shows that it was nowhere else since the copy was made. So nobody else can get the
        session, and the client need not wait until the source says that. The other brokers hear of it afterwards: if
        the client does not learn that it is in, and tries elsewhere, they must go by what the source says."""
        epoch = self.moves.new_epoch(opening.client)
        session = self._take_up(copy, epoch, given=False)
        self.switch.say((copy.source,), Fetch(opening.client, epoch, copy.epoch, held=True))
        self.expect(session)
        self.registry.attach(session, opening, outlet, present=True)

    def take_reserved(self, copy: Copy, opening: Opening, outlet: Outlet) -> None:
        """The same for a client that shows nothing: the source has said that nobody else gets the session, and is asked
        for it already. All that is under way first is on the disk."""
        for item in copy.session.flying.values():
            item.safe = True
        session = self._take_up(copy, copy.asked_epoch, given=False)
        self.expect(session)
        self.registry.attach(session, opening, outlet, present=True)

    def claim(self, copy: Copy) -> Session:
        """The source is away, and the client has waited long enough."""
        session = self._take_up(copy, self.moves.new_epoch(copy.session.client), given=False)
        self._go_on(session)
        return session

    def _take_up(self, copy: Copy, epoch: int, *, given: bool) -> Session:
        """What the client says is kept back until the source tells that all have what it said there."""
        session = self.moves.holding.enliven(copy, epoch)
        if not given:
            self.registry.reunion.begin_with(session, copy)
        session.unheard, session.came_from = {(copy.epoch, copy.source)}, copy.source
        self.switch.ledger.put_session(session)
        self.moves.speaking.arrive(session)
        self.moves.copying.came(copy.source)
        return session

    def expect(self, session: Session) -> None:
        """The source should confirm before long. If it does not, it is away."""
        self.switch.host.after(self.moves.session_wait_s, partial(self._go_on_without, session))

    def _go_on_without(self, session: Session) -> None:
        if self.registry.sessions.get(session.client) is not session or not any(way.copy for way in session.upstreams):
            return  # it has ended or moved on; or it is still only a copy, asked for before a crash
        self._go_on(session)
        if not self.moves.pass_on(session):
            self.moves.announce(session)

    def _go_on(self, session: Session) -> None:
        """The source hears of the claim when it is back, and passes on then what has not come through. Nobody waits for
        that any longer."""
        session.claims = self.moves.leaving.claims(session)
        for origin, gate in session.gates.items():
            gate.through = True
            self.moves.turning.release(session, origin)
        if session.durable:
            self.switch.ledger.put_session(session)

    def on_given(self, origin: NodeId, given: Given) -> None:
        """The copy here is the session, or was rightly taken for it."""
        copy = self.moves.holding.get(given.client, origin)
        present = self.registry.sessions.get(given.client)
        if copy is None or copy.epoch != given.copy:
            self._confirm(origin, given)
        elif present is None:
            for item in copy.session.flying.values():
                item.safe = True  # the question left when the copy was on the disk, and this answers it
            session = self._take_up(copy, given.epoch, given=True)
            self.moves.turning.confirm(session, way_by_copy(session, origin), given.origins)
            self.moves.arrive(session, self.moves.stop_waiting(given.client))
        else:
            self._merge(present, copy, given)

    def _confirm(self, origin: NodeId, given: Given) -> None:
        for session in self.moves.turning.all_of(given.client):
            way = way_of(session, given.copy, origin)
            if way is None or not way.copy:
                continue
            self.registry.reunion.confirmed(session, origin)
            self.moves.turning.confirm(session, way, given.origins)
            if session.moved_to is None and not session.ended:
                session.announced = session.announced and session.epoch >= given.epoch
                session.epoch = max(session.epoch, given.epoch)
                if not self.moves.pass_on(session):
                    self.moves.announce(session)

    def _merge(self, present: Session, copy: Copy, given: Given) -> None:
        """The client has begun anew here while its session was asked for."""
        session = copy.session
        items = [*session.flying.values(), *session.waiting, *(one for some in session.held.values() for one in some)]
        self.moves.holding.forget(copy)
        if present.clean:
            return
        if not present.subscriptions:
            for sub in session.subscriptions.values():
                self.registry.adopt(present, sub.wanted)
        way = Upstream(given.copy, copy.source, (), set(given.origins), main=False)
        present.upstreams.append(way)
        for item in items:
            if not item.received:
                self.moves.turning.pass_to(present, way, item_of(kept_of(item), under_way=False))
        self.moves.turning.progress(present, copy.source)

    def disclaim(self, source: NodeId, nothing: Nothing) -> None:
        """The source has no session for a copy that was taken up here. If another broker has it, nobody has heard of
        this one and the client has never answered, then the client does not know that it was in here either: there is
        nothing to be kept. If it does know, what it has had here must not come again there."""
        session = self.registry.sessions.get(nothing.client)
        elsewhere = nothing.at not in ("", self.switch.name)
        if session is None or not elsewhere or session.announced or way_by_copy(session, source) is None:
            pass
        elif session.answered:
            self.moves.pass_on(session)
        else:
            session.will = None
            self.registry.hang_up(session, Reason.SESSION_TAKEN_OVER, "the client has connected at another broker")
            self.registry.end(session)
        self.void(source, nothing.client)

    def void(self, source: NodeId, client: str) -> set[NodeId]:
        """What was taken up here as a copy gets nothing more from its source as such; the brokers whose publications it
        has nevertheless had, all that the source may send again."""
        found: set[NodeId] = set()
        for session in self.moves.turning.all_of(client):
            way = way_by_copy(session, source)
            if way is None or session.copy is not None:
                continue
            if session.moved_to is None and session.memory is None:
                found = session.gates.keys() - way.origins
            self.moves.turning.confirm(session, way, ())
            if session.moved_to is None:
                self.moves.announce(session)
        return found


def way_by_copy(session: Session, source: NodeId) -> Upstream | None:
    """The way on which a copy of it came that this broker has made and not confirmed."""
    return next((way for way in session.upstreams if way.copy and way.source == source), None)

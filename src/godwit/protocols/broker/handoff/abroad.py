"""How a session crosses from one site to another: docs/sites.md, "Sessions that move between sites".

Inside a site it moves as always, to the gateway and from the gateway. Over an uplink the cut is a marker in the stream,
behind the outlook that wants what the session wants. So it costs a few messages on each link of the path, and none
elsewhere. Only a session that is whole at a gateway goes over its uplink: nobody of its site has more for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.broker import messages
from godwit.protocols.broker.api import Opening, Outlet, Reason
from godwit.protocols.broker.dispatch import ABROAD
from godwit.protocols.broker.fabric.border import known_as, site_of
from godwit.protocols.broker.fabric.gateway import CROSSING, Gateway
from godwit.protocols.broker.handoff.cutover import way_of
from godwit.protocols.broker.handoff.directory import At
from godwit.protocols.broker.messages import (
    Astray,
    Crossed,
    Fetch,
    Forwarded,
    Marker,
    Nothing,
    Seated,
    Summon,
    Turn,
    Turned,
)
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.proofs import is_proven, proof_of
from godwit.protocols.broker.session.state import Session, Upstream
from godwit.protocols.broker.session.stays import grown
from godwit.protocols.host import NodeId, Record

if TYPE_CHECKING:
    from godwit.protocols.broker.handoff.coordinator import Moves

PURSUE_S = 0.25
"""How often a gateway looks whether a session that is wanted elsewhere can go there."""

CHASE, AWAY = "chase ", "away "
SEATS = "seats"


class Chase(msgspec.Struct, array_like=True):
    """A session that somebody wants whom this gateway leads to it. It is on the disk until that one has an answer."""

    at: str
    """Where it was, `site/broker`, since this epoch, as whoever asked knows."""
    epoch: int
    by: NodeId
    """Who asked last: a broker of this site, this one for its own client, or a gateway of another site."""
    outside: bool = False
    called: NodeId = ""
    """The gateway of another site that was asked."""
    unites: bool = False
    """There is a newer session of the client in our site, into which it goes."""
    proof: str = ""
    """What was shown for it."""
    strict: bool = False
    """It is wanted in another site: without proof nobody gets it."""


class Gone(msgspec.Struct, frozen=True, array_like=True):
    """A session that left over our uplinks: whereto, and the last proof that was known here."""

    at: At
    proof: str


class Abroad:
    """Every broker has one, since its clients may come from other sites. At a gateway sessions cross."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.registry = moves.registry
        self.switch = moves.switch
        self.name = moves.name
        fabric = moves.fabric
        self.gateway = fabric if isinstance(fabric, Gateway) else None
        self.site = self.gateway.options.site if self.gateway is not None else ""
        self.own_name = self.name
        """This broker, as it is called in tokens: in all sites."""
        self.seats: dict[NodeId, Seated] = {}
        """The gateways of our site, as they have said."""
        self.chases: dict[tuple[str, bool], Chase] = {}
        """By client, and whether somebody outside wants it: a session may be wanted there while an older one of the
        client is wanted here."""
        self.away: dict[str, Gone] = {}
        """By client, sessions that left over our uplinks and have not come back, and whereto."""
        self._pursuing = False
        for owner, _, row in self.switch.store.load("meta"):
            if owner == SEATS:
                self.seats = msgspec.msgpack.decode(row, type=dict[str, Seated])
            elif owner.startswith(CHASE):
                chase = msgspec.msgpack.decode(row, type=Chase)
                self.chases[owner.removeprefix(CHASE), chase.outside] = chase
            elif owner.startswith(AWAY):
                self.away[owner.removeprefix(AWAY)] = msgspec.msgpack.decode(row, type=Gone)
        self._learn()
        if self.gateway is not None:
            self.gateway.on_crossing = self._hear
            self.gateway.on_source = self._came_by
            self.gateway.on_outlook = self._outlook_heard
            self.gateway.on_reborn = self._reborn
        self._look_later()

    def seat(self, origin: NodeId, seated: Seated) -> None:
        """A gateway of our site tells of itself."""
        if self.seats.get(origin) != seated:
            self.seats[origin] = seated
            self.switch.store.put("meta", SEATS, 0, msgspec.msgpack.encode(self.seats))
            self._learn()

    def _learn(self) -> None:
        self.site = self.site or next((one.site for one in self.seats.values()), "")
        self.own_name = known_as(self.site, self.name) if self.site else self.name
        self.switch.site = self.site
        alone = len(self.seats) == 1 and self.gateway is None
        self.switch.gateway = next(iter(self.seats)) if alone else ""

    @property
    def unfinished(self) -> int:
        """Sessions that are wanted elsewhere, or are crossing to here."""
        return len(self.chases) + sum(bool(one.standing.arriving) for one in self.registry.sessions.values())

    # Names of places

    def local(self, broker: str) -> str:
        """What a broker is called here, whose name a token has: brokers of other sites with their site."""
        site, _, name = broker.rpartition("/")
        return name if site and site == self.site else broker

    def leads_to(self, place: str) -> bool:
        """Whether sessions can come here from the site of this place."""
        return is_abroad(place) and bool(self._way(site_of(place)))

    def _way(self, site: str) -> NodeId:
        """The gateway of our site that leads to another; perhaps this one."""
        if self.gateway is not None and self.gateway.toward(site):
            return self.name
        if self.gateway is not None:
            return self.gateway.fellow_toward(site)
        known = (one for one, seated in self.seats.items() if site in seated.crosses)
        return next((one for one in known if self.moves.fabric.is_known(one)), "")

    # Somebody wants a session that is in another site

    def open(self, opening: Opening, outlet: Outlet, at: At) -> bool:
        """A client has come whose session is there; False where no gateway leads there."""
        way = self._way(site_of(at.broker))
        if not way:
            return False
        self.moves.wait_abroad(opening, outlet, At(at.epoch, way))
        # It may have come before, with an older token that proves nothing any more.
        proof = proof_of(opening.token)
        if way == self.name:
            self._chase(opening.client, Chase(at.broker, at.epoch, self.name, proof=proof))
        else:
            self._ask_fellow(opening.client, way, at, proof)
        return True

    def late(self, outlet: Outlet | None) -> None:
        """The session does not come in time. Another one would be a second: better that the client asks again."""
        if outlet is not None:
            text = "the session of this client is in another site that cannot be reached now; it is on its way here"
            outlet.refused(Reason.SERVER_BUSY, text)

    def leads(self, origin: NodeId, fetch: Fetch) -> bool:
        """Whether the session that a broker of our site asks for is elsewhere, or comes from there just now: then this
        gateway sees to it."""
        if self.gateway is None or fetch.held:
            return False
        client, session = fetch.client, self.registry.sessions.get(fetch.client)
        self._give_way(client)
        if session is not None:
            if session.standing.arriving:
                self._chase(client, _chase_of(fetch, origin, fetch.abroad, fetch.since))
            return bool(session.standing.arriving)
        known, waiting = self.moves.places.known.get(client), self.moves.waiting.get(client)
        if known is not None and fetch.abroad and known.broker == origin:
            known = None  # it has one, and its client shows that it was in another since
        asks_homes = waiting is not None and not waiting.source
        if waiting is not None and not self.is_chased(client) and not (fetch.abroad and asks_homes):
            return False
        if known is not None and not is_abroad(known.broker) and known.epoch >= fetch.since:
            return False
        if known is not None and (not fetch.abroad or known.epoch > fetch.since):
            self._chase(client, _chase_of(fetch, origin, known.broker, known.epoch))
        elif fetch.abroad:
            self._chase(client, _chase_of(fetch, origin, fetch.abroad, fetch.since))
        else:
            return False
        return True

    def _give_way(self, client: str) -> None:
        """Somebody of our site wants what another site wants too. Of two gateways that both went on neither would ever
        have it long enough to send it over its uplink. The client is in one place, and asks from there again."""
        outside = self.chases.get((client, True))
        if outside is not None and not outside.unites:
            self._done(client, outside)
            self._refuse(client, outside)

    def claimed(self, client: str, at: At) -> None:
        """A broker of our site has a session of a client whose older one is in another site: that comes to it, wherever
        it goes meanwhile."""
        away, chase = self.away.get(client), self.chases.get((client, False))
        if away is None or not away.at < at:
            return
        if chase is None:
            self._chase(client, Chase(away.at.broker, away.at.epoch, at.broker, unites=True))
        elif chase.unites or chase.by == at.broker:
            # Whoever asked for the older one did not wait for it.
            chase.by, chase.unites = at.broker, True
            self._put(client, chase)

    def vacated(self, client: str) -> None:
        """No broker of our site has a session of this client: the one that left is the last."""
        if client in self.away and client not in self.moves.places.known:
            self.moves.places.put(client, self.away[client].at)

    def is_awaited(self, client: str) -> bool:
        """Whether a session of this client may still come from another site."""
        return client in self.away or (client, False) in self.chases

    def is_chased(self, client: str) -> bool:
        """Whether somebody wants a session of this client who is led to it from here."""
        return (client, False) in self.chases or (client, True) in self.chases

    def must_prove(self, client: str) -> str | None:
        """What was shown by the other site for which this gateway asks for a session; None where nobody must show
        anything, since it is for our own site."""
        chase, waiting = self.chases.get((client, True)), self.moves.waiting.get(client)
        if chase is not None and not (waiting is not None and waiting.outlet is not None):
            return chase.proof
        own = self.chases.get((client, False))
        return own.proof if own is not None and own.strict else None

    def defer(self, session: Session, to: NodeId) -> bool:
        """Whether a session cannot go to a broker of our site yet; it does as soon as it is whole."""
        if not session.standing.arriving:
            return False
        self._chase(session.client, Chase("", 0, to))
        return True

    def _chase(self, client: str, chase: Chase) -> None:
        """Somebody wants it. A broker of our site is told that it must wait."""
        if not (chase.strict or chase.proof) and client in self.away:
            chase.proof = self.away[client].proof  # it was ours: whoever comes back without a token finds it
        before, other = (self.chases.get((client, outside)) for outside in (chase.outside, not chase.outside))
        if before is not None and before.by != chase.by:
            self._refuse(client, before)
        if other is not None and not (other.unites or chase.unites):
            self._done(client, other)
            self._refuse(client, other)
        self.chases[client, chase.outside] = chase
        self._put(client, chase)
        if not chase.outside and chase.by != self.name and is_abroad(chase.at):
            self.moves.fabric.send((chase.by,), Nothing(client, chase.epoch, chase.at, chase.epoch))
        self._pursue(client)
        self._look_later()

    def _refuse(self, client: str, chase: Chase) -> None:
        """Somebody else has asked since: the client is there by now, or asks here again."""
        if chase.outside:
            self.moves.fabric.send((chase.by,), Astray(client, taken=True, proof=chase.proof))
        elif chase.by == self.name:
            waiting = self.moves.stop_waiting(client)
            self.late(waiting.outlet if waiting is not None else None)
        if not chase.outside:
            self.switch.host.after(0.0, partial(self._unite, client))

    def _unite(self, client: str) -> None:
        """Whoever asked in our site for the one that left gets none. If it has a newer one, that still waits for it."""
        known = self.moves.places.known.get(client)
        if known is not None and not is_abroad(known.broker):
            self.claimed(client, known)

    def _put(self, client: str, chase: Chase) -> None:
        self.switch.store.put("meta", CHASE + client, int(chase.outside), msgspec.msgpack.encode(chase))

    def _done(self, client: str, chase: Chase) -> None:
        if self.chases.pop((client, chase.outside), None) is not None:
            self.switch.store.delete("meta", CHASE + client, int(chase.outside))
            self._settle_soon(client)

    def _look_later(self) -> None:
        if self.chases and not self._pursuing:
            self._pursuing = True
            self.switch.host.after(PURSUE_S, self._look)

    def _look(self) -> None:
        self._pursuing = False
        for client in dict.fromkeys(client for client, _ in self.chases):
            self._pursue(client)
        self._look_later()

    def settled(self, session: Session) -> None:
        """It may be whole by now."""
        self._pursue(session.client)

    def _pursue(self, client: str) -> None:
        """One step nearer to whoever wants it, if one can be made now. An older one is united with it first."""
        for outside in (False, True):
            chase = self.chases.get((client, outside))
            if chase is not None:
                self._follow(client, chase)

    def _follow(self, client: str, chase: Chase) -> None:
        session = self.registry.sessions.get(client)
        if chase.unites and chase.by == self.name:
            self._seek(client, chase)
        elif session is not None and session.standing.epoch >= chase.epoch:
            if chase.strict and not is_proven(session.carried, chase.proof):
                self._deny(client, chase)
            else:
                self._give(chase, session)
        elif client not in self.moves.waiting or (chase.by == self.name and not chase.called):
            self._seek(client, chase)

    def _give(self, chase: Chase, session: Session) -> None:
        if chase.by == self.name:
            self._done(session.client, chase)
            self.moves.go_on_with(session)
        elif session.standing.arriving:
            return
        elif not chase.outside:
            self._done(session.client, chase)
            self.moves.leaving.transfer(session, chase.by)
        elif self._is_whole(session):
            self._done(session.client, chase)
            self._send(session, chase.by)

    def _is_whole(self, session: Session) -> bool:
        """Whether all that is for it comes to this broker, and to it alone."""
        inflow, client = session.inflow, session.client
        shadows = self.registry.shadows.get(client, {}).values()
        return not (
            inflow.gates
            or inflow.upstreams
            or inflow.held
            or session.carried.memory is not None
            or session.carried.unheard
            or self.moves.reserving.holder(session)
            or any(one.standing.abroad for one in shadows)
        )

    def _seek(self, client: str, chase: Chase) -> None:
        """It is not here: ask whoever is nearer to it."""
        if chase.called:
            return
        known = self.moves.places.known.get(client)
        if known is None or known.epoch < chase.epoch or known.broker == chase.by:
            known = None
        at = known or At(chase.epoch, chase.at)
        place = self.local(at.broker)
        if not self.moves.follows:
            self._give_up(client, chase)
        elif not is_abroad(place):
            if place in ("", self.name, chase.by) or not self.moves.fabric.is_known(place):
                self._give_up(client, chase)
            else:
                self.moves.wait_for(Opening(client=client, clean=False), None, At(at.epoch, place))
        else:
            self._call(client, chase, At(at.epoch, place))

    def _call(self, client: str, chase: Chase, at: At) -> None:
        assert self.gateway is not None
        peer = self.gateway.toward(site_of(at.broker))
        if peer and peer != chase.by:
            chase.called = peer
            self._put(client, chase)
            self.gateway.send((peer,), Summon(client, at.broker, at.epoch, chase.proof))
            return
        fellow = "" if peer else self._way(site_of(at.broker))
        if fellow and fellow != chase.by:
            self.moves.wait_abroad(Opening(client=client, clean=False), None, At(at.epoch, fellow))
            self._ask_fellow(client, fellow, at, chase.proof, outside=chase.strict)
        else:
            self._give_up(client, chase)

    def _ask_fellow(self, client: str, fellow: NodeId, at: At, proof: str, *, outside: bool = False) -> None:
        epoch = self.moves.next_epoch(client)
        fetch = Fetch(client, epoch, abroad=at.broker, since=at.epoch, proof=proof, outside=outside)
        self.moves.fabric.send((fellow,), fetch)

    def in_vain(self, client: str) -> None:
        """Nobody of our site has it who was asked."""
        for outside in (False, True):
            chase = self.chases.get((client, outside))
            if chase is not None and not chase.called:
                self._give_up(client, chase)

    def _give_up(self, client: str, chase: Chase) -> None:
        """There is none, or an older one than whoever asks knows of."""
        session = self.registry.sessions.get(client)
        if session is not None and not chase.unites:
            chase.epoch = 0
            self._put(client, chase)
            self._follow(client, chase)
            return
        self._refuse_for_good(client, chase)

    def denied(self, client: str, proof: str) -> None:
        """Its broker does not give it to whoever has shown this."""
        for outside in (False, True):
            chase = self.chases.get((client, outside))
            if chase is not None and chase.strict and chase.proof == proof and not chase.called:
                self._deny(client, chase)

    def _deny(self, client: str, chase: Chase) -> None:
        """What was shown is no proof, or not any more: a client that has a newer token asks again with that."""
        self._done(client, chase)
        if chase.outside:
            shown = bool(chase.proof)
            self.moves.fabric.send((chase.by,), Astray(client, taken=shown, proof=chase.proof, outdated=shown))
        elif chase.by == self.name:
            self.moves.end_unheard(client)
        else:
            self.moves.fabric.send((chase.by,), Nothing(client, chase.epoch, denied=chase.proof))

    def _refuse_for_good(self, client: str, chase: Chase) -> None:
        """Whoever asks is told that there is none: none that it may have."""
        self._done(client, chase)
        if chase.unites:
            self._is_back(client)
        elif chase.outside:
            self.moves.fabric.send((chase.by,), Astray(client, proof=chase.proof))
        elif chase.by == self.name:
            self.moves.begin_anew(client)
        else:
            self.moves.fabric.send((chase.by,), Nothing(client, chase.epoch))

    # What gateways say to one another

    def _hear(self, peer: NodeId, content: CROSSING) -> None:
        match content:
            case Summon(client, at, epoch, proof):
                self._chase(client, Chase(at, epoch, peer, outside=True, proof=proof, strict=True))
            case messages.Session():
                self._arrive(peer, content)
            case Forwarded():
                self.moves.turning.on_forwarded(peer, content)
            case Marker():
                self._on_marker(peer, content)
            case Crossed(client, epoch, lines):
                for session in self._arriving(peer):
                    if session.client == client and way_of(session, epoch, peer) is not None:
                        self._come_through(session, lines)
            case Astray():
                self._on_astray(peer, content)

    def _on_astray(self, peer: NodeId, astray: Astray) -> None:
        client, taken = astray.client, astray.taken
        known = self.moves.places.known.get(client)
        for chase in [self.chases.get((client, outside)) for outside in (False, True)]:
            if chase is None or (chase.called, chase.proof) != (peer, astray.proof):
                continue
            if astray.outdated and (chase.unites or chase.strict):
                # Whoever asks for another site is told. If it is to be united with a newer one of ours: the client has
                # not heard of that, else it would show that one's token.
                self._deny(client, chase)
            elif taken and chase.unites:
                chase.called = ""  # ask again
                self._put(client, chase)
            elif taken:
                self._done(client, chase)
                self._refuse(client, chase)
            else:
                self._is_back(client)
                if known is not None and is_abroad(known.broker):
                    self.moves.places.forget(client, known)
                self._give_up(client, chase)

    def _came_by(self, peer: NodeId) -> None:
        self.switch.via = peer

    # A session leaves over an uplink

    def _send(self, session: Session, peer: NodeId) -> None:
        """All of it into the stream to the other gateway. What stays takes all that comes, until the marker of the
        other one has come."""
        assert self.gateway is not None
        switch, client = self.switch, session.client
        epoch = self.moves.leaving.transfer_abroad(session, peer, self.gateway.lines())
        at = At(epoch, f"{self.gateway.uplinks[peer].site}/")
        self.moves.places.put(client, at)
        proofs = session.carried.proofs
        self.away[client] = Gone(at, proofs[-1] if proofs else "")
        switch.store.put("meta", AWAY + client, 0, msgspec.msgpack.encode(self.away[client]))
        if switch.tracing:
            switch.host.trace(Record("moved", client=client, peer=peer, note="abroad"))

    def _on_marker(self, peer: NodeId, marker: Marker) -> None:
        """From now on the other one takes what it sends."""
        for shadow in self._shadows(peer):
            if (shadow.client, shadow.standing.next_epoch) == (marker.client, marker.epoch):
                shadow.standing.marked = max(marker.outlook, 1)
                self.switch.ledger.put_session(shadow)
                self._cross(shadow)
                return
        # It has ended, or was lost with a disk: the other one has all that there will be.
        self.moves.fabric.send((peer,), Crossed(marker.client, marker.epoch))

    def _outlook_heard(self, peer: NodeId) -> None:
        for shadow in self._shadows(peer):
            if shadow.standing.marked:
                self._cross(shadow)

    def _cross(self, shadow: Session) -> None:
        """If all that is for it in our site has come: what a second gateway has sent on this one may hear of late."""
        assert self.gateway is not None
        standing, peer = shadow.standing, shadow.standing.moved_to
        if self.gateway.uplinks[peer].heard.number < standing.marked:
            return
        if peer in standing.open_origins:
            self._sound(shadow)
        if not standing.open_origins:
            self.gateway.send((peer,), Crossed(shadow.client, standing.next_epoch, self._gained(shadow)))
            self.registry.end(shadow)

    def _gained(self, shadow: Session) -> dict[str, int]:
        """How far the streams of our site have come since it left."""
        assert self.gateway is not None
        before = next((one.lines for one in shadow.carried.stays if one.site == self.site), {})
        return {line: number for line, number in self.gateway.lines().items() if number > before.get(line, 0)}

    def _sound(self, shadow: Session) -> None:
        """Ask all brokers of our site for an answer, which stands behind all that they have sent; where other gateways
        lead to that site too. Without them nothing can be there that was not here."""
        assert self.gateway is not None
        standing = shadow.standing
        site = self.gateway.uplinks[standing.moved_to].site
        others = self.gateway.brokers if self.gateway.has_fellow(site) else ()
        standing.open_origins = frozenset(others)
        self.switch.ledger.put_session(shadow)
        self.moves.fabric.send(sorted(others), Turn(shadow.client, standing.next_epoch, self.name, 0, lines=()))

    def sounded(self, origin: NodeId, turned: Turned) -> None:
        """That broker has answered."""
        for shadow in list(self.registry.shadows.get(turned.client, {}).values()):
            if shadow.standing.abroad and shadow.standing.next_epoch == turned.epoch:
                shadow.standing.open_origins -= {origin}
                self.switch.ledger.put_session(shadow)
                self._cross(shadow)

    def go_on_without(self) -> None:
        """A broker of our site has lost its disk, or is given up: it does not answer."""
        for shadow in [one for some in self.registry.shadows.values() for one in some.values()]:
            if shadow.standing.abroad and shadow.standing.marked:
                self._cross(shadow)

    def _shadows(self, peer: NodeId) -> list[Session]:
        shadows = (one for some in self.registry.shadows.values() for one in some.values())
        return [one for one in shadows if one.standing.abroad and one.standing.moved_to == peer]

    # A session arrives over an uplink

    def _arrive(self, peer: NodeId, moved: messages.Session) -> None:
        """It is the client's session here from now on. What its old site still passes on goes before what comes to it
        here; what comes over this uplink by itself is for the old site to pass on, until `Crossed`."""
        assert self.gateway is not None
        client, present = moved.client, self.registry.sessions.get(moved.client)
        way = Upstream(moved.epoch, peer, (), {peer}, main=present is None)
        if present is None:
            self.moves.holding.decline(client)
            session = self.moves.arriving.installed(moved, way)
            session.standing.came_from = ""
        else:
            session = present
            self.moves.arriving.add_from_abroad(session, moved, way)
            session.standing.fresh = frozenset(session.subscriptions.keys() - {one.key for one in moved.subscriptions})
            if session.carried.memory is not None:
                session.standing.joined |= {one.key for one in moved.subscriptions if not (one.group or one.lasting)}
        session.standing.arriving = peer
        self._is_back(client)
        for outside in (False, True):
            chase = self.chases.get((client, outside))
            if chase is not None and chase.unites and chase.by == self.name:
                self._done(client, chase)
            elif chase is not None and chase.called == peer:
                chase.called = ""
                self._put(client, chase)
        self.moves.places.forget(client, At(moved.epoch, "~"))
        self.switch.counts.moved_in += present is None
        self.switch.ledger.put_session(session)
        self.switch.audiences.changed()
        self.switch.restate()
        self.gateway.send((peer,), Marker(client, moved.epoch, self.gateway.uplinks[peer].told.number))
        if self.is_chased(client):
            self._pursue(client)
        else:
            self.moves.go_on_with(session)

    def _is_back(self, client: str) -> None:
        if self.away.pop(client, None) is not None:
            self.switch.store.drop("meta", AWAY + client)
            self._settle_soon(client)

    def _settle_soon(self, client: str) -> None:
        """A newer session here remembers what it has had only as long as an older one may come."""
        self.switch.host.after(0.0, partial(self.moves.settled, client))

    def _come_through(self, session: Session, lines: Mapping[str, int]) -> None:
        """All that was for it in its old site is here."""
        assert self.gateway is not None
        peer, session.standing.arriving = session.standing.arriving, ""
        self.moves.turning.has_come(session, peer)
        session.carried.stays = grown(session.carried.stays, self.gateway.uplinks[peer].site, lines)
        self._drop_passed_on(session)
        session.standing.fresh = frozenset()
        self.switch.release_abroad(session)
        self.switch.ledger.put_session(session)
        self.switch.audiences.changed()
        self.moves.settled(session.client)
        if self.is_chased(session.client):
            self._pursue(session.client)
        elif session.outlet is None and session.standing.state is State.RESTING:
            self.moves.copying.rested(session)

    def _drop_passed_on(self, session: Session) -> None:
        """Of what was kept back: a second gateway had brought it to the old site, which has passed it on."""
        held = session.inflow.held.get(ABROAD, [])
        for item in [one for one in held if self.switch.was_passed_on(session, one)]:
            held.remove(item)
            self.switch.ledger.delete_item(session, item)
            self.switch.counts.late_duplicates += 1

    def _arriving(self, peer: NodeId) -> list[Session]:
        return [one for one in self.registry.sessions.values() if one.standing.arriving == peer]

    def _reborn(self, peer: NodeId) -> None:
        """A gateway of another site has lost its disk: nobody waits any longer for what was only there."""
        for session in self._arriving(peer):
            self._come_through(session, {})
        for shadow in self._shadows(peer):
            if self.moves.turning.has_taken(shadow):
                self.registry.end(shadow)
        for (client, outside), chase in list(self.chases.items()):
            if chase.called == peer:
                chase.called = ""
                self._put(client, chase)
            elif outside and chase.by == peer:
                self._done(client, chase)
        for client, away in list(self.away.items()):
            if self.gateway is not None and away.at.broker == f"{self.gateway.uplinks[peer].site}/":
                self._is_back(client)
        for client, at in list(self.moves.places.known.items()):
            if self.gateway is not None and at.broker == f"{self.gateway.uplinks[peer].site}/":
                self.moves.places.forget(client, at)


def _chase_of(fetch: Fetch, origin: NodeId, at: str, epoch: int) -> Chase:
    return Chase(at, epoch, origin, proof=fetch.proof, strict=fetch.outside)


def is_abroad(place: str) -> bool:
    """Whether a place is in another site, by its name."""
    return "/" in place

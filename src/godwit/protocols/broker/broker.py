"""The broker that fronts speak to, in both worlds."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from godwit.events import Value
from godwit.filters.filters import Filter, FilterSet
from godwit.protocols.broker import messages
from godwit.protocols.broker.api import BACK, Capacity, Grant, Limits, Opening, Outlet, Reason, Subscription
from godwit.protocols.broker.dispatch import Switch
from godwit.protocols.broker.fabric.base import ANYTHING, Fabric
from godwit.protocols.broker.fabric.gateway import ring_of
from godwit.protocols.broker.fabric.ring.fabric import RingFabric
from godwit.protocols.broker.handoff.coordinator import Moves
from godwit.protocols.broker.handoff.copies import COPIES_BYTES_MAX, Foresight, Handoff
from godwit.protocols.broker.handoff.directory import Directory
from godwit.protocols.broker.handoff.reconcile import Reunion
from godwit.protocols.broker.interest.subscribers import Asking, Parted, Taker, Wanting
from godwit.protocols.broker.interest.subscribers import Audience as Audience
from godwit.protocols.broker.lasting.past import Past
from godwit.protocols.broker.lasting.profiles import problem_of
from godwit.protocols.broker.lasting.views import Views
from godwit.protocols.broker.messages import (
    Content,
    Drop,
    Fetch,
    Forwarded,
    Found,
    Given,
    Heard,
    Hello,
    Nothing,
    Offered,
    Place,
    Placed,
    Recall,
    Recalled,
    Repeated,
    Reserve,
    Reserved,
    Said,
    Seated,
    Sought,
    Through,
    Turn,
    Turned,
    Uncopied,
)
from godwit.protocols.broker.publication import Publication, wants_topic
from godwit.protocols.broker.registry import Granted as Granted
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.session.counts import Counts
from godwit.protocols.broker.session.lifecycle import Cause, State
from godwit.protocols.broker.session.parse import filters_of, understood
from godwit.protocols.broker.session.retained import Retained
from godwit.protocols.broker.session.state import Session, Sub
from godwit.protocols.broker.steady import Steady
from godwit.protocols.broker.store import Store
from godwit.protocols.gathering.areas import meets
from godwit.protocols.gathering.space import Cell
from godwit.protocols.host import Host, NodeId

CLEANING_S = 600.0
"""How often what has expired is looked for."""

Ack = tuple[int, int, Reason]


class Broker:
    """Fronts call these; answers that must wait for the disk or for another broker come through the outlet.

    It loads what the store has, and listens to the fabric from the start. `handoff` says how sessions follow their
    clients; with "proactive" the `neighbors` get copies of those that rest here (None: nobody does), and this broker
    holds copies of others up to `copies_bytes_max`. The `directory` knows which broker has whose session (None: every
    broker is told). `limits` are those of sessions whose clients have not been here
    since the start. With `tracing` every publication and delivery is a record of the host's trace. `boot` names the
    start of the machine (`Steady`).
    """

    def __init__(
        self,
        host: Host,
        store: Store,
        fabric: Fabric,
        clock: Callable[[], float],
        *,
        session_wait_s: float = 10.0,
        handoff: Handoff = "proactive",
        neighbors: Foresight | None = None,
        copies_bytes_max: int = COPIES_BYTES_MAX,
        directory: Directory | None = None,
        limits: Limits | None = None,
        capacity: Capacity = Capacity(),  # noqa: B008
        tracing: bool = False,
        boot: str = "",
    ) -> None:
        self.host = host
        self.store = store
        self.fabric = fabric
        self.clock = clock
        """Seconds since 1970."""
        steady = Steady(host, store, clock, boot)
        self.steady = steady.now
        """For ages and expiry: about the same, but it goes on whatever becomes of the calendar."""
        self._switch = Switch(host, store, fabric, clock, self.steady, tracing)
        self._registry = Registry(self._switch, Reunion(self._switch), limits or Limits())
        self._moves = Moves(
            self._registry, session_wait_s, self.publish, self._begin, handoff, neighbors, copies_bytes_max, directory
        )
        self.bound(capacity)
        self._known: dict[NodeId, int] = {}
        """The other brokers, each with the name of its disk, 0 where that has not been heard."""
        self._introduced = False
        self._awake = False
        self._offers: tuple[Filter, ...] = ANYTHING
        self._gateways: set[NodeId] = set()
        self._load()
        fabric.clock = self.steady
        fabric.on_content = self._on_content
        fabric.on_change = self._on_change
        self._ring = ring = ring_of(fabric)
        if ring is not None:
            ring.on_routed = self._switch.match
            ring.on_clear = self._moves.turning.when_clear
            ring.on_give = self._moves.homes_in
            ring.on_asked = self._tell_retained
            ring.on_cede = self._cede_retained
            ring.on_lost = self._return_retained
            ring.routes.on_released = self._switch.released
            ring.routes.loops.on_back = self._moves.on_back
            self._switch.follow = ring.routes.follow
            self._switch.keepers = lambda: ring.replicas.holders
            ring.on_rehome = self._rehome
            self._switch.archives_matched = self._switch.recollection.is_foreseen = True
            self._switch.replays.place = partial(self._place, ring)
        host.after(0.0, self._wake)
        host.after(CLEANING_S, self._clean)
        steady.keep()

    @property
    def generation(self) -> int:
        """Grows whenever an audience may have changed."""
        return self._switch.audiences.generation

    @property
    def counts(self) -> Counts:
        return self._switch.counts

    @property
    def sessions(self) -> dict[str, Session]:
        """By client; to look at."""
        return self._registry.sessions

    @property
    def copies_bytes(self) -> int:
        """What copies of other brokers' sessions take here."""
        return self._moves.holding.bytes

    def knows(self, client: str) -> bool:
        """Whether its session is here, or a copy of it, or on its way here."""
        registry = self._registry
        return client in registry.sessions or client in registry.copies or client in self._moves.waiting

    @property
    def shadows(self) -> dict[str, dict[int, Session]]:
        """Sessions that have moved away and still pass on what comes, by client and epoch; to look at."""
        return self._registry.shadows

    @property
    def unfinished(self) -> dict[str, int]:
        """How much is kept in memory of handoffs that have not ended, by what it is; all 0 where none is under way."""
        sessions, moves = self._registry.sessions.values(), self._moves
        return {
            "shadows": sum(map(len, self._registry.shadows.values())),
            "clients that wait": len(moves.waiting),
            "turns": len(moves.places.turns),
            "brokers to be asked": moves.turning.pending,
            "ways and gates": sum(len(one.inflow.upstreams) + len(one.inflow.gates) for one in sessions),
            "held back": sum(len(one.inflow.held) + len(one.kept_back) for one in sessions),
            "memories": sum(one.carried.memory is not None for one in sessions),
            "reservations": sum(bool(one.standing.reserved_for) for one in sessions),
            "crossings": moves.abroad.unfinished,
            "claims": moves.objections.pending,
        }

    @property
    def retained_count(self) -> int:
        return len(self._switch.retained)

    @property
    def shelf(self) -> Retained:
        """All that is retained; to look at."""
        return self._switch.retained

    @property
    def views(self) -> Views:
        """What clients were told of what lasts; to look at."""
        return self._switch.views

    def offer(self, filters: Iterable[Filter]) -> None:
        """All that clients may publish here, for gateways of this broker's site to tell to others (docs/sites.md)."""
        offers = tuple(filters)
        if offers != self._offers:
            self._offers = offers
            self._offer_to(self._gateways)

    def _offer_to(self, gateways: Iterable[NodeId]) -> None:
        self.fabric.send([one for one in sorted(gateways) if self.fabric.is_known(one)], Offered(self._offers))

    def _seat(self, origin: NodeId, seated: Seated) -> None:
        """Another broker is a gateway of this site."""
        origin = seated.by or origin
        self._moves.abroad.seat(origin, seated)
        if origin not in self._gateways:
            self._gateways.add(origin)
            self.store.put("meta", "gateways", 0, msgspec.msgpack.encode(sorted(self._gateways)))
        self._offer_to((origin,))

    @property
    def on_published(self) -> Callable[[Publication], None] | None:
        """Called with every publication that a client of this broker makes, as an archive wants it."""
        return self._switch.on_published

    @on_published.setter
    def on_published(self, listener: Callable[[Publication], None] | None) -> None:
        self._switch.on_published = listener
        self._switch.watch()

    @property
    def past(self) -> Past | None:
        """The archive of what clients of this broker publish; None where there is none, so that nothing is replayed."""
        return self._switch.recollection.past

    @past.setter
    def past(self, past: Past | None) -> None:
        self._switch.recollection.past = past

    def pace_replays(self, per_s: float) -> None:
        """So much of the past all clients of this broker together get in a second."""
        self._switch.replays.per_s = per_s

    def tell_bounds(self, listener: Callable[[Session, str], None]) -> None:
        """Call it with a session and a reason, `queue` or `age`, when a bound drops the first thing for that reason."""
        self._switch.flows.on_bound = listener

    def prepare_with(self, prepared: Callable[[], bool]) -> None:
        """`prepared()` says whether the compiled index can be had at once, and has it loaded if not: until then
        conditions are asked one by one."""
        self._switch.audiences.prepare_with(prepared)
        self._switch.views.prepare_with(prepared)

    def time_matches(self, clock: Callable[[], float], took: Callable[[float], None]) -> None:
        """`took` is told how long each search by content was, in seconds of `clock`."""
        self._switch.audiences.time_with(clock, took)

    def open(self, opening: Opening, outlet: Outlet) -> None:
        """A client wants in: `outlet.opened` or `outlet.refused` follows, now or later."""
        self._wake()
        if not self._may_will(opening, outlet):
            return
        if opening.client in self._moves.objections.contested:
            self._moves.objections.knocks(opening)
        session = self._registry.sessions.get(opening.client)
        ends = opening.clean or (session is not None and session.ends_with_connection)
        # Above that of the session which ends before this one begins.
        epoch = self._moves.new_epoch(opening) if ends else 0
        if session is not None and not ends and self._moves.is_elsewhere(session, opening):
            self._moves.send_after(session, opening)
            session = None
        if session is not None and not ends and self._moves.reserving.holder(session):
            session = None  # perhaps: that one says it
        if session is not None:
            self._take_over(session, ends=ends)
            if not ends and self._moves.waits_for_former(session, opening, outlet):
                return
            if not ends:
                self._moves.return_to(session, opening)
                self._registry.attach(session, opening, outlet, present=True)
                self._moves.announce(session)
                return
        if not opening.clean and self._moves.open_elsewhere(opening, outlet):
            return
        waiting = self._moves.stop_waiting(opening.client)
        if waiting is not None and waiting.outlet is not None:
            waiting.outlet.refused(Reason.SESSION_TAKEN_OVER, BACK)
        self._begin(opening, outlet, epoch)

    def _begin(self, opening: Opening, outlet: Outlet, epoch: int = 0) -> None:
        """A session that is new, here and everywhere, as far as is known."""
        if len(self._registry.sessions) >= self.capacity.sessions_max:
            self.counts.refuse("sessions_full")
            most = self.capacity.sessions_max
            outlet.refused(Reason.QUOTA_EXCEEDED, f"this broker has {most} sessions, and takes no new ones")
            return
        session = self._registry.create(opening, epoch or self._moves.new_epoch(opening), clean=opening.clean)
        self._moves.begun(session, opening)
        self._moves.announce(session, clean=opening.clean)
        self._registry.attach(session, opening, outlet, present=False)
        self._hurry(session)

    def bound(self, capacity: Capacity) -> None:
        """What all clients together may cost from now on; what is there already stays."""
        self.capacity = self._switch.retained.capacity = capacity

    def review(self, rights: Callable[[str], tuple[Grant, Limits] | None]) -> None:
        """Rights have changed. `rights(client)`: what the owner of a session may do now, None where it may not even
        have one: that session ends, with its connection."""
        for session in list(self._registry.sessions.values()):
            granted = rights(session.client)
            if granted is None:
                self._registry.hang_up(session, Reason.NOT_AUTHORIZED, "the broker does not know this user any more")
                session.standing.will = None
                self._registry.end(session)
            else:
                grant, session.limits = granted
                self._registry.restrict(session, grant)

    def close(self, session: Session, outlet: Outlet, *, will: bool, expiry_s: float | None = None) -> None:
        """The connection has ended; `will` unless the client said goodbye. Nothing happens where the session has
        another connection already."""
        if session.outlet is not outlet:
            return
        if not will:
            session.standing.will = None
        self._registry.detach(session)
        if expiry_s is not None:
            was_durable = session.durable
            session.outlive(expiry_s)
            if was_durable and not session.durable:
                self._switch.ledger.forget(session)
        self._registry.rest(session)

    def disconnect(self, client: str, text: str) -> bool:
        """Hang up on a client; its session stays as long as it asked for. False where it is not connected here."""
        session = self._registry.sessions.get(client)
        if session is None or session.outlet is None:
            return False
        self._registry.hang_up(session, Reason.ADMINISTRATIVE_ACTION, text)
        self._registry.rest(session)
        return True

    def end_session(self, client: str, text: str) -> bool:
        """Hang up on a client and forget its session, with all that waits in it. False where it is not here."""
        session = self._registry.sessions.get(client)
        if session is None:
            return False
        self._registry.hang_up(session, Reason.ADMINISTRATIVE_ACTION, text)
        self._registry.end(session)
        return True

    def purge(self, client: str) -> int | None:
        """Drop what waits for a client; how much it was, None where its session is not here."""
        session = self._registry.sessions.get(client)
        return None if session is None else self._switch.flows.purge(session)

    def trace(self, on: bool) -> None:
        """From now on every publication and delivery is a record of the host's trace, or none is."""
        switch = self._switch
        switch.tracing = switch.flows.tracing = on
        switch.watch()

    @property
    def is_traced(self) -> bool:
        return self._switch.tracing

    def wanting(self, publication: Publication) -> tuple[list[Sub], list[NodeId]]:
        """Who would get it if it were published here: subscriptions of this broker, and other brokers. To look at."""
        audience = self.audience(publication.topic)
        subs, brokers = list(audience.subs), list(audience.brokers)
        groups = list(audience.groups)
        found = None
        if audience.contingent:
            (found,) = self._switch.audiences.look_into([publication])
            subs += found.subs
            groups += found.groups
            brokers += found.brokers
        for key in (*audience.seats, *(found.seats if found is not None else ())):
            brokers += self._switch.audiences.seats(key)
        return [*subs, *(sub for group in groups for sub in group.members)], list(dict.fromkeys(brokers))

    def give_up(self, opening: Opening, outlet: Outlet) -> None:
        """The connection has ended before `opened` came."""
        self._moves.give_up(opening, outlet)

    def subscribe(self, session: Session, wanted: Sequence[Subscription]) -> list[Granted]:
        """Each by itself: a bad one is refused with its reason, the others work. Retained publications follow. What is
        granted to a durable session is on the disk once the store has settled: tell the client then."""
        return [self._registry.subscribe(session, one) for one in wanted]

    def renewed(self, session: Session, key: str, granted: Granted) -> Granted:
        """What to answer once the subscription is in place."""
        return self._registry.renewed(session, key, granted)

    def in_place(self, session: Session, keys: Sequence[str], then: Callable[[bool], None]) -> None:
        """`then(True)` follows once, now or later, when all brokers that may send something know of these
        subscriptions; False where some do not after a while. In a tree nobody waits for that, nor for what was granted
        before: a client that comes back says it again, and must not lose it because a broker is away."""
        subs = [sub for key in keys if (sub := session.subscriptions.get(key)) is not None]
        new = [sub for sub in subs if not sub.placed or sub.wanted.lasting]
        if self._ring is not None and new:
            self._switch.restate()
            self._ring.in_place(tuple(filters_of(new, lasting=True)), partial(_placed, new, then))
        else:
            then(True)

    def withdraw_unplaced(self, session: Session, keys: Sequence[str]) -> set[str]:
        """Those of these subscriptions that could not be put in place, and are gone. What was granted before stays."""
        late = [key for key in keys if (sub := session.subscriptions.get(key)) is not None and not sub.placed]
        self.unsubscribe(session, late)
        return set(late)

    def _place(self, ring: RingFabric, sub: Sub, then: Callable[[bool], None]) -> None:
        self._switch.restate()
        ring.survey(lambda: ring.in_place(tuple(filters_of((sub,), lasting=True)), then))

    def unsubscribe(self, session: Session, keys: Sequence[str]) -> list[Reason]:
        return [self._registry.unsubscribe(session, key) for key in keys]

    def publish(self, session: Session, offered: Sequence[tuple[Publication, int]]) -> None:
        """Publications in their order, each with its packet id, 0 at QoS 0, made with `session.next_sequence()`,
        `clock()`, and `steady()` where it expires. For each above QoS 0 `outlet.accepted` follows once it is safe;
        QoS 2 with a packet id that was taken before is only acknowledged again."""
        ledger, outlet = self._switch.ledger, session.outlet
        if outlet is None:
            return  # the session is somebody else's by now: the client says it again over its next connection
        if session.carried.unheard:
            self._moves.speaking.keep_back(session, offered)
            return
        before = ledger.writes
        taken: list[Publication] = []
        acks: list[Ack] = []
        for publication, number in offered:
            reason = self._offer(session, publication, number, taken)
            if publication.qos:
                acks.append((number, publication.qos, reason))
        if taken:
            self._switch.accept(taken)
        if acks:
            self._once_safe(session, partial(_accept, outlet, acks), ledger.writes != before)

    def _once_safe(self, session: Session, then: Callable[[], None], wrote: bool) -> None:
        """Answer now, or when the disk has what it rests on: after all earlier answers, over the same connection."""
        if wrote or session.queue.settling:
            session.queue.settling += 1
            self.store.settled(partial(self._settled, session, session.outlet, then))
        else:
            then()

    def takers(self, topic: str) -> list[Taker] | None:
        """Who gets what is published on a topic at QoS 1 and not retained, where they want it all at that QoS, are all
        here, and nothing else is to be done; else None. Good as long as the generation is the same."""
        audience = self._switch.audiences.audience(topic)
        if audience.takers is None or audience.straight is None or audience.contingent:
            return None
        is_plain = all(one.qos and not one.identifiers and one.session.plain for one in audience.takers)
        return audience.takers if is_plain else None

    def hand(
        self, session: Session, publications: Sequence[Publication], takers: Sequence[Taker], then: Callable[[], None]
    ) -> list[list[int]]:
        """As `publish`, at QoS 1, for what goes to these `takers` and a client that `may_hand`; `then` is called once
        all of it is safe, instead of `outlet.accepted`. For each taker the packet identifiers of those that leave at
        once, the first of them: the caller sends these, and the broker counts them as sent."""
        ledger = self._switch.ledger
        before = ledger.writes
        given = self._switch.hand(publications, takers)
        self.counts.published[1] += len(publications)
        self._once_safe(session, then, ledger.writes != before)
        return given

    def may_hand(self, session: Session) -> bool:
        """Whether what its client says needs no look: it may say everything, here, and waits for nobody."""
        return session.outlet is not None and not session.carried.unheard and session.grant.publish is None

    def may_carry(self) -> bool:
        """Whether publications at QoS 0 may go past the broker: they must not overtake what waits for the disk."""
        return not self._switch.flows.is_behind

    def acknowledged_all(self, session: Session, numbers: Sequence[int]) -> None:
        """As `acknowledged` for each of them."""
        self._switch.flows.acknowledged_all(session, numbers)

    def received_all(self, session: Session, numbers: Sequence[int]) -> list[tuple[int, bool]]:
        """As `received` for each of them; those that the caller has to release now, and whether there is such a one."""
        return self._switch.flows.received_all(session, numbers)

    def released_all(self, session: Session, numbers: Sequence[int]) -> list[int]:
        """As `released` for each of them; those that the caller has to complete now."""
        return self._switch.flows.released_all(session, numbers)

    def say(self, publication: Publication, grant: Grant) -> Reason:
        """A publication of somebody who has no session, under this grant. It is safe once the store has settled."""
        reason = self._problem(publication, grant)
        if reason is Reason.OK:
            self._registry.publish(publication)
        return reason

    def announce(self, publication: Publication) -> None:
        """What the broker says itself, to its own clients: neither counted nor archived."""
        self._switch.spread(self._switch.name, (publication,))

    def lasts(self, topics: str, condition: str, granted: FilterSet | None, limits: Limits) -> list[Publication]:
        """What is retained of these topics, is good and meets the condition, as far as it is granted; oldest first.
        `FilterError` where the condition is none."""
        wanted = understood(Subscription("", topics, condition), limits)
        found = self._switch.retained.find(topics, self.steady())
        if wanted is None and granted is None:
            return found
        asked = [one for one in (wanted, granted) if one is not None]
        return [one for one in found if all(filters.matches(one.values()) for filters in asked)]

    def acknowledged(self, session: Session, number: int) -> bool:
        """The client has done with a delivery (PUBACK, PUBCOMP, or PUBREC with an error); False where there is none."""
        return self._switch.flows.acknowledged(session, number)

    def received(self, session: Session, number: int) -> bool:
        """QoS 2, second step: the client has it (PUBREC); `outlet.release` follows. False where there is none."""
        return self._switch.flows.received(session, number)

    def released(self, session: Session, number: int) -> bool:
        """QoS 2, third step of a publication (PUBREL); `outlet.completed` follows. False where there is none, and it
        follows all the same."""
        return self._switch.flows.released(session, number)

    def go_on(self, session: Session, outlet: Outlet) -> None:
        """What was delivered has left, and the outlet takes more."""
        if session.outlet is outlet:
            self._switch.flows.pump(session)

    def audience(self, topic: str) -> Audience:
        """Who wants this topic; keep it as long as the generation is the same."""
        return self._switch.audiences.audience(topic)

    def outlets(
        self, asking: Sequence[Asking], events: Sequence[Mapping[str, Value]], taking: Container[Outlet]
    ) -> list[Wanting] | Parted:
        """Who wants each of these for its content; see `Audiences.outlets`."""
        return self._switch.audiences.outlets(asking, events, taking)

    def _hurry(self, session: Session) -> None:
        """What a client was told at once should not stay long without the disk."""
        if session.durable:
            self.store.settled(_nothing)

    def _may_will(self, opening: Opening, outlet: Outlet) -> bool:
        """A will is a publication like any other: a client that may not make it is not let in with it."""
        if opening.will is None:
            return True
        publication, grant = opening.will.publication, opening.grant.publish
        if problem := self.audience(publication.topic).problem:
            outlet.refused(Reason.TOPIC_NAME_INVALID, f"will: {problem}")
            return False
        if grant is not None and not grant.matches(publication.values()):
            outlet.refused(Reason.NOT_AUTHORIZED, f"will: this client may not publish it to {publication.topic!r}")
            return False
        return True

    def _take_over(self, session: Session, *, ends: bool) -> None:
        """The client is back; a connection that is still there ends, and the session too where it `ends`."""
        if session.outlet is not None:
            self.counts.taken_over += 1
        if ends:
            self._registry.hang_up(session, Reason.SESSION_TAKEN_OVER, BACK)
            self._registry.end(session)
        else:
            self._registry.let_go(session, BACK)

    def _offer(self, session: Session, publication: Publication, number: int, taken: list[Publication]) -> Reason:
        """Decide about one; what is taken is added to the list."""
        switch = self._switch
        if publication.qos == 2 and session.queue.is_repeated(number, publication):
            return Reason.OK
        reason = self._problem(publication, session.grant)
        if reason is not Reason.OK:
            return reason
        if publication.qos == 2:
            session.queue.take_in(number, publication.digest)
            if session.durable:
                switch.ledger.put_incoming(session, number)
        if publication.retain:
            publication = switch.retained.stamped(publication)
            if self._ring is not None:
                publication = msgspec.structs.replace(publication, said_under=session.said_under)
        self.counts.published[publication.qos] += 1
        switch.tell_published(publication)
        taken.append(publication)
        return Reason.OK

    def _problem(self, publication: Publication, grant: Grant) -> Reason:
        """Why somebody with this grant may not publish it; counted."""
        switch = self._switch
        if switch.audiences.audience(publication.topic).problem:
            self.counts.refuse("topic_name_invalid")
            return Reason.TOPIC_NAME_INVALID
        if grant.publish is not None and not grant.publish.matches(publication.values()):
            self.counts.refuse("not_authorized")
            return Reason.NOT_AUTHORIZED
        if publication.retain and not switch.retained.takes(publication):
            self.counts.refuse("retained_full")
            return Reason.QUOTA_EXCEEDED
        if publication.retain and problem_of(publication):
            self.counts.refuse("profile_invalid")
            return Reason.PAYLOAD_FORMAT_INVALID
        return Reason.OK

    def _settled(self, session: Session, outlet: Outlet | None, then: Callable[[], None]) -> None:
        session.queue.settling -= 1
        if session.outlet is outlet:
            then()

    def _on_content(self, origin: NodeId, number: int, content: Content | Repeated) -> None:
        """The next from another broker. What comes of it and its mark are written in this one turn."""
        moves, turning = self._moves, self._moves.turning
        match content:
            case Publication() | messages.Dealt() | Repeated():
                self._on_published(origin, number, content)
            case Forwarded():
                turning.on_forwarded(origin, content)
            case Place():
                moves.on_place(origin, content)
            case Fetch():
                moves.on_fetch(origin, content)
            case messages.Session():
                moves.arriving.on_session(origin, content)
            case Nothing():
                moves.on_nothing(origin, content)
            case Turn():
                turning.on_turn(origin, content)
            case Turned():
                turning.on_turned(origin, number, content)
            case Through():
                turning.on_through(origin, content)
            case Said():
                moves.speaking.on_said(origin, content)
            case Heard():
                moves.on_heard(content)
            case messages.Copy():
                moves.holding.on_copy(origin, content)
            case Drop():
                moves.holding.on_drop(origin, content)
            case Uncopied():
                moves.copying.on_uncopied(origin, content)
            case Given():
                moves.taking.on_given(origin, content)
            case Reserve():
                moves.reserving.on_reserve(origin, content)
            case Reserved():
                moves.reserving.on_reserved(origin, content)
            case Sought() | Found():
                moves.directory.hear(origin, content)
            case Placed():
                moves.on_placed(origin, content)
            case Recall():
                self._switch.recollection.on_recall(origin, content)
            case Recalled():
                self._switch.replays.on_recalled(origin, content)
            case Seated():
                self._seat(origin, content)
            case Hello():
                pass  # the fabric has told
            case messages.Ceded():
                moves.on_ceded(content)
            case messages.Retained(publication):
                if self._switch.retained.takes(publication):
                    self._switch.retained.keep(publication, origin, self.steady())
                else:
                    self.counts.refuse("retained_full")
        self.fabric.taken(origin, number)

    def _on_published(self, origin: NodeId, number: int, content: Publication | messages.Dealt | Repeated) -> None:
        """Whatever comes of it is stamped with where it came from."""
        self._switch.stamp = (origin, number)
        match content:
            case Publication():
                self.counts.taken += 1
                self._switch.spread(origin, (content,))
            case messages.Dealt(publication, share):
                self.counts.taken += 1
                self._switch.dealing.take(origin, publication, share)
            case Repeated(publication):
                self._switch.repeat(origin, publication)
        self._switch.stamp = None

    def _on_change(self) -> None:
        """Brokers or their interests are not what they were."""
        brokers = {name: self.fabric.disk_of(name) for name in sorted(self.fabric.sources(ANYTHING))}
        self._switch.audiences.follow(self.fabric.interests)
        new, gone = brokers.keys() - self._known.keys(), self._known.keys() - brokers.keys()
        reborn = [name for name, disk in brokers.items() if disk and self._known.get(name, 0) not in (0, disk)]
        if brokers != self._known:
            self._known = brokers
            self.store.put("meta", "brokers", 0, msgspec.msgpack.encode(brokers))
        if brokers or self.fabric.interests:
            self._switch.restate()
        elif not self._introduced:
            self.fabric.want(())  # nobody is there to want anything of, but whoever comes must hear of this broker
        self._introduced = True
        if new:
            self.fabric.send(sorted(new), Hello())
            self._moves.greet(new)
            self._tell_retained_of(new)
            self._greet_with_retained(new)
        for broker in reborn:
            self._moves.reborn(broker)
            self._tell_retained_of({broker})
            self._greet_with_retained({broker})
        for broker in sorted(gone):
            self._moves.given_up(broker)
        self._moves.turning.interests_changed()
        self._moves.sources_changed()

    def _greet_with_retained(self, new: set[NodeId]) -> None:
        """What this broker took, and what was taken by brokers that can no longer tell."""
        gone = {last.origin for last in self._switch.retained} - self._known.keys()
        self._answer_for({self._switch.name, *gone}, new)

    def _tell_retained_of(self, brokers: set[NodeId]) -> None:
        """What was taken by brokers that have lost their disks, or are new here, perhaps for that reason: they had told
        this one, and perhaps not all the others."""
        self._answer_for(brokers, self.fabric.sources(ANYTHING))

    def _answer_for(self, origins: set[NodeId], to: Iterable[NodeId]) -> None:
        """Tell what these took, and from now on as if this broker had taken it."""
        found = [last for last in self._switch.retained if last.origin in origins]
        for last in found if self.fabric.retains_everywhere else ():
            self.fabric.send(sorted(to), messages.Retained(last.publication), durable=True)
            self._switch.retained.answer_for(last, self._switch.name)

    def _tell_retained(self, broker: NodeId, filters: tuple[Filter, ...]) -> None:
        """Another broker wants more than before: what is retained here of these topics, cleared or not."""
        for last in self._switch.retained:
            if wants_topic(filters, last.publication.topic):
                self.fabric.send((broker,), messages.Retained(last.publication))

    def _cede_retained(self, broker: NodeId, cell: Cell) -> None:
        """A cell becomes another broker's, and with it what is retained for it."""
        assert self._ring is not None
        for last in self._switch.retained:
            if meets(cell, self._ring.targets.of_publication(last.publication)):
                self.fabric.send((broker,), messages.Retained(last.publication))

    def _return_retained(self, broker: NodeId, cell: Cell) -> None:
        """The owner of a cell has lost its disk. What is wanted here is as new as it was there; what is not wanted any
        more may have been replaced since."""
        assert self._ring is not None
        for last in self._switch.retained:
            topic, target = last.publication.topic, self._ring.targets.of_publication(last.publication)
            if meets(cell, target) and wants_topic(self._ring.stated, topic):
                self.fabric.send((broker,), messages.Retained(last.publication))

    def _rehome(self, cell: Cell) -> None:
        """A home of some clients has another owner, who may not know of them."""
        assert self._ring is not None
        self._moves.rehome(partial(self._ring.is_home, cell))

    def _load(self) -> None:
        """All that was here before a crash. Connections are not, so that wills and expiry begin to count."""
        now = self.steady()
        for owner, _, row in self.store.load("meta"):
            if owner == "brokers":
                self._known = msgspec.msgpack.decode(row, type=dict[str, int])
            elif owner == "gateways":
                self._gateways = set(msgspec.msgpack.decode(row, type=list[str]))
        for session in self._switch.ledger.load():
            session.sequence = self._registry.first_sequence()
            if session.standing.state is State.SHADOW:
                self._registry.add_shadow(session)
                for sub in session.subscriptions.values():
                    self._switch.add_sub(sub)
            elif session.standing.state is State.COMMITTED:
                self._moves.holding.loaded(session)
            else:
                self._registry.add(session)
                self.counts.waiting += len(session.queue.flying) + len(session.queue.waiting)
                if session.standing.state is State.ATTACHED:
                    session.become(Cause.LEFT)
                session.standing.left = now if session.standing.left is None else session.standing.left
                # To whom the client's publications went is not on the disk: to anybody, perhaps.
                self._switch.said_to[session.client] = set(self._known)
                self._moves.speaking.arrive(session)
            self._moves.loaded(session)

    def _wake(self) -> None:
        """What a crash has ended is told before anybody is let in: who comes back at once has a will, too."""
        if self._awake:
            return
        self._awake = True
        self._on_change()
        for client, will in self._switch.ledger.orphans():
            self._registry.say_orphan(client, will)
        for session in list(self._registry.sessions.values()):
            if session.standing.state in (State.RESTING, State.RESERVED):
                self._registry.rest(session)
        self._moves.wake()

    def _clean(self) -> None:
        self._switch.retained.clean(self.steady())
        self.host.after(CLEANING_S, self._clean)


def _nothing() -> None: ...


def _placed(subs: Sequence[Sub], then: Callable[[bool], None], in_place: bool) -> None:
    for sub in subs:
        sub.placed = sub.placed or in_place
    then(in_place)


def _accept(outlet: Outlet, acks: list[Ack]) -> None:
    for ack in acks:
        outlet.accepted(*ack)

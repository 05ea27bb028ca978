"""The broker that fronts speak to, in both worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from godwit.protocols.broker import messages
from godwit.protocols.broker.api import Capacity, Grant, Limits, Opening, Outlet, Reason, Subscription
from godwit.protocols.broker.dispatch import Switch
from godwit.protocols.broker.fabric.base import ANYTHING, Fabric
from godwit.protocols.broker.handoff.coordinator import Moves
from godwit.protocols.broker.handoff.copies import COPIES_BYTES_MAX, Foresight, Handoff
from godwit.protocols.broker.handoff.directory import Directory
from godwit.protocols.broker.handoff.reconcile import Reunion
from godwit.protocols.broker.interest.subscribers import Audience as Audience
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
    Place,
    Placed,
    Repeated,
    Reserve,
    Reserved,
    Said,
    Sought,
    Through,
    Turn,
    Turned,
    Uncopied,
)
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.registry import Granted as Granted
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.session.counts import Counts
from godwit.protocols.broker.session.lifecycle import Cause, State
from godwit.protocols.broker.session.state import Session
from godwit.protocols.broker.steady import Steady
from godwit.protocols.broker.store import Store
from godwit.protocols.host import Host, NodeId, Record

CLEANING_S = 600.0
"""How often what has expired is looked for."""

Ack = tuple[int, int, Reason]


class Broker:
    """Fronts call these; answers that must wait for the disk or for another broker come through the outlet.

    It loads what the store has, and listens to the fabric from the start. `handoff` says how sessions follow their
    clients; with "proactive" the `neighbors` get copies of those that rest here (None: nobody does), and this broker
    holds copies of others up to `copies_bytes_max`. The `directory` knows which broker has whose session (None: every
    broker is told). `limits` are those of sessions whose clients have not been here
    since the start. With `tracing` every publication and delivery is a record of the host's trace.
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
    ) -> None:
        self.host = host
        self.store = store
        self.fabric = fabric
        self.clock = clock
        """Seconds since 1970."""
        steady = Steady(host, store, clock)
        self.steady = steady.now
        """For ages and expiry: about the same, but it goes on whatever becomes of the calendar."""
        self._switch = Switch(host, store, fabric, clock, self.steady, tracing)
        self._registry = Registry(self._switch, Reunion(self._switch), limits or Limits())
        self._moves = Moves(
            self._registry, session_wait_s, self.publish, self._begin, handoff, neighbors, copies_bytes_max, directory
        )
        self.capacity = self._switch.retained.capacity = capacity
        self._known: dict[NodeId, int] = {}
        """The other brokers, each with the name of its disk, 0 where that has not been heard."""
        self._introduced = False
        self._load()
        fabric.clock = self.steady
        fabric.on_content = self._on_content
        fabric.on_change = self._on_change
        host.after(0.0, self._on_change)
        host.after(0.0, self._say_orphans)
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
        }

    @property
    def retained_count(self) -> int:
        return len(self._switch.retained)

    @property
    def on_published(self) -> Callable[[Publication], None] | None:
        """Called with every publication that a client of this broker makes, as an archive wants it."""
        return self._switch.on_published

    @on_published.setter
    def on_published(self, listener: Callable[[Publication], None] | None) -> None:
        self._switch.on_published = listener
        self._switch.audiences.watched = self._switch.tracing or listener is not None
        self._switch.audiences.changed()

    def tell_bounds(self, listener: Callable[[Session, str], None]) -> None:
        """Call it with a session and a reason, `queue` or `age`, when a bound drops the first thing for that reason."""
        self._switch.flows.on_bound = listener

    def prepare_with(self, prepared: Callable[[], bool]) -> None:
        """`prepared()` says whether the compiled index can be had at once, and has it loaded if not: until then
        conditions are asked one by one."""
        self._switch.audiences.prepare_with(prepared)

    def open(self, opening: Opening, outlet: Outlet) -> None:
        """A client wants in: `outlet.opened` or `outlet.refused` follows, now or later."""
        if not self._may_will(opening, outlet):
            return
        session = self._registry.sessions.get(opening.client)
        # Above that of the session which ends before this one begins.
        epoch = self._moves.new_epoch(opening) if opening.clean else 0
        if session is not None and not opening.clean and self._moves.is_elsewhere(session, opening):
            self._moves.send_after(session, opening)
            session = None
        if session is not None and not opening.clean and self._moves.reserving.holder(session):
            session = None  # perhaps: that one says it
        if session is not None:
            self._take_over(session, opening)
            if not opening.clean:
                self._registry.attach(session, opening, outlet, present=True)
                self._moves.announce(session)
                return
        elif not opening.clean and self._moves.open_elsewhere(opening, outlet):
            return
        waiting = self._moves.stop_waiting(opening.client)
        if waiting is not None and waiting.outlet is not None:
            waiting.outlet.refused(Reason.SESSION_TAKEN_OVER, "the client has connected again")
        self._begin(opening, outlet, epoch)

    def _begin(self, opening: Opening, outlet: Outlet, epoch: int = 0) -> None:
        """A session that is new, here and everywhere."""
        if len(self._registry.sessions) >= self.capacity.sessions_max:
            self.counts.refuse("sessions_full")
            most = self.capacity.sessions_max
            outlet.refused(Reason.QUOTA_EXCEEDED, f"this broker has {most} sessions, and takes no new ones")
            return
        session = self._registry.create(opening, epoch or self._moves.new_epoch(opening), clean=opening.clean)
        self._moves.announce(session, clean=opening.clean)
        self._registry.attach(session, opening, outlet, present=False)
        self._hurry(session)

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
        if session.standing.will is not None and session.standing.will.delay_s == 0:
            self._registry.say_will(session)
        self._registry.rest(session)

    def give_up(self, opening: Opening, outlet: Outlet) -> None:
        """The connection has ended before `opened` came."""
        self._moves.give_up(opening, outlet)

    def subscribe(self, session: Session, wanted: Sequence[Subscription]) -> list[Granted]:
        """Each by itself: a bad one is refused with its reason, the others work. Retained publications follow. What is
        granted to a durable session is on the disk once the store has settled: tell the client then."""
        return [self._registry.subscribe(session, one) for one in wanted]

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
            self._switch.spread(self._switch.name, taken)
        if not acks:
            return
        if ledger.writes != before or session.queue.settling:
            session.queue.settling += 1
            self.store.settled(partial(self._settled, session, outlet, acks))
        else:
            for ack in acks:
                outlet.accepted(*ack)

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

    def _take_over(self, session: Session, opening: Opening) -> None:
        """The client is back; a connection that is still there ends, and the session too where it starts clean."""
        will, connected = session.standing.will, session.outlet is not None
        if will is not None and (opening.clean or (connected and will.delay_s == 0)):
            self._registry.say_will(session)
        session.standing.will = None
        if connected:
            self.counts.taken_over += 1
            self._registry.hang_up(session, Reason.SESSION_TAKEN_OVER, "the client has connected again")
        if opening.clean:
            self._registry.end(session)

    def _offer(self, session: Session, publication: Publication, number: int, taken: list[Publication]) -> Reason:
        """Decide about one; what is taken is added to the list."""
        switch = self._switch
        if publication.qos == 2 and number in session.queue.incoming:
            return Reason.OK
        problem = switch.audiences.audience(publication.topic).problem
        if problem:
            self.counts.refuse("topic_name_invalid")
            return Reason.TOPIC_NAME_INVALID
        grant = session.grant.publish
        if grant is not None and not grant.matches(publication.values()):
            self.counts.refuse("not_authorized")
            return Reason.NOT_AUTHORIZED
        if publication.retain and not switch.retained.takes(publication):
            self.counts.refuse("retained_full")
            return Reason.QUOTA_EXCEEDED
        if publication.qos == 2:
            session.queue.incoming.add(number)
            if session.durable:
                switch.ledger.put_incoming(session, number)
        if publication.retain:
            publication = switch.retained.stamped(publication)
        self.counts.published[publication.qos] += 1
        if switch.tracing:
            self.host.trace(Record("published", event=publication.id, client=publication.publisher))
        if switch.on_published is not None:
            switch.on_published(publication)
        taken.append(publication)
        return Reason.OK

    def _settled(self, session: Session, outlet: Outlet, acks: list[Ack]) -> None:
        session.queue.settling -= 1
        if session.outlet is outlet:
            for ack in acks:
                outlet.accepted(*ack)

    def _on_content(self, origin: NodeId, number: int, content: Content | Repeated) -> None:
        """The next from another broker. What comes of it and its mark are written in this one turn."""
        moves, turning = self._moves, self._moves.turning
        match content:
            case Publication():
                self.counts.taken += 1
                self._switch.stamp = (origin, number)
                self._switch.spread(origin, (content,))
                self._switch.stamp = None
            case Repeated(publication):
                self._switch.stamp = (origin, number)
                self._switch.repeat(origin, publication)
                self._switch.stamp = None
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
                moves.on_placed(content)
            case Hello():
                pass  # the fabric has told
            case messages.Retained(publication):
                if self._switch.retained.takes(publication):
                    self._switch.retained.keep(publication, origin, self.steady())
                else:
                    self.counts.refuse("retained_full")
        self.fabric.taken(origin, number)

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
            self._greet_with_retained(new)
        for broker in reborn:
            self._moves.reborn(broker)
            self._greet_with_retained({broker})
        for broker in sorted(gone):
            self._moves.given_up(broker)
        self._moves.turning.interests_changed()

    def _greet_with_retained(self, new: set[NodeId]) -> None:
        """What this broker took, and what was taken by brokers that can no longer tell."""
        for last in self._switch.retained:
            if last.origin == self._switch.name or last.origin not in self._known:
                self.fabric.send(sorted(new), messages.Retained(last.publication), durable=True)

    def _load(self) -> None:
        """All that was here before a crash. Connections are not, so that wills and expiry begin to count."""
        now = self.steady()
        for owner, _, row in self.store.load("meta"):
            if owner == "brokers":
                self._known = msgspec.msgpack.decode(row, type=dict[str, int])
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
                self.host.after(0.0, partial(self._rest, session))
            self._moves.loaded(session)

    def _say_orphans(self) -> None:
        for client, will in self._switch.ledger.orphans():
            self._registry.say_orphan(client, will)

    def _rest(self, session: Session) -> None:
        if session.standing.state in (State.RESTING, State.RESERVED):
            self._registry.rest(session)

    def _clean(self) -> None:
        self._switch.retained.clean(self.steady())
        self.host.after(CLEANING_S, self._clean)


def _nothing() -> None: ...

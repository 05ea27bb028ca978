"""How sessions move between brokers: docs/broker.md, "A session moves"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from godwit.protocols.broker.api import AWAY, BACK, UNSURE, Opening, Outlet, Reason
from godwit.protocols.broker.fabric.base import ANYTHING
from godwit.protocols.broker.handoff.abroad import Abroad, is_abroad
from godwit.protocols.broker.handoff.copies import COPIES_BYTES_MAX, Copying, Foresight, Handoff
from godwit.protocols.broker.handoff.cutover import Turning
from godwit.protocols.broker.handoff.directory import NOWHERE, At, Directory, Everywhere, Places
from godwit.protocols.broker.handoff.objections import Contested, Objections
from godwit.protocols.broker.handoff.publisher_order import Offered, Speaking
from godwit.protocols.broker.handoff.standby import Holding, Reserving, Taking
from godwit.protocols.broker.handoff.transfer import Arriving, Leaving
from godwit.protocols.broker.messages import Ceded, Claim, Fetch, Heard, HomeEntry, Nothing, Place, Placed
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.session.lifecycle import OURS, State
from godwit.protocols.broker.session.memory import ages_of, tokens_of
from godwit.protocols.broker.session.proofs import is_proven, proof_of
from godwit.protocols.broker.session.state import Copy, Session
from godwit.protocols.host import NodeId, Record, Timer

ASKED_MAX = 16
"""So many brokers may send a fetch on to another before the client gets a new session."""

EPOCHS_MAX = 256
"""So often a session may move and be copied while calendars do not go on. It is not larger, since two sessions that
begin within so many milliseconds of a third, each unknown to the other's broker, are told apart by names alone."""
EPOCH_DIGITS_MAX = 19
UNMET_S = 24 * 3600.0
"""So long a broker is waited for of which only a client has told, as a tree waits for one that it does not hear."""
EPOCH_AHEAD_S = 366 * 86_400.0
"""So far ahead of this broker's a calendar may be by which another one draws epochs."""


class Waiting:
    """A client that is here while its session is elsewhere. Without outlet it has left again."""

    def __init__(self, opening: Opening, outlet: Outlet | None, epoch: int, at: At, timer: Timer) -> None:
        self.opening = opening
        self.outlet = outlet
        self.visited = outlet is not None
        """Whether the client has been here at all; else a gateway asks for whom it leads to the session."""
        self.epoch = epoch
        """For a new session, should it get one: from when the client came. It may have gone on since, unnoticed, and
        what it has begun elsewhere by then is newer."""
        self.at = at
        """Where the session is, as far as it is known."""
        self.timer = timer
        self.abroad = False
        """It is in another site: a second one would not go into it."""
        self.former: NodeId = ""
        """A session of the client is here, and the one in which it was last comes from this broker into that first."""
        self.asked = 1
        """How many brokers were."""
        self.wanted_by: tuple[int, NodeId] | None = None
        """Another broker where the client has appeared since: it gets the session as soon as it is here."""

    @property
    def source(self) -> NodeId:
        return self.at.broker

    @property
    def is_deserted(self) -> bool:
        """Nobody waits any more, neither the client nor another broker."""
        return self.outlet is None and self.wanted_by is None


class Moves:
    """Clients that arrive before their sessions, sessions that leave and arrive, and who has which."""

    def __init__(
        self,
        registry: Registry,
        session_wait_s: float,
        publish: Callable[[Session, Offered], None],
        begin: Callable[[Opening, Outlet, int], None],
        handoff: Handoff = "proactive",
        neighbors: Foresight | None = None,
        copies_bytes_max: int = COPIES_BYTES_MAX,
        directory: Directory | None = None,
    ) -> None:
        self.registry = registry
        self.switch = registry.switch
        self.fabric = registry.switch.fabric
        self.name = registry.switch.name
        self.session_wait_s = session_wait_s
        self.begin = begin
        """Gives a client a new session of this epoch, where nobody has one."""
        self.follows = handoff != "durable"
        """Whether sessions go where their clients go."""
        proactive = handoff == "proactive"
        self.places = Places(registry.switch.store)
        self.directory: Directory = directory if directory is not None else Everywhere(self.fabric)
        self.directory.serve(self._here, self.places.known.get, self.settled)
        registry.reunion.is_settled = self._is_settled
        registry.reunion.are_missing = self._are_missing
        self.waiting: dict[str, Waiting] = {}
        self.turning = Turning(registry, self.places)
        self.speaking = Speaking(registry, session_wait_s, publish)
        makes = proactive and neighbors is not None
        self.copying = Copying(registry, self.next_epoch, neighbors, makes=makes)
        self.holding = Holding(registry, self.turning, copies_bytes_max, holds=proactive)
        self.leaving = Leaving(registry, self.places, self.turning, self.speaking, self.copying)
        self.taking = Taking(self)
        self.arriving = Arriving(self)
        self.reserving = Reserving(self)
        self.objections = Objections(self)
        self.abroad = Abroad(self)
        registry.moves = self

    # A client arrives

    def open_elsewhere(self, opening: Opening, outlet: Outlet) -> bool:
        """Fetch the session from wherever it is; False where no broker is known to have one."""
        if self._replace_waiting(opening, outlet):
            return True
        if self.directory.complete or not self.follows:
            return self._open_at_place(opening, outlet)
        copy, at = self.registry.copies.get(opening.client), self._at(opening)
        if copy is not None and self.fabric.is_known(at.broker) and self._fits(copy, opening, at):
            # Its token proves that the client was nowhere since: nobody need be asked where its session is.
            self.taking.open(copy, self.new_epoch(opening), opening, outlet)
            return True
        waiting = self._wait(opening, outlet, NOWHERE)
        # Where the client shows who had it, and nobody here has met that one, only homes can say where it is.
        patient = self._unmet(opening) is not None
        then, is_open = partial(self._answered, waiting), partial(self._seeks, waiting)
        self.directory.ask(opening.client, then, is_open, patient=patient)
        return True

    def _open_at_place(self, opening: Opening, outlet: Outlet) -> bool:
        at, copy = self._at(opening), self.registry.copies.get(opening.client)
        is_known = self.fabric.is_known(at.broker)
        if copy is not None and is_known and self._fits(copy, opening, at):
            self.taking.open(copy, self.new_epoch(opening), opening, outlet)
            return True
        if self.follows and is_abroad(at.broker):
            return self.abroad.open(opening, outlet, at)
        if not self.follows or at.broker == self.name or not is_known:
            return False
        self.wait_for(opening, outlet, at)
        return True

    def _fits(self, copy: Copy, opening: Opening, at: At) -> bool:
        """Whether the client shows that it was nowhere since the copy was made of its session; unless another one is
        arriving here from another site, which cannot give way yet."""
        present = self.registry.sessions.get(opening.client)
        if present is not None and present.standing.arriving:
            return False
        return copy.source == at.broker and opening.token == copy.session.carried.token != ""

    def wait_for(self, opening: Opening, outlet: Outlet | None, at: At) -> Waiting:
        """Ask there for the session, unless that has been done."""
        waiting = self.waiting.get(opening.client)
        if waiting is None:
            waiting = self._wait(opening, outlet, at)
            self._fetch(opening.client, at.broker)
        return waiting

    def wait_abroad(self, opening: Opening, outlet: Outlet | None, at: At) -> None:
        """It is in another site, and this broker of ours sees to it that it comes."""
        waiting = self.waiting.get(opening.client) or self._wait(opening, outlet, at)
        waiting.abroad, waiting.at = True, at

    def _late(self, client: str) -> None:
        waiting = self.waiting.get(client)
        if waiting is not None and (self._is_abroad(waiting) or self.abroad.is_chased(client)):
            self.stop_waiting(client)
            self.abroad.late(waiting.outlet)
        else:
            self._give_way_to_former(client)
            self._new_session(client)

    def _is_abroad(self, waiting: Waiting) -> bool:
        """Whether it waits for another site, or would, had anybody of our own answered."""
        return waiting.abroad or (not waiting.source and is_abroad(self._at(waiting.opening).broker))

    def begin_anew(self, client: str) -> None:
        """Nobody has a session of this client."""
        self._new_session(client)

    def _wait(self, opening: Opening, outlet: Outlet | None, at: At) -> Waiting:
        timer = self.switch.host.after(self.session_wait_s, partial(self._late, opening.client))
        waiting = self.waiting[opening.client] = Waiting(opening, outlet, self.new_epoch(opening), at, timer)
        return waiting

    def _answered(self, waiting: Waiting, at: At | None, is_sure: bool) -> None:
        """The directory has said where the session is, or cannot. Where it has none and is not sure, the client gets a
        new session as if its own could not be had now: should there be one, what it kept is added."""
        client, outlet = waiting.opening.client, waiting.outlet
        if at is not None and at.broker != self.name:
            self.places.put(client, at)
        if not self._seeks(waiting):
            return  # it has come, or is being fetched from where somebody else said that it is
        if not is_sure and outlet is not None and waiting.wanted_by is None and not self._at(waiting.opening).broker:
            self._new_session(client)
            return
        self.stop_waiting(client)
        if waiting.wanted_by is not None:
            epoch, to = waiting.wanted_by
            self.fabric.send((to,), Nothing(client, epoch, *self._lead(client)))
            if outlet is not None:
                outlet.refused(Reason.SESSION_TAKEN_OVER, AWAY)
        elif outlet is not None and not self._open_at_place(waiting.opening, outlet):
            session = self.registry.sessions.get(client)
            if session is not None and session.standing.arriving:
                self.let_in(session, waiting, present=True)  # it came from another site meanwhile, for whoever asked
            else:
                self.begin(waiting.opening, outlet, self._epoch_for(waiting))

    def _seeks(self, waiting: Waiting) -> bool:
        """Whether nobody has said yet where the session is."""
        return self.waiting.get(waiting.opening.client) is waiting and not waiting.source

    def _is_settled(self, client: str) -> bool:
        """Whether no older session can turn up, neither here nor from another site, and nobody claims this one, which
        would go into another then."""
        if self.abroad.is_awaited(client) or client in self.objections.contested:
            return False
        return self.directory.is_settled(client)

    def settled(self, client: str) -> None:
        """All homes know that the session is here, and have said where it was before; or no other site has one."""
        session = self.registry.sessions.get(client)
        if session is not None and session.carried.memory is not None:
            self.turning.go_on(session)

    def _here(self, client: str) -> At | None:
        """A session of this broker that others may hear of."""
        session = self.registry.sessions.get(client)
        return At(session.standing.epoch, self.name) if session is not None and session.standing.announced else None

    def _lead(self, client: str) -> tuple[NodeId, int]:
        """Where somebody who asks in vain may ask next."""
        at = self.places.known.get(client)
        return (at.broker, at.epoch) if at is not None else ("", 0)

    def is_elsewhere(self, session: Session, opening: Opening) -> bool:
        """Whether the client has been let in at another broker since it was here, and nobody has told this one yet."""
        shown = self._told(opening)
        if shown is None or not (self.fabric.is_known(shown.broker) or self.abroad.leads_to(shown.broker)):
            return False
        if is_abroad(shown.broker) and _is_unheard_of(session, opening):
            return True
        return At(session.standing.epoch, self.name) < shown or self.taking.was_in_vain(session, shown, opening.token)

    def _has_newer(self, session: Session, opening: Opening) -> bool:
        """Whether the client was let in elsewhere since, as it shows; unless the session comes from there."""
        shown = self._told(opening)
        elsewhere = shown is not None and shown.broker not in (self.name, session.standing.came_from)
        return elsewhere and self.is_elsewhere(session, opening)

    def is_of_another(self, session: Session, opening: Opening) -> bool:
        """Whether the client shows a token of another session than this one, which it was in last: either it has
        started this one clean and has not heard so, or the other one is no more. Sessions that stay are each by
        themselves."""
        shown, carried = self._told(opening), session.carried
        if shown is None or not self.follows or opening.token.removeprefix(UNSURE) == carried.last:
            return False
        if carried.unshown and shown < At(*min(ages_of(carried))):
            return True
        born = At(*carried.age) if carried.age[0] == carried.started else At(carried.started, "")
        return shown > At(session.standing.epoch, self.name) or (carried.started > 0 and shown < born)

    def is_last(self, session: Session, opening: Opening) -> bool:
        """Whether the client shows that it was at no later place than this: then epochs, and no calendars, tell in what
        order it was where."""
        shown = self._told(opening)
        return shown is not None and shown.epoch <= session.standing.epoch

    def return_to(self, session: Session, opening: Opening, epoch: int = 0) -> None:
        """Its client comes back to it, and would get a new session of this epoch if there were none; 0: it has come
        just now. A client without a token may have had another session since, of which nobody
        here has heard: as soon as it shows one again it must not get again what it gets from then on. So the session
        is as old as this knock, and remembers what it has until all others have answered.

        The same holds at once for a client that has knocked elsewhere and had no answer: it may have been let in there.
        It holds for one that has started it clean, has not heard so, and may have started clean elsewhere
        since: it is told once more that its session is new. And it holds for one that proves that it is here while
        another broker claims its session, which may have begun one for it that will go into this."""
        carried = session.carried
        if not self.follows or opening.expiry_s == 0:
            return
        told_new = carried.strange and carried.started > 0 and carried.memory is None
        claims = self.objections.against(session, opening)
        is_due = bool(claims) or (carried.unproven if opening.token else told_new) or opening.token.startswith(UNSURE)
        carried.unproven = carried.unproven or not opening.token
        if not is_due or (self.directory.complete and not self.fabric.sources(ANYTHING)):
            return  # or there is nobody with whom it could have been
        carried.unproven = not opening.token
        if session.inflow.is_unconfirmed and carried.memory is not None:
            carried.memory.stays = True  # it began at this knock, and others hear of it when its source has spoken
            return
        carried.strange = carried.strange or self.is_of_another(session, opening)
        unmet = self._unmet(opening, since=At(session.standing.epoch, self.name))
        # However often it moves it stays below one that another broker began for a knock at the same moment.
        least, knock = self.next_epoch(opening.client) + EPOCHS_MAX, epoch or self.new_epoch(opening)
        epoch = max((least, knock - EPOCHS_MAX, *(one.epoch + 1 for one in claims)))
        session.standing.epoch, session.standing.announced = epoch, False
        self.registry.reunion.begin_again(session, () if unmet is None else (unmet.broker,))
        self._hope(session)

    def _unmet(self, opening: Opening, since: At = NOWHERE) -> At | None:
        """Where the client was, not before then, if that is a broker that nobody has met here. It counts as known only
        when it is met: a client may name any, and who is known is waited for by all sessions that remember."""
        shown = self._told(opening)
        if shown is None or shown < since or is_abroad(shown.broker):
            return None
        return shown if shown.broker != self.name and not self.fabric.is_known(shown.broker) else None

    def begun(self, session: Session, opening: Opening) -> None:
        """It is new, and nobody has another one of whom this broker knows. Its client may know better."""
        unmet, is_alone = self._unmet(opening), not self.fabric.sources(ANYTHING)
        if unmet is None or opening.clean or opening.expiry_s == 0 or not self.follows:
            return
        if not (self.directory.complete and is_alone):
            self.registry.reunion.begin(session, "", 0, unmet)
            self._hope(session)

    def recognize(self, session: Session) -> None:
        """It has come, or another has gone into it. Whoever gave the client the last token in that need not be met."""
        memory = session.carried.memory
        if memory is not None and memory.unmet:
            places = self._places_of(session)
            met = {one for one in memory.unmet if At(memory.awaited.get(one, 0), one) in places}
            memory.unmet -= {self.name, *met}
            self._hope(session)

    def _are_missing(self, session: Session) -> bool:
        memory, places = session.carried.memory, self._places_of(session)
        return memory is not None and any(At(since, broker) not in places for broker, since in memory.awaited.items())

    def _places_of(self, session: Session) -> set[At | None]:
        """Where it, and each that has gone into it, gave its client the last token."""
        return {self._place_in(token) for token in tokens_of(session.carried).values()}

    def _hope(self, session: Session) -> None:
        """It waits for brokers that are yet to be met, but not for ever: a client may name any."""
        if session.carried.memory is not None and session.carried.memory.unmet:
            self.switch.host.after(UNMET_S, partial(self._despair, session))

    def _despair(self, session: Session) -> None:
        memory = session.carried.memory
        if memory is not None and memory.unmet and self.registry.sessions.get(session.client) is session:
            memory.unmet.clear()
            self.switch.ledger.put_session(session)
            self.turning.go_on(session)

    def waits_for_former(self, session: Session, opening: Opening, outlet: Outlet) -> bool:
        """Whether the client first waits for another session, in which it was last, and which has not come into this
        one yet: what this one has beside that the client may have had there."""
        waiting, former = self.waiting.get(opening.client), self._former(session, opening)
        if waiting is not None and (former is not None or self._may_come(session, opening, waiting.former)):
            return self._replace_waiting(opening, outlet)
        if former is None:
            self._refuse_waiting(self.stop_waiting(opening.client))
            return False
        if session.expiry_timer is None:
            session.standing.left = self.switch.steady()
            self.registry.rest(session)
        self._wait(opening, outlet, former).former = former.broker
        proof = "" if self.directory.complete else proof_of(opening.token)
        self.fabric.send((former.broker,), Fetch(opening.client, self.next_epoch(opening.client), proof=proof))
        return True

    def _former(self, session: Session, opening: Opening) -> At | None:
        """From where the session that the client shows comes into this one, which ranks as newer. None where none does,
        as far as is known, or where it has been waited for in vain and the client was not there again."""
        memory, shown = session.carried.memory, self._told(opening)
        if memory is None or shown is None or not self.follows:
            return None
        if shown.broker == self.name:
            united, shadows = tokens_of(session.carried), self.registry.shadows.get(opening.client, {}).values()
            left = [
                At(one.standing.next_epoch, one.standing.moved_to) for one in shadows if one.carried.age not in united
            ]
            shown = max(left, default=NOWHERE)
        if is_abroad(shown.broker) or not self._may_come(session, opening, shown.broker):
            return None
        return shown if memory.awaited.get(shown.broker, 0) < shown.epoch else None

    def _may_come(self, session: Session, opening: Opening, former: NodeId) -> bool:
        """Whether the session that the client shows may come from this broker into the one that is here. Where that
        broker has none now it may be on its way to there, or from there to here: only an answer to a mark tells. The
        last token in a copy is that of the session which was taken up out of it, too."""
        memory, token = session.carried.memory, opening.token.removeprefix(UNSURE)
        if memory is None or token in ("", memory.last, *tokens_of(session.carried).values()):
            return False
        return self.fabric.is_known(former) and former not in memory.answered

    def _awaits_former(self, client: str) -> bool:
        session, waiting = self.registry.sessions.get(client), self.waiting.get(client)
        if session is None or waiting is None:
            return False
        return self._may_come(session, waiting.opening, waiting.former)

    def answered(self, client: str) -> None:
        """Somebody has said whether it has an older session."""
        session, waiting = self.registry.sessions.get(client), self.waiting.get(client)
        if session is not None and waiting is not None and waiting.former and not self._awaits_former(client):
            self.go_on_with(session)

    def united(self, session: Session, origin: NodeId) -> None:
        """Another one has come from this broker and gone into it. Whoever waits here for a third goes on: for that in
        which the client was last, or for the word of the holder of a copy, who may have let it in."""
        waiting, holder = self.waiting.get(session.client), self.reserving.holder(session)
        if waiting is None or (holder not in ("", origin) and waiting.source == holder):
            return
        if not self._awaits_former(session.client):
            self.stop_waiting(session.client)
            if not waiting.is_deserted:
                self.let_in(session, waiting, present=True)

    def _give_way_to_former(self, client: str) -> None:
        """Where the session that the client shows does not come in time, this one goes there, and the client gets a new
        one: what it had there is known when both have come into that."""
        session, waiting = self.registry.sessions.get(client), self.waiting.get(client)
        if session is None or waiting is None or waiting.outlet is None or session.standing.arriving:
            return
        former = self._former(session, waiting.opening)
        if former is not None and waiting.wanted_by is None:
            self.leaving.transfer(session, former.broker)

    def send_after(self, session: Session, opening: Opening) -> None:
        """To where its client was let in since, so that the newer session there is the one that goes on; unless nobody,
        not even the client, has ever heard of this one."""
        shown = self._told(opening)
        assert shown is not None
        if is_abroad(shown.broker):
            return  # the newer one comes here, and finds it
        if self.taking.was_in_vain(session, shown, opening.token):
            self.taking.give_way(session)
        elif self._at(opening).broker == shown.broker and self.reserving.presume(session, shown.broker):
            return  # its word comes before the session does
        self.leaving.transfer(session, shown.broker)

    def _at(self, opening: Opening) -> At:
        """Where the session is: as the client knows, as the others have said, or as a copy of it shows."""
        at, copy = self.places.known.get(opening.client), self.registry.copies.get(opening.client)
        shown = self._told(opening)
        session = self.registry.sessions.get(opening.client)
        if session is not None and not self.is_elsewhere(session, opening):
            return At(session.standing.epoch, self.reserving.holder(session))
        can_come = shown is not None and (self.fabric.is_known(shown.broker) or self.abroad.leads_to(shown.broker))
        if shown is not None and can_come and (at is None or at < shown):
            return shown
        if at is not None:
            return at
        return At(0, opening.previous or (copy.source if copy is not None else ""))

    def _told(self, opening: Opening) -> At | None:
        """Where a session was when its client was given the token that it shows; None where it shows none of ours. A
        client may show anything: it decides who is asked, and whether the client is told that it is new."""
        return self._place_in(opening.token)

    def _place_in(self, token: str) -> At | None:
        epoch, _, rest = token.removeprefix(UNSURE).partition(".")
        broker = rest.partition(".")[2]
        if "/" in broker:
            broker = self.abroad.local(broker)
        return At(int(epoch), broker) if broker and epoch.isdecimal() and len(epoch) < EPOCH_DIGITS_MAX else None

    def pass_on(self, session: Session) -> bool:
        """To where it is wanted by now, if that is elsewhere."""
        newer = self.places.known.get(session.client)
        if newer is None or newer < At(session.standing.epoch, self.name) or not self.fabric.is_known(newer.broker):
            return False
        shadows = self.registry.shadows.get(session.client, {}).values()
        if any(one.standing.moved_to == newer.broker and one.carried.age < session.carried.age for one in shadows):
            # An older one has gone there, and only moves more often: that one comes to this.
            session.standing.epoch, session.standing.announced = newer.epoch + 1, False
            return False
        self.leaving.transfer(session, newer.broker)
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
            waiting.outlet.refused(Reason.SESSION_TAKEN_OVER, BACK)
        proof = proof_of(waiting.opening.token)
        waiting.opening, waiting.outlet, waiting.epoch = opening, outlet, self.new_epoch(opening)
        waiting.visited = True
        shown = self._told(opening)
        if shown is not None and waiting.at < shown and self.fabric.is_known(shown.broker):
            # It was let in elsewhere meanwhile, and is back.
            waiting.at = shown
            self._fetch(opening.client, shown.broker)
        elif shown is not None and waiting.abroad and is_abroad(shown.broker) and proof_of(opening.token) != proof:
            self.abroad.open(opening, outlet, shown)
        return True

    def stop_waiting(self, client: str) -> Waiting | None:
        waiting = self.waiting.pop(client, None)
        if waiting is not None:
            waiting.timer.cancel()
        return waiting

    def next_epoch(self, client: str) -> int:
        """Above all that is known of this client."""
        at, live = self.places.known.get(client), self.registry.sessions.get(client)
        shadows, copy = self.registry.shadows.get(client, {}).values(), self.registry.copies.get(client)
        known = max(at.epoch if at else 0, copy.epoch if copy else 0, *(one.standing.next_epoch for one in shadows), 0)
        if live is not None:
            known = max(known, live.standing.epoch, live.standing.copied)
        return known + 1

    def new_epoch(self, opening: Opening) -> int:
        """For a session that begins here, though another may exist: so far above all that is known here, or to the
        client, that the other one stays below however often it moves and is copied. The calendar only helps where
        nobody knows of the other one."""
        shown = self._told(opening)
        known = max(self.next_epoch(opening.client), shown.epoch if shown is not None else 0)
        return max(known + EPOCHS_MAX if known > 1 else 0, int(self.switch.clock() * 1000))

    def _epoch_for(self, waiting: Waiting) -> int:
        """As of when it came, unless something newer has been heard of since."""
        client = waiting.opening.client
        return waiting.epoch if self.next_epoch(client) <= waiting.epoch else self.new_epoch(waiting.opening)

    def announce(self, session: Session, *, clean: bool = False) -> None:
        """Tell all brokers that a session that may outlive its connection is here."""
        at = At(session.standing.epoch, self.name)
        known = self.places.known.get(session.client)
        if session.standing.announced or not self.follows:
            return
        if session.carried.expiry_s > 0:
            session.standing.announced = True
            source = next((way.source for way in session.inflow.upstreams if way.main and not way.copy), "")
            claims = session.carried.claims
            self.directory.tell(
                Place(session.client, session.standing.epoch, clean=clean, claims=claims, source=source)
            )
            if self.abroad.gateway is not None:
                self.abroad.claimed(session.client, at)
            if session.carried.memory is not None:
                others = self.fabric.sources(ANYTHING)
                self._ask_everybody(session, others)
                if not others:  # nobody answers, so that it would never be found settled
                    self.switch.host.after(0.0, partial(self.settled, session.client))
        elif clean and (known is not None or not self.directory.complete):
            self.directory.tell(Place(session.client, session.standing.epoch, gone=True))
        self.places.forget(session.client, at)
        if session.standing.announced:
            self.switch.ledger.put_session(session)

    def ended(self, session: Session) -> None:
        """It was here, and is nowhere else."""
        self.copying.drop(session)
        if session.standing.announced:
            self.directory.tell(Place(session.client, session.standing.epoch, gone=True))

    def _fetch(self, client: str, source: NodeId) -> None:
        copy, epoch = self.holding.get(client, source), self.next_epoch(client)
        proof = self.abroad.must_prove(client)
        if proof is not None:
            # Only its holder knows whether another site may have the session; until then it is in nobody's hands.
            self.fabric.send((source,), Fetch(client, epoch, proof=proof, outside=True))
            return
        if copy is not None:
            self.reserving.ask(copy, epoch)
            self.holding.commit(copy)
        waiting = self.waiting.get(client)
        proof = "" if waiting is None or self.directory.complete else proof_of(waiting.opening.token)
        self.fabric.send((source,), Fetch(client, epoch, copy.epoch if copy is not None else 0, proof=proof))
        if copy is not None:
            self.reserving.written_soon(copy)

    def _new_session(self, client: str, *, for_good: bool = False) -> None:
        """The session cannot be had now, or is lost for good. Where there is a copy that is good the client gets that;
        else a new session, and should the old one turn up, what it kept is added."""
        waiting = self.stop_waiting(client)
        if waiting is None or waiting.is_deserted:
            self.abroad.in_vain(client)
            return
        session, copy = self._kept_for(waiting), self.holding.get(client, waiting.source)
        if session is None and copy is not None and (for_good or _is_good(copy, waiting.opening)):
            self.arrive(self.taking.claim(copy, self._epoch_for(waiting), waiting.opening.token), waiting)
            return
        if session is None and not waiting.visited and waiting.wanted_by is not None:
            # How long it is to last only the client can say: whoever has the client may begin one.
            epoch, to = waiting.wanted_by
            self.fabric.send((to,), Nothing(client, epoch, *self._lead(client)))
            self.abroad.in_vain(client)
            return
        present = session is not None
        if session is not None:
            self.reserving.free(session)
        else:
            # Where no home has answered, the client itself may know where it was.
            at = waiting.at if waiting.source else self._at(waiting.opening)
            source = at.broker if self.fabric.is_known(at.broker) else waiting.source
            session = self.registry.create(waiting.opening, self._epoch_for(waiting))
            session.standing.came_from, session.carried.strange = source, True
            self.registry.reunion.begin(session, source, at.epoch, self._unmet(waiting.opening))
            self._hope(session)
        self.announce(session)
        self.let_in(session, waiting, present=present)

    def _kept_for(self, waiting: Waiting) -> Session | None:
        """The session that is here, if there is one. Where its client was let in by the holder of a copy since, and
        that has not said so, it goes there: what the client has had by now only that one knows."""
        session, shown = self.registry.sessions.get(waiting.opening.client), self._told(waiting.opening)
        if session is None or shown is None or self.reserving.holder(session) != shown.broker:
            return session
        if not self.is_elsewhere(session, waiting.opening):
            return session
        self.leaving.transfer(session, shown.broker)
        return None

    def go_on_with(self, session: Session) -> None:
        """It is here after all, for whoever has waited for it."""
        self.announce(session)
        self.let_in(session, self.stop_waiting(session.client), present=True)

    def let_in(self, session: Session, waiting: Waiting | None, *, present: bool) -> None:
        """It is here: let the client in, unless it has left, or is elsewhere by now."""
        if waiting is not None and waiting.wanted_by is not None:
            if waiting.outlet is not None:
                waiting.outlet.refused(Reason.SESSION_TAKEN_OVER, AWAY)
            self.leaving.transfer(session, waiting.wanted_by[1])
        elif waiting is not None and waiting.outlet is not None:
            self.registry.let_go(session, BACK)
            if present:
                self.return_to(session, waiting.opening, self._epoch_for(waiting))
            self.registry.attach(session, waiting.opening, waiting.outlet, present)
            self.announce(session)
        else:
            session.standing.left = self.switch.steady()
            self.registry.rest(session)

    # A session leaves

    def on_fetch(self, origin: NodeId, fetch: Fetch) -> None:
        if self.follows and self.abroad.gateway is not None and self.abroad.leads(origin, fetch):
            return
        if not self._can_be(origin, "Fetch", fetch.client, fetch.epoch):
            return
        session, waiting = self.registry.sessions.get(fetch.client), self.waiting.get(fetch.client)
        if not self.follows:
            session = None
        is_reserved = session is not None and session.standing.state is State.RESERVED
        if session is not None and fetch.outside and not is_proven(session.carried, fetch.proof):
            self.fabric.send((origin,), Nothing(fetch.client, fetch.epoch, denied=fetch.proof))
        elif session is not None and is_reserved and self.reserving.holder(session) not in ("", origin):
            self.reserving.recall(session, fetch.epoch, origin)
        elif session is not None and fetch.copy == session.standing.copied and origin in session.standing.copies:
            self._leave_former(fetch.client)
            self.leaving.give(session, origin, fetch.epoch if fetch.held else 0)
        elif session is not None and fetch.held:
            # The client was let in there and is here again, though it does not know of there: that was in vain.
            self.fabric.send((origin,), Nothing(fetch.client, fetch.epoch, self.name, session.standing.epoch))
        elif session is not None and session.ends_with_connection:
            self._end_elsewhere(session)
            self.fabric.send((origin,), Nothing(fetch.client, fetch.epoch))
        elif session is not None:
            then = partial(self.on_fetch, origin, fetch)
            if not self._hears_client(session, Contested(origin, "Fetch", fetch.epoch, then, fetch.proof)):
                self._leave_former(fetch.client)
                self.leaving.transfer(session, origin)
        elif waiting is not None and waiting.source != origin and not fetch.held:
            waiting.wanted_by = max(waiting.wanted_by or (0, ""), (fetch.epoch, origin))
        else:
            lead = self._lead(fetch.client) if waiting is None else ("", 0)
            self.reserving.renounce(fetch.client, origin)
            self.fabric.send((origin,), Nothing(fetch.client, fetch.epoch, *lead))

    def _leave_former(self, client: str) -> None:
        """The session goes to a broker where the client has appeared since. Who waits here beside it, for the one in
        which it was last, is taken over as if it had been let in. Else it would ask for the session again, and two
        connections of a client, one of which is dead, would take it from each other without end."""
        waiting = self.waiting.get(client)
        if waiting is not None and waiting.former and waiting.wanted_by is None:
            self._refuse_waiting(self.stop_waiting(client))

    def _hears_client(self, session: Session, claim: Contested) -> bool:
        """Whether the client, which is connected here, is heard before another broker gets its session. In a tree
        tokens have no secrets."""
        if self.directory.complete or session.ends_with_connection:
            return False
        return self.objections.heard_first(session, claim)

    def contradicted(self, session: Session, by: NodeId, epoch: int) -> None:
        """Its client is here, and nowhere else under this epoch: whoever was told so hears of a higher one. So does the
        broker that said it: it may have begun a session for a client that went on before it was let in."""
        if epoch >= session.standing.epoch:
            session.standing.epoch, session.standing.announced = epoch + 1, False
            self.announce(session)
        self.fabric.send((by,), self._place(session, aside=True))

    # A session arrives, or nothing does

    def arrive(self, session: Session, waiting: Waiting | None) -> None:
        """It is here now, though perhaps wanted elsewhere."""
        if waiting is not None and waiting.outlet is not None and self._has_newer(session, waiting.opening):
            self.send_after(session, waiting.opening)
            if not self.open_elsewhere(waiting.opening, waiting.outlet):
                self.begin(waiting.opening, waiting.outlet, self._epoch_for(waiting))
            return
        if self.pass_on(session):
            self._refuse_waiting(waiting)
            return
        if waiting is not None:
            session.outlive(waiting.opening.expiry_s or session.carried.expiry_s)
        if waiting is None or waiting.outlet is None or waiting.wanted_by is not None:
            self.announce(session)
        elif self.waits_for_former(session, waiting.opening, waiting.outlet):
            self.announce(session)
            self.abroad.settled(session)
            return
        self.let_in(session, waiting, present=True)
        self.abroad.settled(session)

    def passed_by(self, client: str) -> None:
        """Its session was here, and has gone on to where it is wanted."""
        self._refuse_waiting(self.stop_waiting(client))

    @staticmethod
    def _refuse_waiting(waiting: Waiting | None) -> None:
        if waiting is not None and waiting.outlet is not None:
            waiting.outlet.refused(Reason.SESSION_TAKEN_OVER, AWAY)

    def on_nothing(self, origin: NodeId, nothing: Nothing) -> None:
        client, waiting = nothing.client, self.waiting.get(nothing.client)
        if nothing.denied is not None:
            self._denied(client, origin, nothing.denied)
            return
        if nothing.at and nothing.at != self.name:
            self.places.put(client, At(nothing.since, nothing.at))
        copy = self.holding.get(client, origin)
        if copy is not None and copy.session.standing.state is State.COMMITTED:
            self.holding.forget(copy)
        self.taking.disclaim(origin, nothing)
        if is_abroad(nothing.at):
            if waiting is not None and waiting.source == origin:
                waiting.abroad = True  # the gateway that says so sees to it
            return
        if self.reserving.on_nothing(origin, nothing):
            return
        if waiting is None or waiting.source != origin:
            return
        at = self.places.known.get(client)
        lead = at.broker if at is not None else ""
        if lead == origin:
            return  # it does not know yet that the session is on its way there; it will say so when it has come
        if at is not None and self.fabric.is_known(lead) and waiting.asked < ASKED_MAX:
            waiting.at, waiting.asked = at, waiting.asked + 1
            self._fetch(client, lead)
        elif not self._awaits_former(client):
            self._new_session(client)

    def _denied(self, client: str, origin: NodeId, proof: str) -> None:
        """Another site gets no session without proof. But somebody else may have asked here since: ask for that one."""
        waiting = self.waiting.get(client)
        self.abroad.denied(client, proof)
        self.end_unheard(client)
        if waiting is None or waiting.source != origin:
            return
        if waiting.outlet is not None or waiting.wanted_by is not None or self.abroad.is_chased(client):
            self._fetch(client, origin)
        else:
            self.stop_waiting(client)

    def end_unheard(self, client: str) -> None:
        """The client has shown in another site that it is in its older session, so it has not heard of the one that
        began here meanwhile. There is nothing in that, since nobody has subscribed."""
        session = self.registry.sessions.get(client)
        memory = session.carried.memory if session is not None else None
        if session is None or memory is None or session.subscriptions:
            return
        if not (session.standing.answered or memory.known):
            self.registry.hang_up(session, Reason.SESSION_TAKEN_OVER, "the client has connected in another site")
            self.registry.end(session)

    def on_heard(self, heard: Heard) -> None:
        for shadow in list(self.registry.shadows.get(heard.client, {}).values()):
            if self.speaking.heard_for(shadow, {(heard.epoch, heard.broker)}):
                self.turning.end_if_done(shadow)
                return
        waiting, at = self.waiting.get(heard.client), self.places.known.get(heard.client)
        elsewhere = waiting.source if waiting is not None else at.broker if at is not None else None
        self.speaking.on_heard(heard, self.registry.sessions.get(heard.client), elsewhere)

    def on_back(self, number: int) -> None:
        """What a client said that has left, and was still kept here, is matched."""
        for shadow in [one for some in self.registry.shadows.values() for one in some.values()]:
            if self.speaking.heard_for(shadow, {(number, self.switch.name)}):
                self.turning.end_if_done(shadow)

    # Places, and brokers that come and go

    def on_place(self, origin: NodeId, place: Place) -> None:
        if not self.follows or not self._can_be(origin, "Place", place.client, place.epoch):
            return
        if not self.directory.complete:
            self.directory.registered(origin, place)
        self._on_place(origin, place, partial(self.on_place, origin, place))

    def on_placed(self, origin: NodeId, placed: Placed) -> None:
        """A home passes on what another broker has said, or somebody who was taken for one."""
        if self.follows and placed.broker != self.name:
            self.directory.check(origin, placed, partial(self._placed, origin, placed))

    def _placed(self, origin: NodeId, placed: Placed, believed: bool) -> None:
        if not believed:
            self.refuse(origin, "Placed", f"says that {placed.broker} has the session of {placed.place.client}")
        elif self.directory.is_news(placed):
            self._handed_on(placed)

    def _handed_on(self, placed: Placed) -> None:
        self.directory.handed_on(placed)
        self._on_place(placed.broker, placed.place, partial(self._handed_on, placed))

    def refuse(self, origin: NodeId, message: str, note: str) -> None:
        """What another broker says of a session cannot be true."""
        self.switch.counts.refuse("untrue")
        self.switch.host.trace(Record("refused", peer=origin, message=message, note=note))

    def _can_be(self, origin: NodeId, message: str, client: str, epoch: int) -> bool:
        """Epochs follow the calendar: one that is years ahead would win over all that come, for ever."""
        if epoch <= (self.switch.clock() + EPOCH_AHEAD_S) * 1000:
            return True
        self.refuse(origin, message, f"claims the session of {client} under epoch {epoch}, which is years ahead")
        return False

    def _on_place(self, origin: NodeId, place: Place, again: Callable[[], None]) -> None:
        """`again` does all of it once more where the client is heard first: others may be told of the place by then."""
        at, session = At(place.epoch, origin), self.registry.sessions.get(place.client)
        claim = Contested(origin, "Place", place.epoch, again, place=place)
        if session is not None and At(session.standing.epoch, self.name) < at and self._hears_client(session, claim):
            return
        if not place.gone and self.abroad.gateway is not None:
            self.abroad.claimed(place.client, at)
        if place.gone:
            self.places.forget(place.client, at)
            self.abroad.vacated(place.client)
        elif session is None or At(session.standing.epoch, self.name) < at:
            self.places.put(place.client, at)
        waiting = self.waiting.get(place.client)
        if waiting is not None and not place.gone and waiting.at <= at:
            if waiting.is_deserted and not (waiting.abroad or self.abroad.is_chased(place.client)):
                self.stop_waiting(place.client)  # who hung up here and is in there must not be fetched back
            else:
                waiting.at = at
                self._fetch(place.client, origin)
        own = next((one for one in place.claims if one.source == self.name), None)
        if session is not None and own is not None and _is_valid(own, session):
            self.leaving.give(session, own.holder, own.epoch + 1)
            return
        if session is None or at < At(session.standing.epoch, self.name):
            if session is not None and place.clean and place.epoch != session.carried.started:
                self._was_elsewhere(session, place)
            return
        if not (place.gone or place.clean or session.standing.announced) and session.inflow.is_unconfirmed:
            return  # whether it was rightly taken up here is for the source of the copy to say
        if place.clean and not place.gone and self._has_names(session):
            self.registry.say_will(session)
            self.leaving.transfer(session, origin)  # nothing that waits is for the other, but what was had is had
        elif place.gone or place.clean or session.ends_with_connection:
            self._tell_of_clean_start(session, origin, place)
            self._end_elsewhere(session)
        elif self.reserving.holder(session) not in ("", origin):
            self.reserving.recall(session, place.epoch, origin)
        else:
            self.leaving.transfer(session, origin)

    def _was_elsewhere(self, session: Session, place: Place) -> None:
        """The client has started clean there, of which nobody knew here: it may have been there last. Where that has
        ended for this one, it is told once more that its session is new, unless it has asked for something here."""
        if place.gone:
            session.untold = True
        else:
            session.carried.strange = True
            self.switch.ledger.put_session(session)

    def _tell_of_clean_start(self, session: Session, to: NodeId, place: Place) -> None:
        """This one began clean a moment ago, and ends for another one that did: calendars alone say that this is the
        older. The client may have been here last, and takes the other for the one in which it has subscribed. Where
        all brokers are told of all places that one knows."""
        began, both_clean = session.carried.started, place.clean and not place.gone and session.carried.started > 0
        if both_clean and not self.directory.complete and self.registry.still_asks(session.carried):
            self.fabric.send((to,), Place(session.client, began, clean=True, gone=True))

    @staticmethod
    def _has_names(session: Session) -> bool:
        """Whether it knows what its client has had in it, and can leave."""
        memory, standing = session.carried.memory, session.standing
        if memory is None or not memory.had or session.ends_with_connection:
            return False
        return standing.state is not State.RESERVED and not (standing.arriving or session.inflow.is_unconfirmed)

    def _end_elsewhere(self, session: Session) -> None:
        """Its client has another one elsewhere, which is none of this one's."""
        session.standing.announced = False
        self.registry.hang_up(session, Reason.SESSION_TAKEN_OVER, AWAY)
        self.registry.end(session)

    def homes_in(self, is_home: Callable[[str], bool]) -> Iterable[HomeEntry]:
        """The clients that this broker knows of and that have a home there."""
        known = {client: at for client, at in self.places.known.items() if is_home(client)}
        for client in self.registry.sessions:
            at = self._here(client) if is_home(client) else None
            if at is not None:
                known[client] = max(at, known.get(client, at))
        return [HomeEntry(client, at.epoch, at.broker) for client, at in known.items()]

    def on_ceded(self, ceded: Ceded) -> None:
        """This broker is the home of these clients now, and hears of their places as if they were registered here. No
        home could tell before whose session is the older: another broker's, or this one's own."""
        for one in ceded.homes if self.follows else ():
            at = At(one.epoch, one.broker)
            if one.broker != self.name and not is_abroad(one.broker):
                self._inherited(one.broker, Place(one.client, one.epoch))
            elif is_abroad(one.broker) and (self._here(one.client) or NOWHERE) < at:
                self.places.put(one.client, at)  # it comes when somebody asks for it there

    def _inherited(self, broker: NodeId, place: Place) -> None:
        self.directory.weigh(broker, place)
        self._on_place(broker, place, partial(self._inherited, broker, place))

    def greet(self, brokers: Iterable[NodeId]) -> None:
        """Tell new brokers where sessions are."""
        to = sorted(brokers)
        self.holding.met(to)
        for session in self.registry.sessions.values():
            if session.standing.announced and to:
                self.directory.greet(to, self._place(session))
                self._ask_everybody(session, to)

    def _ask_everybody(self, session: Session, to: Iterable[NodeId]) -> None:
        """About older sessions, and to turn to all that it wants: one that is to get a cell may not have been known
        where it was before. Who is asked must know of this one by then: homes tell it later, or not at all."""
        if session.carried.memory is not None and not self.directory.complete:
            self.fabric.send(sorted(to), self._place(session, aside=True))
        self.registry.reunion.ask(session, to, session.subscriptions)

    def rehome(self, is_home: Callable[[str], bool]) -> None:
        """Where these clients are at home others are to be told where their sessions are."""
        for client, session in self.registry.sessions.items():
            if session.standing.announced and is_home(client):
                self.directory.greet((), self._place(session))

    def sources_changed(self) -> None:
        """Other brokers than before may send what sessions want."""
        if not self.directory.complete:
            for session in list(self.registry.sessions.values()):
                self.registry.reunion.ask_sources(session)

    @staticmethod
    def _place(session: Session, *, aside: bool = False) -> Place:
        return Place(session.client, session.standing.epoch, claims=session.carried.claims, aside=aside)

    def given_up(self, broker: NodeId) -> None:
        """It counts as turned, and what it would have passed on as passed on."""
        self._expect_nothing(broker)
        self.copying.given_up(broker)
        self.turning.given_up(broker)
        self._go_on_without(broker)

    def reborn(self, broker: NodeId) -> None:
        """It has lost its disk: nobody waits any longer for what was only there. It is asked again for what it can
        still do, and told again what it knew."""
        self._expect_nothing(broker)
        self.copying.reborn(broker)
        self.turning.reborn(broker)
        for session in list(self.registry.sessions.values()):
            if session.standing.reserved_for == broker:
                self.reserving.free(session)
            self.registry.reunion.reborn(session, broker)
        self._go_on_without(broker)
        self.greet((broker,))

    def _expect_nothing(self, broker: NodeId) -> None:
        """Neither sessions that it had, nor what it would have said of publishers."""
        self.places.forget_broker(broker)
        for session in self.registry.sessions.values():
            if session.standing.announced and not self.directory.complete:
                self.directory.missed(broker, self._place(session))
        for client, waiting in list(self.waiting.items()):
            if waiting.source == broker:
                self._new_session(client, for_good=True)
        self.holding.given_up(broker)
        for shadow in [one for some in self.registry.shadows.values() for one in some.values()]:
            self.speaking.heard_for(shadow, {one for one in shadow.carried.unheard if one[1] == broker})
            self.turning.end_if_done(shadow)

    def _go_on_without(self, broker: NodeId) -> None:
        for session in list(self.registry.sessions.values()):
            self.speaking.given_up(session, broker)
            if session.carried.memory is not None:
                self.turning.go_on(session)
            if not session.inflow.is_unconfirmed and not self.pass_on(session):
                self.announce(session)  # one that only waited for that broker's word has not been yet
        self.abroad.go_on_without()

    def wake(self) -> None:
        """All is loaded, and what other brokers want is known. What was claimed before a crash goes now, and its will
        is said."""
        for session in list(self.registry.sessions.values()):
            if session.standing.claimed is not None and session.standing.state in OURS:
                self.on_place(*session.standing.claimed)
            else:
                self.reserving.wake(session)

    def loaded(self, session: Session) -> None:
        """It was here before a crash, and so was what it waits for. Homes are told again: whether they know, and which
        older place they know of, is on no disk."""
        if session.standing.announced and session.standing.state in OURS and not self.directory.complete:
            self.switch.host.after(0.0, lambda: self.directory.greet((), self._place(session)))
        self.turning.loaded(session)
        self.registry.reunion.loaded(session)
        self._hope(session)
        if session.inflow.is_unconfirmed and not session.standing.announced:
            self.taking.expect(session)


def _is_good(copy: Copy, opening: Opening) -> bool:
    """Whether the session was asked for, and the client shows that it was in nowhere since the copy was made. A client
    that shows nothing may have had elsewhere what is in the copy, and only its source can tell."""
    token = opening.token.removeprefix(UNSURE)
    return copy.session.standing.state is State.COMMITTED and bool(token) and token == copy.session.carried.token


def _is_unheard_of(session: Session, opening: Opening) -> bool:
    """Whether the client shows the proof of another session, and has not heard of this one, as far as is known."""
    proof = proof_of(opening.token)
    return session.carried.strange and bool(proof) and not is_proven(session.carried, proof)


def _is_valid(claim: Claim, session: Session) -> bool:
    return claim.epoch == session.standing.copied and claim.holder in session.standing.copies

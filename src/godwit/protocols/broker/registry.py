"""The sessions of a broker: how they begin, are taken up again and end; their subscriptions and wills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.protocols.broker.api import (
    AWAY,
    UNSURE,
    Grant,
    Limits,
    Opening,
    Outlet,
    Reason,
    RetainHandling,
    Subscription,
    Will,
)
from godwit.protocols.broker.dispatch import Switch
from godwit.protocols.broker.fabric.base import ANYTHING
from godwit.protocols.broker.fabric.border import in_all_sites
from godwit.protocols.broker.fabric.gateway import ring_of
from godwit.protocols.broker.lasting.words import MATCHES, VIEW
from godwit.protocols.broker.messages import Carried, Replay
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.lifecycle import OURS, Cause, State
from godwit.protocols.broker.session.parse import filters_of, interval_of, remembered, understood, wanted_filters
from godwit.protocols.broker.session.proofs import BEFORE, is_proven, proof_of, renewed
from godwit.protocols.broker.session.rows import items_of
from godwit.protocols.broker.session.state import NUMBER_MAX, Copy, Item, Session, Sub
from godwit.protocols.broker.session.stays import withdrawn
from godwit.protocols.broker.topics import problem_of_filter
from godwit.protocols.broker.vacant import own
from godwit.protocols.host import Record

if TYPE_CHECKING:
    from godwit.protocols.broker.handoff.coordinator import Moves
    from godwit.protocols.broker.handoff.reconcile import Reunion

TIMER_MAX_S = 7 * 24 * 3600.0
"""A session that lasts longer is looked at again after this time."""

INHERITED_S = 30.0
"""So long after a client has begun to subscribe in a new session it keeps what it has not asked for again."""


class Granted(msgspec.Struct, frozen=True):
    """The answer to one subscription: the QoS where `reason` is OK, else why not, in words."""

    reason: Reason
    qos: int = 0
    text: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    """What the client is told beside that."""


class Registry:
    """Sessions, shadows and copies by client; whoever begins, takes up or ends one does it here."""

    def __init__(self, switch: Switch, reunion: Reunion, limits: Limits = Limits()) -> None:  # noqa: B008
        self.switch = switch
        self.ring = ring_of(switch.fabric)
        """None where brokers are joined otherwise."""
        self.reunion = reunion
        self.limits = limits
        """Of sessions whose clients have yet to come here."""
        self.sessions: dict[str, Session] = {}
        self.shadows: dict[str, dict[int, Session]] = {}
        """By client and epoch."""
        self.copies: dict[str, Copy] = {}
        """Of sessions that are other brokers', by client."""
        self.moves: Moves
        """Sets itself here, since each needs the other: it is told who comes, rests and ends."""
        self._attachment = 0

    def create(self, opening: Opening, epoch: int, *, clean: bool = False) -> Session:
        session = Session(opening.client, epoch)
        session.become(Cause.OPENED)
        session.carried.clean, session.carried.started = clean, epoch if clean else 0
        session.carried.age = (epoch, self.switch.name)
        # Whoever shows a token had a session, and takes this one for it until it has heard otherwise.
        session.carried.strange = bool(opening.token) and not clean
        session.carried.unshown = not opening.token and not clean
        session.outlive(opening.expiry_s)
        self.add(session)
        self.switch.ledger.put_session(session)
        return session

    def first_sequence(self) -> int:
        """Above all that this client has used before: nobody publishes a million times a second for long."""
        return int(self.switch.clock() * 1e6)

    def add(self, session: Session) -> None:
        session.limits = self.limits
        if session.standing.crossings is None:
            session.standing.crossings = self.switch.fabric.crossings
        self.sessions[session.client] = session
        self.switch.counts.sessions += 1
        for sub in session.subscriptions.values():
            self.switch.add_sub(sub)

    def attach(self, session: Session, opening: Opening, outlet: Outlet, present: bool) -> None:
        """The client is in; what is under way goes again, then what waits."""
        self.cancel_timers(session)
        self.moves.copying.attached(session)
        was_durable = session.durable
        carried = session.carried
        strayed = bool(opening.token) and opening.token.removeprefix(UNSURE) != carried.last
        strange = carried.strange or (strayed and self.moves.is_of_another(session, opening))
        carried.strange = strange and (not opening.token or opening.token != carried.token)
        carried.unshown = carried.unshown and (strayed or not opening.token)
        is_untold = session.untold and not session.subscriptions and (strayed or not opening.token)
        if present and (carried.strange or is_untold):
            present = False
            self._forget_incoming(session)
        session.become(Cause.ADMITTED)
        session.outlive(opening.expiry_s)
        session.outlet, session.standing.reserved_for = outlet, ""
        session.sequence = session.sequence or self.first_sequence()
        session.limits = opening.limits
        session.standing.left = None
        session.inflight_max = min(max(opening.inflight_max, 1), NUMBER_MAX)
        session.standing.will = opening.will
        session.is_proven = self._has_secrets and is_proven(session.carried, proof_of(opening.token))
        is_ordered = self.ring is not None and session.durable and self.moves.is_last(session, opening)
        session.let_in_under = session.standing.epoch if is_ordered else 0
        session.carried.token = self._token(session, opening) if session.durable else ""
        session.carried.last = session.carried.token
        self.restrict(session, opening.grant)
        self._keep(session, was_durable)
        self.switch.ledger.put_will(session.client, None if session.durable else opening.will)
        self.switch.counts.connected += 1
        self.switch.audiences.changed()
        if self.switch.tracing:
            note = "present" if present else "new"
            self.switch.host.trace(Record("attached", client=session.client, note=note))
        if session.is_proven:
            self.moves.objections.attached(session)
        outlet.opened(session, present)
        if session.durable and not present:
            session.untold = True
            self.switch.store.settled(partial(self._told, session, outlet))
        self.switch.views.wake(session, anew=not present or strayed)
        if session.carried.replays:
            self.switch.replays.wake(session)
        if self.switch.paces.subs:
            self.switch.paces.wake(session)
        self.switch.flows.attached(session)

    @staticmethod
    def _told(session: Session, outlet: Outlet) -> None:
        """The disk has it, and the answer leaves; unless the client has gone meanwhile. Where nothing is wanted yet it
        is told so once more: else it would take this session for one in which it has subscribed."""
        if session.outlet is outlet:
            session.untold = False

    def _forget_incoming(self, session: Session) -> None:
        """A client that is told that its session is new begins its packet identifiers anew: what it says under one of
        the old ones is no repetition (MQTT 5, 3.2.2.1.1)."""
        for number in sorted(session.queue.incoming):
            self.switch.ledger.delete_incoming(session, number)
        session.queue.incoming.clear()

    @property
    def _has_secrets(self) -> bool:
        """Whether tokens have a secret in them, by which their client is known."""
        return bool(self.moves.abroad.site) or not self.moves.directory.complete

    def _token(self, session: Session, opening: Opening) -> str:
        """Another one for each time that a client is let in anywhere; the clock sees to that after a crash."""
        self._attachment = max(self._attachment + 1, int(self.switch.clock() * 1000))
        count, name = str(self._attachment), self.moves.abroad.own_name
        if self._has_secrets:
            count += BEFORE + renewed(session.carried, opening.token, self.switch.host.random)
        return f"{session.standing.epoch}.{count}.{name}"

    def _keep(self, session: Session, was_durable: bool) -> None:
        ledger = self.switch.ledger
        if was_durable and session.durable:
            ledger.put_session(session)
        elif session.durable:
            ledger.save(session)
        elif was_durable:
            ledger.forget(session)

    def detach(self, session: Session) -> None:
        """There is no connection any more, for whatever reason."""
        if session.outlet is not None:
            session.become(Cause.LEFT)
            session.outlet = None
            self.switch.views.sleep(session)
            if session.carried.replays:
                self.switch.replays.sleep(session)
            if self.switch.paces.subs:
                self.switch.paces.sleep(session)
            session.kept_back = ()
            session.standing.left = self.switch.steady()
            self.switch.counts.connected -= 1
            self.switch.flows.detached(session)
            self.switch.audiences.changed()
            if self.switch.tracing:
                self.switch.host.trace(Record("detached", client=session.client))

    def hang_up(self, session: Session, reason: Reason, text: str) -> None:
        """End the connection from here."""
        outlet = session.outlet
        if outlet is not None:
            self.detach(session)
            outlet.closed(reason, text)

    def let_go(self, session: Session, text: str = AWAY) -> None:
        """The client is at another broker, or back at this one: its session goes on. So its will is only said where it
        asked for no delay."""
        will = session.standing.will
        self.cancel_timers(session)
        if will is not None and will.delay_s == 0:
            self.say_will(session)
        session.standing.will = None
        if not session.durable:
            self.switch.ledger.put_will(session.client, None)
        self.hang_up(session, Reason.SESSION_TAKEN_OVER, text)

    def rest(self, session: Session) -> None:
        """Without a connection: until the client is back or its time is over."""
        switch = self.switch
        left_s = session.expires_after(switch.steady())
        if left_s <= 0:
            self.end(session)
            return
        switch.ledger.put_session(session)
        if not session.everlasting:
            session.expiry_timer = switch.host.after(min(left_s, TIMER_MAX_S), partial(self._expire, session))
        will = session.standing.will
        if will is not None and will.delay_s > 0:
            session.will_timer = switch.host.after(will.delay_s, partial(self.say_will, session))
        else:
            self.say_will(session)
        self.moves.copying.rested(session)

    def _expire(self, session: Session) -> None:
        session.expiry_timer = None
        if session.expires_after(self.switch.steady()) > 0:
            self.rest(session)
        else:
            self.end(session)

    def say_will(self, session: Session) -> None:
        """Publish the will, if there is still one."""
        will, session.standing.will = session.standing.will, None
        if session.will_timer is not None:
            session.will_timer.cancel()
            session.will_timer = None
        if will is None:
            return
        if session.standing.state in OURS:
            self.switch.ledger.put_session(session)
        self._publish_will(will, session.next_sequence())

    def say_orphan(self, client: str, will: Will) -> None:
        """The will of a client that was connected when the broker crashed, and whose session is gone by that."""
        self.switch.ledger.put_will(client, None)
        self._publish_will(will, self.first_sequence())

    def _publish_will(self, will: Will, sequence: int) -> None:
        publication = will.publication
        lasts_s = (publication.expires or 0.0) - publication.time
        self.publish(
            msgspec.structs.replace(
                publication,
                sequence=sequence,
                time=self.switch.clock(),
                expires=None if publication.expires is None else self.switch.steady() + lasts_s,
            )
        )

    def publish(self, publication: Publication) -> None:
        """From a client of this broker, or in its name."""
        switch = self.switch
        if publication.retain:
            publication = switch.retained.stamped(publication)
        switch.counts.published[publication.qos] += 1
        switch.tell_published(publication)
        switch.accept((publication,))

    def cancel_timers(self, session: Session) -> None:
        for timer in (session.expiry_timer, session.will_timer):
            if timer is not None:
                timer.cancel()
        session.expiry_timer = session.will_timer = None

    def end(self, session: Session) -> None:
        """Nothing of it remains; what it owed to a shared group goes to another member."""
        if session.standing.state is State.ENDED:
            return
        was_shadow, was_durable = session.standing.state is State.SHADOW, session.durable
        if was_shadow:
            # First: what a shadow wants is wanted for a while yet, what a session wants is not.
            self.switch.withdraw(session)
        session.become(Cause.OVER)
        if session.inflow.upstreams:
            self.moves.turning.forget(session)
        self.cancel_timers(session)
        if not was_shadow:
            if self.sessions.get(session.client) is session:
                del self.sessions[session.client]
            self.switch.counts.sessions -= 1
            self.moves.ended(session)
            self.say_will(session)
            self.switch.ledger.put_will(session.client, None)
            self.switch.said_to.pop(session.client, None)
        else:
            self._remove_shadow(session)
        if was_durable or self.switch.ledger.is_changed(session):
            self.switch.ledger.forget(session)
        if not was_shadow:
            self.switch.withdraw(session)
        self._hand_over(session)

    def add_shadow(self, session: Session) -> None:
        self.shadows.setdefault(session.client, {})[session.standing.epoch] = session
        self.switch.counts.shadows += 1

    def _remove_shadow(self, session: Session) -> None:
        shadows = self.shadows[session.client]
        del shadows[session.standing.epoch]
        if not shadows:
            del self.shadows[session.client]
        self.switch.counts.shadows -= 1

    def _hand_over(self, session: Session) -> None:
        switch, left = self.switch, 0
        for item in items_of(session):
            # At QoS 2 a member that may have it keeps it: another one's would be a second (MQTT-4.8.2-5).
            is_free = item.group is not None and not item.received and not (item.qos == 2 and item.sent)
            if item.group is None or not is_free or not switch.dealing.hand_on(item.publication, item.group):
                left += not item.received
            item.discard()
        switch.counts.waiting -= len(session.queue.flying) + len(session.queue.waiting)
        session.inflow.held = {}
        session.queue.clear()
        if left:
            switch.counts.drop("ended", left)

    def subscribe(self, session: Session, wanted: Subscription) -> Granted:
        if problem := problem_of_filter(wanted.topics):
            return self._refused(Reason.TOPIC_FILTER_INVALID, problem)
        try:
            condition = understood(wanted, session.limits)
        except FilterError as error:
            return self._refused(Reason.TOPIC_FILTER_INVALID, str(error))
        if wanted.lasting and wanted.group:
            return self._refused(Reason.TOPIC_FILTER_INVALID, "a shared subscription cannot last: none has all of it")
        if wanted.since is not None and (problem := self._problem_of_past(wanted)):
            return self._refused(Reason.IMPLEMENTATION_SPECIFIC, problem)
        if not _is_covered(session.grant, wanted, condition):
            return self._refused(Reason.NOT_AUTHORIZED, f"{wanted.key!r} is not covered by what this client may see")
        old = session.subscriptions.get(wanted.key)
        if old is None and len(session.subscriptions) >= session.limits.subscriptions_max:
            most = session.limits.subscriptions_max
            return self._refused(Reason.QUOTA_EXCEEDED, f"a client may have {most} subscriptions; unsubscribe others")
        if old is None and (deep := _levels(wanted)) and deep + _levels_of(session) > session.limits.levels_max:
            most = session.limits.levels_max
            return self._refused(
                Reason.QUOTA_EXCEEDED, f"topic filters deeper than {DEEP} levels may have {most} levels in all"
            )
        self._begin_to_ask(session)
        self.switch.replays.begin(session, wanted, old)
        self._set(session, wanted, condition, old)
        if wanted.since is not None:
            self.switch.replays.start(session.subscriptions[wanted.key])
            return Granted(Reason.OK, wanted.qos)
        if wanted.lasting:
            return self._begin_view(session.subscriptions[wanted.key], old)
        self._send_retained(session, wanted, condition, old is None)
        return Granted(Reason.OK, wanted.qos)

    def _problem_of_past(self, wanted: Subscription) -> str:
        """Why nothing can be had of what was published before; empty where it can."""
        if wanted.lasting:
            return "since: a lasting subscription tells what is, not what was; leave one of the two out"
        if wanted.group:
            return "since: a shared subscription has no past of its own; leave the group out"
        if self.switch.recollection.past is None:
            return "since: this broker keeps no archive; start it with --archive DIR, or subscribe without since"
        return ""

    def _begin_view(self, sub: Sub, old: Sub | None) -> Granted:
        return self._granted_view(sub, self.switch.views.begin(sub, old))

    def renewed(self, session: Session, key: str, granted: Granted) -> Granted:
        """The answer to a subscription as it is when all brokers know of it: in a ring what is retained has come
        meanwhile."""
        sub = session.subscriptions.get(key)
        if not granted.properties or sub is None or self.ring is None:
            return granted
        return self._granted_view(sub, self.switch.views.told_by_now(sub))

    def _granted_view(self, sub: Sub, matches: int) -> Granted:
        view = sub.session.carried.views[sub.wanted.key]
        return Granted(Reason.OK, sub.wanted.qos, properties=((VIEW, view.name), (MATCHES, str(matches))))

    def _set(self, session: Session, wanted: Subscription, condition: FilterSet | None, old: Sub | None) -> None:
        if old is None:
            session.row += 1
        begins = self.reunion.subscribed(session, wanted, old)
        sub = Sub(session, wanted, condition, session.row if old is None else old.row, interval_of(wanted))
        sub.placed = old is not None and old.placed and _is_alike(old, sub)
        session.want(sub)
        if session.standing.arriving and old is None:
            session.standing.fresh |= {wanted.key}
            self.switch.ledger.put_session(session)
        self.switch.add_sub(sub)
        if old is not None:
            self.switch.remove_sub(old)
            self._withdraw(session, old)
            if not wanted.lasting:
                self.switch.views.end(old)
        if session.durable:
            self.switch.ledger.put_sub(sub)
        if begins:
            self.reunion.ask(session, self.switch.fabric.sources(ANYTHING), (wanted.key,))

    def adopt(self, session: Session, wanted: Subscription) -> None:
        """It was granted to another session of the same client."""
        sub = remembered(session, wanted, 0)
        if sub is not None:
            self._set(session, wanted, sub.condition, None)
            self.switch.replays.start(session.subscriptions[wanted.key])

    def inherit(self, session: Session, granted: Iterable[Subscription], replays: Mapping[str, Replay]) -> None:
        """These were granted to an older session of the client, which has gone into this one. A client that has heard
        that its session is new asks for them again, one after the other, and must miss nothing meanwhile. One that has
        not heard takes this session for the old one, and so must we."""
        if session.subscriptions and not self.still_asks(session.carried):
            return
        for wanted in granted:
            sub = remembered(session, wanted, 0) if wanted.key not in session.subscriptions else None
            if sub is not None:
                if wanted.key in replays:
                    session.carried.replays = own(session.carried.replays)
                    session.carried.replays[wanted.key] = replays[wanted.key]
                self._set(session, wanted, sub.condition, None)
                session.subscriptions[wanted.key].inherited = True
                self.switch.replays.start(session.subscriptions[wanted.key])
        if self.still_asks(session.carried):
            self._disinherit_in_time(session)

    def still_asks(self, carried: Carried) -> bool:
        """Whether the client may have begun to subscribe in this session, here or where it was, and not be done."""
        return abs(self.switch.steady() - carried.asks_since) <= INHERITED_S

    def _disinherit_in_time(self, session: Session) -> None:
        if any(sub.inherited for sub in session.subscriptions.values()):
            left_s = session.carried.asks_since + INHERITED_S - self.switch.steady()
            self.switch.host.after(max(0.0, left_s), partial(self._disinherit, session))

    def _disinherit(self, session: Session) -> None:
        """The client has asked for all that it wants."""
        for key in [key for key, sub in session.subscriptions.items() if sub.inherited]:
            if session.standing.state in OURS:
                self.unsubscribe(session, key)

    def _begin_to_ask(self, session: Session) -> None:
        if self.still_asks(session.carried):
            return
        session.carried.asks_since = self.switch.steady()
        self._disinherit_in_time(session)
        if session.carried.memory is not None:
            self.switch.ledger.put_session(session)

    def unsubscribe(self, session: Session, key: str) -> Reason:
        sub = session.subscriptions.pop(key, None)
        if sub is None:
            return Reason.NO_SUBSCRIPTION
        self.switch.remove_sub(sub)
        self.switch.views.end(sub)
        self.switch.replays.end(sub)
        self.reunion.unsubscribed(session, sub.wanted)
        if session.durable:
            self.switch.ledger.delete_sub(sub)
        self._withdraw(session, sub)
        return Reason.OK

    def _withdraw(self, session: Session, sub: Sub) -> None:
        """Whoever matched it, and nothing else that the session wants, is not asked to turn when the session moves on.
        What that has sent is not for it there, should it subscribe again."""
        if self.ring is not None and session.durable:
            lines = self.ring.progress(filters_of((sub,)), filters_of(session.subscriptions.values()))
            if lines:
                site = self.switch.site
                named = {in_all_sites((line, number), site)[0]: number for line, number in lines.items()}
                session.carried.stays = withdrawn(session.carried.stays, named)
                self.switch.ledger.put_session(session)

    def restrict(self, session: Session, grant: Grant) -> None:
        """What the client may do from now on: what it was granted once and is no longer goes, also what waits."""
        unchanged, session.grant = session.grant == grant, grant
        for sub in list(session.subscriptions.values()):
            if not _is_covered(grant, sub.wanted, sub.condition):
                self.unsubscribe(session, sub.wanted.key)
        if grant.subscribe is not None and not unchanged:
            self.switch.flows.withdraw(session, grant.subscribe)

    def _refused(self, reason: Reason, text: str) -> Granted:
        self.switch.counts.refuse(reason.name.lower())
        return Granted(reason, text=text)

    def _send_retained(self, session: Session, wanted: Subscription, condition: FilterSet | None, new: bool) -> None:
        handling = wanted.retain_handling
        if wanted.group or handling is RetainHandling.NEVER or (handling is RetainHandling.IF_NEW and not new):
            return
        if self.ring is not None:
            # Those who match it send what they have before they say that they have noted it.
            self.switch.restate()
            filters = condition if condition is not None else wanted_filters(wanted.topics, None)
            self.ring.in_place(filters, lambda _: self._find_retained(session, wanted, condition))
        else:
            self._find_retained(session, wanted, condition)

    def _find_retained(self, session: Session, wanted: Subscription, condition: FilterSet | None) -> None:
        found = self.switch.retained.find(wanted.topics, self.switch.steady())
        if condition is not None:
            found = [one for one in found if condition.matches(one.values())]
        if found:
            self.switch.host.after(0.0, partial(self._give_retained, session, wanted, found))

    def _give_retained(self, session: Session, wanted: Subscription, found: Sequence[Publication]) -> None:
        """After the answer to the subscription. Where another has come meanwhile, the client has that one already."""
        sub, switch = session.subscriptions.get(wanted.key), self.switch
        if session.standing.state is State.ENDED or sub is None or sub.wanted is not wanted:
            return
        identifiers, pace = (wanted.identifier,) if wanted.identifier else (), wanted.key if sub.interval_s else ""
        for one in found:
            if switch.retained.get(one.topic) is one and not (wanted.no_local and one.publisher == session.client):
                qos = min(one.qos, wanted.qos)
                if session.standing.state in OURS and qos == 0:
                    switch.flows.pass_on(session, one, True, identifiers, pace=pace)
                elif qos:
                    switch.take(session, Item(one, qos, True, identifiers, since=switch.steady(), pace=pace))


DEEP = 16


def _levels(wanted: Subscription) -> int:
    """Of a deep topic filter; 0 of others, whose number is bound enough."""
    levels = wanted.topics.count("/") + 1
    return levels if levels > DEEP else 0


def _levels_of(session: Session) -> int:
    return sum(_levels(sub.wanted) for sub in session.subscriptions.values())


def _is_alike(one: Sub, other: Sub) -> bool:
    """Whether both want the same of what is to come."""
    return (one.wanted.topics, one.condition) == (other.wanted.topics, other.condition)


def _is_covered(grant: Grant, wanted: Subscription, condition: FilterSet | None) -> bool:
    if grant.subscribe is None:
        return True
    return grant.subscribe.covers(condition if condition is not None else wanted_filters(wanted.topics, None))

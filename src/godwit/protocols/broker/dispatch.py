"""From a publication to everybody who wants it: sessions here, and other brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest

from godwit.filters.filters import Filter
from godwit.protocols.broker import messages
from godwit.protocols.broker.dealing import Dealing
from godwit.protocols.broker.fabric.base import ANYTHING, Fabric
from godwit.protocols.broker.fabric.border import in_all_sites, site_in
from godwit.protocols.broker.fabric.passages import Passage
from godwit.protocols.broker.interest.shares import Shares, key_of
from godwit.protocols.broker.interest.stated import Lingering
from godwit.protocols.broker.interest.subscribers import Audience, Audiences, Found, Group, Taker, takers_of
from godwit.protocols.broker.lasting.pace import Paces
from godwit.protocols.broker.lasting.past import Recollection
from godwit.protocols.broker.lasting.replay import Replays
from godwit.protocols.broker.lasting.views import Views
from godwit.protocols.broker.messages import FIRST, Forwarded, Line, Share
from godwit.protocols.broker.publication import Publication, wants_topic
from godwit.protocols.broker.session.counts import Counts
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.memory import is_first, is_own, wants
from godwit.protocols.broker.session.queue import Deliveries
from godwit.protocols.broker.session.retained import Retained
from godwit.protocols.broker.session.rows import Ledger, kept_of
from godwit.protocols.broker.session.state import PASSAGES_MAX, Body, GroupKey, Item, Session, Sub
from godwit.protocols.broker.session.stays import has_had, wanted_by_others
from godwit.protocols.broker.store import Store
from godwit.protocols.host import Host, NodeId, Record, Timer

IN_VAIN = "/in vain"
"""Under which what stays of a copy that gave way keeps what it has; no broker can be named so."""
ABROAD = "/abroad"
"""Under which is kept back what comes to a session that is crossing between sites; no broker can be named so."""
BROUGHT = "/brought"
"""Under which is kept back what a gateway has brought that is waited for itself; no broker can be named so."""

TOGETHER_MIN = 4
"""So many that came together for a session and cannot leave yet wait as one."""


class Switch:
    """What all parts of a broker work with: who wants what, and the ways to them."""

    def __init__(
        self,
        host: Host,
        store: Store,
        fabric: Fabric,
        clock: Callable[[], float],
        steady: Callable[[], float],
        tracing: bool,
    ) -> None:
        self.host = host
        self.store = store
        self.fabric = fabric
        self.clock = clock
        """The calendar: for dates, and for numbers that must be above all earlier ones."""
        self.steady = steady
        """For ages: it goes on whatever becomes of the calendar."""
        self.tracing = tracing
        self.name = host.name
        self.counts = Counts()
        self.ledger = Ledger(store)
        self.flows = Deliveries(host, self.ledger, self.counts, steady, tracing)
        self.audiences = Audiences()
        self.is_elsewhere = not fabric.retains_everywhere
        """Whoever matches a publication may be another broker, though nobody there has said that it wants it."""
        self.audiences.watched = tracing or self.is_elsewhere
        self.retained = Retained(store)
        self.views = Views(host, self.retained, self.flows, self.ledger, clock, steady, self.counts)
        self.recollection = Recollection(host.name, fabric, clock)
        self.replays = Replays(host, fabric, self.flows, self.ledger, self.counts, steady, self.recollection, self)
        self.dealing = Dealing(self)
        self.flows.on_room = self._on_room
        self.on_older: Callable[[Session, Line, Item], None] = lambda session, born, item: None
        """Told of what comes here for an older session which has gone into this one."""
        self.paces = Paces(host, self.flows, self.ledger, steady)
        self.stamp: tuple[NodeId, int] | None = None
        """The broker from whose stream comes what is being spread, and its number there. What is published here has a
        number above all that were sent before, and no higher than its own where it is sent too."""
        self.via: NodeId = ""
        """The gateway of another site that has brought what is being spread; none where it came from our own."""
        self.said_to: dict[str, set[NodeId]] = {}
        """By publisher: the brokers to which something that it said here was sent."""
        self.follow: Callable[[str], Iterable[int]] = lambda publisher: ()
        """Sends questions behind what the fabric still keeps of this publisher, and says their numbers: `Moves.on_back`
        follows with each when what is before it is matched."""
        self.on_published: Callable[[Publication], None] | None = None
        self.site = ""
        """Where this broker is, if there are several sites."""
        self.gateway: NodeId = ""
        """The broker by which alone something comes here from other sites; empty where that is this one, or not one."""
        self.archives_matched = False
        """Whether an archive is kept of what this broker matches, and not of what its clients publish: in a ring. What
        is in the archive is then what is in the stream of its broker, here too."""
        self.keepers: Callable[[], Iterable[NodeId]] = lambda: ()
        """The brokers that keep what is retained here, in case that this one loses its disk."""
        self._foreign = False
        """What is being spread was not published here."""
        self._subs: dict[Sub, None] = {}
        self._wants: Lingering | None = None
        self.shares = Shares()
        """The groups of which other brokers are told that they have members here."""
        self._told_shares: tuple[Filter, ...] = ()
        self._statement: int | None = None
        self._restating: Timer | None = None

    def add_sub(self, sub: Sub) -> None:
        self._subs[sub] = None
        self.counts.subscriptions += 1
        if sub.wanted.key in sub.session.carried.replays:
            self.replays.subs.add(sub)
            self.watch()
        elif sub.interval_s and not sub.wanted.lasting:
            self.paces.subs.add(sub)
            self.watch()
        elif not sub.wanted.lasting:
            self.audiences.add(sub)
        if self._is_shared(sub) and self.shares.add(sub):
            self._restate_soon()
        elif self._wants is not None and self._is_stated(sub):
            self._wants.add(sub)
            self._restate_soon()

    def _is_shared(self, sub: Sub) -> bool:
        return bool(sub.wanted.group) and self.fabric.deals

    def _is_stated(self, sub: Sub) -> bool:
        """What is retained comes to every broker, wanted or not; unless its owner keeps it."""
        return not sub.wanted.lasting or not self.fabric.retains_everywhere

    def remove_sub(self, sub: Sub) -> None:
        del self._subs[sub]
        self.counts.subscriptions -= 1
        if sub.wanted.lasting:
            self.views.stop(sub)
        elif sub in self.replays.subs:
            self.replays.subs.remove(sub)
            self.replays.stop(sub)
            self.watch()
        elif sub in self.paces.subs:
            self.paces.subs.remove(sub)
            self.paces.end(sub)
            self.watch()
        else:
            self.audiences.remove(sub)
        is_share = self._is_shared(sub) and self.shares.remove(sub)
        if is_share or (self._wants is not None and self._is_stated(sub) and self._wants.remove(sub)):
            self._restate_soon()

    def watch(self) -> None:
        """Look whether somebody must see every publication, so that none may go straight to clients."""
        watched = self.is_elsewhere or self.tracing or self.on_published is not None
        watched = watched or bool(self.replays.subs or self.paces.subs)
        if watched != self.audiences.watched:
            self.audiences.watched = watched
            self.audiences.changed()

    def caught_up(self, sub: Sub) -> None:
        """It has had what it wants of the past."""
        self.replays.subs.remove(sub)
        self.audiences.add(sub)
        self.watch()

    def is_taken(self, session: Session, origin: NodeId, key: str) -> bool:
        """Whether what that broker sends from now on, and the subscription wants, is the session's at this place."""
        memory = session.carried.memory
        return takes(session, origin) and (memory is None or key in memory.firsts.get(origin, {}))

    def _on_room(self, session: Session) -> None:
        self.views.tell(session)
        self.replays.tell(session)

    def withdraw(self, session: Session) -> None:
        """It wants nothing any longer."""
        for sub in session.subscriptions.values():
            self.remove_sub(sub)

    def restate(self) -> int:
        """Tell the other brokers what this one wants, if that has changed; the number of the statement."""
        if self._wants is None:
            self._wants = Lingering(self.host, self._restate_soon)
            for sub in self._subs:
                if self._is_stated(sub) and not (self._is_shared(sub) and key_of(sub) in self.shares):
                    self._wants.add(sub)
        if self._restating is not None:
            self._restating.cancel()
            self._restating = None
        shares = self.shares.filters()
        if self._wants.review() or self._statement is None or shares != self._told_shares:
            self._told_shares = shares
            self._statement = self.fabric.want((*self._wants.filters(), *shares))
        return self._statement

    def _restate_soon(self) -> None:
        if self._restating is None and self._wants is not None:
            self._restating = self.host.after(0.0, self._restate_now)

    def _restate_now(self) -> None:
        self._restating = None
        self.restate()

    def tell_published(self, publication: Publication) -> None:
        """Those who keep what clients of this broker publish, and those who trace it."""
        if self.tracing:
            note = publication.topic
            self.host.trace(Record("published", event=publication.id, client=publication.publisher, note=note))
        if not self.archives_matched:
            self._archive(publication)

    def _archive(self, publication: Publication) -> None:
        """Not what another site has sent: that is in an archive there."""
        if self.on_published is not None and publication.passage is None:
            self.on_published(publication)

    def accept(self, publications: Sequence[Publication]) -> None:
        """From clients of this broker: matched here, or wherever the fabric says. What has one matching broker keeps
        its order."""
        here = []
        for one in publications:
            to = self.fabric.route(one)
            if to is None:
                here.append(one)
                continue
            self.counts.forwarded += 1
            self.ledger.writes += one.qos > 0
            self._said(one.publisher, (to,) if to else ())
        if here:
            if self.archives_matched:
                for one in here:
                    self._archive(one)
            self.spread(self.name, here)

    def match(self, publication: Publication, share: Share | None) -> None:
        """Another broker took it, and leaves it to this one to find out who wants it; or only which member of a group
        is to have it."""
        if share is not None:
            self.dealing.decide(publication, share)
            return
        self._foreign = True
        if publication.retain and publication.passage is None:  # in another site it has its time
            publication = self.retained.ordered(publication, self.steady())
        self._archive(publication)
        self.spread(self.name, (publication,))
        self._foreign = False

    def released(self, publication: Publication, to: NodeId) -> None:
        """The fabric had kept it, and has sent it now. Whoever has left meanwhile has asked after it (`follow`)."""
        if publication.publisher in self.said_to:
            self._said(publication.publisher, (to,))

    def _said(self, publisher: str, to: Iterable[NodeId]) -> None:
        said_to = self.said_to.get(publisher)
        if said_to is None:
            said_to = self.said_to[publisher] = set()
        said_to.update(to)

    def spread(self, origin: NodeId, publications: Sequence[Publication]) -> None:
        """To all who want them, in order. The origin is the broker that took them from their publisher; only that one
        sends them to others."""
        if self.tracing and origin != self.name:
            for one in publications:
                self.host.trace(Record("received", event=one.id, peer=origin, note=one.topic))
        audience_of = self.audiences.audience
        audiences = [audience_of(one.topic) for one in publications]
        contingent = [at for at, audience in enumerate(audiences) if audience.contingent]
        if not contingent:
            for one, audience in zip(publications, audiences, strict=True):
                self._spread(origin, one, audience, None)
            return
        looked_into = self.audiences.look_into([publications[at] for at in contingent])
        found = dict(zip(contingent, looked_into, strict=True))
        for at, one in enumerate(publications):
            self._spread(origin, one, audiences[at], found.get(at))

    def _spread(self, origin: NodeId, publication: Publication, audience: Audience, found: Found | None) -> None:
        if publication.was_retained and not self.retained.is_news(publication):
            return  # whoever wants it is told of the newer one
        takers, own = audience.takers, origin == self.name
        if own and publication.qos:
            self.stamp = (origin, self.fabric.sent + 1)
        if takers is None or (found is not None and found.subs):
            subs = audience.subs if found is None else [*audience.subs, *found.subs]
            takers = takers_of(subs, publication.publisher)
        body = self.ledger.body() if len(takers) > 1 and publication.qos else None
        for taker in takers:
            qos = min(publication.qos, taker.qos)
            retain = publication.retain and publication.is_shown_retained(taker.as_published)
            self.give(taker.session, origin, publication, qos, retain, taker.identifiers, body)
        groups: Iterable[Group] = audience.groups if found is None else [*audience.groups, *found.groups]
        for group in groups:
            if not self.fabric.deals or group.key not in self.shares or audience.problem:
                self.dealing.share(group, origin, publication)
        if self.audiences.watched:
            if self.replays.subs:
                self._give_replaying(origin, publication)
            for sub in self.paces.subs.wanting(publication) if self.paces.subs else ():
                self._give_paced(sub, origin, publication)
        if publication.retain:
            self.ledger.writes += 1
            if self.retained.takes(publication):
                self.retained.keep(publication, origin, self.steady())
            else:
                self.counts.refuse("retained_full")
        if own:
            # First, so that what is kept here is stamped with the number that it is sent under.
            self._send(publication, audience, found)
            seats = audience.seats if found is None else (*audience.seats, *found.seats)
            if (groups or seats) and self.fabric.deals and not audience.problem:
                keys = dict.fromkeys((*(one.key for one in groups if one.key in self.shares), *seats))
                self._deal(publication, keys)
            self.stamp = None

    def _deal(self, publication: Publication, groups: Iterable[GroupKey]) -> None:
        for key in groups:
            to = self.dealing.decide(publication, Share(key))
            if to is not None and to != self.name and not self._foreign:
                self._said(publication.publisher, (to,))

    def hand(self, publications: Sequence[Publication], takers: Sequence[Taker]) -> list[list[int]]:
        """As `spread` at QoS 1, where all of these takers want all of it and nothing else is to be done. For each of
        them the packet identifiers of those that leave at once, which are the first. They count as sent: whoever calls
        this sends them."""
        self.stamp, since = (self.name, self.fabric.sent + 1), self.steady()
        shared, given, stamp = len(takers) > 1, list[list[int]](), self.stamp
        bodies = [self.ledger.body() for _ in publications] if shared else []
        for taker in takers:
            session = taker.session
            if not session.plain:  # it has begun to move since it was found
                for one, body in zip_longest(publications, bodies):
                    self.give(session, self.name, one, 1, False, (), body)
                given.append([])
            elif not shared and len(publications) >= TOGETHER_MIN and self.flows.must_wait(session):
                self.flows.wait_together(session, publications, self.stamp, since)
                given.append([])
            else:
                items = [Item(one, 1, stamp=stamp, since=since) for one in publications]
                for item, body in zip(items, bodies, strict=False):
                    item.body = body
                given.append(self.flows.take_all(session, items))
        self.stamp = None
        return given

    def _give_paced(self, sub: Sub, origin: NodeId, publication: Publication) -> None:
        wanted = sub.wanted
        identifiers = (wanted.identifier,) if wanted.identifier else ()
        qos, retain = min(publication.qos, wanted.qos), publication.retain and wanted.retain_as_published
        self.give(sub.session, origin, publication, qos, retain, identifiers, pace=wanted.key)

    def _give_replaying(self, origin: NodeId, publication: Publication) -> None:
        for taker in takers_of(self.replays.wanting(origin, publication), publication.publisher):
            qos, retain = min(publication.qos, taker.qos), publication.retain and taker.as_published
            self.give(taker.session, origin, publication, qos, retain, taker.identifiers)

    def _send(self, publication: Publication, audience: Audience, found: Found | None) -> None:
        """In the turn in which it is kept here: what is sent and what is kept become durable together."""
        to: Iterable[NodeId] = audience.brokers
        if publication.retain and not self.fabric.retains_everywhere:
            # Also to those who do not want this content: what they keep of the topic is not the last any more.
            to = [name for name, wanted in self.fabric.interests.items() if wants_topic(wanted, publication.topic)]
            self.fabric.send([name for name in self.keepers() if name not in to], messages.Retained(publication))
        elif publication.retain:
            to = dict.fromkeys((*self.fabric.sources(ANYTHING), *self.fabric.interests))
        elif found is not None and found.brokers:
            to = dict.fromkeys((*audience.brokers, *found.brokers))
        if to:
            self.counts.forwarded += 1
            if not self._foreign:
                self._said(publication.publisher, to)
            self.ledger.writes += publication.qos > 0
            self.fabric.send(to, publication, durable=publication.qos > 0 or publication.retain)

    def repeat(self, origin: NodeId, publication: Publication) -> None:
        """Another bridge's copy of what was taken here before: only for sessions that move, and have not had that."""
        subs = self.audiences.wanting(publication)
        for taker in takers_of([sub for sub in subs if not sub.session.is_settled], publication.publisher):
            qos, retain = min(publication.qos, taker.qos), publication.is_shown_retained(taker.as_published)
            self.give(taker.session, origin, publication, qos, retain, taker.identifiers)

    def had(self, session: Session) -> tuple[Passage, ...]:
        """What a session has had of what bridges and gateways bring, what waits for it not counted."""
        items = (*session.queue.waiting, *(item for items in session.inflow.held.values() for item in items))
        waiting = {item.label.passage for item in items}
        known = dict(session.carried.passages)
        if not session.inflow.gates and session.carried.memory is None:
            known.update(dict.fromkeys(reversed(self.fabric.crossed(session.standing.crossings or 0))))
        return tuple(passage for passage in known if passage not in waiting)[-PASSAGES_MAX:]

    def give(
        self,
        session: Session,
        origin: NodeId,
        publication: Publication,
        qos: int,
        retain: bool,
        identifiers: tuple[int, ...],
        body: Body | None = None,
        group: GroupKey | None = None,
        pace: str = "",
    ) -> None:
        """To a session, wherever it is by now."""
        carried = session.carried
        if (carried.passages or carried.stays) and group is None and self._was_had(session, origin, publication):
            self.counts.late_duplicates += 1
            return
        if session.standing.joined and group is None and self._is_joined(session, origin, publication):
            if qos:
                item = self._item(publication, qos, retain, identifiers, body, group, pace)
                self._give_joined(session, item)
            return
        if publication.passage is not None and group is None:
            if self._waits_for_gateway(session, origin, publication):
                if qos and self._takes(session, origin, publication) and is_own(session, self.stamp, publication):
                    item = self._item(publication, qos, retain, identifiers, body, group, pace)
                    self._keep_brought(session, item)
                return  # at QoS 0 it may be lost, and must not come twice
            if not self._passes(session, origin, publication):
                return
        if session.plain:
            if pace:
                self.paces.take(session, self._item(publication, qos, retain, identifiers, body, group, pace))
            elif qos:
                item = self._item(publication, qos, retain, identifiers, body, group)
                self.flows.take(session, item)
            else:
                self.flows.pass_on_once(
                    session, publication, retain, identifiers, self._is_repeated(origin, publication)
                )
        elif group is not None or (
            self._takes(session, origin, publication) and is_own(session, self.stamp, publication)
        ):
            if qos:
                item = self._item(publication, qos, retain, identifiers, body, group, pace)
                self._give_moving(session, origin, item)
            elif session.outlet is not None:
                self.flows.pass_on_once(
                    session, publication, retain, identifiers, self._is_repeated(origin, publication)
                )

    def _is_joined(self, session: Session, origin: NodeId, publication: Publication) -> bool:
        """Whether it is for an older session, which came here from another site: as if it were here by itself, that
        takes all that comes."""
        standing = session.standing
        has_left = standing.state is State.SHADOW and origin not in standing.open_origins
        if has_left or not self.may_have(session) or is_own(session, self.stamp, publication):
            return False
        return any(key in standing.joined and wants(sub, publication) for key, sub in session.subscriptions.items())

    def _give_joined(self, session: Session, item: Item) -> None:
        if session.standing.arriving:
            session.inflow.hold(ABROAD, item)  # what the other site passes on goes first
            if session.durable:
                self.ledger.put_item(session, item, ABROAD)
        else:
            self.on_older(session, FIRST, item)

    def release_abroad(self, session: Session) -> None:
        """What came here while the session was crossing."""
        for item in session.inflow.held.pop(ABROAD, ()):
            self.ledger.delete_item(session, item)
            if item.group is not None or is_own(session, item.stamp, item.publication):
                self.take(session, item, ABROAD)
            else:
                self.on_older(session, FIRST, item)

    def _waits_for_gateway(self, session: Session, origin: NodeId, publication: Publication) -> bool:
        """Whether this may have been had in another site. An older session of the client is at the gateway that alone
        brings such things, and what that had brought for it in a ring may be matched late. That comes by no
        stream in which the gateway could say where the older one ends; its word that it has none stands behind it."""
        memory, gateway = session.carried.memory, self.gateway
        if memory is None or not gateway or origin == gateway or session.standing.state is State.SHADOW:
            return False
        if gateway not in memory.awaited or gateway in memory.answered or memory.original is not None:
            return False
        return self.fabric.is_known(gateway) and publication.passage is not None and bool(site_in(publication.passage))

    def _keep_brought(self, session: Session, item: Item) -> None:
        session.inflow.hold(BROUGHT, item)
        if session.durable:
            self.ledger.put_item(session, item, BROUGHT)

    def release_brought(self, session: Session) -> None:
        """What the gateway had brought, if that has said that it has no older session. If one has come from there it
        knows what it has had."""
        for item in session.inflow.held.pop(BROUGHT, ()):
            origin, passage = item.stamp[0] if item.stamp is not None else self.name, item.label.passage
            moves = session.standing.state is State.SHADOW
            had = self._was_had(session, origin, item.label)
            if not (had or moves) and self._waits_for_gateway(session, origin, item.label):
                session.inflow.hold(BROUGHT, item)
                continue
            self.ledger.delete_item(session, item)
            if had or not (moves or passage is None or session.passes(passage)):
                self.counts.late_duplicates += 1
            elif moves:
                self.forward(session, item, session.line)
            else:
                self._give_moving(session, origin, item)

    def _item(
        self,
        publication: Publication,
        qos: int,
        retain: bool,
        identifiers: tuple[int, ...],
        body: Body | None,
        group: GroupKey | None,
        pace: str = "",
    ) -> Item:
        stamp, since = self.stamp, self.steady()
        return Item(publication, qos, retain, identifiers, body=body, group=group, stamp=stamp, since=since, pace=pace)

    def _is_repeated(self, origin: NodeId, publication: Publication) -> bool:
        """Whether it may come again after a crash: from its publisher, from the broker that sent it, or from the air. A
        client of ours says nothing again that it said at QoS 0."""
        repeats = publication.qos > 0 or publication.passage is not None
        return repeats or (publication.retain and (origin != self.name or self._foreign))

    def _passes(self, session: Session, origin: NodeId, publication: Publication) -> bool:
        """Whether it is the first of its name that is for this session. One that stays takes what its broker does."""
        assert publication.passage is not None
        if session.plain or session.standing.state is State.SHADOW or not self._takes(session, origin, publication):
            return publication.passage not in session.carried.passages
        if not is_own(session, self.stamp, publication) or not session.passes(publication.passage):
            return False
        if publication.qos and session.durable:
            self.ledger.put_session(session)
        return True

    def _was_had(self, session: Session, origin: NodeId, publication: Publication) -> bool:
        """Whether the session had it in another site: a second gateway has brought it here late, or had taken it there
        before this broker heard of it. Or it had it at another broker, by a subscription that was given up there."""
        if publication.passage is None and origin == self.name:
            return False  # it was published here just now
        if not session.carried.stays and not session.carried.passages:
            return False  # most sessions: nothing was given up, and there is no other site
        name = self._name(publication, self.stamp)
        return name is not None and (name in session.carried.passages or has_had(session, name, publication))

    def _name(self, publication: Publication, stamp: messages.Stamp | None) -> Passage | None:
        """How it is called in all sites."""
        passage = publication.passage
        if passage is None and stamp is not None:
            passage = self.fabric.passage(*stamp)
        return in_all_sites(passage, self.site) if passage is not None else None

    def was_passed_on(self, session: Session, item: Item) -> bool:
        """Whether the old site of a session that arrives has passed on to it what had come to it here by itself."""
        name = self._name(item.label, item.stamp)
        if name is None:
            return False
        if item.label.passage is None:  # what has been taken of this site has come by way of the other
            return name in session.carried.passages
        return has_had(session, name, item.publication) and not self._is_fresh(session, item.publication)

    def _takes(self, session: Session, origin: NodeId, publication: Publication) -> bool:
        """See `takes`. Of a session that crosses between sites it counts, too, over which uplink something comes."""
        if not self.may_have(session) and not self._is_fresh(session, publication):
            return False
        return session.standing.abroad or takes(session, origin)

    def _is_fresh(self, session: Session, publication: Publication) -> bool:
        """Whether only subscriptions want it of which the site that the session comes from has not heard."""
        return bool(session.standing.fresh) and not wanted_by_others(session, publication, session.standing.fresh)

    def may_have(self, session: Session) -> bool:
        """Whether what comes now is not one that the session has at its place in another site."""
        standing = session.standing
        if standing.abroad:
            return not (standing.marked and self.via == standing.moved_to)
        return not (standing.arriving and self.via == standing.arriving)

    def _give_moving(self, session: Session, origin: NodeId, item: Item) -> None:
        gate = session.inflow.gates.get(origin)
        if session.standing.arriving:
            origin = ABROAD  # what the other site passes on goes first
        elif gate is None or gate.through:
            self.take(session, item, origin)
            return
        session.inflow.hold(origin, item)
        if session.copy is not None:
            session.copy.holding.weigh(session.copy, item)
        elif session.durable:
            self.ledger.put_item(session, item, origin)

    def take(self, session: Session, item: Item, origin: NodeId = "") -> None:
        """What is the session's: to its client, or to where it went. Without origin it comes from no broker's stream
        at this moment, and nobody else has it."""
        if item.view:
            return  # of another session of the client: this one has views of its own
        if session.standing.state is State.SHADOW:
            self.forward(session, item, None)
        elif not self._is_first(session, item):
            self.counts.late_duplicates += 1
        elif session.copy is not None:
            session.queue.wait((item,))
            session.queue.waiting_b += item.size_b
            session.copy.holding.weigh(session.copy, item)
        elif session.queue.doubted and self.flows.is_under_way(session, item):
            self.counts.late_duplicates += 1
        else:
            if session.standing.copies:
                self._follow(session, item, origin)
            if item.pace:
                self.paces.take(session, item)
            else:
                self.flows.take(session, item)

    def _is_first(self, session: Session, item: Item) -> bool:
        if session.carried.memory is None:
            return True
        self.ledger.put_session(session)
        return is_first(session, item)

    def empty(self, session: Session) -> None:
        """Nothing of what waits for its client is for it. What it was to be told of what lasts goes too, so that it is
        told all of that anew."""
        self.flows.empty(session)
        self.views.sleep(session)
        session.carried.views.clear()
        if session.outlet is not None:
            self.views.wake(session, anew=True)

    def forward(self, shadow: Session, item: Item, born: Line | None = None) -> None:
        """For a shadow: on to where the session went, with `born` where another had kept that which went into it."""
        standing = shadow.standing
        if standing.in_vain:
            shadow.inflow.hold(IN_VAIN, item)
            self.ledger.put_item(shadow, item, IN_VAIN)
            return
        self.ledger.writes += 1
        self.fabric.send((standing.moved_to,), Forwarded(shadow.client, standing.next_epoch, kept_of(item), born))

    def _follow(self, session: Session, item: Item, origin: NodeId) -> None:
        """What the session has taken, to the holders of its copies that do not get it otherwise."""
        standing = session.standing
        to = [holder for holder, turned in standing.copies.items() if origin not in turned]
        self.ledger.writes += bool(to)
        self.fabric.send(to, Forwarded(session.client, standing.copied, kept_of(item)))


def takes(session: Session, origin: NodeId) -> bool:
    """Whether what comes from this broker now is the session's here, or only at an earlier or later place of it."""
    if session.standing.state is State.SHADOW and origin not in session.standing.open_origins:
        return False
    gate = session.inflow.gates.get(origin)
    if gate is None:
        # Of a broker that its source did not know, all comes through the source until the two have spoken.
        return not session.inflow.is_unconfirmed
    return gate.begun

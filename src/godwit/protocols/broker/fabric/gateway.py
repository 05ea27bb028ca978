"""A broker of a site that has uplinks to gateways of other sites: docs/sites.md.

Inside the site it is a broker like any other. What the other sites want of this one it wants too, so that its own
fabric brings it here. It sends that on into the streams of its uplinks, and what comes from them into its own fabric as
if a client of this broker had published it. Custody goes from disk to disk: a mark is written in the turn that writes
what is sent on. So nothing is lost, nothing comes twice, and what came in order leaves in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from godwit.filters.filters import Filter, alternatives
from godwit.protocols.broker.fabric.base import ANYTHING, Fabric
from godwit.protocols.broker.fabric.border import at_home, in_all_sites, known_as, site_in
from godwit.protocols.broker.fabric.bridge import Bridge
from godwit.protocols.broker.fabric.passages import Passage, passage_of
from godwit.protocols.broker.fabric.ring.fabric import RingFabric
from godwit.protocols.broker.fabric.tree import TreeFabric
from godwit.protocols.broker.fabric.uplink import Stalled, Uplink, View, loaded, paths_through, put, told_to
from godwit.protocols.broker.interest.shares import opened, parted
from godwit.protocols.broker.messages import (
    ELSEWHERE,
    Astray,
    Content,
    Crossed,
    Dealt,
    Filters,
    Forwarded,
    Hello,
    Kept,
    Marker,
    Offered,
    Outlook,
    Path,
    Repeated,
    Retained,
    Routed,
    Seated,
    Session,
    Share,
    Summon,
    Unclear,
)
from godwit.protocols.broker.publication import Publication, wants_topic
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.sequence import Numbers
from godwit.protocols.host import LocalError, Message, NodeId, Record
from godwit.protocols.routing.covering.configurations import Configuration
from godwit.protocols.routing.covering.router import Router
from godwit.protocols.routing.covering.scopes import Advertised
from godwit.protocols.routing.covering.strategies import Strategy
from godwit.tables.merging.interest import Concise
from godwit.tables.merging.merging import Update

SITE = "/site"
"""All of our own site, as one neighbor among the uplinks. No broker can be named so."""

BLOCK = 4_096

CROSSING = Summon | Session | Forwarded | Marker | Crossed | Astray
"""What is said over an uplink about a session that crosses it."""

T = TypeVar("T")


class SiteOptions(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    gateways: tuple[NodeId, ...] = ()
    """All gateways of this site, the first one first: another acts where those before it cannot. None: this one."""
    takeover_s: float = 10.0
    """How long an uplink must be there, and no better one, before a gateway acts in place of another."""
    look_round_s: float = 1.0


class Shelf(Protocol):
    """What is retained at this broker."""

    def is_news(self, publication: Publication) -> bool:
        """Whether it comes after what is known of its topic."""

    def publications(self) -> Iterable[Publication]:
        """All of them, cleared ones too."""


class _Nothing:
    def is_news(self, publication: Publication) -> bool:
        return True

    def publications(self) -> Iterable[Publication]:
        return ()


NOTHING = _Nothing()


class Gateway:
    """A `Fabric`. Streams, brokers and sessions that move are those of the inner one; over `base`, which is its tree or
    its ring, lead the streams to other sites too.

    Whoever runs it calls `reached` and `unreached` for gateways of other sites, sets `offer` to what clients of this
    broker may publish, and `retained` to what this broker retains.
    """

    def __init__(self, inner: TreeFabric | Bridge | RingFabric, store: Store, options: SiteOptions) -> None:
        self.inner = inner
        self.base = inner.tree if isinstance(inner, Bridge) else inner
        self.retains_everywhere = inner.retains_everywhere
        """Within the site; to other sites goes what they want."""
        self.deals = inner.deals
        """Within the site too: each site has members of its own."""
        self.store = store
        self.options = options
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None
        self.retained: Shelf = NOTHING
        self.on_refused: Callable[[str, Path], None] = lambda site, cycle: None
        """Called when an uplink to a site is found to close a cycle, with its path; an empty one: no longer."""
        self.on_crossing: Callable[[NodeId, CROSSING], None] = lambda peer, content: None
        """A gateway of another site says something about a session that crosses."""
        self.on_outlook: Callable[[NodeId], None] = lambda peer: None
        """A gateway of another site has said what it wants."""
        self.on_source: Callable[[NodeId], None] = lambda peer: None
        """Called before the broker works on something that came over an uplink, and without peer after that."""
        self.on_reborn: Callable[[NodeId], None] = lambda peer: None
        """A gateway of another site has lost its disk."""
        self.uplinks: dict[NodeId, Uplink] = loaded(store, options.site)
        self._numbers = Numbers(store, "outlooks", block=BLOCK)
        self._own: tuple[Filter, ...] | None = None
        self._shares: tuple[Filter, ...] = ()
        """Of groups that have members here."""
        self._told: tuple[Filter, ...] | None = None
        """What the site was told; None: it must be told anew."""
        self._statement = 0
        self._offer: Filters = ANYTHING
        self._offers = self._loaded("offers", dict[NodeId, Filters])
        self._offered_to: dict[NodeId, Filters] = {}
        """What fellow gateways were told last."""
        self._seated = self._loaded("seated", dict[NodeId, Seated])
        """What fellow gateways have said of themselves."""
        self._seat_numbers = Numbers(store, "seat numbers", block=BLOCK)
        self._seat = Seated(options.site)
        """What this one says of itself."""
        self._seated_to: dict[NodeId, Seated] = {}
        """What brokers of the site were told last, on the disks that they have."""
        self._told_disks: dict[NodeId, int] = {}
        self._cycles: dict[NodeId, Path] = {}
        self._held: dict[NodeId, tuple[Filters, Filters]] = {}
        """By neighbor: what it offers and wants, as the router knows it."""
        self._router = self._new_router()
        self._source: tuple[NodeId, int] | None = None
        """The uplink whose content the broker is working on, and its number."""
        self.base.is_foreign = self.uplinks.__contains__
        inner.on_content = self._from_inner
        inner.on_change = self._inner_changed
        self._act()
        for peer, uplink in self.uplinks.items():
            # What comes before the broker has spoken must cross too.
            self._hold(peer, uplink.offered, uplink.wanted)
        store.settled(self._look_round)

    # The inner fabric's, but for what lies beyond it.

    @property
    def name(self) -> NodeId:
        return self.base.host.name

    @property
    def clock(self) -> Callable[[], float]:
        return self.inner.clock

    @clock.setter
    def clock(self, clock: Callable[[], float]) -> None:
        self.inner.clock = clock

    @property
    def brokers(self) -> Set[NodeId]:
        return self.base.brokers

    def is_known(self, broker: NodeId) -> bool:
        return self.inner.is_known(broker)

    def sources(self, filters: Iterable[Filter]) -> Set[NodeId]:
        return self.inner.sources(filters)

    def origins(self, filters: Iterable[Filter], places: Iterable[NodeId]) -> set[NodeId]:
        return {*self.inner.sources(filters), *places}  # it brings something itself

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        # Also of those that want nothing: this broker states what it wants only where there are others.
        return {**self.inner.interests, **{peer: one.wanted for peer, one in self.uplinks.items()}}

    def route(self, publication: Publication, share: Share | None = None) -> NodeId | None:
        return self.inner.route(publication, share)

    def is_silent(self, broker: NodeId) -> bool:
        return self.inner.is_silent(broker)

    def disk_of(self, broker: NodeId) -> int:
        return self.inner.disk_of(broker)

    def is_confirmed(self, broker: NodeId, number: int) -> bool:
        return self.inner.is_confirmed(broker, number)

    def heard(self, broker: NodeId) -> int:
        return self.inner.heard(broker)

    @property
    def crossings(self) -> int:
        return self.inner.crossings

    def crossed(self, after: int) -> list[Passage]:
        return self.inner.crossed(after)

    def passage(self, origin: NodeId, number: int) -> Passage:
        return self.base.passage(origin, number)

    @property
    def sent(self) -> int:
        return self.inner.sent

    def linked(self, peer: NodeId) -> None:
        self.inner.linked(peer)

    def unlinked(self, peer: NodeId) -> None:
        self.inner.unlinked(peer)

    # Uplinks come and go.

    def reached(self, peer: NodeId) -> None:
        """A gateway of another site can be spoken to."""
        if not peer or peer == self.name or self.is_known(peer):
            raise LocalError(f"{self.name!r} has no uplink to {peer!r}: that is no gateway of another site")
        if peer not in self.uplinks:
            self.uplinks[peer] = Uplink(peer, self.options.site, View())
            put(self.store, self.uplinks[peer])
            self._router = self._new_router()
            self.on_change()
        uplink = self.uplinks[peer]
        uplink.up, uplink.up_since_s = True, self.base.host.now()
        self.base.reached(peer)
        self._tell()

    def unreached(self, peer: NodeId) -> None:
        self.base.beyond.discard(peer)
        if peer in self.uplinks:
            self.uplinks[peer].up = False
            self._tell()

    def forget(self, peer: NodeId) -> None:
        """The uplink is no more, and what was kept for it is dropped."""
        if self.uplinks.pop(peer, None) is not None:
            self.base.beyond.discard(peer)
            self.base.streams.forget(peer)
            self.store.drop("meta", f"uplink {peer}")
            self._router = self._new_router()
            self._tell()

    def receive(self, sender: NodeId, message: Message) -> None:
        if sender in self.uplinks:
            self.base.receive_from_beyond(sender, message)
        else:
            self.inner.receive(sender, message)

    # What is wanted and offered, here and there.

    def want(self, filters: Iterable[Filter]) -> int:
        self._own, self._shares = parted(filters)
        self._told = None
        self._tell()
        return self._statement

    def offer(self, filters: Iterable[Filter]) -> None:
        """All that clients of this broker may publish."""
        self._offer = tuple(filters)
        self._tell()

    def _look_round(self) -> None:
        self._tell()
        self.base.host.after(self.options.look_round_s, self._look_round)

    def _inner_changed(self) -> None:
        for peer, uplink in self.uplinks.items():
            reborn = uplink.disk not in (0, self.base.disk_of(peer))
            uplink.disk = self.base.disk_of(peer)
            if reborn:
                uplink.tell_anew()
                uplink.stalled = None
                self.on_reborn(peer)
        for broker in self._offers.keys() - self.brokers:
            del self._offers[broker]
            self._put_offers()
        self._tell()
        self.on_change()

    def _tell(self) -> None:
        """Follow all that has changed: what uplinks, the site and fellow gateways must be told. Not before the broker
        has spoken: it may want what it has not looked up yet."""
        if self._own is None:
            return
        changed = self._act()
        self._hold(SITE, self._site_offers(), self._site_wishes())
        for peer, uplink in self.uplinks.items():
            self._hold(peer, uplink.offered, uplink.wanted)
        self._tell_site()
        for uplink in self.uplinks.values():
            self._tell_uplink(uplink)
        self._tell_fellows()
        if changed:
            self.on_change()

    def _act(self) -> bool:
        """Decide where this gateway acts; whether that has changed."""
        before = [uplink.acts for uplink in self.uplinks.values()]
        for uplink in self.uplinks.values():
            uplink.acts = self._acts(uplink)
        return before != [uplink.acts for uplink in self.uplinks.values()]

    def _acts(self, uplink: Uplink) -> bool:
        """The first gateway that has an uplink to a site always acts for it, so that what is to go there waits on its
        disk whatever happens. Another acts beside it while that one, or its uplink, is away. What then comes twice is
        known by its name."""
        if not uplink.site or self._follows(uplink):
            return uplink.heard.acts
        fellows = [one for one in self._fellows_before() if self._serves(one, uplink.site)]
        beside = self._beside(uplink)
        if not fellows and not beside:
            return True
        if any(uplink.site in self._seated[one].reaches and self.base.way(one) is not None for one in fellows):
            return False
        if any(one.up for one in beside):
            return False
        since_s = self.base.host.now() - uplink.up_since_s
        return uplink.acts or (uplink.up and since_s >= self.options.takeover_s)

    def _fellows_before(self) -> tuple[NodeId, ...]:
        gateways = self.options.gateways
        return gateways[: gateways.index(self.name)] if self.name in gateways else ()

    def _serves(self, fellow: NodeId, site: str) -> bool:
        seated = self._seated.get(fellow)
        return seated is not None and any(path[0] == site for path in seated.paths)

    def _site_wishes(self) -> Filters:
        inside = (one for filters in self.inner.interests.values() for one in filters)
        return alternatives(map(opened, (*(self._own or ()), *self._shares, *inside))).filters

    def _site_offers(self) -> Filters:
        inside = (one for filters in self._offers.values() for one in filters)
        return alternatives((*self._offer, *inside)).filters

    def _hold(self, neighbor: NodeId, offered: Filters, wanted: Filters) -> None:
        """This is all that a neighbor offers and wants."""
        before = self._held.get(neighbor, ((), ()))
        if before == (offered, wanted):
            return
        self._held[neighbor] = offered, wanted
        self._router.hear(neighbor, _update(before[0], offered), _update(before[1], wanted))

    def _tell_site(self) -> None:
        wanted = (
            alternatives((*(self._own or ()), *self._router.wanted.statements.told(SITE), *self._transit())).filters
            + self._shares
        )
        if wanted != self._told:
            self._told = wanted
            self._statement = self.inner.want(wanted)

    def _transit(self) -> Iterator[Filter]:
        """What goes from one uplink to another is matched in our ring, too: it must come back from there."""
        if isinstance(self.base, RingFabric) and len(self.uplinks) > 1:
            for uplink in self.uplinks.values():
                yield from uplink.wanted

    def _tell_uplink(self, uplink: Uplink) -> None:
        lane = self.base.streams.sender.outbox.lanes.get(uplink.peer)
        if lane is not None and lane.dropped != uplink.dropped:
            uplink.dropped = lane.dropped
            uplink.tell_anew()
        router, behind = self._router, self._behind()
        offered: Filters = ()
        wanted: Filters = ()
        if not uplink.is_refused:
            offered = told_to(router.offered.statements.told(uplink.peer))
            wanted = told_to(router.wanted.statements.told(uplink.peer)) if uplink.acts else ()
        paths = paths_through(self.options.site, behind, uplink.site)
        outlook = uplink.tell(paths, offered, wanted, self._numbers.last + 1, leads=self._leads(uplink))
        if outlook is not None:
            self._numbers.next()
            self.base.send((uplink.peer,), outlook)

    def _behind(self) -> Iterator[Path]:
        for uplink in self.uplinks.values():
            yield from uplink.paths
        for seated in self._seated.values():
            yield from seated.paths

    def _tell_fellows(self) -> None:
        """Every broker of the site hears once that this is a gateway; the other gateways hear more."""
        up = sorted({one.site for one in self.uplinks.values() if one.up and one.site and not one.is_refused})
        paths = tuple(sorted({path for one in self.uplinks.values() for path in one.paths}))
        seated = Seated(self.options.site, tuple(up), paths, self.crosses, self.name, self._seat.number)
        if seated != self._seat:
            self._seat = seated = msgspec.structs.replace(seated, number=self._seat_numbers.next())
        for broker in sorted(self.brokers):
            disk = self.base.disk_of(broker)
            if self._told_disks.get(broker, 0) not in (0, disk):
                # It has lost what it was told.
                self._seated_to.pop(broker, None)
                self._offered_to.pop(broker, None)
            self._told_disks[broker] = disk
            is_fellow = broker in self.options.gateways or broker in self._seated
            told = self._seated_to.get(broker)
            if told is None or told.crosses != seated.crosses or (is_fellow and told != seated):
                self._seated_to[broker] = seated
                self.base.send((broker,), seated)
        behind = (one for uplink in self.uplinks.values() if uplink.acts for one in uplink.offered)
        offers = alternatives((*self._offer, *behind)).filters
        for fellow in sorted(self._seated):
            if self._offered_to.get(fellow) != offers and self.is_known(fellow):
                self._offered_to[fellow] = offers
                self.base.send((fellow,), Offered(offers))

    def _new_router(self) -> Router:
        """Filled anew: what is told is compared with what was told before, so nobody is told anything twice."""
        neighbors = (SITE, *self.uplinks)
        router = Router(neighbors, Advertised(neighbors), Configuration(strategy=Strategy.MERGING), Concise())
        self._held = {peer: held for peer, held in self._held.items() if peer in neighbors}
        for peer, (offered, wanted) in self._held.items():
            router.hear(peer, _update((), offered), _update((), wanted))
        return router

    # Contents.

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        names = tuple(to)
        inside = tuple(name for name in names if name not in self.uplinks)
        passage = passage_of(f"{self.options.site}/{self.name}", self.base.streams.sender.stream, self.sent + 1)
        if inside:
            self.inner.send(inside, content, durable=durable)
        outside = [name for name in names if name in self.uplinks]
        if isinstance(content, Publication):
            self._send_on(outside, content, passage, durable)
        elif outside and isinstance(content, CROSSING):
            self.base.send(outside, _carried_over(content, self.options.site), durable=durable)

    # Sessions that cross.

    @property
    def crosses(self) -> tuple[str, ...]:
        """The sites from and to which sessions cross here."""
        return tuple(sorted({path[-1] for one in self.uplinks.values() if self._joins(one) for path in one.paths}))

    def toward(self, site: str) -> NodeId:
        """The gateway of another site over which sessions come from that site; empty where they do not here."""
        for peer, uplink in self.uplinks.items():
            if self._joins(uplink) and any(path[-1] == site for path in uplink.paths):
                return peer
        return ""

    def lines(self) -> dict[str, int]:
        """How far each stream of our site has come here, by the names that publications have in all sites."""
        sources = self.base.streams.receiver.sources
        come = {origin: sources[origin].given for origin in self.brokers if origin in sources}
        names = (self.base.passage(origin, number) for origin, number in {**come, self.name: self.sent}.items())
        return dict(in_all_sites(name, self.options.site) for name in names)

    def _joins(self, uplink: Uplink) -> bool:
        """One uplink between two sites: whatever else acts for a while, all goes over this one."""
        return not uplink.is_refused and self._leads(uplink)

    def _leads(self, uplink: Uplink) -> bool:
        if not uplink.site or self._follows(uplink):
            return uplink.heard.leads
        before = self._fellows_before()
        is_first = all(one in self._seated and not self._serves(one, uplink.site) for one in before)
        return is_first and not self._beside(uplink)

    def _follows(self, uplink: Uplink) -> bool:
        """Whether the other site decides which uplink between the two acts: both must agree, whoever has which
        gateways."""
        return self.options.site > uplink.site

    def _beside(self, uplink: Uplink) -> list[Uplink]:
        """Uplinks of this gateway to the same site that go before it."""
        return [one for one in self.uplinks.values() if one.site == uplink.site and one.peer < uplink.peer]

    def has_fellow(self, site: str) -> bool:
        """Whether another gateway of this site leads to that one, too."""
        return any(self._serves(one, site) for one in self._seated)

    def fellow_toward(self, site: str) -> NodeId:
        """Another gateway of this site where sessions cross to that one."""
        return next((one for one, seated in self._seated.items() if site in seated.crosses), "")

    def _send_on(self, to: Iterable[NodeId], publication: Publication, passage: Passage, durable: bool) -> None:
        """To other sites, but not to the one that it comes from. Retained ones are offered to everybody, and go where
        their topic is wanted, for whichever content: what is kept of it there is not the last any more."""
        came_from = self.uplinks[self._source[0]].site if self._source is not None else None
        origin = _site_in(publication)
        peers = [peer for peer in to if self.uplinks[peer].site != came_from and not self._leads_to(peer, origin)]
        if publication.retain:
            peers = [peer for peer in peers if wants_topic(self.uplinks[peer].wanted, publication.topic)]
        if not peers:
            return
        for peer in peers:
            self.uplinks[peer].counts.events_out += 1
        self.base.send(peers, _named(publication, self.options.site, passage), durable=durable)

    def _from_inner(self, origin: NodeId, number: int, content: Content | Repeated) -> None:
        if origin in self.uplinks:
            self._from_uplink(self.uplinks[origin], number, content)
            return
        match content:
            case Publication() if origin != self.name:
                # Before the broker says that it has done with it: what is told from then on is a new turn.
                self._pass_on(origin, number, content)
                if isinstance(self.base, RingFabric):
                    self._give_back(origin, number, content)
                    return
            case Dealt() if isinstance(self.base, RingFabric):
                self._give_back(origin, number, content)
                return
            case Retained(publication):
                self._pass_on_retained(publication)
            case Offered(filters):
                self._offers[origin] = filters
                self._put_offers()
                self._tell_soon()
            case Seated():
                self._seated[content.by or origin] = content
                self.store.put("meta", "seated", 0, msgspec.msgpack.encode(self._seated))
                self._tell_soon()
                self.base.taken(origin, number)
                return
        self.on_content(origin, number, content)

    def _give_back(self, origin: NodeId, number: int, content: Publication | Dealt) -> None:
        """From its matching broker in our ring, to which perhaps this gateway had sent it from an uplink."""
        site = _site_in(content.publication if isinstance(content, Dealt) else content)
        self.on_source(next((peer for peer in self.uplinks if self._leads_to(peer, site)), ""))
        try:
            self.on_content(origin, number, content)
        finally:
            self.on_source("")

    def _leads_to(self, peer: NodeId, site: str) -> bool:
        return any(path[-1] == site for path in self.uplinks[peer].paths)

    def _pass_on(self, origin: NodeId, number: int, publication: Publication) -> None:
        wanting: Iterable[NodeId] = ()
        if self._crosses():
            wanting = self.uplinks if publication.retain else self._router.ways(publication.values(), "", SITE)
        if wanting:
            broker, line = self.base.passage(origin, number)
            durable = publication.qos > 0 or publication.retain
            self._send_on(sorted(wanting), publication, (f"{self.options.site}/{broker}", line), durable)

    def _pass_on_retained(self, publication: Publication) -> None:
        """Another broker of the site answers for it. Perhaps this one has lost its disk, and what it had sent on."""
        if self.retained.is_news(publication):
            peers = [peer for peer, one in self.uplinks.items() if wants_topic(one.wanted, publication.topic)]
            self.base.send(peers, Retained(publication))

    def _crosses(self) -> bool:
        return any(uplink.wanted for uplink in self.uplinks.values())

    def _from_uplink(self, uplink: Uplink, number: int, content: Content | Repeated) -> None:
        """In a ring what came before a cut must be back from where it is matched: until then the uplink waits."""
        if uplink.stalled is not None:
            uplink.stalled.append((number, content))
        elif isinstance(self.base, RingFabric) and isinstance(content, Marker | Crossed):
            stalled: Stalled = [(number, content)]
            uplink.stalled = stalled
            self.base.routes.loops.flush(partial(self._go_on, uplink, stalled))
        else:
            self._take(uplink, number, content)

    def _go_on(self, uplink: Uplink, stalled: Stalled) -> None:
        if uplink.stalled is not stalled:
            return  # the other side has lost its disk since, and with it this stream
        uplink.stalled = None
        self._take(uplink, *stalled[0])
        for number, content in stalled[1:]:
            self._from_uplink(uplink, number, content)

    def _take(self, uplink: Uplink, number: int, content: Content | Repeated) -> None:
        uplink.disk = self.base.disk_of(uplink.peer)
        match content:
            case Publication() if not self._is_own(content):
                uplink.counts.events_in += 1
                self._give(uplink, number, content)
            case Repeated():
                uplink.counts.repeated += 1
                self._give(uplink, number, content)
            case Retained(publication):
                if self.retained.is_news(publication):
                    self._give(uplink, number, msgspec.structs.replace(publication, was_retained=True))
                else:
                    self.base.taken(uplink.peer, number)
            case _:
                self._hear(uplink, content)
                self.base.taken(uplink.peer, number)

    def _give(self, uplink: Uplink, number: int, content: Publication | Repeated) -> None:
        """To the broker, as if it were published here."""
        self._source = (uplink.peer, number)
        self.on_source(uplink.peer)
        try:
            if isinstance(self.base, RingFabric):
                self._route(self.base, uplink, number, content)
            else:
                self.on_content(self.name, number, content)
        finally:
            self._source = None
            self.on_source("")

    def _route(self, ring: RingFabric, uplink: Uplink, number: int, content: Publication | Repeated) -> None:
        """To its matching broker. What is retained has no name yet: that of its place in the stream of the uplink."""
        assert isinstance(content, Publication)  # rings tell copies apart where they are matched
        if content.passage is None:
            line, name = ring.disk_of(uplink.peer), known_as(uplink.site, at_home(uplink.peer))
            content = msgspec.structs.replace(content, passage=passage_of(name, line, number))
        if ring.route(content) is None:
            ring.routes.match(Routed(content))
        else:
            ring.routes.loops.add(content)
        ring.taken(uplink.peer, number)

    def taken(self, origin: NodeId, number: int) -> None:
        if origin != self.name:
            self.inner.taken(origin, number)
        elif self._source is not None:
            self.base.taken(*self._source)

    def _hear(self, uplink: Uplink, content: Content | Repeated) -> None:
        match content:
            case Outlook():
                self._look_out(uplink, content)
            case Unclear(number):
                if number == uplink.told.number:
                    uplink.tell_anew()
                    self._tell_soon()
            case Publication():
                uplink.counts.repeated += 1
            case Hello():
                pass
            case Summon() | Session() | Forwarded() | Marker() | Crossed() | Astray():
                self.on_crossing(uplink.peer, content)
            case _:
                uplink.counts.refused += 1
                note = "nothing that gateways say to one another"
                self.base.host.trace(Record("refused", peer=uplink.peer, message=type(content).__name__, note=note))

    def _look_out(self, uplink: Uplink, outlook: Outlook) -> None:
        before = uplink.wanted
        if not uplink.hear(outlook):
            self.base.send((uplink.peer,), Unclear(outlook.number))
            return
        put(self.store, uplink)
        uplink.acts = self._acts(uplink)
        refused = uplink.cycle if uplink.is_refused else ()
        if self._cycles.get(uplink.peer, ()) != refused:
            self._cycles[uplink.peer] = refused
            self.on_refused(uplink.site, refused)
        self._send_retained(uplink, before)
        self._tell()
        self.on_change()
        self.on_outlook(uplink.peer)

    def _send_retained(self, uplink: Uplink, before: Filters) -> None:
        """What is retained and wanted since now."""
        new = tuple(one for one in uplink.wanted if one not in set(before))
        if not new:
            return
        for publication in self.retained.publications():
            if wants_topic(new, publication.topic) and not wants_topic(before, publication.topic):
                self.base.send((uplink.peer,), Retained(publication))

    def _is_own(self, publication: Publication) -> bool:
        return publication.passage is not None and publication.passage[0].startswith(f"{self.options.site}/")

    def _tell_soon(self) -> None:
        self.base.host.after(0.0, self._tell)

    def _put_offers(self) -> None:
        self.store.put("meta", "offers", 0, msgspec.msgpack.encode(self._offers))

    def _loaded(self, what: str, kind: type[dict[NodeId, T]]) -> dict[NodeId, T]:
        rows = [row for owner, _, row in self.store.load("meta") if owner == what]
        return msgspec.msgpack.decode(rows[0], type=kind) if rows else {}


def _update(before: Filters, after: Filters) -> Update[Filter]:
    was, now = set(before), set(after)
    return Update(tuple(one for one in before if one not in now), tuple(one for one in after if one not in was))


def ring_of(fabric: Fabric) -> RingFabric | None:
    """The ring that a broker is in, gateway or not."""
    inner = fabric.inner if isinstance(fabric, Gateway) else fabric
    return inner if isinstance(inner, RingFabric) else None


def _site_in(publication: Publication) -> str:
    """The site where it was published, by its name; empty where that was ours."""
    return site_in(publication.passage) if publication.passage is not None else ""


def _named(publication: Publication, site: str, passage: Passage) -> Publication:
    """With a name that no other site gives. One that came from a site has it; in the air of a site it needs ours."""
    name = in_all_sites(publication.passage or passage, site)
    return publication if name == publication.passage else msgspec.structs.replace(publication, passage=name)


def _carried_over(content: CROSSING, site: str) -> CROSSING:
    """Numbers and names of our site mean nothing in another one, where brokers may have the same names."""
    match content:
        case Session(carried=carried):
            had = {in_all_sites(one, site): None for one in carried.passages}
            carried = msgspec.structs.replace(carried, passages=had)
            kept = tuple(_unstamped(one, site) for one in content.kept)
            return msgspec.structs.replace(content, carried=carried, kept=kept)
        case Forwarded():
            return msgspec.structs.replace(content, kept=_unstamped(content.kept, site))
    return content


def _unstamped(kept: Kept, site: str) -> Kept:
    publication, stamp = kept.publication, None if kept.stamp is None else ELSEWHERE
    if publication.passage is not None:
        publication = _named(publication, site, publication.passage)
    return msgspec.structs.replace(kept, publication=publication, stamp=stamp)

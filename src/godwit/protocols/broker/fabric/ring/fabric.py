"""The ring as a `Fabric` (docs/ring.md): streams to any broker by its name, one matching broker a publication."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.base import ANYTHING
from godwit.protocols.broker.fabric.passages import Passage, passage_of
from godwit.protocols.broker.fabric.ring.atlas import TABLE, Atlas, is_taken, outranks, rest_of
from godwit.protocols.broker.fabric.ring.book import Book
from godwit.protocols.broker.fabric.ring.doubts import Doubts
from godwit.protocols.broker.fabric.ring.membership import Clear, Membership, Stage
from godwit.protocols.broker.fabric.ring.orphans import Orphans
from godwit.protocols.broker.fabric.ring.replicas import Replicas
from godwit.protocols.broker.fabric.ring.routes import Routes
from godwit.protocols.broker.fabric.ring.search import Search
from godwit.protocols.broker.fabric.ring.standins import Standins
from godwit.protocols.broker.fabric.ring.statements import Statements
from godwit.protocols.broker.fabric.ring.targets import Targets, homes_of
from godwit.protocols.broker.fabric.ring.ways import Ways
from godwit.protocols.broker.messages import (
    Agreed,
    Amended,
    Awake,
    Barred,
    BookEntry,
    Carried,
    Ceded,
    Content,
    Copy,
    Divided,
    Dividing,
    Enter,
    Found,
    Given,
    Heard,
    HomeEntry,
    Matchers,
    Noted,
    Nothing,
    Owned,
    Pass,
    Passed,
    Place,
    Placed,
    Region,
    Repeated,
    Replica,
    Routed,
    Said,
    Seated,
    Seek,
    Session,
    Share,
    Standin,
    Turn,
    Turned,
    Undivided,
    Unfit,
    Wanted,
    Watched,
)
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.frames import Ask, Parcels, Taken, spoken_by
from godwit.protocols.broker.streams.sender import Counts, StreamOptions
from godwit.protocols.broker.streams.streams import Streams
from godwit.protocols.gathering.areas import Anywhere, Keyed, Reach, Spot, meets
from godwit.protocols.gathering.space import Cell, Point
from godwit.protocols.host import Host, LocalError, Message, NodeId, Record, RemoteError

HOMES = 3


class RingOptions(msgspec.Struct, frozen=True, kw_only=True):
    place: Point = (0.0, 0.0)
    """Longitude and latitude: where this broker stands."""
    first: bool = False
    """Begin a ring where nobody who is linked is in one. It is for an operator to say: who has lost its disk, and
    reaches nobody, cannot know whether there is a ring."""
    located: tuple[str, ...] = ()
    """Topic filters under which publications are matched where they happened."""
    streams: StreamOptions = StreamOptions()
    begin_s: float = 1.5
    knock_s: float = 0.5
    """How often a broker that is outside asks to be let in."""
    seek_s: float = 1.0
    """How often owners are looked for that are not known."""
    agree_s: float = 20.0
    """How long a newcomer waits for all to agree, before it is put off."""
    pass_s: float = 60.0
    """How long what is for a cell with a new owner waits for what the old one passes on. Beyond that it goes, and what
    the old one still has comes behind it."""
    doubt_s: float = 3.0
    """How long a broker may take to contradict whoever says that its cell is another's."""
    covered_s: float = 10.0
    """How long a subscription may take to be in place."""
    watch_s: float = 2.0
    """How often holders of a replica look whether its owner is there."""
    absent_s: float = 30.0
    """How long an owner may be silent before a holder of its book stands in for it."""
    replace_s: float = 60.0
    """How long a holder may be silent before another one takes its place."""
    restore_s: float = 10.0
    """How long a broker that lost its disk waits for what others have kept of its book."""
    orphaned_s: float = 120.0
    """How long a broker asks around for the owner of a cell that nobody remembers, before it takes that as nobody's."""
    incarnation: int = 0


class RingFabric:
    """A `Fabric`. Make one at each start and call `want` once. Frames that come before the disk has settled are
    ignored, as if they were lost."""

    retains_everywhere = False
    deals = True

    def __init__(self, host: Host, store: Store, options: RingOptions) -> None:
        self.host = host
        self.store = store
        self.options = options
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None
        self.on_routed: Callable[[Publication, Share | None], None] = lambda publication, share: None
        """A publication is to be matched here, as if a client of this broker had made it; or a member of a group is to
        be found for one that was."""
        self.on_clear: Clear = lambda owner, heir, then: then()
        self.on_give: Callable[[Callable[[str], bool]], Iterable[HomeEntry]] = lambda is_home: ()
        """The clients that this broker knows of and that are at home in a cell that it gives away."""
        self.on_asked: Callable[[NodeId, tuple[Filter, ...]], None] = lambda broker, filters: None
        """A broker wants this, which it did not before: it is sent what is retained of it here."""
        self.on_cede: Callable[[NodeId, Cell], None] = lambda broker, cell: None
        """A broker is to have, or to keep for its owner, what is retained for this cell."""
        self.on_lost: Callable[[NodeId, Cell], None] = lambda broker, cell: None
        """The owner of this cell has lost its disk: it is told what is retained there and wanted here."""
        self.on_rehome: Callable[[Cell], None] = lambda cell: None
        """The home of some clients has another owner, who does not know of them."""
        self.clock: Callable[[], float] = host.now
        self.ways = Ways(host)
        self._parted: set[NodeId] = set()
        """Brokers whose link has broken, and that were not heard since."""
        self.streams = Streams(
            host, store, options.streams, self.ways.pass_on, self.ways.leads_to, self._give, self._reborn, self._now
        )
        self.streams.receiver.on_met = self._heard_first
        self.streams.sender.on_given_up = self._said_in_vain
        self.targets = Targets(options.located)
        self.atlas = Atlas(store, host.name)
        self.replicas = Replicas(self)
        self.standins = Standins(self)
        self.membership = Membership(self)
        self.doubts = Doubts(self)
        self.orphans = Orphans(self)
        self.search = Search(self)
        self.statements = Statements(
            host, store, self.atlas, self.targets, self._say, self.membership.heirs, self._is_safe
        )
        self.routes = Routes(self)
        self._seats = self._seats_before()
        self.book = Book(store, self._part, host.now())
        self._known: dict[NodeId, None] = dict.fromkeys(self._named_rows("met "))
        self.given: dict[str, Region] = self._given_before()
        self._own_version = 0
        """The version of the book that has what this broker wants itself."""
        self._finding: list[tuple[tuple[Keyed, ...], Callable[[Sequence[NodeId]], None]]] = []
        self._surveys: list[Callable[[], None]] = []
        """Who waits until all owners are known."""
        self._unsaid: dict[NodeId, Wanted] = {}
        """What is to be stated to these at the end of this turn."""
        self._serial = host.random.getrandbits(31)
        self._started = self._reviewing = self._changing = False
        self.statements.gateways = self._seats.keys()
        store.settled(self._start)

    def _named_rows(self, kind: str) -> Iterable[NodeId]:
        return [owner.removeprefix(kind) for owner, _, _ in self.store.load(TABLE) if owner.startswith(kind)]

    def _given_before(self) -> dict[str, Region]:
        rows = [row for owner, _, row in self.store.load(TABLE) if owner.startswith("given ")]
        return {one.prefix: one for one in (msgspec.msgpack.decode(row, type=Region) for row in rows)}

    def _seats_before(self) -> dict[NodeId, Seated]:
        rows = [row for owner, _, row in self.store.load(TABLE) if owner.startswith("seat ")]
        return {one.by: one for one in (msgspec.msgpack.decode(row, type=Seated) for row in rows)}

    def _start(self) -> None:
        for name, problem in self.book.said.healed.items():
            self.host.trace(Record("refused", peer=name, message="Wanted", note=problem))
        self._started = True
        self.streams.start()
        self.membership.start()
        self.statements.start()
        self.routes.start()
        self.standins.start()
        self.replicas.start()
        self._review_soon()
        self.host.after(self.options.seek_s, self._seek)

    # Who is there

    @property
    def brokers(self) -> Set[NodeId]:
        """All that this broker has ever had to do with; not all that there are."""
        return self._known.keys()

    def meet(self, names: Iterable[NodeId]) -> None:
        """Somebody speaks of these brokers: they can be addressed from now on."""
        new = [name for name in dict.fromkeys(names) if name not in self._known and self._is_of_ring(name)]
        for name in new:
            self._known[name] = None
            self.store.put(TABLE, f"met {name}", 0, b"")
        if new:
            for seated in self._seats.values():
                self.send([name for name in new if name != seated.by], seated)
            self._change_soon()

    def _is_of_ring(self, name: NodeId) -> bool:
        """Brokers of other sites are spoken of with their sites."""
        return bool(name) and name != self.host.name and "/" not in name and not self.is_foreign(name)

    def _on_seated(self, origin: NodeId, seated: Seated) -> Seated:
        """A broker is a gateway of the site: from now on it is told all that this one wants. Whoever hears it first
        tells it to those that it knows, since nobody knows all. So an older word may come behind a newer one."""
        seated = msgspec.structs.replace(seated, by=seated.by or origin)
        known = self._seats.get(seated.by)
        if known is not None and origin != seated.by and seated.number < known.number:
            return known
        if known != seated and seated.by != self.host.name:
            self._seats[seated.by] = seated
            self.store.put(TABLE, f"seat {seated.by}", 0, msgspec.msgpack.encode(seated))
            self.meet((seated.by,))
            self.send([name for name in self._known if name not in (origin, seated.by)], seated)
            self.changed()
        return seated

    def _change_soon(self) -> None:
        if not self._changing:
            self._changing = True
            self.host.after(0.0, self._change)

    def _change(self) -> None:
        self._changing = False
        self.on_change()

    def is_known(self, broker: NodeId) -> bool:
        return broker in self._known

    def sources(self, filters: Iterable[Filter]) -> Set[NodeId]:
        if filters is ANYTHING:
            return self._known.keys()
        filters = tuple(filters)
        found = self.statements.sources(filters)
        if self._matches(filters):
            # One of them may stand in for this broker, which was away and has not heard of it yet.
            found = found.union(self.replicas.holders, self.replicas.former)
        return {name for name in found if name in self._known}

    def _matches(self, filters: Iterable[Filter]) -> bool:
        """Whether something that these want may be in a cell of this broker."""
        reaches = self.targets.of_filters(filters)
        own = (*self.atlas.own, *self.membership.promised.values())
        return any(meets(one.cell, reach) for one in own for reach in reaches)

    def origins(self, filters: Iterable[Filter], places: Iterable[NodeId]) -> set[NodeId]:
        filters = tuple(filters)
        sources = self.sources(filters)
        return set(sources) if sources and self._knows_sources(filters) else {*sources, *places}

    def progress(self, old: Iterable[Filter], new: Iterable[Filter]) -> dict[str, int]:
        """How far the streams of those have come here who match something of the old and nothing of the new, this
        broker among them; by the names that publications have elsewhere."""
        gone = self._matchers(old) - self._matchers(new)
        return dict(self.passage(name, number) for name in sorted(gone) if (number := self.streams.reached(name)))

    def _matchers(self, filters: Iterable[Filter]) -> set[NodeId]:
        filters = tuple(filters)
        return {*self.sources(filters), *((self.host.name,) if self._matches(filters) else ())}

    def _knows_sources(self, filters: tuple[Filter, ...]) -> bool:
        """A cell of this broker, or one that is about to be, may send something, and so may whoever is not certain.
        Nobody becomes an owner before all in the book of the old one have agreed (`Turning.when_clear`)."""
        if self.replicas.restoring or self.membership.division is not None or not self.statements.is_certain(filters):
            return False
        return not self._matches(filters)

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return self.book.wanted

    @property
    def counts(self) -> Counts:
        return self.streams.counts

    @property
    def unconfirmed(self) -> dict[NodeId, int]:
        return self.streams.unconfirmed

    @property
    def stated(self) -> list[Filter]:
        return list(self.statements.filters)

    @property
    def regions(self) -> list[Region]:
        """The cells of this broker."""
        return self.atlas.own

    @property
    def homes_kept(self) -> int:
        """How many clients this broker knows of, and is a home of."""
        return len(list(self.on_give(self._is_home_here)))

    def _is_home_here(self, client: str) -> bool:
        return any(self.is_home(one.cell, client) for one in self.regions)

    @property
    def is_member(self) -> bool:
        return self.membership.stage is Stage.MEMBER

    def want(self, filters: Iterable[Filter]) -> int:
        before = self.statements.filters
        statement = self.statements.want(filters)
        if self._grows(before, self.statements.filters):
            entry = BookEntry(self.host.name, statement, self.statements.filters)
            self._own_version = self.replicas.amend(entry)
        return statement

    def _grows(self, before: tuple[Filter, ...], filters: tuple[Filter, ...]) -> bool:
        """Whether something is wanted of this broker's cells that was not. What a replica says too much does no harm,
        so nobody is told of what is not wanted any longer."""
        new = self.targets.of_filters(one for one in filters if one not in before)
        return any(meets(region.cell, reach) for region in self.atlas.own for reach in new)

    def _is_safe(self) -> bool:
        return self.replicas.safe >= self._own_version

    def leave(self) -> None:
        """For good: what this broker owns becomes its neighbors'. Sessions stay until their clients are elsewhere."""
        self.membership.leave()

    def in_place(self, filters: Iterable[Filter], then: Callable[[bool], None]) -> None:
        """`then(True)` follows once when whoever may send something that these want has noted it; False after a while.
        They must have been wanted before."""
        self.statements.expect(filters, then, self.options.covered_s)
        self.search.soon()

    def survey(self, then: Callable[[], None]) -> None:
        """`then` follows once, when the owners of all cells are known, or after a while."""
        if self.atlas.covers(Anywhere()):
            then()
            return
        self._surveys.append(then)
        self.search.soon()
        self.host.after(self.options.covered_s, partial(self._surveyed, then))

    def _surveyed(self, then: Callable[[], None]) -> None:
        if then in self._surveys:
            self._surveys.remove(then)
            then()

    def disk_of(self, broker: NodeId) -> int:
        source = self.streams.receiver.sources.get(broker)
        return 0 if source is None else source.stream

    def is_confirmed(self, broker: NodeId, number: int) -> bool:
        lane = self.streams.sender.outbox.lanes.get(broker)
        return lane is None or number not in lane.parcels

    def heard(self, broker: NodeId) -> int:
        return self.book.statement(broker)

    @property
    def crossings(self) -> int:
        return 0

    def crossed(self, after: int) -> list[Passage]:
        return []

    @property
    def sent(self) -> int:
        return self.streams.sender.numbers.last

    # Publications

    def route(self, publication: Publication, share: Share | None = None) -> NodeId | None:
        return self.routes.route(Routed(publication, share=share))

    def is_silent(self, owner: NodeId) -> bool:
        """Its link has broken and it was not heard since, or it has left something unconfirmed for long."""
        if owner in self._parted:
            return True
        lane, quiet_s = self.streams.sender.outbox.lanes.get(owner), self.options.absent_s / 2
        is_stuck = lane is not None and lane.parcels and self.host.now() - lane.oldest.since_s > quiet_s
        return bool(is_stuck) and self.standins.silent_s(owner) > quiet_s

    # Cells

    def learn(self, regions: Iterable[Region], *, said_by: NodeId = "", behind: NodeId = "") -> None:
        """Somebody says that these cells have these owners; `behind` all that it has sent, where it says so."""
        news, said_by = False, said_by or behind
        for region in regions:
            self.doubts.heard(region, said_by)
            if region.owner == said_by:
                self._correct(region)
            if self.doubts.holds(region, said_by):
                continue
            if region.owner == self.host.name:
                self.membership.regain(said_by, region)
                continue
            whole = self.atlas.whole(region.prefix)
            stood_in = whole is not None and self._is_stood_in(whole, region)
            if not self._may_lose(region, said_by) or not self.atlas.put(region, stood_in=stood_in):
                continue
            news = True
            self.meet((region.owner,))
            if whole is not None and (whole.prefix == region.prefix or stood_in):
                self._passed(whole, region, behind)
            elif whole is not None:
                self.on_rehome(region.cell)  # who had all of it passes homes on once, and so not over two cuts
            self.routes.wait_for(region)
        if news:
            self.statements.review()  # at once: a session that leaves in this turn must count whoever has a cell now
            self.changed()

    def _correct(self, region: Region) -> None:
        """Who claims a cell that has another owner since may have lost its disk, and been told by one that did not
        know: it hears of the other."""
        newer = [one for one in self.atlas.sharing(region.prefix) if outranks(one, region)]
        if newer and all(one.owner != region.owner for one in newer):
            self.send((region.owner,), Owned(0, tuple(newer)), durable=False)

    def _may_lose(self, region: Region, said_by: NodeId) -> bool:
        """A cell of this broker becomes another's by its own word, or when a holder of its book stands in for it."""
        prefix = region.prefix
        mine = [one for one in self.atlas.own if one.prefix.startswith(prefix) or prefix.startswith(one.prefix)]
        if not mine or not all(outranks(region, one) for one in mine):
            return True
        stands_in = self._is_stood_in(mine[0], region)
        # Who told a broker without a disk what its cells are may not have known all of it. And one that is alone may
        # have begun a ring of its own for that reason. What was taken as nobody's is whoever's is known to have it.
        if stands_in or self.replicas.was_lost or not mine[0].prefix or all(map(is_taken, mine)):
            return True
        self.refuse(said_by, "Region", f"says that {region.owner} owns {prefix!r}, which is this broker's")
        return False

    def _is_stood_in(self, whole: Region, region: Region) -> bool:
        """Whether somebody has this cell who stands in for its owner, or for the owner of a cell of which it is a part:
        that was about to give the rest away, and has told its holders so."""
        if whole.owner != self.host.name:
            return self.membership.is_to_stand_in(region)
        holders = {*self.replicas.holders, *self.replicas.former}
        return region.owner in holders and region.prefix.startswith(whole.prefix)

    def refuse(self, said_by: NodeId, message: str, note: str) -> None:
        """What another broker of the ring says cannot be true."""
        self.counts.refused += 1
        self.host.trace(Record("refused", peer=said_by, message=message, note=note))

    def hears(self, broker: NodeId) -> bool:
        """Whether it has said something just now, or has confirmed all that it was sent."""
        return self.standins.silent_s(broker) < self.options.absent_s / 2

    def _passed(self, old: Region, new: Region, said_by: NodeId) -> None:
        """A cell, or a part of it, has another owner, and not by a cut. Where the old one has not said so, it may not
        know."""
        if old.owner == self.host.name:
            self.routes.trails.begin(new)
            self.on_cede(new.owner, new.cell)
            rest = self._keep_rest(old, new)
            self.send(sorted(self.interests.keys() - {new.owner}), Divided(0, (new, *rest)))
        elif old.owner not in (said_by, new.owner):
            self.statements.late(old.owner)
        self.on_rehome(new.cell)

    def _keep_rest(self, old: Region, new: Region) -> list[Region]:
        """A holder stands in for a part of this broker's cell: the cell is cut there, and the rest stays."""
        rest = [] if self.replicas.was_lost else rest_of(old, new)
        kept = [msgspec.structs.replace(one, term=one.term + at + 1) for at, one in enumerate(rest)]
        for one in kept:
            self.atlas.put(one)
        return kept

    def gave(self, region: Region) -> None:
        """A cell of this broker is another's now."""
        self.given[region.prefix] = region
        self.store.put(TABLE, f"given {region.prefix}", 0, msgspec.msgpack.encode(region))
        self.meet((region.owner,))

    def changed(self) -> None:
        """Cells, owners or the book are not what they were."""
        self._review_soon()

    def _review_soon(self) -> None:
        if not self._reviewing:
            self._reviewing = True
            self.host.after(0.0, self._review)

    def _review(self) -> None:
        self._reviewing = False
        if not self._started:
            return
        self.membership.look()
        self.standins.review()
        self.replicas.review()
        self.book.review(self.atlas.own)
        self.meet(sorted(self.atlas.owners))
        self.statements.review()
        self.routes.release()
        self._tell_found()
        if self._surveys and self.atlas.covers(Anywhere()):
            for then in list(self._surveys):
                self._surveyed(then)
        self.on_change()
        self.search.soon()

    def missing(self) -> list[Reach]:
        """What this broker needs and lies in cells whose owners it does not know."""
        needed: dict[Reach, None] = dict.fromkeys((*self.statements.missing(), *self._unanswered()))
        needed.update(dict.fromkeys(one for one in self.routes.custody.targets() if self._is_unserved(one)))
        needed.update(dict.fromkeys(key for keys, _ in self._finding for key in keys if self.atlas.owner(key) is None))
        if self._surveys and not self.atlas.covers(Anywhere()):
            needed[Anywhere()] = None
        return list(needed)

    def _unanswered(self) -> list[Reach]:
        """What somebody waits for, and an owner is silent who may have given its cell away since."""
        reaches = self.statements.awaited()
        return [reach for reach in reaches if any(self.is_silent(one.owner) for one in self.atlas.meeting(reach))]

    def _is_unserved(self, target: Keyed | Spot) -> bool:
        region = self.atlas.owner(target)
        return region is None or self.is_silent(region.owner)

    def _seek(self) -> None:
        self.orphans.look()
        self.search.soon()
        self.routes.look()
        self.host.after(self.options.seek_s, self._seek)

    def next_serial(self) -> int:
        self._serial += 1
        return self._serial

    # Homes

    def homes(self, client: str) -> list[NodeId]:
        """Those that are known now."""
        found = [self.atlas.owner(key) for key in homes_of(client, HOMES)]
        return list(dict.fromkeys(one.owner for one in found if one is not None))

    def find_homes(self, client: str, then: Callable[[Sequence[NodeId]], None]) -> None:
        keys = homes_of(client, HOMES)
        if all(self.atlas.owner(key) is not None for key in keys):
            then(self.homes(client))
        else:
            self._finding.append((keys, partial(self._found, client, then)))
            self.search.soon()

    def is_sure(self, client: str) -> bool:
        """A home that stands in for another was told of sessions by all who could tell it. Who is away may have one;
        who is back says so before it says that it knows who its homes are."""
        owned = [key for key in homes_of(client, HOMES) if self.owns(key)]
        assumed = self.membership.assumed.values()
        if not owned or not all(any(meets(one.cell, key) for one in assumed) for key in owned):
            return True
        return not self.statements.has_late and not any(map(self.is_silent, self.sources(ANYTHING)))

    def correct(self, client: str, broker: NodeId) -> None:
        """Its map of cells is older than this one."""
        found = [self.atlas.owner(key) for key in homes_of(client, HOMES)]
        regions = {one.prefix: one for one in found if one is not None and one.owner not in (self.host.name, broker)}
        if regions:
            self.send((broker,), Owned(0, tuple(regions.values())), durable=False)

    def owns(self, key: Keyed) -> bool:
        region = self.atlas.owner(key)
        return region is not None and region.owner == self.host.name

    def _found(self, client: str, then: Callable[[Sequence[NodeId]], None], _: Sequence[NodeId]) -> None:
        then(self.homes(client))

    def _tell_found(self) -> None:
        ready = [one for one in self._finding if all(self.atlas.owner(key) is not None for key in one[0])]
        self._finding = [one for one in self._finding if one not in ready]
        for _, then in ready:
            then(())

    def is_home(self, cell: Cell, client: str) -> bool:
        return any(meets(cell, key) for key in homes_of(client, HOMES))

    # The book

    def _on_wanted(self, origin: NodeId, wanted: Wanted) -> None:
        before = self.interests.get(origin, ())
        self.book.hear(origin, self.disk_of(origin), wanted, self.host.now())
        filters = self.interests.get(origin, ())
        new = tuple(one for one in filters if one not in before)
        if new:
            self.on_asked(origin, new)
        note = partial(self._note, origin, wanted.statement)
        if self._grows(before, filters):
            self.replicas.amend(BookEntry(origin, wanted.statement, filters), note)
        else:
            self.replicas.when_safe(note)
        self.membership.joins(origin)
        self.on_change()

    def _note(self, broker: NodeId, statement: int) -> None:
        reaches = self.targets.of_filters(self.interests.get(broker, ()))
        given = [one for one in self.given.values() if any(meets(one.cell, reach) for reach in reaches)]
        now = dict.fromkeys(after for one in given for after in self.atlas.since(one))
        self.send_settled((broker,), Noted(statement, (*self.atlas.own, *now)))

    def note_all(self) -> None:
        """Everybody in the book whose last statement may have stayed without an answer."""
        for broker in sorted(self.interests):
            self._note(broker, self.heard(broker))

    def inherit(self, region: Region, entries: Iterable[BookEntry]) -> None:
        """What other brokers have told the owner of this cell before it was this one's."""
        others = [one for one in entries if one.broker != self.host.name]
        self.meet(one.broker for one in others)
        self.book.inherit(region, others)

    def _part(self, region: Region, filters: Iterable[Filter]) -> tuple[Filter, ...]:
        return tuple(one for one in filters if any(meets(region.cell, at) for at in self.targets.of_filter(one)))

    def _on_noted(self, origin: NodeId, noted: Noted) -> None:
        self.learn(noted.regions, behind=origin)
        self.statements.on_noted(origin, noted)

    def _said_in_vain(self, broker: NodeId) -> None:
        """It has restarted, which is noticed only now: what it was told since and was not durable has not come."""
        if broker in self.interests:
            self.replicas.when_safe(partial(self._note, broker, self.heard(broker)))
        self.statements.repeat(broker)

    def _say(self, to: NodeId, wanted: Wanted, durable: bool) -> None:
        self.meet((to,))
        if not durable:
            self.send_settled((to,), wanted)
            return
        # It waits for the end of the turn, or for what is sent there next: a broker that is asked to turn is told both
        # in one content. A crash before it leaves does no harm, since all is stated again then (`Statements.start`).
        before = self._unsaid.pop(to, None)
        if wanted.filters is None and before is not None:
            wanted = msgspec.structs.replace(wanted, filters=before.filters)
        if not self._unsaid:
            self.host.after(0.0, self._say_all)
        self._unsaid[to] = wanted

    def _say_all(self) -> None:
        self._say_first(list(self._unsaid))

    def _say_first(self, names: Iterable[NodeId]) -> None:
        """What these are still to be told of what is wanted here."""
        for name in names:
            wanted = self._unsaid.pop(name, None)
            if wanted is not None:
                self.streams.send((name,), wanted)

    # Streams

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        names = tuple(dict.fromkeys(to))
        if isinstance(content, Turn):
            names, content = self._ask_to_turn(names, content)
        elif isinstance(content, Session | Copy | Given):
            content = self._naming_matchers(content)
        self._say_first(names)
        if names:
            self.streams.send(names, content, durable=durable)

    def _ask_to_turn(self, names: Iterable[NodeId], turn: Turn) -> tuple[tuple[NodeId, ...], Turn]:
        """Those whom the statement concerns are asked here. To the others, which are returned, it does not matter."""
        told = [name for name in names if self.statements.before_turn(name, turn.interest)]
        for name in told:
            wanted = self._unsaid.pop(name, None)
            self.streams.send((name,), turn if wanted is None else msgspec.structs.replace(wanted, turn=turn))
        return tuple(name for name in names if name not in told), msgspec.structs.replace(turn, interest=0)

    def _naming_matchers(self, content: Session | Copy | Given) -> Session | Copy | Given:
        """Where it goes others may be known as the owners. Then who does not know that would turn without having heard
        what is wanted there: what it still matches would come to nobody."""
        is_asked = self.host.name in content.origins
        own = tuple((one.prefix, one.term) for one in self.atlas.own) if is_asked else ()
        matchers = Matchers(self.statements.late_of(content.origins), own)
        return msgspec.structs.replace(content, matchers=matchers)

    def _hear_matchers(self, origin: NodeId, matchers: Matchers) -> None:
        newer = (one for prefix, term in matchers.own for one in self.atlas.sharing(prefix) if one.term >= term)
        is_late = any(one.owner != origin for one in newer)
        self.statements.name(filter(self.is_known, (*matchers.late, *((origin,) if is_late else ()))))

    def send_settled(self, to: Iterable[NodeId], content: Content) -> None:
        """Not durable. It leaves in its place of the stream once all that was written by now is on the disk: for what
        is said again by itself when one of the two restarts."""
        names = tuple(dict.fromkeys(to))
        self._say_first(names)
        self.streams.send(names, content, durable=False, settled=True)

    def taken(self, origin: NodeId, number: int) -> None:
        self.streams.taken(origin, number)

    def _give(self, origin: NodeId, number: int, content: Content) -> None:
        if self.is_foreign(origin):
            self.on_content(origin, number, content)
            return
        self.meet((origin, *_named(content)))
        self._heard(origin)
        if isinstance(content, Session | Copy | Given):
            self._hear_matchers(origin, content.matchers)
        if isinstance(content, Seated):
            self.on_content(origin, number, self._on_seated(origin, content))
        elif isinstance(content, Wanted) and content.turn is not None:
            self._on_wanted(origin, content)
            self.on_content(origin, number, content.turn)
        elif self._is_mine(origin, content):
            self.streams.taken(origin, number)
        else:
            self.on_content(origin, number, content)

    def _heard(self, broker: NodeId) -> None:
        self._parted.discard(broker)
        self.standins.heard(broker)

    def _is_mine(self, origin: NodeId, content: Content) -> bool:
        """Whether it was for the fabric alone, which has done with it."""
        match content:
            case Routed():
                self.routes.on_routed(origin, content)
            case Wanted():
                self._on_wanted(origin, content)
            case Noted():
                self._on_noted(origin, content)
            case Seek():
                self.search.on_seek(content)
            case Owned():
                self.learn(content.regions, said_by=origin)
            case Enter():
                self.membership.on_enter(origin, content)
            case Barred():
                self.membership.on_barred(origin, content)
            case Dividing():
                self.membership.on_dividing(origin, content)
            case Agreed():
                self.membership.on_agreed(origin, content)
            case Undivided():
                self.membership.on_undivided(origin, content)
            case Divided():
                self.membership.on_divided(origin, content)
            case Replica():
                self.standins.on_replica(origin, content)
            case Amended():
                self.standins.on_amended(origin, content)
            case Watched():
                self.replicas.on_watched(origin, content)
            case Awake():
                self.standins.on_awake(origin, content)
            case Standin():
                self.standins.on_standin(origin, content)
            case Unfit():
                self.standins.on_unfit(origin, content)
            case Pass():
                self.routes.on_pass(content)
            case Passed():
                self.routes.on_passed(content)
            case Ceded():
                self.membership.on_ceded(origin, content)
                return False  # the broker keeps the home entries
            case _:
                return False
        return True

    def passage(self, origin: NodeId, number: int) -> Passage:
        """How what this matching broker has sent under this number is called elsewhere, whoever brings it there."""
        return passage_of(origin, self.streams.stream_of(origin), number)

    def _heard_first(self, broker: NodeId) -> None:
        """From here on its disk has a name. Who waits for what comes from there must know when that is lost."""
        if broker in self._known:
            self.on_change()

    def _reborn(self, broker: NodeId) -> None:
        """It speaks from another disk."""
        self.statements.lost(broker)
        self.membership.reborn(broker)
        self.routes.reborn(broker)
        self.replicas.reborn(broker)
        self.standins.reborn(broker)
        self.on_change()

    # Links and frames

    def linked(self, peer: NodeId) -> None:
        if not peer or peer == self.host.name:
            raise LocalError(f"{self.host.name!r} cannot be linked to {peer!r}: another broker is needed")
        self.links.add(peer)
        self._parted.discard(peer)
        self.meet((peer,))
        self._ways_changed(peer)

    def unlinked(self, peer: NodeId) -> None:
        self.links.discard(peer)
        self._parted.add(peer)
        self.membership.parted(peer)
        self._ways_changed()

    def _ways_changed(self, peer: NodeId = "") -> None:
        self.ways.changed()
        if not self._started:
            return
        lanes = self.streams.sender.outbox.lanes
        waiting = {name for name, lane in lanes.items() if lane.parcels}
        for name in sorted(waiting | self.streams.receiver.sources.keys() | ({peer} if peer else set())):
            if name in waiting or name == peer:
                self.streams.again(name)
            else:
                self.streams.receiver.announce(name)

    def reached(self, peer: NodeId) -> None:
        """A broker of no ring can be spoken to directly from now on."""
        self.beyond.add(peer)
        if self._started:
            self.streams.again(peer)

    def receive_from_beyond(self, sender: NodeId, message: Message) -> None:
        """What such a broker says. It speaks for itself only, and to this broker."""
        if self._started:
            self.streams.receive(spoken_by(sender, self.host.name, message))

    def receive(self, sender: NodeId, message: Message) -> None:
        if not self._started:
            return
        match message:
            case Parcels():
                if any(leg.to == self.host.name for run in message.runs for leg in run.legs):
                    self._take(message, message.origin, sender)
                self.ways.pass_on(message, sender)
            case Ask():
                if message.to != self.host.name:
                    self.ways.pass_on(message, sender)
                elif message.origin != self.host.name:
                    self._take(message, message.origin, sender)
            case Taken():
                if message.origin != self.host.name:
                    self.ways.pass_on(message, sender)
                elif message.by != self.host.name:
                    self._heard(message.by)
                    self._take(message, message.by, sender)
                    self.routes.confirmed()
            case _:
                raise RemoteError(f"{type(message).__name__} is nothing that brokers of a ring say to one another")

    def _take(self, frame: Parcels | Ask | Taken, speaker: NodeId, sender: NodeId) -> None:
        """A frame for this broker. A neighbor that has only passed on what another one made up is not to blame."""
        try:
            self.streams.receive(frame)
        except RemoteError as error:
            if speaker == sender:
                raise
            self.counts.refused += 1
            self.host.trace(Record("refused", peer=speaker, message=type(frame).__name__, note=str(error)))

    @property
    def links(self) -> set[NodeId]:
        return self.ways.links

    @property
    def beyond(self) -> set[NodeId]:
        return self.ways.beyond

    @property
    def is_foreign(self) -> Callable[[NodeId], bool]:
        return self.ways.is_foreign

    @is_foreign.setter
    def is_foreign(self, is_foreign: Callable[[NodeId], bool]) -> None:
        self.ways.is_foreign = is_foreign

    def way(self, to: NodeId) -> NodeId | None:
        """The linked broker to which what is for another goes next."""
        return self.ways.next_to(to)

    def _now(self) -> float:
        return self.clock()


def _named(content: Content) -> Iterable[NodeId]:
    """The brokers of which it speaks, so that whoever hears it can address them."""
    match content:
        case Turn():
            return (content.source, *content.chain)
        case Wanted(turn=Turn() as turn):
            return (turn.source, *turn.chain)
        case Session():
            claims = (one.source for one in content.carried.claims)
            return (*content.origins, *content.chain, *claims, *_awaited(content.carried))
        case Copy():
            return (*content.origins, *_awaited(content.carried))
        case Given():
            return content.origins
        case Turned():
            return (content.passed_to,)
        case Heard():
            return (content.broker,)
        case Place():
            return (one.source for one in content.claims)
        case Found():
            return (content.broker,)
        case Nothing():
            return (content.at,)
        case Placed():
            return (content.broker,)
        case Ceded():
            return (one.broker for one in content.homes)
        case Said():
            return (content.to,)
        case Seated():
            return (content.by,)
    return ()


def _awaited(carried: Carried) -> Iterable[NodeId]:
    """Brokers with older sessions that may still come."""
    return carried.memory.awaited if carried.memory is not None else ()

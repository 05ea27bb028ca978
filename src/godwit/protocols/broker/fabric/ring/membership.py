"""How a broker comes in, and how a cell changes hands (docs/ring.md, "How a broker comes in")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.messages import (
    Agreed,
    Barred,
    BookEntry,
    Ceded,
    Divided,
    Dividing,
    Enter,
    Owned,
    Region,
    Undivided,
)
from godwit.protocols.gathering.areas import Reach, Spot, meets
from godwit.protocols.gathering.space import WHOLE, Cell, cut_between
from godwit.protocols.host import LocalError, NodeId, Record, Timer

if TYPE_CHECKING:
    from godwit.protocols.broker.fabric.ring.fabric import RingFabric

DIVIDING, HEIRS, LEAVING, ASSUMED = "dividing", "heir ", "leaving", "assumed "


class Stage(StrEnum):
    OUTSIDE = "outside"
    MEMBER = "member"


class Division(msgspec.Struct):
    """A cell that is about to change hands."""

    ticket: int
    old: Region
    given: Region
    kept: Region | None
    """What stays with this broker of the old one."""
    silent: set[NodeId]
    """Who has not agreed."""
    asked: set[NodeId]
    owner: NodeId = ""
    """Whose cell it is, where this broker stands in for another."""
    leaves: bool = False
    """This broker leaves, and asks the new owner too."""
    timer: Timer | None = None


class Heir(msgspec.Struct, frozen=True, array_like=True):
    """The row of a cell that another broker is about to give away."""

    owner: NodeId
    ticket: int
    region: Region


class Membership:
    def __init__(self, fabric: RingFabric) -> None:
        self.fabric = fabric
        self.host = fabric.host
        self.atlas = fabric.atlas
        self.division: Division | None = None
        self.heirs: dict[str, Region] = {}
        """Cells that others are about to give away, by giver and ticket."""
        self.promised: dict[str, Region] = {}
        """Those that are to be this broker's: from the moment it has agreed it may match there."""
        self._queued: dict[NodeId, Enter] = {}
        self._ticket = fabric.host.random.getrandbits(31)
        self._attempt = 0
        self._since_s = fabric.host.now()
        self._barred = ""
        self._knocking = True
        self._outsiders: set[NodeId] = set()
        """Linked brokers that have said that they are outside as well."""
        self._broken_off: Division | None = None
        self.assumed: dict[str, Region] = {}
        """Cells that this broker got by standing in for another, by prefix: of clients whose home is there nobody has
        told it but those who could."""
        self.leaving = False
        """This broker gives its cells away and wants no other."""
        for owner, _, row in fabric.store.load(TABLE):
            if owner.startswith(HEIRS):
                heir = msgspec.msgpack.decode(row, type=Heir)
                self._expected(heir.region)[owner.removeprefix(HEIRS)] = heir.region
            elif owner == DIVIDING:
                self._broken_off = msgspec.msgpack.decode(row, type=Division)
            elif owner == LEAVING:
                self.leaving = True
            elif owner.startswith(ASSUMED):
                self.assumed[owner.removeprefix(ASSUMED)] = msgspec.msgpack.decode(row, type=Region)

    @property
    def stage(self) -> Stage:
        return Stage.MEMBER if self.atlas.own else Stage.OUTSIDE

    @property
    def problem(self) -> str:
        """Why this broker has no cell, or a newcomer gets none yet; empty where all is well."""
        if self.stage is Stage.OUTSIDE and self.leaving:
            return "this broker has left the ring"
        if self.stage is Stage.OUTSIDE:
            return self._barred or "no broker of a ring has answered yet"
        if self.division is not None:
            return f"{self.division.given.owner} waits for {', '.join(sorted(self.division.silent)) or 'the disk'}"
        return ""

    def start(self) -> None:
        if self._broken_off is not None:
            division, self._broken_off = self._broken_off, None
            self._tell_undivided(division)
            self._drop_heir(self.host.name, division.ticket)
            self.fabric.store.delete(TABLE, DIVIDING, 0)
        self._knock()
        self._leave()

    # The newcomer

    def look(self) -> None:
        """A ring that this broker had begun by itself, having lost its disk, gives way to the older one."""
        if self.leaving:
            self._leave()
        elif self.stage is Stage.OUTSIDE and not self._knocking:
            self._since_s = self.host.now()
            self._knock()

    def _knock(self) -> None:
        """Ask one linked broker after the other."""
        fabric, options = self.fabric, self.fabric.options
        self._knocking = self.stage is Stage.OUTSIDE and not self.leaving
        if not self._knocking:
            return
        peers = sorted(fabric.links)
        waited_s = self.host.now() - self._since_s
        is_ring_known = bool(self.atlas.regions) or not self._outsiders >= set(peers)
        if options.first and waited_s >= options.begin_s and not is_ring_known:
            self._knocking = False  # it may have to knock again, where it gives way to another ring
            self._begin()
            return
        if peers:
            fabric.send((peers[self._attempt % len(peers)],), Enter(self.host.name, options.place), durable=False)
            self._attempt += 1
        self.host.after(options.knock_s, self._knock)

    def _begin(self) -> None:
        self.host.trace(Record("joined", note="begins a ring"))
        self.atlas.clear()
        self.atlas.put(Region(WHOLE, self.host.name, 1))
        self.fabric.changed()

    def on_barred(self, origin: NodeId, barred: Barred) -> None:
        self._barred = barred.reason
        if barred.outside:
            self._outsiders.add(origin)
        self.host.trace(Record("barred", peer=origin, note=barred.reason))

    def parted(self, peer: NodeId) -> None:
        self._outsiders.discard(peer)

    def on_ceded(self, origin: NodeId, ceded: Ceded) -> None:
        fabric = self.fabric
        if ceded.region.owner != self.host.name:
            fabric.refuse(origin, "Ceded", f"gives {ceded.region.prefix!r} to {ceded.region.owner}, and tells this one")
            return
        rivals = [one for one in self.atlas.rivals(ceded.region) if one.owner != self.host.name]
        if ceded.again and (self._is_on_its_way(ceded.region) or self._is_part_of_own(ceded.region)):
            return
        if rivals and ceded.again:
            fabric.send((origin,), Owned(0, tuple(rivals)), durable=False)
        elif rivals:
            self._contest(origin, ceded, rivals)
        else:
            self._come_in(origin, ceded)

    def _is_part_of_own(self, region: Region) -> bool:
        """Whether it is a part of a cell of this broker. That was to be cut, and others have heard so, but a crash came
        before it was on the disk: it is given back what it has, and must not forget the rest."""
        if self.fabric.replicas.was_lost:
            return False
        return any(region.prefix.startswith(one.prefix) for one in self.atlas.own)

    def _contest(self, origin: NodeId, ceded: Ceded, rivals: Sequence[Region]) -> None:
        """This broker remembers other owners, of a ring that may be gone: brokers have lost their disks. Unless one of
        them is there and says that the cell is its own, this broker has it, under a term that is above theirs."""
        region = msgspec.structs.replace(ceded.region, term=max(one.term for one in rivals) + 1)
        owners = {one.owner for one in rivals} - {origin}
        then = partial(self._come_in, origin, msgspec.structs.replace(ceded, region=region))
        if owners:
            self.fabric.doubts.ask(region, origin, owners, then)
        else:
            then()

    def _come_in(self, origin: NodeId, ceded: Ceded) -> None:
        fabric = self.fabric
        # First, while this broker has no cell: who calls others its own may be right, and then its disk is lost.
        for region in [one for one in ceded.contacts if one.owner == self.host.name]:
            self.regain(origin, region)
        fresh = self.atlas.put(ceded.region)
        agreed = [name for name, one in self.promised.items() if one.prefix == ceded.region.prefix]
        for name in agreed:
            self._forget_heir(name)
        for region in [one for one in ceded.contacts if one.owner != self.host.name]:
            self.atlas.put(region)
        if fresh and (ceded.again or not agreed):
            # It was this broker's, or another disk of this machine has agreed to have it.
            fabric.replicas.restore()
        fabric.inherit(ceded.region, ceded.book)
        if fresh and not ceded.again:
            fabric.routes.wait_for(ceded.region)
        if fresh:
            self.host.trace(Record("joined", peer=origin, note=ceded.region.prefix))
        fabric.on_change()  # at once: what is to be matched follows in the same stream
        fabric.changed()

    # The owner

    def on_enter(self, origin: NodeId, enter: Enter) -> None:
        fabric = self.fabric
        region = self.atlas.owner(Spot(enter.place))
        if enter.by in self.atlas.owners:
            self._give_back(enter.by)
        elif self.stage is Stage.OUTSIDE:
            if enter.by == origin:
                fabric.send((origin,), Barred("this broker is in no ring yet", outside=True), durable=False)
        elif region is not None and region.owner == self.host.name:
            self._divide(region, enter)
        else:
            fabric.search.pass_along(Spot(enter.place), msgspec.structs.replace(enter, hops=enter.hops + 1), enter.hops)

    def _give_back(self, broker: NodeId) -> None:
        """It had these cells, and must have lost its disk: nobody else can have them."""
        contacts = (*self.atlas.beside(), *self.atlas.own)
        for region in [one for one in self.atlas.regions.values() if one.owner == broker]:
            self.fabric.send((broker,), Ceded(region, contacts=contacts, again=True))

    def regain(self, origin: NodeId, region: Region) -> None:
        """Somebody says that a cell is this broker's, which does not know it. It has no cell or has lost its disk, so
        that may be true."""
        if self._is_on_its_way(region):
            return
        if (self.fabric.replicas.was_lost or not self.atlas.own) and not self.atlas.rivals(region):
            self._come_in(origin, Ceded(region, again=True))

    def _is_on_its_way(self, region: Region) -> bool:
        """Whether this broker has agreed to have the cell. Then its disk is not lost: the cell comes with its book."""
        return any(one.prefix == region.prefix and one.term >= region.term for one in self.promised.values())

    def reborn(self, broker: NodeId) -> None:
        """It has lost its disk, and with it what it was about to give away, to this broker perhaps."""
        for name in [name for name in (*self.heirs, *self.promised) if name.rpartition(" ")[0] == broker]:
            self._forget_heir(name)

    def _divide(self, region: Region, enter: Enter) -> None:
        if self.fabric.replicas.restoring:
            # What is in the book of the cell, and is retained there, is still on its way here.
            self.fabric.send((enter.by,), Barred("this broker's disk was lost, and is restored"), durable=False)
            return
        if self.division is not None:
            if self.division.given.owner != enter.by:
                self._queued[enter.by] = enter
            return
        try:
            given, kept = self._halves(region, enter)
        except LocalError as error:
            self.fabric.send((enter.by,), Barred(str(error), final=True), durable=False)
            return
        asked = {*self._concerned(region), enter.by}
        self._ask(Division(self._next_ticket(), region, given, kept, set(asked), set(asked)))

    def _next_ticket(self) -> int:
        self._ticket += 1
        return self._ticket

    def _ask(self, division: Division) -> None:
        """Everybody whom it concerns must agree."""
        self.division = division
        self._keep(division)
        message = Dividing(division.ticket, division.given, division.owner)
        self.fabric.send(sorted(division.asked - {self.host.name}), message)
        division.timer = self.host.after(self.fabric.options.agree_s, partial(self._give_up, division))
        # This broker has sessions too, for which the owner is an origin like any other, and the heir will be.
        self._put_heir(self.host.name, division.ticket, division.given)
        owner = division.owner or self.host.name
        self.fabric.on_clear(owner, division.given.owner, partial(self._agrees, division, self.host.name))

    def _keep(self, division: Division) -> None:
        row = msgspec.msgpack.encode(msgspec.structs.replace(division, timer=None))
        self.fabric.store.put(TABLE, DIVIDING, 0, row)

    def stand_in(self, owner: NodeId, region: Region, asked: set[NodeId]) -> None:
        """The owner of this cell is silent, and this broker has its book."""
        given = Region(region.cell, self.host.name, region.term + 1)
        self._ask(Division(self._next_ticket(), region, given, None, set(asked), set(asked), owner))

    def break_off(self, owner: NodeId) -> None:
        """This broker does not stand in for that one, or not any more."""
        if self.division is not None and self.division.owner == owner:
            self._give_up(self.division)

    def leave(self) -> None:
        """Give all cells to neighbors, one after the other, and stay outside from then on."""
        if not self.fabric.replicas.nearest():
            raise LocalError("this broker has no cell, or knows nobody who could have it")
        self.leaving = True
        self.fabric.store.put(TABLE, LEAVING, 0, b"")
        self._leave()

    def _leave(self) -> None:
        own, others = self.atlas.own, self.fabric.replicas.nearest()
        if not self.leaving or self.division is not None or self.fabric.replicas.restoring or not own or not others:
            return
        # Who kept its book, and is there, knows most of it.
        near = sorted(others, key=lambda name: self.fabric.standins.silent_s(name) > self.fabric.options.absent_s)
        given = Region(own[0].cell, near[0], own[0].term + 1)
        asked = {*self._concerned(own[0]), near[0]}
        self._ask(Division(self._next_ticket(), own[0], given, None, set(asked), set(asked), leaves=True))

    def _halves(self, region: Region, enter: Enter) -> tuple[Region, Region | None]:
        """A cell that this broker does not stand in goes as a whole. Else it keeps bit 0, whichever side it is on."""
        place, term = self.fabric.options.place, region.term + 1
        if not region.cell.owns_all(place):
            return Region(region.cell, enter.by, term), None
        cut = cut_between(place, enter.place)
        given = Region(region.cell.append(cut, "1"), enter.by, term)
        return given, Region(region.cell.append(cut.opposite(), "0"), self.host.name, term)

    def _concerned(self, region: Region) -> set[NodeId]:
        """Who wants nothing any more, and has confirmed what was sent to it for the cell, may have left for good."""
        trails, book = self.fabric.routes.trails, self.fabric.interests.items()
        return {self.host.name, *(name for name, filters in book if filters or trails.last(name, region))}

    def joins(self, broker: NodeId) -> None:
        """It has said that it wants something while a cell is being divided: it must agree like the others."""
        division = self.division
        if division is not None and broker not in division.asked:
            division.asked.add(broker)
            division.silent.add(broker)
            self._keep(division)
            self.fabric.send((broker,), Dividing(division.ticket, division.given, division.owner))

    def closes(self, target: Reach) -> bool:
        """Whether it lies in a cell that is about to go, so that nobody matches it now."""
        return self.division is not None and meets(self.division.given.cell, target)

    def on_agreed(self, origin: NodeId, agreed: Agreed) -> None:
        if self.division is not None and self.division.ticket == agreed.ticket:
            self._agrees(self.division, origin)

    def _agrees(self, division: Division, broker: NodeId) -> None:
        if self.division is not division:
            return
        division.silent.discard(broker)
        if division.silent:
            return
        if division.owner:
            self._assume(division)
        else:
            stay = [one for one in self.atlas.own if one != division.old]
            left = (*stay, *(() if division.kept is None else (division.kept,)))
            self.fabric.replicas.shrink(left, partial(self._cede, division))

    def _assume(self, division: Division) -> None:
        """This broker has the book, and all who are in it know that it stands in for the owner."""
        fabric, given, owner = self.fabric, division.given, division.owner
        self._end(division)
        self.atlas.put(given, stood_in=True)
        self.assumed[given.prefix] = given
        fabric.store.put(TABLE, ASSUMED + given.prefix, 0, msgspec.msgpack.encode(given))
        fabric.inherit(given, fabric.standins.assumed(owner))
        fabric.statements.late(owner)
        fabric.send(sorted({*division.asked, owner} - {self.host.name}), Divided(division.ticket, (given,), owner))
        fabric.routes.wait_for(given)
        self.host.trace(Record("assumed", peer=owner, note=given.prefix))
        fabric.on_change()
        fabric.on_rehome(given.cell)
        fabric.changed()
        self._next()

    def _cede(self, division: Division) -> None:
        """All of this is one turn: whoever is told of the new owner is told on the disk that has given it the cell."""
        if self.division is not division or division.silent:
            return
        if division.old not in self.atlas.own:
            # Another has stood in for this broker meanwhile: it is not this one's to give.
            self._give_up(division)
            return
        fabric, given, kept = self.fabric, division.given, division.kept
        self._end(division)
        if self.assumed.pop(given.prefix, None) is not None:
            fabric.store.delete(TABLE, ASSUMED + given.prefix, 0)
        halves = (given,) if kept is None else (given, kept)
        contacts = (*self.atlas.beside(), *(() if kept is None else (kept,)))
        self.atlas.replace(division.old, halves)
        fabric.statements.review()  # at once: a session that leaves in this turn must count the new owner
        book = tuple(self.entries(given.cell))
        fabric.on_cede(given.owner, given.cell)
        homes = tuple(fabric.on_give(partial(fabric.is_home, given.cell)))
        fabric.send((given.owner,), Ceded(given, book, homes, contacts))
        told = division.asked.union(fabric.replicas.holders) - {self.host.name, given.owner}
        fabric.send(sorted(told), Divided(division.ticket, halves))
        fabric.gave(given)
        self.host.trace(Record("divided", peer=given.owner, note=given.prefix))
        fabric.changed()
        self._next()

    def entries(self, cell: Cell | None) -> Iterable[BookEntry]:
        """What the book says of a cell, or of all (None); what this broker wants itself is in it."""
        fabric = self.fabric
        wanted: dict[NodeId, tuple[int, tuple[Filter, ...]]] = {
            name: (fabric.heard(name), filters) for name, filters in fabric.interests.items()
        }
        wanted[self.host.name] = (fabric.statements.numbers.last, fabric.statements.filters)
        for name, (statement, filters) in wanted.items():
            if cell is not None:
                filters = tuple(one for one in filters if any(meets(cell, at) for at in fabric.targets.of_filter(one)))
            if filters:
                yield BookEntry(name, statement, filters)

    def _give_up(self, division: Division) -> None:
        if self.division is not division:
            return
        self.host.trace(Record("undivided", peer=division.given.owner, note=" ".join(sorted(division.silent))))
        self._end(division)
        self._tell_undivided(division)
        if division.owner:
            self.fabric.standins.abandon(division.owner)
        elif not division.leaves:
            reason = f"{', '.join(sorted(division.silent))} must agree and does not answer"
            self.fabric.send((division.given.owner,), Barred(reason), durable=False)
        self.fabric.changed()
        self._next()

    def _tell_undivided(self, division: Division) -> None:
        self.fabric.send(sorted(division.asked - {self.host.name}), Undivided(division.ticket, division.owner))

    def _end(self, division: Division) -> None:
        self.division = None
        if division.timer is not None:
            division.timer.cancel()
        self._drop_heir(self.host.name, division.ticket)
        self.fabric.store.delete(TABLE, DIVIDING, 0)

    def _next(self) -> None:
        queued, self._queued = self._queued, {}
        for enter in queued.values():
            self.on_enter(enter.by, enter)

    # Whoever wants something of a cell that changes hands

    def on_dividing(self, origin: NodeId, dividing: Dividing) -> None:
        if dividing.owner and self.fabric.hears(dividing.owner):
            note = f"says that {dividing.owner} is silent, which is not"
            self.fabric.refuse(origin, "Dividing", note)
            return
        self._put_heir(origin, dividing.ticket, dividing.region)
        self.fabric.statements.review()
        self.fabric.changed()
        answer = partial(self.fabric.send, (origin,), Agreed(dividing.ticket))
        self.fabric.on_clear(dividing.owner or origin, dividing.region.owner, answer)

    def on_undivided(self, origin: NodeId, undivided: Undivided) -> None:
        self._drop_heir(origin, undivided.ticket)
        if undivided.owner:
            self.fabric.standins.unfence(undivided.owner, origin)
        self.fabric.changed()

    def on_divided(self, origin: NodeId, divided: Divided) -> None:
        self.fabric.learn(divided.regions, behind=origin)
        self._drop_heir(origin, divided.ticket)
        if divided.owner:
            self.fabric.standins.succeeded(divided.owner, origin)
        self.fabric.statements.settled(origin)

    def is_to_stand_in(self, region: Region) -> bool:
        """Whether its owner to be has asked for it itself, since another is silent."""
        return any(one == region and name.rpartition(" ")[0] == one.owner for name, one in self.heirs.items())

    def _expected(self, region: Region) -> dict[str, Region]:
        return self.promised if region.owner == self.host.name else self.heirs

    def _put_heir(self, origin: NodeId, ticket: int, region: Region) -> None:
        name = f"{origin} {ticket}"
        self._expected(region)[name] = region
        self.fabric.store.put(TABLE, HEIRS + name, 0, msgspec.msgpack.encode(Heir(origin, ticket, region)))

    def _drop_heir(self, origin: NodeId, ticket: int) -> None:
        self._forget_heir(f"{origin} {ticket}")

    def _forget_heir(self, name: str) -> None:
        if self.heirs.pop(name, None) is not None or self.promised.pop(name, None) is not None:
            self.fabric.store.delete(TABLE, HEIRS + name, 0)


Clear = Callable[[NodeId, NodeId, Callable[[], None]], None]
"""`clear(owner, heir, then)`: `then` follows when no session waits for the owner that does not wait for the heir."""

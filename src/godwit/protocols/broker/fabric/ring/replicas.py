"""Copies of this broker's book at two others, made before anything in it is granted (docs/ring.md, "Replicas").

Of the three that know the book, two know each grant: this broker and one holder. So the two holders together can tell
all that was granted when this broker is silent, and one of them can stand in for it (`standins`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Set
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.fabric.ring.targets import homes_of
from godwit.protocols.broker.messages import Amended, Awake, BookEntry, Region, Replica, Watched
from godwit.protocols.gathering.areas import Keyed
from godwit.protocols.gathering.space import WHOLE
from godwit.protocols.host import NodeId, Record
from godwit.protocols.topology.mesh import distance

if TYPE_CHECKING:
    from godwit.protocols.broker.fabric.ring.fabric import RingFabric

REPLICAS, RESTORING, AGAIN = "replicas", "restoring", "again"
HOLDERS = 2
SEEK_S = 10.0
AMENDING_S = 1.0
"""For so long a holder may not have heard of the last change: it need not be sent all."""
LOOKS_MAX = 8
"""A holder that has not said for so many looks what it keeps is asked. Who keeps something says so in half of that."""


class Appointed(msgspec.Struct, frozen=True, array_like=True):
    """The row: who keeps which version, and of which cells."""

    version: int
    holders: tuple[NodeId, ...] = ()
    regions: tuple[Region, ...] = ()
    former: tuple[NodeId, ...] = ()
    """Holders that were replaced, while those who stay may not know it: together they may still stand in."""


class Replicas:
    def __init__(self, fabric: RingFabric) -> None:
        self.fabric = fabric
        self.host = fabric.host
        self.atlas = fabric.atlas
        self.restoring = False
        """Whether this broker has lost its disk, and waits for what others have kept of its book."""
        self.was_lost = fabric.store.get(TABLE, AGAIN, 0) is not None
        """Whether this broker has its cells by the word of others, having lost its disk."""
        row = fabric.store.get(TABLE, REPLICAS, 0)
        # Another disk counts from elsewhere: what was kept of the last one is never taken for what is kept of this.
        begin = Appointed(fabric.host.random.getrandbits(40))
        self._row = begin if row is None else msgspec.msgpack.decode(row, type=Appointed)
        self._appointed = self._row.version if self._row.former else 0
        self._seek_at_s = self._amended_s = 0.0
        self._confirmed: dict[NodeId, int] = {}
        self._told: dict[NodeId, int] = {}
        """By holder: the stream number under which it was told of the book last."""
        self._said_s: dict[NodeId, float] = {}
        """By holder: when it said last what it keeps, or was asked for that."""
        self._pending: deque[tuple[int, Callable[[], None]]] = deque()
        self._asked: set[NodeId] = set()
        self._returned: set[NodeId] = set()
        """Who was asked for what it keeps of a lost disk, and who has sent it."""

    @property
    def version(self) -> int:
        return self._row.version

    @property
    def holders(self) -> tuple[NodeId, ...]:
        return self._row.holders

    @property
    def former(self) -> tuple[NodeId, ...]:
        return self._row.former

    @property
    def _trusted(self) -> tuple[NodeId, ...]:
        """Whose word counts: where a holder was replaced only that of the one who stays, until it knows the other."""
        return self.holders[:1] if self.former else self.holders

    @property
    def safe(self) -> int:
        """The version that cannot be lost with this broker's disk. With fewer than two holders nobody stands in for
        this broker, and nothing waits for them."""
        if len(self.holders) < HOLDERS:
            return self.version
        return max(self._confirmed.get(name, 0) for name in self._trusted)

    def start(self) -> None:
        """Who was told that it is noted is not on the disk: tell all, once it is safe."""
        if self.fabric.store.get(TABLE, RESTORING, 0) is not None:
            self.restore()
        elif self.atlas.own:
            self.fabric.send(self.holders, Awake(), durable=False)
        self.when_safe(self.fabric.note_all)

    # What is granted

    def amend(self, entry: BookEntry, then: Callable[[], None] = lambda: None) -> int:
        """An entry of the book has changed; `then` follows once that cannot be lost. The version that it is in."""
        if self.holders and self.atlas.own:
            self._put(self.version + 1)
            self._amended_s = self.host.now()
            self._tell(self.holders, Amended(self.version, entry))
        self.when_safe(then)
        return self.version

    def when_safe(self, then: Callable[[], None]) -> None:
        """`then` follows once all that is in the book by now cannot be lost."""
        self._pending.append((self.version, then))
        self._look()

    def _look(self) -> None:
        while self._pending and self._pending[0][0] <= self.safe:
            self._pending.popleft()[1]()

    def shrink(self, to: tuple[Region, ...], then: Callable[[], None]) -> None:
        """Cells are about to go: from `then` on nobody stands in for this broker there."""
        if self.holders and self.atlas.own:
            self._tell_all(to)
        self.when_safe(then)

    # Who keeps it

    def review(self) -> None:
        own = tuple(self.atlas.own)
        if self.restoring:
            self._ask()
            return
        if not own:
            self._dismiss(self.holders)
            if self.holders:
                self._put(self.version + 1, (), ())
            self._look()
        elif (holders := self._chosen()) != self.holders:
            self.appoint(holders)
        elif own != self._row.regions and self.fabric.membership.division is None:
            self._tell_all(own)

    def _chosen(self) -> tuple[NodeId, ...]:
        """The brokers whose cells are nearest; nobody is replaced because a nearer one has come."""
        if len(self.holders) >= HOLDERS:
            return self.holders
        return (*self.holders, *self._others())[:HOLDERS]

    def nearest(self) -> tuple[NodeId, ...]:
        """Brokers that have cells: holders first, and then whoever is near."""
        known = (*self.holders, *self._others()) if self.atlas.own else ()
        return tuple(name for name in known if name in self.atlas.owners)

    def _others(self) -> list[NodeId]:
        """Whoever keeps its own book here is in the ring, too."""
        known = self.atlas.owners | self.fabric.standins.held.keys()
        return sorted(known - {self.host.name, *self.holders}, key=self._nearness)

    def sought(self) -> tuple[Keyed, ...]:
        """Where to look for others, now and then, while there are too few."""
        if not self.atlas.own or len(self.holders) >= HOLDERS or self.host.now() < self._seek_at_s:
            return ()
        self._seek_at_s = self.host.now() + SEEK_S
        return homes_of(self.host.name, 3)

    def _nearness(self, name: NodeId) -> tuple[int, int, str]:
        own = self.atlas.own[0].prefix
        cells = [one.prefix for one in self.atlas.regions.values() if one.owner == name]
        common = max((_common(own, prefix) for prefix in cells), default=0)
        return -common, distance(name, self.host.name), name

    def appoint(self, holders: tuple[NodeId, ...]) -> None:
        """From now on these keep it. Where one is replaced, the one that stays comes first."""
        old = self.holders
        gone = tuple(name for name in old if name not in holders)
        self._dismiss(gone)
        self._row = msgspec.structs.replace(self._row, former=gone)
        self._put(self.version, holders)
        self._tell_all(tuple(self.atlas.own), new={*holders} - {*old})
        self._appointed = self.version

    def _dismiss(self, names: Iterable[NodeId]) -> None:
        for name in names:
            self.fabric.send((name,), Replica(self.host.name, self.version, (), (), ()))

    def replace(self, silent: NodeId) -> None:
        """A holder has said nothing for long: another one takes its place, if there is one. One after the other: two
        who do not know that they were replaced would stand in with an old book."""
        others = self._others()
        stay = tuple(name for name in self.holders if name != silent)
        if silent in self.holders and others and stay and not self.former:
            self.host.trace(Record("replaced", peer=silent, note=others[0]))
            self.appoint((*stay, others[0]))

    def _tell_all(self, regions: tuple[Region, ...], new: Set[NodeId] = frozenset()) -> None:
        """First what is retained, to a new holder and for a new cell: until now that was told to the cell's last owner
        and its holders."""
        known = tuple(one.prefix for one in self._row.regions)
        for name in self.holders:
            for region in regions:
                if name in new or not region.prefix.startswith(known):
                    self.fabric.on_cede(name, region.cell)
        self._put(self.version + 1, self.holders, regions)
        self._tell(self.holders, self._whole())

    def _tell(self, holders: tuple[NodeId, ...], content: Replica | Amended) -> None:
        """An amendment need not be durable: whoever restarts is told all again."""
        send = self.fabric.send_settled if isinstance(content, Amended) else self.fabric.send
        send(holders, content)
        self._told.update(dict.fromkeys(holders, self.fabric.sent))

    def _whole(self) -> Replica:
        book = tuple(self.fabric.membership.entries(None))
        return Replica(self.host.name, self.version, self._row.regions, self.holders, book, tuple(self.atlas.own))

    def _put(
        self, version: int, holders: tuple[NodeId, ...] | None = None, regions: tuple[Region, ...] | None = None
    ) -> None:
        holders = self.holders if holders is None else holders
        regions = self._row.regions if regions is None else regions
        self._row = Appointed(version, holders, regions, self.former if holders else ())
        self.fabric.store.put(TABLE, REPLICAS, 0, msgspec.msgpack.encode(self._row))

    def ask(self) -> None:
        """A holder that took nothing while another stood in may have forgotten since what it had: all of that was of a
        cell that has gone. It has had all, keeps nothing and says nothing. Call it now and then."""
        now_s, wait_s = self.host.now(), LOOKS_MAX * self.fabric.options.watch_s
        for name in self.holders if self.atlas.own and not self.restoring else ():
            is_open = self._confirmed.get(name, 0) != self.version
            if is_open and self.fabric.hears(name) and now_s - self._said_s.setdefault(name, now_s) >= wait_s:
                self._said_s[name] = now_s
                self.fabric.send((name,), Awake(), durable=False)

    def on_watched(self, origin: NodeId, watched: Watched) -> None:
        self._said_s[origin] = self.host.now()
        if self.restoring:
            self.fabric.send((origin,), Awake(lost=True), durable=False)
        elif origin not in self.holders:
            self._dismiss((origin,) if self.atlas.own else ())
        elif watched.version == self.version or not self._may_lack(origin, watched.version):
            self._confirm(origin, watched.version)
        else:
            # It has had all and taken less: another stood in then, or tried to.
            self._tell((origin,), self._whole())

    def _may_lack(self, holder: NodeId, version: int) -> bool:
        """Whether it may need all again, and not the last changes only. Who keeps nothing (0) takes no changes."""
        return self._has_had_all(holder) and not (version and self._is_amending)

    @property
    def _is_amending(self) -> bool:
        return self._amended_s > 0 and self.host.now() - self._amended_s < AMENDING_S

    def _has_had_all(self, holder: NodeId) -> bool:
        return self.fabric.is_confirmed(holder, self._told.get(holder, 0))

    def _confirm(self, holder: NodeId, version: int) -> None:
        if version > self.version:
            return
        self._confirmed[holder] = max(version, self._confirmed.get(holder, 0))
        if self.former and holder in self._trusted and version >= self._appointed:
            self._row = msgspec.structs.replace(self._row, former=())
            self._put(self.version)
        self._look()
        self.fabric.statements.look()

    # A disk that was lost

    def reborn(self, holder: NodeId) -> None:
        """It has lost its disk, and what it kept."""
        self._confirmed.pop(holder, None)
        if holder in self.holders and self.atlas.own:
            for region in self.atlas.own:
                self.fabric.on_cede(holder, region.cell)
            self._tell((holder,), self._whole())

    def restore(self) -> None:
        """Nothing is matched until those who kept the book have sent it, or do not answer for a while."""
        self.restoring = self.was_lost = True
        self.fabric.store.put(TABLE, AGAIN, 0, b"")
        self._returned.clear()
        self._asked.clear()
        self.fabric.store.put(TABLE, RESTORING, 0, b"")
        self._ask()
        self.host.after(self.fabric.options.restore_s, self._restored)

    def _ask(self) -> None:
        """Everybody who is known by now. Who keeps the book says so too (`Watched`), but not while this broker leaves
        something unconfirmed that it was sent: for all of `restore_s`, perhaps."""
        new = sorted(self.fabric.brokers - self._asked)
        self._asked.update(new)
        self.fabric.send(new, Awake(lost=True), durable=False)

    def on_returned(self, origin: NodeId, replica: Replica) -> None:
        if not self.restoring:
            return
        for region in replica.regions:
            # Of what was about to be cut the replica may name the half only, and the whole is back already.
            if not any(one.owner == self.host.name for one in self.atlas.sharing(region.prefix)):
                self.fabric.membership.regain(origin, region)
        for region in self.atlas.own:
            self.fabric.inherit(region, replica.book)
        self._returned.add(origin)
        if self._returned >= set(replica.holders):
            self._restored()

    def _restored(self) -> None:
        if self.restoring:
            self.restoring = False
            self.fabric.store.delete(TABLE, RESTORING, 0)
            self.host.trace(Record("restored", note=" ".join(sorted(self._returned))))
            self.fabric.on_change()
            self.fabric.changed()
            self.fabric.on_rehome(WHOLE)  # sessions that began meanwhile are registered nowhere else


def _common(a: str, b: str) -> int:
    return next((at for at, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))

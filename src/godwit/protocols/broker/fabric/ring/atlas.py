"""Which broker owns which cell, as far as this one has heard: its own cells, those beside them, and those it asked for.

Nobody has a complete list. For each cut of a cell of its own a broker knows somebody on the other side; that is enough
to find everybody (docs/ring.md, "How a subscription finds its brokers").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from godwit.protocols.broker.messages import Region
from godwit.protocols.broker.store import Store
from godwit.protocols.gathering.areas import Keyed, Reach, Spot, meets
from godwit.protocols.gathering.assurance import complete
from godwit.protocols.gathering.space import Boundary
from godwit.protocols.host import NodeId

TABLE, ROWS = "ring", "region "


def is_taken(region: Region) -> bool:
    """Whether somebody took it, or what it was cut out of, as nobody's (`orphans`). All other cells have a term above
    their number of cuts: each cut raises it, and the first owner of all space begins with one."""
    return region.term <= len(region.prefix)


def outranks(one: Region, other: Region) -> bool:
    """Whether of two owners of a place this one is right. Two may have taken the same cell: then names decide."""
    if one.term == other.term and is_taken(one) and is_taken(other):
        return one.owner > other.owner
    return one.term > other.term


def rest_of(whole: Region, part: Region) -> list[Region]:
    """What is left of a cell once another has a part of it, cut by cut. Its term is old: others count more."""
    levels = range(len(whole.cell), len(part.cell))
    return [Region(part.cell.beyond(level), whole.owner, whole.term) for level in levels]


class Atlas:
    """Of two owners of a place the one with the higher term is right. All of it is on the disk."""

    def __init__(self, store: Store, name: NodeId) -> None:
        self.store = store
        self.name = name
        self.regions: dict[str, Region] = {}
        """By prefix; none contains another."""
        self.changes = 0
        self._owners: dict[Keyed, Region | None] = {}
        self._cuts: dict[str, tuple[Boundary, str]] = {}
        """By the prefix of all that is cut: the cut as it is seen from one side, and the bit of that side."""
        for owner, _, row in store.load(TABLE):
            if owner.startswith(ROWS):
                region = msgspec.msgpack.decode(row, type=Region)
                self.regions[region.prefix] = region

    @property
    def own(self) -> list[Region]:
        return [region for region in self.regions.values() if region.owner == self.name]

    @property
    def owners(self) -> set[NodeId]:
        return {region.owner for region in self.regions.values()}

    def put(self, region: Region, *, stood_in: bool = False) -> bool:
        """Whether it is news. What it contains or is contained in, and is older, is forgotten. But where somebody
        stands in for another owner in a part of its cell, that one has the rest: it has not given it away."""
        if self.rivals(region):
            return False
        for one in self.sharing(region.prefix):
            self._drop(one.prefix)
            for rest in rest_of(one, region) if stood_in and one.owner != self.name else ():
                self._keep(rest)
        self._keep(region)
        return True

    def whole(self, prefix: str) -> Region | None:
        """The known cell that is this one, or of which this one is a part."""
        return next((one for one in self.sharing(prefix) if prefix.startswith(one.prefix)), None)

    def sharing(self, prefix: str) -> list[Region]:
        """The cells of which this one is a part, or that are parts of it."""
        return [one for one in self.regions.values() if one.prefix.startswith(prefix) or prefix.startswith(one.prefix)]

    def rivals(self, region: Region) -> list[Region]:
        """What is known of the same place and is not older; the region itself where that is known."""
        return [one for one in self.sharing(region.prefix) if not outranks(region, one)]

    def replace(self, old: Region, halves: Iterable[Region]) -> None:
        """A cell has been cut."""
        if self.regions.get(old.prefix) == old:
            self._drop(old.prefix)
        for half in halves:
            self.put(half)

    def clear(self) -> None:
        for prefix in list(self.regions):
            self._drop(prefix)

    def _keep(self, region: Region) -> None:
        self.regions[region.prefix] = region
        self.store.put(TABLE, ROWS + region.prefix, 0, msgspec.msgpack.encode(region))
        self._changed()

    def _drop(self, prefix: str) -> None:
        del self.regions[prefix]
        self.store.delete(TABLE, ROWS + prefix, 0)
        self._changed()

    def _changed(self) -> None:
        self.changes += 1
        self._owners.clear()
        self._cuts.clear()

    def owner(self, target: Reach) -> Region | None:
        """The one region that has it, if that is known; for what lies in one cell."""
        if isinstance(target, Spot):
            return self._around(target)
        if not isinstance(target, Keyed):
            return next(self.meeting(target), None)
        if target not in self._owners:
            self._owners[target] = next(self.meeting(target), None)
        return self._owners[target]

    def _around(self, spot: Spot) -> Region | None:
        """From cut to cut: each says on which side the place is. So it takes as long as cells have cuts, however many
        are known."""
        if not self._cuts:
            cells = [one.cell for one in self.regions.values()]
            cuts = ((cell, at, cut) for cell in cells for at, cut in enumerate(cell.boundaries))
            self._cuts = {cell.prefix[:at]: (cut, cell.prefix[at]) for cell, at, cut in cuts}
        prefix = ""
        while (found := self.regions.get(prefix)) is None and prefix in self._cuts:
            cut, bit = self._cuts[prefix]
            prefix += bit if cut.owns(spot.place) else "10"[int(bit)]
        return found

    def meeting(self, reach: Reach) -> Iterator[Region]:
        return (region for region in self.regions.values() if meets(region.cell, reach))

    def covers(self, reach: Reach) -> bool:
        """Whether all owners of it are known."""
        if isinstance(reach, Keyed):
            return self.owner(reach) is not None
        return complete(reach, (region.cell for region in self.regions.values()), exact=True)

    def since(self, given: Region) -> list[Region]:
        """What has become of a cell that was another's once, as far as that is known here; or that one."""
        newer = [one for one in self.sharing(given.prefix) if outranks(one, given) and one.owner != self.name]
        return newer or [given]

    def contacts(self, prefix: str) -> list[NodeId]:
        """Others that own something within the cells that begin so."""
        return sorted({one.owner for one in self.regions.values() if one.prefix.startswith(prefix)} - {self.name})

    def beside(self) -> tuple[Region, ...]:
        """For each cut of a cell of this broker up to two on the other side: what a newcomer needs."""
        found: dict[str, Region] = {}
        for mine in self.own:
            for level in range(len(mine.cell)):
                there = mine.cell.sibling_prefix(level)
                near = [one for one in self.regions.values() if one.prefix.startswith(there)]
                found.update((one.prefix, one) for one in near[:2])
        return tuple(found.values())

"""Cells that nobody remembers, since all who did have lost their disks: somebody must match there again.

A broker that came in by a cut knows somebody beyond each of its cuts. One that lost its disk may know nobody there, and
neither may anybody else, nor whoever comes in by a cut of its cell. It asks around for long. If there is no answer it
takes what lies beyond that cut as its own, and whoever stands there gets it as every newcomer does.

It may be wrong: those who know may be out of reach. So it takes the cell under a term that every other owner outranks
(`atlas.is_taken`), and gives way as soon as it hears of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.protocols.broker.messages import Region, Seek
from godwit.protocols.gathering.areas import Anywhere
from godwit.protocols.gathering.space import Cell
from godwit.protocols.host import Record

if TYPE_CHECKING:
    from godwit.protocols.broker.fabric.ring.fabric import RingFabric


class Orphans:
    def __init__(self, fabric: RingFabric) -> None:
        self.fabric = fabric
        self._since_s: dict[str, float] = {}
        """By prefix: from when on nobody was known beyond this cut."""
        self._asked = 0

    def look(self) -> None:
        """Call it now and then."""
        fabric, now_s = self.fabric, self.fabric.host.now()
        unknown = {} if fabric.replicas.restoring else self._unknown()
        self._since_s = {prefix: self._since_s.get(prefix, now_s) for prefix in unknown}
        for prefix, since_s in list(self._since_s.items()):
            if now_s - since_s < fabric.options.orphaned_s:
                self._ask(prefix)
            else:
                self._take(unknown[prefix])

    def _unknown(self) -> dict[str, Cell]:
        """What lies beyond cuts of this broker's cells and of which no owner is known, by prefix."""
        atlas = self.fabric.atlas
        cells = (one.cell.beyond(level) for one in atlas.own for level in range(len(one.cell)))
        return {cell.prefix: cell for cell in cells if not atlas.sharing(cell.prefix)}

    def _ask(self, prefix: str) -> None:
        """Those who are linked one after the other, in a ring or not: who has left it may remember."""
        fabric, peers = self.fabric, sorted(self.fabric.links)
        if peers:
            self._asked += 1
            seek = Seek(fabric.host.name, 0, (Anywhere(),), prefix)
            fabric.send((peers[self._asked % len(peers)],), seek, durable=False)

    def _take(self, cell: Cell) -> None:
        fabric = self.fabric
        fabric.host.trace(Record("taken", note=cell.prefix))
        fabric.atlas.put(Region(cell, fabric.host.name, 0))
        fabric.on_rehome(cell)
        fabric.changed()

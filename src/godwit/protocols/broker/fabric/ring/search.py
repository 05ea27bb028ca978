"""How the owners of cells are found that a broker does not know: along the cuts of cells, whatever the number of
brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.broker.fabric.ring.ways import HOPS_MAX
from godwit.protocols.broker.messages import Content, Owned, Region, Seek
from godwit.protocols.gathering.areas import Reach, walk

if TYPE_CHECKING:
    from godwit.protocols.broker.fabric.ring.fabric import RingFabric


class Search:
    def __init__(self, fabric: RingFabric) -> None:
        self.fabric = fabric
        self.host = fabric.host
        self.atlas = fabric.atlas
        self._seeking = False

    def soon(self) -> None:
        """Ask for the owners that this broker needs and does not know, if there are any."""
        if not self._seeking:
            self._seeking = True
            self.host.after(0.0, self._begin)

    def _begin(self) -> None:
        self._seeking = False
        missing = [*self.fabric.missing(), *self.fabric.replicas.sought()]
        if not missing:
            return
        serial = self.fabric.next_serial()
        seek = Seek(self.host.name, serial, tuple(missing))
        if self.fabric.is_member:
            self.on_seek(seek)
        elif others := sorted(self.atlas.owners & self.fabric.brokers):
            # A broker without a cell asks somebody who has one.
            self.fabric.send((others[serial % len(others)],), seek, durable=False)

    def on_seek(self, seek: Seek) -> None:
        """Answer for what is here, and ask beyond each cut that they reach over. Those who are asked are told how much
        of the way is done, so that nobody is asked twice."""
        here = [one for one in self.atlas.own if one.prefix.startswith(seek.prefix)]
        if not here:
            inside = [one for one in self.atlas.own if seek.prefix.startswith(one.prefix)]
            known = inside or [one for one in self.fabric.given.values() if one.prefix.startswith(seek.prefix)]
            known = known or [one for one in self.atlas.regions.values() if one.prefix == seek.prefix]
            self._answer(seek, known)
            if not known:
                self._ask_beyond(seek, seek.prefix, seek.reaches)
            return
        mine = here[0]
        found: dict[int, list[Reach]] = {}
        stays = False
        for reach in seek.reaches:
            steps = walk(mine.cell, reach, len(seek.prefix), exact=True)
            stays = stays or steps.stays
            for level in steps.crossed:
                found.setdefault(level, []).append(reach)
        self._answer(seek, [one for one in here if stays or one is not mine])
        for level, reaches in found.items():
            self._ask_beyond(seek, mine.cell.sibling_prefix(level), tuple(reaches))

    def _ask_beyond(self, seek: Seek, prefix: str, reaches: tuple[Reach, ...]) -> None:
        if any(one.prefix.startswith(prefix) for one in self.atlas.own):
            self.on_seek(msgspec.structs.replace(seek, reaches=reaches, prefix=prefix))
            return
        contacts, hops = self.atlas.contacts(prefix), seek.hops + 1
        there = [name for name in contacts if not self.fabric.is_silent(name)]
        if not there:
            # Nobody is known on that side who answers: whoever is asked may know somebody.
            there = [name for name in sorted(self.atlas.owners - {self.host.name, *contacts}) if name != seek.by]
            hops += HOPS_MAX // 8
        if there and hops <= HOPS_MAX:
            name = there[self.host.random.randrange(len(there))]
            self.fabric.meet((name,))
            self.fabric.send((name,), Seek(seek.by, seek.serial, reaches, prefix, hops), durable=False)

    def _answer(self, seek: Seek, regions: Sequence[Region]) -> None:
        if not regions or seek.by == self.host.name:
            return
        self.fabric.meet((seek.by,))
        self.fabric.send((seek.by,), Owned(seek.serial, tuple(regions)), durable=False)

    def pass_along(self, target: Reach, content: Content, hops: int) -> None:
        """To somebody nearer to the owner of it, or to the owner."""
        region = self.atlas.owner(target)
        to = [region.owner] if region is not None else []
        if not to:
            for mine in self.atlas.own:
                found = walk(mine.cell, target, 0, exact=True)
                to = [name for level in found.crossed for name in self.atlas.contacts(mine.cell.sibling_prefix(level))]
                break
        to = [name for name in to if name != self.host.name]
        if to and hops < HOPS_MAX:
            name = to[self.host.random.randrange(len(to))]
            self.fabric.meet((name,))
            self.fabric.send((name,), content, durable=False)

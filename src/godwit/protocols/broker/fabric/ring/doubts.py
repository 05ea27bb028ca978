"""What somebody says of a third broker's cell. That one is asked first, so that nobody loses a cell by another's word
while it is there to answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import outranks
from godwit.protocols.broker.messages import Region, Seek
from godwit.protocols.gathering.areas import Anywhere
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.protocols.broker.fabric.ring.fabric import RingFabric


class Doubt(msgspec.Struct, frozen=True):
    region: Region
    said_by: NodeId
    losers: frozenset[NodeId]
    then: Callable[[], None]
    """Follows where it is believed."""
    asked: frozenset[NodeId] = frozenset()
    """Who has answered, and claims nothing."""


class Doubts:
    def __init__(self, fabric: RingFabric) -> None:
        self.fabric = fabric
        self._doubts: dict[str, Doubt] = {}
        """By prefix: what somebody says, while those are asked who would lose the cell."""

    def holds(self, region: Region, said_by: NodeId) -> bool:
        """Whether it is not to be believed yet. Those who would lose something by it are asked; if none of them
        answers for a while it is believed."""
        losers = self._losers(region, said_by)
        if not said_by or not losers or region in self.fabric.membership.heirs.values():
            return False
        if region.prefix not in self._doubts:
            self.ask(region, said_by, losers, partial(self.fabric.learn, (region,)))
        return True

    def ask(self, region: Region, said_by: NodeId, losers: Iterable[NodeId], then: Callable[[], None]) -> None:
        """`then` follows unless one of these says that the cell, or a part of it, is its own."""
        self._ask(Doubt(region, said_by, frozenset(losers), then))

    def _losers(self, region: Region, said_by: NodeId) -> frozenset[NodeId]:
        """Who has a part of the cell, by all that is known here, and is there."""
        fabric = self.fabric
        met = [one for one in fabric.atlas.sharing(region.prefix) if outranks(region, one)]
        names = {one.owner for one in met} - {region.owner, said_by, fabric.host.name}
        return frozenset(one for one in names if not fabric.is_silent(one))

    def _ask(self, doubt: Doubt) -> None:
        fabric, prefix = self.fabric, doubt.region.prefix
        self._doubts[prefix] = doubt
        fabric.meet(sorted(doubt.losers))
        fabric.send(sorted(doubt.losers), Seek(fabric.host.name, 0, (Anywhere(),), prefix), durable=False)
        fabric.host.after(fabric.options.doubt_s, partial(self._believe, doubt))

    def _believe(self, doubt: Doubt) -> None:
        """Nobody has contradicted."""
        if self._doubts.get(doubt.region.prefix) is doubt:
            del self._doubts[doubt.region.prefix]
            doubt.then()

    def heard(self, region: Region, said_by: NodeId) -> None:
        """A broker says what is its own, or to whom it gave it."""
        for prefix, doubt in list(self._doubts.items()):
            if said_by in doubt.losers and _meet(prefix, region.prefix):
                self._answered(doubt, region, said_by)

    def _answered(self, doubt: Doubt, region: Region, said_by: NodeId) -> None:
        prefix, me = doubt.region.prefix, self.fabric.host.name
        del self._doubts[prefix]
        if region.owner == said_by:
            note = f"says that {doubt.region.owner} owns {prefix!r}, which is {said_by}'s"
            self.fabric.refuse(doubt.said_by, "Region", note)
        elif doubt.region.owner == me:
            # It is to be this broker's. Whoever is named may own it, and is asked once.
            asked = doubt.asked | {said_by}
            losers = (doubt.losers | {region.owner}) - asked - {me}
            if losers:
                self._ask(msgspec.structs.replace(doubt, losers=losers, asked=asked))
            else:
                doubt.then()


def _meet(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)

"""Publications for which there is no matching broker at this moment: its name is not known here, or the cell is about
to change hands. What is durable of them is on the disk, and what has one target keeps its order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import Routed
from godwit.protocols.broker.store import Store
from godwit.protocols.gathering.areas import Keyed, Spot

ROWS = "custody"


class Kept(msgspec.Struct, frozen=True):
    routed: Routed
    target: Keyed | Spot


class Custody:
    def __init__(self, store: Store, targets: Targets) -> None:
        self.store = store
        self.kept: dict[int, Kept] = {}
        self._number = 0
        for owner, number, row in store.load(TABLE):
            if owner == ROWS:
                routed = msgspec.msgpack.decode(row, type=Routed)
                self.kept[number] = Kept(routed, targets.of_publication(routed.publication))
                self._number = max(self._number, number)
        self.kept = dict(sorted(self.kept.items()))

    def __len__(self) -> int:
        return len(self.kept)

    def add(self, routed: Routed, target: Keyed | Spot) -> None:
        self._number += 1
        self.kept[self._number] = Kept(routed, target)
        if routed.publication.qos:
            self.store.put(TABLE, ROWS, self._number, msgspec.msgpack.encode(routed))

    def precedes(self, target: Keyed | Spot) -> bool:
        """Whether something is kept that must go before what comes now for this target."""
        if isinstance(target, Keyed):
            return any(one.target == target for one in self.kept.values())
        return any(isinstance(one.target, Spot) for one in self.kept.values())

    def targets(self) -> Iterable[Keyed | Spot]:
        return dict.fromkeys(one.target for one in self.kept.values())

    def release(self, may_go: Callable[[Kept], bool]) -> None:
        """`may_go` takes what it can, from the oldest on; what stays keeps back all of its kind."""
        waiting: set[Keyed | str] = set()
        for number, one in list(self.kept.items()):
            kind = one.target if isinstance(one.target, Keyed) else "spot"
            if kind not in waiting and may_go(one):
                del self.kept[number]
                if one.routed.publication.qos:
                    self.store.delete(TABLE, ROWS, number)
            else:
                waiting.add(kind)

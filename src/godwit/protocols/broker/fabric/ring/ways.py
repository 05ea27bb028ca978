"""Which link a frame takes that is for another broker: the one that leads nearest to it on the circle of names."""

from __future__ import annotations

from collections.abc import Callable
from heapq import nsmallest

import msgspec

from godwit.protocols.broker.streams.frames import Ask, Leg, Parcels, Run, Taken
from godwit.protocols.host import Host, NodeId
from godwit.protocols.topology.mesh import distance

HOPS_MAX = 64
DETOURS_MAX = 4
"""So often a frame may take a link that leads no nearer to its receiver, where the nearer ones are broken."""

NEAR_MAX = 65_536


class Ways:
    """Call `changed` when a link has come or gone."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.links: set[NodeId] = set()
        self.beyond: set[NodeId] = set()
        """Brokers of no ring that are reached directly now: streams lead to them all the same (`gateway`)."""
        self.is_foreign: Callable[[NodeId], bool] = lambda broker: False
        """Whether a broker is such a one, reached now or not."""
        self._near: dict[NodeId, tuple[tuple[NodeId, bool], ...]] = {}

    def changed(self) -> None:
        self._near.clear()

    def leads_to(self, to: NodeId) -> bool:
        return to in self.beyond or (bool(self.links) and not self.is_foreign(to))

    def next_to(self, to: NodeId, hops: int = 0, arrived: NodeId = "") -> NodeId | None:
        """The linked broker to which what is for another goes next: the nearest to it on the circle of names, where
        brokers keep links with their neighbors (`topology.mesh`)."""
        if to in self.links or to in self.beyond:
            return to
        if self.is_foreign(to):
            return None
        for name, is_nearer in self._nearest(to):
            if name != arrived:
                return name if is_nearer or hops < DETOURS_MAX else None
        return None

    def _nearest(self, to: NodeId) -> tuple[tuple[NodeId, bool], ...]:
        """The two linked brokers that are nearest to another, and whether they are nearer than this one."""
        found = self._near.get(to)
        if found is None:
            near = nsmallest(2, self.links, key=lambda name: (distance(name, to), name))
            own = distance(self.host.name, to)
            if len(self._near) >= NEAR_MAX:
                self._near.clear()
            found = self._near[to] = tuple((name, distance(name, to) < own) for name in near)
        return found

    def pass_on(self, frame: Parcels | Ask | Taken, arrived: NodeId = "") -> None:
        speaker = frame.by if isinstance(frame, Taken) else frame.origin
        if frame.hops >= HOPS_MAX or (arrived and speaker == self.host.name):
            return
        if isinstance(frame, Parcels):
            for hop, runs in self._split(frame, arrived).items():
                self.host.send(hop, Parcels(frame.origin, frame.stream, tuple(runs), frame.hops + 1, frame.sent))
            return
        way = self.next_to(frame.to if isinstance(frame, Ask) else frame.origin, frame.hops, arrived)
        if way is not None:
            self.host.send(way, msgspec.structs.replace(frame, hops=frame.hops + 1))

    def _split(self, frame: Parcels, arrived: NodeId) -> dict[NodeId, list[Run]]:
        """The runs by next hop, each with those receivers that lie behind it."""
        found: dict[NodeId, list[Run]] = {}
        for run in frame.runs:
            behind: dict[NodeId, list[Leg]] = {}
            for leg in run.legs:
                hop = None if leg.to == self.host.name else self.next_to(leg.to, frame.hops, arrived)
                if hop is not None:
                    behind.setdefault(hop, []).append(leg)
            for hop, legs in behind.items():
                found.setdefault(hop, []).append(run if len(legs) == len(run.legs) else Run(tuple(legs), run.items))
        return found

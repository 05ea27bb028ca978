"""A ring of deployed brokers in the simulator, for the tests of this folder."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import msgspec

from godwit.protocols.broker.fabric.ring.fabric import RingFabric
from godwit.protocols.broker.fabric.ring.targets import of_level
from godwit.protocols.broker.streams.frames import Parcels, decode_items
from godwit.protocols.gathering.areas import Keyed, meets
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import RING, StationOptions


class Ring:
    """Brokers b1 ... bn; those that are late start later."""

    def __init__(
        self,
        count: int,
        *,
        late: int = 0,
        handoff: str = "reactive",
        archives: bool = False,
        seed: int = 1,
        **options: Any,
    ) -> None:
        self.names = [f"b{at}" for at in range(1, count + late + 1)]
        station = StationOptions(
            fabric="dht",
            handoff=handoff,  # type: ignore[arg-type]
            ring=msgspec.structs.replace(RING, **options),
            archives=archives,
            replay_per_s=200.0,
        )
        self.cluster = Cluster(self.names, combinations(self.names, 2), seed, station)
        self.heard: list[tuple[NodeId, NodeId, object]] = []
        self.cluster.cables.spy = self._overhear
        for name in self.names[count:]:
            self.cluster.crash(name)
        self.cluster.run(5 + count)

    def _overhear(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Parcels):
            for run in message.runs:
                if any(leg.to == to for leg in run.legs):
                    self.heard += [(message.origin, to, item.content) for item in decode_items(run)]

    def fabric(self, name: NodeId) -> RingFabric:
        found = self.cluster.sites[name].station.fabric
        assert isinstance(found, RingFabric)
        return found

    def client(self, name: str, at: NodeId) -> Client:
        client = Client(self.cluster, name)  # type: ignore[arg-type]
        client.connect(at)
        self.cluster.run(3)
        return client

    def owners(self, level: str) -> list[NodeId]:
        """Of the brokers that are up."""
        up = [name for name in self.names if self.cluster.sites[name].up]
        return [name for name in up if any(meets(one.cell, of_level(level)) for one in self.fabric(name).regions)]

    def owner_of(self, key: Keyed) -> NodeId:
        (owner,) = [name for name in self.names if any(meets(one.cell, key) for one in self.fabric(name).regions)]
        return owner

    def owner(self, level: str) -> NodeId:
        owners = self.owners(level)
        assert len(owners) == 1
        return owners[0]

    def said(self, kind: type) -> list[tuple[NodeId, NodeId]]:
        return [(origin, to) for origin, to, content in self.heard if type(content) is kind]

    def others(self, *names: NodeId) -> list[NodeId]:
        return [name for name in self.names if name not in names]

    def wipe(self, name: NodeId) -> None:
        """The machine fails and comes back with an empty disk."""
        self.cluster.crash(name)
        self.cluster.sites[name].node.disk.clear()
        self.cluster.start(name)

"""The deployed broker on a simulated machine, put together as `godwit.net.server` does it on a real one."""

from __future__ import annotations

from collections.abc import Callable, Collection

from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.fabric.gateway import Gateway
from godwit.protocols.broker.fabric.tree import TreeFabric
from godwit.protocols.broker.handoff.copies import Foresight
from godwit.protocols.broker.handoff.prediction import Neighbors
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.disk import Shelf, SimArchive, SimStore, Wear
from godwit.sim.brokers.fabric_kinds import FABRICS, Ground, Woven
from godwit.sim.brokers.options import StationOptions
from godwit.sim.world import Node


class ExpectsEverywhere:
    """A `Foresight` that expects every client everywhere."""

    def __init__(self, here: NodeId, names: Callable[[], Collection[NodeId]]) -> None:
        self.here = here
        self.names = names

    def likely(self, before: NodeId) -> tuple[NodeId, ...]:
        return tuple(name for name in self.names() if name != self.here)

    def went(self, to: NodeId, copied: Collection[NodeId], before: NodeId) -> None: ...

    def came(self, source: NodeId) -> None: ...


class Station:
    """One life of a broker: the core of a node. `clock` gives the seconds since 1970 that this machine believes in."""

    def __init__(self, node: Node, wear: Wear, clock: Callable[[], float], options: StationOptions) -> None:
        self.node = node
        self.store = SimStore(node.disk.setdefault("disk", {}), node, wear)
        woven = FABRICS[options.fabric].weave(Ground(node, self.store, clock, options))
        self.fabric = woven.fabric
        self.neighbors = self._foresight(woven, options, clock)
        self.broker = Broker(
            node,
            self.store,
            self.fabric,
            clock,
            session_wait_s=options.session_wait_s,
            handoff=options.handoff,
            neighbors=self.neighbors,
            copies_bytes_max=options.copies_bytes_max,
            tracing=options.tracing,
            directory=woven.directory,
        )
        if isinstance(self.fabric, Gateway):
            self.fabric.retained = self.broker.shelf
        if options.archives:
            shelf = node.disk.setdefault("archive", Shelf(first=node.life))
            past = SimArchive(shelf, node, clock, node.world.streams.stream("archive", node.name, node.life))
            self.broker.past, self.broker.on_published = past, past.add
            self.broker.pace_replays(options.replay_per_s)

    @property
    def tree(self) -> TreeFabric:
        """Of a broker in a tree."""
        assert isinstance(self.fabric, TreeFabric)
        return self.fabric

    def _foresight(self, woven: Woven, options: StationOptions, clock: Callable[[], float]) -> Foresight:
        name = self.node.name
        if options.foresight == "everybody":
            return ExpectsEverywhere(name, lambda: sorted(woven.brokers()))
        return Neighbors(name, self.store, clock, options.habits, lambda peer: peer in woven.brokers())

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.fabric.receive(sender, message)

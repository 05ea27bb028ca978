"""The deployed broker on a simulated machine, put together as `godwit.net.server` does it on a real one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

import msgspec

from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.fabric.tree import TreeFabric, TreeOptions
from godwit.protocols.broker.handoff.copies import COPIES_BYTES_MAX, Foresight, Handoff
from godwit.protocols.broker.handoff.directory import Directory
from godwit.protocols.broker.handoff.homes import CareOf, hashed
from godwit.protocols.broker.handoff.prediction import HABITS, Neighbors
from godwit.protocols.broker.streams.sender import StreamOptions
from godwit.protocols.host import Message, NodeId
from godwit.protocols.neighbors.graph import GraphOptions
from godwit.sim.brokers.disk import SimStore, Wear
from godwit.sim.world import Node

QUICK = TreeOptions(streams=StreamOptions(retry_s=0.5, retry_max_s=4.0), refresh_s=20.0, forget_s=10_000.0)
"""The tree with retries that a short run sees."""

FORESEEN = ("everybody", "habits")


class StationOptions(msgspec.Struct, frozen=True, kw_only=True):
    handoff: Handoff = "proactive"
    session_wait_s: float = 10.0
    foresight: Literal["everybody", "habits"] = "habits"
    """Who gets copies: those where clients went before, as deployed, or all others."""
    habits: GraphOptions = HABITS
    tree: TreeOptions = QUICK
    copies_bytes_max: int = COPIES_BYTES_MAX
    tracing: bool = False
    homes: int = 0
    """So many brokers know where a client's session is, and are asked; 0: all do, as deployed."""


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
        self.fabric = TreeFabric(node, self.store, options.tree)
        self.neighbors = self._foresight(options, clock)
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
            directory=self._directory(options.homes),
        )

    def _directory(self, homes: int) -> Directory | None:
        return CareOf(self.node, self.fabric, hashed(self.node.name, self.fabric, homes)) if homes else None

    def _foresight(self, options: StationOptions, clock: Callable[[], float]) -> Foresight:
        name, fabric = self.node.name, self.fabric
        if options.foresight == "everybody":
            return ExpectsEverywhere(name, lambda: sorted(fabric.brokers))
        return Neighbors(name, self.store, clock, options.habits, lambda peer: peer in fabric.brokers)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.fabric.receive(sender, message)

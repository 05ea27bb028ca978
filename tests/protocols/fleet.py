"""Whole systems: brokers that elect and route, subscribers that listen, publishers; on wires or on the air."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from tests.protocols.overlay import topic

from godwit.events import Event
from godwit.protocols.host import Core, Host, NodeId
from godwit.protocols.routing.clients import ClientOptions, Publisher, Subscriber
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.process import BrokerProcess
from godwit.protocols.routing.rules import HARDENED, Rules
from godwit.protocols.topology.election import ElectionOptions
from godwit.protocols.topology.tree import Tree
from godwit.sim.faults import Faults
from godwit.sim.mobility import Model
from godwit.sim.radio import Disc
from godwit.sim.recorder import Trace
from godwit.sim.wired import Wired
from godwit.sim.world import Node, World

HARDENED_CLIENTS = ClientOptions(refresh_s=10.0, acknowledge=True)
THESIS_CLIENTS = ClientOptions()


class Fleet:
    """Brokers begin with b, subscribers with s, publishers with p. A subscriber wants the topic of its own name."""

    def __init__(
        self,
        world: World,
        *,
        rules: Rules = HARDENED,
        clients: ClientOptions | None = None,
        election: ElectionOptions = ElectionOptions(),  # noqa: B008
        **options: Any,
    ) -> None:
        self.world = world
        assert isinstance(world.recorder, Trace)
        self.trace = world.recorder
        self.faults = Faults(world)
        self.rules = rules
        self.clients = clients or (HARDENED_CLIENTS if rules.refresh else THESIS_CLIENTS)
        self.election = election
        self.options = options

    def add(self, name: NodeId) -> None:
        if name not in self.world.nodes:
            self.world.add(name, self._start)

    def _start(self, node: Node) -> Core:
        match node.name[0]:
            case "b":
                node.disk["boots"] = node.disk.get("boots", 0) + 1
                return BrokerProcess(node, self._router, self.election, incarnation=node.disk["boots"])
            case "s":
                return Subscriber(node, [topic(node.name)], self.clients, disk=node.disk)
            case _:
                return Publisher(node, self.clients)

    def _router(self, host: Host, tree: Tree) -> MftBroker:
        return MftBroker(host, tree, self.rules, acknowledge=True, **self.options)

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def broker(self, name: NodeId) -> MftBroker:
        core = self.world.nodes[name].core
        assert isinstance(core, BrokerProcess)
        assert isinstance(core.router, MftBroker)
        return core.router

    def brokers(self) -> dict[NodeId, MftBroker]:
        return {name: self.broker(name) for name, node in self.world.nodes.items() if name[0] == "b" and node.alive}

    def subscriber(self, name: NodeId) -> Subscriber:
        core = self.world.nodes[name].core
        assert isinstance(core, Subscriber)
        return core

    def publisher(self, name: NodeId) -> Publisher:
        core = self.world.nodes[name].core
        assert isinstance(core, Publisher)
        return core

    def at(self, name: NodeId) -> NodeId | None:
        core = self.world.nodes[name].core
        assert isinstance(core, Subscriber | Publisher)
        return core.attachment.broker

    def publish(self, publisher: NodeId, wanted: NodeId, sequence: int) -> None:
        event = Event(publisher, sequence, attributes={"topic": wanted}, payload=bytes(16))
        self.publisher(publisher).publish(event)

    def got(self, name: NodeId) -> list[int]:
        return [int(row[4] or 0) for row in self.trace.of("delivered") if row[1] == name]


def wired(edges: Iterable[tuple[NodeId, NodeId]], *, seed: int = 0, **options: Any) -> Fleet:
    """Processes on a graph: whoever has a link hears the other's heartbeats."""
    fleet = Fleet(World(seed, Wired, Trace()), **options)
    for a, b in edges:
        fleet.add(a)
        fleet.add(b)
        wires(fleet).connect(a, b)
    return fleet


def on_air(places: Mapping[NodeId, Model], *, range_m: float, seed: int = 0, **options: Any) -> Fleet:
    fleet = Fleet(World(seed, partial(Disc, range_m=range_m), Trace()), **options)
    assert isinstance(fleet.world.medium, Disc)
    for name, model in places.items():
        fleet.world.medium.place(name, model)
        fleet.add(name)
    return fleet


def wires(fleet: Fleet) -> Wired:
    assert isinstance(fleet.world.medium, Wired)
    return fleet.world.medium

"""Brokers on a ring, phones and sensors, in one simulated world: what experiments, tests and `godwit sim` play with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from godwit.protocols.gathering.broker import GatheringBroker, Overlay
from godwit.protocols.gathering.maps import Map, Site, known_peers
from godwit.protocols.gathering.phone import Phone
from godwit.protocols.gathering.rules import CORRECTED, Rules
from godwit.protocols.gathering.space import Point
from godwit.protocols.host import Host, NodeId
from godwit.protocols.topology.pastry.node import PastryNode
from godwit.protocols.topology.pastry.peers import Peer
from godwit.sim.ring.underlay import Draw, Underlay
from godwit.sim.streams import Streams
from godwit.sim.world import Node, Recorder, World


class Gathering:
    """Everything that one seed decides. Brokers come from a map, or join one by one."""

    def __init__(
        self,
        seed: int,
        rules: Rules = CORRECTED,
        *,
        recorder: Recorder | None = None,
        draw: Draw | None = None,
        overlay: Overlay = PastryNode,
    ) -> None:
        self.rules = rules
        self.overlay = overlay
        self.world = World(seed, lambda world: Underlay(world, draw=draw), recorder)
        self.brokers: dict[NodeId, GatheringBroker] = {}
        self.phones: dict[NodeId, Phone] = {}

    @property
    def underlay(self) -> Underlay:
        assert isinstance(self.world.medium, Underlay)
        return self.world.medium

    @property
    def streams(self) -> Streams:
        return self.world.streams

    def deploy(self, sites: Iterable[Site], *, missing: float = 0.0) -> None:
        """All of them members at once, with complete tables, of whose cells a share may be missing."""
        sites = tuple(sites)
        ring = self.rules.ring
        peers = known_peers(sites, ring.bits, ring.leaves)
        for site in sites:
            self._begin(site, peers[site.name], missing)

    def _begin(self, site: Site, peers: list[Peer], missing: float) -> None:
        broker = self.add(site.name, site.place)
        broker.begin(site.cell, peers)
        if missing:
            dice = self.streams.stream("missing", site.name)
            assert isinstance(broker.ring, PastryNode), "only Pastry has a table with cells"
            broker.ring.table.drop(lambda row, column: dice.random() >= missing)

    def add(
        self, name: NodeId, place: Point, started: Callable[[GatheringBroker], None] | None = None
    ) -> GatheringBroker:
        """A broker that is outside yet; `started` is called with it now and after every restart."""
        self.underlay.places[name] = place

        def start(host: Host) -> GatheringBroker:
            broker = GatheringBroker(host, place, self.rules, self.overlay)
            self.brokers[name] = broker
            if started is not None:
                started(broker)
            return broker

        self.world.add(name, start)
        return self.brokers[name]

    def join(self, name: NodeId, place: Point, *via: NodeId) -> GatheringBroker:
        return self.add(name, place, lambda broker: broker.join(*via))

    def crash(self, name: NodeId) -> None:
        self.world.nodes[name].crash()
        del self.brokers[name]

    def node(self, name: NodeId) -> Node:
        return self.world.nodes[name]

    def phone(self, name: NodeId, *, history_max: int | None = None) -> Phone:
        self.underlay.attached[name] = None
        made: list[Phone] = []

        def start(host: Host) -> Phone:
            made.append(Phone(host, ack_s=self.rules.ack_s, history_max=history_max))
            return made[-1]

        self.world.add(name, start)
        self.phones[name] = made[0]
        return made[0]

    def attach(self, phone: NodeId, broker: NodeId) -> None:
        """The phone comes into the broker's range and associates."""
        self.underlay.attached[phone] = broker
        self.phones[phone].connect(broker, self.brokers[broker].key)

    def detach(self, phone: NodeId) -> None:
        """Out of everybody's range, without a word."""
        self.underlay.attached[phone] = None
        self.phones[phone].disconnect()

    def run(self, until_s: float = math.inf) -> None:
        self.world.run(until_s)

    def run_for(self, seconds: float) -> None:
        self.world.run(self.world.engine.now + seconds)


def deployed(seed: int, chart: Map, rules: Rules, *, recorder: Recorder | None = None) -> Gathering:
    gathering = Gathering(seed, rules, recorder=recorder)
    gathering.deploy(chart.sites)
    return gathering

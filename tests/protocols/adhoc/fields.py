"""Brokers without infrastructure on a drawn graph: whoever is joined by an edge hears the other, and nobody moves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from godwit.events import Event
from godwit.filters.filters import FilterSet, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.adhoc.messages import Beacon, Data
from godwit.protocols.adhoc.options import Options
from godwit.protocols.adhoc.proximity import ProximityBroker
from godwit.protocols.host import Message, NodeId
from godwit.sim.recorder import Trace
from godwit.sim.wired import Wired
from godwit.sim.world import Node, World

BLACK = FilterSet((filter_of(attribute("colour", equ("black"))),))
GREY = FilterSet((filter_of(attribute("colour", equ("grey"))),))
STILL = Options(jitter=0.0)
"""No jitter: a delay is then exactly the proximity's."""

AIR_S = 0.004
"""How long a frame takes from one to the next."""


def black(publisher: NodeId = "s", sequence: int = 1) -> Event:
    return Event(publisher, sequence, attributes={"colour": "black"})


class Air(Wired):
    """Remembers what was broadcast, when and by whom."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log: list[tuple[float, NodeId, Message]] = []

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        self.log.append((self.world.engine.now, sender, message))
        for there in self.neighbors(sender):
            self.send(sender, there, message)


class Ground:
    """A world of proximity brokers; `meet` says whom a broker met, and how many beacons it has missed since."""

    def __init__(self, edges: Iterable[tuple[NodeId, NodeId]], options: Options = STILL, **own: Options) -> None:
        self.trace = Trace()
        self.world = World(1, Air, self.trace)
        assert isinstance(self.world.medium, Air)
        self.air = self.world.medium
        self.options = options
        self.own = own
        self.told: list[tuple[NodeId, str, Event]] = []
        for a, b in edges:
            for name in (a, b):
                self.join(name)
            self.air.connect(a, b, AIR_S)

    def join(self, name: NodeId) -> None:
        if name not in self.world.nodes:
            self.world.add(name, self._start)

    def _start(self, node: Node) -> ProximityBroker:
        options = self.own.get(node.name, self.options)
        return ProximityBroker(
            node, options, on_event=lambda client, event: self.told.append((node.name, client, event))
        )

    def __getitem__(self, name: NodeId) -> ProximityBroker:
        core = self.world.nodes[name].core
        assert isinstance(core, ProximityBroker)
        return core

    def meet(self, name: NodeId, met: Mapping[NodeId, int], wanted: FilterSet = BLACK) -> None:
        """Tenths of proximity by broker."""
        broker = self[name]
        for other, tenths in met.items():
            broker.table.heard(other, wanted, broker.host.now() - tenths * broker.options.period_s)

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def sent(self) -> list[tuple[NodeId, Data]]:
        return [(sender, message) for _, sender, message in self.air.log if isinstance(message, Data)]

    def senders(self) -> list[NodeId]:
        return [sender for sender, _ in self.sent()]

    def times(self) -> dict[NodeId, float]:
        """When each first sent data."""
        return {sender: at for at, sender, message in reversed(self.air.log) if isinstance(message, Data)}

    def beacons(self) -> list[tuple[float, NodeId, Beacon]]:
        return [(at, sender, m) for at, sender, m in self.air.log if isinstance(m, Beacon)]

    def delivered(self) -> list[NodeId]:
        return [row[1] for row in self.trace.of("delivered")]


def line(names: str, options: Options = STILL, **own: Any) -> Ground:
    return Ground(list(itertools.pairwise(names)), options, **own)

"""Deployed brokers joined by links that carry bytes in order, and everything that can happen to them.

Two brokers speak over a conversation, as over one TCP connection: it begins when both are up and the link is, and ends
with either. Whoever is left behind notices late, or when the other is back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import cast

import msgspec

from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.fabric.gateway import Gateway
from godwit.protocols.broker.fabric.ring.atlas import ROWS, TABLE
from godwit.protocols.broker.fabric.ring.fabric import RingFabric
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.disk import Wear
from godwit.sim.brokers.fabric_kinds import FABRICS
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.station import Station
from godwit.sim.engine import Engine
from godwit.sim.streams import Streams
from godwit.sim.wired import Latency, Link, Wired
from godwit.sim.world import Node, Recorder, World

EPOCH_S = 1_700_000_000.0
DIAL_S = (0.01, 0.4)
"""How long it takes until two brokers that can speak do."""

Pair = frozenset[NodeId]
Spy = Callable[[NodeId, NodeId, Message], None]


class Cables(Wired):
    """Links that carry the bytes of frames, and only within a conversation."""

    def __init__(self, world: World, fabric: str) -> None:
        super().__init__(world)
        self.kind = FABRICS[fabric]
        self.conversations: set[Pair] = set()
        self.spy: Spy | None = None
        """Sees every message as it arrives."""

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        if frozenset((sender, to)) in self.conversations:
            super().send(sender, to, message)

    def _carry(self, link: Link, sender: NodeId, to: NodeId, message: Message) -> None:
        life, sent = link.life, self.kind.encode(message)

        def arrive() -> None:
            if link.life == life:
                self.received += 1
                arrived = self.kind.decode(sent)
                if self.spy is not None:
                    self.spy(sender, to, arrived)
                self.world.deliver(sender, to, arrived)

        self.world.engine.at(link.arrival_s(self.world.engine.now, message), arrive)

    def hang_up(self, a: NodeId, b: NodeId) -> None:
        """The conversation ends, and what is in flight is lost."""
        self.conversations.discard(frozenset((a, b)))
        self.links[a][b].lose_all()
        self.links[b][a].lose_all()

    def stall(self, a: NodeId, b: NodeId, until_s: float) -> None:
        """What is said from now on arrives no earlier than then, in its order; nothing is lost."""
        for link in (self.links[a][b], self.links[b][a]):
            link.last_arrival_s = max(link.last_arrival_s, until_s)


class Machine:
    """Where a broker lives: its disk and its clock outlive it."""

    def __init__(self, cluster: Cluster, name: NodeId) -> None:
        self.cluster = cluster
        self.name = name
        self.wear = Wear(cluster.write_s, cluster.streams.stream("disk", name))
        self.offset_s = 0.0
        """How much its calendar is wrong."""
        self.founds: bool | None = None
        """What its operator has decided (`StationOptions.founds`)."""
        self.peers: set[NodeId] = set()
        """With whom it believes to speak."""
        self.node: Node = cluster.world.add(name, self._start)

    def _start(self, node: Node) -> Station:
        options = msgspec.structs.replace(self.cluster.options, founds=self.founds)
        return Station(node, self.wear, self.clock, options)

    def clock(self) -> float:
        return EPOCH_S + self.cluster.engine.now + self.offset_s

    @property
    def up(self) -> bool:
        return self.node.alive

    @property
    def lives(self) -> int:
        return self.node.life

    @property
    def station(self) -> Station:
        assert self.node.core is not None, f"{self.name} is down"
        return cast(Station, self.node.core)

    @property
    def broker(self) -> Broker:
        return self.station.broker

    @property
    def is_of_ring(self) -> bool:
        """Whether it knows of a ring, or begins one."""
        if not self.up:
            return any(owner.startswith(ROWS) for owner, _ in self.node.disk.get("disk", {}).get(TABLE, ()))
        fabric = self.station.fabric
        ring = fabric.inner if isinstance(fabric, Gateway) else fabric
        return isinstance(ring, RingFabric) and bool(ring.atlas.regions or ring.options.first)

    def tell(self, peer: NodeId, linked: bool) -> None:
        """What its links report; the end of one that was made again is reported first."""
        if peer in self.peers:
            self.peers.discard(peer)
            self.station.fabric.unlinked(peer)
        if linked:
            self.peers.add(peer)
            self.station.fabric.linked(peer)


class Cluster:
    """Machines, cables and time. Clients reach brokers through `sites`."""

    def __init__(
        self,
        names: Iterable[NodeId],
        links: Iterable[tuple[NodeId, NodeId]],
        seed: int,
        options: StationOptions = StationOptions(),  # noqa: B008
        *,
        latency_s: Latency = 0.005,
        write_s: float = 0.005,
        recorder: Recorder | None = None,
    ) -> None:
        self.options = options
        self.write_s = write_s
        self.world = World(seed, lambda world: Cables(world, options.fabric), recorder)
        self.cables = cast(Cables, self.world.medium)
        self._dice = self.streams.stream("cluster")
        self._cuts: Counter[Pair] = Counter()
        self.sites: dict[NodeId, Machine] = {name: Machine(self, name) for name in names}
        for a, b in links:
            self.cables.connect(a, b, latency_s)
            self._dial(a, b)

    @property
    def engine(self) -> Engine:
        return self.world.engine

    @property
    def streams(self) -> Streams:
        return self.world.streams

    def clock(self) -> float:
        """The right time."""
        return EPOCH_S + self.engine.now

    def run(self, for_s: float) -> None:
        self.engine.run(self.engine.now + for_s)

    def _can_speak(self, a: NodeId, b: NodeId) -> bool:
        return self.cables.links[a][b].up and self.sites[a].up and self.sites[b].up

    def _dial(self, a: NodeId, b: NodeId) -> None:
        self.engine.after(self._dice.uniform(*DIAL_S), lambda: self._meet(a, b))

    def _meet(self, a: NodeId, b: NodeId) -> None:
        if self._can_speak(a, b) and frozenset((a, b)) not in self.cables.conversations:
            self.cables.conversations.add(frozenset((a, b)))
            self.sites[a].tell(b, linked=True)
            self.sites[b].tell(a, linked=True)

    def _part(self, a: NodeId, b: NodeId, notice_s: float) -> None:
        """The conversation is over; each end that is up notices after a while."""
        if frozenset((a, b)) in self.cables.conversations:
            self.cables.hang_up(a, b)
            for here, there in ((a, b), (b, a)):
                self._notice(self.sites[here], there, notice_s)

    def _notice(self, machine: Machine, peer: NodeId, notice_s: float) -> None:
        life = machine.lives

        def notice() -> None:
            over = frozenset((machine.name, peer)) not in self.cables.conversations
            if over and machine.up and machine.lives == life:
                machine.tell(peer, linked=False)

        self.engine.after(notice_s, notice)

    def crash(self, name: NodeId, notice_s: float = 0.0) -> None:
        machine = self.sites[name]
        machine.node.crash()
        machine.peers.clear()
        machine.wear.strike_in = 0
        for there in self.cables.links.get(name, {}):
            self._part(name, there, notice_s)

    def start(self, name: NodeId, *, keep_disk: bool = True) -> None:
        machine = self.sites[name]
        assert not machine.up, f"{name} is up"
        machine.node.restart(keep_disk=keep_disk)
        for there in self.cables.links.get(name, {}):
            self._dial(name, there)

    def cut(self, a: NodeId, b: NodeId, notice_s: float = 0.0) -> None:
        """Cuts add up: the link is whole again when each of them has healed."""
        self._cuts[frozenset((a, b))] += 1
        self.cables.links[a][b].up = self.cables.links[b][a].up = False
        self._part(a, b, notice_s)

    def heal(self, a: NodeId, b: NodeId) -> None:
        self._cuts[frozenset((a, b))] -= 1
        if not self._cuts[frozenset((a, b))]:
            self.cables.heal(a, b)
            self._dial(a, b)

    def between(self, side: Iterable[NodeId]) -> list[tuple[NodeId, NodeId]]:
        """The links that lead from one side to the other."""
        here = set(side)
        return [(a, b) for a in sorted(here) for b in self.cables.links.get(a, {}) if b not in here]

    def skew(self, name: NodeId, rate: float) -> None:
        """From now on the machine's own seconds are so much shorter or longer; its time never goes back."""
        node = self.sites[name].node
        node.clock_offset_s = node.now() - self.engine.now * rate
        node.clock_rate = rate

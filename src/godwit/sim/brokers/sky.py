"""Whole brokers in a simulated world with a radio and, for some of them, cables: sessions over the ad hoc fabric.

Who hears whom is drawn, or decided by a radio and how its nodes move. Every frame is encoded and decoded on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, cast

from godwit.protocols.adhoc.messages import Beacon, Data
from godwit.protocols.adhoc.options import Options
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.fabric import adhoc
from godwit.protocols.broker.fabric.adhoc import AdhocFabric
from godwit.protocols.broker.fabric.base import Fabric, Streamless
from godwit.protocols.broker.fabric.bridge import Bridge
from godwit.protocols.broker.fabric.tree import TreeFabric
from godwit.protocols.broker.store import MemoryStore
from godwit.protocols.broker.streams import frames
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers import world as brokers
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import OPTIONS as TREE
from godwit.sim.mobility import Model
from godwit.sim.radio import Disc, Radio
from godwit.sim.wired import Wired
from godwit.sim.world import Node, World

FRAME_S = 0.002
FIELD = adhoc.field_options()

MakeRadio = Callable[[World], Disc | Radio]


class Both:
    """The radio carries what nodes without infrastructure say, cables the rest."""

    def __init__(self, world: World, radio: MakeRadio | None) -> None:
        self.world = world
        self.cables = Wired(world)
        self.radio = None if radio is None else radio(world)
        self.ears: dict[NodeId, set[NodeId]] = {}
        self.loss = 0.0
        self.aired: list[tuple[NodeId, Message, int]] = []
        self._dice = world.streams.stream("sky")

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        if not isinstance(message, Beacon | Data):
            self.cables.broadcast(sender, message)
            return
        sent = adhoc.encode(message)
        self.aired.append((sender, message, len(sent)))
        if self.radio is not None:
            self.radio.broadcast(sender, adhoc.decode(sent))
            return
        for there in sorted(self.ears.get(sender, ())):
            if self._dice.random() >= self.loss:
                self.world.engine.after(FRAME_S, partial(self._arrive, sender, there, sent))

    def _arrive(self, sender: NodeId, to: NodeId, sent: bytes) -> None:
        if to in self.ears.get(sender, ()):
            self.world.deliver(sender, to, adhoc.decode(sent))

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        self.cables.send(sender, to, frames.decode(frames.encode(message)))

    def silence(self, name: NodeId, /) -> None:
        self.cables.silence(name)
        if self.radio is not None:
            self.radio.silence(name)


class Spot:
    """One node; in the place of a `Site` for listeners."""

    def __init__(self, node: Node, sky: Sky) -> None:
        self.node = node
        store = MemoryStore(node.disk.setdefault("disk", {}), lambda call: node.after(0.001, call))
        in_tree, in_air = node.name in sky.tree, node.name in sky.air
        clock = partial(sky.clock, node.name)
        tree = TreeFabric(node, store, TREE) if in_tree else None
        self.air = AdhocFabric(node, store, sky.options, clock) if in_air else None
        self.fabric: Fabric
        if tree is not None and self.air is not None:
            self.fabric = Bridge(tree, self.air)
        elif tree is not None:
            self.fabric = tree
        else:
            assert self.air is not None
            self.fabric = Streamless(self.air)
        self.broker = Broker(node, store, self.fabric, clock)
        if tree is not None and not tree.brokers:
            self.fabric.want(())

    @property
    def up(self) -> bool:
        return self.node.core is self

    @property
    def lives(self) -> int:
        return self.node.life

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.fabric.receive(sender, message)


class Sky:
    """`air` and `tree` name the nodes of each; those of both are bridges. In the tree all are linked with all. The
    calendars of some are wrong by `offsets_s`."""

    def __init__(
        self,
        air: Iterable[NodeId],
        tree: Iterable[NodeId] = (),
        *,
        seed: int = 1,
        options: Options = FIELD,
        radio: MakeRadio | None = None,
        move: Callable[[NodeId], Model] | None = None,
        offsets_s: Mapping[NodeId, float] | None = None,
    ) -> None:
        self.offsets_s = offsets_s or {}
        self.air, self.tree = list(air), list(tree)
        self.options = options
        self.world = World(seed, lambda world: cast(Any, Both(world, radio)))
        self.clients: dict[str, Client] = {}
        for name in sorted({*self.air, *self.tree}):
            if self.medium.radio is not None and move is not None:
                self.medium.radio.place(name, move(name))
            self.world.add(name, lambda node: Spot(node, self))
        for a in self.tree:
            for b in self.tree:
                if a < b:
                    self.medium.cables.connect(a, b)
                    self.tell(a, b)

    @property
    def medium(self) -> Both:
        return cast(Both, self.world.medium)

    @property
    def engine(self) -> Any:
        return self.world.engine

    @property
    def sites(self) -> dict[NodeId, Spot]:
        return {name: self[name] for name in self.world.nodes}

    def __getitem__(self, name: NodeId) -> Spot:
        core = self.world.nodes[name].core
        assert isinstance(core, Spot)
        return core

    def clock(self, of: NodeId = "") -> float:
        return brokers.EPOCH_S + self.world.engine.now + self.offsets_s.get(of, 0.0)

    def tell(self, a: NodeId, b: NodeId) -> None:
        up = self.medium.cables.links[a][b].up
        for here, there in ((a, b), (b, a)):
            (self[here].fabric.linked if up else self[here].fabric.unlinked)(there)

    def join(self, *line: NodeId) -> None:
        """Each hears the next, and the other way round."""
        for a, b in pairwise(line):
            self.medium.ears.setdefault(a, set()).add(b)
            self.medium.ears.setdefault(b, set()).add(a)

    def part(self, a: NodeId, b: NodeId) -> None:
        self.medium.ears[a].discard(b)
        self.medium.ears[b].discard(a)

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def client(self, name: str, at: NodeId, topics: str = "", condition: str = "", **more: Any) -> Client:
        """A client that is in, and has subscribed."""
        client = self.clients[name] = Client(cast(brokers.World, self), name)
        client.connect(at, **more)
        self.run(0.01)
        if topics:
            client.subscribe(topics, condition)
        return client

    def sent(self, kind: type[Message] = Data) -> int:
        return sum(isinstance(message, kind) for _, message, _ in self.medium.aired)

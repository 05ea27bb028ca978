"""Brokers with tree fabrics in a simulated world: cables that tell when they break, a log outside, and a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import count

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.broker.fabric.base import Fabric
from godwit.protocols.broker.fabric.tree import TreeFabric, TreeOptions
from godwit.protocols.broker.messages import Content, Place, Repeated
from godwit.protocols.broker.store import MemoryStore
from godwit.protocols.broker.streams.frames import Parcels, decode, decode_items, encode
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.world import OPTIONS
from godwit.sim.fabrics.channel import DISK_S, Log, note, on_disk
from godwit.sim.faults import Faults
from godwit.sim.recorder import Trace
from godwit.sim.wired import Link, Wired
from godwit.sim.world import Node, World


def topic(name: str) -> Filter:
    return filter_of(attribute("topic", equ(name)))


class Cables(Wired):
    """Links that carry bytes, and remember how often each content crossed them."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.crossed: Counter[tuple[NodeId, NodeId, NodeId, int]] = Counter()

    def _carry(self, link: Link, sender: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Parcels):
            for run in message.runs:
                self.crossed.update((sender, to, message.origin, item.number) for item in decode_items(run))
        super()._carry(link, sender, to, decode(encode(message)))


class FabricSite:
    """A broker that wants a topic, and does nothing but note, durably beside the mark, what it was given."""

    def __init__(self, node: Node, web: Web) -> None:
        self.node = node
        self.web = web
        self.store = MemoryStore(node.disk.setdefault("disk", {}), lambda call: node.after(DISK_S / 2, call))
        self.fabric = TreeFabric(node, self.store, web.options)
        self.fabric.on_content = self._on_content
        self.fabric.on_change = self._on_change
        self.changes = 0
        fabric: Fabric = self.fabric
        fabric.want(web.wanted.get(node.name, ()))

    def _on_change(self) -> None:
        self.changes += 1

    def _on_content(self, origin: NodeId, number: int, content: Content | Repeated) -> None:
        assert isinstance(content, Place)
        note(self.store, origin, content.epoch)
        self.web.log.given[self.node.name, origin].append(content.epoch)
        self.fabric.taken(origin, number)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.fabric.receive(sender, message)


class Web:
    """`edges` are cables; both ends of one are told when it breaks or is mended, unless it breaks `silently`."""

    def __init__(
        self, edges: Iterable[tuple[NodeId, NodeId]], *, seed: int = 0, options: TreeOptions = OPTIONS
    ) -> None:
        self.options = options
        self.trace = Trace()
        self.world = World(seed, Cables, self.trace)
        self.faults = Faults(self.world)
        self.log = Log()
        self.wanted: dict[NodeId, tuple[Filter, ...]] = {}
        self.edges = [(a, b) if a < b else (b, a) for a, b in edges]
        self.marks = count(1).__next__
        for name in sorted({name for edge in self.edges for name in edge}):
            self.wanted[name] = (topic(name),)
            self.world.add(name, lambda node: FabricSite(node, self))
        for a, b in self.edges:
            self.cables.connect(a, b)
            self._tell(a, b)

    @property
    def cables(self) -> Cables:
        assert isinstance(self.world.medium, Cables)
        return self.world.medium

    @property
    def names(self) -> list[NodeId]:
        return list(self.world.nodes)

    @property
    def alive(self) -> list[NodeId]:
        return [name for name, node in self.world.nodes.items() if node.alive]

    def site(self, name: NodeId) -> FabricSite:
        core = self.world.nodes[name].core
        assert isinstance(core, FabricSite)
        return core

    def fabric(self, name: NodeId) -> TreeFabric:
        return self.site(name).fabric

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def send(self, sender: NodeId, to: Iterable[NodeId], *, durable: bool = True) -> int:
        site, names, mark = self.site(sender), list(to), self.marks()
        site.fabric.send(names, Place("x", mark, durable), durable=durable)
        for name in names:
            self.log.sent[name, sender].append((mark, durable))
        if durable:
            site.store.settled(partial(self.log.safe[sender].add, mark))
        return mark

    def want(self, name: NodeId, *topics: str) -> int:
        self.wanted[name] = tuple(map(topic, topics))
        return self.fabric(name).want(self.wanted[name])

    def given(self, to: NodeId, origin: NodeId) -> list[int]:
        return self.log.given[to, origin]

    def is_up(self, a: NodeId, b: NodeId) -> bool:
        return self.cables.links[a][b].up and self.world.nodes[a].alive and self.world.nodes[b].alive

    def cut(self, a: NodeId, b: NodeId, *, silently: bool = False) -> None:
        self.cables.cut(a, b)
        if not silently:
            self._tell(a, b)

    def heal(self, a: NodeId, b: NodeId) -> None:
        if not self.cables.links[a][b].up:
            self.cables.heal(a, b)
            self._tell(a, b)

    def crash(self, name: NodeId) -> None:
        self.faults.crash(name)
        for other in self.cables.links[name]:
            self._tell(name, other)

    def restart(self, name: NodeId, *, keep_disk: bool = True) -> None:
        if self.world.nodes[name].alive:
            self.crash(name)
        self.faults.restart(name, keep_disk=keep_disk)
        for other in self.cables.links[name]:
            self._tell(name, other)

    def _tell(self, *ends: NodeId) -> None:
        for here, there in (ends, ends[::-1]):
            core = self.world.nodes[here].core
            if isinstance(core, FabricSite):
                (core.fabric.linked if self.is_up(here, there) else core.fabric.unlinked)(there)

    def calm(self) -> None:
        """All faults end."""
        for a, b in self.edges:
            self.faults.lose(a, b)
        for name in self.names:
            if not self.world.nodes[name].alive:
                self.restart(name)
        for a, b in self.edges:
            if not self.cables.links[a][b].up:
                self.heal(a, b)

    def disagreements(self) -> list[tuple[NodeId, NodeId]]:
        """Who believes of whom something else than that said last."""
        return [
            (here, there)
            for here in self.names
            for there in self.names
            if here != there and self.fabric(here).interests.get(there) != self.wanted[there]
        ]

    def unconfirmed(self) -> dict[NodeId, dict[NodeId, int]]:
        return {name: kept for name in self.names if (kept := self.fabric(name).unconfirmed)}

    def misdelivered(self) -> list[str]:
        """Everything that a durable content, or one that is none, must not do; as long as disks survive."""
        return [
            finding
            for to in self.names
            for origin in self.names
            if to != origin
            for finding in self._misdelivered(to, origin)
        ]

    def _misdelivered(self, to: NodeId, origin: NodeId) -> list[str]:
        sent = self.log.sent[to, origin]
        durable = {mark for mark, durable in sent if durable}
        came = [mark for mark in on_disk(self.world.nodes[to], origin) if mark in durable]
        findings = []
        if came != (safe := [mark for mark in sorted(durable) if mark in self.log.safe[origin]]):
            findings.append(f"{origin} to {to}: lost {sorted(set(safe) - set(came))}, too much {set(came) - set(safe)}")
        volatile = [mark for mark in self.given(to, origin) if mark not in durable]
        if volatile != sorted(set(volatile)):
            findings.append(f"{origin} to {to}: twice or out of order {volatile}")
        return findings

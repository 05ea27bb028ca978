"""Links between pairs of nodes: in order, with latency and bandwidth, until they break and lose what was in flight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from godwit.protocols.host import Message, NodeId
from godwit.sim.world import Traffic, World

Latency = float | Callable[[Random], float]


@dataclass(slots=True)
class Link:
    """One direction of a link. A cut starts a new life: what was sent in an older one never arrives."""

    latency_s: Latency
    bytes_per_s: float | None
    dice: Random
    loss: float = 0.0
    duplication: float = 0.0
    up: bool = True
    life: int = 0
    free_at_s: float = 0.0
    last_arrival_s: float = 0.0

    def arrival_s(self, now_s: float, message: Message) -> float:
        """When a message sent now arrives: behind all that is before it, however the latency is drawn."""
        start = max(now_s, self.free_at_s)
        self.free_at_s = start + (message.size_b / self.bytes_per_s if self.bytes_per_s else 0.0)
        latency = self.latency_s(self.dice) if callable(self.latency_s) else self.latency_s
        self.last_arrival_s = max(self.last_arrival_s, self.free_at_s + latency)
        return self.last_arrival_s

    def lose_all(self) -> None:
        """Forget what is in flight; whoever sends next does not wait behind it."""
        self.life += 1
        self.free_at_s = self.last_arrival_s = 0.0


class Wired(Traffic):
    """A graph of links. `broadcast` reaches every neighbor over its link, and counts as a message on each."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.links: dict[NodeId, dict[NodeId, Link]] = {}

    def connect(self, a: NodeId, b: NodeId, latency_s: Latency = 0.001, bytes_per_s: float | None = None) -> None:
        for here, there in ((a, b), (b, a)):
            dice = self.world.streams.stream("link", here, there)
            self.links.setdefault(here, {})[there] = Link(latency_s, bytes_per_s, dice)

    def cut(self, a: NodeId, b: NodeId) -> None:
        """Both directions break; what is in flight is lost."""
        for here, there in ((a, b), (b, a)):
            link = self.links[here][there]
            link.up = False
            link.lose_all()

    def heal(self, a: NodeId, b: NodeId) -> None:
        for here, there in ((a, b), (b, a)):
            self.links[here][there].up = True

    def silence(self, name: NodeId, /) -> None:
        """A crash ends every conversation, so that nobody's old words reach the node's next life."""
        for there, link in self.links.get(name, {}).items():
            link.lose_all()
            self.links[there][name].lose_all()

    def neighbors(self, name: NodeId) -> list[NodeId]:
        return [there for there, link in self.links.get(name, {}).items() if link.up]

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        link = self.links.get(sender, {}).get(to)
        if link is None or not link.up:
            return
        self.count(sender, message)
        if link.loss and link.dice.random() < link.loss:
            return
        self._carry(link, sender, to, message)
        if link.duplication and link.dice.random() < link.duplication:
            self._carry(link, sender, to, message)

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        for there in self.neighbors(sender):
            self.send(sender, there, message)

    def _carry(self, link: Link, sender: NodeId, to: NodeId, message: Message) -> None:
        life = link.life

        def arrive() -> None:
            if link.life == life:
                self.received += 1
                self.world.deliver(sender, to, message)

        self.world.engine.at(link.arrival_s(self.world.engine.now, message), arrive)

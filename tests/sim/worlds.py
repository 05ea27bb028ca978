"""Cores and worlds that the simulator's tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from godwit.protocols.host import Host, Message, NodeId
from godwit.sim.mobility import Still
from godwit.sim.radio import Disc, Profile, Radio
from godwit.sim.wired import Wired
from godwit.sim.world import Medium, Node, World


class Word(Message, frozen=True):
    """A message of a chosen length on the air."""

    number: int = 0
    length_b: int = 10

    @property
    def size_b(self) -> int:
        return self.length_b


class Listener:
    """Writes down what it hears and when, by the world's clock."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.heard: list[tuple[float, NodeId, int]] = []

    def receive(self, sender: NodeId, message: Message, /) -> None:
        assert isinstance(message, Word)
        self.heard.append((self.node.world.engine.now, sender, message.number))

    @property
    def numbers(self) -> list[int]:
        return [number for _, _, number in self.heard]


class Beacon:
    """Says a word once a second, from a phase of its own."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.heard = 0
        host.after(host.random.random(), self._beat)

    def _beat(self) -> None:
        self.host.broadcast(Word())
        self.host.after(1.0, self._beat)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.heard += 1


def listening(medium: Callable[[World], Medium], names: str, seed: int = 1) -> tuple[World, dict[NodeId, Listener]]:
    """A world of listeners, one for each letter."""
    world = World(seed, medium)
    listeners: dict[NodeId, Listener] = {}
    for name in names:

        def start(node: Node) -> Listener:
            listeners[node.name] = Listener(node)
            return listeners[node.name]

        world.add(name, start)
    return world, listeners


def wired(names: str, seed: int = 1) -> tuple[World, Wired, dict[NodeId, Listener]]:
    world, listeners = listening(Wired, names, seed)
    assert isinstance(world.medium, Wired)
    return world, world.medium, listeners


def on_air(
    profile: Profile, places: Mapping[NodeId, tuple[float, float]], seed: int = 1
) -> tuple[World, Radio, dict[NodeId, Listener]]:
    world, listeners = listening(lambda world: Radio(world, profile), "".join(places), seed)
    assert isinstance(world.medium, Radio)
    for name, (x, y) in places.items():
        world.medium.place(name, Still(x, y))
    return world, world.medium, listeners


def on_disc(range_m: float, places: Mapping[NodeId, tuple[float, float]]) -> tuple[World, Disc, dict[NodeId, Listener]]:
    world, listeners = listening(lambda world: Disc(world, range_m=range_m), "".join(places))
    assert isinstance(world.medium, Disc)
    for name, (x, y) in places.items():
        world.medium.place(name, Still(x, y))
    return world, world.medium, listeners

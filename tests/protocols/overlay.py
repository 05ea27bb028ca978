"""Brokers on a tree that the test moves by hand, and a log of every message between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.host import Core, Host, Message, NodeId
from godwit.protocols.routing.messages import Pub, Rep, Sub
from godwit.protocols.topology.tree import StaticTree, Tree
from godwit.sim.wired import Wired
from godwit.sim.world import World

Broker = Callable[[Host, Tree], Core]


def topic(name: str) -> Filter:
    return filter_of(attribute("topic", equ(name)))


class Client:
    """Keeps what it gets."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.got: list[Event] = []
        self.messages: list[Message] = []

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.messages.append(message)
        match message:
            case Pub(event):
                self.got.append(event)
            case Rep(events):
                self.got.extend(events)


class Logged(Wired):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log: list[tuple[NodeId, NodeId, Message]] = []

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        if to not in self.links.get(sender, {}):
            self.connect(sender, to)
        if self.links[sender][to].up:
            self.log.append((sender, to, message))
        super().send(sender, to, message)


class Overlay:
    """`edges` are (parent, child); every client is a node of its own, linked to whoever it speaks to."""

    def __init__(self, broker: Broker, edges: Iterable[tuple[NodeId, NodeId]], seed: int = 0) -> None:
        self.world = World(seed, Logged)
        assert isinstance(self.world.medium, Logged)
        self.medium = self.world.medium
        self.trees: dict[NodeId, StaticTree] = {}
        self._broker = broker
        for parent, child in edges:
            for name in (parent, child):
                if name not in self.trees:
                    self.add(name)
            self.medium.connect(parent, child)
            self.trees[parent].neighbours.add(child)
            self.trees[child].neighbours.add(parent)
            self.trees[child].parent = self.trees[child].last_parent = parent

    def add(self, name: NodeId) -> None:
        self.trees[name] = StaticTree()
        self.world.add(name, lambda host: self._broker(host, self.trees[name]))

    def broker(self, name: NodeId) -> Core:
        core = self.world.nodes[name].core
        assert core is not None
        return core

    def client(self, name: NodeId) -> Client:
        if name not in self.world.nodes:
            self.world.add(name, Client)
        core = self.world.nodes[name].core
        assert isinstance(core, Client)
        return core

    def say(self, client: NodeId, broker: NodeId, *messages: Message) -> None:
        self.client(client)
        for message in messages:
            self.world.nodes[client].send(broker, message)

    def subscribe(self, client: NodeId, broker: NodeId, *topics: str, t: int = 0) -> None:
        self.say(client, broker, *(Sub(topic(name), client, t + i if t else 0) for i, name in enumerate(topics)))

    def cut(self, a: NodeId, b: NodeId) -> None:
        """The link breaks and both ends have noticed."""
        self.medium.cut(a, b)
        self.trees[a].drop(b)
        self.trees[b].drop(a)

    def move(self, child: NodeId, parent: NodeId) -> None:
        """The child takes a new parent and migrates there; its old parent forgets it."""
        old = self.trees[child].parent
        if old is not None and old != parent:
            self.trees[old].drop(child)
        self.medium.connect(child, parent)
        self.trees[child].move(parent)

    def settle(self) -> list[tuple[NodeId, NodeId, Message]]:
        """Run until nothing is on its way; returns the messages between brokers since the last time."""
        self.world.run()
        log = [entry for entry in self.medium.log if entry[0] in self.trees and entry[1] in self.trees]
        self.medium.log.clear()
        return log

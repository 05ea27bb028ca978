"""What a migration costs in messages between brokers: the two worked examples (spec mft-pubsub 2.9), run live."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from godwit.filters.filters import attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.host import Core, Host, Message, NodeId
from godwit.protocols.routing.messages import Sub
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.recursive import RecursiveBroker
from godwit.protocols.routing.rules import THESIS
from godwit.protocols.topology.tree import StaticTree, Tree
from godwit.sim.wired import Wired
from godwit.sim.world import World

EDGES = (("b1", "b2"), ("b1", "b3"), ("b2", "b4"), ("b2", "b5"), ("b3", "b6"), ("b3", "b7"))

MakeBroker = Callable[[Host, Tree], Core]


class Links(Wired):
    """Everybody can reach everybody until a link is cut; messages between brokers are counted."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.between_brokers = 0

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        if to not in self.links.get(sender, {}):
            self.connect(sender, to)
        self.between_brokers += sender.startswith("b") and to.startswith("b") and self.links[sender][to].up
        super().send(sender, to, message)


class Deaf:
    """A client that is only there to have subscribed."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def receive(self, sender: NodeId, message: Message, /) -> None:
        pass


class Example:
    """Seven brokers with one subscriber each, and everything settled."""

    def __init__(self, make: MakeBroker, *, numbered: bool) -> None:
        self.world = World(0, Links)
        self.trees = {f"b{i}": StaticTree() for i in range(1, 8)}
        for name, tree in self.trees.items():
            self.world.add(name, partial(make, tree=tree))  # type: ignore[call-arg]
        for parent, child in EDGES:
            self.trees[parent].neighbors.add(child)
            self.trees[child].neighbors.add(parent)
            self.trees[child].parent = self.trees[child].last_parent = parent
        for i in range(1, 8):
            client = self.world.add(f"s{i}", Deaf)
            client.send(f"b{i}", Sub(filter_of(attribute("topic", equ(i))), f"s{i}", int(numbered)))
        self.settle()

    @property
    def links(self) -> Links:
        assert isinstance(self.world.medium, Links)
        return self.world.medium

    def settle(self) -> int:
        """Let everything arrive; returns the messages between brokers since the last time."""
        self.world.run()
        counted, self.links.between_brokers = self.links.between_brokers, 0
        return counted

    def cut(self, parent: NodeId, child: NodeId) -> None:
        """Both ends notice."""
        self.links.cut(parent, child)
        self.trees[parent].drop(child)
        self.trees[child].drop(parent)


def first_approach() -> Example:
    return Example(lambda host, tree: RecursiveBroker(host, tree, THESIS), numbered=False)


def mft() -> Example:
    return Example(lambda host, tree: MftBroker(host, tree, THESIS), numbered=True)


def simple_migration(example: Example) -> int:
    """Example A: b3 loses b1 and joins b2."""
    example.cut("b1", "b3")
    example.trees["b3"].move("b2")
    return example.settle()


def double_migration(example: Example) -> int:
    """Example B: b3 loses b1; b6 loses b3 and joins b5; then b3 joins b2."""
    example.cut("b1", "b3")
    example.cut("b3", "b6")
    example.trees["b6"].move("b5")
    first = example.settle()
    example.trees["b3"].move("b2")
    return first + example.settle()

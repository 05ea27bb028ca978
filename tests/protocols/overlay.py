"""Brokers on a tree that the test moves by hand, and a log of every message between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.host import Core, Host, Message, NodeId
from godwit.protocols.routing.clients import ClientOptions, Subscriber
from godwit.protocols.routing.courier import Numbered
from godwit.protocols.routing.messages import Ack, Pub, Rep, Sub
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.recursive import RecursiveBroker
from godwit.protocols.routing.router import Router
from godwit.protocols.routing.rules import Rules
from godwit.protocols.topology.election import Heartbeat
from godwit.protocols.topology.tree import StaticTree, Tree
from godwit.sim.recorder import Trace
from godwit.sim.wired import Wired
from godwit.sim.world import World

Broker = Callable[[Host, Tree], Core]
Hop = tuple[NodeId, NodeId, Message]

FOR_EVER = ClientOptions(timeout_s=1e9)
"""Clients go where the test puts them and stay there."""


def topic(name: str) -> Filter:
    return filter_of(attribute("topic", equ(name)))


def event(name: str, sequence: int = 1, publisher: str = "p1") -> Event:
    return Event(publisher, sequence, attributes={"topic": name})


def chain(*names: NodeId) -> list[tuple[NodeId, NodeId]]:
    return list(pairwise(names))


def mft(rules: Rules, *, acknowledge: bool = False) -> Broker:
    return partial(MftBroker, rules=rules, acknowledge=acknowledge)


def recursive(rules: Rules, *, acknowledge: bool = False) -> Broker:
    return partial(RecursiveBroker, rules=rules, acknowledge=acknowledge)


class Client:
    """Keeps what it gets and answers nothing."""

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
    """Anybody can speak to anybody, unless the test has cut the link. The log has no acknowledgements."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log: list[Hop] = []

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        if to not in self.links.get(sender, {}):
            self.connect(sender, to)
        if self.links[sender][to].up and not isinstance(message, Ack):
            parts = message.parts if isinstance(message, Numbered) else (message,)
            self.log.extend((sender, to, part) for part in parts)
        super().send(sender, to, message)


class Overlay:
    """`edges` are (parent, child); every client is a node of its own, linked to whoever it speaks to."""

    def __init__(
        self,
        broker: Broker,
        edges: Iterable[tuple[NodeId, NodeId]],
        *,
        clients: ClientOptions = FOR_EVER,
        seed: int = 0,
    ) -> None:
        self.clients = clients
        self.trace = Trace()
        self.world = World(seed, Logged, self.trace)
        assert isinstance(self.world.medium, Logged)
        self.medium = self.world.medium
        self.trees: dict[NodeId, StaticTree] = {}
        self.at: dict[NodeId, NodeId] = {}
        self._broker = broker
        self._round = 0
        for parent, child in edges:
            self.grow(parent, child)

    def grow(self, parent: NodeId, child: NodeId) -> None:
        """A link that both ends have always had."""
        for name in (parent, child):
            if name not in self.trees:
                self.add(name)
        self.medium.connect(parent, child)
        self.trees[parent].neighbors.add(child)
        self.trees[child].neighbors.add(parent)
        self.trees[child].parent = self.trees[child].last_parent = parent

    def add(self, name: NodeId) -> None:
        self.trees[name] = StaticTree()
        self.world.add(name, lambda host: self._broker(host, self.trees[name]))

    def broker(self, name: NodeId) -> Core:
        core = self.world.nodes[name].core
        assert core is not None
        return core

    def router(self, name: NodeId) -> Router:
        core = self.broker(name)
        assert isinstance(core, Router)
        return core

    def mft(self, name: NodeId) -> MftBroker:
        core = self.broker(name)
        assert isinstance(core, MftBroker)
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

    def say_as(self, name: NodeId, broker: NodeId, message: Message) -> None:
        """Put words into the mouth of a real subscriber."""
        self.world.nodes[name].send(broker, message)

    def subscribe(self, client: NodeId, broker: NodeId, *topics: str, t: int = 0) -> None:
        self.say(client, broker, *(Sub(topic(name), client, t + i if t else 0) for i, name in enumerate(topics)))

    def publish(self, broker: NodeId, *events: Event) -> None:
        self.say("p1", broker, *(Pub(event, 1) for event in events))

    def subscriber(self, name: NodeId, *topics: str) -> Subscriber:
        """A real subscriber, which answers as one; `attach` puts it somewhere."""
        if name not in self.world.nodes:
            wanted = [topic(t) for t in topics]
            self.world.add(name, lambda host: Subscriber(host, wanted, self.clients, disk=host.disk))
        core = self.world.nodes[name].core
        assert isinstance(core, Subscriber)
        return core

    def attach(self, name: NodeId, broker: NodeId) -> None:
        """The subscriber hears a new round first through this broker."""
        self._round += 1
        self.at[name] = broker
        self.subscriber(name).receive(broker, Heartbeat("b", 0, self._round, 0))

    def place(self, name: NodeId, broker: NodeId, *topics: str) -> Subscriber:
        """A real subscriber at this broker, known everywhere."""
        subscriber = self.subscriber(name, *topics)
        self.attach(name, broker)
        self.settle()
        return subscriber

    def got(self, name: NodeId) -> list[tuple[str, int]]:
        return [(str(row[3]), int(row[4] or 0)) for row in self.trace.of("delivered") if row[1] == name]

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

    def settle(self, for_s: float = 10.0) -> list[Hop]:
        """Run until everything has arrived; returns the messages between brokers since the last time."""
        self.world.run(self.world.engine.now + for_s)
        log = [entry for entry in self.medium.log if entry[0] in self.trees and entry[1] in self.trees]
        self.medium.log.clear()
        return log

    def astray(self, client: NodeId) -> set[NodeId]:
        """The brokers from which the next hops do not lead to the client where it is now."""
        return {name for name in self.trees if not self._leads(name, client)}

    def _leads(self, broker: NodeId, client: NodeId) -> bool:
        for _ in self.trees:
            hop = self.router(broker).routes.hop(client)
            if hop == client:
                return broker == self.at[client]
            if hop is None or hop not in self.trees[broker].neighbors:
                return False
            broker = hop
        return False

    def believed(self, client: NodeId) -> set[frozenset[Filter]]:
        """What the brokers think that the client wants: one set where they agree."""
        return {frozenset(self.router(name).routes.filters(client)) for name in self.trees}

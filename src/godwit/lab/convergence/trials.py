"""Do the tables converge? Random moves, splits and merges on small trees, then property P19 (spec mft-pubsub 2.12).

P19: when everything has stopped and all partitions are one, the next hops lead from every broker to every subscriber,
and every broker knows exactly the filters that the subscriber wants. A trial is decided by its seed. *Settled* trials
let all messages arrive after each change; *concurrent* ones deliver up to five, and lose what is on a link that is cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import TypeVar

from msgspec import structs

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.host import Core, Message, NodeId, Record
from godwit.protocols.routing.messages import Bquery, Bsub, Filters, Mig, Sub, Uns
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.recursive import RecursiveBroker
from godwit.protocols.routing.router import Router
from godwit.protocols.routing.rules import HARDENED, LITERAL, THESIS, Rules
from godwit.protocols.topology.tree import StaticTree
from godwit.sim.engine import Timer

BROKERS, SUBSCRIBERS, OPERATIONS = 8, 5, 12

Item = TypeVar("Item")
MakeRouter = Callable[["Node", StaticTree], Router]


@dataclass(frozen=True)
class Protocol:
    name: str
    make: MakeRouter
    numbered: bool


def mft(name: str, rules: Rules) -> Protocol:
    return Protocol(name, lambda host, tree: MftBroker(host, tree, rules), True)


NINE = structs.replace(HARDENED, doubts=False, newer_only=False)

PROTOCOLS = [
    Protocol("first approach", lambda host, tree: RecursiveBroker(host, tree, THESIS), False),
    mft("MFT as published", THESIS),
    mft("MFT, lists as printed", LITERAL),
    mft("MFT hardened, H1-H9", NINE),
    mft("MFT hardened, with H10", HARDENED),
]


@dataclass(frozen=True)
class Mix:
    """Which changes may happen, by their share."""

    name: str
    operations: tuple[str, ...]


MIXES = [
    Mix("broker moves", ("move",)),
    Mix("broker and client moves", ("move", "roam")),
    Mix("splits and merges", ("move", "split", "merge")),
    Mix("splits, merges, client moves", ("move", "split", "merge", "roam")),
    Mix("everything", ("move", "split", "merge", "roam", "subscribe", "unsubscribe")),
]


class Node:
    """A host without time: nothing here depends on when a message arrives, only on the order."""

    def __init__(self, model: Model, name: NodeId) -> None:
        self.model = model
        self.name = name
        self.random = Random(0)

    def now(self) -> float:
        return 0.0

    def send(self, to: NodeId, message: Message) -> None:
        self.model.send(self.name, to, message)

    def broadcast(self, message: Message) -> None:
        raise AssertionError("there is no radio here")

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        return Timer(call)

    def trace(self, record: Record) -> None:
        pass


@dataclass
class Client:
    """A subscriber that the trial moves by hand, and that repairs a stale view of itself when told of one."""

    node: Node
    broker: NodeId
    numbered: bool
    wanted: dict[Filter, None] = field(default_factory=dict)
    t: int = 0

    def say(self, make: Callable[[int], Message]) -> None:
        self.t += 1
        self.node.send(self.broker, make(self.t if self.numbered else 0))

    def subscribe(self, wanted: Filter) -> None:
        self.wanted[wanted] = None
        self.say(lambda t: Sub(wanted, self.node.name, t))

    def unsubscribe(self, wanted: Filter) -> None:
        self.wanted.pop(wanted)
        self.say(lambda t: Uns(wanted, self.node.name, t))

    def attach(self, broker: NodeId) -> None:
        previous, self.broker = self.broker, broker
        self.say(lambda t: Mig(self.node.name, previous, t))

    def refresh(self) -> None:
        self.say(lambda t: Bsub(self.node.name, tuple(self.wanted), t, 0))

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if isinstance(message, Bquery) and sender == self.broker:
            self.refresh()
        if isinstance(message, Filters) and sender == self.broker:
            for wanted in self.wanted:
                if wanted not in message.filters:
                    self.say(lambda t, f=wanted: Sub(f, self.node.name, t))  # type: ignore[misc]
            for wanted in message.filters:
                if wanted not in self.wanted:
                    self.say(lambda t, f=wanted: Uns(f, self.node.name, t))  # type: ignore[misc]


class Model:
    """Brokers on a forest, subscribers at brokers, a FIFO queue for each pair that speaks."""

    def __init__(self, protocol: Protocol, seed: int) -> None:
        self.dice = Random(seed)
        self.queues: dict[tuple[NodeId, NodeId], deque[Message]] = {}
        self.cores: dict[NodeId, Core] = {}
        self.trees: dict[NodeId, StaticTree] = {}
        self.routers: dict[NodeId, Router] = {}
        self.clients: dict[NodeId, Client] = {}
        for i in range(BROKERS):
            self._add_broker(protocol, f"b{i}", f"b{self.dice.randrange(i)}" if i else None)
        for i in range(SUBSCRIBERS):
            name = f"s{i}"
            client = Client(Node(self, name), self._any(self.trees), protocol.numbered)
            self.clients[name] = self.cores[name] = client
            client.subscribe(topic(i))
        self.settle()

    def _add_broker(self, protocol: Protocol, name: NodeId, parent: NodeId | None) -> None:
        tree = self.trees[name] = StaticTree([parent] if parent else [], parent)
        tree.last_parent = parent
        if parent:
            self.trees[parent].neighbors.add(name)
        router = self.routers[name] = protocol.make(Node(self, name), tree)
        self.cores[name] = router

    def send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        self.queues.setdefault((sender, to), deque()).append(message)

    def deliver_one(self) -> bool:
        """Let the oldest message of some link arrive; links take turns at random."""
        waiting = [pair for pair, queue in self.queues.items() if queue]
        if not waiting:
            return False
        sender, to = self._any(waiting)
        self.cores[to].receive(sender, self.queues[sender, to].popleft())
        return True

    def settle(self, at_most: int = 20_000) -> bool:
        """Deliver everything; False where the protocol does not come to rest."""
        return any(not self.deliver_one() for _ in range(at_most))

    def root(self, broker: NodeId) -> NodeId:
        while (parent := self.trees[broker].parent) is not None:
            broker = parent
        return broker

    def partitions(self) -> dict[NodeId, list[NodeId]]:
        found: dict[NodeId, list[NodeId]] = {}
        for broker in self.trees:
            found.setdefault(self.root(broker), []).append(broker)
        return found

    def change(self, operation: str) -> None:
        getattr(self, f"_{operation}")()

    def _any(self, some: Iterable[Item]) -> Item:
        return self.dice.choice(list(some))

    def _cut(self, child: NodeId) -> None:
        """The link to the parent breaks; both ends notice, what was on it is lost."""
        parent = self.trees[child].parent
        assert parent is not None
        lost = {end: self.queues.pop((end, other), deque()) for end, other in ((child, parent), (parent, child))}
        self.trees[parent].neighbors.discard(child)
        self.trees[child].drop(parent)
        for end, messages in lost.items():
            for message in messages:
                self.routers[end].undelivered(message)  # type: ignore[arg-type]

    def _move(self) -> None:
        """A broker takes its subtree to another parent of the same partition."""
        movers = [b for b in self.trees if self.trees[b].parent is not None]
        if not movers:
            return
        mover = self._any(movers)
        root = self.root(mover)
        old = self.trees[mover].parent
        self._cut(mover)
        parents = [b for b in self.trees if self.root(b) == root and b != old]
        self.trees[mover].move(self._any(parents) if parents else root)

    def _split(self) -> None:
        children = [b for b in self.trees if self.trees[b].parent is not None]
        if children:
            self._cut(self._any(children))

    def _merge(self) -> None:
        """A broker of one partition joins another partition, and the way to its old leader turns round behind it."""
        partitions = self.partitions()
        if len(partitions) < 2:
            return
        winner, loser = self.dice.sample(sorted(partitions), 2)
        joiner, outside = self._any(partitions[loser]), self._any(partitions[winner])
        way = [joiner]
        while (parent := self.trees[way[-1]].parent) is not None:
            way.append(parent)
        self._reverse(way[0], outside)
        for below, above in pairwise(way):
            self._reverse(above, below)

    def _reverse(self, broker: NodeId, parent: NodeId) -> None:
        """`broker` hears the new leader first through `parent`; an old parent stays a neighbor until it turns too."""
        tree = self.trees[broker]
        before = tree.parent if tree.parent is not None else tree.last_parent
        tree.parent = parent
        tree.neighbors.add(parent)
        tree.on_migrate(before, parent)
        tree.last_parent = parent

    def _roam(self) -> None:
        client = self.clients[self._any(self.clients)]
        self.queues.pop((client.node.name, client.broker), None)
        self.queues.pop((client.broker, client.node.name), None)
        client.attach(self._any(b for b in self.trees if b != client.broker))

    def _subscribe(self) -> None:
        self.clients[self._any(self.clients)].subscribe(topic(self.dice.randrange(20)))

    def _unsubscribe(self) -> None:
        client = self.clients[self._any(self.clients)]
        if client.wanted:
            client.unsubscribe(self.dice.choice(list(client.wanted)))

    def failures(self) -> list[str]:
        """How P19 is violated, in words; empty where it holds."""
        out = []
        for name, client in self.clients.items():
            for broker, router in self.routers.items():
                if set(router.routes.filters(name)) != set(client.wanted):
                    out.append(f"{broker} has the wrong filters of {name}")
                elif client.wanted and not self._leads_to(broker, name):
                    out.append(f"the next hops from {broker} do not lead to {name}")
        return out

    def _leads_to(self, broker: NodeId, client: NodeId) -> bool:
        at: NodeId | None = broker
        for _ in range(BROKERS + 1):
            if at is None or at not in self.routers:
                break
            hop = self.routers[at].routes.hop(client)
            if hop in self.routers and hop not in self.trees[at].neighbors:
                return False
            if hop == client:
                return at == self.clients[client].broker
            at = hop
        return False


def topic(number: int) -> Filter:
    return filter_of(attribute("topic", equ(number)))


def trial(protocol: Protocol, mix: Mix, seed: int, *, settled: bool, refresh: bool = False) -> list[str]:
    """One random history, merged into one partition at the end; returns how P19 fails, if it does."""
    model = Model(protocol, seed)
    for _ in range(OPERATIONS):
        model.change(model.dice.choice(mix.operations))
        if settled:
            model.settle()
        else:
            for _ in range(model.dice.randrange(6)):
                model.deliver_one()
    while len(model.partitions()) > 1:
        model.change("merge")
        if settled:
            model.settle()
    for _ in range(3):
        if not model.settle():
            return ["messages never stop"]
        for router in model.routers.values():
            router.look_round()
    model.settle()
    if refresh:
        for client in model.clients.values():
            client.refresh()
        model.settle()
    return model.failures()

"""A ring in the place of an election: routing protocols see a tree, whoever keeps it (spec data-gathering F3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pytest
from tests.protocols.overlay import Logged, event, topic

from godwit.protocols.host import Core, Host, Message, NodeId
from godwit.protocols.routing.clients import ClientOptions, Publisher, Subscriber
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.process import BrokerProcess
from godwit.protocols.routing.rules import HARDENED
from godwit.protocols.topology.pastry.keys import BITS, key_of, number_of
from godwit.protocols.topology.pastry.links import Links
from godwit.protocols.topology.pastry.messages import Destination, Hop, HopAck, KeepAlive
from godwit.protocols.topology.pastry.node import PastryNode, RingOptions
from godwit.protocols.topology.pastry.peers import Peer, preference
from godwit.protocols.topology.ring import Below, RootedTree
from godwit.protocols.topology.tree import Tree
from godwit.sim.recorder import Trace
from godwit.sim.world import World

pytestmark = pytest.mark.feature("data-gathering F3")

ROOT = key_of(0)
BROKERS = 12
CLIENTS = ClientOptions(refresh_s=10.0, acknowledge=True)
router = partial(MftBroker, rules=HARDENED, acknowledge=True)


class RingProcess:
    """As `BrokerProcess`, with a ring instead of an election."""

    def __init__(self, host: Host, number: int) -> None:
        self.links = Links(host, ack_s=0.5, tries=2)
        peer = Peer(host.name, key_of(number))
        self.ring = PastryNode(host, self.links, peer, self, RingOptions(bits=2, silence_s=3.0))
        self.tree = RootedTree(host, self.ring, ROOT)
        self.router: Core = router(host, self.tree)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if isinstance(message, HopAck):
            self.links.confirm(message)
        elif isinstance(message, Hop):
            if self.links.opened(sender, message):
                self.ring.receive(sender, message.body)
        elif isinstance(message, KeepAlive):
            self.ring.receive(sender, message)
        else:
            self.router.receive(sender, message)

    def hear(self, sender: NodeId, body: Any, /) -> None:
        assert isinstance(body, Below)
        self.tree.receive(sender, body)

    def deliver(self, destinations: Sequence[Destination], body: Any, hops: int, /) -> None: ...

    def entered(self) -> None: ...

    def met(self, peer: Peer, /) -> None: ...

    def gone(self, peer: Peer, /) -> None: ...


class Provided:
    """Brokers whose tree comes from either provider; a subscriber at each, and a publisher."""

    def __init__(self, provider: str, seed: int) -> None:
        self.trace = Trace()
        self.world = World(seed, Logged, self.trace)
        self.dice = Random(seed)
        self.names = [f"b{at}" for at in range(BROKERS)]
        self.numbers = {name: self.dice.getrandbits(BITS) for name in self.names}
        for name in self.names:
            start = self._elected if provider == "an election" else self._on_ring
            self.world.add(name, start)
        if provider == "an election":
            self._link()
        else:
            self._enter()
        self.run(15.0)
        for at, name in enumerate(self.names):
            self.world.add(f"s{at}", partial(self._subscriber, name))

    def _elected(self, host: Host) -> BrokerProcess:
        return BrokerProcess(host, router)

    def _on_ring(self, host: Host) -> RingProcess:
        return RingProcess(host, self.numbers[host.name])

    def _subscriber(self, home: NodeId, host: Host) -> Subscriber:
        return Subscriber(host, [topic("f")], CLIENTS, home=home)

    def _link(self) -> None:
        for name in self.names:
            for other in self.dice.sample([one for one in self.names if one != name], 4):
                self.world.medium.connect(name, other)  # type: ignore[attr-defined]

    def _enter(self) -> None:
        first, *others = self.names
        self.core(first).ring.begin()
        for at, name in enumerate(others):
            self.core(name).ring.enter(self.names[self.dice.randrange(at + 1)])
            self.run(1.0)

    def core(self, name: NodeId) -> Any:
        return self.world.nodes[name].core

    def tree(self, name: NodeId) -> Tree:
        core = self.core(name)
        return core.tree if isinstance(core, RingProcess) else core.election

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def publish(self, home: NodeId, sequence: int) -> None:
        name = f"p{sequence}"
        self.world.add(name, lambda host: Publisher(host, CLIENTS, home=home))
        self.run(1.0)
        self.core(name).publish(event("f", sequence, name))
        self.run(20.0)

    def got(self, sequence: int) -> list[NodeId]:
        return sorted(str(row[1]) for row in self.trace.of("delivered") if row[4] == sequence)


@pytest.mark.parametrize("provider", ["an election", "a ring"])
def test_every_subscriber_gets_every_event_once_whoever_keeps_the_tree(provider: str) -> None:
    world = Provided(provider, seed=4)
    world.run(10.0)
    for sequence, at in enumerate((0, 5, 11), start=1):
        world.publish(world.names[at], sequence)
        assert world.got(sequence) == sorted(f"s{at}" for at in range(BROKERS))


def test_who_is_in_charge_of_the_key_leads_and_the_next_one_after_it_failed() -> None:
    world = Provided("a ring", seed=9)
    alive = list(world.names)
    for sequence in (1, 2):
        leader = min(alive, key=lambda name: preference(world.numbers[name], number_of(ROOT)))
        assert [name for name in alive if world.tree(name).parent is None] == [leader]
        above = [(name, world.tree(name).parent) for name in alive if name != leader]
        assert all(name in world.tree(parent).neighbors for name, parent in above if parent)
        world.world.nodes[leader].crash()
        alive.remove(leader)
        world.run(40.0)
        world.publish(alive[sequence], sequence)
        assert set(world.got(sequence)) >= {f"s{world.names.index(name)}" for name in alive}


def test_a_change_of_parent_is_told_once_with_the_one_before() -> None:
    world = Provided("a ring", seed=2)
    parents = {name: world.tree(name).parent for name in world.names}
    leader = next(name for name, above in parents.items() if above is None)
    lost = next(above for above in parents.values() if above not in (None, leader))
    below = [name for name, above in parents.items() if above == lost]
    moves: dict[NodeId, list[tuple[NodeId | None, NodeId]]] = {name: [] for name in below}
    for name in below:
        world.tree(name).on_migrate = lambda old, new, name=name: moves[name].append((old, new))  # type: ignore[misc]
    world.run(10.0)
    assert not any(moves.values()), "nobody has moved"
    world.world.nodes[lost].crash()
    world.run(30.0)
    assert moves == {name: [(lost, world.tree(name).parent)] for name in below}

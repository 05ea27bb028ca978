"""A Pastry node: every key has one node in charge, reached around dead nodes, by tables that mend themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.gathering.worlds import holders, install, owners, publish, touched, world

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.host import Host, Message, NodeId
from godwit.protocols.topology.pastry.keys import BITS, Key, bits_of, key_of, number_of, padded
from godwit.protocols.topology.pastry.links import Links
from godwit.protocols.topology.pastry.messages import Announce, Cast, Destination, Hop, HopAck
from godwit.protocols.topology.pastry.node import PastryNode, RingOptions
from godwit.protocols.topology.pastry.peers import Known, Peer, preference
from godwit.protocols.topology.ring import Application
from godwit.sim.ring.underlay import Underlay
from godwit.sim.world import World


class Member:
    """A node of a ring that does nothing but note what reaches it."""

    def __init__(self, host: Any, number: int, place: tuple[float, float], options: RingOptions) -> None:
        self.links = Links(host, ack_s=0.5, tries=2)
        self.node = PastryNode(host, self.links, Peer(host.name, key_of(number), place), self, options)
        self.delivered: list[tuple[str, int]] = []
        self.lost: list[NodeId] = []

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if isinstance(message, HopAck):
            self.links.confirm(message)
        elif not isinstance(message, Hop):
            self.node.receive(sender, message)
        elif self.links.opened(sender, message):
            self.node.receive(sender, message.body)

    def hear(self, sender: NodeId, body: Any, /) -> None: ...

    def deliver(self, destinations: Sequence[Destination], body: Any, hops: int, /) -> None:
        self.delivered += [(body, hops)] * len(destinations)

    def entered(self) -> None: ...

    def met(self, peer: Peer, /) -> None: ...

    def gone(self, peer: Peer, /) -> None:
        self.lost.append(peer.name)


class Circle:
    """Members with random names, each of which joined through the one before it."""

    def __init__(self, count: int, seed: int, options: RingOptions) -> None:
        self.world = World(seed, Underlay)
        assert isinstance(self.world.medium, Underlay)
        self.dice = Random(seed)
        self.members: dict[NodeId, Member] = {}
        for at in range(count):
            self._add(f"n{at}", options)
            if at:
                self.members[f"n{at}"].node.enter(self.dice.choice([f"n{other}" for other in range(at)]))
            else:
                self.members["n0"].node.begin()
            self.run_for(3.0)

    def _add(self, name: NodeId, options: RingOptions) -> None:
        place = (self.dice.uniform(0, 100), self.dice.uniform(0, 100))
        self.world.medium.places[name] = place  # type: ignore[attr-defined]
        number = self.dice.getrandbits(BITS)

        def start(host: Any) -> Member:
            self.members[name] = Member(host, number, place, options)
            return self.members[name]

        self.world.add(name, start)

    def run_for(self, seconds: float) -> None:
        self.world.run(self.world.engine.now + seconds)

    def crash(self, name: NodeId) -> None:
        self.world.nodes[name].crash()
        del self.members[name]

    def in_charge(self, key: int) -> NodeId:
        """By brute force over all that live."""
        return min(self.members, key=lambda name: preference(self.members[name].node.number, key))


@pytest.mark.feature("data-gathering F1")
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_after_joins_every_key_is_delivered_at_the_nearest_name_in_few_hops(bits: int) -> None:
    circle = Circle(40, bits, RingOptions(bits=bits))
    hops = []
    for _ in range(200):
        key = circle.dice.getrandbits(BITS)
        start = circle.members[circle.dice.choice(sorted(circle.members))]
        start.node.route(key_of(key), "x")
        circle.run_for(2.0)
        reached = [(name, member.delivered[0][1]) for name, member in circle.members.items() if member.delivered]
        assert [name for name, _ in reached] == [circle.in_charge(key)]
        hops.append(reached[0][1])
        for member in circle.members.values():
            member.delivered.clear()
    assert sum(hops) / len(hops) <= math.ceil(math.log(40, 2**bits)) + 1


@pytest.mark.feature("data-gathering F1")
def test_leaves_rows_and_neighbors_are_what_they_should_be() -> None:
    circle = Circle(24, 5, RingOptions(bits=2, leaves=8, neighbors=5))
    numbers = sorted(member.node.number for member in circle.members.values())
    for member in circle.members.values():
        node = member.node
        at = numbers.index(node.number)
        around = {numbers[(at + step) % 24] for step in range(-4, 5)} - {node.number}
        assert {known.number for known in node.leaves.members()} == around
        for known in node.table:
            row, column = node.table.position(known.number)
            assert format(known.number, "0128b")[: 2 * row] == format(node.number, "0128b")[: 2 * row]
            assert format(known.number, "0128b")[2 * row : 2 * row + 2] == format(column, "02b")
        assert len(node.neighbors.nearest(10)) == 5


@pytest.mark.feature("data-gathering F2")
@pytest.mark.parametrize("seed", range(4))
def test_messages_go_around_nodes_that_died_without_a_word(seed: int) -> None:
    circle = Circle(30, seed, RingOptions(bits=1))
    for name in circle.dice.sample(sorted(circle.members), 5):
        circle.crash(name)
    for number in range(60):
        key = circle.dice.getrandbits(BITS)
        circle.members[circle.dice.choice(sorted(circle.members))].node.route(key_of(key), f"m{number}")
        circle.run_for(30.0)
        reached = [name for name, member in circle.members.items() if (f"m{number}" in dict(member.delivered))]
        assert reached == [circle.in_charge(key)]


@pytest.mark.feature("data-gathering F2")
def test_a_hole_left_by_a_dead_node_is_mended_when_it_is_needed() -> None:
    circle = Circle(40, 3, RingOptions(bits=1))
    member = circle.members["n0"]
    first = member.node.table.get(0, 1 - (member.node.number >> 127))
    assert first is not None
    circle.crash(first.peer.name)
    far = member.node.number ^ (1 << 127)
    for number in range(6):
        member.node.route(key_of(far + number), "x")
        circle.run_for(10.0)
    mended = member.node.table.get(0, 1 - (member.node.number >> 127))
    assert mended is not None
    assert mended.number != first.number


@pytest.mark.feature("data-gathering F9")
def test_a_silent_leaf_is_noticed_by_all_that_list_it_and_its_place_is_filled() -> None:
    circle = Circle(20, 8, RingOptions(silence_s=6.0))
    victim = "n7"
    listing = [n for n, m in circle.members.items() if circle.members[victim].node.number in m.node.leaves]
    circle.crash(victim)
    circle.run_for(40.0)
    assert all(victim in circle.members[name].lost for name in listing)
    numbers = sorted(member.node.number for member in circle.members.values())
    for member in circle.members.values():
        at = numbers.index(member.node.number)
        around = {numbers[(at + step) % 19] for step in range(-4, 5)} - {member.node.number}
        assert {known.number for known in member.node.leaves.members()} == around


@pytest.mark.feature("data-gathering F9")
def test_a_node_that_was_given_up_and_speaks_again_is_taken_back() -> None:
    circle = Circle(6, 2, RingOptions())
    one, other = circle.members["n1"], circle.members["n2"]
    one.node.fail(other.node.me)
    assert other.node.number not in one.node.leaves
    one.node.add((other.node.me,))
    assert other.node.number not in one.node.leaves, "hearsay does not bring it back"
    one.node.receive("n2", Announce(other.node.me))
    assert other.node.number in one.node.leaves


@given(st.lists(st.integers(0, 2**BITS - 1), min_size=2, max_size=40, unique=True), st.integers(0, 2**BITS - 1))
def test_the_leaf_set_covers_exactly_the_keys_whose_nearest_node_it_knows(numbers: list[int], key: int) -> None:
    from godwit.protocols.topology.pastry.peers import LeafSet

    own, *others = numbers
    leaves = LeafSet(own, 8)
    for number in others:
        leaves.insert(Known(Peer(str(number), key_of(number)), ()))
    if leaves.covers(key):
        best = min(numbers, key=lambda number: preference(number, key))
        closest = leaves.closest(key)
        assert (own if closest is None else closest.number) == best


class XorNode:
    """A `Ring` of another make: whoever is known, and Kademlia's distance. Members are told to it, none joins."""

    def __init__(self, host: Host, links: Links, me: Peer, application: Application, options: RingOptions) -> None:
        self.links = links
        self.me = me
        self.application = application
        self.known: dict[Key, Peer] = {}

    def begin(self, peers: Iterable[Peer] = ()) -> None:
        self.add(peers)

    def enter(self, via: NodeId) -> None:
        raise NotImplementedError

    def add(self, peers: Iterable[Peer]) -> None:
        self.known |= {peer.key: peer for peer in peers if peer.key != self.me.key}

    def fail(self, peer: Peer) -> None:
        self.known.pop(peer.key, None)

    def receive(self, sender: NodeId, body: Any) -> None:
        if isinstance(body, Cast):
            self.cast(body.destinations, body.body, body.hops)
        else:
            self.application.hear(sender, body)

    def next_hop(self, key: Key) -> Peer | None:
        nearest = min((self.me, *self.known.values()), key=lambda peer: peer.number ^ number_of(key))
        return None if nearest is self.me else nearest

    def nodes_with_prefix(self, prefix: str) -> list[Peer]:
        return [peer for peer in self.known.values() if bits_of(peer.key).startswith(prefix)]

    def nearest(self, key: Key, count: int) -> list[Peer]:
        return sorted(self.known.values(), key=lambda peer: peer.number ^ number_of(key))[:count]

    def send(self, to: NodeId, body: Any, failed: Callable[[], None] | None = None) -> None:
        self.links.send(to, body, failed)

    def route(self, key: Key, body: Any) -> None:
        self.cast((Destination(key),), body)

    def cast(self, destinations: Sequence[Destination], body: Any, hops: int = 0) -> None:
        for destination in destinations:
            way = self.next_hop(destination.key)
            if way is None:
                self.application.deliver((destination,), body, hops)
            else:
                self.links.send(way.name, Cast((destination,), body, hops + 1))

    def towards(self, prefix: str, body: Any) -> None:
        found = self.nodes_with_prefix(prefix)
        if found:
            self.links.send(found[0].name, body)
        else:
            self.route(padded(prefix), body)


@pytest.mark.feature("data-gathering F3")
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 50))
def test_another_prefix_overlay_can_take_the_place_of_pastry(seed: int, brokers: int) -> None:
    gathering, facts = world(brokers, seed, overlay=XorNode)
    area, place = Disc((40.0, 60.0), 12.0), (71.0, 13.0)
    start = sorted(gathering.brokers)[seed % brokers]
    install(gathering, start, area)
    assert touched(gathering, area) <= holders(gathering)
    publish(gathering, start, place)
    assert facts.nodes("matched") == owners(gathering, place)
    phone = gathering.phone("ada")
    gathering.attach("ada", start)
    gathering.run_for(1.0)
    phone.subscribe("t", Disc(place, 1.0))
    gathering.run_for(1.0)
    publish(gathering, start, place, 2)
    assert len(phone.history()) == 1

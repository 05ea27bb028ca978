"""The baseline: routes searched when needed, kept while used, and nothing stored (spec mft-pubsub 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.graphs import Edge, connected, distances

from godwit.events import Event
from godwit.protocols.adhoc.aodv import AodvData, AodvNode, AodvOptions, Hello, Rerr, Rrep, Rreq
from godwit.protocols.host import Message, NodeId
from godwit.sim.mobility import Waypoint
from godwit.sim.radio import Disc
from godwit.sim.recorder import Trace
from godwit.sim.wired import Wired
from godwit.sim.world import World

pytestmark = pytest.mark.feature("mft-pubsub F30")
PROMPT = AodvOptions(jitter_s=0.0)


class Overheard(Wired):
    """A log of all that is sent, a broadcast counted once."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log: list[tuple[float, NodeId, Message]] = []

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        self.log.append((self.world.engine.now, sender, message))
        super().send(sender, to, message)

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        self.log.append((self.world.engine.now, sender, message))
        for there in self.neighbors(sender):
            super().send(sender, there, message)


class Net:
    """AODV nodes on a graph."""

    def __init__(self, edges: Iterable[Edge], options: AodvOptions = PROMPT, seed: int = 0) -> None:
        self.trace = Trace()
        self.world = World(seed, Overheard, self.trace)
        assert isinstance(self.world.medium, Overheard)
        self.wire = self.world.medium
        self.log = self.wire.log
        self.options = options
        for a, b in edges:
            for name in (a, b):
                self.join(name)
            self.wire.connect(a, b)

    def join(self, name: NodeId) -> None:
        if name not in self.world.nodes:
            self.world.add(name, lambda host: AodvNode(host, self.options))

    def node(self, name: NodeId) -> AodvNode:
        core = self.world.nodes[name].core
        assert isinstance(core, AodvNode)
        return core

    def publish(self, source: NodeId, destination: NodeId, sequence: int = 1) -> None:
        self.node(source).publish(Event(source, sequence), destination)

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def sent(self, kind: type[Message]) -> list[tuple[NodeId, Message]]:
        return [(sender, message) for _, sender, message in self.log if isinstance(message, kind)]

    def requests(self) -> list[Rreq]:
        """Those that came from their originator, in order."""
        return [m for sender, m in self.sent(Rreq) if isinstance(m, Rreq) and sender == m.originator]

    def delivered(self) -> list[tuple[NodeId, int, int]]:
        """Who got which event after how many hops."""
        return [(row[1], int(row[4] or 0), row[9]) for row in self.trace.of("delivered")]

    def dropped(self) -> list[str]:
        return [row[10] for row in self.trace.of("dropped")]


def line(count: int, options: AodvOptions = PROMPT) -> Net:
    return Net([(f"n{i}", f"n{i + 1}") for i in range(1, count)], options)


def test_n1_finds_n5_as_in_the_reference_picture() -> None:
    net = Net([("n1", "n2"), ("n1", "n3"), ("n2", "n4"), ("n3", "n4"), ("n4", "n5")])
    net.publish("n1", "n5")
    net.run(3)
    assert net.delivered() == [("n5", 1, 3)]


def test_a_route_is_found_along_a_line_and_every_relay_learns_both_ways() -> None:
    net = line(5)
    net.publish("n1", "n5")
    net.run(1)
    assert net.delivered() == [("n5", 1, 4)]
    assert [net.node(f"n{i}").routes["n5"].hop for i in range(1, 5)] == ["n2", "n3", "n4", "n5"]
    assert [net.node(f"n{i}").routes["n1"].hop for i in range(2, 5)] == ["n1", "n2", "n3"]


@given(connected())
def test_routes_are_as_short_as_can_be_where_nothing_delays_the_search(edges: list[Edge]) -> None:
    net = Net(edges)
    shortest = distances(edges, "b0")
    for sequence, destination in enumerate(sorted(shortest)[1:]):
        net.publish("b0", destination, sequence)
        net.run(8)
    assert {name: hops for name, _, hops in net.delivered()} == {n: d for n, d in shortest.items() if n != "b0"}


@given(connected(), st.integers(0, 1000))
def test_with_jitter_a_route_is_never_shorter_than_the_shortest(edges: list[Edge], seed: int) -> None:
    net = Net(edges, AodvOptions(), seed)
    shortest = distances(edges, "b0")
    far = max(shortest, key=lambda name: (shortest[name], name))
    net.publish("b0", far)
    net.run(8)
    ((_, _, hops),) = net.delivered()
    assert shortest[far] <= hops < len(shortest)


def test_the_ring_widens_until_the_destination_is_found() -> None:
    net = line(4)
    net.publish("n1", "n4")
    net.run(3)
    assert [request.ttl for request in net.requests()] == [1, 3]


def test_an_unreachable_destination_is_sought_in_rings_then_everywhere_three_times_then_given_up() -> None:
    net = line(2)
    net.publish("n1", "n9")
    net.run(40)
    assert [request.ttl for request in net.requests()] == [1, 3, 5, 7, 35, 35, 35]
    assert net.dropped() == ["no route"]
    assert net.node("n1").searches == {}


def test_without_rings_the_whole_network_is_searched_at_once() -> None:
    net = line(2, AodvOptions(expanding_ring=False))
    net.publish("n1", "n9")
    net.run(40)
    assert [request.ttl for request in net.requests()] == [35, 35, 35]


def test_searches_of_the_whole_network_wait_twice_as_long_each_time() -> None:
    net = line(2, AodvOptions(expanding_ring=False))
    net.publish("n1", "n9")
    net.run(40)
    first, second, third = (time for time, sender, m in net.log if isinstance(m, Rreq) and sender == "n1")
    assert second - first == pytest.approx(2.8)
    assert third - second == pytest.approx(5.6)


def test_a_lost_destination_is_sought_first_as_far_as_it_was() -> None:
    net = line(4)
    net.publish("n1", "n4")
    net.run(12)
    net.log.clear()
    net.publish("n1", "n4", 2)
    net.run(2)
    assert [request.ttl for request in net.requests()] == [5]


@given(connected(), st.integers(0, 1000))
def test_everybody_relays_and_nobody_relays_a_request_twice(edges: list[Edge], seed: int) -> None:
    net = Net(edges, AodvOptions(expanding_ring=False), seed)
    net.publish("b0", "b99")
    net.run(2)
    copies = Counter((sender, m.originator, m.number) for sender, m in net.sent(Rreq) if isinstance(m, Rreq))
    assert set(copies.values()) == {1}
    assert {sender for sender, _, _ in copies} == set(distances(edges, "b0"))


def test_only_publishers_ever_search() -> None:
    net = line(5)
    net.publish("n1", "n5")
    net.run(30)
    assert {request.originator for _, request in net.sent(Rreq) if isinstance(request, Rreq)} == {"n1"}


def test_a_route_that_is_used_is_searched_for_once() -> None:
    net = line(4)
    for second in range(20):
        net.world.engine.at(second + 0.01, partial(net.publish, "n1", "n4", second))
    net.run(21)
    assert len(net.delivered()) == 20
    assert [request.ttl for request in net.requests()] == [1, 3]


def test_an_idle_route_expires_and_its_users_are_told() -> None:
    net = line(4)
    net.publish("n1", "n4")
    net.run(12)
    assert not net.node("n1").routes["n4"].valid
    assert any(sender == "n2" for sender, _ in net.sent(Rerr))


def test_a_broken_link_is_told_upstream_and_the_next_event_searches_again() -> None:
    net = line(4)
    net.publish("n1", "n4")
    net.run(0.9)
    for second in range(5):
        net.world.engine.at(net.world.engine.now + second, partial(net.publish, "n1", "n4", 10 + second))
    net.wire.cut("n3", "n4")
    net.log.clear()
    net.run(5)
    assert [sender for sender, _ in net.sent(Rerr)][:2] == ["n3", "n2"]
    assert not net.node("n1").routes["n4"].valid
    assert net.requests()
    net.wire.connect("n2", "n4")
    net.run(5)
    net.publish("n1", "n4", 99)
    net.run(8)
    assert ("n4", 99, 2) in net.delivered()


def test_an_error_from_a_neighbor_that_is_not_on_the_way_changes_nothing() -> None:
    net = Net([("n1", "n2"), ("n2", "n3"), ("n1", "n4")])
    net.publish("n1", "n3")
    net.run(0.5)
    net.node("n1").receive("n4", Rerr((("n3", 99),)))
    assert net.node("n1").routes["n3"].valid


def test_nothing_is_stored_what_fails_is_lost() -> None:
    net = line(3)
    net.publish("n1", "n3", 1)
    net.run(0.5)
    net.wire.cut("n2", "n3")
    net.publish("n1", "n3", 2)
    net.run(60)
    net.wire.heal("n2", "n3")
    net.run(60)
    assert [sequence for _, sequence, _ in net.delivered()] == [1]


def test_a_relay_without_a_way_drops_what_it_gets_and_says_so() -> None:
    net = line(3)
    net.run(0.5)
    net.node("n2").receive("n1", AodvData(Event("n1", 1), "n1", "n9", 1))
    assert net.dropped() == ["route lost"]
    assert [sender for sender, _ in net.sent(Rerr)] == ["n2"]


def test_events_published_during_a_search_wait_for_it_in_order() -> None:
    net = line(4)
    for sequence in range(5):
        net.publish("n1", "n4", sequence)
    net.run(3)
    assert [sequence for _, sequence, _ in net.delivered()] == [0, 1, 2, 3, 4]


def test_no_more_events_wait_than_the_buffer_holds() -> None:
    net = line(2, AodvOptions(buffer_max=3))
    for sequence in range(5):
        net.publish("n1", "n9", sequence)
    assert net.dropped() == ["buffer full"] * 2


def test_requests_and_errors_are_limited_to_ten_a_second() -> None:
    net = line(3)
    net.run(1.5)
    for i in range(50):
        net.publish("n1", f"x{i}")
        net.node("n2").receive("n1", AodvData(Event("n1", i), "n1", f"y{i}", 1))
    net.run(0.5)
    assert len(net.requests()) == 10
    assert len(net.sent(Rerr)) == 10


def test_a_relay_that_knows_a_fresh_way_answers_for_the_destination() -> None:
    net = Net([("n1", "n2"), ("n2", "n3"), ("n3", "n4"), ("n5", "n2")])
    net.publish("n1", "n4")
    net.run(0.5)
    net.log.clear()
    net.publish("n5", "n4")
    net.run(0.5)
    assert [sender for sender, _ in net.sent(Rrep)] == ["n2"]
    assert ("n4", 1, 3) in net.delivered()


def test_a_relay_whose_way_is_older_than_wanted_passes_the_question_on() -> None:
    net = line(4)
    net.publish("n1", "n4")
    net.run(0.5)
    net.log.clear()
    net.node("n2").receive("n1", Rreq("n1", 50, 99, "n4", 7, 0, 10))
    net.run(0.5)
    assert [sender for sender, _ in net.sent(Rrep)] == ["n4", "n3", "n2"]
    assert net.node("n4").sequence == 7


def test_a_request_collects_the_newest_number_on_its_way() -> None:
    net = line(3)
    net.node("n2").receive("n3", Rrep("n2", "n9", 5, 3, 6.0))
    net.node("n2").receive("n3", Rerr((("n9", 8),)))
    net.log.clear()
    net.node("n2").receive("n1", Rreq("n1", 1, 1, "n9", None, 0, 10))
    net.run(0.1)
    relayed = [m for sender, m in net.sent(Rreq) if sender == "n2" and isinstance(m, Rreq)]
    assert relayed[0].destination_sequence == 8


def route(node: AodvNode, destination: NodeId) -> tuple[NodeId, int, int | None, bool]:
    found = node.routes[destination]
    return (found.hop, found.hops, found.sequence, found.valid)


def test_of_equally_fresh_routes_the_shorter_is_taken_and_a_fresher_one_whatever_its_length() -> None:
    node = line(2).node("n1")
    node.receive("x", Rrep("n1", "d", 5, 3, 6.0))
    node.receive("y", Rrep("n1", "d", 5, 4, 6.0))
    assert route(node, "d") == ("x", 4, 5, True)
    node.receive("z", Rrep("n1", "d", 5, 1, 6.0))
    assert route(node, "d") == ("z", 2, 5, True)
    node.receive("y", Rrep("n1", "d", 6, 9, 6.0))
    assert route(node, "d") == ("y", 10, 6, True)


def test_an_older_number_is_refused_even_for_a_route_that_is_lost() -> None:
    node = line(2).node("n1")
    node.receive("x", Rrep("n1", "d", 5, 3, 6.0))
    node.receive("x", Rerr((("d", 6),)))
    node.receive("y", Rrep("n1", "d", 5, 1, 6.0))
    assert route(node, "d") == ("x", 4, 6, False)
    node.receive("y", Rrep("n1", "d", 6, 7, 6.0))
    assert route(node, "d") == ("y", 8, 6, True)


def test_a_destination_answers_with_a_number_no_older_than_wanted_and_keeps_its_own_otherwise() -> None:
    net = line(2)
    node = net.node("n2")
    node.receive("n1", Rreq("n1", 1, 1, "n2", 9, 0, 5))
    node.receive("n1", Rreq("n1", 2, 2, "n2", 4, 0, 5))
    assert [m.destination_sequence for _, m in net.sent(Rrep) if isinstance(m, Rrep)] == [9, 9]


def test_a_neighbor_is_one_hop_away_whatever_was_known() -> None:
    node = line(2).node("n1")
    node.receive("x", Rrep("n1", "y", 5, 3, 6.0))
    node.receive("y", Hello(2))
    assert route(node, "y") == ("y", 1, 5, True)


peers = st.sampled_from(["x", "y", "z"])
numbers = st.integers(0, 6)
controls = st.one_of(
    st.builds(Hello, numbers),
    st.builds(Rreq, peers, numbers, st.integers(0, 99), peers, numbers | st.none(), numbers, numbers),
    st.builds(Rrep, peers, peers, numbers, numbers, st.just(6.0)),
    st.builds(Rerr, st.lists(st.tuples(peers, numbers), max_size=2).map(tuple)),
    st.builds(AodvData, st.just(Event("p", 1)), peers, peers, numbers),
)


@given(st.lists(st.tuples(peers, controls), max_size=40))
def test_numbers_never_go_back_whatever_is_heard(heard: list[tuple[NodeId, Message]]) -> None:
    net = line(2)
    node = net.node("n1")
    highest: dict[NodeId, int] = {}
    for sender, message in heard:
        node.receive(sender, message)
        net.run(0.01)
        for destination, found in node.routes.items():
            assert found.sequence is None or found.sequence >= highest.get(destination, 0)
            highest[destination] = max(highest.get(destination, 0), found.sequence or 0)


def circle(nodes: dict[NodeId, AodvNode], destination: NodeId, now: float) -> list[NodeId]:
    for start in nodes:
        way, at = [start], start
        while at != destination and (found := nodes[at].routes.get(destination)) and found.valid:
            if found.expires_s <= now or found.hop not in nodes:
                break
            at = found.hop
            if at in way:
                return [*way, at]
            way.append(at)
    return []


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_routes_never_lead_round_in_a_circle_while_all_move(seed: int) -> None:
    trace = Trace()
    world = World(seed, partial(Disc, range_m=35), trace)
    assert isinstance(world.medium, Disc)
    walk = Waypoint(width_m=100, height_m=100, speed_mps=(5, 10))
    names = [f"n{i:02d}" for i in range(14)]
    for name in names:
        world.medium.place(name, walk)
        world.add(name, lambda host: AodvNode(host))
    nodes = {name: core for name in names if isinstance(core := world.nodes[name].core, AodvNode)}
    dice = Random(seed)
    for step in range(60):
        source, destination = dice.choice(names[:2]), dice.choice(names[2:5])
        nodes[source].publish(Event(source, step), destination)
        world.run(world.engine.now + 0.25)
        for destination in names[2:5]:
            assert circle(nodes, destination, world.engine.now) == []
    assert trace.counts["delivered"] > 0

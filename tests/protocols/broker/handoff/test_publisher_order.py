"""What a client says keeps its order when the client moves."""

from __future__ import annotations

from collections import defaultdict

import msgspec
import pytest
from tests.protocols.broker.fabric.ring.worlds import Ring
from tests.protocols.broker.resting import SlowWorld

from godwit.protocols.broker.fabric.ring.loops import FOLLOWING
from godwit.protocols.host import NodeId
from godwit.sim.brokers.chaos import Chaos
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import World


def moved(seed: int = 0, *, crash: NodeId = "", session_wait_s: float = 1e6) -> tuple[SlowWorld, Client, Client]:
    """A publisher has said 0, 1, 2 at b1, from where it is a long way to the subscriber at b3, and 3, 4, 5 at b2."""
    world = SlowWorld(3, seed, session_wait_s=session_wait_s)
    subscriber = Client(world, "s").connect("b3").subscribe("a/#", qos=2)
    publisher = Client(world, "p").connect("b1")
    world.run()
    world.slow = frozenset({("b1", "b3")})
    say(publisher, range(3))
    world.run(0.5)
    publisher.drop(notice_s=None).connect("b2")
    while not publisher.inside:
        world.run(0.1)
    if crash:
        world.sites[crash].crash()
        world.run(0.1)
        world.sites[crash].start()
    if crash == "b2":
        publisher.drop(notice_s=None).connect("b2")
        world.run(0.5)
    say(publisher, range(3, 6))
    return world, subscriber, publisher


def say(publisher: Client, numbers: range) -> None:
    for number in numbers:
        publisher.publish("a/x", str(number).encode(), qos=2)


@pytest.mark.parametrize("crash", ["", "b1", "b2", "b3"])
@pytest.mark.parametrize("seed", range(5))
def test_what_was_said_at_the_old_broker_is_heard_before_what_is_said_at_the_new_one(seed: int, crash: str) -> None:
    world, subscriber, publisher = moved(seed, crash=crash)
    world.run(60)
    if crash == "b3":
        subscriber.drop(notice_s=None).connect("b3")
        world.run(10)
    assert subscriber.payloads == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert not publisher.outgoing
    assert not publisher.session.carried.unheard


def test_a_client_that_moves_on_at_once_keeps_its_order_too() -> None:
    world, subscriber, publisher = moved()
    publisher.drop(notice_s=None).connect("b1")
    while not publisher.inside:
        world.run(0.1)
    say(publisher, range(6, 8))
    world.run(60)
    assert subscriber.payloads == [str(number).encode() for number in range(8)]
    assert not publisher.outgoing


def test_a_broker_that_is_away_does_not_silence_a_client_for_ever() -> None:
    world, _, publisher = moved(session_wait_s=10.0)
    world.sites["b3"].crash()
    world.run(5)
    assert publisher.outgoing
    world.run(10)
    assert not publisher.outgoing
    assert world.sites["b2"].broker.counts.overtaken == 1


def test_a_broker_that_was_given_up_is_not_waited_for() -> None:
    world, _, publisher = moved()
    world.sites["b3"].crash()
    world.run(5)
    assert publisher.outgoing
    world.give_up("b3")
    world.run(5)
    assert not publisher.outgoing


def test_a_client_that_has_said_nothing_waits_for_nobody() -> None:
    world = World(3)
    silent = Client(world, "p").connect("b1")
    Client(world, "s").connect("b3").subscribe("a/#")
    world.run()
    world.sites["b3"].crash()
    silent.drop().connect("b2")
    world.run()
    silent.publish("a/x", b"first", qos=1)
    world.run(1)
    assert not silent.outgoing


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("sent", [False, True])
def test_in_a_ring_what_the_old_broker_had_to_keep_is_matched_first(sent: bool, crash: bool) -> None:
    """The matching broker was down; what was kept for it is still at the old broker, or sent and not there yet."""
    ring = Ring(3)
    matcher = ring.owner("b")
    old, new = ring.others(matcher)
    publisher = ring.client("p", old)
    ring.cluster.crash(matcher)
    ring.cluster.run(0.5)
    publisher.publish("b/y", b"first", qos=2, retain=True)
    ring.cluster.run(0.5)
    assert len(ring.fabric(old).routes.custody) == 1
    ring.cluster.start(matcher)
    while sent and ring.fabric(old).routes.custody:
        ring.cluster.run(0.001)
    ring.cluster.cables.stall(old, matcher, ring.cluster.engine.now + 4.0)
    publisher.drop(notice_s=0.0).connect(new)
    while not publisher.inside:
        ring.cluster.run(0.1)
    if crash:
        ring.cluster.crash(old)
        ring.cluster.start(old)
    publisher.publish("b/y", b"second", qos=2, retain=True)
    ring.cluster.run(30.0)
    kept = ring.cluster.sites[matcher].broker.shelf.get("b/y")
    assert kept is not None
    assert kept.payload == b"second"
    assert ring.cluster.sites[new].broker.counts.overtaken == 0
    assert not publisher.outgoing
    assert not any(site.broker.unfinished["shadows"] for site in ring.cluster.sites.values())
    assert not any(row for row in ring.cluster.sites[old].node.disk["disk"]["ring"] if row[0] == FOLLOWING)


WAIT_S = 10.0
"""How long the brokers of a `Ring` wait for sessions."""


def overtaken(*, away: bool, behind_s: float = 0.0, keeps_token: bool = True) -> tuple[Ring, Client, Client]:
    """A publisher has said `first` at a broker from which that comes to the matching one after half a minute. It has
    gone on to a third broker, which did not wait so long, and has said `second` there, which is matched. The broker
    where it was is `away` as it goes on, or has handed its session over. The third's calendar is so much behind."""
    ring = Ring(3)
    matcher = ring.owner("b")
    old, new = ring.others(matcher)
    cluster = ring.cluster
    subscriber = ring.client("s", matcher).subscribe("b/#", qos=2)
    publisher = ring.client("p", old)
    publisher.keeps_token = keeps_token
    publisher.drop(notice_s=0.0).connect(old)
    cluster.run(3.0)
    cluster.sites[new].offset_s = -behind_s
    cluster.cables.stall(old, matcher, cluster.engine.now + 30.0)
    publisher.publish("b/y", b"first", qos=2, retain=True)
    cluster.run(0.5)
    assert not publisher.outgoing
    if away:
        cluster.cables.stall(old, new, cluster.engine.now + 30.0)
    publisher.drop(notice_s=0.0).connect(new)
    cluster.run(WAIT_S + 2.0)
    publisher.publish("b/y", b"second", qos=2, retain=True)
    cluster.run(WAIT_S + 2.0)
    assert not publisher.outgoing
    assert cluster.sites[new].broker.counts.overtaken == (not away)
    assert subscriber.payloads == [b"second"]
    return ring, publisher, subscriber


def shelves(ring: Ring) -> set[bytes]:
    """What those who match the topic or keep it for them have retained."""
    found = (machine.broker.shelf.get("b/y") for machine in ring.cluster.sites.values())
    return {one.payload for one in found if one is not None}


@pytest.mark.parametrize("behind_s", [0.0, 600.0])
@pytest.mark.parametrize("away", [False, True])
def test_in_a_ring_what_comes_late_replaces_nothing_that_its_publisher_said_later(away: bool, behind_s: float) -> None:
    """Calendars have no say, and whoever subscribed gets all of it."""
    ring, publisher, subscriber = overtaken(away=away, behind_s=behind_s)
    ring.cluster.run(30.0)
    assert sorted(subscriber.payloads) == [b"first", b"second"]
    assert shelves(ring) == {b"second"}
    publisher.publish("b/y", b"third", qos=2, retain=True)
    ring.cluster.run(5.0)
    publisher.drop(notice_s=0.0).connect(ring.owner("b"))
    ring.cluster.run(5.0)
    assert shelves(ring) == {b"third"}
    publisher.publish("b/y", b"fourth", qos=2, retain=True)
    ring.cluster.run(5.0)
    assert shelves(ring) == {b"fourth"}


def test_it_replaces_nothing_at_a_broker_that_matches_the_topic_by_then() -> None:
    ring, _, subscriber = overtaken(away=True)
    matcher, left = ring.owner("b"), ring.cluster.sites[ring.owner("b")]
    ring.fabric(matcher).leave()
    ring.cluster.run(60.0)
    assert ring.owner("b") != matcher
    assert left.up
    assert sorted(subscriber.payloads) == [b"first", b"second"]
    assert shelves(ring) == {b"second"}


def test_of_a_client_that_shows_no_token_the_last_is_what_is_matched_last() -> None:
    """Nobody can tell whether it was at a later place before: what it says there must not count for less."""
    ring, _, subscriber = overtaken(away=True, keeps_token=False)
    ring.cluster.run(30.0)
    assert subscriber.payloads == [b"second", b"first"]
    assert shelves(ring) == {b"first"}


class Wandering(Chaos):
    """Publishers hop from broker to broker, subscribers stay where they are, brokers crash."""

    def _hop(self) -> None:
        client = self.dice.choice(self.publishers)
        client.drop(notice_s=self.dice.choice((0.0, 0.2, None)))
        self._reconnect(client)

    def _reconnect(self, client: Client) -> None:
        client.drop(notice_s=None)
        name = client.home if client in self.subscribers else self.dice.choice(self.names)
        if self.world.sites[name].up:
            client.connect(name)

    def check_order(self) -> None:
        """Of all that one publisher said at QoS 2, wherever it said it."""
        for client in self.subscribers:
            said: dict[str, list[int]] = defaultdict(list)
            for delivery in client.got:
                if delivery.publication.qos == 2:
                    said[delivery.publication.publisher].append(msgspec.json.decode(delivery.publication.payload)["n"])
            for publisher, numbers in said.items():
                assert numbers == sorted(numbers), f"{client.name} got {numbers} from {publisher}"


@pytest.mark.parametrize("first", range(3000, 3060, 20))
def test_publishers_that_wander_among_crashing_brokers_are_heard_in_order(first: int) -> None:
    for seed in range(first, first + 20):
        chaos = Wandering(seed, publishers_hop=True)
        chaos.run()
        try:
            chaos.check()
            chaos.check_order()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error

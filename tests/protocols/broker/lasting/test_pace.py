"""A subscription with a rate: of each topic at most one in an interval, and then the newest."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import msgspec
import pytest

from godwit.protocols.broker.api import Delivery, Reason, Subscription
from godwit.sim.brokers.client import Client, Connection
from godwit.sim.brokers.world import Trees, World

INTERVAL_S = 10.0
CONDITION = "n >= 0 AND rate(0.1)"


class Timed(Client):
    """Notes when each delivery came first."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.keeps_token = True
        self.times: list[tuple[float, str, int]] = []

    def on_delivery(self, connection: Connection, delivery: Delivery) -> None:
        before = len(self.got)
        super().on_delivery(connection, delivery)
        if len(self.got) > before:
            number = msgspec.json.decode(delivery.publication.payload)["n"]
            self.times.append((self.world.engine.now, delivery.publication.topic, number))

    def of(self, topic: str) -> list[tuple[float, int]]:
        return [(when, number) for when, name, number in self.times if name == topic]


def say(publisher: Client, topic: str, number: int, qos: int = 1) -> None:
    publisher.publish(topic, msgspec.json.encode({"n": number}), qos)


def paced(world: World, at: str = "b1", qos: int = 2) -> Timed:
    client = Timed(world, "s")
    client.connect(at).subscribe("t/#", CONDITION, key="q", qos=qos)
    return client


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_each_topic_has_its_own_time_and_what_comes_is_the_newest(qos: int) -> None:
    """Against what was said by then, which is all that the rule speaks of."""
    for seed in range(10):
        world, dice = World(seed=seed), Random(seed)
        publisher = Client(world, "p").connect("b1")
        subscriber = paced(world, qos=qos)
        said: dict[str, list[tuple[float, int]]] = {}
        for number in range(200):
            topic = f"t/{dice.randrange(4)}"
            say(publisher, topic, number, 2)
            said.setdefault(topic, []).append((world.engine.now, number))
            world.run(dice.choice((0.01, 0.5, 0.5, 15.0 if dice.random() < 0.1 else 1.0)))
        world.run(2 * INTERVAL_S)
        for topic, all_said in said.items():
            got = subscriber.of(topic)
            assert all(b[0] - a[0] >= INTERVAL_S - 0.1 for a, b in pairwise(got))
            assert got[-1][1] == all_said[-1][1]
            for when, number in got:
                before = [one for at, one in all_said if at <= when - 0.1]
                assert number >= (before[-1] if before else 0)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_interval_begins_when_a_delivery_leaves_however_long_it_waited_for_the_disk(qos: int) -> None:
    for seed in range(5):
        world = World(seed=seed, disk_s=4.0)
        publisher = Client(world, "p").connect("b1")
        world.run(10)
        subscriber = paced(world, qos=qos)
        world.run(10)
        for number in range(100):
            say(publisher, "t/x", number, 2)
            world.run(1.0)
        world.run(4 * INTERVAL_S)
        got = subscriber.of("t/x")
        assert len(got) > 5
        assert all(b[0] - a[0] >= INTERVAL_S - 0.001 for a, b in pairwise(got))
        assert got[-1][1] == 99


def test_who_reads_slowly_gets_the_newest_of_a_topic_and_never_two_at_once() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    subscriber = Timed(world, "s")
    subscriber.connect("b1", inflight_max=1).subscribe("t/#", CONDITION, key="q", qos=1)
    subscriber.subscribe("other", key="o", qos=1)
    world.run(1)
    subscriber.holding = True
    publisher.publish("other", b'{"n": 0}', 1)
    for number in range(30):
        say(publisher, "t/x", number)
        world.run(1.0)
    assert subscriber.of("t/x") == []
    subscriber.holding = False
    assert world.sites["b1"].broker.acknowledged(subscriber.session, subscriber.all[0].number)
    world.run(3 * INTERVAL_S)
    assert [number for _, number in subscriber.of("t/x")] == [29]


def test_what_may_be_said_again_comes_at_qos_0_once_though_its_broker_crashes() -> None:
    """It waits for the disk, as without a rate."""
    world = World(disk_s=1.0)
    publisher = Client(world, "p").connect("b1")
    world.run(3)
    subscriber = paced(world, qos=0)
    world.run(3)
    say(publisher, "t/x", 0, 2)
    world.run(0.001)
    world.sites["b1"].crash()
    for client in (publisher, subscriber):
        client.drop(notice_s=None)
    world.sites["b1"].start()
    for client in (subscriber, publisher):
        client.connect("b1")
        world.run(3)
    assert [number for _, number in subscriber.of("t/x")] == [0]


@pytest.mark.parametrize("qos", [0, 1])
def test_what_was_retained_counts_as_the_first_of_its_topic(qos: int) -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    publisher.publish("t/x", msgspec.json.encode({"n": 1}), 1, retain=True)
    world.run(1)
    subscriber = paced(world, qos=qos)
    world.run(1)
    say(publisher, "t/x", 2)
    world.run(2 * INTERVAL_S)
    (first_s, one), (second_s, two) = subscriber.of("t/x")
    assert (one, two) == (1, 2)
    assert second_s - first_s >= INTERVAL_S - 0.001


def test_what_is_said_seldom_comes_at_once() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    subscriber = paced(world)
    for number in range(5):
        say(publisher, "t/x", number)
        world.run(INTERVAL_S + 1)
    assert [number for _, number in subscriber.of("t/x")] == [0, 1, 2, 3, 4]


def test_what_is_too_early_survives_a_crash() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    subscriber = paced(world)
    for number in range(5):
        say(publisher, "t/x", number)
    world.run(1)
    assert [number for _, number in subscriber.of("t/x")] == [0]
    world.sites["b1"].crash()
    subscriber.drop(notice_s=None)
    world.run(1)
    world.sites["b1"].start()
    subscriber.connect("b1")
    world.run(1)
    assert [number for _, number in subscriber.of("t/x")] == [0, 4]


@pytest.mark.parametrize("goes", [True, False])
def test_what_may_be_lost_takes_no_other_place_and_follows_it(goes: bool) -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    subscriber = paced(world)
    for number, qos in enumerate((2, 2, 0, 0)):
        say(publisher, "t/x", number, qos)
    world.run(1)
    assert [number for _, number in subscriber.of("t/x")] == [0]
    if goes:
        subscriber.drop().connect("b1")
    world.run(3 * INTERVAL_S)
    got = subscriber.of("t/x")
    assert [number for _, number in got] == ([0, 1] if goes else [0, 1, 3])
    assert goes or all(b[0] - a[0] >= INTERVAL_S - 0.1 for a, b in pairwise(got))


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
@pytest.mark.parametrize("kind", [World, Trees])
def test_who_was_away_or_has_moved_gets_the_newest_of_each_topic(kind: type[World], handoff: str) -> None:
    for seed in range(4):
        world = kind(3, seed=seed, handoff=handoff)  # type: ignore[arg-type]
        publisher = Client(world, "p").connect("b2")
        world.run(5)
        subscriber = paced(world)
        world.run(5)
        for step in range(6):
            for number in range(30):
                say(publisher, f"t/{number % 3}", 60 * step + number)
                world.run(0.1)
            subscriber.drop()
            world.run(1)
            for number in range(30, 60):
                say(publisher, f"t/{number % 3}", 60 * step + number)
            world.run(5)
            subscriber.connect(f"b{step % 3 + 1}")
            world.run(2)
        world.run(2 * INTERVAL_S)
        for thing in range(3):
            numbers = [number for _, number in subscriber.of(f"t/{thing}")]
            # Six stays of three seconds: one at the beginning, and one for what was said while it was away; each
            # broker counts its time anew, so that there may be one more.
            assert len(numbers) <= 3 * 6 + 1
            assert numbers[-1] == 60 * 5 + 57 + thing
            assert numbers == sorted(set(numbers))


def test_a_rate_of_a_group_or_with_the_past_is_refused_in_words() -> None:
    client = Client(World(archives=True), "s").connect("b1")
    assert client.connection is not None
    broker = client.connection.site.broker
    for wanted in (Subscription("q", "t/#", CONDITION, group="g"), Subscription("q", "t/#", CONDITION, since=0.0)):
        (granted,) = broker.subscribe(client.session, [wanted])
        assert granted.reason is Reason.TOPIC_FILTER_INVALID
        assert "rate" in granted.text


def test_who_unsubscribes_gets_nothing_more() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    subscriber = paced(world)
    for number in range(5):
        say(publisher, "t/x", number)
    world.run(1)
    world.sites["b1"].broker.unsubscribe(subscriber.session, ["q"])
    world.run(2 * INTERVAL_S)
    assert [number for _, number in subscriber.of("t/x")] == [0]
    assert world.sites["b1"].disk.get("queues", {}) == {}

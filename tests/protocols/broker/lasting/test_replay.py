"""Replay: what was published before a subscription comes first, then what comes, once and in order."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from tests.protocols.broker.fabric.ring.worlds import Ring

from godwit.filters.text import parse
from godwit.protocols.broker.api import Grant, Lasting, Reason, RetainHandling, Subscription
from godwit.protocols.broker.publication import Publication
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import Even, Trees, World

SLOW = 80.0
"""Rows a second, so that the past is not over when its reader moves."""

WANTED = "n >= 0 AND kind = 'good'"


def say(publisher: Client, number: int, *, kind: str = "good", qos: int = 1, topic: str = "t/x") -> Publication:
    return publisher.publish(topic, msgspec.json.encode({"n": number, "kind": kind}), qos)


def numbers(client: Client) -> list[int]:
    return [msgspec.json.decode(delivery.publication.payload)["n"] for delivery in client.got]


def asking(world: World, at: str = "b1", since: float | None = 0.0, name: str = "s", **more: object) -> Client:
    client = Client(world, name)
    client.keeps_token = True
    return client.connect(at).subscribe("t/#", WANTED, key="q", qos=2, since=since, **more)


def ask(client: Client, **more: Any) -> tuple[Reason, str]:
    assert client.connection is not None
    (granted,) = client.connection.site.broker.subscribe(client.session, [Subscription("q", "t/#", **more)])
    return granted.reason, granted.text


def test_first_what_was_published_since_then_what_comes() -> None:
    world = World(archives=True)
    publisher = Client(world, "p").connect("b1")
    for number in range(5):
        say(publisher, number)
    world.run(10)
    since = world.clock()
    for number in range(5, 140):
        say(publisher, number)
        say(publisher, -1, kind="bad")
    world.run(1)
    subscriber = asking(world, since=since)
    for number in range(140, 200):
        say(publisher, number)
        world.run(0.01)
    world.run(10)
    assert numbers(subscriber) == list(range(5, 200))
    assert not subscriber.session.carried.replays


def test_what_is_replayed_says_when_it_was_published() -> None:
    world = World(archives=True)
    publisher = Client(world, "p").connect("b1")
    say(publisher, 1)
    world.run(10)
    subscriber = asking(world)
    world.run(10)
    say(publisher, 2)
    world.run()
    first, second = (dict(one.publication.properties.user) for one in subscriber.got)
    assert first == {"replayed": "2023-11-14T22:13:20Z"}
    assert second == {}


def test_rows_of_several_brokers_come_in_the_order_of_time() -> None:
    world = World(3, archives=True)
    publishers = [Client(world, f"p{at}").connect(f"b{at}") for at in (1, 2, 3)]
    dice = Random(1)
    for number in range(300):
        say(dice.choice(publishers), number)
        world.run(0.05)
    world.run(5)
    subscriber = asking(world, "b2")
    world.run(60)
    assert numbers(subscriber) == list(range(300))


def test_a_calendar_that_is_wrong_delays_nobody() -> None:
    world = World(2, archives=True)
    world.sites["b2"].offset_s = -7200.0
    one, other = Client(world, "p1").connect("b1"), Client(world, "p2").connect("b2")
    for number in range(40):
        say(one if number % 2 else other, number)
        world.run(0.1)
    subscriber = asking(world)
    world.run(20)
    assert sorted(numbers(subscriber)) == list(range(40))
    assert [n for n in numbers(subscriber) if n % 2] == list(range(1, 40, 2))


def test_who_does_not_answer_is_not_waited_for_and_comes_later() -> None:
    world = World(2, archives=True)
    one, other = Client(world, "p1").connect("b1"), Client(world, "p2").connect("b2")
    for number in range(20):
        say(one if number % 2 else other, number)
    world.run(5)
    world.cut("b1", "b2")
    subscriber = asking(world)
    world.run(20)
    assert numbers(subscriber) == list(range(1, 20, 2))
    say(one, 21)
    world.run(1)
    assert numbers(subscriber)[-1] == 21
    world.heal_all()
    say(other, 22)
    world.run(120)
    assert numbers(subscriber)[11:] == [*range(0, 20, 2), 22]


def test_without_an_archive_it_is_refused_in_words() -> None:
    world = World()
    client = Client(world, "s").connect("b1")
    reason, text = ask(client, since=0.0)
    assert reason is Reason.IMPLEMENTATION_SPECIFIC
    assert "no archive" in text
    assert "--archive" in text


def test_it_is_neither_shared_nor_lasting() -> None:
    client = Client(World(archives=True), "s").connect("b1")
    assert "shared" in ask(client, since=0.0, group="g")[1]
    assert "lasting" in ask(client, since=0.0, lasting=Lasting.OVERLAP)[1]


def test_grants_hold_for_what_is_past() -> None:
    world = World(archives=True)
    publisher = Client(world, "p").connect("b1")
    for number in range(40):
        say(publisher, number, kind="good" if number % 2 else "bad")
    world.run()
    client = Client(world, "s").connect("b1", grant=Grant(subscribe=parse("kind = 'good'")))
    assert ask(client, since=0.0)[0] is Reason.NOT_AUTHORIZED
    client.subscribe("t/#", "kind = 'good'", since=0.0, key="q", qos=1)
    world.run()
    assert numbers(client) == list(range(1, 40, 2))


def test_a_grant_that_ends_ends_the_replay() -> None:
    world = World(archives=True)
    publisher = Client(world, "p").connect("b1")
    for number in range(2_000):
        say(publisher, number)
    world.run()
    subscriber = asking(world)
    world.run(0.5)
    broker = world.sites["b1"].broker
    broker.review(lambda client: (Grant(subscribe=parse("kind = 'none'")), subscriber.opening.limits))
    world.run(0.1)
    before = len(subscriber.got)
    world.run(20)
    assert 0 < before < 2_000
    assert len(subscriber.got) == before
    assert not subscriber.session.carried.replays


def test_who_is_slow_holds_nothing_in_memory() -> None:
    world = World(archives=True)
    publisher = Client(world, "p").connect("b1")
    for number in range(500):
        say(publisher, number)
    world.run()
    subscriber = Client(world, "s").connect("b1", inflight_max=2)
    subscriber.holding = True
    subscriber.subscribe("t/#", WANTED, key="q", qos=1, since=0.0)
    world.run(30)
    assert numbers(subscriber) == [0, 1]
    assert len(subscriber.session.queue.waiting) == 0


def test_it_is_bounded_in_rate() -> None:
    world = World(archives=True)
    world.sites["b1"].broker.pace_replays(100.0)
    publisher = Client(world, "p").connect("b1")
    for number in range(2_000):
        say(publisher, number)
    world.run()
    subscribers = [asking(world, name=f"s{at}") for at in range(3)]
    world.run(5.0)
    got = [len(numbers(one)) for one in subscribers]
    assert sum(got) == pytest.approx(500, rel=0.1)
    assert min(got) > 0.5 * max(got)


def test_subscribing_again_begins_again_unless_it_goes_on() -> None:
    world = World(archives=True)
    publisher = Client(world, "p").connect("b1")
    for number in range(10):
        say(publisher, number)
    world.run()
    subscriber = asking(world)
    world.run()
    subscriber.subscribe("t/#", WANTED, key="q", qos=2, since=0.0, retain_handling=RetainHandling.IF_NEW)
    world.run()
    assert numbers(subscriber) == list(range(10))
    subscriber.subscribe("t/#", WANTED, key="q", qos=2, since=0.0)
    world.run()
    assert numbers(subscriber) == [*range(10), *range(10)]


@pytest.mark.parametrize("kind", [World, Even, Trees])
def test_what_is_on_its_way_to_a_client_that_asks_for_the_past_again_comes_once(kind: type[World]) -> None:
    """Its session has moved, and the broker where it was passes on what came there meanwhile."""
    for seed in range(8):
        world = kind(3, seed=seed, archives=True)
        publisher, other = Client(world, "p").connect("b1"), Client(world, "o").connect("b3")
        world.run(5)
        subscriber = asking(world)
        world.run(5)
        subscriber.drop()
        said = 0

        def talk(publishers: tuple[Client, Client] = (publisher, other), world: World = world) -> None:
            nonlocal said
            for one in publishers:
                say(one, said)
                said += 1
            world.run(0.001)

        subscriber.connect("b2")
        while not subscriber.inside:
            talk() if said < 200 else world.run(0.001)
        for _ in range(seed):
            talk()
        before = len(subscriber.got)
        subscriber.subscribe("t/#", WANTED, key="q", qos=2, since=0.0)
        for _ in range(20):
            talk()
        world.run(60)
        got = numbers(subscriber)
        assert sorted(got[before:]) == list(range(said)), seed


def test_the_past_waits_while_the_client_is_away() -> None:
    world = World(archives=True)
    publisher = Client(world, "p").connect("b1")
    for number in range(1_000):
        say(publisher, number)
    world.run()
    subscriber = asking(world)
    world.run(0.5)
    subscriber.drop()
    for number in range(1_000, 1_100):
        say(publisher, number)
    world.run(20)
    (session,) = (one for one in world.sites["b1"].broker.sessions.values() if one.client == "s")
    assert len(session.queue.waiting) == 0
    subscriber.connect("b1")
    world.run(20)
    assert numbers(subscriber) == list(range(1_100))


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
@pytest.mark.parametrize("kind", [World, Even, Trees])
def test_a_client_that_moves_meanwhile_gets_the_rest_once_and_in_order(kind: type[World], handoff: str) -> None:
    for seed in range(6):
        lives = Lives(kind(3, seed=seed, handoff=handoff, archives=True), seed)  # type: ignore[arg-type]
        lives.run(crashes=False)
        lives.judge()


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
def test_brokers_that_crash_meanwhile_lose_and_repeat_nothing(handoff: str) -> None:
    for seed in range(10):
        lives = Lives(World(3, seed=100 + seed, handoff=handoff, archives=True), seed)  # type: ignore[arg-type]
        lives.run(crashes=True)
        lives.judge()


def test_a_crash_just_after_subscribing_keeps_the_past_with_the_subscription() -> None:
    """Whatever the disk has of it: the client asks again for nothing that it has asked for, and gets all."""
    for pause_s in (0.001, 0.005, 0.01, 0.015, 0.02, 0.03):
        world = World(archives=True)
        publisher = Client(world, "p").connect("b1")
        for number in range(10):
            say(publisher, number)
        world.run()
        subscriber = Client(world, "s").connect("b1")
        subscriber.keeps_token = True
        world.run()
        subscriber.subscribe("t/#", WANTED, key="q", qos=2, since=0.0)
        world.run(pause_s)
        world.sites["b1"].crash()
        subscriber.drop(notice_s=None)
        world.sites["b1"].start()
        subscriber.connect("b1")
        world.run(1)
        subscriber.subscribe("t/#", WANTED, key="q", qos=2, since=0.0, retain_handling=RetainHandling.IF_NEW)
        world.run(20)
        assert numbers(subscriber) == list(range(10)), pause_s


class Lives:
    """Three brokers, a publisher at each, and one who wants the past while it roams. The archives are the oracle."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = Random(seed)
        self.number = 0
        self.publishers = [Client(world, f"p{at}").connect(f"b{at}") for at in (1, 2, 3)]
        world.run(5)
        self.talk(200, 0.01)
        self.since = world.clock()
        self.talk(300, 0.01)
        for site in world.sites.values():
            site.broker.pace_replays(SLOW)
        self.subscriber = asking(world, "b1", since=self.since)

    def talk(self, count: int, pause_s: float) -> None:
        for _ in range(count):
            publisher = self.dice.choice(self.publishers)
            if publisher.inside:
                kind = self.dice.choice(("good", "good", "bad"))
                say(publisher, self.number, kind=kind, qos=2)
                self.number += 1
            self.world.run(pause_s)

    def run(self, *, crashes: bool) -> None:
        for _ in range(8):
            self.talk(self.dice.randrange(30), 0.01)
            self.world.run(self.dice.choice((0.0, 0.05, 0.3)))
            if crashes and self.dice.random() < 0.5:
                self.crash(self.dice.choice(self.world.names))
            elif self.subscriber.inside:
                self.subscriber.drop(notice_s=self.dice.choice((0.0, 0.0, 0.2)))
                self.world.run(self.dice.choice((0.0, 0.5)))
                self.subscriber.connect(self.dice.choice(self.world.names))
        self.world.run(60)
        self.talk(20, 0.01)
        self.world.run(60)

    def crash(self, name: str) -> None:
        """Nothing is under way from publishers then: what is said twice is archived twice."""
        self.world.run(3)
        assert not any(one.outgoing for one in self.publishers)
        site, clients = self.world.sites[name], (*self.publishers, self.subscriber)
        there = [one for one in clients if one.connection is not None and one.connection.site is site]
        site.crash()
        for one in there:
            one.drop(notice_s=None)
        self.world.run(self.dice.choice((0.1, 2.0)))
        site.start()
        site.broker.pace_replays(SLOW)
        for one in there:
            one.connect(name)
        self.world.run(0.5)

    def judge(self) -> None:
        wanted = parse(WANTED)
        got = [delivery.publication for delivery in self.subscriber.got]
        rows = {
            site.name: [one for one in site.archive or () if one.time >= self.since and wanted.matches(one.values())]
            for site in self.world.sites.values()
        }
        assert sorted(one.id for one in got) == sorted(one.id for some in rows.values() for one in some)
        for some in rows.values():
            names = {one.id for one in some}
            assert [one.id for one in got if one.id in names] == [one.id for one in some]
        assert not self.subscriber.session.carried.replays


def test_at_qos_0_no_row_comes_again_after_a_crash() -> None:
    """It leaves when the disk knows that it was read."""
    for seed in range(6):
        world = World(archives=True, disk_s=0.5, seed=seed)
        world.sites["b1"].broker.pace_replays(SLOW)
        publisher = Client(world, "p").connect("b1")
        world.run(2)
        for number in range(300):
            say(publisher, number, qos=0)
        world.run(5)
        subscriber = asking(world)
        world.run(0.8)
        for _ in range(4):
            world.run(Random(seed).uniform(0.2, 0.6))
            world.sites["b1"].crash()
            subscriber.drop(notice_s=None)
            world.sites["b1"].start()
            subscriber.connect("b1")
        world.run(30)
        assert len(numbers(subscriber)) > 200
        assert numbers(subscriber) == sorted(set(numbers(subscriber)))


class RingLives:
    """Publishers at all brokers of a ring, each of topics that several brokers match, and one who wants the past while
    it roams and brokers join. What was published is the oracle; the archives together have each of it once."""

    def __init__(self, seed: int, handoff: str) -> None:
        self.ring, self.dice, self.said = Ring(4, late=2, handoff=handoff, archives=True, seed=seed), Random(seed), 0
        self.cluster = self.ring.cluster
        self.publishers = [self.ring.client(f"p{at}", f"b{at}") for at in range(1, 5)]
        self.talk(150)
        self.subscriber = self.ring.client("s", "b1")
        self.subscriber.keeps_token = True
        self.subscriber.token = self.subscriber.session.carried.token
        self.subscriber.subscribe("#", "n >= 0", key="q", qos=2, since=0.0)

    def talk(self, count: int) -> None:
        for _ in range(count):
            publisher = self.dice.choice(self.publishers)
            if publisher.inside:
                say(publisher, self.said, qos=2, topic=f"t{self.dice.randrange(12)}/x")
                self.said += 1
            self.cluster.run(0.02)

    def roam(self) -> None:
        self.talk(self.dice.randrange(40))
        if self.subscriber.inside:
            self.subscriber.drop(notice_s=self.dice.choice((0.0, 0.2)))
            self.cluster.run(self.dice.choice((0.0, 0.5)))
            self.subscriber.connect(self.dice.choice(self.ring.names[:4]))
        self.talk(self.dice.randrange(20))

    def judge(self) -> None:
        self.cluster.run(60)
        self.talk(30)
        self.cluster.run(60)
        rows = {name: list(site.node.disk.get("archive", ())) for name, site in self.cluster.sites.items()}
        assert sorted(number_of(one) for some in rows.values() for one in some) == list(range(self.said))
        assert sorted(numbers(self.subscriber)) == list(range(self.said))
        got = numbers(self.subscriber)
        for some in rows.values():
            mine = {number_of(one) for one in some}
            assert [one for one in got if one in mine] == [number_of(one) for one in some]
        assert not self.subscriber.session.carried.replays


def number_of(publication: Publication) -> int:
    found: int = msgspec.json.decode(publication.payload)["n"]
    return found


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
def test_in_a_ring_the_past_comes_from_those_who_matched_it_while_its_reader_roams_and_brokers_join(
    handoff: str,
) -> None:
    for seed in range(3):
        lives = RingLives(seed, handoff)
        for step in range(6):
            if step in (1, 3):
                lives.cluster.start(f"b{5 + step // 2}")
            lives.roam()
        lives.judge()


def test_in_a_ring_a_broker_that_crashes_meanwhile_loses_and_repeats_nothing() -> None:
    for seed in range(3):
        lives = RingLives(seed, "reactive")
        for name in ("b2", "b3"):
            lives.cluster.run(3)
            publisher = lives.publishers[int(name[1:]) - 1]
            assert not publisher.outgoing
            lives.cluster.crash(name)
            publisher.drop(notice_s=None)
            lives.cluster.run(1)
            lives.cluster.start(name)
            publisher.connect(name)
            lives.talk(20)
        lives.judge()

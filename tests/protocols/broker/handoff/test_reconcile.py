"""A client that could not wait for its session gets a new one; when the old one turns up, the two become one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import cast

import pytest
from tests.protocols.broker.resting import SlowWorld
from tests.seeds import few

from godwit.protocols.broker.api import Will
from godwit.protocols.broker.handoff.coordinator import UNMET_S
from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.registry import INHERITED_S
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.rows import items_of
from godwit.protocols.broker.session.state import Item, Upstream
from godwit.sim.brokers.apart import Apart
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.world import Even, Homed, World


class Away:
    """A subscriber whose broker, b1, goes away; publishers at all the others. It gets a new session at b3."""

    def __init__(self, seed: int = 0, handoff: Handoff = "reactive") -> None:
        self.world = World(4, seed, session_wait_s=3.0, handoff=handoff)
        self.dice = Random(seed)
        self.subscriber = Client(self.world, "s").connect("b1").subscribe("a/#", qos=2).subscribe("b/#", qos=2)
        self.publishers = [Client(self.world, f"p{at}").connect(at) for at in ("b2", "b3", "b4")]
        self.published: list[bytes] = []
        self.world.run(10)

    def publish(self, seconds: float = 5.0, topics: str = "ab") -> None:
        until = self.world.engine.now + seconds
        while self.world.engine.now < until:
            topic, payload = f"{self.dice.choice(topics)}/x", b"%d" % len(self.published)
            self.dice.choice(self.publishers).publish(topic, payload, qos=2)
            self.published.append(payload)
            self.world.run(self.dice.uniform(0.01, 0.2))

    def leave(self) -> None:
        """Its broker goes before it can make copies."""
        self.subscriber.drop(notice_s=None)
        self.world.run(1)
        self.world.sites["b1"].crash()

    def come_back(self) -> None:
        self.world.sites["b1"].start()
        self.world.run(40)

    @property
    def late_duplicates(self) -> int:
        return sum(site.broker.counts.late_duplicates for site in self.world.sites.values())

    def all_came_once(self) -> None:
        assert sorted(self.subscriber.payloads, key=int) == self.published
        for site in self.world.sites.values():
            assert not site.broker.shadows
            for session in site.broker.sessions.values():
                assert session.carried.memory is None
                assert not session.inflow.upstreams


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
@pytest.mark.parametrize("first", few(1, range(0, 40, 20)))
def test_clients_that_do_not_wait_lose_nothing_and_get_nothing_twice(first: int, handoff: Handoff) -> None:
    for seed in range(first, first + 20):
        apart = Apart(seed, handoff)
        try:
            apart.run()
            apart.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


ONCE_WRONG: dict[tuple[int, Handoff], str] = {
    (189, "reactive"): "A client that had not heard that its session is new took it for the old one, or a copy of it.",
    (221, "proactive"): "A client that had not heard that its session is new took it for the old one, or a copy of it.",
    (507, "proactive"): "A client that had not heard that its session is new took it for the old one, or a copy of it.",
    (534, "proactive"): "A client that had not heard that its session is new took it for the old one, or a copy of it.",
    (61, "proactive"): "An older session was under way between two brokers that had both said that they have none.",
    (303, "proactive"): "A broker had turned to the session before the source of its copy heard that it was taken up.",
    (790, "proactive"): "An older session arrived where the newer had just left from, and the newer went into it.",
    (90, "reactive"): "The same, and what the newer remembered was forgotten.",
    (108, "reactive"): "What had come early for one session was taken for what had come early for another.",
    (134, "reactive"): "Two sessions of a client passed each other, and the newer one went into the older.",
    (
        477,
        "reactive",
    ): "Two sessions of a client used the same packet identifier for different events.",
    (277, "proactive"): "A still older session came from the broker that was asked, and was taken for the newer one.",
    (473, "proactive"): "A turn was asked for twice, and the first answer was taken for the second.",
    (367, "proactive"): "A client without a token was let into a copy whose `Drop` was under way.",
    (488, "proactive"): "A client without a token was let into a copy whose `Drop` was under way.",
    (614, "proactive"): "A client without a token was let into a copy whose `Drop` was under way.",
    (660, "proactive"): "A client without a token was let into a copy whose `Drop` was under way.",
    (763, "reactive"): "What several sessions had came in more parts than there were sessions.",
    (284, "reactive"): "A session forgot the older one before every broker had answered for a new subscription.",
}


@pytest.mark.parametrize(("seed", "handoff"), ONCE_WRONG)
def test_worlds_that_once_lost_or_repeated_something_do_not(seed: int, handoff: Handoff) -> None:
    apart = Apart(seed, handoff)
    apart.run()
    apart.check()


def test_a_client_is_told_that_its_session_is_new_until_it_shows_that_it_has_heard() -> None:
    away = Away(0)
    away.leave()
    away.subscriber.connect("b3")
    away.world.run(4)
    away.subscriber.drop()
    away.subscriber.connect("b3")
    away.world.run(1)
    assert away.subscriber.presents[-2:] == [False, False]
    away.subscriber.subscribe("a/#", qos=2)
    away.publish()
    away.world.run(4)
    away.subscriber.drop()
    away.subscriber.connect("b3")
    away.world.run(1)
    assert away.subscriber.presents[-1]


def test_what_an_old_session_wanted_is_wanted_until_the_client_has_asked_for_all_it_wants() -> None:
    away = Away(0)
    away.leave()
    away.subscriber.connect("b3")
    away.world.run(4)
    away.world.sites["b1"].start()
    away.world.run(5)
    away.subscriber.subscribe("a/#", qos=2)
    sessions = away.world.sites["b3"].broker.sessions
    assert set(sessions["s"].subscriptions) == {"a/#", "b/#"}
    away.world.run(INHERITED_S + 1)
    assert set(sessions["s"].subscriptions) == {"a/#"}


def test_a_client_that_subscribed_long_ago_does_not_get_back_what_it_has_not_asked_for() -> None:
    away = Away(0)
    away.leave()
    away.subscriber.connect("b3")
    away.world.run(4)
    away.subscriber.subscribe("a/#", qos=2)
    away.world.run(INHERITED_S + 1)
    away.come_back()
    assert set(away.world.sites["b3"].broker.sessions["s"].subscriptions) == {"a/#"}


def test_a_client_that_goes_before_the_disk_has_its_session_is_told_once_more_that_it_is_new() -> None:
    world = World(1, disk_s=2.0)
    client = Client(world, "s").connect("b1")
    world.run(1)
    client.drop().connect("b1")
    world.run(5)
    client.drop().connect("b1")
    world.run(1)
    assert client.presents == [False, False, True]


def _asking_while_it_moves() -> Away:
    """The client has asked for the first of its topics in its new session at b3, which then goes to b2."""
    away = Away(0)
    away.leave()
    away.subscriber.connect("b3")
    away.world.run(4)
    away.subscriber.subscribe("a/#", qos=2)
    away.world.run(1)
    away.subscriber.drop()
    away.subscriber.connect("b2")
    away.world.run(1)
    return away


def test_a_session_that_moves_takes_along_that_its_client_has_just_begun_to_subscribe() -> None:
    away = _asking_while_it_moves()
    away.world.sites["b1"].start()
    away.world.run(5)
    sessions = away.world.sites["b2"].broker.sessions
    assert set(sessions["s"].subscriptions) == {"a/#", "b/#"}
    away.world.run(INHERITED_S)
    assert set(sessions["s"].subscriptions) == {"a/#"}


def test_so_does_one_whose_broker_crashes() -> None:
    away = _asking_while_it_moves()
    away.world.sites["b2"].crash()
    away.world.run(1)
    away.world.sites["b2"].start()
    away.world.run(1)
    away.world.sites["b1"].start()
    away.world.run(5)
    assert set(away.world.sites["b2"].broker.sessions["s"].subscriptions) == {"a/#", "b/#"}


def test_one_that_moves_long_after_its_client_has_subscribed_does_not_get_back_what_that_has_not_asked_for() -> None:
    away = _asking_while_it_moves()
    away.world.run(INHERITED_S)
    away.come_back()
    assert set(away.world.sites["b2"].broker.sessions["s"].subscriptions) == {"a/#"}


@pytest.mark.parametrize("seed", range(12))
def test_what_both_sessions_were_owed_comes_once_and_nothing_is_lost(seed: int) -> None:
    away = Away(seed)
    away.leave()
    away.publish()
    away.subscriber.connect("b3")
    away.world.run(4)
    assert away.subscriber.presents == [False, False]
    away.subscriber.subscribe("a/#", qos=2)
    away.publish()
    away.subscriber.subscribe("b/#", qos=2)
    away.publish()
    away.come_back()
    assert away.late_duplicates > 0
    away.publish()
    away.world.run(20)
    away.all_came_once()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_published_while_the_new_session_does_not_want_it_comes_from_the_old_one(seed: int) -> None:
    """What was had before that is forgotten with the subscription, and comes again: never too little."""
    away = Away(seed)
    away.leave()
    away.subscriber.connect("b3")
    away.world.run(4)
    for topics in ("a/#", "b/#"):
        away.subscriber.subscribe(topics, qos=2)
    away.publish(topics="b")
    away.world.sites["b3"].broker.unsubscribe(away.subscriber.session, ["a/#"])
    away.publish()
    away.subscriber.subscribe("a/#", qos=2)
    away.publish()
    away.come_back()
    away.all_came_once()


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
def test_a_new_session_that_moves_on_remembers_what_it_has_had(handoff: Handoff) -> None:
    away = Away(5, handoff)
    away.leave()
    away.subscriber.connect("b3")
    away.world.run(4)
    for topics in ("a/#", "b/#"):
        away.subscriber.subscribe(topics, qos=2)
    away.publish()
    away.subscriber.drop()
    away.world.run(5)
    away.subscriber.connect("b2")
    away.publish()
    away.world.sites["b2"].crash()
    away.subscriber.drop(notice_s=None)
    away.world.run(1)
    away.world.sites["b2"].start()
    away.publishers[0].connect("b2")
    away.world.run(1)
    away.subscriber.connect("b2")
    away.world.run(1)
    away.publish()
    away.come_back()
    assert away.late_duplicates > 0
    away.all_came_once()


@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
def test_nothing_is_lost_by_a_hurried_return_between_pubrec_and_pubrel(handoff: Handoff, token: bool) -> None:
    """O, b1, is cut off, so that b3 begins a new session. Before the client hears so it is back at O, leaves that when
    it has answered PUBREC and got no PUBREL, and is at b3 again, which uses the same number for something else."""
    for seed in range(8):
        away = Away(seed, handoff)
        subscriber, world = away.subscriber, away.world
        away.publishers = [Client(world, "p1").connect("b1"), Client(world, "p5").connect("b3")]
        subscriber.delay_s, subscriber.keeps_token = 0.2, token
        for other in ("b2", "b3", "b4"):
            world.cut("b1", other)
        subscriber.drop(notice_s=None).connect("b3")
        world.run(2.9)
        subscriber.drop(notice_s=None).connect("b1")
        world.run(0.2)
        assert subscriber.presents == [False, True], "the new session is there, and the client does not know"
        assert "s" in world.sites["b3"].broker.sessions
        for _ in range(100):
            if not subscriber.incoming:
                away.publish(0.01)
        assert subscriber.incoming
        subscriber.drop(notice_s=None).connect("b3")
        world.run(4)
        assert not subscriber.presents[-1], "with the token of O, it waits for that once more"
        same = min(world.sites["b1"].broker.sessions["s"].queue.flying) - 1
        subscriber.subscribe("a/#", qos=2).subscribe("b/#", qos=2)
        subscriber.session.queue.number = same  # sessions count from places of their own; here they clash for certain
        away.publishers = away.publishers[1:]
        away.publish(2)
        world.heal_all()
        world.run(60)
        assert set(away.published) == set(subscriber.payloads), f"world {seed}"


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("back_at", ["b1", "b2", "b4"])
@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
def test_who_came_back_without_a_token_gets_once_all_that_comes_after_it_shows_one(
    handoff: Handoff, back_at: str, clean: bool
) -> None:
    """It has another session at b3, of which b1 has not heard, and is let into the old one there. Nobody can know then
    what it has had. From when it shows the token that it was given, brokers can."""
    away = Away(7, handoff)
    subscriber, world = away.subscriber, away.world
    for other in ("b1", "b2", "b4"):
        world.cut("b3", other)
    subscriber.drop().connect("b3", clean=clean)
    world.run(4)
    subscriber.subscribe("a/#", qos=2).subscribe("b/#", qos=2)
    away.publish()
    subscriber.drop().connect("b1")
    world.run(1)
    assert subscriber.presents == [False, False, True]
    away.publish()
    before = len(away.published)
    subscriber.drop()
    world.run(2)  # so that others may hold copies
    subscriber.connect(back_at, token=subscriber.token)
    world.run(1)
    away.publish()
    world.heal_all()
    away.publish()
    for _ in range(8):
        if subscriber.connection is None:  # its session has gone to b3, and comes from there
            subscriber.connect(back_at, token=subscriber.token)
        world.run(10)
    came = Counter(subscriber.payloads)
    assert {one: came[one] for one in away.published[before:]} == dict.fromkeys(away.published[before:], 1)
    assert not [one.broker.unfinished for one in world.sites.values() if any(one.broker.unfinished.values())]


class Behind(SlowWorld, Even):
    """One stream is behind all others, which are even."""


def _left_at_b3() -> tuple[Behind, Client, Client]:
    """A subscriber whose session rests at b3, with copies at the others, and a publisher at b1."""
    world = Behind(3, handoff="proactive", session_wait_s=2.0)
    subscriber = Client(world, "s").connect("b3").subscribe("a/#", qos=2)
    publisher = Client(world, "p").connect("b1")
    world.run()
    subscriber.drop()
    world.run()
    return world, subscriber, publisher


def _comes_once(world: World, subscriber: Client, publisher: Client) -> None:
    """What the client gets in the newer session, and the older one has kept."""
    publisher.publish("a/x", b"1", qos=2)
    world.run(60)
    assert subscriber.payloads == [b"1"]
    assert not [one.broker.unfinished for one in world.sites.values() if any(one.broker.unfinished.values())]


def test_who_has_reserved_an_older_session_does_not_say_that_it_has_none() -> None:
    """It asks the holder of a copy first, and gives the session away only then."""
    world, subscriber, publisher = _left_at_b3()
    for other in ("b1", "b2"):
        world.cut("b3", other)
    subscriber.connect("b2")
    world.run(3)
    subscriber.subscribe("a/#", qos=2)
    world.run(1)
    subscriber.keeps_token = True
    subscriber.drop().connect("b3").drop().connect("b1")
    world.run(0.3)
    assert subscriber.inside, "b3 was to ask b2 whether it has let the client in"
    world.slow = frozenset({("b2", "b3")})
    world.heal_all()
    world.run(1.5)
    assert world.sites["b3"].broker.sessions["s"].standing.state is State.RESERVED
    _comes_once(world, subscriber, publisher)


def test_who_has_asked_for_the_session_of_a_copy_does_not_say_that_it_has_none() -> None:
    """What the client may have had elsewhere comes with that. Its source keeps nothing of it, and says so."""
    world, subscriber, publisher = _left_at_b3()
    world.slow = frozenset({("b3", "b2")})
    world.cut("b3", "b1")
    subscriber.connect("b2").drop().connect("b1")
    world.run(2.1)
    subscriber.subscribe("a/#", qos=2)
    world.heal_all()
    world.run(0.4)
    assert not any("s" in world.sites[name].broker.sessions for name in ("b2", "b3"))
    _comes_once(world, subscriber, publisher)


def test_who_comes_back_without_a_token_costs_the_others_nothing_until_it_shows_one() -> None:
    away = Away()
    subscriber, world = away.subscriber, away.world
    session = subscriber.session

    def comes_back(token: str = "") -> int:
        before = [site.fabric.sent for site in world.sites.values()]
        subscriber.drop().connect("b1", token=token)
        world.run(5)
        assert session.carried.memory is None
        return sum(site.fabric.sent for site in world.sites.values()) - sum(before)

    assert comes_back() == 0
    assert comes_back() == 0
    assert comes_back(token=subscriber.token) > 0, "it is asked now whether somebody has another one"
    assert comes_back(token=subscriber.token) == 0


def test_a_broker_without_others_remembers_nothing_of_who_came_back_without_a_token() -> None:
    world = World(1, 0)
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    subscriber.drop().connect("b1")
    subscriber.drop().connect("b1", token=subscriber.token)
    world.run(5)
    assert subscriber.presents == [False, True, True]
    assert subscriber.session.carried.memory is None


class Stranger:
    """A subscriber at b1, with a copy of what rests at b2. Both are down, and b4 has just been set up: it has never met
    b1, of which the subscriber's token tells."""

    def __init__(self, kind: type[World], qos: int = 2) -> None:
        self.world = world = kind(4, handoff="proactive")
        self.stranger = world.sites["b4"]
        self.stranger.crash()
        self.stranger.disk.clear()
        self.stranger.known = {"b2", "b3", "b4"}
        for name in ("b1", "b2", "b3"):
            world.sites[name].known.discard("b4")
        self.subscriber = Client(world, "s").connect("b2")
        world.run(12)
        self.subscriber.subscribe("a/#", qos=2).keeps_token = True
        self.publisher = Client(world, "p").connect("b3")
        self.qos = qos
        world.run(12)
        self.subscriber.drop()
        world.run(2)
        self.publish(b"1")
        world.sites["b2"].crash()
        self.subscriber.connect("b1")
        world.run(2)
        assert self.subscriber.payloads == [b"1"]

    def publish(self, payload: bytes) -> None:
        self.publisher.publish("a/x", payload, qos=self.qos)
        self.world.run(2)

    def goes_to_the_stranger(self, token: str) -> None:
        subscriber, world = self.subscriber, self.world
        for name in ("b1", "b2"):
            if world.sites[name].up:
                world.sites[name].crash()
        subscriber.drop(notice_s=None)
        self.stranger.start()
        subscriber.connect("b4", token=token)
        world.run(15)
        assert not subscriber.presents[-1]
        subscriber.subscribe("a/#", qos=2)
        for name in ("b1", "b2", "b3"):
            world.sites[name].known.add("b4")
        world.sites["b3"].wire.on_change()
        world.sites["b2"].start()
        world.run(20)

    def meets(self) -> None:
        self.stranger.known.add("b1")
        self.stranger.wire.on_change()
        self.world.sites["b1"].start()
        self.world.run(30)

    @property
    def is_waiting(self) -> bool:
        """For b1, which somebody else may wait for yet."""
        session = self.stranger.broker.sessions["s"]
        memory = session.carried.memory
        return bool(session.inflow.held) or (memory is not None and bool(memory.unmet))


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("kind", [World, Homed])
def test_what_a_client_had_at_a_broker_that_nobody_has_met_does_not_come_again(kind: type[World], qos: int) -> None:
    stranger = Stranger(kind, qos)
    stranger.goes_to_the_stranger(stranger.subscriber.token)
    assert stranger.subscriber.payloads == [b"1"]
    assert stranger.is_waiting
    stranger.meets()
    stranger.publish(b"2")
    assert stranger.subscriber.payloads == [b"1", b"2"]
    assert stranger.stranger.broker.sessions["s"].carried.memory is None


@pytest.mark.parametrize("kind", [World, Homed])
def test_a_broker_that_nobody_has_met_is_not_waited_for_when_the_session_has_come_that_its_token_is_of(
    kind: type[World],
) -> None:
    """The session was given to b1, and has gone back to b2 without its client."""
    stranger = Stranger(kind)
    token = stranger.subscriber.token
    world = stranger.world
    stranger.subscriber.drop()
    stranger.world.run(1)
    world.sites["b2"].start()
    world.run(30)
    assert "s" in world.sites["b1"].broker.sessions
    world.sites["b1"].broker._moves.leaving.transfer(world.sites["b1"].broker.sessions["s"], "b2")
    world.run(5)
    stranger.publish(b"2")
    stranger.goes_to_the_stranger(token)
    assert stranger.subscriber.payloads == [b"1", b"2"]
    assert not stranger.is_waiting


def test_a_broker_of_which_only_a_client_has_told_is_not_waited_for_longer_than_a_day() -> None:
    stranger = Stranger(World)
    stranger.goes_to_the_stranger(stranger.subscriber.token)
    stranger.publish(b"2")
    assert stranger.subscriber.payloads == [b"1", b"2"]
    stranger.world.run(UNMET_S)
    assert stranger.subscriber.payloads == [b"1", b"2", b"1"]
    assert not stranger.is_waiting


def test_what_was_kept_back_is_not_forgotten_with_the_loss_of_the_disk_for_whose_word_it_waits() -> None:
    """A client was let into an outdated copy by an old token, and went to where a newer one is. Their source has lost
    its disk: what is in the newer is kept back until all have answered, and the older counts as confirmed."""
    cluster = Cluster(("b1", "b2", "b3"), (("b1", "b2"), ("b1", "b3")), 0, StationOptions(foresight="everybody"))
    cluster.run(5)
    world = cast(World, cluster)
    subscriber, publisher = Client(world, "s").connect("b3").subscribe("a/#", qos=2), Client(world, "p").connect("b1")
    cluster.run(5)
    token = subscriber.token
    subscriber.drop()
    cluster.run(5)
    cluster.cut("b1", "b2")
    subscriber.connect("b3", token=f"?{token}")
    cluster.run(1)
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    cluster.run(5)
    cluster.crash("b3")
    cluster.heal("b1", "b2")
    cluster.run(5)
    subscriber.connect("b2", token=token)
    cluster.run(1)
    subscriber.drop().connect("b1", token=subscriber.token)
    cluster.run(5)
    cluster.start("b3", keep_disk=False)
    cluster.run(30)
    assert subscriber.presents == [False, True, True, True]
    assert subscriber.payloads == [b"1"]
    assert not [one.broker.unfinished for one in world.sites.values() if any(one.broker.unfinished.values())]


def test_of_a_copy_whose_original_is_here_nothing_is_news_but_what_was_dealt_to_it() -> None:
    away = Away(0)
    broker = away.world.sites["b1"].broker
    away.subscriber.drop()
    away.world.run(1)
    session, way = broker.sessions["s"], Upstream(1, "b2", (), {"b2"}, main=False, forsaken=True)
    said = [Publication("p", number, "a/x", b"", qos=2, time=broker.steady()) for number in range(2)]
    for group, one in zip((None, ("g", "a/#", "")), said, strict=True):
        broker._moves.turning.pass_to(session, way, Item(one, 2, group=group))
    assert [item.publication for item in items_of(session)] == said[1:]


def test_a_copy_that_yields_to_its_original_is_not_copied_before_and_says_its_will_after_that() -> None:
    """A client was let into a copy, and with the same token into its original. Its connection to the copy, which nobody
    knew to be dead, ends when the two meet: where it comes next there may be a copy already."""
    cluster = _chain(3)
    world = cast(World, cluster)
    subscriber, publisher = Client(world, "s").connect("b1").subscribe("a/#", qos=2), Client(world, "p").connect("b1")
    cluster.run(5)
    token = subscriber.token
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    cluster.run(5)
    cluster.cut("b2", "b3")
    last = Will(Publication("s", 1, "a/w", b"will", qos=2, time=1.0))
    subscriber.connect("b3", token=token, will=last)
    cluster.run(3)
    subscriber.drop(notice_s=None).connect("b1", token=token)
    cluster.run(3)
    publisher.publish("a/x", b"2", qos=2)
    cluster.run(1)
    subscriber.drop(notice_s=None)
    cluster.heal("b2", "b3")
    cluster.run(10)
    subscriber.connect("b1", token=subscriber.token)
    cluster.run(30)
    assert subscriber.presents == [False, True, True, False]
    assert subscriber.payloads == [b"1", b"1", b"2", b"will"]  # 1 twice, since it has shown an old token


def test_what_is_under_way_to_a_copy_when_its_original_comes_there_comes_once() -> None:
    """A client was let into a copy, and with the same token into its original, where it got an event that could not
    reach the copy yet. The original moves on, to where it hears of the copy, and goes there before the event does."""
    cluster = _chain(3)
    world = cast(World, cluster)
    subscriber, publisher = Client(world, "s").connect("b1").subscribe("a/#", qos=2), Client(world, "p").connect("b1")
    cluster.run(5)
    token = subscriber.token
    subscriber.drop()
    cluster.run(5)
    cluster.cut("b2", "b3")
    subscriber.connect("b3", token=token)
    cluster.run(5)
    subscriber.drop().connect("b1", token=token)
    cluster.run(1)
    subscriber.drop().connect("b1", token=subscriber.token)
    cluster.run(1)
    publisher.publish("a/x", b"1", qos=2)
    cluster.run(1)
    subscriber.drop().connect("b2", token=subscriber.token)
    cluster.run(3)
    subscriber.drop()
    cluster.heal("b2", "b3")
    cluster.run(10)
    subscriber.connect("b2", token=subscriber.token)
    cluster.run(30)
    publisher.publish("a/x", b"2", qos=2)
    cluster.run(5)
    assert subscriber.payloads == [b"1", b"2"]
    assert not [one.broker.unfinished for one in world.sites.values() if any(one.broker.unfinished.values())]


def test_of_what_comes_to_a_copy_that_has_yielded_only_that_is_news_which_does_not_come_to_its_original() -> None:
    away = Away(0)
    broker = away.world.sites["b1"].broker
    away.subscriber.drop()
    away.world.run(1)
    session, reunion = broker.sessions["s"], broker._moves.registry.reunion
    reunion.remember(session)
    way = Upstream(1, "b4", (), {"b2", "b3"}, main=True)
    session.inflow.upstreams = (way,)
    said = [
        Item(Publication("p", number, topic, b"", qos=2, time=broker.steady()), 2, group=group, stamp=("b2", number))
        for number, (topic, group) in enumerate((("a/x", None), ("b/x", None), ("a/x", ("g", "a/#", ""))), 1)
    ]
    session.inflow.close_gate("b2")
    for item in said:
        session.inflow.hold("b2", item)
    reunion.yielded(session, [session.subscriptions["a/#"].wanted], {"b2"})
    assert session.inflow.held == {"b2": said[1:]}
    session.inflow.held = {}
    del session.inflow.gates["b2"]
    for item in said:
        broker._moves.turning.pass_to(session, way, item)
    assert list(items_of(session)) == said[1:]
    other = Item(Publication("p", 4, "a/x", b"", qos=2, time=broker.steady()), 2, stamp=("b3", 4))
    broker._moves.turning.pass_to(session, way, other)
    assert list(items_of(session)) == [*said[1:], other]


def test_who_waits_for_a_session_goes_on_when_another_goes_into_the_one_that_is_here() -> None:
    away = Away(0)
    broker, subscriber = away.world.sites["b1"].broker, away.subscriber
    subscriber.drop()
    away.world.run(1)
    session, moves = broker.sessions["s"], broker._moves
    moves.registry.reunion.remember(session)
    subscriber.connect("b1", token="1.1.b3")
    moves.united(session, "b2")
    assert "s" in moves.waiting
    assert not subscriber.inside
    away.world.run(5)
    assert subscriber.inside
    assert not moves.waiting


def _chain(length: int) -> Cluster:
    names = [f"b{number}" for number in range(1, length + 1)]
    options = StationOptions(foresight="everybody", session_wait_s=1.0)
    cluster = Cluster(names, list(pairwise(names)), 0, options)
    cluster.run(5)
    return cluster

"""One broker as its clients see it, and what it does for others."""

from __future__ import annotations

import subprocess
import sys
from math import inf
from typing import Any

import pytest

from godwit.events import Value
from godwit.filters.text import parse
from godwit.protocols.broker.api import Capacity, Grant, Limits, Reason, RetainHandling, Subscription, Will
from godwit.protocols.broker.interest.subscribers import BEYOND
from godwit.protocols.broker.publication import Properties, Publication
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import World


def pair(world: World, **subscription: Any) -> tuple[Client, Client]:
    """A subscriber to a/# and a publisher at b1."""
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", **subscription)
    return subscriber, Client(world, "p").connect("b1")


def again(world: World) -> None:
    """The broker crashes and starts again."""
    world.sites["b1"].crash()
    world.sites["b1"].start()


@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("expiry_s", [0.0, 60.0])
def test_a_delivery_has_the_lower_qos_and_ends_both_handshakes(published: int, granted: int, expiry_s: float) -> None:
    world = World()
    subscriber = Client(world, "s").connect("b1", expiry_s=expiry_s).subscribe("a/#", qos=granted)
    publisher = Client(world, "p").connect("b1", expiry_s=expiry_s)
    publisher.publish("a/b", b"1", published)
    world.run()
    assert [d.qos for d in subscriber.got] == [min(published, granted)]
    assert not publisher.outgoing
    assert not subscriber.incoming
    assert not subscriber.session.queue.flying
    assert not publisher.session.queue.incoming


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("properties", [Properties(), Properties(user=(("a", "1"),))])
def test_under_an_identifier_that_is_not_released_the_same_is_a_repetition_and_something_else_is_not(
    crash: bool, properties: Properties
) -> None:
    world = World()
    subscriber, publisher = pair(world, qos=2)
    publisher.publish("a/b", b"1", 2, properties=properties)
    publisher.drop()
    world.run()
    if crash:
        again(world)
        subscriber.connect("b1")
        world.run()
    publisher.connect("b1")
    world.run()
    assert subscriber.payloads == [b"1"]  # said twice: it had not heard that the broker has it
    session = publisher.session
    for payload in (b"2", b"2", b"3"):
        # As a client does that was in another session meanwhile, and finished there what it had begun here.
        said = Publication("p", session.next_sequence(), "a/b", payload, 2, properties=properties)
        world.sites["b1"].broker.publish(session, [(said, 9)])
        world.run()
    assert subscriber.payloads == [b"1", b"2", b"3"]


def test_what_needs_no_disk_does_not_wait_for_it() -> None:
    world = World(disk_s=1000.0)
    subscriber = Client(world, "s").connect("b1", expiry_s=0).subscribe("#", qos=2)
    publisher = Client(world, "p").connect("b1", expiry_s=0)
    for qos in (0, 1, 2):
        publisher.publish("a", b"x", qos)
    world.run(0.1)
    assert len(subscriber.got) == 3
    assert not publisher.outgoing


def test_an_event_for_a_durable_session_is_acknowledged_only_once_it_is_on_the_disk() -> None:
    world = World(disk_s=100.0)
    subscriber, publisher = pair(world, qos=1)
    publisher.publish("a/b", b"1", 1)
    world.run(0.0)
    assert subscriber.payloads == [b"1"]
    assert publisher.accepts == []
    world.run(1000)
    assert publisher.accepts == [(1, Reason.OK)]


def test_a_qos_2_delivery_leaves_only_when_its_number_is_on_the_disk() -> None:
    world = World(disk_s=100.0)
    subscriber, publisher = pair(world, qos=2)
    publisher.publish("a/b", b"1", 2)
    publisher.publish("a/b", b"2", 1)
    world.run(0.0)
    assert subscriber.payloads == []
    world.run(1000)
    assert subscriber.payloads == [b"1", b"2"]


def test_the_first_of_a_long_backlog_does_not_wait_until_the_disk_has_the_numbers_of_all() -> None:
    world = World(disk_s=1.0)
    subscriber, publisher = pair(world, qos=2)
    subscriber.drop()
    wanted = [b"%d" % n for n in range(100)]
    for payload in wanted:
        publisher.publish("a/b", payload, 2)
    world.run(1000)
    subscriber.connect("b1")
    world.run(1.5)
    assert 0 < len(subscriber.payloads) < len(wanted)
    world.run(1000)
    assert subscriber.payloads == wanted


def test_a_session_that_ends_with_its_connection_has_no_rows() -> None:
    world = World()
    subscriber = Client(world, "s").connect("b1", expiry_s=0).subscribe("#", qos=2)
    subscriber.holding = True
    subscriber.publish("a", b"1", 2)
    world.run()
    disk = world.sites["b1"].disk
    assert not any(disk.get(table) for table in ("sessions", "subscriptions", "queues", "bodies", "incoming"))


def test_a_body_that_several_wait_for_is_kept_once_and_goes_with_the_last() -> None:
    world = World()
    subscribers = [Client(world, f"s{n}").connect("b1").subscribe("a", qos=1).drop() for n in range(3)]
    publisher = Client(world, "p").connect("b1")
    publisher.publish("a", b"1", 1)
    world.run()
    assert len(world.sites["b1"].disk["bodies"]) == 1
    again(world)
    for subscriber in subscribers:
        subscriber.connect("b1")
    world.run()
    assert [s.payloads for s in subscribers] == [[b"1"]] * 3
    publisher.drop(notice_s=None).connect("b1").publish("b", b"", 2)
    Client(world, "x").connect("b1")
    world.run()
    assert not world.sites["b1"].disk["bodies"]
    assert not world.sites["b1"].disk["queues"]


def test_everything_that_was_acknowledged_survives_a_crash() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=2)
    subscriber.drop()
    for n in range(5):
        publisher.publish("a/b", b"%d" % n, 1 + n % 2)
    world.run()
    again(world)
    subscriber.connect("b1")
    world.run()
    assert subscriber.payloads == [b"0", b"1", b"2", b"3", b"4"]
    assert subscriber.presents == [False, True]


def test_what_is_under_way_goes_again_with_its_number_the_moment_the_client_is_back() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=2)
    subscriber.holding = True
    publisher.publish("a/b", b"1", 1)
    publisher.publish("a/b", b"2", 2)
    world.run()
    subscriber.drop()
    publisher.publish("a/b", b"3", 1)
    subscriber.connect("b1")
    world.run(0.0)
    assert [(d.number, d.again) for d in subscriber.all] == [
        (1, False), (2, False), (1, True), (2, True), (3, False)
    ]  # fmt: skip


def test_a_delivery_that_the_client_has_is_released_again_after_a_crash_and_not_delivered() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=2)
    publisher.publish("a/b", b"1", 2)
    while not any(item.received for item in subscriber.session.queue.flying.values()):
        world.run(0.001)
    world.run(0.5)
    subscriber.holding = True
    subscriber.drop(notice_s=None)
    again(world)
    subscriber.holding = False
    subscriber.connect("b1")
    world.run()
    assert subscriber.payloads == [b"1"]
    assert not subscriber.incoming


def test_never_more_than_the_window_is_under_way() -> None:
    world = World()
    subscriber = Client(world, "s").connect("b1", inflight_max=2).subscribe("a", qos=1)
    subscriber.holding = True
    publisher = Client(world, "p").connect("b1")
    for n in range(5):
        publisher.publish("a", b"%d" % n, 1)
    world.run()
    assert subscriber.payloads == [b"0", b"1"]
    broker = world.sites["b1"].broker
    assert broker.acknowledged(subscriber.session, 1)
    world.run()
    assert subscriber.payloads == [b"0", b"1", b"2"]
    assert not broker.acknowledged(subscriber.session, 77)
    subscriber.holding = False
    subscriber.drop().connect("b1", inflight_max=1)
    world.run()
    assert subscriber.payloads[3:] == [b"1", b"2", b"3", b"4"]


def test_a_packet_identifier_that_was_taken_is_acknowledged_and_not_published_again() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=1)
    broker = world.sites["b1"].broker
    one = Publication("p", 1, "a/b", b"1", 2, time=world.clock())
    broker.publish(publisher.session, [(one, 9)])
    broker.publish(publisher.session, [(one, 9)])
    world.run()
    assert publisher.accepts == [(9, Reason.OK), (9, Reason.OK)]
    assert subscriber.payloads == [b"1"]
    assert broker.released(publisher.session, 9)
    assert not broker.released(publisher.session, 9)
    broker.publish(publisher.session, [(one, 9)])
    world.run()
    assert subscriber.payloads == [b"1", b"1"]


def test_overlapping_subscriptions_give_one_delivery_with_the_highest_qos_and_all_identifiers() -> None:
    world = World()
    subscriber = Client(world, "s").connect("b1")
    subscriber.subscribe("a/#", qos=0, identifier=1).subscribe("a/+", qos=2, identifier=2)
    subscriber.subscribe("#", "n > 5", qos=1, identifier=3)
    publisher = Client(world, "p").connect("b1")
    publisher.publish("a/b", b'{"n": 6}', 2)
    publisher.publish("a/b", b'{"n": 5}', 2)
    world.run()
    assert [(d.qos, set(d.identifiers)) for d in subscriber.got] == [(2, {1, 2, 3}), (2, {1, 2})]


def test_no_local_keeps_own_publications_away() -> None:
    world = World()
    client = Client(world, "s").connect("b1").subscribe("a", no_local=True)
    other = Client(world, "p").connect("b1").subscribe("a")
    client.publish("a", b"mine")
    other.publish("a", b"theirs")
    world.run()
    assert client.payloads == [b"theirs"]
    assert other.payloads == [b"mine", b"theirs"]


def test_content_decides_where_there_is_a_condition() -> None:
    world = World()
    hot = Client(world, "hot").connect("b1").subscribe("a/#", "temp > 30", qos=1)
    named = Client(world, "named").connect("b1").subscribe("#", "topic_2 = 'y' AND unit = 'C'", qos=1)
    publisher = Client(world, "p").connect("b1")
    publisher.publish("a/x", b'{"temp": 31}', 1)
    publisher.publish("b/x", b'{"temp": 31}', 1)
    publisher.publish("a/y", b'{"temp": 20}', 1, properties=Properties(user=(("unit", "C"),)))
    publisher.publish("a/y", b"not json", 1)
    world.run()
    assert hot.payloads == [b'{"temp": 31}']
    assert named.payloads == [b'{"temp": 20}']


def test_payloads_are_looked_into_only_where_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    Client(world, "hot").connect("b1").subscribe("a/#", "temp > 30")
    publisher = Client(world, "p").connect("b1")
    looked: list[str] = []
    values = Publication.values

    def looked_into(self: Publication) -> dict[str, Value]:
        looked.append(self.topic)
        return values(self)

    monkeypatch.setattr(Publication, "values", looked_into)
    publisher.publish("b/x")
    publisher.publish("a/x")
    assert looked == ["a/x"]


def test_a_bad_filter_is_refused_with_its_reason_and_the_others_work() -> None:
    world = World()
    client = Client(world, "s").connect("b1", limits=Limits(filter_bytes_max=40, subscriptions_max=2))
    granted = world.sites["b1"].broker.subscribe(
        client.session,
        [
            Subscription("1", "a", "temp >"),
            Subscription("2", "a/#/b"),
            Subscription("3", "a", "temp > 1" + " " * 40),
            Subscription("4", "a", "rate(5)", group="g"),
            Subscription("5", "a", "temp > 30", qos=1),
            Subscription("6", "b"),
            Subscription("7", "c"),
        ],
    )
    assert [one.reason for one in granted] == [
        *[Reason.TOPIC_FILTER_INVALID] * 4,
        Reason.OK,
        Reason.OK,
        Reason.QUOTA_EXCEEDED,
    ]
    assert all(one.text for one in granted if one.reason)
    assert granted[4].qos == 1


def test_deep_topic_filters_are_bounded_together() -> None:
    world = World()
    client = Client(world, "s").connect("b1", limits=Limits(levels_max=100))
    deep, shallow = ("/".join("x" * count) for count in (40, 16))
    asked = [Subscription(str(i), f"{i}/{deep}") for i in range(3)] + [
        Subscription(f"s{i}", shallow) for i in range(20)
    ]
    granted = world.sites["b1"].broker.subscribe(client.session, asked)
    assert [one.reason for one in granted] == [Reason.OK, Reason.OK, Reason.QUOTA_EXCEEDED, *[Reason.OK] * 20]
    assert "levels in all" in granted[2].text
    again = world.sites["b1"].broker.subscribe(client.session, asked[:1])
    assert [one.reason for one in again] == [Reason.OK]


def test_unsubscribing_ends_it_and_says_so_where_there_is_none() -> None:
    world = World()
    subscriber, publisher = pair(world, key="k")
    broker = world.sites["b1"].broker
    assert broker.unsubscribe(subscriber.session, ["k", "k"]) == [Reason.OK, Reason.NO_SUBSCRIPTION]
    publisher.publish("a/b")
    world.run()
    assert subscriber.got == []
    again(world)
    assert not world.sites["b1"].broker.sessions["s"].subscriptions


def test_grants_bound_what_is_seen_and_said() -> None:
    world = World()
    grant = Grant(publish=parse("topic_1 = 'own' AND n < 5"), subscribe=parse("topic_1 = 'own' AND n < 5"))
    client = Client(world, "s").connect("b1", grant=grant)
    broker = world.sites["b1"].broker
    granted = broker.subscribe(
        client.session,
        [Subscription("1", "own/#"), Subscription("2", "#", "n < 3"), Subscription("3", "own/#", "n < 3")],
    )
    assert [one.reason for one in granted] == [Reason.NOT_AUTHORIZED, Reason.NOT_AUTHORIZED, Reason.OK]
    client.publish("own/x", b'{"n": 2}', 1)
    client.publish("own/x", b'{"n": 7}', 1)
    client.publish("else/x", b'{"n": 2}', 2)
    client.publish("a/+", b"", 1)
    world.run()
    assert [reason for _, reason in client.accepts] == [
        Reason.OK, Reason.NOT_AUTHORIZED, Reason.NOT_AUTHORIZED, Reason.TOPIC_NAME_INVALID
    ]  # fmt: skip
    assert client.payloads == [b'{"n": 2}']


def test_members_of_a_group_share_and_nothing_is_lost_when_one_leaves() -> None:
    world = World()
    members = [Client(world, f"m{n}").connect("b1").subscribe("a", group="g", qos=1) for n in range(2)]
    publisher = Client(world, "p").connect("b1")
    members[0].holding = True
    for n in range(6):
        publisher.publish("a", b"%d" % n, 1)
    world.run()
    assert sorted(members[0].payloads + members[1].payloads) == [b"%d" % n for n in range(6)]
    assert len(members[0].payloads) == 3
    members[0].drop(expiry_s=0.0)
    world.run()
    assert sorted(members[1].payloads) == [b"%d" % n for n in range(6)]


def test_a_group_prefers_connected_members_and_keeps_for_absent_ones() -> None:
    world = World()
    away = Client(world, "m0").connect("b1").subscribe("a", group="g", qos=1)
    here = Client(world, "m1").connect("b1").subscribe("a", group="g", qos=1)
    publisher = Client(world, "p").connect("b1")
    away.drop()
    publisher.publish("a", b"1", 1)
    publisher.publish("a", b"2", 1)
    world.run()
    assert here.payloads == [b"1", b"2"]
    here.drop(expiry_s=0.0)
    publisher.publish("a", b"3", 1)
    away.connect("b1")
    world.run()
    assert away.payloads == [b"3"]


def test_the_last_retained_publication_reaches_new_subscribers() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    for topic, payload in (("a/x", b"old"), ("a/x", b"new"), ("a/y", b"gone"), ("a/y", b""), ("$a/z", b"own")):
        publisher.publish(topic, payload, 1, retain=True)
    publisher.publish("a/z", b"short", 1, retain=True, expires=world.clock() + 1)
    world.run()
    again(world)
    late = Client(world, "s").connect("b1").subscribe("#", qos=1, identifier=7)
    world.run()
    assert [(d.publication.payload, d.retain, d.identifiers) for d in late.got] == [(b"new", True, (7,))]
    late.subscribe("#", qos=1, retain_handling=RetainHandling.IF_NEW)
    late.subscribe("a/#", qos=1, retain_handling=RetainHandling.NEVER)
    late.subscribe("+/x", "kind = 'none'", qos=1)
    world.run()
    assert len(late.got) == 1
    late.subscribe("#", qos=1)
    world.run()
    assert late.payloads == [b"new", b"new"]


def test_retain_is_passed_on_only_where_asked_for() -> None:
    world = World()
    plain, publisher = pair(world, qos=1)
    kept = Client(world, "k").connect("b1").subscribe("a/#", retain_as_published=True)
    publisher.publish("a/b", b"1", 1, retain=True)
    world.run()
    assert [d.retain for d in plain.got + kept.got] == [False, True]


def test_what_has_expired_is_not_delivered() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=1)
    subscriber.drop()
    publisher.publish("a/b", b"short", 1, expires=world.clock() + 10)
    publisher.publish("a/b", b"long", 1, expires=world.clock() + 1000)
    world.run(20)
    subscriber.connect("b1")
    world.run()
    assert subscriber.payloads == [b"long"]
    assert world.sites["b1"].broker.counts.dropped == {"expired": 1}


def test_a_queue_has_bounds_and_drops_the_oldest() -> None:
    world = World()
    limits = Limits(queue_max=3, queue_age_max_s=100.0)
    subscriber = Client(world, "s").connect("b1", limits=limits).subscribe("a", qos=1).drop()
    publisher = Client(world, "p").connect("b1")
    for n in range(5):
        publisher.publish("a", b"%d" % n, 1)
    world.run(50)
    publisher.publish("a", b"5", 1)
    world.run(60)
    subscriber.connect("b1", limits=limits)
    world.run()
    assert subscriber.payloads == [b"5"]
    assert world.sites["b1"].broker.counts.dropped == {"queue": 3, "age": 2}


def test_what_a_bound_costs_is_told_once_for_each_session_and_reason() -> None:
    world, told = World(), []
    world.sites["b1"].broker.tell_bounds(lambda session, reason: told.append((session.client, reason)))
    limits = Limits(queue_max=2, queue_age_max_s=100.0)
    sleepers = [Client(world, name).connect("b1", limits=limits).subscribe("a", qos=1) for name in ("s", "t")]
    for sleeper in sleepers:
        sleeper.drop()
    publisher = Client(world, "p").connect("b1")
    for n in range(5):
        publisher.publish("a", b"%d" % n, 1)
    world.run(110)
    sleepers[0].connect("b1", limits=limits)
    world.run()
    assert told == [("s", "queue"), ("t", "queue"), ("s", "age")]
    assert world.sites["b1"].broker.sessions["s"].queue.dropped == {"queue": 3, "age": 2}


def test_qos_0_is_not_kept_for_the_absent() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=2)
    subscriber.drop()
    publisher.publish("a/b", b"0", 0)
    subscriber.connect("b1")
    world.run()
    assert subscriber.got == []
    assert world.sites["b1"].broker.counts.dropped == {"offline": 1}


def test_a_session_lasts_as_long_as_it_was_asked_to_through_crashes_too() -> None:
    world = World()
    for name, expiry_s in (("short", 10.0), ("long", 100.0), ("ever", inf), ("never", 0.0)):
        Client(world, name).connect("b1", expiry_s=expiry_s).drop()
    world.run(5)
    again(world)
    world.run(6)
    assert set(world.sites["b1"].broker.sessions) == {"long", "ever"}
    world.run(100)
    assert set(world.sites["b1"].broker.sessions) == {"ever"}


def test_a_clean_start_forgets_and_a_take_over_ends_the_other_connection() -> None:
    world = World()
    first, publisher = pair(world, qos=1)
    second = Client(world, "s").connect("b1")
    assert first.closed == [Reason.SESSION_TAKEN_OVER]
    assert second.presents == [True]
    publisher.publish("a/b", b"1", 1)
    world.run()
    assert (first.payloads, second.payloads) == ([], [b"1"])
    third = Client(world, "s").connect("b1", clean=True)
    publisher.publish("a/b", b"2", 1)
    world.run()
    assert third.presents == [False]
    assert third.payloads == []


def test_a_session_that_ends_with_its_connection_is_not_handed_on_though_that_is_still_open() -> None:
    world = World()
    first = Client(world, "s").connect("b1", expiry_s=0).subscribe("a/#", qos=1)
    publisher = Client(world, "p").connect("b1")
    second = Client(world, "s").connect("b1", expiry_s=100)
    assert first.closed == [Reason.SESSION_TAKEN_OVER]
    assert second.presents == [False]
    publisher.publish("a/b", b"1", 1)
    world.run()
    assert second.payloads == []


def will(delay_s: float = 0.0) -> Will:
    return Will(Publication("w", 0, "a/will", b"will", 1), delay_s)


def test_a_will_is_said_when_the_client_vanishes_and_not_when_it_says_goodbye() -> None:
    world = World()
    subscriber, _ = pair(world, qos=1)
    Client(world, "w").connect("b1", expiry_s=0, will=will()).drop(will=False)
    world.run()
    assert subscriber.payloads == []
    Client(world, "w").connect("b1", expiry_s=0, will=will()).drop()
    world.run()
    assert subscriber.payloads == [b"will"]


def test_a_will_that_the_client_may_not_publish_is_refused_with_the_connection() -> None:
    world = World()
    client = Client(world, "w")
    client.connect("b1", will=will(), grant=Grant(publish=parse("topic_1 = 'own'")))
    client.connect("b1", will=Will(Publication("w", 0, "a/#")))
    assert client.closed == [Reason.NOT_AUTHORIZED, Reason.TOPIC_NAME_INVALID]
    assert not world.sites["b1"].broker.sessions


def test_a_will_with_delay_waits_for_the_client_and_no_longer_than_the_session() -> None:
    world = World()
    subscriber, _ = pair(world, qos=1)
    client = Client(world, "w").connect("b1", will=will(10.0)).drop()
    world.run(5)
    client.connect("b1", will=will(10.0))
    world.run(50)
    assert subscriber.payloads == []
    client.drop(expiry_s=3.0)
    world.run(5)
    assert subscriber.payloads == [b"will"]


@pytest.mark.parametrize("expiry_s", [0.0, 3600.0])
def test_a_will_is_said_though_its_client_is_back_before_anything_else_happens(expiry_s: float) -> None:
    world = World(2)
    subscriber = Client(world, "s").connect("b2").subscribe("a/#", qos=1)
    client = Client(world, "w").connect("b1", expiry_s=expiry_s, will=will())
    world.run(10)
    world.sites["b1"].crash()
    world.run(5)
    world.sites["b1"].start()
    client.connect("b1", expiry_s=expiry_s, will=will())
    world.run(10)
    assert subscriber.payloads == [b"will"]


@pytest.mark.parametrize(
    ("expiry_s", "delay_s", "clean", "said"),
    [(3600.0, 0.0, False, True), (3600.0, 5.0, False, False), (3600.0, 5.0, True, True), (0.0, 5.0, False, True)],
)
def test_whoever_connects_a_second_time_ends_the_first_with_its_will_where_that_is_due(
    expiry_s: float, delay_s: float, clean: bool, said: bool
) -> None:
    """At once where it asked for no delay, and where its session ends with the connection (MQTT 5, 3.1.4-3)."""
    world = World()
    subscriber, _ = pair(world, qos=1)
    Client(world, "w").connect("b1", expiry_s=expiry_s, will=will(delay_s))
    Client(world, "w").connect("b1", clean=clean, expiry_s=expiry_s)
    world.run(20)
    assert subscriber.payloads == [b"will"] * said


def test_a_will_is_said_where_the_broker_itself_vanished() -> None:
    world = World()
    subscriber, _ = pair(world, qos=1)
    Client(world, "w").connect("b1", will=will(2.0))
    world.run()
    again(world)
    subscriber.drop(notice_s=None).connect("b1")
    world.run()
    assert subscriber.payloads == [b"will"]


def test_an_audience_is_straight_only_where_nothing_else_is_to_be_done() -> None:
    world = World()
    broker = world.sites["b1"].broker
    subscriber, _ = pair(world)
    straight = broker.audience("a/b").straight
    assert straight == (subscriber.connection,)
    before = broker.generation
    subscriber.drop()
    assert broker.generation > before
    assert broker.audience("a/b").straight == ()
    subscriber.connect("b1").subscribe("b", identifier=1).subscribe("c", group="g").subscribe("d", "n = 1")
    assert [broker.audience(topic).straight for topic in "bc"] == [None] * 2
    asked = broker.audience("d")
    assert (asked.straight, len(asked.asking)) == ((), 1)
    assert subscriber.connection is not None
    wanting = broker.outlets(asked.asking, [{"n": 1}, {"n": 2}], [subscriber.connection])
    assert wanting == [{subscriber.connection}, set()]
    broker.on_published = lambda publication: None
    assert broker.audience("a/b").straight is None


def test_who_wants_many_events_for_their_content_is_told_by_outlet_where_all_are_here() -> None:
    """The index answers for a batch. A client comes once for each event, and those who are away not at all."""
    world = World()
    broker = world.sites["b1"].broker
    clients = [Client(world, f"s{number}").connect("b1") for number in range(4)]
    for number in range(80):
        clients[number % 4].subscribe("d", f"n BETWEEN {number // 2} AND {number // 2 + 5}", key=f"d{number}")
    clients[3].drop()
    outlets = [one.connection for one in clients[:3] if one.connection is not None]
    events: list[dict[str, Value]] = [{"n": at % 50} for at in range(60)]
    wanted = {
        outlet: [
            at
            for at, event in enumerate(events)
            if any(one // 2 <= int(str(event["n"])) <= one // 2 + 5 for one in range(number, 80, 4))
        ]
        for number, outlet in enumerate(outlets)
    }
    assert broker.outlets(broker.audience("d").asking, events, outlets) == wanted
    clients[0].subscribe("d", "n BETWEEN 7 AND 8", group="g")
    told = broker.outlets(broker.audience("d").asking, events, outlets)
    assert isinstance(told, list), "somebody is beyond, and the broker must see it"
    by_outlet = {outlet: [at for at, one in enumerate(told) if outlet in one] for outlet in outlets}
    assert by_outlet == wanted
    assert [at for at, one in enumerate(told) if BEYOND in one] == [7, 8, 57, 58]


def test_an_archive_sees_every_publication() -> None:
    world = World()
    _, publisher = pair(world)
    seen: list[bytes] = []
    world.sites["b1"].broker.on_published = lambda publication: seen.append(publication.payload)
    publisher.publish("a", b"1")
    publisher.publish("b", b"2", 2)
    assert seen == [b"1", b"2"]


def test_traces_tell_what_happened_where_they_are_asked_for() -> None:
    world = World(tracing=True)
    _, publisher = pair(world)
    publisher.publish("a/b", b"1")
    assert [record.kind for record in world.sites["b1"].host.records] == [
        "attached", "attached", "published", "delivered"
    ]  # fmt: skip


def test_counts_say_how_things_are() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=1)
    publisher.publish("a/b", b"1", 1)
    world.run()
    counts = world.sites["b1"].broker.counts
    assert (counts.sessions, counts.connected, counts.subscriptions, counts.waiting) == (2, 2, 1, 0)
    assert (counts.published, counts.delivered) == ([0, 1, 0], [0, 1, 0])
    subscriber.drop(expiry_s=0)
    assert (counts.sessions, counts.connected, counts.subscriptions) == (1, 1, 0)


def test_others_get_what_they_want_and_nothing_else() -> None:
    world = World(3)
    wide = Client(world, "s").connect("b2").subscribe("a/#", qos=1)
    narrow = Client(world, "t").connect("b3").subscribe("a/#", "n > 5", qos=1)
    publisher = Client(world, "p").connect("b1")
    world.run()
    publisher.publish("a/x", b'{"n": 6}', 1)
    publisher.publish("a/x", b'{"n": 5}', 1)
    publisher.publish("b/x", b'{"n": 6}', 1)
    world.run()
    assert wide.payloads == [b'{"n": 6}', b'{"n": 5}']
    assert narrow.payloads == [b'{"n": 6}']
    assert [world.sites[name].broker.counts.taken for name in ("b2", "b3")] == [2, 1]


def test_retained_publications_reach_subscribers_at_every_broker_new_ones_too() -> None:
    world = World(3)
    world.sites["b3"].known = {"b3"}
    for name in ("b1", "b2"):
        world.sites[name].known = {"b1", "b2"}
    Client(world, "p").connect("b1").publish("a", b"1", 1, retain=True)
    world.run()
    assert Client(world, "s").connect("b2").subscribe("#").got == []
    for site in world.sites.values():
        site.known = {"b1", "b2", "b3"}
        site.wire.on_change()
    world.run(20)
    late = [Client(world, f"s{name}").connect(name).subscribe("#", qos=1) for name in world.sites]
    world.run()
    assert [client.payloads for client in late] == [[b"1"]] * 3


def test_brokers_agree_on_the_last_retained_one_whatever_the_order() -> None:
    for seed in range(20):
        world = World(3, seed)
        clients = [Client(world, f"p{name}").connect(name) for name in world.sites]
        for n in range(4):
            for client in clients:
                client.publish("a", b"" if n == 3 and client is clients[0] else b"%d" % n, 1, retain=True)
            world.run(0.03)
        world.run(30)
        late = [Client(world, f"s{name}").connect(name).subscribe("a", qos=1) for name in world.sites]
        world.run()
        assert len({tuple(d.publication.id for d in client.got) for client in late}) == 1


def test_a_broker_without_conditions_loads_no_compiled_index() -> None:
    code = (
        "import sys; from godwit.sim.brokers.world import World\n"
        "from godwit.sim.brokers.client import Client\n"
        "w = World(1); s = Client(w, 's').connect('b1').subscribe('a'); s.publish('a'); w.run(); assert s.got\n"
        "print({'numba', 'pyarrow'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_the_will_of_a_client_without_a_lasting_session_survives_a_crash() -> None:
    world = World()
    Client(world, "s").connect("b1").subscribe("#", qos=1).drop()
    will = Will(Publication("w", 0, "gone", b"gone", 1), delay_s=60.0)
    Client(world, "w").connect("b1", expiry_s=0.0, will=will)
    Client(world, "v").connect("b1", expiry_s=0.0, will=will).drop(will=False)
    world.run()
    again(world)
    again(world)
    world.run()
    back = Client(world, "s").connect("b1")
    world.run()
    assert back.payloads == [b"gone"], "once, and of nobody who said goodbye"


def test_retained_topics_are_bounded_and_what_is_beyond_is_refused() -> None:
    world = World()
    broker = world.sites["b1"].broker
    broker._switch.retained.capacity = Capacity(retained_max=2, retained_bytes_max=1_000)
    publisher = Client(world, "p").connect("b1")
    for topic, payload in (("a", b"1"), ("b", b"1"), ("c", b"1"), ("a", b"2"), ("b", b""), ("a", bytes(1_000))):
        publisher.publish(topic, payload, 1, retain=True)
    world.run()
    assert [reason for _, reason in publisher.accepts] == [
        Reason.OK,
        Reason.OK,
        Reason.QUOTA_EXCEEDED,
        Reason.OK,
        Reason.OK,
        Reason.QUOTA_EXCEEDED,
    ]
    assert broker.counts.refused["retained_full"] == 2
    assert Client(world, "s").connect("b1").subscribe("#") is not None
    assert broker.retained_count == 2


def test_sessions_are_bounded_and_those_that_are_there_come_back() -> None:
    world = World()
    broker = world.sites["b1"].broker
    broker.capacity = Capacity(sessions_max=2)
    first = Client(world, "a").connect("b1")
    world.run(1)
    first.drop()
    Client(world, "b").connect("b1")
    late = Client(world, "c").connect("b1")
    assert late.closed == [Reason.QUOTA_EXCEEDED]
    assert broker.counts.refused["sessions_full"] == 1
    assert Client(world, "a").connect("b1").presents == [True]

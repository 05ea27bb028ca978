"""Sessions that move between brokers: nothing lost, nothing twice, in order, and nothing left behind."""

from __future__ import annotations

from typing import Any

import pytest
from tests.seeds import few

from godwit.protocols.broker import messages
from godwit.protocols.broker.api import Opening, Reason, Will
from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.broker.publication import Publication
from godwit.sim.brokers.chaos import Chaos, Wild
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.site import Site
from godwit.sim.brokers.world import World

SEEDS_TOGETHER = 20


@pytest.mark.parametrize("first", few(1, range(0, 60, SEEDS_TOGETHER)))
def test_hopping_subscribers_get_everything_once_and_in_order(first: int) -> None:
    _run(range(first, first + SEEDS_TOGETHER), crashes=False)


@pytest.mark.parametrize("first", few(2, range(1000, 1140, SEEDS_TOGETHER)))
def test_crashing_brokers_lose_and_repeat_nothing(first: int) -> None:
    _run(range(first, first + SEEDS_TOGETHER))


@pytest.mark.parametrize("first", few(1, range(2000, 2060, SEEDS_TOGETHER)))
def test_publishers_that_hop_are_heard_once(first: int) -> None:
    _run(range(first, first + SEEDS_TOGETHER), publishers_hop=True)


@pytest.mark.parametrize("first", range(3000, 3008, 4))
def test_all_of_it_holds_over_the_tree_fabric_too(first: int) -> None:
    _run(range(first, first + 4), trees=True)


@pytest.mark.parametrize("first", few(2, range(0, 120, SEEDS_TOGETHER)))
def test_whatever_clients_do_nothing_breaks_and_nothing_is_left_behind(first: int) -> None:
    for seed in range(first, first + SEEDS_TOGETHER):
        wild = Wild(seed)
        try:
            wild.run()
            wild.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def _run(seeds: range, **options: Any) -> None:
    for seed in seeds:
        chaos = Chaos(seed, **options)
        try:
            chaos.run()
            chaos.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed} {options}: {error}") from error


def settled_world(count: int = 3) -> tuple[World, Client, Client]:
    """A subscriber at b1, a publisher at b2, and all brokers know what it wants."""
    world = World(count)
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    publisher = Client(world, "p").connect("b2")
    world.run()
    return world, subscriber, publisher


def test_two_sessions_of_a_client_that_go_the_same_way_do_not_go_under_one_epoch() -> None:
    """In a world of long ago (`Wild(28)`) they did, since whoever asked for a session decided its epoch. The receiver
    had asked all brokers to turn under that epoch already, asked nobody again, and the second shadow stayed for ever.
    """
    world, _, _ = settled_world()
    broker = world.sites["b1"].broker
    moves, registry, first = broker._moves, broker._registry, broker.sessions["s"]
    epoch = first.standing.epoch
    world.sites["b2"].crash()
    world.sites["b3"].crash()
    moves.leaving.transfer(first, "b2")
    second = registry.create(Opening(client="s", clean=False, expiry_s=3600.0), epoch)
    moves.leaving.transfer(second, "b2")
    gone = [content.epoch for _, _, content in world.said if isinstance(content, messages.Session)]
    assert len(set(gone)) == len(gone) == 2
    assert len(broker.shadows["s"]) == 2
    for name in ("b2", "b3"):
        world.sites[name].start()
    world.run(60)
    nothing_is_left(world)


def nothing_is_left(world: World) -> None:
    for site in [site for site in world.sites.values() if site.up]:
        assert not site.broker.shadows
        for session in site.broker.sessions.values():
            assert not session.inflow.gates
            assert not session.inflow.upstreams


def test_what_waited_at_the_old_broker_follows_to_the_new_one() -> None:
    world, subscriber, publisher = settled_world()
    subscriber.drop()
    for payload in (b"1", b"2"):
        publisher.publish("a/x", payload, qos=2)
    world.run()
    subscriber.connect("b3")
    world.run(20)
    assert subscriber.payloads == [b"1", b"2"]
    assert subscriber.presents == [False, True]
    nothing_is_left(world)


def test_the_old_connection_ends_when_the_client_appears_elsewhere() -> None:
    world, subscriber, publisher = settled_world()
    subscriber.drop(notice_s=None)
    connection_lost_on_one_side = world.sites["b1"].broker.sessions["s"].outlet
    assert connection_lost_on_one_side is not None
    subscriber.connect("b3")
    world.run(20)
    assert subscriber.closed == [Reason.SESSION_TAKEN_OVER]
    assert "s" not in world.sites["b1"].broker.sessions
    assert subscriber.inside
    publisher.publish("a/x", b"1", qos=1)
    world.run()
    assert subscriber.payloads == [b"1"]


@pytest.mark.parametrize("previous", ["", "b1"])
@pytest.mark.parametrize("expiry_s", [0.0, 100.0])
def test_a_session_that_ends_with_its_connection_is_not_handed_on_to_another_broker(
    expiry_s: float, previous: str
) -> None:
    """Though the connection is still open when its client appears elsewhere, and says where it was."""
    world = World(3)
    old = Client(world, "s").connect("b1", expiry_s=0).subscribe("a/#", qos=1)
    publisher = Client(world, "p").connect("b2")
    world.run()
    new = Client(world, "s").connect("b3", expiry_s=expiry_s, previous=previous)
    world.run(20)
    assert new.presents == [False]
    publisher.publish("a/x", b"1", qos=1)
    world.run(20)
    assert new.payloads == []
    if expiry_s or previous:  # else nobody has told b1 of it, and there are two clients of one name
        assert old.closed == [Reason.SESSION_TAKEN_OVER]
        assert "s" not in world.sites["b1"].broker.sessions
    nothing_is_left(world)


def test_a_delivery_under_way_is_repeated_by_the_new_broker_under_its_number() -> None:
    world, subscriber, publisher = settled_world()
    subscriber.holding = True
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    (first,) = subscriber.all
    subscriber.holding = False
    subscriber.drop().connect("b3")
    world.run(20)
    assert [(d.number, d.again) for d in subscriber.all] == [(first.number, False), (first.number, True)]
    assert subscriber.payloads == [b"1"]


def test_a_release_under_way_is_repeated_by_the_new_broker() -> None:
    world, subscriber, publisher = settled_world()
    publisher.publish("a/x", b"1", qos=2)
    while not subscriber.got:
        world.run(0.01)
    subscriber.drop(notice_s=None)
    world.run(1)
    subscriber.connect("b2")
    world.run(20)
    assert subscriber.payloads == [b"1"]
    assert not subscriber.incoming


def test_a_packet_taken_by_the_old_broker_is_only_acknowledged_by_the_new_one() -> None:
    world, subscriber, publisher = settled_world()
    publisher.publish("a/x", b"1", qos=2)
    publisher.drop(notice_s=None)
    world.run()
    publisher.connect("b3")
    world.run(20)
    assert subscriber.payloads == [b"1"]
    assert not publisher.outgoing


def test_something_else_under_an_identifier_taken_by_the_old_broker_is_new_at_the_new_one() -> None:
    world, subscriber, publisher = settled_world()
    publisher.publish("a/x", b"1", qos=2)
    publisher.drop(notice_s=None)
    world.run()
    publisher.outgoing.clear()  # it has finished it in another session, which is out of reach
    publisher.number = 0
    publisher.connect("b3")
    world.run(20)
    assert publisher.session.queue.incoming
    publisher.publish("a/x", b"2", qos=2)
    world.run(20)
    assert subscriber.payloads == [b"1", b"2"]
    assert not publisher.session.queue.incoming


def test_the_interest_of_the_old_broker_shrinks() -> None:
    world, subscriber, _ = settled_world()
    subscriber.drop().connect("b3")
    world.run(20)
    assert world.sites["b2"].heard["b1"][1] == ()
    assert world.sites["b2"].heard["b3"][1] != ()


def test_a_client_that_leaves_before_it_is_let_in_finds_its_session_there() -> None:
    world, subscriber, publisher = settled_world()
    subscriber.drop().connect("b3").drop()
    publisher.publish("a/x", b"1", qos=2)
    world.run(20)
    assert "s" in world.sites["b3"].broker.sessions
    subscriber.connect("b3")
    world.run()
    assert subscriber.payloads == [b"1"]
    assert subscriber.presents == [False, True]


def test_a_client_that_hung_up_while_its_session_was_waited_for_is_not_fetched_back() -> None:
    """The broker that still waits hears that the client is in elsewhere."""
    world, subscriber, _ = settled_world()
    world.sites["b1"].crash()
    subscriber.drop().connect("b2")
    world.run(1)
    subscriber.drop().connect("b3", clean=True)
    world.run(20)
    assert subscriber.closed == []
    assert "s" in world.sites["b3"].broker.sessions
    assert "s" not in world.sites["b2"].broker.sessions


def test_a_client_at_two_brokers_at_once_ends_with_one_session() -> None:
    world, subscriber, publisher = settled_world(4)
    subscriber.drop().connect("b3").drop(notice_s=None).connect("b4")
    publisher.publish("a/x", b"1", qos=2)
    world.run(30)
    assert [name for name, site in world.sites.items() if "s" in site.broker.sessions] == ["b4"] or subscriber.closed
    subscriber.drop(notice_s=None).connect("b4")
    world.run(30)
    assert subscriber.payloads == [b"1"]
    nothing_is_left(world)


@pytest.mark.parametrize("back_at", ["b2", "b3"])
def test_a_client_that_never_heard_of_its_new_session_does_not_take_it_for_the_lost_one(back_at: str) -> None:
    """It knocked once without its token, by which its broker could have known that it had another session before."""
    world, subscriber, _ = settled_world()
    subscriber.keeps_token = True
    subscriber.drop().connect("b2")
    world.run()
    assert world.sites["b2"].broker.end_session("s", "its disk is lost")
    world.run()
    lost = subscriber.token
    subscriber.drop().connect("b2", token="").drop()
    world.run(1)
    subscriber.connect(back_at, token=f"?{lost}")
    world.run(20)
    assert subscriber.presents == [False, True, False, False]


def test_where_the_old_broker_is_away_the_client_gets_a_new_session_and_later_what_the_old_one_kept() -> None:
    world, subscriber, publisher = settled_world()
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    world.sites["b1"].crash()
    subscriber.connect("b3")
    world.run(9)
    assert not subscriber.inside
    world.run(2)
    assert subscriber.presents == [False, False]
    assert subscriber.payloads == []
    world.sites["b1"].start()
    world.run(30)
    assert subscriber.payloads == [b"1"]
    nothing_is_left(world)


def test_a_clean_start_elsewhere_forgets_the_old_session() -> None:
    world, subscriber, publisher = settled_world()
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    subscriber.connect("b3", clean=True)
    world.run(20)
    assert subscriber.payloads == []
    assert [name for name, site in world.sites.items() if "s" in site.broker.sessions] == ["b3"]


def test_what_an_absent_broker_kept_is_not_for_a_client_that_started_clean() -> None:
    world, subscriber, publisher = settled_world()
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    world.sites["b1"].crash()
    subscriber.connect("b3").drop(notice_s=None).connect("b3", clean=True)
    world.run(5)
    world.sites["b1"].start()
    world.run(30)
    assert subscriber.payloads == []
    nothing_is_left(world)


def test_a_broker_that_is_met_later_turns_from_what_was_before_a_clean_start() -> None:
    """It has to, though nothing of that is for the newer session: what stays of the older waits for it."""
    world = World(3)
    b1, b2, b3 = world.sites.values()
    _know(world, {b1: "b1 b2", b2: "b1 b2", b3: "b3"})
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    publisher = Client(world, "p").connect("b2")
    world.run()
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    subscriber.connect("b3", clean=True)
    world.run(1)
    _know(world, {b1: "b1 b2 b3", b3: "b1 b3"})
    world.run(20)
    assert b1.broker.shadows
    _know(world, {b2: "b1 b2 b3", b3: "b1 b2 b3"})
    world.run(20)
    assert subscriber.payloads == []
    nothing_is_left(world)


def test_what_was_had_since_a_clean_start_does_not_come_again_where_a_calendar_was_behind() -> None:
    """By the calendars the client was there before it started clean. What waits there is not for it, but it has had
    the rest."""
    world = World(4)
    world.sites["b2"].offset_s = -600.0
    roamer = Client(world, "s").connect("b3").subscribe("a/#", qos=2)
    publisher = Client(world, "p").connect("b4")
    world.run()
    roamer.drop()
    world.cut("b1", "b2")
    world.cut("b2", "b3")
    world.run(1)
    roamer.connect("b1", clean=True).subscribe("a/#", qos=2)
    world.run(1)
    roamer.drop(notice_s=None).connect("b2")
    world.run(15)
    roamer.subscribe("a/#", qos=2)
    world.run(2)
    publisher.publish("a/x", b"1", qos=2)
    world.run(2)
    assert roamer.presents == [False, False, False]
    assert roamer.payloads == [b"1"]
    world.heal_all()
    world.run(20)
    roamer.keeps_token = True
    roamer.drop().connect("b2")
    world.run(20)
    publisher.publish("a/x", b"2", qos=2)
    world.run(20)
    assert roamer.payloads == [b"1", b"2"]
    nothing_is_left(world)


def test_what_a_member_of_a_group_had_not_got_before_a_clean_start_is_for_another_member() -> None:
    world = World(4)
    world.sites["b2"].offset_s = -600.0
    roamer = Client(world, "s").connect("b3").subscribe("a/#", qos=2)
    publisher = Client(world, "p").connect("b4")
    world.run()
    roamer.drop()
    world.cut("b1", "b2")
    world.cut("b2", "b3")
    world.run(1)
    roamer.connect("b1", clean=True).subscribe("a/#", qos=2)
    world.run(1)
    roamer.drop(notice_s=None).connect("b2")
    world.run(15)
    roamer.subscribe("a/#", qos=2).subscribe("c/#", qos=1, group="g")
    world.run(2)
    publisher.publish("a/x", b"1", qos=2)
    world.run(2)
    roamer.drop()
    publisher.publish("c/x", b"2", qos=2)
    world.run(2)
    member = Client(world, "t").connect("b4").subscribe("c/#", qos=1, group="g")
    world.run(2)
    assert member.payloads == []
    world.heal_all()
    world.run(20)
    assert (roamer.payloads, member.payloads) == ([b"1"], [b"2"])
    assert "s" not in world.sites["b2"].broker.sessions


def test_no_copy_becomes_the_session_while_an_older_one_waits_for_a_broker_to_turn() -> None:
    """The one that is copied asks for that, and is over at once where nothing is passed on to the copy."""
    world = World(4, handoff="proactive", likely={"b3": ("b2",)})
    b1, b2, b3, b4 = world.sites.values()
    _know(world, {b1: "b1 b4", b4: "b1 b4", b3: "b2 b3", b2: "b2 b3"})
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    subscriber.keeps_token = True
    world.run()
    subscriber.drop()
    world.run()
    subscriber.connect("b3", clean=True).subscribe("a/#", qos=2)
    world.run()
    subscriber.drop()
    world.run()
    assert b2.broker._registry.copies
    _know(world, {b1: "b1 b2 b3 b4", b2: "b1 b2 b3", b3: "b1 b2 b3"})
    world.run(20)
    assert b1.broker.shadows
    subscriber.connect("b2")
    world.run(20)
    assert subscriber.presents == [False, False, True]
    _know(world, {b2: "b1 b2 b3 b4", b3: "b1 b2 b3 b4", b4: "b1 b2 b3 b4"})
    world.run(20)
    nothing_is_left(world)


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
def test_a_dead_connection_does_not_take_the_session_from_its_client_without_end(handoff: Handoff) -> None:
    """Each of the two shows a token by which the client was last at the other's broker."""
    world = World(2, handoff=handoff)
    client = Client(world, "s").connect("b1").subscribe("a/#", qos=1)
    first = client.session.carried.token
    world.run()
    client.drop().connect("b2", token=first)
    world.run()
    second = client.session.carried.token
    dead = Client(world, "s").connect("b1", token=second)
    client.connect("b2", token=f"?{second}")
    world.run(0.01)
    client.drop(notice_s=None)
    for _ in range(5):
        if client.connection is None:  # it was taken over, and is alive
            client.connect("b2", token=first)
        world.run(1)
    assert dead.closed == [Reason.SESSION_TAKEN_OVER]
    assert client.inside
    client.drop()
    world.run(20)
    nothing_is_left(world)


def _know(world: World, known: dict[Site, str]) -> None:
    for site, names in known.items():
        site.known = set(names.split())
        site.wire.on_change()
    world.run(1)


def test_a_session_that_ends_is_looked_for_no_more() -> None:
    world, subscriber, _ = settled_world()
    subscriber.drop(expiry_s=1.0)
    world.run(20)
    assert all("s" not in site.broker.sessions for site in world.sites.values())
    subscriber.connect("b3")
    assert subscriber.inside or subscriber.presents == [False, False]


def test_a_broker_that_is_new_hears_where_sessions_are() -> None:
    world = World(2)
    one, other = world.sites.values()
    for site in (one, other):
        site.known = {site.name}
    world.run(1)
    Client(world, "s").connect("b1").subscribe("a/#").drop()
    for site in (one, other):
        site.known = {"b1", "b2"}
        site.wire.on_change()
    world.run(20)
    roamer = Client(world, "s").connect("b2")
    world.run(20)
    assert roamer.presents == [True]


def test_a_broker_that_was_given_up_holds_nobody_back() -> None:
    world, subscriber, publisher = settled_world(4)
    world.sites["b4"].crash()
    subscriber.drop().connect("b3")
    world.run(20)
    assert world.sites["b1"].broker.shadows
    world.give_up("b4")
    world.run(20)
    nothing_is_left(world)
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    assert subscriber.payloads == [b"1"]


def test_a_will_with_delay_is_not_said_where_the_client_is_back_elsewhere_in_time() -> None:
    world, subscriber, _ = settled_world()
    will = Will(Publication("w", 0, "a/will", b"gone", 1), delay_s=5.0)
    leaving = Client(world, "w").connect("b2", will=will)
    world.run()
    leaving.drop(will=True).connect("b3", will=will)
    world.run(20)
    assert subscriber.payloads == []
    leaving.drop(will=True)
    world.run(20)
    assert subscriber.payloads == [b"gone"]

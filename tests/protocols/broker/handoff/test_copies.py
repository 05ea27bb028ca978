"""Copies of resting sessions: who gets them, what is in them, and when they go."""

from __future__ import annotations

from itertools import combinations
from typing import cast

import pytest
from tests.protocols.broker.resting import copies, nothing_is_left, places, resting_world, talk

from godwit.protocols.broker import messages
from godwit.protocols.broker.interest.stated import LINGER_S
from godwit.protocols.broker.messages import Fetch
from godwit.protocols.host import NodeId
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.world import Even, World


def test_a_session_that_comes_to_rest_is_copied_and_all_brokers_turn_to_the_copy_too() -> None:
    world = Even(3, handoff="proactive", likely={"b1": ("b3",)})
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    world.run()
    since = len(world.said)
    subscriber.drop()
    world.run()
    assert talk(world, since, "Copy", "Turn", "Turned", "Through") == [
        "b1 > b3: Copy",
        "b3 > b1 b2: Turn",
        "b3 > b1: Turned",
        "b1 > b3: Turned",
        "b1 > b3: Through",
        "b2 > b1 b3: Turned",
        "b1 > b3: Through",
        "b1 > b3: Through",
    ]
    assert set(copies(world)) == {"b3"}
    assert world.sites["b1"].broker.counts.copies_made == 1
    assert world.sites["b3"].broker.counts.copies == 1


@pytest.mark.feature("proactive-handoff F13")
def test_a_copy_collects_by_itself_what_the_session_collects_too() -> None:
    world, subscriber, publisher = resting_world()
    since = len(world.said)
    publisher.publish("a/x", b"1", qos=1)
    world.run()
    assert talk(world, since, "Forwarded") == []
    for copy in copies(world).values():
        assert [item.publication.payload for item in copy.session.queue.waiting] == [b"1"]
    (kept,) = world.sites["b1"].broker.sessions["s"].queue.waiting
    assert kept.publication.payload == b"1"
    subscriber.connect("b1")
    world.run()
    assert subscriber.payloads == [b"1"]
    nothing_is_left(world)


@pytest.mark.feature("proactive-handoff F14")
@pytest.mark.parametrize("after_s", [at / 100 for at in range(40)])
def test_no_event_falls_between_while_the_copies_catch_up(after_s: float) -> None:
    """Published before, at and after each moment at which a broker turns; some at every broker."""
    world = Even(3, handoff="proactive")
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    publishers = [Client(world, f"p{at}").connect(at) for at in world.names]
    world.run()
    subscriber.drop()
    world.run(after_s)
    for publisher in publishers:
        publisher.publish("a/x", publisher.name.encode(), qos=2)
    world.run(0.17)
    subscriber.connect("b3")
    world.run()
    assert sorted(subscriber.payloads) == [b"pb1", b"pb2", b"pb3"]
    subscriber.drop()
    world.run()
    subscriber.connect("b2")
    world.run()
    nothing_is_left(world)


@pytest.mark.feature("proactive-handoff F15")
def test_a_client_that_comes_back_to_its_broker_makes_the_copies_go() -> None:
    world, subscriber, _ = resting_world()
    assert world.sites["b2"].heard["b3"][1] != ()
    subscriber.connect("b1")
    world.run()
    nothing_is_left(world)
    world.run(LINGER_S)
    assert world.sites["b2"].heard["b3"][1] == ()


@pytest.mark.parametrize("payload_b", [100, 10_000])
def test_a_copy_for_which_there_is_no_room_is_refused_and_its_client_served_as_before(payload_b: int) -> None:
    world, subscriber, publisher = resting_world(copies_bytes_max=6_000)
    for _ in range(5):
        publisher.publish("a/x", b"x" * payload_b, qos=2)
        world.run()
    fits = payload_b == 100
    assert set(copies(world)) == ({"b2", "b3"} if fits else set())
    assert world.sites["b3"].broker.counts.copies_refused == (0 if fits else 1)
    assert not fits or world.sites["b3"].broker._moves.holding.bytes < 6_000
    subscriber.connect("b3")
    world.run()
    assert len(subscriber.payloads) == 5
    assert world.sites["b3"].broker.counts.handoffs_missed == (0 if fits else 1)
    nothing_is_left(world)


def test_copies_out_survive_a_crash_of_the_old_broker() -> None:
    world, subscriber, publisher = resting_world(World)
    world.sites["b1"].crash()
    world.run(1)
    world.sites["b1"].start()
    world.run()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    since = len(world.said)
    subscriber.connect("b3")
    world.run(20)
    assert talk(world, since, "Session", "Given") == ["b1 > b3: Given"]
    assert subscriber.payloads == [b"1"]
    nothing_is_left(world)


def test_what_a_client_unsubscribes_while_it_is_in_is_not_in_later_copies() -> None:
    world, subscriber, publisher = resting_world()
    subscriber.connect("b1")
    subscriber.subscribe("b/#", qos=2)
    world.sites["b1"].broker.unsubscribe(subscriber.session, ["a/#"])
    subscriber.drop()
    world.run()
    assert [*copies(world)["b3"].session.subscriptions] == ["b/#"]
    for topic in ("a/x", "b/x"):
        publisher.publish(topic, topic.encode(), qos=2)
    subscriber.connect("b3")
    world.run()
    assert subscriber.payloads == [b"b/x"]


@pytest.mark.feature("proactive-handoff F21")
@pytest.mark.parametrize("cut_off", [False, True])
def test_copies_end_with_the_session_even_where_the_holder_is_not_told(cut_off: bool) -> None:
    world = Even(3, handoff="proactive")
    subscriber = Client(world, "s").connect("b1", expiry_s=30.0).subscribe("a/#", qos=2)
    world.run()
    subscriber.drop()
    world.run()
    assert set(copies(world)) == {"b2", "b3"}
    if cut_off:
        world.sites["b1"].crash()
    world.run(40)
    assert not copies(world)
    assert world.sites["b2"].heard["b3"][1] == ()


def test_shared_subscriptions_are_not_copied() -> None:
    world = Even(3, handoff="proactive")
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2, group="g")
    world.run()
    subscriber.drop()
    world.run()
    assert not copies(world)


def test_reactive_brokers_make_no_copies_and_fetch() -> None:
    world, subscriber, publisher = resting_world(handoff="reactive")
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    assert not copies(world)
    since = len(world.said)
    subscriber.connect("b3")
    world.run()
    assert talk(world, since, "Session", "Given") == ["b1 > b3: Session"]
    assert subscriber.payloads == [b"1"]


def test_with_durable_sessions_each_broker_keeps_its_own() -> None:
    world, subscriber, publisher = resting_world(handoff="durable")
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    subscriber.connect("b3")
    assert subscriber.presents == [False, False]
    subscriber.subscribe("a/#", qos=2)
    world.run()
    publisher.publish("a/x", b"2", qos=2)
    world.run()
    assert subscriber.payloads == [b"2"]
    subscriber.drop().connect("b1")
    world.run()
    assert subscriber.payloads == [b"2", b"1", b"2"]
    assert places(world) == ["b1", "b3"]
    assert not talk(world, 0, "Place", "Fetch")


def test_retained_publications_that_come_after_the_client_has_left_are_in_the_copies_too() -> None:
    world = Even(3, handoff="proactive")
    Client(world, "p").connect("b1").publish("a/x", b"kept", qos=1, retain=True)
    world.run()
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2).drop()
    world.run()
    subscriber.connect("b3")
    world.run()
    assert subscriber.payloads == [b"kept"]
    assert world.sites["b3"].broker.counts.copies_used == 1


@pytest.mark.parametrize("after_s", [0.0, 0.04, 0.08, 0.12, 0.16, 1.0])
def test_a_broker_that_is_new_is_heard_once_at_the_copies_too(after_s: float) -> None:
    world = Even(4, handoff="proactive")
    for name, site in world.sites.items():
        site.known = {"b4"} if name == "b4" else {"b1", "b2", "b3"}
        site.wire.on_change()
    world.run()
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    world.run()
    subscriber.drop()
    world.run(after_s)
    for site in world.sites.values():
        site.known = set(world.names)
        site.wire.on_change()
    newcomer = Client(world, "p").connect("b4")
    world.run(0.11)
    wanted = [newcomer.publish("a/x", b"%d" % at, qos=2).payload for at in range(3)]
    world.run(0.11)
    subscriber.connect("b3")
    wanted += [newcomer.publish("a/x", b"%d" % at, qos=2).payload for at in range(3, 6)]
    world.run(20)
    assert subscriber.payloads == [one for one in wanted if one in subscriber.payloads]
    assert wanted[3:] == subscriber.payloads[-3:]
    nothing_is_left(world)


@pytest.mark.parametrize("after_s", [0.06, 1.0])
@pytest.mark.parametrize("lost", ["b1", "b2", "b4"])
def test_a_broker_that_is_given_up_holds_up_no_copy(lost: str, after_s: float) -> None:
    """The old broker, a holder beside, or one that only publishes."""
    world = Even(4, handoff="proactive", likely={"b1": ("b2", "b3")})
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    publisher = Client(world, "p").connect("b3")
    world.run()
    subscriber.drop()
    world.run(after_s)
    publisher.publish("a/x", b"1", qos=2)
    world.run(after_s)
    world.sites[lost].crash()
    world.run(1)
    subscriber.connect("b3")
    world.run(1)
    world.give_up(lost)
    world.run(20)
    publisher.publish("a/x", b"2", qos=2)
    world.run(20)
    assert subscriber.payloads == [b"1", b"2"]
    nothing_is_left(world)


def _give_up_at(world: World, at: NodeId, broker: NodeId) -> None:
    """Before others do."""
    site = world.sites[at]
    site.known.discard(broker)
    site.heard.pop(broker)
    site.wire.on_change()
    world.run()


def _is_unfinished(world: World) -> bool:
    return any(any(site.broker.unfinished.values()) for site in world.sites.values() if site.up)


@pytest.mark.parametrize("retained", [False, True])
@pytest.mark.parametrize("first", ["b2", "b3"])
def test_what_a_client_had_out_of_one_copy_does_not_come_again_out_of_another(first: str, retained: bool) -> None:
    """It moved on to where the other is, and the broker that had made both is given up: there at once, or only when the
    session counts as confirmed."""
    world = Even(3, handoff="proactive")
    subscriber, publisher = Client(world, "s").connect("b1"), Client(world, "p").connect("b2")
    subscriber.keeps_token = subscriber.holding = True
    if not retained:
        subscriber.subscribe("a/#", qos=2)
        world.run()
    publisher.publish("a/x", b"1", qos=2, retain=retained)
    world.run()
    if retained:
        subscriber.subscribe("a/#", qos=2)
        world.run()
    subscriber.drop().holding = False
    world.run()
    world.sites["b1"].crash()
    subscriber.connect("b2")
    world.run(1)
    subscriber.drop().connect("b3")
    world.run()
    assert places(world) == list(copies(world)) == ["b3"]
    for at in sorted(("b2", "b3"), key=first.__ne__):
        _give_up_at(world, at, "b1")
    publisher.publish("a/x", b"2", qos=2)
    world.run()
    assert subscriber.payloads == [b"1", b"2"]
    assert not _is_unfinished(world)


def _copied_to_b3(count: int) -> tuple[World, Client, Client]:
    """As a resting world in which only b1 makes copies, and b3 alone has one. Something waits in it."""
    likely = {f"b{at}": ("b3",) if at == 1 else () for at in range(1, count + 1)}
    world = Even(count, handoff="proactive", session_wait_s=2.0, likely=likely)
    subscriber, publisher = Client(world, "s").connect("b1").subscribe("a/#", qos=2), Client(world, "p").connect("b2")
    subscriber.keeps_token = True
    world.run()
    subscriber.drop()
    world.run()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    return world, subscriber, publisher


def test_a_session_that_waits_for_a_broker_gets_what_is_in_the_copy_of_that() -> None:
    """It began elsewhere, and came to where the copy is."""
    world, subscriber, publisher = _copied_to_b3(3)
    world.sites["b1"].crash()
    subscriber.connect("b2")
    world.run(3)
    subscriber.subscribe("a/#", qos=2)
    publisher.publish("a/x", b"2", qos=2)
    world.run()
    subscriber.drop().connect("b3")
    world.run()
    assert subscriber.payloads == [b"2"]
    world.give_up("b1")
    world.run()
    assert subscriber.payloads == [b"2", b"1"]
    assert not _is_unfinished(world)


def test_a_copy_of_a_session_that_has_left_its_broker_since_brings_nothing() -> None:
    """Its client had there what is in the copy, and waits for that broker."""
    world, subscriber, _ = _copied_to_b3(5)
    world.cut("b1", "b3")
    subscriber.connect("b4")
    world.run(3)
    for name in ("b1", "b4"):
        world.sites[name].crash()
    subscriber.connect("b5")
    world.run(3)
    subscriber.subscribe("a/#", qos=2)
    world.run(1)
    subscriber.drop().connect("b3")
    world.run()
    assert places(world) == list(copies(world)) == ["b3"]
    world.give_up("b1")
    world.run()
    world.sites["b4"].start()
    world.run(30)
    assert subscriber.payloads == [b"1"]
    assert not _is_unfinished(world)


def test_a_copy_of_a_session_that_has_ended_brings_nothing() -> None:
    """Its broker lost its disk before that was told, and had made a copy of the next session."""
    names = ("b1", "b2", "b3")
    cluster = Cluster(names, combinations(names, 2), 0, StationOptions(foresight="everybody"))
    cluster.run(5)
    world = cast(World, cluster)
    subscriber, publisher = Client(world, "s").connect("b3").subscribe("a/#", qos=2), Client(world, "p").connect("b2")
    subscriber.keeps_token = True
    cluster.run(5)
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    cluster.run(5)
    cluster.cut("b1", "b2")
    cluster.cut("b1", "b3")
    subscriber.connect("b3")
    cluster.run(5)
    subscriber.drop(expiry_s=0.0).connect("b3").subscribe("a/#", qos=2)
    cluster.run(5)
    subscriber.drop()
    cluster.run(5)
    cluster.crash("b3")
    cluster.heal("b1", "b2")
    cluster.heal("b1", "b3")
    cluster.cut("b2", "b3")  # so that b1 hears first that b3 has lost its disk
    cluster.run(5)
    subscriber.connect("b2")
    cluster.run(1)
    subscriber.drop().connect("b1")
    cluster.run(5)
    assert set(copies(world)) == {"b1"}
    cluster.start("b3", keep_disk=False)
    cluster.run(30)
    assert subscriber.presents == [False, True, False, True, True]
    assert subscriber.payloads == [b"1"]
    assert not _is_unfinished(world)


def test_a_session_never_goes_on_under_the_epoch_of_copies_that_were_made_of_it() -> None:
    """A broker may have asked for it in the very millisecond in which some were made that are no longer good: those who
    turn to that copy late would be taken for turning to the session."""
    world, subscriber, _ = resting_world()
    dropped = copies(world)["b2"].epoch
    subscriber.connect("b1")
    world.run()
    subscriber.drop()
    world.run()
    last = copies(world)["b2"].epoch
    assert last > dropped
    world.sites["b1"].broker._moves.on_fetch("b2", Fetch("s", dropped))
    (moved,) = [content for _, _, content in world.said if isinstance(content, messages.Session)]
    assert moved.epoch not in {dropped, last}

"""Clients that find copies of their sessions: at once, everything once and in order, whatever fails meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.protocols.broker.resting import SlowWorld, copies, nothing_is_left, places, resting_world, talk
from tests.seeds import few

from godwit.sim.brokers.chaos import Chaos, Wild
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import Even, Paced, Slow, World

SEEDS_TOGETHER = 20


@pytest.mark.feature("proactive-handoff F24")
@pytest.mark.parametrize("first", few(1, range(5000, 5060, SEEDS_TOGETHER)))
def test_with_copies_hopping_subscribers_get_everything_once_and_in_order(first: int) -> None:
    _run(range(first, first + SEEDS_TOGETHER), crashes=False)


@pytest.mark.feature("proactive-handoff F24")
@pytest.mark.parametrize("first", few(2, range(6000, 6100, SEEDS_TOGETHER)))
def test_with_copies_crashing_brokers_lose_and_repeat_nothing(first: int) -> None:
    _run(range(first, first + SEEDS_TOGETHER))


@pytest.mark.parametrize("first", few(1, range(7000, 7040, SEEDS_TOGETHER)))
def test_with_copies_publishers_that_hop_are_heard_once(first: int) -> None:
    _run(range(first, first + SEEDS_TOGETHER), publishers_hop=True)


def test_with_copies_all_of_it_holds_over_the_tree_fabric_too() -> None:
    _run(range(8000, 8004), trees=True)


@pytest.mark.parametrize("first", few(1, range(500, 540, SEEDS_TOGETHER)))
def test_with_copies_whatever_clients_do_nothing_breaks_and_nothing_is_left_behind(first: int) -> None:
    for seed in range(first, first + SEEDS_TOGETHER):
        _check(f"seed {seed}", lambda seed=seed: Wild(seed, "proactive"))  # type: ignore[misc]


def _run(seeds: range, **options: bool) -> None:
    for seed in seeds:
        _check(f"seed {seed} {options}", lambda seed=seed: Chaos(seed, handoff="proactive", **options))  # type: ignore[misc]


def _check(name: str, chaos: Callable[[], Chaos]) -> None:
    world = chaos()
    try:
        world.run()
        world.check()
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error


@pytest.mark.feature("proactive-handoff F17")
def test_a_client_finds_its_copy_and_the_old_broker_sends_nothing_again() -> None:
    world, subscriber, publisher = resting_world()
    for payload in (b"1", b"2"):
        publisher.publish("a/x", payload, qos=2)
    world.run()
    since = len(world.said)
    subscriber.connect("b3")
    world.run()
    assert talk(world, since, "Fetch", "Session", "Given", "Forwarded", "Drop", "Place") == [
        "b3 > b1: Fetch",
        "b1 > b2: Drop",
        "b1 > b3: Given",
        "b3 > b1 b2: Place",
    ]
    publisher.publish("a/x", b"3", qos=2)
    world.run()
    assert subscriber.payloads == [b"1", b"2", b"3"]
    assert subscriber.presents == [False, True]
    assert world.sites["b3"].broker.counts.copies_used == 1
    assert world.sites["b1"].neighbors.moves == [("b3", ("b2", "b3"))]
    nothing_is_left(world)


def test_there_and_back_again() -> None:
    world, subscriber, publisher = resting_world()
    for at, name in enumerate(("b3", "b1", "b3", "b1")):
        publisher.publish("a/x", b"%d" % at, qos=2)
        subscriber.connect(name)
        world.run()
        assert places(world) == [name]
        subscriber.drop()
        world.run()
    assert subscriber.payloads == [b"0", b"1", b"2", b"3"]
    assert sum(site.broker.counts.copies_used for site in world.sites.values()) == 4


def test_a_client_that_returns_before_the_old_broker_has_heard_of_its_leaving_goes_on_where_it_was() -> None:
    world, subscriber, publisher = resting_world(token=True)
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    subscriber.connect("b3")
    world.run(0.01)
    assert subscriber.payloads == [b"1"]
    subscriber.drop().connect("b1")
    world.run()
    assert places(world) == ["b1"]
    assert subscriber.payloads == [b"1"]
    publisher.publish("a/x", b"2", qos=2)
    world.run()
    assert subscriber.payloads == [b"1", b"2"]
    nothing_is_left(world)


def let_in_unheard(seed: int = 0, *, session_wait_s: float = 1e6) -> tuple[SlowWorld, Client, Client, list[bytes]]:
    """A subscriber was at b1, and b3 has let it in by a copy: its word is on a long way to b1, behind what a publisher
    at b3 has said before. The client has left b3 again. Also what has been said."""
    world = SlowWorld(3, seed, handoff="proactive", session_wait_s=session_wait_s)
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    subscriber.keeps_token = True
    publisher = Client(world, "p").connect("b3")
    world.run()
    world.slow = frozenset({("b3", "b1")})
    said = [publisher.publish("a/x", b"%d" % at, qos=2).payload for at in range(3)]
    subscriber.drop()
    while "b3" not in copies(world):
        world.run(0.1)
    said += [publisher.publish("a/x", b"%d" % at, qos=2).payload for at in range(3, 6)]
    subscriber.connect("b3")
    world.run(1)
    said += [publisher.publish("a/x", b"%d" % at, qos=2).payload for at in range(6, 9)]
    world.run(1)
    subscriber.drop()
    return world, subscriber, publisher, said


@pytest.mark.parametrize("crash", ["", "b1", "b3"])
@pytest.mark.parametrize("returns_to", ["b1", "b2", "b3"])
@pytest.mark.parametrize("seed", range(5))
def test_a_client_that_leaves_before_the_source_of_its_copy_has_heard_of_it_gets_all_in_order(
    seed: int, returns_to: str, crash: str
) -> None:
    world, subscriber, publisher, said = let_in_unheard(seed)
    subscriber.connect(returns_to)
    world.run(0.2)
    if crash:
        world.sites[crash].crash()
        world.run(0.1)
        world.sites[crash].start()
    if crash == returns_to:
        subscriber.drop(notice_s=None).connect(returns_to)
    said += [publisher.publish("a/x", b"%d" % at, qos=2).payload for at in range(9, 12)] if crash != "b3" else []
    world.run(200)
    assert subscriber.payloads == said
    assert places(world) == [returns_to]
    nothing_is_left(world)


@pytest.mark.parametrize("seed", range(5))
def test_a_client_gets_nothing_twice_where_the_one_that_has_let_it_in_is_away_for_long(seed: int) -> None:
    """Nobody but b3 knows what it has had there."""
    world, subscriber, _, said = let_in_unheard(seed, session_wait_s=10.0)
    subscriber.connect("b1")
    world.sites["b3"].crash()
    world.run(20)
    assert subscriber.presents[-1] is False
    world.sites["b3"].start()
    world.run(200)
    assert sorted(subscriber.payloads) == said
    assert places(world) == ["b1"]
    nothing_is_left(world)


@pytest.mark.parametrize("down", ["", "b3"])
@pytest.mark.parametrize("returns_to", ["b1", "b2", "b3"])
@pytest.mark.parametrize("qos", [1, 2])
def test_a_client_waits_for_its_session_where_a_copy_of_that_comes_first(qos: int, returns_to: str, down: str) -> None:
    """It was let into a copy at b3, and with the same token into one at b2, which is the session: b1 has said so. From
    then on it shows what it was given there, and gets an event. The copy at b3, which has that too, counts as newer. It
    comes to b2, and the session goes to b3 and comes after it."""
    world, subscriber, publisher = resting_world(token=True)
    old, hurry = subscriber.token, 0.01
    for other in ("b1", "b2"):
        world.cut("b3", other)
    publisher.drop().connect("b3")
    world.run(12)
    subscriber.connect("b3")
    world.run(1)
    subscriber.drop().connect("b2", token=old)
    world.run(1)
    subscriber.drop().connect("b2", token=subscriber.token)
    world.run(1)
    assert subscriber.presents == [False, True, True, True]
    publisher.publish("a/x", b"1", qos=qos)
    world.run(12)
    for other in ("b1", "b2"):
        world.heal("b3", other)
    until = world.engine.now + 10
    while subscriber.inside and world.engine.now < until:
        world.run(hurry)
    assert subscriber.payloads == [b"1"]
    assert not subscriber.inside, "its session leaves"
    if down:
        world.sites[down].crash()
        world.run(hurry)
        world.sites[down].start()
    for _ in range(8):
        if subscriber.connection is None:  # b3 may give the copy away after it has let the client in
            subscriber.connect(returns_to, token=subscriber.token.removeprefix("?"))
        world.run(5)
    assert subscriber.payloads == [b"1"]
    assert places(world) == [returns_to]
    nothing_is_left(world)


@pytest.mark.parametrize("token", [False, True])
def test_a_client_that_moves_on_before_anything_is_through_takes_all_along(token: bool) -> None:
    world = Even(4, handoff="proactive")
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    subscriber.keeps_token = token
    publishers = [Client(world, f"p{at}").connect(at) for at in world.names]
    world.run()
    subscriber.drop()
    world.run(0.06)
    for number, name in enumerate(("b2", "b3", "b4")):
        for publisher in publishers:
            publisher.publish("a/x", b"%d" % number, qos=2)
        subscriber.connect(name)
        world.run(0.02)
        subscriber.drop()
    world.run()
    subscriber.connect("b4")
    world.run()
    assert sorted(subscriber.payloads) == [b"0"] * 4 + [b"1"] * 4 + [b"2"] * 4
    nothing_is_left(world)


@pytest.mark.feature("proactive-handoff F22")
def test_a_copy_from_before_the_client_was_elsewhere_is_not_used() -> None:
    """The client takes something at b2, and comes to b3 before that has heard of it: the copy there has it still."""
    world, subscriber, publisher = resting_world(likely={"b2": ()}, token=True)
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    stale = subscriber.token
    subscriber.connect("b2")
    world.run(0.01)
    assert subscriber.payloads == [b"1"]
    assert "b3" in copies(world)
    subscriber.drop()
    subscriber.connect("b3", token=f"?{stale}")
    world.run()
    assert subscriber.payloads == [b"1"]
    nothing_is_left(world)


@pytest.mark.parametrize("after_s", [0.0, 0.04, 0.06, 0.09, 0.11, 0.2])
def test_a_new_broker_that_crashes_while_it_asks_for_the_session_loses_and_repeats_nothing(after_s: float) -> None:
    world, subscriber, publisher = resting_world(World)
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    subscriber.connect("b3")
    world.run(after_s)
    world.sites["b3"].crash()
    subscriber.drop(notice_s=None)
    publisher.publish("a/x", b"2", qos=2)
    world.run(1)
    world.sites["b3"].start()
    world.run()
    subscriber.connect("b3")
    world.run()
    assert subscriber.payloads == [b"1", b"2"]
    nothing_is_left(world)


@pytest.mark.feature("proactive-handoff F27")
def test_where_the_old_broker_is_away_the_client_gets_the_copy_and_nothing_twice_when_it_is_back() -> None:
    world, subscriber, publisher = resting_world(token=True)
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    world.sites["b1"].crash()
    publisher.publish("a/x", b"2", qos=2)
    subscriber.connect("b3")
    world.run(1)
    assert subscriber.presents == [False, True]
    assert subscriber.payloads == [b"1", b"2"]
    world.run(15)
    publisher.publish("a/x", b"3", qos=2)
    world.run()
    world.sites["b1"].start()
    world.run(20)
    publisher.publish("a/x", b"4", qos=2)
    world.run()
    assert subscriber.payloads == [b"1", b"2", b"3", b"4"]
    assert places(world) == ["b3"]
    nothing_is_left(world)


def test_a_client_without_a_token_begins_anew_and_gets_what_is_in_the_copy_when_the_old_broker_is_back() -> None:
    """Only the old broker can tell whether the client has had it elsewhere."""
    world, subscriber, publisher = resting_world(token=False)
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    world.sites["b1"].crash()
    subscriber.connect("b3")
    world.run(11)
    assert subscriber.presents == [False, False]
    subscriber.subscribe("a/#", qos=2)
    world.run(4)
    publisher.publish("a/x", b"2", qos=2)
    world.run()
    assert subscriber.payloads == [b"2"]
    world.sites["b1"].start()
    world.run(20)
    publisher.publish("a/x", b"3", qos=2)
    world.run()
    assert subscriber.payloads == [b"2", b"1", b"3"]
    assert places(world) == ["b3"]
    nothing_is_left(world)


def test_a_client_moves_on_with_what_it_took_from_the_copy_of_a_broker_that_is_away() -> None:
    world, subscriber, publisher = resting_world(token=True)
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    world.sites["b1"].crash()
    subscriber.connect("b3")
    world.run(15)
    subscriber.drop()
    subscriber.connect("b2")
    world.run()
    publisher.publish("a/x", b"2", qos=2)
    world.run()
    assert subscriber.payloads == [b"1", b"2"]
    world.sites["b1"].start()
    world.run(20)
    assert subscriber.payloads == [b"1", b"2"]
    assert places(world) == ["b2"]
    nothing_is_left(world)


@pytest.mark.parametrize("qos", [1, 2])
def test_after_a_crash_a_broker_knows_that_a_client_has_answered_there_and_what_it_has_had_does_not_come_again(
    qos: int,
) -> None:
    """The old broker hears that the session is at b2 before it hears that the client was at b3, and b3 hears from it
    before b2 can ask."""
    world, subscriber, publisher = resting_world(token=True)
    publisher.publish("a/x", b"1", qos=qos)
    world.run()
    world.cut("b1", "b3")
    subscriber.connect("b3")
    world.run(1)
    assert subscriber.payloads == [b"1"]
    world.sites["b3"].crash()
    world.cut("b2", "b3")
    subscriber.drop(notice_s=None)
    subscriber.connect("b2")
    world.run(15)
    assert subscriber.presents == [False, True, False]
    world.sites["b3"].start()
    world.heal("b1", "b3")
    world.run(1)
    world.heal("b2", "b3")
    publisher.publish("a/x", b"2", qos=qos)
    world.run(30)
    assert subscriber.payloads == [b"1", b"2"]
    assert places(world) == ["b2"]
    nothing_is_left(world)


@pytest.mark.feature("proactive-handoff F18", "proactive-handoff F23")
def test_a_holder_that_has_lost_its_copies_asks_for_the_whole_session() -> None:
    world, subscriber, publisher = resting_world()
    world.sites["b3"].crash()
    world.run(1)
    world.sites["b3"].start()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    since = len(world.said)
    subscriber.connect("b3")
    world.run(20)
    assert talk(world, since, "Session", "Given") == ["b1 > b3: Session"]
    assert subscriber.payloads == [b"1"]
    nothing_is_left(world)


def first_delivery_s(world: World, subscriber: Client, at: str) -> float:
    since, count = world.engine.now, len(subscriber.got)
    subscriber.connect(at)
    while len(subscriber.got) == count:
        world.run(0.001)
        assert world.engine.now < since + 5
    return world.engine.now - since


@pytest.mark.parametrize("backlog", [1, 10_000])
@pytest.mark.parametrize(("token", "round_trips"), [(True, 0), (False, 1)])
def test_the_first_delivery_takes_a_round_trip_and_with_a_token_none_whatever_waits(
    token: bool, round_trips: int, backlog: int
) -> None:
    world, subscriber, publisher = resting_world(token=token)
    world.delay_s = 0.0
    for at in range(backlog):
        publisher.publish("a/x", b"1", qos=1)
        if at % 50 == 0:
            world.run(0.01)
    world.run()
    assert len(world.sites["b1"].broker.sessions["s"].queue.waiting) == backlog
    world.delay_s = 0.05
    assert first_delivery_s(world, subscriber, "b3") == pytest.approx(round_trips * 0.1, abs=0.005)


@pytest.mark.parametrize("token", [True, False])
def test_the_first_delivery_at_qos_2_waits_for_one_write(token: bool) -> None:
    """The new broker's own, which has the packet identifiers in it. Where the old one is asked, it writes meanwhile."""
    world, subscriber, publisher = resting_world(Slow, token=token)
    for _ in range(100):
        publisher.publish("a/x", b"1", qos=2)
    world.run(20)
    assert first_delivery_s(world, subscriber, "b3") == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("returns_to", ["b1", "b2", "b3"])
@pytest.mark.parametrize("holding", [False, True])
@pytest.mark.parametrize("token", [False, True])
def test_a_broker_that_crashes_when_the_first_deliveries_have_left_knows_under_which_numbers(
    token: bool, holding: bool, returns_to: str
) -> None:
    """Nothing was written since the copy was. Where the client did not answer it must not take them for new ones."""
    world, subscriber, publisher = resting_world(Slow, token=token)
    wanted = [publisher.publish("a/x", b"%d" % at, qos=2).payload for at in range(40)]
    world.run(20)
    subscriber.holding = holding
    first_delivery_s(world, subscriber, "b3")
    world.sites["b3"].crash()
    subscriber.drop(notice_s=None)
    subscriber.holding = False
    world.run(1)
    world.sites["b3"].start()
    world.run(3)
    subscriber.connect(returns_to)
    world.run(60)
    assert subscriber.payloads == wanted
    nothing_is_left(world)


MOMENTS_S = [at / 50 for at in range(16)]
"""From the client's coming to when its session has been handed over, in steps shorter than a message or a write."""


@pytest.mark.feature("proactive-handoff F27")
@pytest.mark.parametrize("goes_to", ["", "b1", "b2", "b3"])
@pytest.mark.parametrize("victims", [("b1",), ("b3",), ("b1", "b3")])
def test_whoever_crashes_while_a_client_without_token_is_let_in_nothing_is_lost_or_repeated(
    victims: tuple[str, ...], goes_to: str
) -> None:
    """The old broker, the new one or both; before and after the reservation, the copy and the handing over are written,
    and before and after the client has got something. It stays where it is, or goes on elsewhere."""
    for after_s in MOMENTS_S:
        world, subscriber, publisher = resting_world(Paced)
        wanted = [publisher.publish("a/x", b"%d" % at, qos=2).payload for at in range(3)]
        world.run()
        subscriber.connect("b3")
        world.run(after_s)
        for victim in victims:
            world.sites[victim].crash()
        wanted.append(publisher.publish("a/x", b"3", qos=2).payload)
        if goes_to or "b3" in victims:
            subscriber.drop(notice_s=None)
        world.run(0.2)
        for victim in victims:
            world.sites[victim].start()
        world.run(0.3)
        if not subscriber.inside:
            subscriber.drop(notice_s=None)
            subscriber.connect(goes_to or "b3")
        world.run(30)
        assert subscriber.payloads == wanted, after_s
        nothing_is_left(world)


@pytest.mark.parametrize("after_s", MOMENTS_S)
@pytest.mark.parametrize("goes_to", ["b1", "b2"])
def test_a_client_without_token_that_goes_on_while_it_is_let_in_has_one_session(goes_to: str, after_s: float) -> None:
    world, subscriber, publisher = resting_world(Paced)
    wanted = [publisher.publish("a/x", b"%d" % at, qos=2).payload for at in range(3)]
    world.run()
    subscriber.connect("b3")
    world.run(after_s)
    subscriber.drop(notice_s=None)
    subscriber.connect(goes_to)
    wanted.append(publisher.publish("a/x", b"3", qos=2).payload)
    world.run(30)
    if not subscriber.inside:
        subscriber.connect(goes_to)  # b3 had asked before, and b1 has only now heard of it
        world.run(30)
    assert subscriber.payloads == wanted
    assert places(world) == [goes_to]
    nothing_is_left(world)


def test_a_copy_that_was_asked_for_before_a_crash_waits_for_its_answer_however_long_that_takes() -> None:
    world, subscriber, publisher = resting_world()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    world.sites["b1"].crash()
    subscriber.connect("b3")
    world.run(0.02)
    world.sites["b3"].crash()
    subscriber.drop(notice_s=None)
    world.sites["b3"].start()
    world.run(30)
    assert places(world) == []
    world.sites["b1"].start()
    world.run()
    subscriber.connect("b2")
    world.run(30)
    assert subscriber.payloads == [b"1"]
    assert places(world) == ["b2"]
    nothing_is_left(world)


@pytest.mark.parametrize("goes_to", ["b1", "b2", "b3"])
@pytest.mark.parametrize("after_s", [0.3, 0.95, 1.5])
def test_a_reservation_that_a_crash_has_left_behind_is_asked_back(after_s: float, goes_to: str) -> None:
    """The new broker crashes before its disk has the copy; the old one has the reservation on its own by then."""
    world, subscriber, publisher = resting_world(Slow)
    publisher.publish("a/x", b"1", qos=2)
    world.run(20)
    subscriber.connect("b3")
    world.run(0.1)
    world.sites["b3"].crash()
    subscriber.drop(notice_s=None)
    world.run(after_s)
    assert world.sites["b1"].broker.sessions["s"].standing.reserved_for == "b3"
    world.sites["b3"].start()
    subscriber.connect(goes_to)
    publisher.publish("a/x", b"2", qos=2)
    world.run(60)
    assert subscriber.payloads == [b"1", b"2"]
    assert subscriber.presents == [False, True]
    assert places(world) == [goes_to]
    nothing_is_left(world)


def test_where_whoever_has_a_reservation_stays_away_the_old_broker_goes_on_after_a_while() -> None:
    world, subscriber, publisher = resting_world(Slow)
    publisher.publish("a/x", b"1", qos=2)
    world.run(20)
    subscriber.connect("b3")
    world.run(0.1)
    world.sites["b3"].crash()
    subscriber.drop(notice_s=None)
    world.run(2)
    subscriber.connect("b1")
    world.run(5)
    assert subscriber.presents == [False]
    world.run(30)
    assert subscriber.presents == [False, True]
    assert subscriber.payloads == [b"1"]
    assert not world.sites["b1"].broker.sessions["s"].standing.reserved_for

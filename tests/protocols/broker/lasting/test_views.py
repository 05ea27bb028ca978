"""Lasting subscriptions: what a client is told, and when."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from tests.seeds import few

from godwit.filters.text import parse
from godwit.protocols.broker.api import Delivery, Grant, Lasting, Limits, Reason, RetainHandling, Subscription
from godwit.protocols.broker.publication import Properties
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.picture import Picture
from godwit.sim.brokers.world import World

DEPOT = "within(lat, lon, 52.0, 4.0, 5km)"
IN, NEAR_BY, OUT = {"lat": 52.0, "lon": 4.0}, {"lat": 52.01, "lon": 4.01}, {"lat": 53.0, "lon": 5.0}


def watcher(world: World, condition: str = "", topics: str = "vans/#", name: str = "s", **more: Any) -> Client:
    options = {"qos": 2, "lasting": Lasting.OVERLAP, "key": "q"} | more
    client = Client(world, name)
    client.keeps_token = True
    return client.connect("b1").subscribe(topics, condition, **options)


def put(publisher: Client, topic: str, content: dict[str, Any] | None, *, profile: str = "", **more: Any) -> None:
    payload = b"" if content is None else msgspec.json.encode(content)
    properties = Properties(user=(("profile", profile),)) if profile else Properties()
    publisher.publish(topic, payload, 1, retain=True, properties=properties, **more)


def picture_of(client: Client) -> Picture:
    picture = Picture()
    for delivery in client.got:
        if delivery.view:
            picture.take(delivery)
    assert picture.wrong == []
    return picture


def told(client: Client) -> list[str]:
    return [f"{sign} {topic}" for sign, topic in picture_of(client).told]


def why(delivery: Delivery) -> str | None:
    return dict(delivery.publication.properties.user).get("lasting-because")


def test_first_what_matches_now_then_what_changes_each_with_the_next_number() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN)
    put(publisher, "vans/2", OUT)
    world.run()
    asking = watcher(world, DEPOT)
    world.run()
    assert told(asking) == ["+ vans/1"]
    for van, where in (("vans/2", IN), ("vans/1", NEAR_BY), ("vans/1", OUT), ("vans/2", None), ("vans/1", OUT)):
        put(publisher, van, where)
        world.run()
    assert told(asking) == ["+ vans/1", "+ vans/2", "~ vans/1", "- vans/1", "- vans/2"]
    assert [why(one) for one in asking.got] == [None, None, None, "left", "cleared"]
    assert picture_of(asking).number == 5


def test_a_thing_that_falls_silent_leaves() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world, DEPOT)
    put(publisher, "vans/1", IN, expires=world.clock() + 10)
    world.run(5)
    put(publisher, "vans/1", NEAR_BY, expires=world.clock() + 10)
    world.run(8)
    assert told(asking) == ["+ vans/1", "~ vans/1"]
    world.run(5)
    assert told(asking) == ["+ vans/1", "~ vans/1", "- vans/1"]
    assert why(asking.got[-1]) == "expired"


def test_what_leaves_is_not_shown_where_it_is_instead() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world, DEPOT)
    put(publisher, "vans/1", IN)
    world.run()
    put(publisher, "vans/1", OUT)
    world.run()
    assert asking.got[-1].publication.payload == b""


def test_who_was_away_gets_the_difference_and_not_the_history() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world, DEPOT)
    for van in ("vans/1", "vans/2", "vans/3"):
        put(publisher, van, IN)
    world.run()
    asking.drop()
    for _ in range(20):
        put(publisher, "vans/1", NEAR_BY)
        put(publisher, "vans/2", OUT)
        put(publisher, "vans/4", IN)
    world.run()
    before = len(asking.got)
    asking.connect("b1")
    world.run()
    assert sorted(told(asking)[before:]) == ["+ vans/4", "- vans/2", "~ vans/1"]
    assert picture_of(asking).number == 6


def test_who_is_slow_gets_the_newest() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = Client(world, "s").connect("b1", inflight_max=1)
    asking.holding = True
    asking.subscribe("vans/#", "", key="q", qos=1, lasting=Lasting.OVERLAP)
    for speed in range(50):
        put(publisher, "vans/1", {"speed": speed})
        world.run(1)
    assert len(asking.got) == 1
    asking.holding = False
    assert asking.connection is not None
    asking.connection.site.broker.acknowledged(asking.session, asking.got[0].number)
    world.run()
    assert told(asking) == ["+ vans/1", "~ vans/1"]
    assert picture_of(asking).known == {"vans/1": b'{"speed":49}'}


def test_nothing_is_numbered_twice_after_a_crash() -> None:
    for seed in range(20):
        world, dice = World(seed=seed), Random(seed)
        publisher = Client(world, "p").connect("b1")
        asking = watcher(world)
        for step in range(10):
            put(publisher, f"vans/{dice.randrange(3)}", {"step": step} if dice.random() < 0.8 else None)
            world.run(dice.choice((0.001, 0.005, 0.05)))
        world.sites["b1"].crash()
        asking.drop(notice_s=None)
        publisher.drop(notice_s=None)
        world.run(1)
        world.sites["b1"].start()
        asking.connect("b1")
        publisher.connect("b1")
        world.run()
        for van in range(3):
            put(publisher, f"vans/{van}", {"step": "last"})
        world.run()
        last = b'{"step":"last"}'
        assert picture_of(asking).known == {f"vans/{van}": last for van in range(3)}


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
def test_a_view_goes_along_to_another_broker(handoff: Any) -> None:
    likely = dict.fromkeys(("b1", "b2", "b3"), ("b1", "b2", "b3"))
    for seed in range(10):
        world = World(3, seed=seed, handoff=handoff, likely=likely)
        publisher = Client(world, "p").connect("b3")
        asking = watcher(world, DEPOT)
        world.run()
        for van in ("vans/1", "vans/2"):
            put(publisher, van, IN)
        world.run()
        asking.drop()
        world.run()
        put(publisher, "vans/1", OUT)
        put(publisher, "vans/3", IN)
        world.run()
        asking.connect("b2")
        world.run(10)
        assert sorted(told(asking)) == ["+ vans/1", "+ vans/2", "+ vans/3", "- vans/1"]
        assert picture_of(asking).number == 4
        put(publisher, "vans/2", NEAR_BY)
        world.run()
        assert told(asking)[-1] == "~ vans/2"


def test_subscribing_again_begins_anew_unless_nothing_retained_is_wanted_again() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN)
    asking = watcher(world)
    world.run()
    asking.subscribe("vans/#", "", key="q", lasting=Lasting.OVERLAP, retain_handling=RetainHandling.IF_NEW)
    world.run()
    assert told(asking) == ["+ vans/1"]
    asking.subscribe("vans/#", "", key="q", lasting=Lasting.OVERLAP)
    world.run()
    assert told(asking) == ["+ vans/1", "+ vans/1"]
    assert picture_of(asking).number == 1


def test_who_wants_nothing_retained_is_only_told_what_changes() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN)
    world.run()
    asking = watcher(world, retain_handling=RetainHandling.NEVER)
    world.run()
    assert asking.got == []
    put(publisher, "vans/1", None)
    put(publisher, "vans/2", IN)
    world.run()
    assert [one.publication.topic for one in asking.got] == ["vans/1", "vans/2"]


def test_a_quiet_one_is_told_who_comes_and_goes() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world, DEPOT, quiet=True)
    for where in (IN, NEAR_BY, OUT, IN):
        put(publisher, "vans/1", where)
        world.run()
    assert told(asking) == ["+ vans/1", "- vans/1", "+ vans/1"]


def test_at_qos_0_each_connection_begins_anew() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN)
    asking = watcher(world, qos=0)
    world.run()
    asking.drop()
    asking.connect("b1")
    world.run()
    assert told(asking) == ["+ vans/1", "+ vans/1"]
    assert len({dict(one.publication.properties.user)["lasting-view"] for one in asking.got}) == 2


def test_a_rate_bounds_what_is_told_of_each_thing_and_the_newest_wins() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world, "speed >= 0 AND rate(0.1)")
    for step in range(30):
        put(publisher, "vans/1", {"speed": step})
        put(publisher, "vans/2", {"speed": 100 + step})
        world.run(1)
    world.run(20)
    assert told(asking).count("~ vans/1") == 3
    assert told(asking).count("+ vans/1") == 1
    assert picture_of(asking).known == {"vans/1": b'{"speed":29}', "vans/2": b'{"speed":129}'}
    for one in asking.got:
        assert why(one) is None


def test_a_fence_roams_with_a_thing_and_leaves_that_out() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN)
    put(publisher, "people/7", NEAR_BY)
    world.run()
    asking = watcher(world, "near('vans/1', 2km)", topics="#")
    world.run()
    assert told(asking) == ["+ people/7"]
    put(publisher, "vans/1", OUT)
    world.run()
    assert told(asking) == ["+ people/7", "- people/7"]
    put(publisher, "people/7", OUT)
    world.run()
    put(publisher, "vans/1", None)
    world.run()
    assert told(asking)[2:] == ["+ people/7", "- people/7"]


def test_a_fence_does_not_tell_where_somebody_is_whom_the_client_may_not_see() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN)
    put(publisher, "people/7", IN)
    world.run()
    asking = Client(world, "s").connect("b1", grant=Grant(subscribe=parse("topic_1 = 'people'")))
    asking.subscribe("people/+", "near('vans/1', 2km)", key="q", lasting=Lasting.OVERLAP)
    world.run()
    assert asking.got == []


def test_a_subspace_matches_where_both_have_something_in_common_or_only_as_a_whole() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "rooms/1", {"kind": "room"}, profile="start >= 9 AND start < 11")
    put(publisher, "rooms/2", {"kind": "room"}, profile="start >= 10 AND start < 11")
    put(publisher, "rooms/3", {"kind": "hall"}, profile="start >= 10 AND start < 11")
    put(publisher, "rooms/4", {"kind": "room"}, profile="start >= 14")
    put(publisher, "rooms/5", {"kind": "room"})
    world.run()
    condition = "kind = 'room' AND start >= 10 AND start < 12"
    some = watcher(world, condition, topics="rooms/+", name="some")
    whole = watcher(world, condition, topics="rooms/+", name="whole", lasting=Lasting.COVER)
    world.run()
    assert sorted(told(some)) == ["+ rooms/1", "+ rooms/2"]
    assert told(whole) == ["+ rooms/2"]
    put(publisher, "rooms/1", {"kind": "room"}, profile="start >= 15")
    put(publisher, "rooms/4", {"kind": "room"}, profile="start >= 11 AND start < 12")
    put(publisher, "rooms/2", {"kind": "room", "start": 10})
    world.run()
    assert sorted(told(some)[2:]) == ["+ rooms/4", "- rooms/1", "~ rooms/2"]
    assert sorted(told(whole)[1:]) == ["+ rooms/4", "~ rooms/2"]


def test_a_profile_that_nobody_can_read_is_refused() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "rooms/1", {"kind": "room"}, profile="start >=")
    world.run()
    assert [reason for _, reason in publisher.accepts] == [Reason.PAYLOAD_FORMAT_INVALID]


def test_a_view_has_room_for_so_many_and_others_wait_until_one_leaves() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = Client(world, "s").connect("b1", limits=Limits(view_max=2))
    asking.subscribe("vans/#", "", key="q", qos=1, lasting=Lasting.OVERLAP)
    for van in range(3):
        put(publisher, f"vans/{van}", IN)
        world.run()
    assert told(asking) == ["+ vans/0", "+ vans/1"]
    put(publisher, "vans/0", None)
    world.run()
    assert told(asking)[2:] == ["- vans/0", "+ vans/2"]


def test_what_is_no_longer_granted_ends_and_shared_ones_cannot_last() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world)
    broker = world.sites["b1"].broker
    broker.review(lambda client: (Grant(subscribe=parse("topic_1 = 'cars'")), Limits()))
    put(publisher, "vans/1", IN)
    world.run()
    assert asking.got == []
    assert asking.session.carried.views == {}
    wanted = Subscription("g", "cars/#", group="g", lasting=Lasting.OVERLAP)
    assert broker.subscribe(asking.session, [wanted])[0].reason is Reason.TOPIC_FILTER_INVALID


def test_unsubscribing_ends_it() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world)
    assert world.sites["b1"].broker.unsubscribe(asking.session, ["q"]) == [Reason.OK]
    put(publisher, "vans/1", IN)
    world.run()
    assert asking.got == []
    assert asking.session.carried.views == {}


@pytest.mark.parametrize("seed", few(12, range(30)))
@pytest.mark.feature("content-routing F41")
def test_what_clients_know_is_what_brute_force_finds(seed: int) -> None:
    """Points and subspaces, questions of all kinds, clients that come and go at two brokers."""
    dice, world = Random(seed), World(2, seed=seed)
    publisher = Client(world, "p").connect("b1")
    questions = ["", "x > 3", "x > 3 AND x < 7", "kind = 'a'", "x >= 2 AND kind = 'b'", "near('vans/0', 100km)"]
    asking = {text: watcher(world, text, name=f"s{at}", topics="#") for at, text in enumerate(questions)}
    world.run()
    now: dict[str, dict[str, Any]] = {}
    for _ in range(60):
        topic = f"{dice.choice(('vans', 'cars'))}/{dice.randrange(4)}"
        if dice.random() < 0.2:
            now.pop(topic, None)
            put(publisher, topic, None)
        else:
            now[topic] = {"x": dice.randrange(10), "kind": dice.choice("ab"), "lat": dice.randrange(3), "lon": 0}
            put(publisher, topic, now[topic])
        who = dice.choice(list(asking.values()))
        if dice.random() < 0.3:
            who.drop() if who.connection is not None else who.connect(dice.choice(("b1", "b2")))
        world.run(dice.choice((0.001, 0.02, 1.0)))
    for who in asking.values():
        if who.connection is None:
            who.connect("b2")
    world.run(60)
    anchor = now.get("vans/0")
    for text, who in asking.items():
        wanted = {topic: said for topic, said in now.items() if _answers(text, topic, said, anchor)}
        assert picture_of(who).known == {topic: msgspec.json.encode(said) for topic, said in wanted.items()}, text
        assert picture_of(who).pending == 0


def _answers(text: str, topic: str, said: dict[str, Any], anchor: dict[str, Any] | None) -> bool:
    if text.startswith("near"):
        return anchor is not None and topic != "vans/0" and said["lat"] == anchor["lat"]
    return text == "" or parse(text).matches(said)


def test_a_quiet_one_notices_that_a_thing_falls_silent_long_after_it_has_come() -> None:
    """What was said later was not told, so that nobody looked when it expired."""
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world, DEPOT, quiet=True)
    for _ in range(5):
        put(publisher, "vans/1", IN, expires=world.clock() + 10)
        world.run(5)
    assert told(asking) == ["+ vans/1"]
    world.run(10)
    assert told(asking) == ["+ vans/1", "- vans/1"]


def test_a_client_that_was_told_something_elsewhere_is_told_all_anew() -> None:
    """An older session of it was taken up again after the newer was lost, and its client ignored the older view."""
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN)
    asking = watcher(world)
    world.run()
    asking.drop()
    asking.token = "1.1.elsewhere"
    asking.connect("b1")
    world.run()
    assert told(asking) == ["+ vans/1", "+ vans/1"]
    assert len({dict(one.publication.properties.user)["lasting-view"] for one in asking.got}) == 2


@pytest.mark.parametrize("qos", [1, 2])
def test_what_a_client_never_heard_of_a_view_is_not_told_once_it_was_elsewhere(qos: int) -> None:
    """It was let in, did not hear so and went on to another copy of its session: that goes on with the same view, and
    may tell it something else under the same number."""
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN)
    asking = watcher(world, qos=qos)
    world.run()
    asking.drop()
    unheard = Client(world, "s")
    unheard.holding = True
    unheard.connect("b1", token=asking.token)
    put(publisher, "vans/2", IN)
    world.run()
    (second,) = unheard.got
    assert dict(second.publication.properties.user)["lasting-number"] == "2"
    unheard.drop()
    asking.token = "1.1.elsewhere"
    asking.connect("b1")
    world.run()
    assert told(asking) == ["+ vans/1", "+ vans/1", "+ vans/2"]
    assert picture_of(asking).number == 2
    assert not asking.session.queue.flying
    assert world.sites["b1"].broker.counts.waiting == 0


def test_a_fence_around_a_thing_that_fell_silent_waits_for_it() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    put(publisher, "vans/1", IN, expires=world.clock() + 5)
    put(publisher, "people/7", NEAR_BY)
    asking = watcher(world, "near('vans/1', 2km)", topics="#")
    world.run(10)
    assert told(asking) == ["+ people/7", "- people/7"]
    before = world.engine.executed
    world.run(60)
    assert world.engine.executed - before < 100
    put(publisher, "vans/1", IN)
    world.run()
    assert told(asking)[2:] == ["+ people/7"]


def test_what_must_wait_is_not_told_when_something_that_does_not_match_has_come_since() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = watcher(world, "speed > 50 AND rate(0.1)")
    for speed in (60, 10, 70, 20):
        put(publisher, "vans/1", {"speed": speed})
        world.run(1)
    world.run(60)
    assert told(asking) == ["+ vans/1", "- vans/1"]
    assert [one.publication.payload for one in asking.got] == [b'{"speed":60}', b""]


def test_who_is_slow_is_not_told_what_matches_no_longer() -> None:
    world = World()
    publisher = Client(world, "p").connect("b1")
    asking = Client(world, "s").connect("b1", inflight_max=1)
    asking.holding = True
    asking.subscribe("vans/#", DEPOT, key="q", qos=1, lasting=Lasting.OVERLAP)
    for van in ("vans/1", "vans/2"):
        put(publisher, van, IN)
        world.run()
    put(publisher, "vans/2", OUT)
    world.run()
    asking.holding = False
    (first,) = asking.got
    assert asking.connection is not None
    asking.connection.site.broker.acknowledged(asking.session, first.number)
    world.run()
    assert told(asking) == ["+ vans/1"]


def test_a_fence_and_what_is_near_it_may_change_in_one_turn() -> None:
    for order in (("vans/1", "people/7"), ("people/7", "vans/1")):
        world = World()
        publisher = Client(world, "p").connect("b1")
        put(publisher, "vans/1", IN)
        asking = watcher(world, "near('vans/1', 2km)", topics="#")
        world.run()
        for topic in order:
            put(publisher, topic, {"vans/1": OUT, "people/7": NEAR_BY}[topic])
        world.run()
        assert told(asking) == []

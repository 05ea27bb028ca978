"""Location-based multicast and unicast, and notices: every destination once, against brute force."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.gathering.worlds import (
    QUIET,
    holders,
    install,
    owners,
    publish,
    stored,
    touched,
    world,
)

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.messages import Condition, Item, Matched, Notice, Pub, Sub, Subscription, Unsub
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.topology.pastry.messages import Destination
from godwit.protocols.topology.pastry.node import PastryNode, RingOptions

EXACT = msgspec.structs.replace(QUIET, exact=True)
POINTS = st.tuples(st.floats(0, 99.9), st.floats(0, 99.9))


@pytest.mark.feature("data-gathering F13")
@pytest.mark.feature("data-gathering F43")
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 64), POINTS, st.floats(0, 30), st.sampled_from((1, 2, 4)), st.booleans())
def test_a_subscription_is_stored_once_at_every_broker_that_its_area_touches(
    seed: int, brokers: int, center: tuple[float, float], radius: float, bits: int, exact: bool
) -> None:
    rules = Rules(recheck_s=0.0, exact=exact, ring=RingOptions(bits=bits))
    gathering, facts = world(brokers, seed, rules)
    area = Disc(center, radius)
    start = Random(seed).choice(sorted(gathering.brokers))
    install(gathering, start, area)
    copies = stored(facts)
    assert len(copies) == len(set(copies))
    assert touched(gathering, area) <= set(copies)
    if exact:
        assert touched(gathering, area) == set(copies)
    assert gathering.underlay.sent["Sub"] == gathering.underlay.sent["HopAck"]


@pytest.mark.feature("data-gathering F13")
@pytest.mark.parametrize("seed", range(5))
def test_with_holes_in_every_table_the_way_is_longer_and_the_destinations_are_the_same(seed: int) -> None:
    gathering, _ = world(40, seed, EXACT)
    dice = Random(seed)
    for broker in gathering.brokers.values():
        assert isinstance(broker.ring, PastryNode)
        broker.ring.table.drop(lambda row, column: dice.random() < 0.5)
    area = Disc((50.0, 50.0), 15.0)
    install(gathering, next(iter(gathering.brokers)), area)
    assert holders(gathering) == touched(gathering, area)


@pytest.mark.feature("data-gathering F15")
@pytest.mark.feature("data-gathering F43")
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 64), POINTS)
def test_an_event_is_matched_at_the_one_owner_of_its_place(seed: int, brokers: int, place: tuple[float, float]) -> None:
    gathering, facts = world(brokers, seed)
    publish(gathering, Random(seed).choice(sorted(gathering.brokers)), place)
    assert facts.nodes("matched") == owners(gathering, place)
    assert len(owners(gathering, place)) == 1


@pytest.mark.feature("data-gathering F17")
@pytest.mark.feature("data-gathering F43")
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 64), st.sampled_from((1, 2, 4)), st.sampled_from((0, 8)))
def test_a_notice_reaches_every_destination_exactly_once(seed: int, brokers: int, bits: int, leaves: int) -> None:
    gathering, facts = world(brokers, seed, Rules(recheck_s=0.0, ring=RingOptions(bits=bits, leaves=leaves)))
    dice = Random(seed)
    names = sorted(gathering.brokers)
    some = dice.sample(names, min(10, brokers))
    destinations = [Destination(gathering.brokers[name].key) for name in some]
    start = gathering.brokers[dice.choice(names)]
    start.ring.cast(destinations, Matched(Notice(Item(("p", 1), "t", (0.0, 0.0), 0.0), start.key)))
    gathering.run_for(5.0)
    assert sorted(facts.nodes("notified")) == sorted(some)


@pytest.mark.feature("data-gathering F18")
def test_each_hop_is_confirmed_and_repeated_until_it_is() -> None:
    gathering, facts = world(16, 3)
    dice = Random(3)
    gathering.underlay.lose = lambda sender, to, message: dice.random() < 0.3
    for number in range(20):
        publish(gathering, "b00", (dice.uniform(0, 100), dice.uniform(0, 100)), number, settle_s=0.0)
    gathering.run_for(60.0)
    matched = [record.event for _, _, record in facts.rows if record.kind == "matched"]
    assert len(set(matched)) == 20
    assert all(broker.links.unconfirmed == 0 for broker in gathering.brokers.values())


@pytest.mark.feature("data-gathering F14")
def test_the_same_subscription_again_changes_nothing() -> None:
    gathering, facts = world(16, 3)
    area = Disc((40.0, 40.0), 10.0)
    for _ in range(3):
        install(gathering, "b03", area)
    assert sorted(stored(facts)) == sorted(set(stored(facts)))


@pytest.mark.feature("data-gathering F19")
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), POINTS, st.floats(0, 25))
def test_unsubscribing_anywhere_reaches_every_copy_and_outlasts_a_late_one(
    seed: int, center: tuple[float, float], radius: float
) -> None:
    gathering, _ = world(24, seed)
    area = Disc(center, radius)
    first, second = Random(seed).sample(sorted(gathering.brokers), 2)
    install(gathering, first, area)
    assert holders(gathering)
    gathering.brokers[second].dissemination.take(Unsub("c#1", area, "c"))
    gathering.run_for(5.0)
    assert holders(gathering) == set()
    install(gathering, first, area)
    assert holders(gathering) == set()
    gathering.run_for(QUIET.tombstone_s)
    gathering.brokers[second].dissemination.take(Unsub("c#2", area, "c"))
    gathering.run_for(5.0)
    assert all(
        broker.store.tombstones(gathering.world.engine.now) in ([], ["c#2"]) for broker in gathering.brokers.values()
    )


@pytest.mark.feature("data-gathering F12")
def test_a_subscription_names_a_type_an_area_and_conditions_and_only_these_events_come() -> None:
    gathering, _ = world(16, 3)
    phone = gathering.phone("ada")
    gathering.attach("ada", "b05")
    gathering.run_for(1.0)
    hot = (Condition("celsius", 60, ">"), Condition("room", ("lab", "hall"), "in"))
    phone.subscribe("fire", Disc((50.0, 50.0), 20.0), hot)
    gathering.run_for(1.0)
    sensor = gathering.phone("sensor")
    gathering.attach("sensor", "b11")
    gathering.run_for(1.0)
    for kind, x, data in (
        ("fire", 50.0, {"celsius": 90, "room": "lab"}),
        ("smoke", 50.0, {"celsius": 90, "room": "lab"}),
        ("fire", 90.0, {"celsius": 90, "room": "lab"}),
        ("fire", 50.0, {"celsius": 20, "room": "lab"}),
        ("fire", 50.0, {"celsius": 90, "room": "attic"}),
        ("fire", 50.0, {"celsius": "90", "room": "lab"}),
        ("fire", 50.0, {"room": "lab"}),
        ("fire", 51.0, {"celsius": 61, "room": "hall"}),
    ):
        sensor.publish(kind, (x, 50.0), data)  # type: ignore[arg-type]
    gathering.run_for(5.0)
    assert [item.place[0] for item in phone.history()] == [50.0, 51.0]


@pytest.mark.feature("data-gathering F19")
def test_a_subscription_with_a_life_time_ends_by_itself() -> None:
    gathering, _ = world(8, 3)
    phone = gathering.phone("ada")
    gathering.attach("ada", "b0")
    gathering.run_for(1.0)
    phone.subscribe("fire", Disc((50.0, 50.0), 100.0), ttl_s=10.0)
    gathering.run_for(1.0)
    sensor = gathering.phone("sensor")
    gathering.attach("sensor", "b4")
    gathering.run_for(1.0)
    sensor.publish("fire", (1.0, 1.0))
    gathering.run_for(20.0)
    sensor.publish("fire", (1.0, 1.0))
    gathering.run_for(5.0)
    assert len(phone.history()) == 1


def test_a_message_for_a_region_that_nobody_serves_is_counted_and_goes_no_further() -> None:
    gathering, _ = world(1, 3)
    broker = gathering.brokers["b0"]
    broker.key, broker.number = b"\xff" * 16, 2**128 - 1
    broker.dissemination.take(Pub(Item(("p", 1), "t", (1.0, 1.0), 0.0), 1, "0"))
    gathering.run_for(5.0)
    assert broker.counts["misplaced"] == 1


def test_a_client_with_subscriptions_at_two_brokers_gets_one_copy_at_the_newer() -> None:
    gathering, facts = world(8, 3)
    broker = gathering.brokers["b0"]
    old, new = gathering.brokers["b1"].key, gathering.brokers["b2"].key
    everywhere = Disc((50.0, 50.0), 200.0)
    for sid, source, epoch in (("c#1", old, 1), ("c#2", new, 2)):
        broker.dissemination.take(Sub(Subscription(sid, "t", everywhere, "c", source=source, epoch=epoch)))
    gathering.run_for(5.0)
    publish(gathering, "b0", (1.0, 1.0))
    assert facts.nodes("notified") == ["b2"]

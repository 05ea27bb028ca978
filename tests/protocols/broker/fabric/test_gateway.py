"""Gateways join sites: what somebody wants crosses, once and in order, and nothing else does."""

from __future__ import annotations

import pytest
from tests.sim.brokers.lands import Land

from godwit.protocols.broker.messages import Outlook
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.topics import meaning
from godwit.protocols.host import LocalError

CHAIN = "a1-a2 a2-a3 b1-b2 c1-c2 a1-b1 b1-c1"
"""Site B lies between the two others."""


def numbers(land: Land, *topics: str) -> list[int]:
    return [n for n, said in land.said.items() if said.topic in topics]


@pytest.mark.feature("content-routing F20")
def test_what_is_wanted_two_sites_away_arrives_in_order_and_the_rest_stays() -> None:
    land = Land(CHAIN)
    far, near = land.client("far", "c2", "a/#"), land.client("near", "b2", "b/#")
    speaker = land.client("speaker", "a3")
    for _ in range(20):
        for topic in ("a/x", "b/x", "nobody"):
            speaker.speak(topic, {}, 2)
    land.run(5.0)
    assert far.order == numbers(land, "a/x")
    assert near.order == numbers(land, "b/x")
    gateways = {name: land.gateway(name).uplinks for name in ("a1", "b1", "c1")}
    out = {f"{name}-{peer}": one.counts.events_out for name, them in gateways.items() for peer, one in them.items()}
    assert out == {"a1-b1": 40, "b1-c1": 20, "b1-a1": 0, "c1-b1": 0}


def test_both_ways_and_from_a_gateways_own_clients() -> None:
    land = Land(CHAIN)
    left, right = land.client("left", "a1", "c/#"), land.client("right", "c1", "a/#")
    for _ in range(5):
        left.speak("a/x", {}, 2)
        right.speak("c/x", {}, 1)
        right.speak("c/x", {}, 0)
    land.run(5.0)
    assert right.order == numbers(land, "a/x")
    assert sorted(left.order) == numbers(land, "c/x")


@pytest.mark.feature("content-routing F17")
def test_wishes_go_only_where_something_is_offered_that_they_meet() -> None:
    land = Land(CHAIN)
    for name, site in land.site_of.items():
        land.offer(name, meaning(f"{site}/#"))
    land.client("s", "c2", "A/x", "C/y", "D/z")
    assert [one.wanted for one in land.gateway("b1").uplinks.values() if one.site == "C"] == [(meaning("A/x"),)]
    assert [one.wanted for one in land.gateway("a1").uplinks.values()] == [(meaning("A/x"),)]
    land.offer("a3", meaning("A/#"), meaning("D/#"))
    wanted = next(iter(land.gateway("a1").uplinks.values())).wanted
    assert any(one.covers(meaning("D/z")) for one in wanted)


def test_one_wish_covers_another_and_is_stated_once() -> None:
    land = Land("a1-b1 b1-b2 b1-b3")
    land.client("wide", "b2", "x/#")
    counts = next(iter(land.gateway("b1").uplinks.values())).counts
    before = counts.filters_out
    for number in range(5):
        land.client(f"narrow{number}", "b3", f"x/{number}")
    assert counts.filters_out == before


def test_nothing_is_lost_while_an_uplink_is_down_and_gateways_restart() -> None:
    land = Land(CHAIN)
    far, speaker = land.client("far", "c2", "a/#"), land.client("speaker", "a3")
    land.cluster.cut("b1", "c1")
    for _ in range(50):
        speaker.speak("a/x", {}, 2)
        land.run(0.1)
    for name in ("b1", "c1", "a1"):
        land.cluster.crash(name)
        land.run(1.0)
        land.cluster.start(name)
        land.run(5.0)
    assert far.order == []
    land.cluster.heal("b1", "c1")
    land.run(30.0)
    assert far.order == numbers(land, "a/x")


def test_a_cycle_is_refused_with_its_path_and_nothing_comes_twice() -> None:
    land = Land("a1-b1 b1-c1 c1-a1 a1-a2 b1-b2 c1-c2")
    land.run(5.0)
    refused = {
        (name, one.site): one.cycle
        for name in ("a1", "b1", "c1")
        for one in land.gateway(name).uplinks.values()
        if one.is_refused
    }
    assert refused == {("b1", "C"): ("B", "C", "A", "B"), ("c1", "B"): ("C", "B", "A", "C")}
    hearers = [land.client(f"s{name}", name, "#") for name in ("a2", "b2", "c2")]
    for name in ("a2", "b2", "c2"):
        speaker = land.client(f"p{name}", name)
        for _ in range(5):
            speaker.speak("t", {}, 2)
    land.run(10.0)
    for hearer in hearers:
        assert sorted(hearer.order) == [*land.said]


def test_another_gateway_acts_while_the_first_is_away_and_nothing_is_lost_or_twice() -> None:
    land = Land("a1-a2 a2-a3 a3-a1 a1-b1 a2-b1 b1-b2")
    first, second = land.gateway("a1"), land.gateway("a2")
    assert [one.acts for gateway in (first, second) for one in gateway.uplinks.values()] == [True, False]
    hearer, speaker = land.client("s", "b2", "a/#"), land.client("p", "a3")
    for _ in range(5):
        speaker.speak("a/x", {}, 2)
    land.run(5.0)
    assert next(iter(second.uplinks.values())).counts.events_out == 0
    land.cluster.crash("a1")
    land.run(15.0)
    for _ in range(5):
        speaker.speak("a/x", {}, 2)
    land.run(10.0)
    assert hearer.order == [*land.said]
    land.cluster.start("a1")
    land.run(40.0)
    assert hearer.order == [*land.said]
    assert not any(one.acts for one in land.gateway("a2").uplinks.values())


def test_what_is_retained_crosses_when_it_becomes_wanted_and_stays_there() -> None:
    land = Land("a1-a2 a1-b1 b1-b2")
    retained = Publication("p", 1, "a/state", b'{"n": 1}', 1, retain=True, time=1.0)
    speaker = land.client("p", "a2")
    assert speaker.connection is not None
    assert speaker.connection.session is not None
    land.cluster.sites["a2"].broker.publish(speaker.connection.session, [(retained, 0)])
    land.run(2.0)
    assert land.cluster.sites["b2"].broker.shelf.get("a/state") is None
    land.said[1] = land.said.get(1) or speaker.speak("x", {}, 0)  # type: ignore[assignment]
    hearer = land.client("s", "b2", "a/#")
    assert hearer.shown == {1: 1}, "it is told that this was retained, and is no news"
    kept = land.cluster.sites["b2"].broker.shelf.get("a/state")
    assert kept is not None
    assert kept.payload == retained.payload


def test_a_bound_drops_the_oldest_is_counted_and_the_other_side_is_told_all_again() -> None:
    land = Land("a1-b1")
    hearer, speaker = land.client("s", "b1", "a/#"), land.client("p", "a1")
    land.cluster.cut("a1", "b1")
    lane = land.gateway("a1").base.streams.sender.outbox.lane("b1")
    lane.bytes_max = 500
    for _ in range(20):
        speaker.speak("a/x", {}, 2)
    land.run(2.0)
    assert lane.dropped > 0
    assert lane.bytes <= 500
    land.cluster.heal("a1", "b1")
    land.run(10.0)
    arrived = len(hearer.order)
    assert 0 < arrived < 20
    speaker.speak("a/x", {}, 2)
    land.run(2.0)
    assert len(hearer.order) == arrived + 1


def test_what_has_no_business_on_an_uplink_is_counted_and_dropped() -> None:
    land = Land("a1-b1")
    land.gateway("a1").base.send(("b1",), Outlook("A", 99, base=42))
    land.run(2.0)
    told = next(iter(land.gateway("a1").uplinks.values())).told
    assert told.number == next(iter(land.gateway("b1").uplinks.values())).heard.number


def test_a_broker_of_the_site_itself_is_no_other_site() -> None:
    land = Land("a1-a2 a1-b1")
    with pytest.raises(LocalError, match="no gateway of another site"):
        land.gateway("a1").reached("a2")

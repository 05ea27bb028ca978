"""Where the published rules lose a subscriber, and the hardened ones do not (spec mft-pubsub 2.12, D1-D9)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.protocols.overlay import Overlay, chain, event, mft, recursive, topic

from godwit.protocols.routing.messages import Bmig, Bquery, Bsub
from godwit.protocols.routing.rules import HARDENED, LITERAL, THESIS, Rules

BOTH = pytest.mark.parametrize("rules", [THESIS, HARDENED], ids=["thesis", "hardened"])
counter_example = pytest.mark.feature("mft-pubsub F23", "mft-pubsub F22")


def stale_claim(rules: Rules) -> Overlay:
    """D1: b4 was next to s and no longer is, and b1 comes to it with s below."""
    overlay = Overlay(mft(rules), chain("b0", "b1", "b2", "b3", "b4"))
    overlay.place("s", "b3", "f")
    overlay.move("b4", "b0")
    overlay.settle()
    overlay.move("b1", "b4")
    overlay.settle()
    return overlay


@counter_example
def test_d1_a_stale_hop_count_beats_a_true_claim_as_published() -> None:
    assert stale_claim(THESIS).astray("s") == {"b0", "b1", "b4"}


@counter_example
@pytest.mark.parametrize("rules", [Rules(attached_decides=True), HARDENED], ids=["H1 alone", "hardened"])
def test_d1_only_the_broker_of_the_subscriber_may_refuse_a_claim(rules: Rules) -> None:
    assert stale_claim(rules).astray("s") == set()


def half_known_move(rules: Rules) -> Overlay:
    """D2: s has moved from bk to bm, and then bk from ba to bc, which never heard of the first."""
    overlay = Overlay(mft(rules), [("br", "ba"), ("br", "bc"), ("ba", "bk"), ("ba", "bm")])
    overlay.place("s", "bk", "f")
    overlay.attach("s", "bm")
    overlay.settle()
    overlay.move("bk", "bc")
    overlay.settle()
    return overlay


@counter_example
def test_d2_a_move_known_on_its_path_only_makes_two_brokers_point_at_each_other() -> None:
    overlay = half_known_move(THESIS)
    assert overlay.astray("s") >= {"bk", "bc"}
    assert overlay.router("bk").routes.hop("s") == "bc"
    assert overlay.router("bc").routes.hop("s") == "bk"


@counter_example
@pytest.mark.parametrize("rules", [Rules(flood_moves=True), HARDENED], ids=["H4 alone", "hardened"])
def test_d2_a_move_known_everywhere_loses_nobody(rules: Rules) -> None:
    assert half_known_move(rules).astray("s") == set()


def departure(rules: Rules) -> Overlay:
    """D3: s has left for good while b2 was cut off, and b2 comes back."""
    overlay = Overlay(mft(rules), chain("b0", "b1", "b2"))
    overlay.place("s", "b2", "f")
    overlay.cut("b1", "b2")
    overlay.subscriber("s").unsubscribe(topic("f"))
    overlay.settle()
    overlay.move("b2", "b1")
    overlay.settle()
    return overlay


@counter_example
def test_d3_a_list_without_tombstones_keeps_a_phantom() -> None:
    overlay = departure(LITERAL)
    assert overlay.router("b0").routes.filters("s") == (topic("f"),)


@counter_example
@BOTH
@pytest.mark.feature("mft-pubsub F9", "mft-pubsub F11")
def test_d3_a_tombstone_travels_and_the_phantom_ends(rules: Rules) -> None:
    assert departure(rules).believed("s") == {frozenset()}


def second_filter(rules: Rules) -> Overlay:
    """D4: whoever has been led astray hears of a new filter of s from the right side."""
    overlay = stale_claim(rules)
    overlay.subscriber("s").subscribe(topic("g"))
    overlay.settle()
    return overlay


def hops(overlay: Overlay, broker: str, client: str) -> set[str]:
    return {row.hop for row in overlay.router(broker).routes if row.subscriber == client}


@counter_example
def test_d4_the_entries_of_one_subscriber_point_two_ways_as_published() -> None:
    assert len(hops(second_filter(THESIS), "b1", "s")) == 2


@counter_example
@pytest.mark.parametrize("rules", [Rules(one_hop_for_all=True), HARDENED], ids=["H3 alone", "hardened"])
def test_d4_an_accepted_subscription_points_all_entries_one_way(rules: Rules) -> None:
    overlay = second_filter(rules)
    assert [hops(overlay, broker, "s") for broker in ("b0", "b4", "b1", "b2", "b3")] == [
        {"b4"}, {"b1"}, {"b2"}, {"b3"}, {"s"},
    ]  # fmt: skip


@counter_example
@BOTH
@pytest.mark.feature("mft-pubsub F18")
def test_d5_what_a_former_parent_says_is_ignored(rules: Rules) -> None:
    overlay = Overlay(mft(rules), [("b1", "b2"), ("b1", "b3")])
    overlay.place("s", "b3", "f")
    overlay.trees["b3"].move("b2")
    echoes = [message for sender, to, message in overlay.settle() if (sender, to) == ("b1", "b3")]
    assert [type(message) for message in echoes] == [Bmig]
    assert overlay.router("b3").routes.hop("s") == "s"


def quick_moves(rules: Rules) -> Overlay:
    """D6: s went from b3 to b2, which never heard it, and at once on to b1."""
    overlay = Overlay(mft(rules), chain("b1", "b2", "b3"))
    overlay.place("s", "b3", "f")
    overlay.medium.connect("s", "b2")
    overlay.medium.cut("s", "b2")
    overlay.attach("s", "b2")
    overlay.attach("s", "b1")
    overlay.settle()
    return overlay


@counter_example
def test_d6_a_move_stops_at_a_broker_that_never_knew_as_published() -> None:
    assert quick_moves(THESIS).astray("s") == {"b3"}


@counter_example
@pytest.mark.parametrize("rules", [Rules(flood_moves=True), HARDENED], ids=["H4 alone", "hardened"])
def test_d6_a_flooded_move_reaches_the_older_broker_too(rules: Rules) -> None:
    assert quick_moves(rules).astray("s") == set()


def on_a_cycle(rules: Rules) -> list[int]:
    """D7: b0 corrects b1, which stands on a cycle; how many copies of the correction pass in each second."""
    overlay = Overlay(mft(rules, acknowledge=rules.acknowledge_control), [("b0", "b1"), ("b1", "b2"), ("b1", "b3")])
    overlay.place("s", "b0", "f")
    overlay.grow("b2", "b3")
    overlay.world.nodes["b1"].send("b0", Bquery("s", 0, 0))
    return [sum(isinstance(message, Bsub) for _, _, message in overlay.settle(1.0)) for _ in range(3)]


@counter_example
def test_d7_a_correction_runs_round_a_cycle_for_ever_as_published() -> None:
    assert min(on_a_cycle(THESIS)) > 500


@counter_example
def test_d7_a_correction_passes_each_broker_once() -> None:
    first, *later = on_a_cycle(Rules(loops_end=True))
    assert first <= 7
    assert later == [0, 0]


@counter_example
def test_d7_a_cycle_that_lasts_is_asked_about_once_a_second() -> None:
    assert max(on_a_cycle(HARDENED)) <= 2 * 7


def loop_of_two(rules: Rules) -> Overlay:
    """D8: b1 sends what is for s to b2, and b2 to b1; p1 publishes at b1."""
    overlay = Overlay(mft(rules), chain("b1", "b2"))
    overlay.place("s", "b2", "f")
    overlay.router("b2").detach("s")
    overlay.router("b2").routes.point("s", "b1")
    overlay.publish("b1", event("f"))
    return overlay


@counter_example
@pytest.mark.parametrize("rules", [THESIS, replace(HARDENED, addressed=False)], ids=["thesis", "hardened, H1-H10"])
def test_d8_an_event_in_a_loop_of_two_is_lost_in_silence(rules: Rules) -> None:
    """A broker cannot tell a loop from an event that comes from where its subscriber is."""
    overlay = loop_of_two(rules)
    overlay.settle()
    assert overlay.got("s") == []
    assert not overlay.router("b1").queues
    assert not overlay.router("b2").queues


@counter_example
def test_d8_an_event_that_names_its_subscriber_is_stored_where_it_cannot_go_on() -> None:
    overlay = loop_of_two(HARDENED)
    overlay.settle()
    assert list(overlay.router("b2").queues["s"]) == [("p1", 1)]


def absent(rules: Rules) -> Overlay:
    """D9: s has gone to the other partition, its old broker b2 has noticed, and b2's side joins."""
    overlay = Overlay(recursive(rules, acknowledge=True), [("b3", "b4"), ("b1", "b2"), ("b3", "b1")])
    overlay.place("s", "b2", "f")
    overlay.cut("b3", "b1")
    overlay.medium.cut("s", "b2")
    overlay.attach("s", "b4")
    overlay.settle()
    overlay.publish("b2", event("f"))
    overlay.settle()
    overlay.move("b1", "b3")
    overlay.settle()
    return overlay


@counter_example
@pytest.mark.feature("mft-pubsub F7")
def test_d9_the_first_approach_claims_a_subscriber_that_has_left() -> None:
    assert "b3" in absent(THESIS).astray("s")


@counter_example
@pytest.mark.feature("mft-pubsub F7")
def test_d9_only_attached_clients_are_claimed() -> None:
    overlay = absent(Rules(attached_stay=True))
    assert overlay.astray("s") == set()
    assert overlay.got("s") == [("p1", 1)]

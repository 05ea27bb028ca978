"""Each hardened rule by itself (spec mft-pubsub 2.12, H1-H9), and H10 and H11, which are ours.

H1, H3, H4 and H7's duplicate cache are proved on their counter-examples in `test_mft_counterexamples`, H9 in
`test_router`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs
from tests.protocols.overlay import FOR_EVER, Hop, Overlay, chain, event, mft, topic

from godwit.protocols.host import Message
from godwit.protocols.routing.messages import Bask, Bmig, Bquery, Bsub, Claim, Doubt, Mig, Sub, Uns
from godwit.protocols.routing.mft import FAR
from godwit.protocols.routing.rules import HARDENED, LITERAL, THESIS, Rules

hardened = pytest.mark.feature("mft-pubsub F22")


def count(log: list[Hop], kind: type[Message]) -> int:
    return sum(isinstance(message, kind) for _, _, message in log)


@hardened
def test_the_switch_turns_every_rule_on_and_thesis_mode_has_none() -> None:
    assert set(structs.asdict(THESIS).values()) == {False}
    assert {name for name, on in structs.asdict(HARDENED).items() if not on} == {"lists_from_routes"}
    assert Rules(lists_from_routes=True) == LITERAL


def path_reversal(rules: Rules) -> list[Hop]:
    """b1 led; now its child b2 hangs from b3, and b1 follows it. s is where it always was, at b2."""
    overlay = Overlay(mft(rules), [("b1", "b2"), ("b3", "b4")])
    overlay.place("s", "b2", "f")
    overlay.move("b2", "b3")
    overlay.settle()
    overlay.trees["b2"].neighbors.add("b1")
    overlay.trees["b1"].neighbors.add("b2")
    overlay.move("b1", "b2")
    return overlay.settle()


@hardened
@pytest.mark.feature("mft-pubsub F9")
def test_h2_whoever_is_behind_the_new_parent_is_not_claimed() -> None:
    assert [type(message) for _, _, message in path_reversal(THESIS)] == [Bmig, Bsub], "claimed, and refused"
    (lists,) = (message for _, _, message in path_reversal(Rules(new_parent_is_beyond=True)))
    assert isinstance(lists, Bmig)
    assert [claim.subscriber for claim in lists.beyond] == ["s"]
    assert lists.below == ()


def claimed_away(rules: Rules) -> Overlay:
    """b2 claims, with a newer number, a subscriber that is attached to b1."""
    overlay = Overlay(mft(rules), chain("b1", "b2"))
    overlay.place("s", "b1", "f")
    overlay.world.nodes["b2"].send("b1", Bmig((Claim("s", 99, 3),), (), 1))
    overlay.settle()
    return overlay


@hardened
def test_h5_an_attached_client_is_not_re_pointed_by_a_claim() -> None:
    assert claimed_away(THESIS).router("b1").routes.hop("s") == "b2"
    assert claimed_away(Rules(attached_stay=True)).router("b1").routes.hop("s") == "s"


@hardened
def test_h5_a_real_departure_is_still_followed() -> None:
    overlay = claimed_away(Rules(attached_stay=True))
    overlay.world.nodes["b2"].send("b1", Bsub("s", (topic("f"),), 99, 3))
    overlay.settle()
    assert overlay.router("b1").routes.hop("s") == "b2"
    assert "s" not in overlay.router("b1").attached


@hardened
def test_h6_a_refresh_repairs_what_the_published_rules_broke() -> None:
    clients = structs.replace(FOR_EVER, refresh_s=10.0)
    overlay = Overlay(mft(THESIS), chain("b0", "b1", "b2", "b3", "b4"), clients=clients)
    overlay.place("s", "b3", "f")
    overlay.settle(20)
    overlay.move("b4", "b0")
    overlay.settle(0.5)
    overlay.move("b1", "b4")
    overlay.settle(0.5)
    assert overlay.astray("s") == {"b0", "b1", "b4"}
    overlay.settle(10)
    assert overlay.astray("s") == set()


@hardened
def test_h6_a_refresh_tells_all_filters_whatever_was_believed() -> None:
    overlay = Overlay(mft(HARDENED), chain("b0", "b1", "b2"), clients=structs.replace(FOR_EVER, refresh_s=10.0))
    overlay.place("s", "b2", "f", "g")
    overlay.router("b0").routes.discard(topic("f"), "s")
    overlay.router("b1").routes.add(topic("h"), "b2", "s")
    overlay.settle(11)
    assert overlay.believed("s") == {frozenset({topic("f"), topic("g")})}


@hardened
@pytest.mark.parametrize(
    "message",
    [
        Sub(topic("g"), "s", 99, 64),
        Uns(topic("f"), "s", 99, 64),
        Mig("s", None, 99, 64),
        Bsub("s", (), 99, 1, 64, "b9", 1),
        Bmig((Claim("s", 1, 1),), (), 64),
    ],
    ids=lambda message: type(message).__name__,
)
def test_h7_nothing_travels_further_than_sixty_four_hops(message: Message) -> None:
    for rules, most in ((THESIS, 1), (Rules(loops_end=True), 0)):
        overlay = Overlay(mft(rules), [("b2", "b1"), ("b2", "b3")])
        overlay.subscribe("s", "b3", "f", t=1)
        overlay.settle()
        overlay.world.nodes["b1"].send("b2", message)
        onward = [hop for hop in overlay.settle() if hop[0] == "b2" and type(hop[2]) is type(message)]
        assert len(onward) == most


@hardened
@pytest.mark.parametrize(("rules", "copies"), [(THESIS, 3), (Rules(newer_only=True), 1)], ids=["thesis", "H8"])
def test_h8_the_same_number_from_nearer_is_a_duplicate(rules: Rules, copies: int) -> None:
    overlay = Overlay(mft(rules), [("b1", "b2"), ("b1", "b3"), ("b1", "b4")])
    overlay.world.nodes["b2"].send("b1", Sub(topic("f"), "s", 5, 3))
    overlay.settle()
    overlay.world.nodes["b3"].send("b1", Sub(topic("f"), "s", 5, 0))
    assert count(overlay.settle(), Sub) == copies, "itself, and what b1 passes on"


def doubtful(*, acknowledge: bool = False) -> Overlay:
    """Three brokers in a row, s at the last of them."""
    overlay = Overlay(mft(HARDENED, acknowledge=acknowledge), chain("b1", "b2", "b3"))
    overlay.place("s", "b3", "f")
    return overlay


@hardened
def test_h10_a_missed_message_shows_by_the_gap_it_leaves() -> None:
    overlay = doubtful()
    subscriber = overlay.subscriber("s")
    overlay.medium.links["s"]["b3"].loss = 1.0
    subscriber.subscribe(topic("missed"))
    overlay.medium.links["s"]["b3"].loss = 0.0
    subscriber.subscribe(topic("next"))
    overlay.settle()
    assert overlay.believed("s") == {frozenset({topic("f"), topic("missed"), topic("next")})}


@hardened
def test_without_h10_a_gap_goes_unnoticed() -> None:
    overlay = Overlay(mft(structs.replace(HARDENED, doubts=False)), chain("b1", "b2", "b3"))
    overlay.place("s", "b3", "f")
    overlay.world.nodes["b2"].send("b1", Sub(topic("next"), "s", overlay.mft("b1").known["s"][0] + 2, 1))
    overlay.settle()
    assert len(overlay.believed("s")) == 2


@hardened
def test_h10_a_next_hop_that_has_gone_for_a_while_is_asked_about() -> None:
    overlay = doubtful(acknowledge=True)
    overlay.router("b1").routes.point("s", "b9")
    overlay.settle(3)
    assert overlay.astray("s") == set()


@hardened
def test_h10_a_flood_that_comes_back_is_a_sign_that_the_tree_has_moved_under_it() -> None:
    overlay = doubtful()
    t = overlay.mft("b2").known["s"][0]
    flood = Bsub("s", (topic("f"),), t, 1, 2, "b3", 7)
    overlay.world.nodes["b3"].send("b2", flood)
    overlay.settle()
    before = overlay.mft("b2").known["s"][0]
    overlay.world.nodes["b1"].send("b2", structs.replace(flood, h=5))
    overlay.settle()
    assert overlay.mft("b2").known["s"][0] > before
    assert overlay.astray("s") == set()


@hardened
def test_h10_whoever_hears_its_own_client_announced_from_elsewhere_lets_it_speak() -> None:
    overlay = doubtful()
    t = overlay.mft("b3").known["s"][0]
    overlay.router("b2").routes.point("s", "b1")
    overlay.world.nodes["b2"].send("b3", Bsub("s", (topic("f"),), t, 1, 3, "b1", 7))
    overlay.settle()
    assert overlay.astray("s") == set()


@hardened
def test_h10_two_brokers_that_point_at_each_other_ask() -> None:
    overlay = Overlay(mft(HARDENED), [("b2", "b1"), ("b2", "b3"), ("b1", "b4")])
    overlay.place("s", "b3", "f")
    t = overlay.mft("b4").known["s"][0]
    overlay.router("b1").routes.point("s", "b4")
    overlay.world.nodes["b4"].send("b1", Bmig((), (Claim("s", t, 3),), 0))
    overlay.settle()
    assert overlay.astray("s") == set()


@hardened
def test_h10_nobody_is_told_a_way_that_leads_through_himself() -> None:
    overlay = doubtful()
    overlay.router("b2").routes.point("s", "b1")
    overlay.world.nodes["b1"].send("b2", Bquery("s", 0, FAR))
    assert not any(isinstance(message, Bsub) and message.origin == "b2" for _, _, message in overlay.settle())
    assert overlay.astray("s") == set()


@hardened
def test_h10_a_doubt_is_passed_on_once_and_asked_again_across_a_new_link() -> None:
    overlay = Overlay(mft(HARDENED), [("b1", "b2"), ("b2", "b3"), ("b8", "b9")])
    overlay.place("s", "b9", "f")
    doubt = Bask((Doubt("s", 2),))
    overlay.world.nodes["b2"].send("b1", doubt)
    overlay.world.nodes["b2"].send("b3", doubt)
    overlay.settle()
    overlay.world.nodes["b2"].send("b3", doubt)
    assert count(overlay.settle(), Bask) == 1, "the question itself"
    overlay.move("b1", "b8")
    overlay.settle()
    assert overlay.subscriber("s").disk["t"] > 2, "asked, and answered"


@hardened
def test_h10_a_question_is_put_to_a_client_once_for_each_of_its_numbers() -> None:
    overlay = Overlay(mft(HARDENED), chain("b1", "b2"))
    mute = overlay.client("s")
    overlay.subscribe("s", "b2", "f", t=1)
    overlay.settle()
    for _ in range(3):
        overlay.world.nodes["b1"].send("b2", Bask((Doubt("s", 1),)))
        overlay.settle()
    assert mute.messages == [Bquery("s", 1, 1)]


@hardened
def test_h10_a_client_that_does_not_answer_is_sought_elsewhere() -> None:
    overlay = doubtful(acknowledge=True)
    overlay.medium.cut("s", "b3")
    overlay.world.nodes["b2"].send("b3", Bask((Doubt("s", overlay.mft("b3").known["s"][0]),)))
    asked = [(a, b) for a, b, message in overlay.settle(3) if isinstance(message, Bask)]
    assert ("b3", "b2") in asked
    assert ("b2", "b1") in asked


@hardened
def test_h10_an_old_question_is_not_asked_again() -> None:
    overlay = doubtful()
    client = overlay.subscriber("s")
    client.receive("b3", Bquery("s", 0, 0))
    overlay.settle()
    overlay.world.nodes["b2"].send("b1", Bask((Doubt("s", 1),)))
    overlay.settle()
    assert overlay.mft("b1").doubted == {}


@hardened
@pytest.mark.feature("mft-pubsub F13")
def test_h11_an_event_caught_between_two_wrong_brokers_raises_a_doubt_and_arrives() -> None:
    overlay = doubtful(acknowledge=True)
    overlay.router("b2").routes.point("s", "b1")
    overlay.publish("b1", event("f"))
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]
    assert overlay.astray("s") == set()


@hardened
@pytest.mark.feature("mft-pubsub F13")
def test_h11_a_broker_that_never_heard_of_a_subscriber_keeps_what_is_for_it() -> None:
    overlay = doubtful(acknowledge=True)
    overlay.mft("b2").known.clear()
    overlay.router("b2").routes.drop("s")
    overlay.publish("b1", event("f"))
    overlay.settle(0.5)
    assert list(overlay.router("b2").queues["s"]) == [("p1", 1)]
    overlay.subscriber("s").subscribe(topic("g"))
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]


@hardened
@pytest.mark.feature("mft-pubsub F13")
def test_h11_nothing_is_kept_for_whoever_has_left() -> None:
    overlay = doubtful(acknowledge=True)
    overlay.router("b2").routes.drop("s")
    overlay.publish("b1", event("f"))
    overlay.settle()
    assert not overlay.router("b2").queues


@hardened
@pytest.mark.feature("mft-pubsub F12")
def test_a_client_whose_disk_was_lost_learns_its_number_from_its_broker() -> None:
    overlay = doubtful(acknowledge=True)
    for name in ("g", "h", "i"):
        overlay.subscriber("s").subscribe(topic(name))
    overlay.settle()
    overlay.world.nodes["s"].restart(keep_disk=False)
    overlay.attach("s", "b1")
    overlay.settle()
    assert overlay.astray("s") == set()
    assert overlay.believed("s") == {frozenset({topic("f")})}


@hardened
def test_no_rule_changes_what_undisturbed_subscribers_cost() -> None:
    """One SUB over each link, and nothing else, whatever the rules."""
    for rules in (THESIS, HARDENED):
        overlay = Overlay(mft(rules), [("b1", "b2"), ("b1", "b3"), ("b2", "b4")])
        overlay.subscribe("s", "b4", "f", t=1)
        assert Counter((a, b) for a, b, _ in overlay.settle()) == Counter(
            {("b4", "b2"): 1, ("b2", "b1"): 1, ("b1", "b3"): 1}
        )
        overlay.publish("b3", event("f"))
        overlay.settle()
        assert [e.id for e in overlay.client("s").got] == [("p1", 1)]

"""MFT-PubSub as a whole: joining, leaving, returning children, and what is forgotten (spec mft-pubsub 2.6-2.8)."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.protocols.fleet import wired, wires
from tests.protocols.overlay import FOR_EVER, Overlay, chain, event, mft, topic

from godwit.protocols.routing.messages import Bmig, Bquery, Bsub, Claim
from godwit.protocols.routing.mft import FAR, UNKNOWN, MftBroker, newer
from godwit.protocols.routing.rules import HARDENED, THESIS, Rules

BOTH = pytest.mark.parametrize("rules", [THESIS, HARDENED], ids=["thesis", "hardened"])


@pytest.mark.feature("mft-pubsub F8")
@given(*[st.tuples(st.integers(0, 3), st.integers(0, 3))] * 3)
def test_newer_wins_and_among_equals_the_closer_in_one_total_order(
    a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]
) -> None:
    assert newer(a, b) == (a[0] > b[0] or (a[0] == b[0] and a[1] < b[1]))
    assert newer(a, b) + newer(b, a) + (a == b) == 1
    assert not (newer(a, b) and newer(b, c)) or newer(a, c)
    assert a == UNKNOWN or a[0] == 0 or newer(a, UNKNOWN)


@BOTH
@pytest.mark.feature("mft-pubsub F4", "mft-pubsub F11", "mft-pubsub F21")
def test_a_broker_with_no_state_joins_and_is_told_of_everybody(rules: Rules) -> None:
    overlay = Overlay(mft(rules), chain("b1", "b2"))
    overlay.place("s1", "b1", "f")
    overlay.place("s2", "b2", "g")
    overlay.add("b9")
    overlay.move("b9", "b2")
    log = overlay.settle()
    assert [m for a, b, m in log if isinstance(m, Bmig)] == [Bmig((), (), 0)]
    assert {m.subscriber for a, b, m in log if isinstance(m, Bsub)} == {"s1", "s2"}
    assert overlay.astray("s1") == overlay.astray("s2") == set()


@BOTH
@pytest.mark.feature("mft-pubsub F10")
def test_a_newer_claim_is_asked_about_and_passed_on_under_the_older_number(rules: Rules) -> None:
    """Else every broker on the way would ask for itself."""
    overlay = Overlay(mft(rules), [("b1", "b2"), ("b2", "b3"), ("b3", "b4")])
    overlay.place("s", "b4", "f")
    old = overlay.mft("b3").known["s"][0]
    overlay.add("b9")
    broker = overlay.mft("b9")
    broker.known["s"] = (old + 5, 2)
    broker.routes.add(topic("f"), "b8", "s")
    overlay.move("b9", "b3")
    log = overlay.settle()
    assert [(a, b) for a, b, m in log if isinstance(m, Bquery)] == [("b3", "b9")]
    relayed = [m.below for a, b, m in log if isinstance(m, Bmig) and m.h == 1]
    assert relayed == [(Claim("s", old, 2),)]
    assert all(overlay.mft(name).known["s"][0] == old + 5 for name in ("b1", "b2", "b3", "b4"))


@BOTH
@pytest.mark.feature("mft-pubsub F10")
def test_an_older_claim_is_corrected_and_not_adopted(rules: Rules) -> None:
    overlay = Overlay(mft(rules), [("b1", "b2"), ("b1", "b3")])
    subscriber = overlay.place("s", "b3", "f")
    overlay.cut("b1", "b3")
    overlay.medium.cut("s", "b3")
    overlay.attach("s", "b2")
    subscriber.subscribe(topic("g"))
    overlay.settle()
    overlay.move("b3", "b1")
    overlay.settle()
    assert overlay.astray("s") == set()
    assert overlay.believed("s") == {frozenset({topic("f"), topic("g")})}


@pytest.mark.feature("mft-pubsub F11")
def test_a_question_is_answered_only_by_whoever_knows_more() -> None:
    overlay = Overlay(mft(THESIS), chain("b1", "b2"))
    overlay.place("s", "b1", "f")
    t = overlay.mft("b1").known["s"][0]
    for said, answers in (((t, 1), 0), ((t, 2), 1), ((t - 1, 0), 1), ((t + 1, 9), 0), ((0, FAR), 1)):
        overlay.world.nodes["b2"].send("b1", Bquery("s", *said))
        assert sum(isinstance(m, Bsub) for a, _, m in overlay.settle() if a == "b1") == answers


@pytest.mark.feature("mft-pubsub F18", "mft-pubsub F22")
def test_a_child_that_never_noticed_its_absence_is_brought_up_to_date() -> None:
    """What was said while b1 had given up b2 would stay unknown to b2 for ever: no migration follows."""
    edges = [("b1", "b2"), ("b2", "p"), ("b1", "s")]
    slow = structs.replace(FOR_EVER, refresh_s=None)
    fleet = wired(edges, rules=structs.replace(HARDENED, doubts=False), clients=slow)
    fleet.run(8)
    wires(fleet).links["b2"]["b1"].loss = 1.0
    fleet.run(6)
    assert "b2" not in fleet.broker("b1").tree.neighbors
    fleet.subscriber("s").subscribe(topic("new"))
    fleet.run(1)
    wires(fleet).links["b2"]["b1"].loss = 0.0
    fleet.run(5)
    assert set(fleet.broker("b2").routes.filters("s")) == {topic("s"), topic("new")}


@pytest.mark.feature("mft-pubsub F21")
def test_a_restarted_broker_can_correct_what_others_think_though_its_numbers_begin_again() -> None:
    overlay = Overlay(mft(HARDENED), chain("b1", "b2", "b3"))
    overlay.place("s", "b3", "f")

    def corrections() -> int:
        overlay.world.nodes["b2"].send("b3", Bquery("s", 0, FAR))
        return sum(isinstance(m, Bsub) and a == "b2" for a, _, m in overlay.settle())

    overlay.router("b2").routes.point("s", "b1")
    overlay.mft("b2").known["s"] = (overlay.mft("b2").known["s"][0], 9)
    assert corrections() == 1
    overlay.trees["b3"].neighbors.clear()
    overlay.world.nodes["b3"].restart()
    overlay.trees["b3"].neighbors.add("b2")
    for broker in ("b1", "b3"):
        overlay.attach("s", broker)
        overlay.settle()
    overlay.mft("b2").known["s"] = (overlay.mft("b2").known["s"][0], 9)
    assert corrections() == 1


def limited(silent_s: float = math.inf, departed_s: float = math.inf) -> Overlay:
    clients = structs.replace(FOR_EVER, refresh_s=10.0)
    broker = partial(MftBroker, acknowledge=True, silent_s=silent_s, departed_s=departed_s)
    return Overlay(broker, chain("b1", "b2"), clients=clients)


@pytest.mark.feature("mft-pubsub F26")
def test_a_subscriber_that_vanished_without_a_word_is_taken_for_gone() -> None:
    overlay = limited(silent_s=30.0)
    overlay.place("s1", "b2", "f")
    overlay.place("s2", "b2", "f")
    overlay.world.nodes["s1"].crash()
    overlay.publish("b1", event("f"))
    overlay.settle(60)
    for name in ("b1", "b2"):
        assert overlay.router(name).routes.subscribers == ["s2"]
        assert overlay.router(name).queues == {}
    overlay.publish("b1", event("f", 2))
    overlay.settle(5)
    assert overlay.got("s2") == [("p1", 1), ("p1", 2)]


@pytest.mark.feature("mft-pubsub F26")
def test_a_subscriber_taken_for_gone_is_back_when_it_speaks() -> None:
    overlay = limited(silent_s=30.0, departed_s=60.0)
    overlay.place("s", "b2", "f")
    overlay.world.nodes["s"].crash()
    overlay.settle(45)
    overlay.world.nodes["s"].restart()
    overlay.attach("s", "b1")
    overlay.settle(5)
    assert overlay.astray("s") == set()


@pytest.mark.feature("mft-pubsub F26")
def test_a_departed_subscriber_is_remembered_for_a_while_and_then_not_at_all() -> None:
    overlay = limited(departed_s=60.0)
    overlay.place("s", "b2", "f").unsubscribe(topic("f"))
    overlay.settle(5)
    overlay.world.nodes["s"].crash()
    overlay.settle(30)
    assert "s" in overlay.mft("b1").known
    overlay.settle(60)
    assert "s" not in overlay.mft("b1").known
    assert "s" not in overlay.mft("b2").known


@pytest.mark.feature("mft-pubsub F26")
def test_without_limits_nothing_is_forgotten() -> None:
    overlay = limited()
    overlay.place("s", "b2", "f")
    overlay.world.nodes["s"].crash()
    overlay.publish("b1", event("f"))
    overlay.settle(1000)
    assert overlay.router("b2").queues["s"]
    assert overlay.believed("s") == {frozenset({topic("f")})}

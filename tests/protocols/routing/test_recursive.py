"""The recursive first approach (spec mft-pubsub 2.5)."""

from __future__ import annotations

import pytest
from tests.protocols.overlay import Overlay, chain, event, recursive, topic

from godwit.protocols.routing.messages import Btab, Filters, Mig, Rbmig, Sub, Uns
from godwit.protocols.routing.rules import THESIS

pytestmark = pytest.mark.feature("mft-pubsub F7")


def test_a_subscriber_is_told_what_is_believed_of_it_and_repairs_that() -> None:
    overlay = Overlay(recursive(THESIS), chain("b1", "b2"))
    subscriber = overlay.place("s", "b2", "f")
    subscriber.wanted = {topic("g"): None}
    overlay.attach("s", "b1")
    overlay.settle()
    assert overlay.believed("s") == {frozenset({topic("g")})}


def test_only_the_first_receiver_answers_with_its_table() -> None:
    overlay = Overlay(recursive(THESIS), [("b1", "b2"), ("b1", "b3"), ("b2", "b4")])
    overlay.place("s", "b3", "f")
    overlay.cut("b1", "b3")
    overlay.move("b3", "b4")
    log = overlay.settle()
    assert [(a, b) for a, b, m in log if isinstance(m, Btab)] == [("b4", "b3")]
    assert [(a, b) for a, b, m in log if isinstance(m, Rbmig)] == [("b3", "b4"), ("b4", "b2"), ("b2", "b1")]


def test_differences_in_the_filters_of_local_clients_are_told_to_the_new_parent() -> None:
    overlay = Overlay(recursive(THESIS), chain("b1", "b2"))
    subscriber = overlay.place("s", "b2", "f", "g")
    overlay.cut("b1", "b2")
    subscriber.unsubscribe(topic("f"))
    subscriber.subscribe(topic("h"))
    overlay.settle()
    overlay.move("b2", "b1")
    log = overlay.settle()
    assert [m.wanted for _, _, m in log if isinstance(m, Sub)] == [topic("h")]
    assert [m.wanted for _, _, m in log if isinstance(m, Uns)] == [topic("f")]
    assert overlay.believed("s") == {frozenset({topic("g"), topic("h")})}


def test_a_subscription_that_ended_while_the_net_was_split_comes_back_as_a_phantom() -> None:
    """An admitted defect: the parent's table is the authority, also of those who have left."""
    overlay = Overlay(recursive(THESIS), [("b1", "b2"), ("b2", "b3")])
    subscriber = overlay.place("s", "b3", "f")
    overlay.cut("b1", "b2")
    subscriber.unsubscribe(topic("f"))
    overlay.settle()
    overlay.move("b2", "b1")
    overlay.settle()
    assert overlay.believed("s") == {frozenset({topic("f")})}


def test_nobody_deeper_is_spoken_for() -> None:
    overlay = Overlay(recursive(THESIS), [("b1", "b2"), ("b1", "b3"), ("b3", "b4")])
    overlay.place("s", "b4", "f")
    overlay.cut("b1", "b3")
    overlay.move("b3", "b2")
    claims = [(a, b, m.clients) for a, b, m in overlay.settle() if isinstance(m, Rbmig)]
    assert claims[0] == ("b3", "b2", ())
    assert ("b4", "b3", ("s",)) in claims
    overlay.publish("b1", event("f"))
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]


def test_a_client_that_attaches_is_answered_at_once() -> None:
    overlay = Overlay(recursive(THESIS), chain("b1", "b2"))
    mute = overlay.client("s")
    overlay.subscribe("s", "b1", "f")
    overlay.settle()
    overlay.say("s", "b2", Mig("s", "b1"))
    overlay.settle()
    assert mute.messages == [Filters((topic("f"),))]

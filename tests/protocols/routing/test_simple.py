"""Simple Routing: fixed brokers, fixed clients (spec mft-pubsub 2.1)."""

from __future__ import annotations

import pytest
from tests.protocols.overlay import Overlay, chain, event, topic

from godwit.protocols.routing.messages import Uns
from godwit.protocols.routing.simple import SimpleBroker

pytestmark = pytest.mark.feature("mft-pubsub F5")


def test_equal_rows_are_counted_so_that_one_unsubscription_removes_one() -> None:
    overlay = Overlay(SimpleBroker, chain("b1", "b2"))
    overlay.subscribe("s1", "b2", "f")
    overlay.subscribe("s2", "b2", "f")
    overlay.settle()
    overlay.say("s1", "b2", Uns(topic("f")))
    overlay.settle()
    overlay.publish("b1", event("f"))
    overlay.settle()
    assert (len(overlay.client("s1").got), len(overlay.client("s2").got)) == (0, 1)
    overlay.say("s2", "b2", Uns(topic("f")))
    overlay.settle()
    overlay.publish("b1", event("f", 2))
    assert [(a, b) for a, b, _ in overlay.settle()] == []


def test_unsubscribing_from_what_was_never_wanted_changes_nothing() -> None:
    overlay = Overlay(SimpleBroker, chain("b1", "b2"))
    overlay.subscribe("s1", "b2", "f")
    overlay.say("s2", "b2", Uns(topic("f")))
    overlay.settle()
    for name in ("b1", "b2"):
        core = overlay.broker(name)
        assert isinstance(core, SimpleBroker)
        assert all(count > 0 for count in core.routes.values())

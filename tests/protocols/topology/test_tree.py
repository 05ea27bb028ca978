"""A tree given by hand is a provider like any other (spec mft-pubsub, F16)."""

from __future__ import annotations

import pytest
from tests.protocols.overlay import Overlay, event, mft, recursive

from godwit.protocols.routing.rules import HARDENED, THESIS
from godwit.protocols.topology.tree import StaticTree

pytestmark = pytest.mark.feature("mft-pubsub F16")


def test_each_change_of_parent_is_told_once_with_the_last_one_before() -> None:
    tree = StaticTree(["b1"], "b1")
    moves: list[tuple[str | None, str]] = []
    tree.on_migrate = lambda old, new: moves.append((old, new))
    tree.move("b2")
    tree.drop("b2")
    tree.move("b3")
    assert moves == [("b1", "b2"), ("b2", "b3")]
    assert (tree.parent, tree.neighbors) == ("b3", {"b3"})


def test_losing_a_neighbor_is_silent() -> None:
    tree = StaticTree(["b1", "b2"], "b1")
    tree.on_migrate = lambda old, new: pytest.fail("nobody has moved")
    tree.drop("b2")
    tree.drop("b1")
    assert (tree.parent, tree.last_parent, tree.neighbors) == (None, "b1", set())


def test_a_last_parent_that_becomes_a_child_is_forgotten() -> None:
    tree = StaticTree(["b1"], "b1")
    tree.drop("b1")
    tree.adopt("b1")
    assert tree.last_parent is None
    assert tree.neighbors == {"b1"}


def test_a_neighbor_counts_as_heard_while_it_is_one() -> None:
    tree = StaticTree(["b1"], "b1")
    assert tree.heard_since("b1", 1e9)
    assert not tree.heard_since("b2", 0.0)


@pytest.mark.parametrize(
    "broker", [recursive(THESIS), mft(THESIS), mft(HARDENED)], ids=["recursive", "mft", "hardened"]
)
def test_routing_protocols_run_on_it_as_they_do_on_an_elected_one(broker: object) -> None:
    overlay = Overlay(broker, [("b1", "b2"), ("b1", "b3")])  # type: ignore[arg-type]
    overlay.place("s", "b3", "f")
    overlay.move("b3", "b2")
    overlay.settle()
    overlay.publish("b1", event("f"))
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]

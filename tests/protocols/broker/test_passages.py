"""Of what bridges bring each broker takes one copy, and none of what its own tree owes it."""

from __future__ import annotations

from godwit.protocols.broker.passages import Passages, entrance, passage_of

TREE = {"b1", "b2", "t"}


def test_the_first_bridge_that_brings_it_wins() -> None:
    passages, passage = Passages(), passage_of("x", 7, 1)
    assert passages.admit(passage, "b1", TREE, 0.0)
    assert not passages.admit(passage, "b2", TREE, 1.0)
    assert passages.admit(passage_of("x", 7, 2), "b2", TREE, 1.0)
    assert passages.admit(passage_of("x", 8, 1), "b2", TREE, 1.0)


def test_what_a_broker_of_the_tree_published_comes_from_itself_only() -> None:
    passages, passage = Passages(), passage_of("b1", 7, 1)
    assert not passages.admit(passage, "b2", TREE, 0.0)
    assert passages.admit(passage, "b1", TREE, 0.0)


def test_a_name_says_where_it_entered() -> None:
    assert entrance(passage_of("van-7.north", 255, 3)) == "van-7.north"
    assert passage_of("a", 255, 3) == ("a/ff", 3)

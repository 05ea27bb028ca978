"""Of what bridges bring each broker takes one copy, and none of what its own tree owes it."""

from __future__ import annotations

import pytest

from godwit.protocols.broker.fabric.passages import Passages, entrance, is_owed, passage_of
from godwit.protocols.broker.store import Disk, MemoryStore


def taken_on(disk: Disk, now_s: float = 0.0) -> Passages:
    return Passages(MemoryStore(disk, lambda call: call()), now_s)


TREE = {"b1", "b2", "t"}


def test_the_first_bridge_that_brings_it_wins() -> None:
    passages, passage = taken_on({}), passage_of("x", 7, 1)
    assert is_owed(passage, "b1", TREE)
    assert passages.admit(passage, 0.0)
    assert not passages.admit(passage, 1.0)
    assert passages.admit(passage_of("x", 7, 2), 1.0)
    assert passages.admit(passage_of("x", 8, 1), 2.0)


def test_what_was_taken_since_a_session_came_goes_with_it() -> None:
    passages = taken_on({})
    names = [passage_of("x", 7, number) for number in range(4)]
    for at_s, name in enumerate(names):
        passages.admit(name, float(at_s))
    assert passages.after(2) == [names[3], names[2]]


def test_what_a_broker_of_the_tree_published_comes_from_itself_only() -> None:
    passage = passage_of("b1", 7, 1)
    assert not is_owed(passage, "b2", TREE)
    assert is_owed(passage, "b1", TREE)


def test_a_name_says_where_it_entered() -> None:
    assert entrance(passage_of("van-7.north", 255, 3)) == "van-7.north"
    assert passage_of("a", 255, 3) == ("a/ff", 3)


@pytest.mark.feature("content-routing F33")
def test_what_was_taken_before_a_restart_is_not_taken_again_by_another_gateway() -> None:
    disk: Disk = {}
    store = MemoryStore(disk, lambda call: call())
    passages, passage = Passages(store, 0.0), passage_of("site/x", 7, 1)
    assert passages.admit(passage, 1.0)
    store.settled(lambda: None)
    again = taken_on(disk, 5.0)
    assert not again.admit(passage, 6.0)
    assert again.after(1) == [], "sessions that came after it have not had it"
    assert again.after(0) == [passage], "those that were here before have"
    assert again.admit(passage_of("site/x", 7, 2), 6.0)

"""Roots by type, and how many interfaces there are to find."""

from __future__ import annotations

import pytest

from godwit.tables.partition import Partition, Users, event_type


@pytest.mark.feature("content-routing F8")
def test_near_a_type_are_its_own_and_the_open_ones() -> None:
    roots: Partition[str] = Partition()
    for kind, item in (("A", "a1"), (None, "open"), ("B", "b1"), ("A", "a2")):
        roots.add(kind, item)
    assert list(roots.near("A")) == ["open", "a1", "a2"]
    assert list(roots.near("C")) == ["open"]
    assert sorted(roots.near(None)) == ["a1", "a2", "b1", "open"]
    assert roots.of("A") == ["a1", "a2"]
    roots.discard("A", "a1")
    roots.discard("C", "a2")
    assert sorted(roots) == ["a2", "b1", "open"]
    assert len(roots) == 3


@pytest.mark.feature("content-routing F8")
def test_an_event_can_reach_the_interfaces_of_its_type_and_the_open_ones() -> None:
    users = Users()
    for kind, interface in (("A", "a"), ("A", "a"), ("B", "b"), (None, "c"), (None, "a")):
        users.add(kind, interface)
    assert [users.reach(kind) for kind in ("A", "B", "C", None)] == [2, 3, 2, 3]
    users.remove(None, "a")
    users.remove("A", "a")
    assert [users.reach(kind) for kind in ("A", "B", "C", None)] == [2, 2, 1, 3]
    users.remove("A", "a")
    assert users.reach(None) == 2


@pytest.mark.feature("content-routing F8")
def test_the_type_of_an_event_is_a_text_under_its_name() -> None:
    assert event_type({"type": "A", "x": 1}) == "A"
    assert event_type({"type": 7}) is None
    assert event_type({"x": 1}) is None
    assert event_type(7) is None

"""The subscription store by itself: conditions, indexes, tombstones, one copy for each client."""

from __future__ import annotations

from typing import Any

import pytest

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.messages import Condition, Item, Subscription
from godwit.protocols.gathering.subscriptions import OPERATORS, SubscriptionStore, fulfilled, grouped

AREA = Disc((0.0, 0.0), 5.0)


def wanted(sid: str, client: str = "a", kind: str = "t", **others: Any) -> Subscription:
    return Subscription(sid, kind, AREA, client, **others)


@pytest.mark.feature("data-gathering F16")
@pytest.mark.parametrize(
    ("op", "value", "fits", "fails"),
    [
        ("=", 5, 5, 6),
        ("!=", 5, 6, 5),
        ("<", 5, 4, 5),
        ("<=", 5, 5, 6),
        (">", 5, 6, 5),
        (">=", 5, 5, 4),
        ("in", (1, 2), 2, 3),
        ("prefix", "ab", "abc", "xab"),
    ],
)
def test_every_operator_decides(op: str, value: Any, fits: Any, fails: Any) -> None:
    condition = Condition("x", value, op)
    assert fulfilled(condition, {"x": fits})
    assert not fulfilled(condition, {"x": fails})
    assert not fulfilled(condition, {})
    assert op in OPERATORS


@pytest.mark.parametrize("condition", [Condition("x", "five", "<"), Condition("x", 5, "~"), Condition("x", 5, "in")])
def test_what_cannot_be_compared_does_not_match_and_does_no_harm(condition: Condition) -> None:
    assert not fulfilled(condition, {"x": 4})


@pytest.mark.feature("data-gathering F14")
def test_subscriptions_are_found_by_client_and_by_type_until_removed() -> None:
    store = SubscriptionStore()
    for sid, client, kind in (("a#1", "a", "t"), ("a#2", "a", "u"), ("b#1", "b", "t")):
        assert store.insert(wanted(sid, client, kind))
    assert not store.insert(wanted("a#1"))
    assert [one.sid for one in store.by_client("a")] == ["a#1", "a#2"]
    assert sorted(one.sid for one in store.match(Item(("p", 1), "t", (1.0, 1.0), 0.0))) == ["a#1", "b#1"]
    assert store.remove("a#1")
    assert not store.remove("a#1")
    assert len(store) == 2
    assert store.overlapping(((10.0, 20.0), (0.0, 5.0))) == []


@pytest.mark.feature("data-gathering F28")
def test_only_a_newer_epoch_repoints_a_subscription() -> None:
    store = SubscriptionStore()
    store.insert(wanted("a#1", source=b"old", epoch=3))
    assert store.update_location("a", b"older", 3) == 0
    assert store.update_location("a", b"new", 4) == 1
    assert {one.source for one in store} == {b"new"}


def test_one_client_gets_one_copy_at_its_newest_broker() -> None:
    matches = [
        wanted("a#1", source=b"1", epoch=1),
        wanted("a#2", source=b"2", epoch=2),
        wanted("b#1", "b", source=b"1"),
    ]
    assert grouped(matches) == {b"2": {"a": ("a#1", "a#2")}, b"1": {"b": ("b#1",)}}

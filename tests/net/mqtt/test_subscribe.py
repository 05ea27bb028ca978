"""What clients write for a topic filter, and what the broker is asked for."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.mqtt.codec import PacketError, Subscribe, Wish
from godwit.net.mqtt.subscribe import conditions_of, subscription_of
from godwit.protocols.broker.api import Reason, RefusedError, RetainHandling, Subscription


def asked(pattern: str, *conditions: str) -> Subscription:
    return subscription_of(Wish(pattern, 1), conditions, 0)


def test_options_are_kept() -> None:
    wanted = subscription_of(Wish("a/+", 1, True, True, 2), (), 7)
    assert wanted == Subscription("a/+", "a/+", "", "", 1, True, True, RetainHandling.NEVER, 7)


@pytest.mark.parametrize(
    ("pattern", "group", "condition", "topics"),
    [
        ("a/b", "", "", "a/b"),
        ("#", "", "", "#"),
        ("$share/g/a/#", "g", "", "a/#"),
        ("$share/g//", "g", "", "/"),
        ("$filter/pm25%20%3E%20150/air/+", "", "pm25 > 150", "air/+"),
        ("$filter/a%2Fb%20=%201/#", "", "a/b = 1", "#"),
        ("$share/g/$filter/x%3D1/a", "g", "x=1", "a"),
        ("$sys/x", "", "", "$sys/x"),
        ("$shared/g/a", "", "", "$shared/g/a"),
    ],
)
def test_groups_and_conditions_are_read_from_the_topic(pattern: str, group: str, condition: str, topics: str) -> None:
    wanted = asked(pattern)
    assert (wanted.key, wanted.group, wanted.condition, wanted.topics) == (pattern, group, condition, topics)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_condition_can_be_written_into_a_topic(condition: str) -> None:
    assert asked(f"$filter/{quote(condition, safe='')}/a").condition == condition


def test_all_conditions_must_hold() -> None:
    assert asked("a", "x = 1").condition == "x = 1"
    assert asked("$filter/y%3D2/a", "x = 1 OR z").condition == "(x = 1 OR z) AND (y=2)"
    packet = Subscribe(1, (), 0, (("filter", "x"), ("other", "y"), ("filter", "z")))
    assert conditions_of(packet) == ["x", "z"]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("", "empty"),
        ("a#", "'#' must be"),
        ("a/#/b", "'#' must be"),
        ("a+/b", "'+' must be"),
        ("$share/g", "$share/<group>/<topic filter>"),
        ("$share//a", "$share/<group>/<topic filter>"),
        ("$share/g+/a", "no wildcard in the group"),
        ("$share/g/", "empty"),
        ("$filter/x", "$filter/<percent-encoded condition>/<topic filter>"),
        ("$filter//a", "$filter/<percent-encoded condition>/<topic filter>"),
        ("$filter/x%3D1/", "empty"),
        ("$filter/%FF/a", "not UTF-8"),
    ],
)
def test_what_is_no_topic_filter_is_refused_by_name(pattern: str, text: str) -> None:
    with pytest.raises(RefusedError) as refused:
        asked(pattern)
    assert refused.value.reason == Reason.TOPIC_FILTER_INVALID
    assert text in refused.value.text


def test_a_shared_subscription_cannot_leave_out_ones_own() -> None:
    with pytest.raises(PacketError):
        subscription_of(Wish("$share/g/a", no_local=True), (), 0)


def test_an_empty_condition_is_a_mistake_and_not_a_wish_for_everything() -> None:
    with pytest.raises(PacketError, match="empty `filter`"):
        conditions_of(Subscribe(1, (Wish("a"),), user_properties=(("filter", ""),)))


def test_a_group_comes_before_a_condition() -> None:
    with pytest.raises(RefusedError, match=r"right would be \$share"):
        asked("$filter/x%3D1/$share/g/a")

"""From topic filters on the wire to what the broker calls a subscription.

sport/+/score                               a topic filter
$share/<group>/<topic filter>               shared among the group
$filter/<condition>/<topic filter>          with a condition on the content, percent-encoded
$share/<group>/$filter/<condition>/<topic filter>
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from godwit.net.mqtt.codec import PROTOCOL_ERROR, PacketError, Subscribe, Wish
from godwit.protocols.broker.api import Reason, RefusedError, RetainHandling, Subscription
from godwit.protocols.broker.topics import problem_of_filter

FILTER = "filter"
"""The user property of SUBSCRIBE that carries a condition for all topic filters of the packet."""

SHARE_PREFIX = "$share/"
FILTER_PREFIX = "$filter/"


def conditions_of(packet: Subscribe) -> list[str]:
    """What the packet wants of the content, whatever the topic."""
    found = [value for name, value in packet.user_properties if name == FILTER]
    if "" in found:
        raise PacketError("SUBSCRIBE: an empty `filter`; leave the property out to ask for all content", PROTOCOL_ERROR)
    return found


def subscription_of(wish: Wish, conditions: Iterable[str], identifier: int) -> Subscription:
    """What the broker is asked for; `RefusedError` where the topic filter is none."""
    group, rest = _split_share(wish.pattern)
    if group and wish.no_local:
        raise PacketError(f"SUBSCRIBE: no-local on the shared subscription {wish.pattern!r}", PROTOCOL_ERROR)
    condition, topics = _split_filter(rest)
    if condition and topics.startswith(SHARE_PREFIX):
        raise _invalid(f"{wish.pattern!r}: right would be $share/<group>/$filter/<condition>/<topic filter>")
    problem = problem_of_filter(topics)
    if problem:
        raise _invalid(problem)
    return Subscription(
        wish.pattern,
        topics,
        _all_of([*conditions, *([condition] if condition else [])]),
        group,
        wish.qos,
        wish.no_local,
        wish.retain_as_published,
        RetainHandling(wish.retain_handling),
        identifier,
    )


def _split_share(pattern: str) -> tuple[str, str]:
    if not pattern.startswith(SHARE_PREFIX):
        return "", pattern
    group, slash, rest = pattern[len(SHARE_PREFIX) :].partition("/")
    if not group or not slash or "+" in group or "#" in group:
        raise _invalid(f"{pattern!r}: a shared subscription is $share/<group>/<topic filter>, no wildcard in the group")
    return group, rest


def _split_filter(pattern: str) -> tuple[str, str]:
    if not pattern.startswith(FILTER_PREFIX):
        return "", pattern
    encoded, slash, topics = pattern[len(FILTER_PREFIX) :].partition("/")
    if not encoded or not slash:
        raise _invalid(f"{pattern!r}: a content filter is $filter/<percent-encoded condition>/<topic filter>")
    try:
        return unquote(encoded, errors="strict"), topics
    except UnicodeDecodeError:
        raise _invalid(f"{pattern!r}: the condition is not UTF-8 once its percent signs are decoded") from None


def _all_of(conditions: list[str]) -> str:
    if len(conditions) < 2:
        return "".join(conditions)
    return " AND ".join(f"({condition})" for condition in conditions)


def _invalid(text: str) -> RefusedError:
    return RefusedError(Reason.TOPIC_FILTER_INVALID, text)

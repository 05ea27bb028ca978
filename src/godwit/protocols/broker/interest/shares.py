"""Shared groups in what a broker states: which of them have members here, so that whoever matches an event can choose
one broker of the whole fabric (docs/broker.md, "Shared subscriptions").

A group is stated as the filters of what it wants, each with one more attribute that names the group. No event has that
attribute. So whoever does not part these filters from the others never sends anything for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from godwit.filters.filters import Filter, FilterSet, attribute, filter_of
from godwit.filters.predicates import Text, equ
from godwit.protocols.broker.interest.stated import shallow
from godwit.protocols.broker.session.parse import wanted_filters
from godwit.protocols.broker.session.state import GroupKey, Sub

SHARE = "$share"

GROUPS_MAX = 256
"""So many groups a broker states. It deals out of others by itself what others deal out too: every broker files each of
them, so that one client must not be able to name any number."""

_keys: msgspec.json.Decoder[GroupKey] = msgspec.json.Decoder(GroupKey)

ALTERNATIVES_MAX = 16
"""A condition with more is stated without them: whoever gets an event looks itself whether the group wants it."""


def stated(key: GroupKey, filters: FilterSet | None) -> tuple[Filter, ...]:
    """How a group is stated that wants this; None: whatever the content."""
    topics, filters = shallow(key[1], filters)
    if filters is None or len(filters.filters) > ALTERNATIVES_MAX:
        filters = wanted_filters(topics, None)
    named = attribute(SHARE, equ(msgspec.json.encode(key).decode()))
    return tuple(filter_of(named, *one) for one in filters)


def group_of(stated: Filter) -> GroupKey | None:
    """The group that a stated filter speaks of; None where it is for the broker itself, or speaks of none."""
    for own in stated:
        if own.name == SHARE and len(own.clause) == 1 and isinstance(text := own.clause[0], Text):
            try:
                return _keys.decode(text.operand)
            except msgspec.DecodeError:
                return None
    return None


def opened(stated: Filter) -> Filter:
    """What the group wants, whoever is in it."""
    return Filter(tuple(own for own in stated if own.name != SHARE))


def parted(filters: Iterable[Filter]) -> tuple[tuple[Filter, ...], tuple[Filter, ...]]:
    """Those that are for the broker itself, and those of groups."""
    plain, shares = list[Filter](), list[Filter]()
    for one in filters:
        (shares if any(own.name == SHARE for own in one) else plain).append(one)
    return tuple(plain), tuple(shares)


class Shares:
    """The groups that have members at a broker. One that was stated is until its last member has gone, and one that was
    too many is not until then: whoever deals is never another one from one moment to the next."""

    def __init__(self) -> None:
        self._members: Counter[GroupKey] = Counter()
        self._stated: dict[GroupKey, tuple[Filter, ...]] = {}

    def __contains__(self, key: GroupKey) -> bool:
        return key in self._stated

    def add(self, sub: Sub) -> bool:
        """Whether its group is stated; else the broker must want what it wants."""
        key = key_of(sub)
        self._members[key] += 1
        if self._members[key] == 1 and len(self._stated) < GROUPS_MAX:
            self._stated[key] = stated(key, sub.condition)
        return key in self._stated

    def remove(self, sub: Sub) -> bool:
        """What was added; whether its group was stated."""
        key = key_of(sub)
        self._members[key] -= 1
        was_stated = key in self._stated
        if not self._members[key]:
            del self._members[key]
            self._stated.pop(key, None)
        return was_stated

    def filters(self) -> tuple[Filter, ...]:
        return tuple(one for key in sorted(self._stated) for one in self._stated[key])


def key_of(sub: Sub) -> GroupKey:
    return sub.wanted.group, sub.wanted.topics, sub.wanted.condition

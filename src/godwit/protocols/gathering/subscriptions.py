"""The subscription store (spec data-gathering 2.5, 2.7): once per sid, found by client and by event type.

An unsubscription leaves a tombstone, since a subscription that it overtook may still arrive.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from godwit.protocols.gathering.messages import ClientId, Condition, Item, Scalar, Subscription
from godwit.protocols.gathering.space import Box
from godwit.protocols.topology.pastry.keys import Key

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, wanted: value in wanted,
    "prefix": lambda value, wanted: isinstance(value, str) and value.startswith(wanted),
}


def fulfilled(condition: Condition, data: dict[str, Scalar]) -> bool:
    """A missing attribute never matches, and neither do values that cannot be compared."""
    if condition.attribute not in data:
        return False
    try:
        return bool(OPERATORS[condition.op](data[condition.attribute], condition.value))
    except (KeyError, TypeError):
        return False


class SubscriptionStore:
    """Times are given: nothing here knows a clock."""

    def __init__(self) -> None:
        self._by_sid: dict[str, Subscription] = {}
        self._by_client: dict[ClientId, set[str]] = {}
        self._by_type: dict[str, set[str]] = {}
        self._ends_s: dict[str, float] = {}
        self._tombs: dict[str, float] = {}
        """Until when a sid may not come back."""

    def __len__(self) -> int:
        return len(self._by_sid)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._by_sid.values())

    def __contains__(self, sid: str) -> bool:
        return sid in self._by_sid

    def insert(self, subscription: Subscription, now_s: float = 0.0) -> bool:
        """Again is no change, unless its epoch is newer; a sid with a tombstone is refused."""
        sid = subscription.sid
        if self._tombs.get(sid, now_s) > now_s:
            return False
        there = self._by_sid.get(sid)
        if there is not None and there.epoch >= subscription.epoch:
            return False
        self._by_sid[sid] = subscription
        self._by_client.setdefault(subscription.client, set()).add(sid)
        self._by_type.setdefault(subscription.event_type, set()).add(sid)
        if there is None and subscription.ttl_s is not None:
            self._ends_s[sid] = now_s + subscription.ttl_s
        return True

    def remove(self, sid: str, *, tombstone_until_s: float | None = None) -> bool:
        if tombstone_until_s is not None:
            self._tombs[sid] = tombstone_until_s
        there = self._by_sid.pop(sid, None)
        if there is None:
            return False
        self._ends_s.pop(sid, None)
        _discard(self._by_client, there.client, sid)
        _discard(self._by_type, there.event_type, sid)
        return True

    def match(self, item: Item, now_s: float = 0.0) -> list[Subscription]:
        sids = self._by_type.get(item.event_type, ())
        found = [self._by_sid[sid] for sid in sids if self._ends_s.get(sid, now_s) >= now_s]
        return [
            one
            for one in found
            if one.area.contains(item.place) and all(fulfilled(condition, item.data) for condition in one.conditions)
        ]

    def by_client(self, client: ClientId) -> list[Subscription]:
        return [self._by_sid[sid] for sid in sorted(self._by_client.get(client, ()))]

    def update_location(self, client: ClientId, broker: Key, epoch: int, *, always: bool = False) -> int:
        """Point the client's subscriptions to another broker, where that is newer; how many changed."""
        changed = [one for one in self.by_client(client) if always or one.epoch < epoch]
        for one in changed:
            self._by_sid[one.sid] = replace(one, source=broker, epoch=epoch)
        return len(changed)

    def overlapping(self, box: Box) -> list[Subscription]:
        return [one for one in self._by_sid.values() if one.area.meets(box)]

    def keep_only(self, wanted: Callable[[Subscription], bool]) -> None:
        for sid in [one.sid for one in self._by_sid.values() if not wanted(one)]:
            self.remove(sid)

    def tombstones(self, now_s: float) -> list[str]:
        return sorted(sid for sid, until_s in self._tombs.items() if until_s > now_s)

    def expire(self, now_s: float) -> None:
        """Forget tombstones and subscriptions whose time is over."""
        self._tombs = {sid: until_s for sid, until_s in self._tombs.items() if until_s > now_s}
        for sid in [sid for sid, end_s in self._ends_s.items() if end_s < now_s]:
            self.remove(sid)


def _discard(index: dict[str, set[str]], name: str, sid: str) -> None:
    sids = index[name]
    sids.discard(sid)
    if not sids:
        del index[name]


def grouped(matches: Iterable[Subscription]) -> dict[Key, dict[ClientId, tuple[str, ...]]]:
    """One copy for each client: at the broker that its newest subscription names."""
    by_client: dict[ClientId, list[Subscription]] = {}
    for one in matches:
        by_client.setdefault(one.client, []).append(one)
    brokers: dict[Key, dict[ClientId, tuple[str, ...]]] = {}
    for client in sorted(by_client):
        newest = max(by_client[client], key=lambda one: (one.epoch, one.source))
        brokers.setdefault(newest.source, {})[client] = tuple(sorted(one.sid for one in by_client[client]))
    return brokers

"""The counting matcher (spec 2.9): find the attribute filters that an event satisfies, then count them by filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import chain

from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS
from godwit.filters.predicates import ABSENT, Interval, Kind, Values, kind_of, place_of
from godwit.tables.attributes import INDEXES, Index
from godwit.tables.merging import minimal_cover
from godwit.tables.table import Interface


class Counting:
    """A dedicated matcher for the filters of this package: it looks inside them, so no other language will do.

    It knows nothing of covering: adding and removing cost the same however many filters there are, and `roots` is
    computed by comparing all of them.
    """

    def __init__(self) -> None:
        self._numbers: dict[Filter, int] = {}
        self._births = 0
        self._members: dict[int, dict[Interface, set[Hashable]]] = {}
        self._needs: dict[int, int] = {}
        self._always: dict[int, None] = {}
        self._attributes = _Attributes()
        self._uses: Counter[Interface] = Counter()

    def add(self, wanted: Filter, interface: Interface, /, subscription: Hashable = None) -> bool:
        """An interface may subscribe to the same filter several times, under different names."""
        number = self._numbers.get(wanted)
        if number is None:
            number = self._enter(wanted)
        subscriptions = self._members[number].setdefault(interface, set())
        if subscription in subscriptions:
            return False
        self._uses[interface] += not subscriptions
        subscriptions.add(subscription)
        return True

    def remove(self, wanted: Filter, interface: Interface, /, subscription: Hashable = None) -> bool:
        number = self._numbers.get(wanted)
        if number is None:
            return False
        members = self._members[number]
        subscriptions = members.get(interface, set())
        if subscription not in subscriptions:
            return False
        subscriptions.discard(subscription)
        if not subscriptions:
            del members[interface]
            self._uses[interface] -= 1
            if not self._uses[interface]:
                del self._uses[interface]
        if not members:
            self._leave(wanted)
        return True

    def match(self, event: Values, /) -> set[Interface]:
        found: set[Interface] = set()
        for number in self._matching(event):
            found.update(self._members[number])
            if len(found) == len(self._uses):
                break
        return found

    def subscriptions(self, event: Values, /) -> dict[Interface, set[Hashable]]:
        """Which subscriptions of which interface want the event."""
        found: dict[Interface, set[Hashable]] = {}
        for number in self._matching(event):
            for interface, subscriptions in self._members[number].items():
                found.setdefault(interface, set()).update(subscriptions)
        return found

    def roots(self) -> list[Filter]:
        return minimal_cover(FILTERS, self._numbers)

    def interfaces(self, wanted: Filter, /) -> frozenset[Interface]:
        number = self._numbers.get(wanted)
        return frozenset() if number is None else frozenset(self._members[number])

    def __iter__(self) -> Iterator[Filter]:
        return iter(list(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self._numbers

    def _enter(self, wanted: Filter) -> int:
        number = self._numbers[wanted] = self._births
        self._births += 1
        self._members[number] = {}
        demands = _demands(wanted)
        for attribute in demands:
            self._attributes.add(attribute, number)
        self._needs[number] = len(demands)
        if not demands:
            self._always[number] = None
        return number

    def _leave(self, wanted: Filter) -> None:
        number = self._numbers.pop(wanted)
        for attribute in _demands(wanted):
            self._attributes.remove(attribute, number)
        del self._members[number], self._needs[number]
        self._always.pop(number, None)

    def _matching(self, event: Values) -> Iterator[int]:
        yield from self._always
        needs = self._needs
        for number, count in self._attributes.counts(event).items():
            if count == needs[number]:
                yield number


class _Attributes:
    """Attribute filters, each known once however many filters demand it."""

    def __init__(self) -> None:
        self._items: dict[AttributeFilter, int] = {}
        self._births = 0
        self._users: dict[int, dict[int, None]] = {}
        self._indexes: dict[Kind, dict[str, Index]] = {kind: {} for kind in INDEXES}
        self._absent: dict[str, dict[int, None]] = {}
        self._repeating = 0

    def add(self, attribute: AttributeFilter, user: int) -> None:
        item = self._items.get(attribute)
        if item is None:
            item = self._items[attribute] = self._births
            self._births += 1
            self._users[item] = {}
            self._enter(attribute, item)
        self._users[item][user] = None

    def remove(self, attribute: AttributeFilter, user: int) -> None:
        item = self._items[attribute]
        del self._users[item][user]
        if not self._users[item]:
            self._leave(attribute, item)
            del self._users[item], self._items[attribute]

    def counts(self, event: Values) -> Counter[int]:
        """How many attribute filters of each user the event satisfies; a disjunctive one counts once."""
        satisfied = self._satisfied(event)
        items = set(satisfied) if self._repeating else satisfied
        return Counter(chain.from_iterable(map(self._users.__getitem__, items)))

    def _satisfied(self, event: Values) -> list[int]:
        found: list[int] = []
        anything = self._indexes[Kind.ANY]
        for name, value in event.items():
            kind = kind_of(value)
            if kind is None:
                continue
            for index in (self._indexes[kind].get(name), anything.get(name)):
                if index is not None:
                    found += index.at(value, event)
        for name, index in self._indexes[Kind.PLACE].items():
            place = place_of(name, event)
            if place is not None:
                found += index.at(place, event)
        for name, items in self._absent.items():
            if event.get(name) is None:
                found += items
        return found

    def _enter(self, attribute: AttributeFilter, item: int) -> None:
        self._repeating += _may_repeat(attribute)
        for predicate in attribute.clause:
            if predicate == ABSENT:
                self._absent.setdefault(attribute.name, {})[item] = None
            else:
                self._index(attribute).add(predicate, item)

    def _leave(self, attribute: AttributeFilter, item: int) -> None:
        self._repeating -= _may_repeat(attribute)
        for predicate in attribute.clause:
            if predicate == ABSENT:
                del self._absent[attribute.name][item]
                if not self._absent[attribute.name]:
                    del self._absent[attribute.name]
            else:
                self._index(attribute).remove(predicate, item)

    def _index(self, attribute: AttributeFilter) -> Index:
        indexes = self._indexes[attribute.kind]
        if attribute.name not in indexes:
            indexes[attribute.name] = INDEXES[attribute.kind]()
        return indexes[attribute.name]


def _demands(wanted: Filter) -> list[AttributeFilter]:
    """What an event must satisfy. A rate limit is no property of one event, so it is not counted."""
    return [attribute for attribute in wanted if attribute.kind is not Kind.RATE]


def _may_repeat(attribute: AttributeFilter) -> bool:
    """Whether one value can satisfy several disjuncts; intervals of one clause never meet."""
    return len(attribute.clause) > 1 and not all(isinstance(p, Interval) for p in attribute.clause)

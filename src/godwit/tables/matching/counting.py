"""The counting matcher (spec 2.9): find the attribute filters that an event satisfies, then count them by filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS
from godwit.filters.predicates import Interval, Kind, Values
from godwit.tables.matching.attributes import Attributes
from godwit.tables.merging.merging import minimal_cover
from godwit.tables.table import Interface


class Counting:
    """A dedicated matcher for the filters of this package: it looks inside them, so no other language will do.

    It knows nothing of covering: adding and removing cost the same however many filters there are, and `roots` compares
    all of them.
    """

    def __init__(self) -> None:
        self._numbers: dict[Filter, int] = {}
        self._births = 0
        self._members: dict[int, dict[Interface, set[Hashable]]] = {}
        self._uses: Counter[Interface] = Counter()
        self._demands = _Demands()

    def add(self, wanted: Filter, interface: Interface, /, subscription: Hashable = None) -> bool:
        """An interface may subscribe to the same filter several times, under different names."""
        number = self._numbers.get(wanted)
        if number is None:
            number = self._numbers[wanted] = self._births
            self._births += 1
            self._members[number] = {}
            self._demands.add(number, wanted)
        subscriptions = self._members[number].setdefault(interface, set())
        if subscription in subscriptions:
            return False
        self._uses[interface] += not subscriptions
        subscriptions.add(subscription)
        return True

    def remove(self, wanted: Filter, interface: Interface, /, subscription: Hashable = None) -> bool:
        members = self._members.get(self._numbers.get(wanted, -1), {})
        if subscription not in members.get(interface, ()):
            return False
        members[interface].discard(subscription)
        if not members[interface]:
            del members[interface]
            self._uses[interface] -= 1
            if not self._uses[interface]:
                del self._uses[interface]
        if not members:
            number = self._numbers.pop(wanted)
            del self._members[number]
            self._demands.remove(number, wanted)
        return True

    def match(self, event: Values, /) -> set[Interface]:
        found: set[Interface] = set()
        for number in self._demands.met(event):
            found.update(self._members[number])
            if len(found) == len(self._uses):
                break
        return found

    def subscriptions(self, event: Values, /) -> dict[Interface, set[Hashable]]:
        """Which subscriptions of which interface want the event."""
        found: dict[Interface, set[Hashable]] = {}
        for number in self._demands.met(event):
            for interface, subscriptions in self._members[number].items():
                found.setdefault(interface, set()).update(subscriptions)
        return found

    def roots(self) -> list[Filter]:
        return minimal_cover(FILTERS, self._numbers)

    def interfaces(self, wanted: Filter, /) -> frozenset[Interface]:
        return frozenset(self._members.get(self._numbers.get(wanted, -1), ()))

    def __iter__(self) -> Iterator[Filter]:
        return iter(list(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self._numbers


class _Demands:
    """Filters by number, and how many attribute filters each of them needs satisfied.

    Most attribute filters can be satisfied in one way only by any value: their entries in the indexes are the number of
    the filter itself, and counting takes no detour. Where several disjuncts may hold at once, the attribute filter has
    an entry of its own, so that it can be counted once.
    """

    def __init__(self) -> None:
        self._needs: dict[int, int] = {}
        self._undemanding: dict[int, None] = {}
        self._plain = Attributes()
        self._ambiguous = Attributes()
        self._entries: dict[tuple[int, AttributeFilter], int] = {}
        self._owners: dict[int, int] = {}
        self._births = 0

    def add(self, number: int, wanted: Filter) -> None:
        demands = _demands(wanted)
        self._needs[number] = len(demands)
        if not demands:
            self._undemanding[number] = None
        for attribute in demands:
            if _is_ambiguous(attribute):
                entry = self._entries[number, attribute] = self._births
                self._births += 1
                self._owners[entry] = number
                self._ambiguous.add(attribute, entry)
            else:
                self._plain.add(attribute, number)

    def remove(self, number: int, wanted: Filter) -> None:
        del self._needs[number]
        self._undemanding.pop(number, None)
        for attribute in _demands(wanted):
            if _is_ambiguous(attribute):
                entry = self._entries.pop((number, attribute))
                del self._owners[entry]
                self._ambiguous.remove(attribute, entry)
            else:
                self._plain.remove(attribute, number)

    def met(self, event: Values) -> Iterator[int]:
        """The filters that the event satisfies, those that ask for nothing first."""
        yield from self._undemanding
        counts = Counter(self._plain.satisfied(event))
        if self._owners:
            counts.update(map(self._owners.__getitem__, set(self._ambiguous.satisfied(event))))
        needs = self._needs
        for number, count in counts.items():
            if count == needs[number]:
                yield number


def _demands(wanted: Filter) -> list[AttributeFilter]:
    """What an event must satisfy. A rate limit is no property of one event, so it is not counted."""
    return [attribute for attribute in wanted if attribute.kind is not Kind.RATE]


def _is_ambiguous(attribute: AttributeFilter) -> bool:
    """Whether one value might satisfy several disjuncts; intervals of one clause never meet."""
    return len(attribute.clause) > 1 and not all(isinstance(p, Interval) for p in attribute.clause)

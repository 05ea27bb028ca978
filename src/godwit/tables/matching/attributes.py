"""Which attribute filters does an event satisfy? Indexes for each kind of predicate (spec 2.9).

Attribute filters are entered under numbers of the caller's choice. What comes out is the number of each that holds, and
as often as several of its disjuncts do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from godwit.filters.areas import wrapped
from godwit.filters.clauses import AttributeFilter
from godwit.filters.predicates import (
    ABSENT,
    Exists,
    Flag,
    Hole,
    Interval,
    Kind,
    Number,
    Predicate,
    Text,
    TextOp,
    Values,
    Within,
    kind_of,
    place_of,
)
from godwit.tables.matching.intervals import Intervals

Group = dict[Any, dict[int, None]]
"""Numbers by the operand of their predicate, in order of arrival."""


class Attributes:
    """Attribute filters by name and kind; those that a missing attribute satisfies by name only."""

    def __init__(self) -> None:
        self._indexes: dict[Kind, dict[str, AttributeIndex]] = {kind: {} for kind in INDEXES}
        self._absent: dict[str, dict[int, None]] = {}

    def add(self, attribute: AttributeFilter, item: int) -> None:
        for predicate in attribute.clause:
            if predicate == ABSENT:
                self._absent.setdefault(attribute.name, {})[item] = None
            else:
                self._index(attribute).add(predicate, item)

    def remove(self, attribute: AttributeFilter, item: int) -> None:
        for predicate in attribute.clause:
            if predicate == ABSENT:
                del self._absent[attribute.name][item]
                if not self._absent[attribute.name]:
                    del self._absent[attribute.name]
            else:
                self._index(attribute).remove(predicate, item)

    def satisfied(self, event: Values) -> list[int]:
        found: list[int] = []
        anything = self._indexes[Kind.ANY]
        for name, value in event.items():
            kind = kind_of(value)
            if kind is not None:
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

    def _index(self, attribute: AttributeFilter) -> AttributeIndex:
        indexes = self._indexes[attribute.kind]
        if attribute.name not in indexes:
            indexes[attribute.name] = INDEXES[attribute.kind]()
        return indexes[attribute.name]


class AttributeIndex:
    """Predicates on the values of one attribute, all of one kind: those that only ask for a value, and the remainder.

    The remainder (placeholders, LIKE, predicates of your own) is tried one by one.
    """

    def __init__(self) -> None:
        self._present: Group = {}
        self._remainder: dict[tuple[Predicate, int], None] = {}

    def add(self, predicate: Predicate, item: int) -> None:
        home = self._group(predicate)
        if home is None:
            self._remainder[predicate, item] = None
        else:
            group, operand = home
            group.setdefault(operand, {})[item] = None

    def remove(self, predicate: Predicate, item: int) -> None:
        home = self._group(predicate)
        if home is None:
            del self._remainder[predicate, item]
            return
        group, operand = home
        del group[operand][item]
        if not group[operand]:
            del group[operand]

    def at(self, value: Any, values: Values) -> list[int]:
        """The numbers that the value satisfies; `values` is the whole event."""
        found = list(self._present.get(None, ()))
        found += [item for predicate, item in self._remainder if predicate.accepts(value, values)]
        return found

    def _group(self, predicate: Predicate) -> tuple[Group, Any] | None:
        """Where the predicate is found by its operand, or None where it can only be tried."""
        return (self._present, None) if isinstance(predicate, Exists) else None


class Numbers(AttributeIndex):
    """Equality by hash, ranges by interval."""

    def __init__(self) -> None:
        super().__init__()
        self._equal: Group = {}
        self._unequal: Group = {}
        self._ranges = Intervals()

    def add(self, predicate: Predicate, item: int) -> None:
        if isinstance(predicate, Interval) and _only(predicate) is None:
            self._ranges.add(predicate.lo, predicate.hi, item)
        else:
            super().add(predicate, item)

    def remove(self, predicate: Predicate, item: int) -> None:
        if isinstance(predicate, Interval) and _only(predicate) is None:
            self._ranges.remove(predicate.lo, predicate.hi, item)
        else:
            super().remove(predicate, item)

    def at(self, value: Any, values: Values) -> list[int]:
        found = super().at(value, values)
        found += self._ranges.at(value)
        found += self._equal.get(value, ())
        for operand, items in self._unequal.items():
            if operand != value:
                found += items
        return found

    def _group(self, predicate: Predicate) -> tuple[Group, Any] | None:
        if isinstance(predicate, Interval):
            return self._equal, _only(predicate)
        return (self._unequal, predicate.value) if isinstance(predicate, Hole) else super()._group(predicate)


class Strings(AttributeIndex):
    """By operator and operand; LIKE patterns remain to be tried."""

    def __init__(self) -> None:
        super().__init__()
        self._by_operator: dict[TextOp, Group] = {op: {} for op in LOOKUPS}

    def at(self, value: Any, values: Values) -> list[int]:
        found = super().at(value, values)
        for op, group in self._by_operator.items():
            if group:
                for items in LOOKUPS[op](group, value):
                    found += items
        return found

    def _group(self, predicate: Predicate) -> tuple[Group, Any] | None:
        if isinstance(predicate, Text) and predicate.op in LOOKUPS:
            return self._by_operator[predicate.op], predicate.operand
        return super()._group(predicate)


class Flags(AttributeIndex):
    def __init__(self) -> None:
        super().__init__()
        self._equal: Group = {}

    def at(self, value: Any, values: Values) -> list[int]:
        return [*super().at(value, values), *self._equal.get(value, ())]

    def _group(self, predicate: Predicate) -> tuple[Group, Any] | None:
        return (self._equal, predicate.value) if isinstance(predicate, Flag) else super()._group(predicate)


class Places(AttributeIndex):
    """Areas by the latitudes and longitudes they reach into; only what lies in both is looked at closely."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[tuple[Within, int], int] = {}
        self._areas: dict[int, tuple[Within, int]] = {}
        self._births = 0
        self._lats = Intervals()
        self._lons = Intervals()

    def add(self, predicate: Predicate, item: int) -> None:
        if not isinstance(predicate, Within):
            super().add(predicate, item)
            return
        number = self._numbers[predicate, item] = self._births
        self._births += 1
        self._areas[number] = (predicate, item)
        bounds = predicate.area.bounds()
        self._lats.add((bounds.south, 0), (bounds.north, 1), number)
        for west, east in bounds.lons:
            self._lons.add((west, 0), (east, 1), number)

    def remove(self, predicate: Predicate, item: int) -> None:
        if not isinstance(predicate, Within):
            super().remove(predicate, item)
            return
        number = self._numbers.pop((predicate, item))
        del self._areas[number]
        bounds = predicate.area.bounds()
        self._lats.remove((bounds.south, 0), (bounds.north, 1), number)
        for west, east in bounds.lons:
            self._lons.remove((west, 0), (east, 1), number)

    def at(self, value: Any, values: Values) -> list[int]:
        lat, lon = value
        near = set(self._lats.at(lat)).intersection(self._lons.at(wrapped(lon)))
        found = super().at(value, values)
        found += [item for within, item in map(self._areas.__getitem__, near) if within.accepts(value, values)]
        return found


INDEXES: dict[Kind, type[AttributeIndex]] = {
    Kind.NUMBER: Numbers,
    Kind.STRING: Strings,
    Kind.BOOL: Flags,
    Kind.PLACE: Places,
    Kind.ANY: AttributeIndex,
}


def _only(interval: Interval) -> Number | None:
    """The one number of an interval that is an equality."""
    (low, above_low), (high, above_high) = interval.lo, interval.hi
    return low if low == high and not above_low and above_high else None


def _prefixes(group: Group, value: str) -> Iterable[dict[int, None]]:
    if len(group) <= len(value):
        return [items for operand, items in group.items() if value.startswith(operand)]
    return _known(group, (value[:stop] for stop in range(1, len(value) + 1)))


def _suffixes(group: Group, value: str) -> Iterable[dict[int, None]]:
    if len(group) <= len(value):
        return [items for operand, items in group.items() if value.endswith(operand)]
    return _known(group, (value[start:] for start in range(len(value))))


def _substrings(group: Group, value: str) -> Iterable[dict[int, None]]:
    """Try all operands, or look up all parts of the value, whichever are fewer."""
    if len(group) <= len(value) ** 2:
        return [items for operand, items in group.items() if operand in value]
    parts = (value[start:stop] for stop in range(1, len(value) + 1) for start in range(stop))
    return _known(group, dict.fromkeys(parts))


def _known(group: Group, parts: Iterable[str]) -> Iterable[dict[int, None]]:
    return [group[part] for part in parts if part in group]


LOOKUPS: dict[TextOp, Callable[[Group, str], Iterable[dict[int, None]]]] = {
    TextOp.EQU: lambda group, value: _known(group, (value,)),
    TextOp.STW: _prefixes,
    TextOp.END: _suffixes,
    TextOp.IN: _substrings,
    TextOp.NEQ: lambda group, value: [items for operand, items in group.items() if operand != value],
    TextOp.NIN: lambda group, value: [items for operand, items in group.items() if operand not in value],
}

"""Which of many conditions hold for a publication.

Those that name values are found by them. For the others the compiled index is taken only where it pays: it costs
seconds to load, and a change of it as much as twenty questions. A broker whose clients ask for no content, or for
single values, never needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from godwit.events import Value
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import AnyPredicate, Interval, Kind, Text, TextOp, kind_of

if TYPE_CHECKING:
    from godwit.tables.matching.index import Index, Matches


T = TypeVar("T")

FEW = 64
"""So many conditions are asked one by one faster than the index is loaded."""

SOON = 8
"""From so many on the index may be needed soon."""


class Conditions(Generic[T]):
    """Filters, each with whoever asked for it."""

    def __init__(self) -> None:
        self.prepared: Callable[[], bool] = lambda: True
        """Whether the index can be had at once. Who runs the broker may load it beside its work, when first asked."""
        self._points = Points()
        self._filters: dict[int, FilterSet] = {}
        """Those that are not found by a value."""
        self._asked_by: dict[int, T] = {}
        self._next = 0
        self._index: Index | None = None
        self._new: dict[int, FilterSet] = {}
        """Not in the index yet: they are put there together when the next question comes, which costs less."""

    def __len__(self) -> int:
        return len(self._asked_by)

    @property
    def gathers(self) -> bool:
        """Whether many events cost hardly more than a few of them."""
        return self._index is not None and self._index.gathers

    def add(self, filters: FilterSet, asked_by: T) -> int:
        """File it; the number by which it is removed."""
        self._next += 1
        self._asked_by[self._next] = asked_by
        if self._points.take(self._next, filters):
            return self._next
        self._filters[self._next] = filters
        self._new[self._next] = filters
        if self._index is None and len(self._filters) >= SOON:
            self.prepared()
        return self._next

    def remove(self, number: int) -> None:
        del self._asked_by[number]
        if number in self._points:
            self._points.remove(number)
            return
        del self._filters[number]
        if self._new.pop(number, None) is None and self._index is not None:
            self._index.remove(number)

    def match(self, events: Sequence[Mapping[str, Value]]) -> list[list[T]]:
        """For each event, who wants it."""
        asked_by = self._asked_by
        return [[asked_by[number] for number in numbers] for numbers in self.numbers(events)]

    def asked_by(self, number: int) -> T:
        return self._asked_by[number]

    def all_asked(self) -> Iterable[tuple[int, T]]:
        """Who asked for each, by its number."""
        return self._asked_by.items()

    def numbers(self, events: Sequence[Mapping[str, Value]]) -> list[list[int]]:
        """For each event the conditions that it meets, by the numbers under which they were filed."""
        find = self._points.find
        if not self._filters:
            return [find(values) for values in events]
        others = self._match_others(events)
        if not self._points:
            return others
        return [[*find(values), *numbers] for values, numbers in zip(events, others, strict=True)]

    def matches(self, events: Sequence[Mapping[str, Value]]) -> Matches | None:
        """The same as arrays, where the compiled index alone answers for all of these at once."""
        index = None if self._points or not self._filters else self._loaded()
        return index.match_together(events) if index is not None else None

    def _match_others(self, events: Sequence[Mapping[str, Value]]) -> list[list[int]]:
        index = self._loaded()
        if index is None:
            return [self._one_by_one(values) for values in events]
        return [numbers.tolist() for numbers in index.match_each(events)]

    def _one_by_one(self, values: Mapping[str, Value]) -> list[int]:
        return [number for number, filters in self._filters.items() if filters.matches(values)]

    def _loaded(self) -> Index | None:
        """The index with all that is asked for, once it is worth having."""
        if self._index is None:
            if len(self._filters) <= FEW or not self.prepared():
                return None
            from godwit.tables.matching.index import Index

            self._index = Index()
        if self._new:
            self._index.add_many(self._new, self._new.values())
            self._new = {}
        return self._index


# Conditions that name the very values they want, found by those values instead of being asked one after another.

CROWDED = 16
"""So many conditions are found by one value; what would be beyond is not taken, since all of them must be asked."""

VALUES_MAX = 64
"""In so many places one filter is filed."""


class _Filed:
    """One alternative of a condition, at each value that it wants of one attribute."""

    __slots__ = ("kind", "number", "others")

    def __init__(self, number: int, kind: Kind, others: Filter) -> None:
        self.number = number
        self.kind = kind
        self.others = others
        """What it asks beside that value."""


_Shelf = dict[_Filed, None]


class Points:
    """Each condition has a number. `take` says whether it is one for here; `find` then gives the numbers of those that
    an event meets, each once."""

    def __init__(self) -> None:
        self._shelves: dict[str, dict[Hashable, _Shelf]] = {}
        """By attribute and value."""
        self._filed: dict[int, list[tuple[_Filed, str, list[Hashable]]]] = {}

    def __len__(self) -> int:
        return len(self._filed)

    def __contains__(self, number: int) -> bool:
        return number in self._filed

    def take(self, number: int, wanted: FilterSet) -> bool:
        """False where one of the alternatives names no value, or only such as very many others name."""
        chosen = [self._choice(one) for one in wanted]
        filed: list[tuple[_Filed, str, list[Hashable]]] = []
        for one, choice in zip(wanted, chosen, strict=True):
            if choice is None:
                return False
            own, values = choice
            others = Filter(tuple(other for other in one if other is not own))
            filed.append((_Filed(number, own.kind, others), own.name, values))
        for entry, name, values in filed:
            shelves = self._shelves.setdefault(name, {})
            for value in values:
                shelves.setdefault(value, {})[entry] = None
        self._filed[number] = filed
        return True

    def remove(self, number: int) -> None:
        for entry, name, values in self._filed.pop(number):
            shelves = self._shelves[name]
            for value in values:
                del shelves[value][entry]
                if not shelves[value]:
                    del shelves[value]
            if not shelves:
                del self._shelves[name]

    def find(self, values: Mapping[str, Value]) -> list[int]:
        found: dict[int, None] = {}
        named = self._shelves
        for name in named if len(named) < len(values) else values:
            shelf = named[name].get(values.get(name)) if name in named else None
            if shelf:
                # Equal is not the same: true is 1 to Python, and not to a filter.
                kind = kind_of(values[name])
                for entry in shelf:
                    if entry.kind is kind and entry.others.matches(values):
                        found[entry.number] = None
        return list(found)

    def _choice(self, one: Filter) -> tuple[AttributeFilter, list[Hashable]] | None:
        """The attribute of which most values are named here: it tells events apart best, a kind or a topic little."""
        best: tuple[AttributeFilter, list[Hashable]] | None = None
        most = -1
        for own in one:
            values = _values(own)
            shelves = self._shelves.get(own.name, {})
            if values is None or len(shelves) <= most:
                continue
            if max(len(shelves.get(value, ())) for value in values) < CROWDED:
                best, most = (own, values), len(shelves)
        return best


def _values(own: AttributeFilter) -> list[Hashable] | None:
    """All values that it accepts, where it names them."""
    if own.kind not in (Kind.NUMBER, Kind.STRING) or not 0 < len(own.clause) <= VALUES_MAX:
        return None
    values = [_value(one) for one in own.clause]
    return None if None in values else values


def _value(predicate: AnyPredicate) -> Hashable | None:
    if isinstance(predicate, Text):
        return predicate.operand if predicate.op is TextOp.EQU else None
    if isinstance(predicate, Interval) and predicate.lo == (predicate.hi[0], 0) and predicate.hi[1]:
        return predicate.hi[0]
    return None

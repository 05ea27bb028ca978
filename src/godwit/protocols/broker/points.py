"""Conditions that name the very values they want, found by those values instead of being asked one after another."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from godwit.events import Value
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import AnyPredicate, Interval, Kind, Text, TextOp, kind_of

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

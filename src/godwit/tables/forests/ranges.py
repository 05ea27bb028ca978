"""Which of many filters lie around a given one, inside it, or across it? Found by comparing ranges, all at once.

Filters that give ranges of the same attributes have the same keys (`kin`), so keys do not tell them apart. Here the
outer bounds of each are in arrays, and one comparison of arrays leaves the few for which a test is worth it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from zlib import crc32

from godwit.filters.clauses import Clause
from godwit.filters.filters import Filter
from godwit.filters.predicates import Interval, Kind, Number, Text, TextOp, Within

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Range = tuple[float, float]
Ranges = Mapping[Any, Range]
RangesOf = Callable[[Any], Ranges]
"""A wider filter gives no range that a narrower one does not give too, and its own ranges hold those of the narrower.
Of two filters that overlap, the ranges that both give overlap too."""

NO_RANGES: Ranges = {}
ALL: Range = (-math.inf, math.inf)

MANY = 64
"""From so many on it pays to compare arrays."""

ROUNDING = 1e-9
"""Bounds of areas, in degrees, are rounded: what lies so little further out may still be inside."""


def ranges(wanted: Filter) -> Ranges:
    """The ranges of a filter of this package: of its numbers, of the latitudes and longitudes of its areas, and of the
    texts that it lists, each of which stands for a number that has no meaning."""
    found: dict[Hashable, Range] = {}
    for attribute in wanted:
        if attribute.kind is Kind.NUMBER:
            _narrow(found, attribute.key, _hull(attribute.clause))
        elif attribute.kind is Kind.STRING:
            _narrow(found, attribute.key, _listed(attribute.clause))
        elif attribute.kind is Kind.PLACE:
            south_north, west_east = _frame(attribute.clause)
            _narrow(found, (attribute.key, "lat"), south_north)
            _narrow(found, (attribute.key, "lon"), west_east)
    return found


def _narrow(found: dict[Hashable, Range], name: Hashable, own: Range) -> None:
    """Several conditions on one attribute hold together."""
    low, high = found.get(name, ALL)
    found[name] = max(low, own[0]), min(high, own[1])


def _hull(clause: Clause) -> Range:
    low, high = math.inf, -math.inf
    for one in clause:
        if not isinstance(one, Interval):
            return ALL
        low, high = min(low, _float(one.lo[0])), max(high, _float(one.hi[0]))
    return low, high


def _float(value: Number) -> float:
    """Rounded, which never changes which of two is the larger."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _listed(clause: Clause) -> Range:
    low, high = math.inf, -math.inf
    for one in clause:
        if not isinstance(one, Text) or one.op is not TextOp.EQU:
            return ALL
        number = float(crc32(one.operand.encode(errors="surrogatepass")))
        low, high = min(low, number), max(high, number)
    return low, high


def _frame(clause: Clause) -> tuple[Range, Range]:
    south, north, west, east = math.inf, -math.inf, math.inf, -math.inf
    for one in clause:
        if not isinstance(one, Within):
            return ALL, ALL
        bounds = one.area.bounds()
        south, north = min(south, bounds.south), max(north, bounds.north)
        # An edge on the date line has two longitudes. Who touches it counts as going all the way round.
        (first_west, first_east), *more = bounds.lons
        if more or first_east >= 180:
            first_west, first_east = ALL
        west, east = min(west, first_west), max(east, first_east)
    return (south, north), (west, east)


class Relation(Enum):
    """How the ranges of what is looked for lie to given ones."""

    AROUND = "around"
    INSIDE = "inside"
    ACROSS = "across"


T = TypeVar("T", bound=Hashable)


class Crowd(Generic[T]):
    """Items with ranges, in the order they came. Those that cannot lie as asked for are left out cheaply."""

    __slots__ = ("_items", "_shelves", "_turns")

    def __init__(self) -> None:
        self._items: dict[T, tuple[int, Ranges]] = {}
        """Each with its turn."""
        self._turns = 0
        self._shelves: dict[frozenset[Hashable], _Shelf[T]] | None = None
        """By the names of their ranges, once somebody asks and they are many."""

    def add(self, item: T, own: Ranges) -> None:
        if item not in self._items:
            self._items[item] = self._turns, own
            self._turns += 1
            if self._shelves is not None:
                _shelf(self._shelves, own).add(item, own)

    def remove(self, item: T) -> None:
        _, own = self._items.pop(item)
        if self._shelves is not None:
            _shelf(self._shelves, own).remove(item)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def around(self, given: Ranges) -> Iterable[T]:
        """All whose ranges hold these, and perhaps others, in the order they came."""
        return self._related(Relation.AROUND, given, lambda names: names <= given.keys())

    def inside(self, given: Ranges) -> Iterable[T]:
        """All whose ranges these hold, and perhaps others, in the order they came."""
        return self._related(Relation.INSIDE, given, lambda names: names >= given.keys())

    def across(self, given: Ranges) -> Iterable[T]:
        """All whose ranges overlap these, and perhaps others, in the order they came."""
        return self._related(Relation.ACROSS, given, lambda names: True)

    def _related(self, relation: Relation, given: Ranges, fits: Callable[[frozenset[Hashable]], bool]) -> Iterable[T]:
        if len(self._items) < MANY:
            return self._items
        if self._shelves is None:
            self._shelves = {}
            for item, (_, own) in self._items.items():
                _shelf(self._shelves, own).add(item, own)
        shelves = (shelf for names, shelf in self._shelves.items() if fits(names))
        found = [item for shelf in shelves for item in shelf.find(relation, given)]
        return sorted(found, key=lambda item: self._items[item][0]) if len(found) > 1 else found


def _shelf(shelves: dict[frozenset[Hashable], _Shelf[T]], own: Ranges) -> _Shelf[T]:
    names = frozenset(own)
    shelf = shelves.get(names)
    if shelf is None:
        shelf = shelves[names] = _Shelf(own)
    return shelf


class _Shelf(Generic[T]):
    """Items that give ranges of the same names: a column of lower and one of upper ends for each."""

    __slots__ = ("_columns", "_ends", "_free", "_items", "_places")

    def __init__(self, names: Iterable[Hashable]) -> None:
        self._columns = {name: at for at, name in enumerate(names)}
        self._items: list[T | None] = []
        self._places: dict[T, int] = {}
        self._free: list[int] = []
        import numpy as np  # a seventh of what a broker takes to start, and many never have so many filters

        self._ends: npt.NDArray[np.float64] = np.empty((len(self._columns), 2, MANY))

    def add(self, item: T, own: Ranges) -> None:
        place = self._free.pop() if self._free else len(self._items)
        if place == len(self._items):
            self._items.append(None)
        if place == self._ends.shape[2]:
            import numpy as np

            self._ends = np.concatenate((self._ends, np.empty_like(self._ends)), axis=2)
        for name, at in self._columns.items():
            self._ends[at, :, place] = own[name]
        self._items[place] = item
        self._places[item] = place

    def remove(self, item: T) -> None:
        place = self._places.pop(item)
        self._items[place] = None
        self._free.append(place)
        self._ends[:, :, place] = math.nan  # No comparison with it is true.

    def find(self, relation: Relation, given: Ranges) -> Iterable[T]:
        asked = [name for name in self._columns if name in given]
        if not asked:
            return self._places
        import numpy as np

        left: npt.NDArray[np.intp] | None = None
        for name in asked:
            ends = self._ends[self._columns[name]]
            lows, highs = ends[:, : len(self._items)] if left is None else ends[:, left]
            fitting = np.flatnonzero(_fitting(relation, lows, highs, *given[name]))
            left = fitting if left is None else left[fitting]
            if not len(left):
                return ()
        assert left is not None
        return [item for place in left.tolist() if (item := self._items[place]) is not None]


def _fitting(
    relation: Relation, lows: npt.NDArray[np.float64], highs: npt.NDArray[np.float64], low: float, high: float
) -> npt.NDArray[np.bool_]:
    if relation is Relation.AROUND:
        return (lows <= low + ROUNDING) & (highs >= high - ROUNDING)
    if relation is Relation.INSIDE:
        return (lows >= low - ROUNDING) & (highs <= high + ROUNDING)
    return (lows <= high + ROUNDING) & (highs >= low - ROUNDING)

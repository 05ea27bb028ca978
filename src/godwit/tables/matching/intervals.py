"""Which intervals hold a number: an index that grows and shrinks without ever being rebuilt."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right

from godwit.filters.predicates import Cut, Number

_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<q")


class Intervals:
    """Numbered items, each on an interval between two cuts, or on several that do not meet.

    Numbers are cut in half by the bits of their floating-point form, again and again. An interval lies at the first
    half-way mark that it straddles; a number passes at most one mark on each level, and there one sorted list says
    which intervals begin before it, or another which end after it. Only where to look depends on the rounded form: the
    answer compares exact numbers.
    """

    def __init__(self) -> None:
        self._levels: dict[int, dict[int, _Mark]] = {}
        self._narrow: dict[int, list[tuple[Cut, Cut, int]]] = {}

    def add(self, lo: Cut, hi: Cut, item: int) -> None:
        level, prefix = _home(lo, hi)
        if not level:
            self._narrow.setdefault(prefix, []).append((lo, hi, item))
            return
        marks = self._levels.setdefault(level, {})
        if prefix not in marks:
            marks[prefix] = _Mark()
        marks[prefix].add(lo, hi, item)

    def remove(self, lo: Cut, hi: Cut, item: int) -> None:
        """Take back exactly what was added."""
        level, prefix = _home(lo, hi)
        if not level:
            self._narrow[prefix].remove((lo, hi, item))
            if not self._narrow[prefix]:
                del self._narrow[prefix]
            return
        marks = self._levels[level]
        marks[prefix].remove(lo, hi, item)
        if not marks[prefix].los:
            del marks[prefix]
            if not marks:
                del self._levels[level]

    def at(self, value: Number) -> list[int]:
        """The items on whose interval the value lies."""
        key = _key(value)
        inside = (value, 0.5)
        found = [item for lo, hi, item in self._narrow.get(key, ()) if lo < inside < hi]
        for level, marks in self._levels.items():
            mark = marks.get(key >> level)
            if mark is None:
                continue
            if key >> (level - 1) & 1:
                found += mark.hi_items[bisect_right(mark.his, inside) :]
            else:
                found += mark.lo_items[: bisect_left(mark.los, inside)]
        return found


class _Mark:
    """The intervals that straddle one half-way mark, once by their lower ends and once by their upper ends."""

    __slots__ = ("hi_items", "his", "lo_items", "los")

    def __init__(self) -> None:
        self.los: list[Cut] = []
        self.lo_items: list[int] = []
        self.his: list[Cut] = []
        self.hi_items: list[int] = []

    def add(self, lo: Cut, hi: Cut, item: int) -> None:
        _insert(self.los, self.lo_items, lo, item)
        _insert(self.his, self.hi_items, hi, item)

    def remove(self, lo: Cut, hi: Cut, item: int) -> None:
        _delete(self.los, self.lo_items, lo, item)
        _delete(self.his, self.hi_items, hi, item)


def _insert(cuts: list[Cut], items: list[int], cut: Cut, item: int) -> None:
    at = bisect_right(cuts, cut)
    cuts.insert(at, cut)
    items.insert(at, item)


def _delete(cuts: list[Cut], items: list[int], cut: Cut, item: int) -> None:
    at = items.index(item, bisect_left(cuts, cut))
    del cuts[at], items[at]


def _home(lo: Cut, hi: Cut) -> tuple[int, int]:
    low, high = _key(lo[0]), _key(hi[0])
    level = (low ^ high).bit_length()
    return level, low >> level


def _key(value: Number) -> int:
    """A natural number that orders as the value does; only integers beyond 2^53 may have to share one."""
    bits: int = _BITS.unpack(_DOUBLE.pack(value + 0.0))[0]
    return bits + 2**63 if bits >= 0 else -bits

"""Filters as programs for the compiled index: postfix instructions, with their texts and circles beside them."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from godwit.events import INT_MAX, INT_MIN
from godwit.filters import patterns
from godwit.filters.areas import Box, Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import (
    POSITIVE,
    Absent,
    Exists,
    Flag,
    Hole,
    Interval,
    Kind,
    Number,
    Outside,
    Text,
    TextOp,
    Within,
)
from godwit.tables.compiled import layout
from godwit.tables.compiled.state import Packed

POSTS_MAX = 16
"""A list of at most so many values is filed under each of them; the events that reach a posting are fewer then."""

_pack = struct.Struct("<iiiiddii").pack
_EXACT = 2**53

_TEXT_KINDS = {
    TextOp.EQU: layout.EQUAL,
    TextOp.STW: layout.PREFIX,
    TextOp.END: layout.SUFFIX,
    TextOp.IN: layout.INSIDE,
}
_PRESENCES = {
    Kind.NUMBER: layout.HAS_NUMBER,
    Kind.STRING: layout.HAS_STRING,
    Kind.BOOL: layout.HAS_FLAG,
    Kind.ANY: layout.HAS_ANY,
}


class Names:
    """Attributes by number. A place is three in a row: its latitude, its longitude, and both together."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self.count = 1

    def value(self, name: str) -> int:
        number = self.values.get(name)
        if number is None:
            number = self.values[name] = self.count
            self.count += 1
        return number

    def place(self, name: str) -> int:
        number = self.places.get(name)
        if number is None:
            number = self.places[name] = self.count
            self.count += 3
        return number


class _NeverError(Exception):
    """An attribute filter that no event satisfies."""


class _OuterError(Exception):
    """An attribute filter that only Python can decide."""


def parts(number: Number) -> tuple[float, int]:
    """A number as the nearest float and the whole rest: both in an order that compares exactly."""
    if isinstance(number, float):
        return number, 0
    if -_EXACT <= number <= _EXACT:
        return float(number), 0
    if not INT_MIN <= number <= INT_MAX:
        raise _OuterError
    high = float(number)
    return high, number - int(high)


class Programmer:
    """Collects the programs of subscriptions that are to be added together.

    `outer` gives the term of an attribute filter that Python decides itself, and `absent` is told of attributes whose
    absence is one of several things that satisfy a clause.
    """

    def __init__(
        self, names: Names, outer: Callable[[AttributeFilter, int], int], absent: Callable[[int], object]
    ) -> None:
        self.names = names
        self._outer = outer
        self._absent = absent
        self._ids: list[int] = []
        self._alternatives = [0]
        self._starts = [0]
        self._code: list[bytes] = []
        self._texts: list[bytes] = []
        self._circles: list[tuple[float, float, float, float]] = []

    def add(self, number: int, wanted: Filter | FilterSet) -> None:
        for one in wanted.filters if isinstance(wanted, FilterSet) else (wanted,):
            self._filter(one)
        self._ids.append(number)
        self._alternatives.append(len(self._starts) - 1)

    def program(self) -> Packed:
        longest = max((end - begin for begin, end in pairwise(self._starts)), default=0)
        texts = [0, *accumulate(map(len, self._texts))]
        circles = [number for circle in self._circles for number in circle]
        return Packed(
            layout.Program,
            (len(self._ids), array("q", self._ids).tobytes()),
            (len(self._alternatives), array("i", self._alternatives).tobytes()),
            (len(self._starts), array("i", self._starts).tobytes()),
            (len(self._code), b"".join(self._code)),
            (len(texts), array("q", texts).tobytes()),
            (texts[-1] + 1, b"".join((*self._texts, b"\0"))),
            (len(circles), array("d", circles).tobytes()),
            (2 * longest + 2, 4 * (2 * longest + 2)),
            (longest + 1, 4 * (longest + 1)),
        )

    def _filter(self, one: Filter) -> None:
        mark, texts, circles = len(self._code), len(self._texts), len(self._circles)
        posted = self._posted(one)
        self._has_circle = False
        try:
            for attribute in one.attributes:
                if attribute.kind is not Kind.RATE:
                    self._attribute(attribute, attribute is posted)
        except _NeverError:
            del self._code[mark:], self._texts[texts:], self._circles[circles:]
            return
        self._starts.append(len(self._code))

    def _posted(self, one: Filter) -> AttributeFilter | None:
        """The list of values to file under: the shortest, unless a single value is asked for somewhere."""
        shortest = None
        for attribute in one.attributes:
            clause = attribute.clause
            if len(clause) == 1:
                if type(clause[0]) is Text and clause[0].op is TextOp.EQU:
                    return None
                if type(clause[0]) is Interval and _is_point(clause[0]):
                    return None
            elif (
                attribute.kind in (Kind.NUMBER, Kind.STRING)
                and 1 < len(clause) <= POSTS_MAX
                and (shortest is None or len(clause) < len(shortest.clause))
                and all(_is_value(attribute.kind, p) for p in clause)
            ):
                shortest = attribute
        return shortest

    def _attribute(self, attribute: AttributeFilter, posted: bool) -> None:
        mark, texts, circles = len(self._code), len(self._texts), len(self._circles)
        clause, kind, name = attribute.clause, attribute.kind, attribute.name
        attr = self.names.place(name) if kind is Kind.PLACE else self.names.value(name)
        try:
            count = 0
            for predicate in dict.fromkeys(clause) if posted else clause:
                count += self._predicate(attr, kind, predicate, len(clause) == 1)
        except _OuterError:
            del self._code[mark:], self._texts[texts:], self._circles[circles:]
            self._put(layout.OP_OUTER, attr, self._outer(attribute, attr))
            return
        if len(clause) == 1 and count:
            return
        if count == 0:
            raise _NeverError
        if posted:
            self._put(layout.OP_POSTS, attr, count)
        elif count > 1:
            self._put(layout.OP_ANY, attr + 2 if kind is Kind.PLACE else attr, count)
            if any(isinstance(p, Absent) for p in clause):
                self._absent(attr)

    def _predicate(self, attr: int, kind: Kind, predicate: Any, alone: bool) -> int:
        """Write what leaves one predicate on the stack; 0 where it accepts nothing and is left out."""
        match predicate:
            case Interval() if kind is Kind.NUMBER:
                return self._interval(attr, predicate)
            case Text(op, operand) if kind is Kind.STRING:
                return self._text(attr, op, operand)
            case Flag(value) if kind is Kind.BOOL:
                self._put(layout.OP_PRESENCE, attr, layout.IS_TRUE if value else layout.IS_FALSE)
            case Hole(value) if kind is Kind.NUMBER:
                high, low = parts(value)
                self._put(layout.OP_POINT, attr, 0, high, low)
                self._put(layout.OP_NOT, attr, layout.HAS_NUMBER)
            case Exists() if kind is Kind.PLACE:
                self._put(layout.OP_PRESENCE, attr, layout.HAS_NUMBER)
            case Exists():
                self._put(layout.OP_PRESENCE, attr, _PRESENCES[kind])
            case Absent() if kind is not Kind.ANY:
                return 0  # a value of a kind is there
            case Absent():
                self._put(layout.OP_PRESENCE, attr, layout.IS_ABSENT)
            case Within(area) if kind is Kind.PLACE:
                return self._within(attr, area, alone)
            case Outside(area) if kind is Kind.PLACE:
                self._within(attr, area, False)
                self._put(layout.OP_NOT, attr, layout.HAS_NUMBER)
            case _:
                raise _OuterError
        return 1

    def _put(
        self,
        op: int,
        attr: int,
        count: int = 0,
        one: float = 0.0,
        one_low: int = 0,
        two: float = 0.0,
        two_low: int = 0,
        text: int = -1,
    ) -> None:
        self._code.append(_pack(op, attr, count, one_low, one, two, two_low, text))

    def _interval(self, attr: int, interval: Interval) -> int:
        (low, after_low), (high, after_high) = interval.lo, interval.hi
        if not interval.lo < interval.hi:
            return 0
        one, rest = parts(low)
        if low == high:
            self._put(layout.OP_POINT, attr, 0, one + 0.0, rest)
            return 1
        two, two_rest = parts(high)
        if high == math.inf and after_high:
            self._put(layout.OP_RANGE, attr, 0, one, 2 * rest + after_low)
        else:
            self._put(layout.OP_RANGE, attr, 1, one, 2 * rest + after_low, two, 2 * two_rest + after_high)
        return 1

    def _text(self, attr: int, op: TextOp, operand: str) -> int:
        positive = POSITIVE.get(op, op)
        if not operand and positive in (TextOp.STW, TextOp.END, TextOp.IN):
            if positive is not op:
                return 0
            self._put(layout.OP_PRESENCE, attr, layout.HAS_STRING)
            return 1
        if positive is TextOp.LIKE:
            self._like(attr, operand)
        else:
            self._put(layout.OP_TEXT, attr, _TEXT_KINDS[positive], text=len(self._texts))
            self._texts.append(operand.encode("utf-8", "surrogatepass"))
        if positive is not op:
            self._put(layout.OP_NOT, attr, layout.HAS_STRING)
        return 1

    def _like(self, attr: int, operand: str) -> None:
        pattern = patterns.of("like", operand)
        kind, needle = _needle(pattern)
        self._put(layout.OP_LIKE, attr, kind, text=len(self._texts))
        self._texts.append(needle.encode("utf-8", "surrogatepass"))
        self._texts.append(np.array([_token(token) for token in pattern], np.int32).tobytes())

    def _within(self, attr: int, area: Circle | Box, alone: bool) -> int:
        """A box is two ranges; a circle its bounds and itself, which a posting of its own checks last."""
        south, north, lons = area.bounds()
        self._put(layout.OP_RANGE, attr, 1, south, 0, north, 1)
        for west, east in lons:
            self._put(layout.OP_RANGE, attr + 1, 1, west, 0, east, 1)
        if len(lons) > 1:
            self._put(layout.OP_ANY, attr + 1, len(lons))
        circle = -1
        if isinstance(area, Circle):
            circle = len(self._circles)
            self._circles.append((area.lat, area.lon, area.radius_m, math.cos(math.radians(area.lat))))
        if not alone or (circle >= 0 and self._has_circle):
            self._put(layout.OP_ALL, attr + 2, 2, text=circle)
        elif circle >= 0:
            self._put(layout.OP_CIRCLE, attr, circle)
            self._has_circle = True
        return 1


def _is_point(interval: Interval) -> bool:
    return interval.lo[0] == interval.hi[0] and interval.lo[1] < interval.hi[1]


def _is_value(kind: Kind, predicate: Any) -> bool:
    if kind is Kind.NUMBER:
        return type(predicate) is Interval and _is_point(predicate)
    return type(predicate) is Text and predicate.op is TextOp.EQU


def _token(token: str | int) -> int:
    if isinstance(token, str):
        return ord(token)
    return layout.ANY_RUN if token == patterns.ANY_RUN else layout.ANY_ONE


def _needle(pattern: patterns.Pattern) -> tuple[int, str]:
    """The longest text that whatever the pattern accepts must have, and where: at the front, at the end, or inside."""
    best, best_kind = "", layout.NEEDLE_PREFIX
    begin = 0
    for end in range(len(pattern) + 1):
        if end == len(pattern) or isinstance(pattern[end], int):
            text = "".join(map(str, pattern[begin:end]))
            anchored = begin == 0 or end == len(pattern)
            if len(text) > len(best) or (len(text) == len(best) > 0 and anchored):
                best = text
                best_kind = (
                    layout.NEEDLE_PREFIX
                    if begin == 0
                    else layout.NEEDLE_SUFFIX
                    if end == len(pattern)
                    else layout.NEEDLE_INSIDE
                )
            begin = end + 1
    return best_kind, best

"""Predicates on one attribute, and the three questions asked of them: does it accept, cover, overlap?

Every predicate is a frozen struct with

    accepts(value, values)   is this value (of the right kind) wanted? `values` is the whole event, for placeholders
    covers(other)            is everything that `other` accepts accepted here too? False where unsure
    overlaps(other)          can some value be accepted by both? True where unsure

Both directions of doubt are safe: a missed covering costs a message, a missed overlap or an invented covering loses
events. A predicate of your own needs these three methods and nothing else; the structures above never look inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from godwit.events import INT_MAX, INT_MIN, Value
from godwit.filters import patterns
from godwit.filters.areas import Area, is_place
from godwit.filters.errors import FilterError as FilterError

Number = int | float
Cut = tuple[Number, int]
"""A gap between numbers: (v, 0) lies just before v, (v, 1) just after it. Cuts order as tuples do."""

Values = Mapping[str, Value]


class Kind(StrEnum):
    """The type half of a tuple's identity (name, type). Values of different kinds never match each other."""

    NUMBER = "number"
    STRING = "string"
    BOOL = "bool"
    PLACE = "place"
    ANY = "any"
    RATE = "rate"


VALUE_KINDS = frozenset({Kind.NUMBER, Kind.STRING, Kind.BOOL})
"""The kinds of single values. A value has one of them, and ANY asks for none in particular; places are made of two
values, and rates of none, so that their names never meet those of values."""


class Predicate(Protocol):
    def accepts(self, value: Any, values: Values) -> bool: ...
    def covers(self, other: Predicate) -> bool: ...
    def overlaps(self, other: Predicate) -> bool: ...


class Exists(msgspec.Struct, frozen=True, tag="exists"):
    """The attribute is there, with a value of the kind asked for. NaN is no value."""

    def accepts(self, value: Any, values: Values) -> bool:
        return True

    def covers(self, other: Predicate) -> bool:
        return not isinstance(other, Absent)

    def overlaps(self, other: Predicate) -> bool:
        return not isinstance(other, Absent)


class Absent(msgspec.Struct, frozen=True, tag="absent"):
    """The attribute is not there: SQL's IS NULL. The only predicate that a missing attribute satisfies."""

    def accepts(self, value: Any, values: Values) -> bool:
        return False

    def covers(self, other: Predicate) -> bool:
        return isinstance(other, Absent)

    def overlaps(self, other: Predicate) -> bool:
        return isinstance(other, Absent)


class Interval(msgspec.Struct, frozen=True, tag="interval"):
    """Numbers between two cuts: =, <, <=, >, >= and ranges, open or closed at either end, are all of this one form."""

    lo: Cut
    hi: Cut

    def __post_init__(self) -> None:
        if not self.lo <= self.hi:
            raise FilterError(f"the interval from {self.lo} to {self.hi} is upside down or ends at NaN")

    def accepts(self, value: Any, values: Values) -> bool:
        low, after_low = self.lo
        high, after_high = self.hi
        return bool(
            (low < value or (low == value and not after_low)) and (value < high or (value == high and after_high))
        )

    def covers(self, other: Predicate) -> bool:
        return isinstance(other, Interval) and self.lo <= other.lo and other.hi <= self.hi

    def overlaps(self, other: Predicate) -> bool:
        if isinstance(other, Interval):
            return self.lo < other.hi and other.lo < self.hi
        if isinstance(other, Hole):
            return not (self.lo == (other.value, 0) and self.hi == (other.value, 1))
        return not isinstance(other, Absent)


class Hole(msgspec.Struct, frozen=True, tag="hole"):
    """Every number but one: the spec's Neq on numbers."""

    value: Number

    def __post_init__(self) -> None:
        if math.isnan(self.value):
            raise FilterError("NaN matches nothing and cannot be an operand")

    def accepts(self, value: Any, values: Values) -> bool:
        return bool(value != self.value)

    def covers(self, other: Predicate) -> bool:
        if isinstance(other, Interval):
            return not (other.lo <= (self.value, 0) and (self.value, 1) <= other.hi)
        return isinstance(other, Hole) and other.value == self.value

    def overlaps(self, other: Predicate) -> bool:
        if isinstance(other, Interval):
            return other.overlaps(self)
        return not isinstance(other, Absent)


class TextOp(StrEnum):
    EQU = "equ"
    STW = "stw"
    END = "end"
    IN = "in"
    LIKE = "like"
    NEQ = "neq"
    NIN = "nin"
    NLIKE = "nlike"


POSITIVE = {TextOp.NEQ: TextOp.EQU, TextOp.NIN: TextOp.IN, TextOp.NLIKE: TextOp.LIKE}
"""Each refusing operator and the one that it negates."""

# A member of an enum is looked up by a call in Python 3.11, which would be most of the cost of comparing two texts.
_EQU, _NEQ, _IN = TextOp.EQU, TextOp.NEQ, TextOp.IN


class Text(msgspec.Struct, frozen=True, tag="text", cache_hash=True):
    """Strings by equality, prefix, suffix, substring or LIKE pattern, and the negations.

    One rule replaces the string table of the spec: a predicate is a pattern or the complement of one. Covering and
    overlap follow from containment and intersection of patterns, exactly, and the four published cells that lose events
    (Nin over Neq, In, Stw, End) never arise.
    """

    op: TextOp
    operand: str

    @property
    def negative(self) -> bool:
        return self.op in POSITIVE

    @property
    def pattern(self) -> patterns.Pattern:
        """What is accepted, or for a negation what is refused."""
        return patterns.of(POSITIVE.get(self.op, self.op).value, self.operand)

    def accepts(self, value: Any, values: Values) -> bool:
        return bool(_TEXT_ACCEPTS[self.op](value, self.operand))

    # Where single strings decide they are asked, not remembered: long IN and NOT IN lists would flood the memory.

    def covers(self, other: Predicate) -> bool:
        if not isinstance(other, Text):
            return False
        if other.op is _EQU:
            return self.accepts(other.operand, {})
        if self.op is _NEQ:
            return not other.accepts(self.operand, {})
        if self.op in _PARTS and other.op in _PARTS:
            return self.op in (other.op, _IN) and self.accepts(other.operand, {})
        return _text_covers(self, other)

    def overlaps(self, other: Predicate) -> bool:
        if not isinstance(other, Text):
            return not isinstance(other, Absent)
        if self.op is _EQU:
            return other.accepts(self.operand, {})
        if other.op is _EQU:
            return self.accepts(other.operand, {})
        return (self.negative and other.negative) or _text_overlaps(self, other)


_PARTS = frozenset({TextOp.STW, TextOp.END, TextOp.IN})


@lru_cache(maxsize=65536)
def _text_covers(wide: Text, narrow: Text) -> bool:
    if not wide.negative:
        return not narrow.negative and patterns.contains(wide.pattern, narrow.pattern)
    if narrow.negative:
        return patterns.contains(narrow.pattern, wide.pattern)
    return not patterns.intersects(wide.pattern, narrow.pattern)


@lru_cache(maxsize=65536)
def _text_overlaps(one: Text, other: Text) -> bool:
    if one.negative:
        return not patterns.contains(one.pattern, other.pattern)
    if other.negative:
        return not patterns.contains(other.pattern, one.pattern)
    return patterns.intersects(one.pattern, other.pattern)


_TEXT_ACCEPTS: dict[TextOp, Callable[[str, str], bool]] = {
    TextOp.EQU: lambda value, operand: value == operand,
    TextOp.NEQ: lambda value, operand: value != operand,
    TextOp.STW: lambda value, operand: value.startswith(operand),
    TextOp.END: lambda value, operand: value.endswith(operand),
    TextOp.IN: lambda value, operand: operand in value,
    TextOp.NIN: lambda value, operand: operand not in value,
    TextOp.LIKE: lambda value, operand: patterns.accepts(patterns.of("like", operand), value),
    TextOp.NLIKE: lambda value, operand: not patterns.accepts(patterns.of("like", operand), value),
}


class Flag(msgspec.Struct, frozen=True, tag="flag"):
    """One of the two truth values."""

    value: bool

    def accepts(self, value: Any, values: Values) -> bool:
        return value is self.value

    def covers(self, other: Predicate) -> bool:
        return self == other

    def overlaps(self, other: Predicate) -> bool:
        return not isinstance(other, Absent) and (not isinstance(other, Flag) or other == self)


class VersusOp(StrEnum):
    EQU = "equ"
    NEQ = "neq"
    GR = "gr"
    GRE = "gre"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    STW = "stw"
    NSTW = "nstw"
    END = "end"
    NEND = "nend"


class Versus(msgspec.Struct, frozen=True, tag="versus"):
    """The spec's placeholder: the operand is the value of another attribute, of the same kind, of the same event.

    Accepts nothing where that attribute is missing or of another kind, or the operator is not one for the kind.
    """

    op: VersusOp
    other: str

    def accepts(self, value: Any, values: Values) -> bool:
        operand = values.get(self.other)
        kind = kind_of(operand)
        if kind is None or kind is not kind_of(value) or VERSUS_KIND.get(self.op, kind) is not kind:
            return False
        return bool(_VERSUS_ACCEPTS[self.op](value, operand))

    def covers(self, other: Predicate) -> bool:
        return isinstance(other, Versus) and other.other == self.other and other.op in _VERSUS_COVERS[self.op]

    def overlaps(self, other: Predicate) -> bool:
        return not isinstance(other, Absent)


_VERSUS_ACCEPTS: dict[VersusOp, Callable[[Any, Any], bool]] = {
    VersusOp.EQU: lambda value, operand: value == operand,
    VersusOp.NEQ: lambda value, operand: value != operand,
    VersusOp.GR: lambda value, operand: value > operand,
    VersusOp.GRE: lambda value, operand: value >= operand,
    VersusOp.LT: lambda value, operand: value < operand,
    VersusOp.LTE: lambda value, operand: value <= operand,
    VersusOp.IN: lambda value, operand: operand in value,
    VersusOp.NIN: lambda value, operand: operand not in value,
    VersusOp.STW: lambda value, operand: value.startswith(operand),
    VersusOp.NSTW: lambda value, operand: not value.startswith(operand),
    VersusOp.END: lambda value, operand: value.endswith(operand),
    VersusOp.NEND: lambda value, operand: not value.endswith(operand),
}

VERSUS_KIND = dict.fromkeys((VersusOp.GR, VersusOp.GRE, VersusOp.LT, VersusOp.LTE), Kind.NUMBER) | dict.fromkeys(
    (VersusOp.IN, VersusOp.NIN, VersusOp.STW, VersusOp.NSTW, VersusOp.END, VersusOp.NEND), Kind.STRING
)
"""The one kind that an operator is for; equality is for all."""

# The covering tables of spec 1.5.1 and 1.5.2 read with equal operands on both sides.
_VERSUS_COVERS = {
    VersusOp.EQU: {VersusOp.EQU},
    VersusOp.NEQ: {VersusOp.NEQ, VersusOp.GR, VersusOp.LT, VersusOp.NIN, VersusOp.NSTW, VersusOp.NEND},
    VersusOp.GR: {VersusOp.GR},
    VersusOp.GRE: {VersusOp.GRE, VersusOp.GR, VersusOp.EQU},
    VersusOp.LT: {VersusOp.LT},
    VersusOp.LTE: {VersusOp.LTE, VersusOp.LT, VersusOp.EQU},
    VersusOp.IN: {VersusOp.IN, VersusOp.EQU, VersusOp.STW, VersusOp.END},
    VersusOp.NIN: {VersusOp.NIN},
    VersusOp.STW: {VersusOp.STW, VersusOp.EQU},
    VersusOp.NSTW: {VersusOp.NSTW, VersusOp.NIN},
    VersusOp.END: {VersusOp.END, VersusOp.EQU},
    VersusOp.NEND: {VersusOp.NEND, VersusOp.NIN},
}


class Within(msgspec.Struct, frozen=True, tag="within"):
    """A place inside an area."""

    area: Area

    def accepts(self, value: Any, values: Values) -> bool:
        lat, lon = value
        return self.area.contains(lat, lon)

    def covers(self, other: Predicate) -> bool:
        return isinstance(other, Within) and self.area.covers(other.area)

    def overlaps(self, other: Predicate) -> bool:
        if isinstance(other, Within):
            return self.area.overlaps(other.area)
        if isinstance(other, Outside):
            return not other.area.covers(self.area)
        return not isinstance(other, Absent)


class Outside(msgspec.Struct, frozen=True, tag="outside"):
    """A place that is not inside an area."""

    area: Area

    def accepts(self, value: Any, values: Values) -> bool:
        lat, lon = value
        return not self.area.contains(lat, lon)

    def covers(self, other: Predicate) -> bool:
        if isinstance(other, Within):
            return not self.area.overlaps(other.area)
        return isinstance(other, Outside) and other.area.covers(self.area)

    def overlaps(self, other: Predicate) -> bool:
        if isinstance(other, Within):
            return other.overlaps(self)
        return not isinstance(other, Absent)


class Rate(msgspec.Struct, frozen=True, tag="rate"):
    """At most so many notifications a second: a wish to the tables (spec 2.9.1), not a property of any one event."""

    per_s: float

    def __post_init__(self) -> None:
        if not self.per_s > 0:
            raise FilterError(f"a rate of {self.per_s} per second lets nothing through; it must be above 0")

    def accepts(self, value: Any, values: Values) -> bool:
        return True

    def covers(self, other: Predicate) -> bool:
        return isinstance(other, Rate) and self.per_s >= other.per_s

    def overlaps(self, other: Predicate) -> bool:
        return True


AnyPredicate = Exists | Absent | Interval | Hole | Text | Flag | Versus | Within | Outside | Rate
"""The predicates that travel on the wire and print as text."""

EXISTS = Exists()
ABSENT = Absent()
BELOW_ALL: Cut = (-math.inf, 0)
ABOVE_ALL: Cut = (math.inf, 1)


KIND_BY_TYPE: dict[type, Kind] = {int: Kind.NUMBER, float: Kind.NUMBER, str: Kind.STRING, bool: Kind.BOOL}


def kind_of(value: object) -> Kind | None:
    """The kind of an attribute's value, or None where no predicate can accept it (NaN, which differs from itself)."""
    if value != value:
        return None
    return KIND_BY_TYPE.get(type(value)) or next((k for t, k in KIND_BY_TYPE.items() if isinstance(value, t)), None)


def place_of(name: str, values: Values) -> tuple[float, float] | None:
    """The place that a PLACE attribute named 'lat,lon' has in an event, if both halves are there and make one."""
    lat_name, _, lon_name = name.partition(",")
    lat, lon = values.get(lat_name), values.get(lon_name)
    if isinstance(lat, str | bool | None) or isinstance(lon, str | bool | None) or not is_place(lat, lon):
        return None
    return (lat, lon)


def number(value: Number) -> Number:
    """The one form of a numeric operand: an int where the value is integral and fits, so that 5 and 5.0 print alike."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FilterError(f"{value!r} is not a number")
    if isinstance(value, int):
        if not INT_MIN <= value <= INT_MAX:
            raise FilterError(f"{value} does not fit 64 bits")
        return value
    if math.isnan(value):
        raise FilterError("NaN matches nothing and cannot be an operand")
    if value.is_integer() and INT_MIN <= value <= INT_MAX:
        return int(value)
    return value


def equ(value: Value) -> AnyPredicate:
    if isinstance(value, bool):
        return Flag(value)
    if isinstance(value, str):
        return Text(TextOp.EQU, value)
    return Interval((number(value), 0), (number(value), 1))


def neq(value: Value) -> AnyPredicate:
    if isinstance(value, bool):
        return Flag(not value)
    if isinstance(value, str):
        return Text(TextOp.NEQ, value)
    return Hole(number(value))


def gr(value: Number) -> Interval:
    return Interval((number(value), 1), ABOVE_ALL)


def gre(value: Number) -> Interval:
    return Interval((number(value), 0), ABOVE_ALL)


def lt(value: Number) -> Interval:
    return Interval(BELOW_ALL, (number(value), 0))


def lte(value: Number) -> Interval:
    return Interval(BELOW_ALL, (number(value), 1))


def rng(low: Number, high: Number) -> Interval:
    """The inclusive range; both ends count."""
    if low > high:
        raise FilterError(f"the range {low} to {high} is upside down: the lower end comes first")
    return Interval((number(low), 0), (number(high), 1))


def stw(operand: str) -> AnyPredicate:
    return Text(TextOp.STW, operand) if operand else EXISTS


def end(operand: str) -> AnyPredicate:
    return Text(TextOp.END, operand) if operand else EXISTS


def contains(operand: str) -> AnyPredicate:
    """The spec's In: the operand is a substring of the value."""
    return Text(TextOp.IN, operand) if operand else EXISTS


def lacks(operand: str) -> AnyPredicate:
    """The spec's Nin: the operand is no substring of the value."""
    if not operand:
        raise FilterError("every text contains the empty text: nothing would match")
    return Text(TextOp.NIN, operand)


def like(pattern: str) -> AnyPredicate:
    """SQL LIKE with % and _, escaped by a backslash, reduced to the simplest predicate that says the same."""
    op, operand = patterns.simplest(pattern)
    return EXISTS if op == "exists" else Text(TextOp(op), operand)


def unlike(pattern: str) -> AnyPredicate | None:
    """SQL NOT LIKE; None where nothing is left to accept."""
    accepted = like(pattern)
    return negation(accepted) if isinstance(accepted, Text) else None


def negation(text: Text) -> AnyPredicate:
    """What accepts exactly the strings that `text` refuses."""
    match text.op:
        case TextOp.NLIKE:
            return like(text.operand)
        case TextOp.STW | TextOp.END:
            return Text(TextOp.NLIKE, patterns.to_like(text.pattern))
        case op:
            return Text(POSITIVE.get(op) or _NEGATIVE[op], text.operand)


_NEGATIVE = {positive: negative for negative, positive in POSITIVE.items()}

"""Clauses: what one attribute must satisfy, as a disjunction of predicates in canonical form.

A clause is a tuple of predicates of one kind, none covering another, no two joinable by a perfect rule, sorted. The
empty clause accepts nothing; `(EXISTS,)` accepts whatever is there. Number clauses are unions of disjoint intervals, so
covering between them is exact, which is more than the pairwise test of the spec (1.5.3) promises.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from godwit.events import Value
from godwit.filters import patterns
from godwit.filters.areas import WORLD
from godwit.filters.errors import FilterError
from godwit.filters.predicates import (
    ABOVE_ALL,
    ABSENT,
    BELOW_ALL,
    EXISTS,
    KIND_BY_TYPE,
    VALUE_KINDS,
    Absent,
    AnyPredicate,
    Cut,
    Exists,
    Flag,
    Hole,
    Interval,
    Kind,
    Outside,
    Predicate,
    Rate,
    Text,
    TextOp,
    Values,
    Versus,
    VersusOp,
    Within,
    kind_of,
    negation,
    place_of,
)

Clause = tuple[AnyPredicate, ...]

# Looked up once: a member of an enum costs a call in Python 3.11, and long IN lists ask for it with every item.
_EQU = TextOp.EQU

NEVER: Clause = ()
ALWAYS: Clause = (EXISTS,)


LONG = 32
"""Pairs of disjuncts from which on sorting them out first beats trying all."""


def covers(wide: Clause, narrow: Clause) -> bool:
    """Spec theorem A.1: every disjunct of `narrow` is covered by some disjunct of `wide`."""
    if len(wide) * len(narrow) > LONG:
        return all(map(_Sorted(wide).covers, narrow))
    return all(any(a.covers(b) for a in wide) for b in narrow)


def overlaps(one: Clause, other: Clause) -> bool:
    """Whether some disjunct of one may accept what some disjunct of the other accepts."""
    if len(one) * len(other) > LONG:
        return any(map(_Sorted(one).overlaps, other))
    return any(a.overlaps(b) for a in one for b in other)


class _Sorted:
    """A long clause prepared for many questions: it is mostly equalities of strings, or intervals that are disjoint."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.intervals = [p for p in clause if isinstance(p, Interval)]
        self.lows = [p.lo for p in self.intervals]
        self.equalities = {p for p in clause if _is_equality(p)}
        self.others = [p for p in clause if not _is_plain(p)]

    def covers(self, narrow: AnyPredicate) -> bool:
        if narrow in self.equalities:
            return True
        if isinstance(narrow, Interval):
            at = bisect_right(self.lows, narrow.lo)
            if at and self.intervals[at - 1].covers(narrow):
                return True
        return any(p.covers(narrow) for p in self.others)

    def overlaps(self, other: AnyPredicate) -> bool:
        if not _is_plain(other):
            return any(p.overlaps(other) for p in self.clause)
        if other in self.equalities:
            return True
        if isinstance(other, Interval):
            at = bisect_left(self.lows, other.hi)
            if at and self.intervals[at - 1].overlaps(other):
                return True
        return any(p.overlaps(other) for p in self.others)


def union(kind: Kind, disjuncts: Iterable[AnyPredicate], *, integers: bool = False) -> Clause:
    """The canonical clause that accepts what any of the disjuncts accepts; merging it is always perfect (spec 2.10.1).

    With `integers` the caller vouches that the attribute holds whole numbers only: neighboring ranges join as well.
    """
    disjuncts = list(disjuncts)
    if len(disjuncts) == 1 and _is_canonical(disjuncts[0]):
        return (disjuncts[0],)
    disjuncts = list(dict.fromkeys(disjuncts))
    if kind is Kind.NUMBER:
        joined = _joined_intervals([p for p in disjuncts if isinstance(p, Interval | Hole)], integers)
        others = [p for p in disjuncts if not isinstance(p, Interval | Hole)]
        return _reduced([*joined, *others]) if others else tuple(joined)
    if kind is Kind.PLACE:
        disjuncts = list(_named_plainly(disjuncts))
    if len(disjuncts) < 2:
        return tuple(disjuncts)
    if kind is Kind.RATE:
        return (max((p for p in disjuncts if isinstance(p, Rate)), key=lambda p: p.per_s),)
    return _reduced(disjuncts)


def _is_canonical(predicate: AnyPredicate) -> bool:
    """Whether it is a range of numbers, some but not all of them: most are, and have no simpler name."""
    if not isinstance(predicate, Interval) or not predicate.lo < predicate.hi:
        return False
    return predicate.lo != BELOW_ALL or predicate.hi != ABOVE_ALL


def intersection(kind: Kind, one: Clause, other: Clause) -> Clause | None:
    """The clause that accepts what both accept, or None where no single clause can say it."""
    if len(one) == 1 == len(other) and kind is not Kind.NUMBER:
        return _meet(one[0], other[0])
    if covers(one, other):
        return other
    if covers(other, one):
        return one
    if kind is Kind.NUMBER and _constant(one) and _constant(other):
        both = [
            Interval(max(a.lo, b.lo), min(a.hi, b.hi))
            for a in _intervals(one)
            for b in _intervals(other)
            if max(a.lo, b.lo) < min(a.hi, b.hi)
        ]
        return union(kind, both)
    meets = [_meet(a, b) for a in one for b in other]
    if any(meet is None for meet in meets):
        return None
    return union(kind, [p for meet in meets if meet is not None for p in meet])


def complement(kind: Kind, predicate: AnyPredicate) -> Clause:
    """What a value of this kind satisfies when it fails `predicate`, as SQL's NOT means it.

    A missing value satisfies neither, except with Exists and Absent of kind ANY, which are each other's complement;
    nor does any value where the operand of a placeholder is missing.
    """
    match predicate:
        case Exists():
            return (ABSENT,) if kind is Kind.ANY else NEVER
        case Absent():
            return ALWAYS
        case Interval(lo, hi):
            return union(kind, [Interval(BELOW_ALL, lo), Interval(hi, ABOVE_ALL)])
        case Hole(value):
            return (Interval((value, 0), (value, 1)),)
        case Flag(value):
            return (Flag(not value),)
        case Text():
            return (negation(predicate),)
        case Versus(op, other) if op in _NOT_VERSUS:
            return (Versus(_NOT_VERSUS[op], other),)
        case Within(area):
            return (Outside(area),)
        case Outside(area):
            return (Within(area),)
    raise FilterError(f"no predicate says the opposite of {predicate!r}")


def sort_key(predicate: AnyPredicate) -> tuple[str, str]:
    return type(predicate).__name__, repr(predicate)


_NOT_VERSUS = {
    VersusOp.EQU: VersusOp.NEQ,
    VersusOp.NEQ: VersusOp.EQU,
    VersusOp.GR: VersusOp.LTE,
    VersusOp.LTE: VersusOp.GR,
    VersusOp.GRE: VersusOp.LT,
    VersusOp.LT: VersusOp.GRE,
    VersusOp.IN: VersusOp.NIN,
    VersusOp.NIN: VersusOp.IN,
    VersusOp.STW: VersusOp.NSTW,
    VersusOp.NSTW: VersusOp.STW,
    VersusOp.END: VersusOp.NEND,
    VersusOp.NEND: VersusOp.END,
}


def _constant(clause: Clause) -> bool:
    return all(isinstance(p, Interval | Hole | Exists) for p in clause)


def _intervals(clause: Iterable[AnyPredicate]) -> list[Interval]:
    out = []
    for predicate in clause:
        match predicate:
            case Interval():
                out.append(predicate)
            case Hole(value):
                out += [Interval(BELOW_ALL, (value, 0)), Interval((value, 1), ABOVE_ALL)]
            case Exists():
                out.append(Interval(BELOW_ALL, ABOVE_ALL))
    return [interval for interval in out if interval.lo < interval.hi]


def _joined_intervals(predicates: list[Interval | Hole], integers: bool) -> list[AnyPredicate]:
    """Existence and modification rules of spec 2.10.1 at once: join what touches, then name the result simply."""
    joined: list[Interval] = []
    for interval in sorted(_intervals(predicates), key=lambda i: (i.lo, i.hi)):
        if joined and (interval.lo <= joined[-1].hi or (integers and _adjacent(joined[-1].hi, interval.lo))):
            if interval.hi > joined[-1].hi:
                joined[-1] = Interval(joined[-1].lo, interval.hi)
        else:
            joined.append(interval)
    match joined:
        case [Interval(lo, hi)] if lo == BELOW_ALL and hi == ABOVE_ALL:
            return [EXISTS]
        case [Interval(lo, (left, 0)), Interval((right, 1), hi)] if (
            lo == BELOW_ALL and hi == ABOVE_ALL and left == right
        ):
            return [Hole(left)]
    return list(joined)


def _named_plainly(places: Iterable[AnyPredicate]) -> Iterator[AnyPredicate]:
    """Circles and boxes can both be the whole world; inside it is anywhere, and outside it is nothing to accept."""
    for predicate in places:
        if not isinstance(predicate, Within | Outside) or not predicate.area.covers(WORLD):
            yield predicate
        elif isinstance(predicate, Within):
            yield EXISTS


def _adjacent(hi: Cut, lo: Cut) -> bool:
    """Whether no whole number lies between the two cuts."""
    if not (math.isfinite(hi[0]) and math.isfinite(lo[0])):
        return False
    return _first_whole(hi) >= _first_whole(lo)


def _first_whole(cut: Cut) -> int:
    """The least whole number behind the cut."""
    value, after = cut
    return math.floor(value) + 1 if after else math.ceil(value)


def _reduced(disjuncts: list[AnyPredicate]) -> Clause:
    """Insert one by one as spec 2.10.1 does: covered ones go, a perfect rule joins two into one, until nothing changes.

    Intervals arrive joined, and equalities of strings can only fall to something that is neither, so that a long IN
    list stays cheap.
    """
    plain = dict.fromkeys(p for p in disjuncts if _is_plain(p))
    kept: list[AnyPredicate] = []
    for predicate in disjuncts:
        if not _is_plain(predicate):
            _insert(kept, plain, predicate)
    alive = [p for p in plain if not any(q.covers(p) for q in kept)]
    intervals = sorted((p for p in alive if isinstance(p, Interval)), key=lambda i: (i.lo, i.hi))
    texts = sorted((p for p in alive if isinstance(p, Text)), key=lambda p: p.operand)
    return (*intervals, *texts, *sorted(kept, key=sort_key))


def _is_plain(predicate: AnyPredicate) -> bool:
    return isinstance(predicate, Interval) or _is_equality(predicate)


def _is_equality(predicate: AnyPredicate) -> bool:
    return isinstance(predicate, Text) and predicate.op is _EQU


def _insert(kept: list[AnyPredicate], plain: Iterable[AnyPredicate], new: AnyPredicate) -> None:
    while True:
        if any(p.covers(new) for p in kept):
            return
        kept[:] = [p for p in kept if not new.covers(p)]
        partner = next((p for p in (*kept, *plain) if _join(p, new) is not None), None)
        if partner is None:
            kept.append(new)
            return
        joined = _join(partner, new)
        assert joined is not None
        kept[:] = [p for p in kept if p is not partner]
        new = joined


def _join(one: Predicate, other: Predicate) -> AnyPredicate | None:
    """The perfect rules for kinds that are not numbers; number rules are in `_joined_intervals`."""
    if isinstance(one, Flag) and isinstance(other, Flag):
        return EXISTS
    if isinstance(one, Text) and isinstance(other, Text):
        return _join_text(one, other)
    if isinstance(one, Outside | Within) and isinstance(other, Outside | Within):
        outside, second = (one, other) if isinstance(one, Outside) else (other, one)
        if isinstance(outside, Outside):
            refused_by_both = isinstance(second, Outside) and outside.area.overlaps(second.area)
            accepted_by_none = isinstance(second, Within) and not second.area.covers(outside.area)
            return None if refused_by_both or accepted_by_none else EXISTS
    return None


def _join_text(one: Text, other: Text) -> AnyPredicate | None:
    if one.negative and other.negative:
        return None if patterns.intersects(one.pattern, other.pattern) else EXISTS
    if one.negative != other.negative:
        negative, positive = (one, other) if one.negative else (other, one)
        return EXISTS if patterns.contains(positive.pattern, negative.pattern) else None
    return None


def _meet(one: AnyPredicate, other: AnyPredicate) -> Clause | None:
    if one.covers(other):
        return (other,)
    if other.covers(one):
        return (one,)
    return None if one.overlaps(other) else NEVER


AttributeKey = tuple[str, Kind]


class AttributeFilter(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """One attribute, by name and kind, and the clause its value must satisfy. Areas name both halves: 'lat,lon'."""

    name: str
    kind: Kind
    clause: Clause

    @property
    def key(self) -> AttributeKey:
        return (self.name, self.kind)

    def names(self) -> Iterator[str]:
        """The attributes of an event that it reads: both halves of a place, both sides of a comparison of two."""
        yield from self.name.split(",") if self.kind is Kind.PLACE else (self.name,)
        yield from (predicate.other for predicate in self.clause if isinstance(predicate, Versus))

    def matches(self, values: Values) -> bool:
        value = values.get(self.name)
        if KIND_BY_TYPE.get(type(value)) is not self.kind or value != value:
            return self._matches_otherwise(value, values)
        clause = self.clause
        if len(clause) == 1:
            return clause[0].accepts(value, values)
        return any(p.accepts(value, values) for p in clause)

    def _matches_otherwise(self, value: Value | None, values: Values) -> bool:
        """The same for all that is not a plain value of the kind asked for."""
        found: object = value
        if self.kind in VALUE_KINDS:
            if value is None or kind_of(value) is not self.kind:
                return False
        elif self.kind is Kind.ANY:
            if value is None:
                return ABSENT in self.clause
            if kind_of(value) is None:
                return False
        elif self.kind is Kind.PLACE:
            found = place_of(self.name, values)
        else:
            return True
        return found is not None and any(p.accepts(found, values) for p in self.clause)

    def covers(self, other: AttributeFilter) -> bool:
        """Whether this demands no more of the attribute than `other` does; both have the same name."""
        if self.kind is not other.kind and not (self.kind is Kind.ANY and other.kind in VALUE_KINDS):
            return False
        wide, narrow = self.clause, other.clause
        if len(wide) == 1 == len(narrow):
            return wide[0].covers(narrow[0])
        return covers(wide, narrow)

    def overlaps(self, other: AttributeFilter) -> bool:
        """Whether one value may satisfy both, or whether they do not even speak of the same thing."""
        if self.kind is other.kind or {self.kind, other.kind} - VALUE_KINDS == {Kind.ANY}:
            one, another = self.clause, other.clause
            if len(one) == 1 == len(another):
                return one[0].overlaps(another[0])
            return overlaps(one, another)
        return not {self.kind, other.kind} <= VALUE_KINDS

"""Filters: conjunctions of attribute filters, and sets of alternatives, each with one canonical form.

    Filter      all attribute filters must hold; without any it accepts everything
    FilterSet   at least one filter must hold; without any it accepts nothing

Both are made by the functions here, which canonicalise; the constructors trust their caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import cast

import msgspec

from godwit.filters import clauses
from godwit.filters.clauses import AttributeFilter, AttributeKey, Clause
from godwit.filters.errors import FilterError
from godwit.filters.predicates import (
    VALUE_KINDS,
    VERSUS_KIND,
    Absent,
    AnyPredicate,
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
    Within,
    number,
)

TYPE_ATTRIBUTE = "type"


class Filter(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """A conjunction in canonical form: attribute filters sorted by (name, kind), one for each.

    Several for one key remain only where no single clause says their conjunction, as in LIKE 'a%' AND LIKE '%b'.
    """

    attributes: tuple[AttributeFilter, ...] = ()

    def __iter__(self) -> Iterator[AttributeFilter]:
        return iter(self.attributes)

    # Everything above asks these three, so they are plain loops: a generator costs more than the answer.

    def matches(self, values: Values) -> bool:
        for attribute in self.attributes:  # noqa: SIM110
            if not attribute.matches(values):
                return False
        return True

    def covers(self, other: Filter) -> bool:
        """Whether every event that `other` accepts is accepted here (spec A.1): False where the algebra cannot tell."""
        their_attributes = other.attributes
        for mine in self.attributes:
            name = mine.name
            for theirs in their_attributes:
                if theirs.name == name and mine.covers(theirs):
                    break
            else:
                return False
        return True

    def overlaps(self, other: Filter) -> bool:
        """Whether some event may be accepted by both: True where the algebra cannot tell."""
        their_attributes = other.attributes
        for mine in self.attributes:
            name = mine.name
            for theirs in their_attributes:
                if theirs.name == name and not mine.overlaps(theirs):
                    return False
        return True

    @property
    def type(self) -> str | None:
        """The one event type that this filter accepts, or None where it is open; tables are partitioned by it."""
        for attribute in self.attributes:
            if attribute.name == TYPE_ATTRIBUTE and attribute.kind is Kind.STRING:
                match attribute.clause:
                    case (Text(TextOp.EQU, operand),):
                        return operand
        return None


EVERYTHING = Filter()


class FilterSet(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """Alternatives in canonical form: what a text condition means and what a subscription holds."""

    filters: tuple[Filter, ...] = ()

    def __iter__(self) -> Iterator[Filter]:
        return iter(self.filters)

    def matches(self, values: Values) -> bool:
        for one in self.filters:  # noqa: SIM110
            if one.matches(values):
                return True
        return False

    def covers(self, other: FilterSet) -> bool:
        """The practical rule of spec 1.5.4: each filter of `other` is covered by a single filter of this set."""
        for theirs in other.filters:
            for mine in self.filters:
                if mine.covers(theirs):
                    break
            else:
                return False
        return True

    def overlaps(self, other: FilterSet) -> bool:
        return any(mine.overlaps(theirs) for mine in self.filters for theirs in other.filters)


def attribute(name: str, *disjuncts: Predicate, kind: Kind | None = None, integers: bool = False) -> AttributeFilter:
    """The attribute filter that accepts a value of `name` when any of the disjuncts does; their kind unless given.

    Predicates that are for several kinds, such as Exists, equality with a placeholder, or your own, ask for no kind
    unless it is given.
    """
    kind = kind or kind_among(disjuncts)
    for predicate in disjuncts:
        if not _fits(predicate, kind):
            raise FilterError(f"attribute {name!r}: {predicate!r} is not for values of kind {kind}")
    clause = clauses.union(kind, cast(tuple[AnyPredicate, ...], disjuncts), integers=integers)
    return AttributeFilter(name, kind, clause)


def problem_of(wanted: Filter) -> str:
    """Why a filter that was decoded, not made here, would fail when it is asked; nothing where it would not."""
    for own in wanted.attributes:
        if not own.clause:
            return f"attribute {own.name!r}: no alternative"
        if own.kind is Kind.PLACE and "," not in own.name:
            return f"attribute {own.name!r}: a place is named by two attributes, as in 'lat,lon'"
        for predicate in own.clause:
            if problem := _problem(predicate, own.kind):
                return f"attribute {own.name!r}: {problem}"
    return ""


def _problem(predicate: AnyPredicate, kind: Kind) -> str:
    if not _fits(predicate, kind):
        return f"{predicate!r} is not for values of kind {kind}"
    match predicate:
        case Interval(lo, hi):
            if not {lo[1], hi[1]} <= {0, 1}:
                return f"{predicate!r} has an end that lies neither before nor after its number"
            return _problem_of_number(lo[0]) or _problem_of_number(hi[0])
        case Hole(value):
            return _problem_of_number(value)
    return ""


def _problem_of_number(value: int | float) -> str:
    try:
        number(value)
    except FilterError as error:
        return str(error)
    return ""


def conjunction(attributes: Iterable[AttributeFilter]) -> Filter | None:
    """The canonical filter that demands all of them, or None where no event can satisfy them together.

    None is certain, a filter is not: contradictions between more than two conditions on one string may go unseen.
    """
    attributes = list(attributes)
    if len({one.name for one in attributes}) == len(attributes):  # so that none has anything to do with another
        is_never = not all(one.clause for one in attributes)
        return None if is_never else Filter(tuple(sorted(attributes, key=attrgetter("name"))))
    demanded: dict[AttributeKey, list[Clause]] = {}
    given: dict[int, AttributeFilter] = {}
    for one in attributes:
        demanded.setdefault(one.key, []).append(one.clause)
        given[id(one.clause)] = one
    folded = {key: _folded(key[1], found) for key, found in demanded.items()}
    if any(clauses.NEVER in found for found in folded.values()) or not _settle_kinds(folded):
        return None
    return Filter(tuple(_held(given, key, clause) for key in sorted(folded) for clause in folded[key]))


def _held(given: dict[int, AttributeFilter], key: AttributeKey, clause: Clause) -> AttributeFilter:
    """The one that was given, where it stays as it is: many filters may share it."""
    one = given.get(id(clause))
    return one if one is not None and one.clause is clause and one.key == key else AttributeFilter(*key, clause)


def filter_of(*attributes: AttributeFilter) -> Filter:
    """The same for attribute filters written by hand, where a contradiction is a mistake."""
    made = conjunction(attributes)
    if made is None:
        raise FilterError("the attribute filters contradict each other: no event can match")
    return made


def alternatives(filters: Iterable[Filter]) -> FilterSet:
    """The canonical set of them: sorted, without those that another one covers."""
    kept: list[tuple[frozenset[str], Filter]] = []
    for one in sorted(set(filters), key=repr):
        # A filter covers only what speaks of all its attributes; the cheap question keeps large sets affordable.
        names = frozenset([own.name for own in one.attributes])
        if not any(theirs <= names and other.covers(one) for theirs, other in kept):
            kept = [(theirs, other) for theirs, other in kept if not (names <= theirs and one.covers(other))]
            kept.append((names, one))
    return FilterSet(tuple(one for _, one in kept))


def kind_among(disjuncts: Iterable[Predicate]) -> Kind:
    """The one kind that the disjuncts are for, ANY where they are for several."""
    kinds = {kind for kind in map(_own_kind, disjuncts) if kind is not None}
    if len(kinds) > 1:
        raise FilterError(f"one clause cannot mix kinds: {', '.join(sorted(kinds))}")
    return kinds.pop() if kinds else Kind.ANY


_KINDS: dict[type, Kind] = {
    Absent: Kind.ANY,
    Interval: Kind.NUMBER,
    Hole: Kind.NUMBER,
    Text: Kind.STRING,
    Flag: Kind.BOOL,
    Within: Kind.PLACE,
    Outside: Kind.PLACE,
    Rate: Kind.RATE,
}


def _own_kind(predicate: Predicate) -> Kind | None:
    return VERSUS_KIND.get(predicate.op) if isinstance(predicate, Versus) else _KINDS.get(type(predicate))


def _fits(predicate: Predicate, kind: Kind) -> bool:
    own = _own_kind(predicate)
    return own is kind or (own is None and kind is not Kind.RATE)


def _folded(kind: Kind, demanded: list[Clause]) -> list[Clause]:
    """The same demands, sorted, in one clause where one can say them all; whatever the order in which they came."""
    if len(demanded) == 1:
        return demanded
    waiting = sorted(set(demanded), key=repr)
    folded: list[Clause] = []
    while waiting:
        clause = waiting.pop()
        for other in folded:
            both = clauses.intersection(kind, other, clause)
            if both is not None:
                folded.remove(other)
                waiting.append(both)
                break
        else:
            folded.append(clause)
    return sorted(folded, key=repr)


def _settle_kinds(folded: dict[AttributeKey, list[Clause]]) -> bool:
    """Drop what is asked of any kind and follows from what is asked of one; False where the kinds contradict."""
    typed: dict[str, Kind] = {}
    for name, kind in folded:
        if kind in VALUE_KINDS and typed.setdefault(name, kind) is not kind:
            return False
    for name, kind in typed.items():
        narrow = folded[name, kind]
        untyped = folded.pop((name, Kind.ANY), [])
        if not all(clauses.overlaps(a, b) for a in untyped for b in narrow):
            return False
        left = [a for a in untyped if not any(clauses.covers(a, b) for b in narrow)]
        if left:
            folded[name, Kind.ANY] = left
    return True

"""Filters: conjunctions of attribute filters, and sets of alternatives, each with one canonical form.

    Filter      all attribute filters must hold; without any it accepts everything
    FilterSet   at least one filter must hold; without any it accepts nothing

Both are made by the functions here, which canonicalise; the constructors trust their caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from godwit.filters import clauses
from godwit.filters.clauses import AttributeFilter, Clause
from godwit.filters.predicates import (
    ABSENT,
    AnyPredicate,
    Exists,
    FilterError,
    Kind,
    Text,
    TextOp,
    Values,
    Versus,
    kind_of,
    place_of,
)

TYPE_ATTRIBUTE = "type"


class Filter(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """A conjunction in canonical form: attribute filters sorted by (name, kind), one for each.

    Several for one key remain only where no single clause says their conjunction, as in LIKE 'a%' AND LIKE '%b'.
    """

    attributes: tuple[AttributeFilter, ...] = ()

    def __iter__(self) -> Iterator[AttributeFilter]:
        return iter(self.attributes)

    def matches(self, values: Values) -> bool:
        return all(attribute_matches(attribute, values) for attribute in self.attributes)

    def covers(self, other: Filter) -> bool:
        """Whether every event that `other` accepts is accepted here (spec A.1): False where the algebra cannot tell."""
        for mine in self.attributes:
            for theirs in other.attributes:
                if (
                    mine.name == theirs.name
                    and (mine.kind is theirs.kind or mine.kind is Kind.ANY)
                    and clauses.covers(mine.clause, theirs.clause)
                ):
                    break
            else:
                return False
        return True

    def overlaps(self, other: Filter) -> bool:
        """Whether some event may be accepted by both: True where the algebra cannot tell."""
        return all(
            _may_meet(mine, theirs)
            for mine in self.attributes
            for theirs in other.attributes
            if mine.name == theirs.name
        )

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
        return any(f.matches(values) for f in self.filters)

    def covers(self, other: FilterSet) -> bool:
        """The practical rule of spec 1.5.4: each filter of `other` is covered by a single filter of this set."""
        return all(any(mine.covers(theirs) for mine in self.filters) for theirs in other.filters)

    def overlaps(self, other: FilterSet) -> bool:
        return any(mine.overlaps(theirs) for mine in self.filters for theirs in other.filters)


def attribute(name: str, *disjuncts: AnyPredicate, kind: Kind | None = None, integers: bool = False) -> AttributeFilter:
    """The attribute filter that accepts a value of `name` when any of the disjuncts does; their kind unless given."""
    kind = kind or kind_among(disjuncts)
    return AttributeFilter(name, kind, clauses.union(kind, disjuncts, integers=integers))


def conjunction(attributes: Iterable[AttributeFilter]) -> Filter | None:
    """The canonical filter that demands all of them, or None where no event can satisfy them together."""
    by_key: dict[tuple[str, Kind], list[Clause]] = {}
    for one in attributes:
        _narrow(by_key.setdefault(one.key, []), one)
    typed = {name: kind for name, kind in by_key if kind is not Kind.ANY}
    for name, kind in list(by_key):
        if clauses.NEVER in by_key[name, kind]:
            return None
        if kind is Kind.ANY:
            if name in typed and (ABSENT,) in by_key[name, kind]:
                return None
            if name in typed and (clauses.ALWAYS in by_key[name, kind]):
                by_key[name, kind].remove(clauses.ALWAYS)
        elif typed[name] is not kind:
            return None
    return Filter(
        tuple(
            AttributeFilter(name, kind, clause)
            for name, kind in sorted(by_key)
            for clause in sorted(by_key[name, kind], key=repr)
        )
    )


def filter_of(*attributes: AttributeFilter) -> Filter:
    """The same for attribute filters written by hand, where a contradiction is a mistake."""
    made = conjunction(attributes)
    if made is None:
        raise FilterError("the attribute filters contradict each other: no event can match")
    return made


def kind_among(disjuncts: Iterable[AnyPredicate]) -> Kind:
    kinds = {_KINDS.get(type(p).__name__, Kind.ANY) for p in disjuncts if not isinstance(p, Exists | Versus)}
    if len(kinds) > 1:
        raise FilterError(f"one clause cannot mix kinds: {', '.join(sorted(kinds))}")
    return kinds.pop() if kinds else Kind.ANY


_KINDS = {
    "Interval": Kind.NUMBER,
    "Hole": Kind.NUMBER,
    "Text": Kind.STRING,
    "Flag": Kind.BOOL,
    "Within": Kind.PLACE,
    "Outside": Kind.PLACE,
    "Rate": Kind.RATE,
}


def attribute_matches(attribute: AttributeFilter, values: Values) -> bool:
    kind = attribute.kind
    if kind is Kind.PLACE:
        place = place_of(attribute.name, values)
        return place is not None and any(p.accepts(place, values) for p in attribute.clause)
    if kind is Kind.RATE:
        return True
    value = values.get(attribute.name)
    if value is None:
        return ABSENT in attribute.clause
    found = kind_of(value)
    if found is None or (kind is not Kind.ANY and found is not kind):
        return False
    return any(p.accepts(value, values) for p in attribute.clause)


def _narrow(known: list[Clause], one: AttributeFilter) -> None:
    """Add a clause to those already demanded of its attribute, folded into one where a single clause can say both."""
    clause = one.clause
    for other in list(known):
        both = clauses.intersection(one.kind, other, clause)
        if both is not None:
            known.remove(other)
            clause = both
    known.append(clause)


def _may_meet(mine: AttributeFilter, theirs: AttributeFilter) -> bool:
    if mine.kind is theirs.kind or Kind.ANY in (mine.kind, theirs.kind):
        return clauses.overlaps(mine.clause, theirs.clause)
    return False

"""Merging of filters (spec 2.10.1): one filter in place of two, exactly or with some events more.

The rules for predicates are those of `clauses.union`; here they are lifted to filters. Event types are never merged:
tables are partitioned by type, and a merger of two would belong to neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from godwit.filters import clauses
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import TYPE_ATTRIBUTE, Filter, conjunction

F = TypeVar("F")
Merge = Callable[[F, F], F | None]


def perfect(one: Filter, other: Filter, *, disjunctions: bool = True, integers: bool = False) -> Filter | None:
    """The filter that accepts exactly what either accepts, or None where no rule gives one (spec definition A.2).

    Either covers the other, or they differ in one attribute filter alone. Without `disjunctions` that one must become a
    single predicate: [0, 20] and [30, 40] stay apart. `integers` is for attributes that hold whole numbers only.
    """
    if one.covers(other):
        return one
    if other.covers(one):
        return other
    mine = [attribute for attribute in one if attribute not in other.attributes]
    theirs = [attribute for attribute in other if attribute not in one.attributes]
    if not len(mine) == len(theirs) == 1:
        return None
    merged = _merged(mine[0], theirs[0], disjunctions, integers)
    if merged is None:
        return None
    return conjunction(merged if attribute is mine[0] else attribute for attribute in one)


def imperfect(one: Filter, other: Filter, *, disjunctions: bool = True, integers: bool = False) -> Filter | None:
    """The perfect merger where there is one, else one that accepts more than either: all attribute filters merged.

    Where neither covers the other, both must constrain the same attributes of the same kinds. Options as in `perfect`.
    """
    exact = perfect(one, other, disjunctions=disjunctions, integers=integers)
    if exact is not None or len(one.attributes) != len(other.attributes):
        return exact
    together = []
    for mine, theirs in zip(one, other, strict=True):
        merged = _merged(mine, theirs, disjunctions, integers)
        if merged is None:
            return None
        together.append(merged)
    return conjunction(together)


def first_partner(candidates: Iterable[F], one: F, merge: Merge[F]) -> tuple[F, F] | None:
    """The first candidate that merges with `one`, and their merger: what the spec's mechanism takes."""
    for candidate in candidates:
        merger = merge(candidate, one)
        if merger is not None:
            return candidate, merger
    return None


def best_partner(candidates: Iterable[Filter], one: Filter, merge: Merge[Filter]) -> tuple[Filter, Filter] | None:
    """The candidate with the most general merger or, among incomparable ones, that with the fewest disjuncts.

    Costs a merge for every candidate. Long clauses merge worse later on, which is what this avoids.
    """
    best: tuple[Filter, Filter] | None = None
    for candidate in candidates:
        merger = merge(candidate, one)
        if merger is not None and (best is None or _better(merger, best[1])):
            best = candidate, merger
    return best


def _merged(
    mine: AttributeFilter, theirs: AttributeFilter, disjunctions: bool, integers: bool
) -> AttributeFilter | None:
    if mine == theirs:
        return mine
    if mine.key != theirs.key or mine.name == TYPE_ATTRIBUTE:
        return None
    clause = clauses.union(mine.kind, mine.clause + theirs.clause, integers=integers)
    if len(clause) > 1 and not disjunctions:
        return None
    return AttributeFilter(mine.name, mine.kind, clause)


def _better(new: Filter, old: Filter) -> bool:
    if new.covers(old) or old.covers(new):
        return not old.covers(new)
    return _disjuncts(new) < _disjuncts(old)


def _disjuncts(wanted: Filter) -> int:
    return sum(len(attribute.clause) for attribute in wanted)

"""One canonical set for many ways to say the same: alternatives merged as far as that is perfect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from godwit.filters.clauses import AttributeFilter, AttributeKey
from godwit.filters.filters import TYPE_ATTRIBUTE, Filter, FilterSet, alternatives, attribute, conjunction

Slot = tuple[tuple[AttributeFilter, ...], AttributeKey]
"""A filter with one attribute filter taken out, and the key of that one."""


def canonical(filters: Iterable[Filter]) -> FilterSet:
    """The set that accepts what any of them accepts: no two merge perfectly, none covers another, sorted.

    The order in which they are given does not matter, and the canonical form of a canonical set is itself. Two sets
    that accept the same can still differ: the best merging is NP-complete (spec 2.10.1).
    """
    found = merged(filters)
    if len(found) < 2:
        return FilterSet(tuple(found))
    uncovered = alternatives(found)
    while len(found := merged(uncovered)) < len(uncovered.filters):
        uncovered = alternatives(found)
    return uncovered


def merged(filters: Iterable[Filter]) -> list[Filter]:
    """The same alternatives, those joined that differ in one attribute filter alone (spec definition A.2).

    A whole group is joined at once, because to fold a long OR pair by pair would cost its square. An alternative
    speaks of one event type, as `merging.perfect` has it too.
    """
    waiting = [part for one in filters for part in _of_one_type(one)]
    while len(waiting) > 1:
        waiting = sorted(set(waiting), key=repr)
        fewer = list(_joined(waiting))
        if len(fewer) == len(waiting):
            break
        waiting = fewer
    return waiting


def _of_one_type(one: Filter) -> Iterator[Filter]:
    for own in one:
        if own.name == TYPE_ATTRIBUTE and len(own.clause) > 1:
            rest = [other for other in one if other is not own]
            for disjunct in own.clause:
                part = conjunction((*rest, attribute(own.name, disjunct, kind=own.kind)))
                if part is not None:
                    yield from _of_one_type(part)
            return
    yield one


def _joined(filters: list[Filter]) -> Iterator[Filter]:
    """One round: each filter joins at most one group."""
    groups: dict[Slot, list[Filter]] = {}
    for one in filters:
        for slot in _slots(one):
            groups.setdefault(slot, []).append(one)
    left = dict.fromkeys(filters)
    for slot, members in groups.items():
        present = [one for one in members if one in left]
        if len(present) > 1:
            for one in present:
                del left[one]
            yield _union(slot, present)
    yield from left


def _slots(one: Filter) -> Iterator[Slot]:
    for at, own in enumerate(one.attributes):
        if own.name != TYPE_ATTRIBUTE:
            yield one.attributes[:at] + one.attributes[at + 1 :], own.key


def _union(slot: Slot, members: list[Filter]) -> Filter:
    rest, (name, kind) = slot
    disjuncts = [
        disjunct
        for one in members
        for own in one
        if own.key == (name, kind) and own not in rest
        for disjunct in own.clause
    ]
    together = conjunction((*rest, attribute(name, *disjuncts, kind=kind)))
    assert together is not None, "what some member accepts is accepted"
    return together

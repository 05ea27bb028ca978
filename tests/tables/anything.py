"""Filters with every predicate there is, and events that come close to them: what the index is held to."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from godwit.events import Value
from godwit.filters.areas import Box, Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet, attribute
from godwit.filters.predicates import (
    ABSENT,
    EXISTS,
    AnyPredicate,
    Flag,
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
    equ,
    neq,
)

Events = list[dict[str, Value]]

NAMES = "abcd"
EDGES = [2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**63), -(2**53) - 1]

numbers = st.one_of(
    st.integers(-3, 6),
    st.sampled_from([-0.0, 0.5, 2.5, 3.0, float(2**53), float(2**63), 1e300, float("inf"), float("-inf")]),
    st.sampled_from(EDGES),
    st.floats(-4, 7),
)
words = st.text("ab%_é😀", max_size=5)
patterns = st.text("ab%_\\é", max_size=6)
lats = st.sampled_from([-90, -89.9999, -10.0, 0.0, 0.001, 45, 60.0, 89.9999, 90])
lons = st.sampled_from([-180, -179.9995, -10.0, 0.0, 0.002, 120.5, 179.9995, 180, 180.0005, 350.0, 360])

values: st.SearchStrategy[Value | None] = st.one_of(
    numbers, words, st.booleans(), st.sampled_from([float("nan"), None])
)


class Even:
    """A predicate of somebody's own: whole numbers that two divides, in events that have no 'd'."""

    def accepts(self, value: Any, values: Values) -> bool:
        return isinstance(value, int) and value % 2 == 0 and "d" not in values

    def covers(self, other: Predicate) -> bool:
        return isinstance(other, Even)

    def overlaps(self, other: Predicate) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Even)

    def __hash__(self) -> int:
        return 7


cuts = st.tuples(numbers, st.integers(0, 1))
intervals: st.SearchStrategy[AnyPredicate] = st.tuples(cuts, cuts).map(lambda ends: Interval(min(ends), max(ends)))
number_predicates: st.SearchStrategy[AnyPredicate] = st.one_of(
    intervals,
    cuts.map(lambda cut: Interval(cut, (float("inf"), 1))),
    cuts.map(lambda cut: Interval((float("-inf"), 0), cut)),
    numbers.map(equ),
    numbers.map(neq),
)
text_predicates: st.SearchStrategy[AnyPredicate] = st.one_of(
    st.builds(Text, st.sampled_from([op for op in TextOp if "like" not in op]), words),
    st.builds(Text, st.sampled_from([TextOp.LIKE, TextOp.NLIKE]), patterns),
)
circles = st.builds(Circle, lats, lons, st.sampled_from([1.0, 200.0, 5e5, 9e6, 2e7]))
boxes = st.tuples(lats, lons, lats, lons).map(
    lambda box: Box(float(min(box[0], box[2])), float(box[1]), float(max(box[0], box[2])), float(box[3]))
)
areas = st.one_of(circles, boxes)
place_predicates: st.SearchStrategy[AnyPredicate] = st.one_of(areas.map(Within), areas.map(Outside), st.just(EXISTS))

names = st.sampled_from(NAMES)


def clauses(predicates: st.SearchStrategy[AnyPredicate]) -> st.SearchStrategy[tuple[AnyPredicate, ...]]:
    """Written by hand, not canonical: the index relies on nothing that canonical form promises."""
    return st.lists(predicates, min_size=1, max_size=4).map(tuple)


def of_kind(
    kind: Kind, predicates: st.SearchStrategy[AnyPredicate], named: st.SearchStrategy[str] = names
) -> st.SearchStrategy[AttributeFilter]:
    return st.builds(AttributeFilter, named, st.just(kind), clauses(predicates))


def other_than(kind: Kind) -> st.SearchStrategy[AnyPredicate]:
    other: list[AnyPredicate] = [EXISTS, ABSENT]
    return st.one_of(st.sampled_from(other), st.builds(Versus, st.sampled_from(list(VersusOp)), names))


attribute_filters: st.SearchStrategy[AttributeFilter] = st.one_of(
    of_kind(Kind.NUMBER, number_predicates),
    of_kind(Kind.STRING, text_predicates),
    of_kind(Kind.BOOL, st.booleans().map(Flag)),
    of_kind(Kind.PLACE, place_predicates, st.just("lat,lon")),
    of_kind(Kind.PLACE, areas.map(Within), st.just("a,b")),
    of_kind(Kind.NUMBER, st.one_of(number_predicates, other_than(Kind.NUMBER))),
    of_kind(Kind.STRING, st.one_of(text_predicates, other_than(Kind.STRING))),
    of_kind(Kind.ANY, other_than(Kind.ANY)),
    st.just(AttributeFilter("rate", Kind.RATE, (Rate(2.0),))),
    names.map(lambda name: attribute(name, Even())),
)
filters = st.lists(attribute_filters, max_size=4).map(lambda found: Filter(tuple(found)))
wanteds: st.SearchStrategy[Filter | FilterSet] = st.one_of(
    filters, st.lists(filters, max_size=3).map(lambda found: FilterSet(tuple(found)))
)

events: st.SearchStrategy[dict[str, Value]] = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(NAMES, values), "lat": st.one_of(lats, values), "lon": st.one_of(lons, values)}
).map(lambda event: {name: value for name, value in event.items() if value is not None})

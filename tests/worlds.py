"""Small worlds in which everything can be enumerated: the oracles of the algebra's tests."""

from __future__ import annotations

import math
from itertools import product
from typing import cast

from hypothesis import strategies as st

from godwit.events import Value
from godwit.filters.areas import Box, Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, attribute, conjunction
from godwit.filters.predicates import (
    ABSENT,
    EXISTS,
    AnyPredicate,
    Kind,
    Outside,
    Versus,
    VersusOp,
    Within,
    contains,
    end,
    equ,
    gr,
    gre,
    lacks,
    like,
    lt,
    lte,
    neq,
    rng,
    stw,
    unlike,
)

NUMBERS = [n / 2 for n in range(-1, 14)]
"""Operands are the whole numbers 0..6; values lie between and beyond them too, so that open and closed ends differ."""

TEXTS = ["".join(letters) for length in range(5) for letters in product("ab", repeat=length)]

whole = st.integers(0, 6)
words = st.text("ab", min_size=1, max_size=3)


def ranges() -> st.SearchStrategy[AnyPredicate]:
    return st.tuples(whole, whole).map(lambda ends: rng(min(ends), max(ends)))


def number_predicates() -> st.SearchStrategy[AnyPredicate]:
    return st.one_of(
        whole.map(equ), whole.map(neq), whole.map(gr), whole.map(gre), whole.map(lt), whole.map(lte), ranges()
    )


def text_predicates() -> st.SearchStrategy[AnyPredicate]:
    return st.one_of(*(words.map(make) for make in (equ, neq, stw, end, contains, lacks)))


def range_filters(names: str = "xy") -> st.SearchStrategy[Filter]:
    """Filters of one range on each of some of the attributes: the workload of the spec, shrunk."""
    return st.dictionaries(st.sampled_from(names), ranges(), min_size=1).map(
        lambda clauses: conjunction(attribute(name, p) for name, p in clauses.items()) or Filter()
    )


def pattern_predicates() -> st.SearchStrategy[AnyPredicate]:
    """LIKE and NOT LIKE of any shape, short enough for its strings to be enumerated."""
    shapes = st.text("ab_%", max_size=4)
    return st.one_of(shapes.map(like), shapes.map(lambda shape: unlike(shape) or equ("")))


NUMBER_OPERATORS = [VersusOp.EQU, VersusOp.NEQ, VersusOp.GR, VersusOp.GRE, VersusOp.LT, VersusOp.LTE]
TEXT_OPERATORS = [VersusOp.EQU, VersusOp.NEQ, VersusOp.IN, VersusOp.NIN, VersusOp.STW, VersusOp.END]


def placeholders(*operators: VersusOp, others: str) -> st.SearchStrategy[AnyPredicate]:
    return st.builds(Versus, st.sampled_from(operators), st.sampled_from(others))


def place_predicates() -> st.SearchStrategy[AnyPredicate]:
    areas = st.sampled_from(
        [Circle(0, 0, 60e3), Circle(0, 0, 200e3), Circle(0, 1, 60e3), Circle(0, 9, 60e3), Box(-1, -1, 1, 1)]
    )
    return st.one_of(st.builds(Within, areas), st.builds(Outside, areas))


def attribute_filters() -> st.SearchStrategy[AttributeFilter]:
    """Of every kind, with up to three disjuncts: numbers x, y; strings s, t; truth b; a place; and x, s of any kind."""
    numbers = number_predicates() | placeholders(*NUMBER_OPERATORS, others="xy") | st.just(EXISTS)
    strings = text_predicates() | pattern_predicates() | placeholders(*TEXT_OPERATORS, others="st")
    untyped: list[AnyPredicate] = [EXISTS, ABSENT]
    return st.one_of(
        _attribute_filters("xy", Kind.NUMBER, numbers),
        _attribute_filters("st", Kind.STRING, strings),
        _attribute_filters("b", Kind.BOOL, st.booleans().map(equ)),
        _attribute_filters(["lat,lon"], Kind.PLACE, place_predicates()),
        _attribute_filters("xs", Kind.ANY, st.sampled_from(untyped) | placeholders(VersusOp.EQU, others="ys")),
    )


def _attribute_filters(
    names: str | list[str], kind: Kind, predicates: st.SearchStrategy[AnyPredicate]
) -> st.SearchStrategy[AttributeFilter]:
    disjuncts = st.lists(predicates, min_size=1, max_size=3)
    return st.tuples(st.sampled_from(names), disjuncts).map(lambda drawn: attribute(drawn[0], *drawn[1], kind=kind))


def filters(attributes_max: int = 3) -> st.SearchStrategy[Filter]:
    """Satisfiable as far as the algebra can tell."""
    made = st.lists(attribute_filters(), max_size=attributes_max).map(conjunction)
    return made.filter(lambda one: one is not None).map(lambda one: cast(Filter, one))


def value_maps() -> st.SearchStrategy[dict[str, Value]]:
    """What events of the world of `filters` may hold, with some missing, of the wrong kind, or NaN."""
    numbers = st.sampled_from(NUMBERS) | st.integers(0, 6)
    strings = st.text("abc", max_size=4)
    odd: st.SearchStrategy[Value] = st.sampled_from([math.nan, math.inf, -math.inf, "a", True, 3])
    degrees = st.sampled_from([0, 0.3, 0.9, 1, 1.5, 9])
    return st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys("xy", numbers | odd),
            **dict.fromkeys("st", strings | odd),
            "b": st.booleans() | odd,
            "lat": degrees,
            "lon": degrees,
        },
    )


class Sets:
    """The plainest filter language: a filter is the set of numbers that it accepts, so that nothing has to be proved.

    Two that overlap merge: into their union, or, where `imperfect`, into all numbers from the least to the greatest.
    """

    def __init__(self, *, imperfect: bool = False) -> None:
        self.imperfect = imperfect

    def covers(self, wide: frozenset[int], narrow: frozenset[int], /) -> bool:
        return wide >= narrow

    def overlaps(self, one: frozenset[int], other: frozenset[int], /) -> bool:
        return bool(one & other)

    def matches(self, wanted: frozenset[int], event: int, /) -> bool:
        return event in wanted

    def merge(self, one: frozenset[int], other: frozenset[int], /) -> frozenset[int] | None:
        if not one & other:
            return None
        both = one | other
        return frozenset(range(min(both), max(both) + 1)) if self.imperfect else both

    def type_of(self, wanted: frozenset[int], /) -> str | None:
        return None


SMALL = range(8)
"""The events of the language of sets."""


def small_sets() -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.sampled_from(SMALL), min_size=1, max_size=4)


def span(low: int, high: int) -> frozenset[int]:
    """The range of the spec's examples in the language of sets: both ends count."""
    return frozenset(range(low, high + 1))


Labelled = tuple[str, frozenset[int]]


class LabelledSets:
    """Sets with a name that means nothing: filters that are equivalent and yet not the same."""

    def covers(self, wide: Labelled, narrow: Labelled, /) -> bool:
        return wide[1] >= narrow[1]

    def overlaps(self, one: Labelled, other: Labelled, /) -> bool:
        return bool(one[1] & other[1])

    def matches(self, wanted: Labelled, event: int, /) -> bool:
        return event in wanted[1]

    def merge(self, one: Labelled, other: Labelled, /) -> Labelled | None:
        return (one[0], one[1] | other[1]) if one[1] & other[1] else None

    def type_of(self, wanted: Labelled, /) -> str | None:
        return None


def labelled_sets(labels: str = "pq") -> st.SearchStrategy[Labelled]:
    """Few numbers, so that most sets have to do with most others."""
    return st.tuples(st.sampled_from(labels), st.frozensets(st.sampled_from(SMALL[:5]), min_size=1, max_size=4))


def typed_filters() -> st.SearchStrategy[Filter]:
    """Ranges of events of type A or B, or of any type at all."""
    kinds = st.sampled_from(["A", "B", None])
    return st.tuples(kinds, ranges(), ranges() | st.none()).map(lambda drawn: typed(drawn[0], drawn[1], drawn[2]))


def typed(kind: str | None, x: AnyPredicate, y: AnyPredicate | None = None) -> Filter:
    attributes = [attribute("x", x)]
    if y is not None:
        attributes.append(attribute("y", y))
    if kind is not None:
        attributes.append(attribute("type", equ(kind)))
    return conjunction(attributes) or Filter()


def typed_events() -> st.SearchStrategy[dict[str, Value]]:
    values: dict[str, st.SearchStrategy[Value]] = {"x": whole, "y": whole, "type": st.sampled_from(["A", "B", "C"])}
    return st.fixed_dictionaries({}, optional=values)

"""Small worlds in which everything can be enumerated: the oracles of the algebra's tests."""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from godwit.filters.filters import Filter, attribute, conjunction
from godwit.filters.predicates import AnyPredicate, contains, end, equ, gr, gre, lacks, lt, lte, neq, rng, stw

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

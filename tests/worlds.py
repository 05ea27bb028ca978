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

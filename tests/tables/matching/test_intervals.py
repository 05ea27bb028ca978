"""The interval index against trying every interval."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.filters.predicates import ABOVE_ALL, BELOW_ALL, Cut, Interval, Number
from godwit.tables.matching.intervals import Intervals

numbers: st.SearchStrategy[Number] = st.one_of(
    st.integers(-9, 9),
    st.sampled_from([-0.0, 0.5, 2**53, 2**53 + 1, 2**60, 2**60 + 1, 2**60 + 2, -(2**63), 2**63 - 1]),
    st.sampled_from([1e-310, -1e-310, 1e300, -1e300, math.inf, -math.inf]),
)
cuts = st.one_of(st.tuples(numbers, st.integers(0, 1)), st.sampled_from([BELOW_ALL, ABOVE_ALL]))
spans: st.SearchStrategy[tuple[Cut, Cut]] = (
    st.tuples(cuts, cuts).map(lambda ends: (min(ends), max(ends))).filter(lambda ends: ends[0] < ends[1])
)


@pytest.mark.feature("content-routing F24")
@given(entered=st.lists(st.tuples(spans, st.booleans()), max_size=20), values=st.lists(numbers, max_size=10))
def test_the_index_finds_exactly_the_intervals_that_hold_a_value(
    entered: list[tuple[tuple[Cut, Cut], bool]], values: list[Number]
) -> None:
    index = Intervals()
    for item, (ends, _) in enumerate(entered):
        index.add(*ends, item)
    for item, (ends, leaving) in enumerate(entered):
        if leaving:
            index.remove(*ends, item)
    staying = [(Interval(*ends), item) for item, (ends, leaving) in enumerate(entered) if not leaving]
    for value in values:
        assert sorted(index.at(value)) == [item for interval, item in staying if interval.accepts(value, {})]


@pytest.mark.feature("content-routing F24")
def test_an_item_may_lie_on_several_intervals() -> None:
    """Close together, where the rounded form of the numbers is the same for both."""
    index = Intervals()
    low = 2**60
    index.add((low, 0), (low + 1, 1), 7)
    index.add((low + 3, 0), (low + 4, 1), 7)
    assert [index.at(low + step) for step in range(6)] == [[7], [7], [], [7], [7], []]
    index.remove((low, 0), (low + 1, 1), 7)
    assert [index.at(low + step) for step in range(6)] == [[], [], [], [7], [7], []]

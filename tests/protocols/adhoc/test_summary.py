"""A summary fits its beacon and misses nothing that somebody wants (spec manet-cbr F3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds import filters, value_maps

from godwit.events import Event, Value
from godwit.filters.filters import Filter, FilterSet, alternatives, attribute, filter_of
from godwit.filters.predicates import equ, rng
from godwit.protocols.adhoc.clients import Clients
from godwit.protocols.adhoc.summary import ALL, SIZE_MIN_B, fitted, size_b


@pytest.mark.feature("manet-cbr F3")
@given(st.lists(filters(), max_size=6), st.lists(value_maps(), max_size=8), st.integers(SIZE_MIN_B, 200))
def test_a_summary_fits_and_accepts_all_that_was_wanted(
    wanted: list[Filter], events: list[dict[str, Value]], size_max_b: int
) -> None:
    exact = alternatives(wanted)
    summary = fitted(exact, size_max_b)
    assert size_b(summary) <= size_max_b
    for values in events:
        assert summary.matches(values) or not exact.matches(values)


@pytest.mark.feature("manet-cbr F3")
def test_what_fits_is_left_exact_and_what_does_not_is_widened_no_further_than_needed() -> None:
    exact = alternatives(
        [filter_of(attribute("x", rng(10 * i, 10 * i + 4)), attribute("y", rng(i, i + 1))) for i in range(9)]
    )
    assert fitted(exact, size_b(exact)) == exact
    shorter = fitted(exact, size_b(exact) // 2)
    assert shorter != exact
    assert shorter != ALL
    assert not shorter.matches({"x": 500, "y": 3})
    assert fitted(exact, SIZE_MIN_B) == ALL


def test_a_bound_that_nothing_fits_is_refused() -> None:
    with pytest.raises(ValueError, match=f"at least {SIZE_MIN_B}"):
        fitted(ALL, SIZE_MIN_B - 1)


@pytest.mark.feature("manet-cbr F3", "manet-cbr F2")
def test_the_summary_of_clients_follows_what_they_want() -> None:
    clients = Clients(200)
    wide = FilterSet((filter_of(attribute("x", rng(0, 20))),))
    narrow = FilterSet((filter_of(attribute("x", rng(5, 9))),))
    other = FilterSet((filter_of(attribute("kind", equ("taxi"))),))
    clients.subscribe(wide, "a")
    clients.subscribe(narrow, "b")
    assert clients.summary == wide
    clients.subscribe(other, "b")
    assert set(clients.summary) == {*wide, *other}
    clients.unsubscribe(wide, "a")
    assert set(clients.summary) == {*narrow, *other}
    assert list(clients.wanting(Event("p", 1, attributes={"x": 7, "kind": "taxi"}))) == ["b"]
    assert list(clients.wanting(Event("p", 1, attributes={"x": 12}))) == []

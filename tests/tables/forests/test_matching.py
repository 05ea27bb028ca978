"""Matching by covering: the improvements, the budget, and what they may not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.histories import Step, entries, histories, play
from tests.worlds import (
    SMALL,
    LabelledSets,
    Sets,
    filters,
    labelled_sets,
    span,
    typed,
    typed_events,
    typed_filters,
    value_maps,
)

from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS, Counted, Language
from godwit.filters.predicates import Values, rng
from godwit.tables.forests.forest import BF, LOCAL, NRF, PF, Forest
from godwit.tables.forests.matching import Matchable, after_tests, match
from godwit.tables.forests.poset import Poset
from godwit.tables.matching.counting import Counting
from godwit.tables.matching.naive import Naive
from godwit.tables.nodes import Node
from godwit.tables.table import Table

Make = Callable[[Language[Any, Any]], Forest[Any, Any] | Poset[Any, Any]]

MAKERS: dict[str, Make] = {
    "PF": lambda language: Forest(language, PF),
    "BF": lambda language: Forest(language, BF),
    "NRF": lambda language: Forest(language, NRF),
    "LOCAL": lambda language: Forest(language, LOCAL),
    "FP": lambda language: Poset(language),
    "FP for local clients": lambda language: Poset(language, pruned=False),
}
every_structure = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@pytest.mark.feature("content-routing F23", "content-routing F24")
@given(steps=histories(filters()), events=st.lists(value_maps(), min_size=3, max_size=6))
def test_all_matchers_agree(steps: list[Step], events: list[Values]) -> None:
    """Property T9, with filters of every kind."""
    naive: Naive[Filter, Values] = Naive()
    counting = Counting()
    local: list[Table[Filter, Values]] = [Forest(rules=LOCAL), Poset(pruned=False)]
    others: list[Table[Filter, Values]] = [Forest(rules=rules) for rules in (PF, BF, NRF)]
    for _ in play(steps, naive, counting, *local):
        pass
    for f, i in entries(naive):
        for other in others:
            other.add(f, i)
    for event in events:
        assert all(table.match(event) == naive.match(event) for table in (counting, *local, *others))


@every_structure
@pytest.mark.feature("content-routing F8", "content-routing F23")
@given(steps=histories(typed_filters()), events=st.lists(typed_events(), min_size=3, max_size=6))
def test_events_are_matched_within_their_type_and_by_open_filters(
    make: Make, steps: list[Step], events: list[Values]
) -> None:
    table = make(FILTERS)
    for _ in play(steps, table):
        pass
    for event in events:
        assert table.match(event) == {i for f, i in entries(table) if f.matches(event)}


@every_structure
@pytest.mark.feature("content-routing F23")
@given(steps=histories(labelled_sets(), interfaces=["a", "b", "c"]))
def test_everybody_who_wants_an_event_is_found_and_nobody_else(make: Make, steps: list[Step]) -> None:
    language = Counted(LabelledSets())
    table = make(language)
    for _ in play(steps, table):
        for event in SMALL:
            language.count.clear()
            assert table.match(event) == {i for f, i in entries(table) if event in f[1]}
            assert language.count["matches"] <= len(table)


@pytest.mark.feature("content-routing F8")
def test_an_event_of_another_type_costs_no_test() -> None:
    language = Counted(FILTERS)
    table = Forest(language, NRF)
    for low in range(9):
        table.add(typed("A", rng(low, low)), "a")
    assert table.match({"type": "B", "x": 3}) == set()
    assert language.count["matches"] == 0


def chain(rules_or_poset: Forest[Any, Any] | Poset[Any, Any]) -> None:
    for high, interface in ((5, "a"), (4, "b"), (3, "c"), (2, "d")):
        rules_or_poset.add(span(0, high), interface)


@every_structure
@pytest.mark.feature("content-routing F23")
def test_below_a_filter_that_refuses_nothing_is_tested(make: Make) -> None:
    language = Counted(Sets())
    table = make(language)
    chain(table)
    assert table.match(7) == set()
    assert language.count["matches"] == 1


@every_structure
@pytest.mark.feature("content-routing F23")
def test_the_search_stops_when_everybody_is_found(make: Make) -> None:
    language = Counted(Sets())
    table = make(language)
    table.add(span(0, 5), "a")
    table.add(span(4, 9), "b")
    table.add(span(0, 1), "b")
    table.add(span(8, 9), "a")
    language.count.clear()
    assert table.match(4) == {"a", "b"}
    assert language.count["matches"] == 2


@pytest.mark.feature("content-routing F23")
def test_a_filter_of_somebody_already_found_is_not_tested_but_looked_below() -> None:
    """Improvement 1: the middle filter can add nobody, the one below it can."""
    language = Counted(Sets())
    table = Forest(language, LOCAL)
    table.add(span(0, 5), "a")
    table.add(span(0, 4), "a")
    table.add(span(0, 3), "b")
    table.add(span(9, 9), "c")
    language.count.clear()
    assert table.match(2) == {"a", "b"}
    # The roots and the lowest filter.
    assert language.count["matches"] == 3


class Closed:
    """A node below which nobody may look."""

    filter = span(4, 9)
    interfaces: ClassVar[set[str]] = {"b"}
    used_below = {"a": 1, "b": 1}.keys()

    @property
    def children(self) -> list[Closed]:
        raise AssertionError("the tree can add nobody")


@pytest.mark.feature("content-routing F23")
def test_with_an_index_a_tree_that_can_add_nobody_is_not_entered() -> None:
    """Improvement 2."""
    open_node: Node[frozenset[int]] = Node(span(0, 5), None, 0, indexed=True)
    open_node.interfaces = {"a", "b"}
    nodes: list[Matchable[frozenset[int]]] = [open_node, Closed()]
    assert match(nodes, 4, Sets(), enough=3) == {"a", "b"}


@every_structure
@pytest.mark.feature("content-routing F23")
@given(steps=histories(labelled_sets()), budget=st.integers(0, 12))
def test_out_of_budget_nobody_is_missed_and_no_test_is_made(make: Make, steps: list[Step], budget: int) -> None:
    language = Counted(LabelledSets())
    table = make(language)
    for _ in play(steps, table):
        pass
    for event in SMALL:
        exact = table.match(event)
        language.count.clear()
        rough = table.match(event, expired=after_tests(budget))
        assert rough >= exact
        assert language.count["matches"] <= budget
        assert table.match(event, expired=after_tests(10_000)) == exact


@every_structure
@pytest.mark.feature("content-routing F23")
def test_what_was_refused_before_time_ran_out_stays_refused(make: Make) -> None:
    """Breadth first, so the roots are known when the budget ends: the tree of a root that refuses is out for good."""
    table = make(Sets())
    table.add(span(0, 3), "a")
    table.add(span(5, 9), "b")
    table.add(span(0, 2), "c")
    table.add(span(5, 8), "d")
    table.add(span(6, 7), "e")
    assert table.match(5, expired=after_tests(2)) == {"b", "d", "e"}
    assert table.match(5, expired=after_tests(0)) == {"a", "b", "c", "d", "e"}


@pytest.mark.feature("content-routing F23")
def test_a_clock_of_the_callers_choice_ends_the_search() -> None:
    ticks = iter([False, True])
    table: Forest[frozenset[int], int] = Forest(Sets(), LOCAL)
    chain(table)
    assert table.match(4, expired=lambda: next(ticks)) == {"a", "b", "c", "d"}
    assert table.match(4) == {"a", "b"}

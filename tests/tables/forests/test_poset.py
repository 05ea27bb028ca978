"""The filters poset against the covering order itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.tables.histories import Step, entries, histories, play
from tests.worlds import (
    SMALL,
    Labelled,
    LabelledSets,
    Sets,
    labelled_sets,
    range_filters,
    small_sets,
    span,
    typed,
    typed_filters,
)

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.language import Counted, Language
from godwit.filters.predicates import Values, equ, gr, rng
from godwit.tables.forests.poset import Poset
from godwit.tables.matching.naive import Naive


def above(language: Language[Any, Any], table: Poset[Any, Any], wanted: Any) -> list[Any]:
    """All that covers it; between equivalent filters the older, which comes first in the table, is above."""
    order = list(table)
    return [
        g
        for g in order
        if g != wanted
        and language.covers(g, wanted)
        and (not language.covers(wanted, g) or order.index(g) < order.index(wanted))
    ]


def assert_exact(language: Language[Any, Any], table: Poset[Any, Any]) -> None:
    """Predecessors and successors are the transitive reduction of covering."""
    for f in table:
        higher = above(language, table, f)
        nearest = {g for g in higher if not any(g in above(language, table, h) for h in higher)}
        assert set(table.predecessors(f)) == nearest
        assert all(f in table.successors(g) for g in nearest)
    assert sum(len(table.successors(f)) for f in table) == sum(len(table.predecessors(f)) for f in table)
    assert set(table.roots()) == {f for f in table if not table.predecessors(f)}


@pytest.mark.feature("content-routing F9")
@pytest.mark.parametrize("pruned", [True, False])
@given(steps=histories(labelled_sets()))
def test_the_poset_is_the_transitive_reduction_of_covering_after_every_step(pruned: bool, steps: list[Step]) -> None:
    table: Poset[Labelled, int] = Poset(LabelledSets(), pruned=pruned)
    for _ in play(steps, table):
        assert_exact(table.language, table)


@pytest.mark.feature("content-routing F9")
@given(steps=histories(range_filters()))
def test_so_it_is_for_ranges(steps: list[Step]) -> None:
    table: Poset[Filter, Values] = Poset()
    for _ in play(steps, table):
        assert_exact(table.language, table)


@pytest.mark.feature("content-routing F9")
@pytest.mark.parametrize("pruned", [True, False])
@given(steps=histories(labelled_sets()))
def test_the_poset_holds_what_the_naive_table_holds(pruned: bool, steps: list[Step]) -> None:
    table: Poset[Labelled, int] = Poset(LabelledSets(), pruned=pruned)
    naive: Naive[Labelled, int] = Naive(LabelledSets(), pruned=pruned)
    for _ in play(steps, table, naive):
        assert entries(table) == entries(naive)
        assert set(table.roots()) == set(naive.roots())
        assert all(table.match(event) == naive.match(event) for event in SMALL)


@pytest.mark.feature("content-routing F8", "content-routing F9")
@given(steps=histories(typed_filters()))
def test_open_filters_stand_above_those_of_any_type(steps: list[Step]) -> None:
    table: Poset[Filter, Values] = Poset(pruned=False)
    for _ in play(steps, table):
        assert_exact(table.language, table)
        for kind in ("A", "B", None):
            assert set(table.roots_of(kind)) == {f for f in table.roots() if f.type == kind}


@pytest.mark.feature("content-routing F9")
@given(steps=histories(small_sets()))
def test_no_interface_is_found_twice_on_a_path(steps: list[Step]) -> None:
    """Property 3.2, and with it theorem 3.3: no path is longer than there are interfaces."""
    table: Poset[frozenset[int], int] = Poset(Sets())
    for _ in play(steps, table):
        for f in table:
            for g in table.covered(f):
                assert not table.interfaces(f) & table.interfaces(g)


@pytest.mark.feature("content-routing F9")
def test_the_depth_can_reach_the_number_of_interfaces() -> None:
    table: Poset[Filter, Values] = Poset()
    chain = [filter_of(attribute("x", gr(bound))) for bound in (0, 5, 10, 12)]
    for number, f in enumerate(chain):
        table.add(f, f"i{number}")
    assert [table.predecessors(f) for f in chain] == [[], [chain[0]], [chain[1]], [chain[2]]]


@pytest.mark.feature("content-routing F9")
@given(steps=histories(labelled_sets()))
def test_queries_find_all_that_covers_and_all_that_is_covered(steps: list[Step]) -> None:
    table: Poset[Labelled, int] = Poset(LabelledSets(), pruned=False)
    probes = [step.wanted for step in steps]
    for _ in play(steps, table):
        for probe in probes:
            others = [f for f in table if f != probe]
            assert set(table.coverers(probe)) == {f for f in others if f[1] >= probe[1]}
            assert set(table.covered(probe)) == {f for f in others if f[1] <= probe[1]}


@pytest.mark.feature("content-routing F9")
@given(steps=histories(labelled_sets()))
def test_siena_unsubscribes_by_any_covering_filter(steps: list[Step]) -> None:
    table: Poset[Labelled, int] = Poset(LabelledSets(), pruned=False)
    for _ in play(steps, table):
        pass
    for step in steps:
        before = entries(table)
        gone = table.remove_covered(step.wanted, step.interface)
        expected = [f for f, i in before if i == step.interface and f[1] <= step.wanted[1]]
        assert set(gone) == set(expected)
        assert len(entries(table)) == len(before) - len(gone)
        assert_exact(table.language, table)


@pytest.mark.feature("content-routing F9")
def test_exact_unsubscription_leaves_covered_filters_of_others_alone() -> None:
    table: Poset[frozenset[int], int] = Poset(Sets())
    table.add(span(0, 3), "a")
    table.add(span(1, 2), "b")
    assert not table.remove(span(0, 3), "b")
    assert not table.remove(span(0, 9), "a")
    assert table.remove(span(0, 3), "a")
    assert entries(table) == [(span(1, 2), "b")]


@pytest.mark.feature("content-routing F9")
def test_a_duplicate_costs_no_covering_test() -> None:
    language = Counted(Sets())
    table = Poset(language)
    for high in range(1, 6):
        table.add(span(0, high), f"i{high}")
    language.count.clear()
    assert table.add(span(0, 3), "i1")
    assert not table.add(span(0, 3), "i1")
    assert language.count["covers"] == 0
    assert table.interfaces(span(0, 3)) == {"i1", "i3"}


@pytest.mark.feature("content-routing F9")
@pytest.mark.parametrize("holder", ["older", "younger"])
def test_an_equivalent_filter_replaces_what_the_interface_had(holder: str) -> None:
    """Else a neighbor could withdraw only what it told first, and it does not know which that was."""
    older, younger = ("older", span(0, 1)), ("younger", span(0, 1))
    had, asked = (older, younger) if holder == "older" else (younger, older)
    table: Poset[Labelled, int] = Poset(LabelledSets())
    table.add(older, "a")
    table.add(younger, "b")
    table.add(had, "x")
    assert table.add(asked, "x")
    assert "x" in table.interfaces(asked)
    assert "x" not in table.interfaces(had)


@pytest.mark.feature("content-routing F9")
def test_each_node_is_tested_once_in_each_direction_by_an_insertion() -> None:
    """A node below many covering ones is reached by many paths; the memo makes that one test."""
    language = Counted(Sets())
    table = Poset(language, pruned=False)
    for number, wide in enumerate([frozenset({0, 1, 2, n}) for n in range(3, 7)]):
        table.add(wide, f"w{number}")
    table.add(frozenset({0, 1, 2}), "m")
    language.count.clear()
    table.add(frozenset({0, 1}), "n")
    # Four roots and the one below them are tested upwards, and nothing is left to test downwards.
    assert language.count["covers"] == 5


@pytest.mark.feature("content-routing F9", "content-routing F11")
def test_the_poset_of_figure_3_4() -> None:
    wide, left, right = (typed("A", rng(*ends)) for ends in ((0, 100), (0, 40), (20, 90)))
    one, two = (typed("A", rng(*ends)) for ends in ((30, 35), (35, 38)))
    point = filter_of(attribute("x", equ(35)), attribute("type", equ("A")), attribute("name", equ("B")))
    table: Poset[Filter, Values] = Poset(pruned=False)
    for number, f in enumerate([point, two, one, right, left, wide]):
        table.add(f, f"i{number}")
    assert table.roots_of("A") == [wide]
    assert set(table.successors(wide)) == {left, right}
    assert set(table.successors(left)) == set(table.successors(right)) == {one, two}
    assert table.successors(one) == table.successors(two) == [point]

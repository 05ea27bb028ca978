"""What each neighbor must be told: both structures against the closed form, and the traces of the spec."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.tables.histories import Step, entries, histories, operations
from tests.worlds import Labelled, LabelledSets, Sets, labelled_sets, range_filters, span

from godwit.filters.filters import Filter
from godwit.filters.language import Counted
from godwit.filters.predicates import Values
from godwit.tables.forests.forest import PF
from godwit.tables.forests.forwards import RoutingForest, RoutingPoset
from godwit.tables.matching.naive import Naive
from godwit.tables.table import Forwarding, Interface

NEIGHBORS = ["a", "b", "c"]
WITH_CLIENTS = [*NEIGHBORS, "client", "friend"]

Make = type[RoutingPoset[Any, Any]] | type[RoutingForest[Any, Any]]
both = pytest.mark.parametrize("make", [RoutingPoset, RoutingForest])


@both
@pytest.mark.feature("content-routing F10", "content-routing F15")
@given(steps=histories(labelled_sets(), interfaces=WITH_CLIENTS, steps_max=40))
def test_forwards_sets_are_those_of_the_closed_form(make: Make, steps: list[Step]) -> None:
    table = make(LabelledSets(), neighbors=NEIGHBORS)
    naive: Naive[Labelled, int] = Naive(LabelledSets(), neighbors=NEIGHBORS, pruned=True)
    for adding, wanted, interface in operations(steps, table):
        if adding:
            assert table.announce(wanted, interface) == naive.announce(wanted, interface)
        else:
            assert by_set(table.retract(wanted, interface)) == by_set(naive.retract(wanted, interface))
        assert entries(table) == entries(naive)
        assert {f: table.forwards(f) for f in table} == {f: naive.forwards(f) for f in naive}


@both
@pytest.mark.feature("content-routing F10", "content-routing F15")
@given(steps=histories(range_filters(), interfaces=NEIGHBORS))
def test_so_they_are_for_ranges(make: Make, steps: list[Step]) -> None:
    table = make(neighbors=NEIGHBORS)
    naive: Naive[Filter, Values] = Naive(neighbors=NEIGHBORS, pruned=True)
    for adding, wanted, interface in operations(steps, table):
        if adding:
            assert table.announce(wanted, interface) == naive.announce(wanted, interface)
        else:
            assert by_set(table.retract(wanted, interface)) == by_set(naive.retract(wanted, interface))


def by_set(learn: dict[Interface, list[Any]]) -> dict[Interface, set[Any]]:
    return {e: set(filters) for e, filters in learn.items()}


@both
@pytest.mark.feature("content-routing F10")
@given(steps=histories(labelled_sets(), interfaces=WITH_CLIENTS, steps_max=40))
def test_only_the_first_two_levels_are_forwarded(make: Make, steps: list[Step]) -> None:
    """Theorem 3.4. Roots go to all neighbors but at most one, filters on the second level to at most one."""
    table = make(LabelledSets(), neighbors=NEIGHBORS)
    for adding, wanted, interface in operations(steps, table):
        (table.add if adding else table.remove)(wanted, interface)
        heads = table.heads()
        assert len(heads) == len(set(heads))
        for f in table:
            told = table.forwards(f)
            if table.is_root(f):
                assert len(told) >= len(NEIGHBORS) - 1
            else:
                assert len(told) <= 1
            assert f in heads or not told


@pytest.mark.feature("content-routing F15")
@given(steps=histories(labelled_sets(), interfaces=WITH_CLIENTS, steps_max=40))
def test_approximate_forwards_are_never_too_few(steps: list[Step]) -> None:
    table: RoutingForest[Labelled, int] = RoutingForest(LabelledSets(), neighbors=NEIGHBORS, approximate=True)
    exact: RoutingForest[Labelled, int] = RoutingForest(LabelledSets(), neighbors=NEIGHBORS)
    for adding, wanted, interface in operations(steps, table):
        if adding:
            assert table.announce(wanted, interface) >= exact.announce(wanted, interface)
        else:
            learn, enough = table.retract(wanted, interface), exact.retract(wanted, interface)
            assert all(set(learn[e]) >= set(enough[e]) for e in enough)
        assert all(table.approximate_forwards(f) >= table.forwards(f) for f in table)


@both
@pytest.mark.feature("content-routing F10")
def test_the_single_neighbor_that_asked_is_told_nothing(make: Make) -> None:
    """The erratum of theorem 3.4: a root's forwards set can be empty."""
    table = make(Sets(), neighbors=["a"])
    assert table.announce(span(0, 1), "a") == set()
    assert table.forwards(span(0, 1)) == set()
    assert table.announce(span(0, 2), "client") == {"a"}


@both
@pytest.mark.feature("content-routing F10")
def test_two_neighbors_that_ask_for_the_same_hear_of_each_other(make: Make) -> None:
    """First worked vector of 2.3."""
    f = span(0, 1)
    table = make(Sets(), neighbors=["I1", "I2", "I3"])
    assert table.announce(f, "I2") == {"I1", "I3"}
    assert table.announce(f, "I1") == {"I2"}
    assert table.forwards(f) == {"I1", "I2", "I3"}
    assert table.retract(f, "I1") == {"I2": []}
    assert table.forwards(f) == {"I1", "I3"}
    assert table.announce(f, "I1") == {"I2"}


@both
@pytest.mark.feature("content-routing F10", "content-routing F15")
def test_the_trace_of_five_subscriptions(make: Make) -> None:
    """Second worked vector of 2.3."""
    a, b = span(0, 9), span(10, 19)
    c, d, e = span(0, 5), span(10, 15), span(0, 2)
    table = make(Sets(), neighbors=["I1", "I2", "I3"])
    assert table.announce(a, "I1") == {"I2", "I3"}
    assert table.announce(b, "I1") == {"I2", "I3"}
    assert table.announce(c, "I2") == {"I1"}
    assert table.announce(d, "I3") == {"I1"}
    assert table.announce(e, "I3") == set()
    assert table.retract(a, "I1") == {"I2": [e], "I3": [c]}
    assert table.forwards(c) == {"I1", "I3"}
    assert table.forwards(e) == {"I2"}


@pytest.mark.feature("content-routing F15")
def test_a_forest_alone_would_forward_without_need() -> None:
    """First problem of 2.7.2: below b it looks as if I1 had to hear of d, though I1 was told c, which covers it."""
    a, b, c, d = (frozenset(numbers) for numbers in ({1, 2, 3}, {2, 3, 4}, {1, 2}, {2}))
    for approximate, told in ((False, set()), (True, {"I1"})):
        table: RoutingForest[frozenset[int], int] = RoutingForest(
            Sets(), neighbors=["I1", "I2", "I3"], approximate=approximate
        )
        assert table.announce(b, "I1") == {"I2", "I3"}
        assert table.announce(a, "I1") == {"I2", "I3"}
        assert table.announce(c, "I2") == {"I1"}
        assert table.parent(c) == a
        assert table.announce(d, "I3") == told
        assert table.parent(d) == b


@both
@pytest.mark.feature("content-routing F15")
def test_an_uncovered_filter_in_another_tree_is_not_missed(make: Make) -> None:
    """Second problem of 2.7.2 (example 3.2): F4 stands below F2, yet it was F3 that hid it from c."""
    first, second = frozenset({1, 2, 3}), frozenset({1, 2, 4})
    third, fourth = frozenset({1, 2}), frozenset({1})
    table = make(Sets(), neighbors=["a", "b", "c"])
    table.announce(second, "c")
    assert table.announce(fourth, "b") == {"c"}
    table.announce(first, "c")
    assert table.announce(third, "a") == {"c"}
    if isinstance(table, RoutingForest):
        # Both below the root they came to first: what F3 covers hangs in the other tree.
        assert (table.parent(third), table.parent(fourth)) in ((first, second), (second, third))
    assert table.retract(third, "a") == {"c": [fourth]}


@pytest.mark.feature("content-routing F15")
@given(steps=histories(labelled_sets(), interfaces=WITH_CLIENTS, steps_max=40))
def test_approximate_addition_costs_no_test_beyond_the_forest_itself(steps: list[Step]) -> None:
    language = Counted(LabelledSets())
    table = RoutingForest(language, neighbors=NEIGHBORS, approximate=True)
    for adding, wanted, interface in operations(steps, table):
        if adding:
            table.announce(wanted, interface)
        else:
            table.retract(wanted, interface)
        spent = language.count["covers"]
        for f in table:
            table.approximate_forwards(f)
        assert language.count["covers"] == spent


@pytest.mark.feature("content-routing F10")
@given(steps=histories(labelled_sets(), interfaces=WITH_CLIENTS, steps_max=40))
def test_the_poset_knows_its_forwards_without_a_test(steps: list[Step]) -> None:
    language = Counted(LabelledSets())
    table = RoutingPoset(language, neighbors=NEIGHBORS)
    for adding, wanted, interface in operations(steps, table):
        (table.add if adding else table.remove)(wanted, interface)
        spent = language.count["covers"]
        for f in table:
            table.forwards(f)
        assert language.count["covers"] == spent


@both
@pytest.mark.feature("content-routing F10", "content-routing F15")
def test_of_two_equivalent_filters_the_older_is_told(make: Make) -> None:
    """The trap of 2.7.2: suppressing each other, they would reach nobody."""
    old, new = ("p", span(0, 1)), ("q", span(0, 1))
    table = make(LabelledSets(), neighbors=["a", "b", "c"])
    table.announce(("r", span(0, 3)), "c")
    table.announce(("s", span(-3, 1)), "c")
    assert table.announce(old, "a") == {"c"}
    assert table.announce(new, "b") == set()
    assert table.retract(old, "a") == {"c": [new]}


@pytest.mark.feature("content-routing F15")
def test_equivalent_filters_in_two_trees_do_not_suppress_each_other() -> None:
    """In a forest they may stand side by side on the second level; the age decides there too."""
    table: RoutingForest[Labelled, int] = RoutingForest(LabelledSets(), neighbors=["a", "b", "c"])
    left, right = ("left", frozenset({1, 2, 3})), ("right", frozenset({1, 2, 4}))
    old, new = ("old", frozenset({1, 2})), ("new", frozenset({1, 2}))
    table.announce(left, "c")
    table.announce(right, "c")
    table.announce(("balance", frozenset({4})), "b")
    assert table.announce(old, "a") == {"c"}
    assert table.announce(new, "b") == set()
    assert (table.parent(old), table.parent(new)) == (left, right)
    assert table.forwards(old) == {"c"}
    assert table.retract(old, "a") == {"c": [new]}


@pytest.mark.feature("content-routing F15")
def test_a_relocation_does_not_put_the_younger_of_two_equivalent_filters_first() -> None:
    """Nobody would tell the neighbor to forget the one and to learn the other."""
    table: RoutingForest[Labelled, int] = RoutingForest(LabelledSets(), neighbors=["a", "b", "c", "d"])
    left, right = ("left", frozenset({1, 2, 3})), ("right", frozenset({1, 2, 4}))
    old, new = ("old", frozenset({1, 2})), ("new", frozenset({1, 2}))
    table.announce(left, "a")
    table.announce(old, "b")
    table.announce(right, "c")
    table.announce(("balance", frozenset({4})), "d")
    table.announce(new, "d")
    assert (table.parent(old), table.parent(new)) == (left, right)
    assert table.retract(left, "a") == {"b": [], "c": [old], "d": []}
    assert (table.parent(old), table.parent(new)) == (right, old)
    assert table.retract(old, "b") == {"c": [new]}


@pytest.mark.feature("content-routing F15")
def test_a_forest_with_redundant_filters_cannot_tell_its_forwards() -> None:
    with pytest.raises(ValueError, match=r"Pruning\.ALL"):
        RoutingForest(rules=PF)


@both
@pytest.mark.feature("content-routing F10")
def test_what_is_not_there_cannot_be_retracted(make: Make) -> None:
    table: Forwarding[frozenset[int], int] = make(Sets(), neighbors=["a", "b"])
    table.announce(span(0, 1), "a")
    assert table.retract(span(0, 1), "b") == {}
    assert table.retract(span(0, 2), "a") == {}
    assert table.announce(span(0, 1), "a") == set()
    assert table.announce(span(1, 1), "a") == set()
    assert table.forwards(span(7, 7)) == set()

"""The yardstick itself, held to the definitions it stands for."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.tables.closed import uncovered
from tests.tables.histories import Step, entries, histories, play
from tests.worlds import SMALL, Labelled, LabelledSets, Sets, labelled_sets, span

from godwit.tables.matching.naive import Naive
from godwit.tables.table import drop

NEIGHBORS = ["a", "b", "c"]


@pytest.mark.feature("content-routing F10")
@pytest.mark.parametrize("pruned", [True, False])
@given(steps=histories(labelled_sets(), interfaces=[*NEIGHBORS, "client"]))
def test_a_neighbor_holds_the_minimal_cover_of_what_others_sent(pruned: bool, steps: list[Step]) -> None:
    """The naive forwarding mechanism of spec 2.3: one root set for each interface."""
    table: Naive[Labelled, int] = Naive(LabelledSets(), neighbors=NEIGHBORS, pruned=pruned)
    for _ in play(steps, table):
        for e in NEIGHBORS:
            from_others = [f for f in table if table.interfaces(f) - {e}]
            assert [f for f in table if e in table.forwards(f)] == uncovered(table.language, from_others)
        assert set(table.heads()) == {f for f in table if table.forwards(f)}


@pytest.mark.feature("content-routing F10")
@given(steps=histories(labelled_sets(), interfaces=[*NEIGHBORS, "client"]))
def test_what_is_told_and_retracted_adds_up_to_what_neighbors_hold(steps: list[Step]) -> None:
    table: Naive[Labelled, int] = Naive(LabelledSets(), neighbors=NEIGHBORS)
    held: dict[str, set[Labelled]] = {e: set() for e in NEIGHBORS}
    copy: Naive[Labelled, int] = Naive(LabelledSets())
    for _ in play(steps, copy):
        for f, i in set(entries(copy)) - set(entries(table)):
            for e in table.announce(f, i):
                held[e] = {g for g in held[e] if not f[1] >= g[1]} | {f}
        for f, i in set(entries(table)) - set(entries(copy)):
            for e, learn in table.retract(f, i).items():
                held[e] = (held[e] - {f}) | set(learn)
        assert held == {e: {f for f in table if e in table.forwards(f)} for e in NEIGHBORS}


@pytest.mark.feature("content-routing F12")
@given(steps=histories(labelled_sets()))
def test_pruning_keeps_the_most_general_filters_of_each_interface(steps: list[Step]) -> None:
    pruned: Naive[Labelled, int] = Naive(LabelledSets(), pruned=True)
    wished: dict[str, list[Labelled]] = {}
    for step in steps:
        pruned.add(step.wanted, step.interface)
        wished.setdefault(step.interface, []).append(step.wanted)
        for interface, wishes in wished.items():
            held = [f[1] for f, i in entries(pruned) if i == interface]
            assert len(held) == len(set(held))
            assert set(held) == {f[1] for f in wishes if not any(f[1] < g[1] for g in wishes)}


@pytest.mark.feature("content-routing F23")
@given(steps=histories(labelled_sets()))
def test_the_naive_matcher_tests_every_filter(steps: list[Step]) -> None:
    table: Naive[Labelled, int] = Naive(LabelledSets())
    for _ in play(steps, table):
        for event in SMALL:
            assert table.match(event) == {i for f, i in entries(table) if event in f[1]}
        assert table.roots() == uncovered(table.language, list(table))


@pytest.mark.feature("content-routing F12")
def test_an_interface_can_be_dropped_as_a_whole() -> None:
    table: Naive[frozenset[int], int] = Naive(Sets())
    for wanted, interface in ((span(0, 1), "a"), (span(0, 1), "b"), (span(2, 3), "a")):
        table.add(wanted, interface)
    assert drop(table, "a") == [span(0, 1), span(2, 3)]
    assert drop(table, "a") == []
    assert entries(table) == [(span(0, 1), "b")]
    assert span(0, 1) in table
    assert span(2, 3) not in table

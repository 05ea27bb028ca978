"""Two-phase matching against testing every filter, and what the routing table sees of the clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.histories import Step, entries, histories, play
from tests.worlds import Sets, span, typed_events, typed_filters

from godwit.filters.filters import Filter
from godwit.filters.predicates import Values
from godwit.tables.forests.forwarder import Forwarder
from godwit.tables.forests.forwards import RoutingForest, RoutingPoset
from godwit.tables.forests.kin import demands
from godwit.tables.matching.counting import Counting
from godwit.tables.matching.naive import Naive
from godwit.tables.matching.twophase import CLIENTS, TwoPhase
from godwit.tables.merging.merging import Update

NEIGHBORS = ["a", "b"]
EVERYBODY = [*NEIGHBORS, "x", "y", "z"]


@pytest.mark.feature("content-routing F24")
@pytest.mark.parametrize("make", [RoutingPoset, RoutingForest])
@given(steps=histories(typed_filters(), interfaces=EVERYBODY), events=st.lists(typed_events(), min_size=3, max_size=6))
def test_two_phases_find_whom_one_phase_finds(
    make: type[RoutingPoset[Filter, Values]] | type[RoutingForest[Filter, Values]],
    steps: list[Step],
    events: list[Values],
) -> None:
    two: TwoPhase[Filter, Values] = TwoPhase(make(neighbors=NEIGHBORS), Counting(), neighbors=NEIGHBORS, keys=demands)
    for _ in play(steps, two):
        everything: Naive[Filter, Values] = Naive()
        for f, i in entries(two):
            everything.add(f, i)
        for event in events:
            assert two.match(event) == everything.match(event)
        clients: Naive[Filter, Values] = Naive()
        for f, i in entries(two):
            if i not in NEIGHBORS:
                clients.add(f, i)
        assert {f for f, i in entries(two.routing) if i == CLIENTS} == set(clients.roots())
        assert len(two) == len(set(two))
        assert all(f in two for f in two)


@pytest.mark.feature("content-routing F24")
def test_a_client_loses_no_filter_to_another_of_its_own() -> None:
    two: TwoPhase[frozenset[int], int] = TwoPhase(
        RoutingPoset(Sets(), neighbors=["a"]), Naive(Sets()), neighbors=["a"], language=Sets()
    )
    two.add(span(0, 3), "x")
    assert two.add(span(0, 1), "x")
    assert not two.add(span(0, 1), "x")
    assert two.roots() == [span(0, 3)]
    assert two.remove(span(0, 3), "x")
    assert not two.remove(span(0, 3), "x")
    assert two.roots() == [span(0, 1)]
    assert two.match(0) == {"x"}


@pytest.mark.feature("content-routing F24")
def test_neighbors_hear_of_clients_through_a_forwarder() -> None:
    forwarder = Forwarder(RoutingForest(Sets(), neighbors=["a", "b"]))
    sent: list[dict[str, Update[frozenset[int]]]] = []
    two: TwoPhase[frozenset[int], int] = TwoPhase(
        forwarder.table,
        Naive(Sets()),
        neighbors=["a", "b"],
        language=Sets(),
        tell=lambda update: sent.append(forwarder.apply(update, CLIENTS)),
    )
    two.add(span(0, 1), "x")
    two.add(span(0, 3), "y")
    two.add(span(2, 3), "x")
    two.remove(span(0, 3), "y")
    assert sent == [
        dict.fromkeys("ab", Update((), (span(0, 1),))),
        dict.fromkeys("ab", Update((), (span(0, 3),))),
        dict.fromkeys("ab", Update((span(0, 3),), (span(0, 1), span(2, 3)))),
    ]


@pytest.mark.feature("content-routing F24")
def test_a_filter_that_slides_under_another_root_is_not_told() -> None:
    told: list[Update[frozenset[int]]] = []
    two: TwoPhase[frozenset[int], int] = TwoPhase(
        Naive(Sets()), Naive(Sets()), neighbors=[], language=Sets(), tell=told.append
    )
    two.add(span(0, 3), "x")
    two.add(span(2, 5), "y")
    two.add(span(2, 3), "z")
    two.remove(span(0, 3), "x")
    assert told == [Update((), (span(0, 3),)), Update((), (span(2, 5),)), Update((span(0, 3),), ())]

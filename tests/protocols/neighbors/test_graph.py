from __future__ import annotations

import pytest
from tests.protocols.handoff_schemes.stages import Stage, joined

from godwit.protocols.neighbors.graph import GraphOptions, NeighborGraph, hit_rate, worthwhile


@pytest.mark.feature("proactive-handoff F8")
def test_both_ends_learn_an_edge_at_its_first_crossing() -> None:
    stage = Stage("AB")
    stage.client("s", "A")
    stage.move("s", "B")
    assert "A" in stage.brokers["B"].graph
    stage.settle()
    assert "B" in stage.brokers["A"].graph


@pytest.mark.feature("proactive-handoff F9")
def test_an_unused_edge_is_forgotten_and_its_neighbors_are_told() -> None:
    graph = NeighborGraph("A", GraphOptions(edge_timeout_s=10))
    assert graph.touch("B", 0)
    assert not graph.touch("B", 5)
    assert graph.touch("C", 6)
    assert graph.aged(14) == []
    assert graph.aged(15) == ["B"]
    assert graph.names == {"C"}


@pytest.mark.feature("proactive-handoff F9")
def test_every_change_reaches_the_neighbors_lists() -> None:
    stage = joined("ABC", "AB", "BC")
    assert stage.brokers["A"].graph.lists["B"] == {"A", "C"}
    assert stage.brokers["C"].graph.lists["B"] == {"A", "C"}


@pytest.mark.feature("proactive-handoff F10")
def test_accuracy_is_counted_over_a_window() -> None:
    graph = NeighborGraph("A", GraphOptions(edge_timeout_s=10, window_s=100))
    graph.handoff_seen(0)
    graph.touch("B", 0)
    assert graph.false_negatives(1) == 1.0
    for second in range(1, 10):
        graph.handoff_seen(second)
        graph.touch("B", second)
    assert graph.false_negatives(10) == 0.1
    assert graph.false_positives(10) == 0.0
    graph.aged(19)
    assert graph.false_positives(19) == pytest.approx(10 / 19)
    assert graph.false_negatives(300) == 0.0


@pytest.mark.feature("proactive-handoff F11")
def test_rare_neighbors_may_be_left_out() -> None:
    uses = {"a": 70, "b": 20, "c": 9, "d": 1}
    assert worthwhile(uses, GraphOptions(mass=0.9)) == ["a", "b"]
    assert worthwhile(uses, GraphOptions(share_min=0.05)) == ["a", "b", "c"]
    assert worthwhile(uses, GraphOptions(degree_max=1)) == ["a"]
    assert worthwhile(uses, GraphOptions()) == list("abcd")
    assert hit_rate(["a", "b"], uses) == 0.9


@pytest.mark.feature("proactive-handoff F11")
def test_a_graph_may_be_given_or_follow_only_those_who_leave() -> None:
    fixed = NeighborGraph("A", GraphOptions(static=frozenset("BC"), edge_timeout_s=1))
    assert not fixed.touch("D", 0)
    assert fixed.aged(100) == []
    assert fixed.names == {"B", "C"}
    oneway = NeighborGraph("A", GraphOptions(directed=True))
    assert not oneway.touch("B", 0)
    assert oneway.touch("B", 0, left=True)


def test_senseless_options_are_refused() -> None:
    with pytest.raises(ValueError, match="edge_timeout_s"):
        GraphOptions(edge_timeout_s=0)
    with pytest.raises(ValueError, match="mass"):
        GraphOptions(mass=0)

from __future__ import annotations

import pytest

from godwit.lab.models.topology import complete, graph_of, six_brokers


@pytest.mark.feature("proactive-handoff F37")
@pytest.mark.parametrize("layout", ["a", "b"])
def test_both_layouts_have_what_is_known_of_the_testbed(layout: str) -> None:
    graph = six_brokers(layout)
    assert [len(graph[f"B{i}"]) for i in range(1, 7)] == [2, 3, 4, 2, 1, 4]
    assert graph["B5"] == ("B3",)
    assert all(name in graph[other] for name, others in graph.items() for other in others)


@pytest.mark.feature("proactive-handoff F37")
def test_any_other_layout_can_be_given() -> None:
    assert six_brokers("a") != six_brokers("b")
    assert graph_of([("x", "y"), ("y", "z"), ("y", "x")]) == {"x": ("y",), "y": ("x", "z"), "z": ("y",)}
    assert complete("abc") == {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}
    with pytest.raises(ValueError, match="not its own neighbor"):
        graph_of([("x", "x")])
    with pytest.raises(ValueError, match="layout 'c': a or b"):
        six_brokers("c")

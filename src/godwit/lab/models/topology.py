"""The six brokers of the testbed, and how to read any other motion graph (spec proactive-handoff 4.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

Graph = dict[str, tuple[str, ...]]

COMMON = ("16", "23", "26", "35", "36", "46")
"""Edges that degrees and stated facts leave no doubt about."""

LAST_TWO = {"a": ("12", "34"), "b": ("13", "24")}
"""Of these two the text leaves open which (G23); degrees and all model numbers are the same."""


def six_brokers(layout: str = "a") -> Graph:
    """B1 to B6 with degrees 2, 3, 4, 2, 1, 4."""
    if layout not in LAST_TWO:
        raise ValueError(f"layout {layout!r}: a or b")
    edges = [(f"B{edge[0]}", f"B{edge[1]}") for edge in (*COMMON, *LAST_TWO[layout])]
    return graph_of(edges, [f"B{i}" for i in range(1, 7)])


def complete(names: Collection[str]) -> Graph:
    """Everybody next to everybody: what the random pattern amounts to."""
    return {name: tuple(other for other in names if other != name) for name in names}


def graph_of(edges: Iterable[tuple[str, str]], names: Collection[str] = ()) -> Graph:
    """Undirected, without loops; brokers in the order given, then as edges name them."""
    graph: dict[str, dict[str, None]] = {name: {} for name in names}
    for a, b in edges:
        if a == b:
            raise ValueError(f"edge {a}-{b}: a broker is not its own neighbor")
        graph.setdefault(a, {})[b] = None
        graph.setdefault(b, {})[a] = None
    return {name: tuple(sorted(others)) for name, others in graph.items()}

"""A tree out of any graph, and the ways along it."""

from __future__ import annotations

from random import Random

import pytest

from godwit.protocols.host import LocalError
from godwit.protocols.topology.graphs import adjacent, next_hops, path, spanning_tree

pytestmark = pytest.mark.feature("content-routing F20")
SQUARE = adjacent("abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])


def test_breadth_first_each_broker_hangs_at_the_first_that_reaches_it() -> None:
    assert spanning_tree(SQUARE, "a") == [("a", "b"), ("a", "d"), ("b", "c")]


def test_a_tree_of_any_connected_graph_reaches_everybody_by_a_shortest_way() -> None:
    for seed in range(30):
        dice = Random(seed)
        names = [f"b{i}" for i in range(dice.randint(2, 12))]
        edges = [(names[dice.randrange(i)], names[i]) for i in range(1, len(names))]
        edges += [(dice.choice(names), dice.choice(names)) for _ in range(6)]
        graph = adjacent(names, [(a, b) for a, b in edges if a != b])
        tree = adjacent(names, spanning_tree(graph, names[0]))
        assert sum(map(len, tree.values())) == 2 * (len(names) - 1)
        ways, shortest = next_hops(tree), next_hops(graph)
        for name in names:
            assert len(path(ways, names[0], name)) == len(path(shortest, names[0], name))


def test_a_graph_in_two_parts_is_refused() -> None:
    with pytest.raises(LocalError, match="c cannot be reached from a"):
        spanning_tree(adjacent("abc", [("a", "b")]), "a")

"""The forests: structure, redundancy and order, held to definitions after every step of random lives."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import uncovered
from tests.tables.histories import Step, entries, histories, play
from tests.worlds import SMALL, Labelled, LabelledSets, Sets, labelled_sets, small_sets, span, typed, typed_filters

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.language import Counted, Language
from godwit.filters.predicates import Values, equ, gre, rng
from godwit.tables.forests.forest import BF, LOCAL, NRF, PF, Forest, Pruning, Rules
from godwit.tables.forests.poset import Poset
from godwit.tables.forests.trees import by_interface, by_rate, by_size
from godwit.tables.matching.naive import Naive

BALANCED = replace(LOCAL, order=by_interface, indexed=True)
RULES = {
    "PF": PF,
    "PF by size": replace(PF, order=by_size),
    "PF impure": replace(PF, pure=False),
    "PF stripped": replace(PF, strip=True),
    "BF": BF,
    "NRF": NRF,
    "LOCAL": LOCAL,
    "LOCAL impure": replace(LOCAL, pure=False),
    "BF for local clients": BALANCED,
}
every_rule = pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())


def assert_sound(language: Language[Any, Any], forest: Forest[Any, Any]) -> None:
    """Definitions 3.5, 3.6 and 3.11: covering parents, every node in one place, exact sizes, exact index."""
    reached = [node for root in forest.roots() for node in forest.node(root).subtree()]
    assert len(reached) == len(forest)
    assert {node.filter for node in reached} == set(forest)
    for node in reached:
        below = [k for k in node.subtree() if k is not node]
        assert node.size == len(below) + 1
        assert node.interfaces
        assert all(child.parent is node and language.covers(node.filter, child.filter) for child in node.children)
        if forest.rules.indexed:
            assert set(node.used_below or ()) == set().union(*(k.interfaces for k in below))


def assert_pure(language: Language[Any, Any], siblings: list[Any]) -> None:
    assert not any(one != other and language.covers(one, other) for one in siblings for other in siblings)


@every_rule
@pytest.mark.feature("content-routing F11", "content-routing F13")
@given(steps=histories(labelled_sets()))
def test_the_forest_is_sound_after_every_step(rules: Rules, steps: list[Step]) -> None:
    forest: Forest[Labelled, int] = Forest(LabelledSets(), rules)
    for _ in play(steps, forest):
        assert_sound(forest.language, forest)
        assert_pure(forest.language, forest.roots())
        if rules.pure:
            for f in forest:
                assert_pure(forest.language, forest.children(f))


@every_rule
@pytest.mark.feature("content-routing F11", "content-routing F23")
@given(steps=histories(labelled_sets()))
def test_root_set_and_matches_are_those_of_its_filters(rules: Rules, steps: list[Step]) -> None:
    """Corollary 3.8 by brute force; which of several equivalent filters is the root is a matter of age."""
    forest: Forest[Labelled, int] = Forest(LabelledSets(), rules)
    for _ in play(steps, forest):
        assert set(forest.roots()) == set(uncovered(forest.language, list(forest)))
        for event in SMALL:
            assert forest.match(event) == {i for f, i in entries(forest) if event in f[1]}


@pytest.mark.feature("content-routing F12")
@pytest.mark.parametrize("rules", [LOCAL, RULES["LOCAL impure"], BALANCED])
@given(steps=histories(labelled_sets()))
def test_local_clients_lose_no_filter(rules: Rules, steps: list[Step]) -> None:
    forest: Forest[Labelled, int] = Forest(LabelledSets(), rules)
    naive: Naive[Labelled, int] = Naive(LabelledSets())
    for _ in play(steps, naive, forest):
        assert entries(forest) == entries(naive)


@pytest.mark.feature("content-routing F14")
@given(steps=histories(labelled_sets()))
def test_the_non_redundant_forest_holds_what_the_poset_holds(steps: list[Step]) -> None:
    """Each interface has exactly the minimal cover of what it asked for."""
    forest: Forest[Labelled, int] = Forest(LabelledSets(), NRF)
    poset: Poset[Labelled, int] = Poset(LabelledSets())
    for _ in play(steps, forest, poset):
        assert entries(forest) == entries(poset)
        assert set(forest.roots()) == set(poset.roots())
        for f, i in entries(forest):
            assert not any(g != f and j == i and g[1] >= f[1] for g, j in entries(forest))


@pytest.mark.feature("content-routing F12")
@pytest.mark.parametrize("rules", [RULES["PF stripped"], replace(BF, strip=True), NRF])
@given(steps=histories(labelled_sets()))
def test_with_elimination_in_del_no_interface_is_found_twice_on_a_path(rules: Rules, steps: list[Step]) -> None:
    forest: Forest[Labelled, int] = Forest(LabelledSets(), rules)
    for _ in play(steps, forest):
        for f in forest:
            node = forest.node(f)
            assert not any(node.interfaces & above.interfaces for above in node.ancestors())


@pytest.mark.feature("content-routing F12")
@given(steps=histories(labelled_sets()))
def test_without_removals_path_pruning_keeps_every_path_clean(steps: list[Step]) -> None:
    forest: Forest[Labelled, int] = Forest(LabelledSets(), PF)
    for step in steps:
        forest.add(step.wanted, step.interface)
        for f in forest:
            node = forest.node(f)
            assert not any(node.interfaces & above.interfaces for above in node.ancestors())


@pytest.mark.feature("content-routing F12")
def test_a_removal_without_elimination_breaks_definition_3_10() -> None:
    """The erratum of 2.4.1: what slides under a sibling may carry an interface that the sibling has."""
    for rules, left in ((PF, {span(2, 3), span(2, 4)}), (RULES["PF stripped"], {span(2, 4)}), (NRF, {span(2, 4)})):
        forest: Forest[frozenset[int], int] = Forest(Sets(), rules)
        forest.add(span(1, 3), "a")
        forest.add(span(2, 4), "b")
        assert forest.add(span(2, 3), "b") == (rules is not NRF)
        forest.remove(span(1, 3), "a")
        assert set(forest) == left
        assert forest.match(2) == {"b"}


@pytest.mark.feature("content-routing F12")
def test_a_filter_that_is_there_looks_up_its_own_path() -> None:
    """A fresh descent would meet the interface in another tree and drop what this tree does not cover for it."""
    forest: Forest[frozenset[int], int] = Forest(Sets(), replace(PF, order=by_size))
    forest.add(frozenset({1, 2, 4}), "a")
    forest.add(frozenset({1, 2}), "b")
    forest.add(frozenset({1, 2, 3}), "c")
    assert forest.add(frozenset({1, 2}), "c")
    assert not forest.add(frozenset({1, 2}), "a")
    assert forest.interfaces(frozenset({1, 2})) == {"b", "c"}


@pytest.mark.feature("content-routing F11")
@given(filters=st.lists(small_sets(), max_size=12, unique=True), shuffle=st.randoms(use_true_random=False))
def test_the_root_set_does_not_depend_on_the_order_of_arrival(filters: list[frozenset[int]], shuffle: Random) -> None:
    """Theorem 3.7, and all structures agree."""
    expected = {f for f in filters if not any(f < g for g in filters)}
    for rules in RULES.values():
        forest: Forest[frozenset[int], int] = Forest(Sets(), rules)
        poset: Poset[frozenset[int], int] = Poset(Sets())
        for number, f in enumerate(shuffle.sample(filters, len(filters))):
            forest.add(f, f"i{number}")
            poset.add(f, f"i{number}")
        assert set(forest.roots()) == set(poset.roots()) == expected


@pytest.mark.feature("content-routing F11")
@given(filters=st.lists(small_sets(), max_size=12), probe=small_sets())
def test_overlap_with_the_root_set_is_overlap_with_all(filters: list[frozenset[int]], probe: frozenset[int]) -> None:
    """Theorem 3.9."""
    forest: Forest[frozenset[int], int] = Forest(Sets(), NRF)
    for number, f in enumerate(filters):
        forest.add(f, f"i{number}")
    assert any(f & probe for f in forest.roots()) == any(f & probe for f in filters)


@pytest.mark.feature("content-routing F11")
@pytest.mark.parametrize("rules", [LOCAL, NRF])
@given(steps=histories(labelled_sets()))
def test_queries_find_all_that_covers_and_all_that_is_covered(rules: Rules, steps: list[Step]) -> None:
    forest: Forest[Labelled, int] = Forest(LabelledSets(), rules)
    for _ in play(steps, forest):
        pass
    for step in steps:
        probe = step.wanted
        others = [f for f in forest if f != probe]
        assert set(forest.coverers(probe)) == {f for f in others if f[1] >= probe[1]}
        assert set(forest.covered(probe)) == {f for f in others if f[1] <= probe[1]}


@pytest.mark.feature("content-routing F8")
@pytest.mark.parametrize("rules", [PF, NRF])
@given(steps=histories(typed_filters()))
def test_roots_are_kept_by_type_and_open_filters_cover_across(rules: Rules, steps: list[Step]) -> None:
    forest: Forest[Filter, Values] = Forest(rules=rules)
    for _ in play(steps, forest):
        assert_sound(forest.language, forest)
        assert set(forest.roots()) == set(uncovered(forest.language, list(forest)))
        for kind in ("A", "B", None):
            assert set(forest.roots_of(kind)) == {f for f in forest.roots() if f.type == kind}


@pytest.mark.feature("content-routing F8")
def test_filters_of_another_type_cost_no_test() -> None:
    language = Counted(Sets())
    language.type_of = lambda wanted: "odd" if min(wanted) % 2 else "even"  # type: ignore[method-assign]
    forest = Forest(language, NRF)
    for low in range(0, 20, 2):
        forest.add(frozenset({low}), "a")
    language.count.clear()
    forest.add(frozenset({1}), "a")
    assert language.count["covers"] == 0
    assert forest.roots_of("odd") == [frozenset({1})]


@pytest.mark.feature("content-routing F14")
@given(steps=histories(labelled_sets()))
def test_a_caller_who_knows_better_saves_tests_and_changes_nothing(steps: list[Step]) -> None:
    plain, told = Counted(LabelledSets()), Counted(LabelledSets())
    forest, skipping = Forest(plain, NRF), Forest(told, NRF)
    for step in steps:
        mine = [f for f, i in entries(forest) if i == step.interface]
        uncovered = not any(f[1] >= step.wanted[1] for f in mine)
        covers_none = not any(f[1] <= step.wanted[1] for f in mine)
        assert forest.add(step.wanted, step.interface) == skipping.add(
            step.wanted, step.interface, uncovered=uncovered, covers_none=covers_none
        )
    assert [(f, forest.parent(f)) for f in forest] == [(f, skipping.parent(f)) for f in skipping]
    assert told.count["covers"] <= plain.count["covers"]


@pytest.mark.feature("content-routing F14")
def test_elimination_tests_no_descendant_of_what_it_knows_to_be_covered() -> None:
    language = Counted(Sets())
    forest = Forest(language, NRF)
    forest.add(span(0, 5), "a")
    forest.add(span(0, 4), "b")
    forest.add(span(0, 3), "c")
    language.count.clear()
    assert forest.add(span(0, 6), "c", uncovered=True)
    # The old root is compared in both directions to find the place. Elimination then starts at the new node itself.
    assert language.count["covers"] == 2
    assert entries(forest) == [(span(0, 5), "a"), (span(0, 4), "b"), (span(0, 6), "c")]


@pytest.mark.feature("content-routing F13")
def test_a_balanced_forest_tries_trees_with_the_interface_first() -> None:
    for rules, parent in ((PF, frozenset({1, 2, 3})), (BF, frozenset({1, 2, 4}))):
        forest: Forest[frozenset[int], int] = Forest(Sets(), rules)
        forest.add(frozenset({1, 2, 3}), "a")
        forest.add(frozenset({1, 2, 4}), "b")
        forest.add(frozenset({4}), "c")
        forest.add(frozenset({1, 2}), "c")
        assert forest.parent(frozenset({1, 2})) == parent


@pytest.mark.feature("content-routing F11")
def test_by_size_a_filter_goes_into_the_smallest_tree_that_covers_it() -> None:
    forest: Forest[frozenset[int], int] = Forest(Sets(), replace(LOCAL, order=by_size))
    forest.add(frozenset({1, 2, 3}), "a")
    forest.add(frozenset({3}), "b")
    forest.add(frozenset({1, 2, 4}), "c")
    forest.add(frozenset({1, 2}), "d")
    assert forest.parent(frozenset({1, 2})) == frozenset({1, 2, 4})
    forest.add(frozenset({1}), "e")
    forest.add(frozenset({4}), "f")
    assert forest.node(frozenset({1, 2, 3})).size == 3
    assert forest.parent(frozenset({1})) == frozenset({1, 2, 3})


@pytest.mark.feature("content-routing F11", "content-routing F25")
def test_by_rate_a_filter_goes_under_the_closest_limit() -> None:
    limits = {"slow": 5.0, "fast": 20.0, "asked": 4.0, "none": None}

    def limit(wanted: Labelled) -> float | None:
        return limits[wanted[0]]

    forest: Forest[Labelled, int] = Forest(LabelledSets(), replace(LOCAL, order=by_rate(limit)))
    for number, label in enumerate(("none", "fast", "slow")):
        forest.add((label, frozenset({0, 1, 2 + number})), label)
    forest.add(("asked", frozenset({0, 1})), "x")
    assert forest.parent(("asked", frozenset({0, 1}))) == ("slow", frozenset({0, 1, 4}))
    forest.add(("none", frozenset({0})), "y")
    assert forest.parent(("none", frozenset({0}))) == ("none", frozenset({0, 1, 2}))


@pytest.mark.feature("content-routing F11")
@pytest.mark.parametrize("rules", [LOCAL, BALANCED, NRF])
def test_the_forest_of_figure_3_4(rules: Rules) -> None:
    wide, left, right = (typed("A", rng(*ends)) for ends in ((0, 100), (0, 40), (20, 90)))
    one, two = (typed("A", rng(*ends)) for ends in ((30, 35), (35, 38)))
    point = filter_of(attribute("x", equ(35)), attribute("type", equ("A")), attribute("name", equ("B")))
    forest: Forest[Filter, Values] = Forest(rules=rules)
    for number, f in enumerate([wide, left, right, one, two, point]):
        forest.add(f, f"i{number}")
    assert forest.roots_of("A") == [wide]
    assert set(forest.children(wide)) == {left, right}
    assert forest.parent(one) in (left, right)
    assert forest.parent(two) in (left, right)
    assert forest.parent(point) in (one, two)


@pytest.mark.feature("content-routing F11")
def test_a_tree_that_moves_takes_in_what_it_covers_at_its_new_place() -> None:
    """The relocated node slides under a sibling of the deleted one and covers that sibling's child there."""
    forest: Forest[frozenset[int], int] = Forest(Sets(), LOCAL)
    forest.add(frozenset({1, 2, 3, 4}), "a")
    forest.add(frozenset({1, 2, 3}), "b")
    forest.add(frozenset({3}), "c")
    forest.add(frozenset({1, 2, 3, 5}), "d")
    forest.add(frozenset({2, 5}), "e")
    forest.remove(frozenset({1, 2, 3, 4}), "a")
    assert forest.children(frozenset({1, 2, 3, 5})) == [frozenset({2, 5}), frozenset({1, 2, 3})]
    assert forest.parent(frozenset({3})) == frozenset({1, 2, 3})


@pytest.mark.feature("content-routing F11")
def test_chains_deeper_than_the_stack_can_be_merged() -> None:
    forest: Forest[Filter, Values] = Forest(rules=replace(LOCAL, order=by_size))
    links = 1200

    def link(low: int) -> Filter:
        return filter_of(attribute("x", gre(low)), attribute("y", gre(0)), attribute("z", gre(0)))

    for side, parity in (("y", 0), ("z", 1)):
        forest.add(filter_of(attribute("x", gre(-1)), attribute(side, gre(0))), side)
        for low in range(links - 2 + parity, -1, -2):
            forest.add(link(low), "a")
    forest.remove(filter_of(attribute("x", gre(-1)), attribute("y", gre(0))), "y")
    assert [forest.parent(link(low)) for low in range(1, links)] == [link(low) for low in range(links - 1)]


@pytest.mark.feature("content-routing F14")
def test_redundant_filters_can_only_be_found_with_an_index() -> None:
    with pytest.raises(ValueError, match="indexed=True"):
        Rules(pruning=Pruning.ALL)

"""Covering tests counted as the pseudo-code of the spec makes them, beside the values it measured (spec 4.4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from statistics import fmean
from typing import NamedTuple

import pytest
from tests.tables.boxes import Box, Boxes, box

from godwit.filters.language import Counted
from godwit.tables.forests.forest import BF, LOCAL, NRF, Forest, Rules
from godwit.tables.forests.poset import Poset

FILTERS = 500


class Costs(NamedTuple):
    roots: float
    add: float
    add_remove: float


Make = Callable[[Counted[Box, Box]], Forest[Box, Box] | Poset[Box, Box]]


def life(make: Make, dimensions: int, seed: int) -> Costs:
    """Experiment E1: an interface for each filter; build the table, then replace as many filters as there are."""
    dice, language = Random(seed), Counted(Boxes())
    table = make(language)

    def fresh() -> Box:
        while True:
            drawn = box(dice, dimensions)
            if drawn not in table:
                return drawn

    held = []
    for place in range(FILTERS):
        held.append(fresh())
        table.add(held[place], str(place))
    built, roots = language.count["covers"], len(table.roots())
    for _ in range(FILTERS):
        place = dice.randrange(FILTERS)
        table.remove(held[place], str(place))
        held[place] = fresh()
        table.add(held[place], str(place))
    assert len(table) == FILTERS
    return Costs(roots, built, language.count["covers"] - built)


def mean(make: Make, dimensions: int, seeds: int) -> Costs:
    lives = [life(make, dimensions, seed) for seed in range(seeds)]
    return Costs(*(fmean(column) for column in zip(*lives, strict=True)))


def forest(language: Counted[Box, Box], rules: Rules = LOCAL) -> Forest[Box, Box]:
    return Forest(language, rules)


def poset(language: Counted[Box, Box]) -> Poset[Box, Box]:
    return Poset(language, pruned=False)


@pytest.mark.feature("content-routing F11", "content-routing F12")
@pytest.mark.parametrize(("dimensions", "expected"), [(2, Costs(59, 23_600, 47_900)), (3, Costs(212, 93_100, 189_000))])
def test_the_forest_makes_the_tests_of_the_spec(dimensions: int, expected: Costs) -> None:
    """Ten seeds, as in the spec, and the same to the three digits it prints.

    Keeping the older of two equivalent filters on top costs 0.3 % more in removals.
    """
    measured = mean(forest, dimensions, seeds=10)
    assert measured.roots == pytest.approx(expected.roots, abs=0.5)
    assert measured.add == pytest.approx(expected.add, rel=0.003)
    assert measured.add_remove == pytest.approx(expected.add_remove, rel=0.006)


@pytest.mark.feature("content-routing F9")
@pytest.mark.parametrize(
    ("dimensions", "expected"), [(2, Costs(59, 222_000, 620_000)), (3, Costs(212, 164_000, 304_000))]
)
def test_the_poset_makes_the_tests_of_the_spec(dimensions: int, expected: Costs) -> None:
    """Within 15 %: how soon the reduction of successors finds a coverer depends on an order that the spec leaves open.

    Three seeds stand for ten, which gives 211,851 and 568,098 in two dimensions, 163,262 and 301,790 in three.
    """
    measured = mean(poset, dimensions, seeds=3)
    assert measured.add == pytest.approx(expected.add, rel=0.15)
    assert measured.add_remove == pytest.approx(expected.add_remove, rel=0.15)


@pytest.mark.feature("content-routing F13", "content-routing F14")
def test_index_and_elimination_cost_local_clients_next_to_nothing() -> None:
    """Claim C4: with an interface for each filter there is nothing to eliminate."""
    plain = mean(forest, 2, seeds=3)
    for rules in (BF, NRF):
        measured = mean(partial(forest, rules=rules), 2, seeds=3)
        assert measured.roots == plain.roots
        assert measured.add == pytest.approx(plain.add, rel=0.03)
        assert measured.add_remove == pytest.approx(plain.add_remove, rel=0.03)

"""The double forest against brute force, in the published example, and counted (spec 2.12, 3, 4.4)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.boxes import Box, Boxes, box

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.language import FILTERS, Counted
from godwit.filters.predicates import Values, rng
from godwit.tables.double import DoubleForest, Effort, Sense, Side


def span(low: float, high: float) -> Filter:
    return filter_of(attribute("x", rng(low, high)))


PUBLISHED = {
    Side.QUERIES: {"Q1": (0, 10), "Q2": (12, 20), "Q3": (2, 10), "Q4": (15, 22), "Q5": (12, 14)},
    Side.PROFILES: {"P1": (1, 5), "P2": (5, 10), "P3": (5, 25), "P4": (17, 20), "P5": (7, 9)},
}
MATCHES = {
    "Q1": "P1 P2 P5",
    "Q2": "P4",
    "Q3": "P2 P5",
    "Q4": "P4",
    "Q5": "",
    "P1": "Q1",
    "P2": "Q1 Q3",
    "P3": "",
    "P4": "Q2 Q4",
    "P5": "Q1 Q3",
}
PARENTS = {"Q1": "", "Q2": "", "Q3": "Q1", "Q4": "", "Q5": "Q2", "P1": "", "P2": "P3", "P3": "", "P4": "P3", "P5": "P2"}


@pytest.mark.feature("content-routing F41")
@pytest.mark.parametrize("effort", Effort)
@pytest.mark.parametrize("seed", range(8))
def test_the_published_example_in_any_order(seed: int, effort: Effort) -> None:
    """Figure 6.4."""
    every = [(side, name, span(*ends)) for side, own in PUBLISHED.items() for name, ends in own.items()]
    Random(seed).shuffle(every)
    named = {one: name for _, name, one in every}
    double: DoubleForest[Filter, Values] = DoubleForest(FILTERS, Sense.COVER, effort)
    for side, name, one in every:
        double.add(side, one, name)
    for side, name, one in every:
        assert {named[other] for other in double.matches(side, one)} == set(MATCHES[name].split())
        if effort is not Effort.SETS:
            parent = double.forests[side].parent(one)
            assert (named[parent] if parent is not None else "") == PARENTS[name]


class Truth:
    """All pairs, tested again whenever somebody asks."""

    def __init__(self, sense: Sense) -> None:
        self.sense = sense
        self.held: dict[Side, dict[Box, set[str]]] = {side: {} for side in Side}

    def matches(self, side: Side, wanted: Box) -> set[Box]:
        def match(query: Box, profile: Box) -> bool:
            test = Boxes().covers if self.sense is Sense.COVER else Boxes().overlaps
            return test(query, profile)

        return {
            one for one in self.held[side.other] if match(*((one, wanted) if side is Side.PROFILES else (wanted, one)))
        }

    def change(self, side: Side, wanted: Box, name: str, *, adding: bool) -> set[Box]:
        names = self.held[side].setdefault(wanted, set())
        changes = (name in names) is not adding
        names.symmetric_difference_update({name} if changes else ())
        concerned = self.matches(side, wanted) if changes else set()
        if not names:
            del self.held[side][wanted]
        return concerned


@pytest.mark.feature("content-routing F41")
@pytest.mark.parametrize("effort", Effort)
@pytest.mark.parametrize("sense", Sense)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60), wide=st.sampled_from([4, 12, 40]))
def test_whom_a_change_concerns_is_what_brute_force_says(
    sense: Sense, effort: Effort, seed: int, steps: int, wide: int
) -> None:
    """Theorem 6.5, with removals, the same filter under several names, and stand-ins that nobody hears of."""
    dice, truth = Random(seed), Truth(sense)
    double: DoubleForest[Box, Box] = DoubleForest(Boxes(), sense, effort)
    pool = [box(dice, 2, wide) for _ in range(12)]
    for _ in range(steps):
        side, wanted, name = dice.choice(list(Side)), dice.choice(pool), dice.choice("ab")
        match dice.choice(("add", "add", "remove", "preload", "unload")):
            case "add":
                assert double.add(side, wanted, name) == truth.change(side, wanted, name, adding=True)
            case "remove":
                assert double.remove(side, wanted, name) == truth.change(side, wanted, name, adding=False)
            case "preload":
                double.preload(side, [wanted])
            case _:
                double.unload(side, [wanted])
        for own in Side:
            assert set(double.held(own)) == set(truth.held[own])
            for one in truth.held[own]:
                assert double.matches(own, one) == truth.matches(own, one)
                assert double.names(own, one) == truth.held[own][one]


@pytest.mark.feature("content-routing F41")
@pytest.mark.parametrize("sense", Sense)
@given(seed=st.integers(0, 2**32))
def test_the_sets_of_parent_and_children_are_bounds(sense: Sense, seed: int) -> None:
    """Lemma 6.1 and theorems 6.3 and 6.4: what covers more matches more, but for profiles that are to be covered."""
    dice = Random(seed)
    double: DoubleForest[Box, Box] = DoubleForest(Boxes(), sense, Effort.SETS)
    forest: DoubleForest[Box, Box] = DoubleForest(Boxes(), sense, Effort.PLAIN)
    for number in range(40):
        side, wanted = dice.choice(list(Side)), box(dice, 2, 12)
        double.add(side, wanted, str(number))
        forest.add(side, wanted, str(number))
    for side in Side:
        for one in double.held(side):
            parent = forest.forests[side].parent(one)
            if parent is not None:
                small, large = double.matches(side, one), double.matches(side, parent)
                if sense is Sense.COVER and side is Side.PROFILES:
                    small, large = large, small
                assert small <= large


@pytest.mark.feature("content-routing F42")
@pytest.mark.parametrize("sense", Sense)
def test_what_is_preloaded_costs_no_test_to_add_and_to_remove(sense: Sense) -> None:
    """Theorem 7.1."""
    dice, language = Random(1), Counted(Boxes())
    double: DoubleForest[Box, Box] = DoubleForest(language, sense)
    every = [(side, box(dice, 2, 100)) for side in Side for _ in range(100)]
    for side, one in every:
        double.preload(side, [one])
    before = language.count.total()
    plain: DoubleForest[Box, Box] = DoubleForest(Boxes(), sense)
    for side, one in every:
        assert double.add(side, one, "s") == plain.add(side, one, "s")
    for side, one in reversed(every):
        assert double.remove(side, one, "s") == plain.remove(side, one, "s")
    assert language.count.total() == before


def operations(seed: int, sense: Sense, effort: Effort) -> int:
    """The spec's trial: 1000 profiles and 1000 queries of two ranges, in random order."""
    dice, language = Random(seed), Counted(Boxes())
    double: DoubleForest[Box, Box] = DoubleForest(language, sense, effort)
    every = [(side, box(dice, 2, 100)) for side in Side for _ in range(1000)]
    dice.shuffle(every)
    for number, (side, one) in enumerate(every):
        double.add(side, one, str(number))
    return language.count.total()


@pytest.mark.parametrize(
    ("sense", "effort", "spec"),
    [
        (Sense.COVER, Effort.PLAIN, 702_000),
        (Sense.COVER, Effort.BOUNDED, 319_000),
        (Sense.OVERLAP, Effort.PLAIN, 834_000),
        (Sense.OVERLAP, Effort.BOUNDED, 753_000),
    ],
)
def test_so_many_tests_as_the_spec_has_counted(sense: Sense, effort: Effort, spec: int) -> None:
    """Spec 4.4, of one seed there as here."""
    assert operations(0, sense, effort) == pytest.approx(spec, rel=0.1)

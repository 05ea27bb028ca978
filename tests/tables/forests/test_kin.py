"""Keys that say who can have to do with whom: never one too few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import uncovered
from tests.tables.histories import Step, entries, histories, play
from tests.worlds import SMALL, Labelled, LabelledSets, attribute_filters, filters, labelled_sets, value_maps

from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, attribute, conjunction, filter_of
from godwit.filters.language import FILTERS, Counted
from godwit.filters.predicates import Rate, Values, equ, gr, rng
from godwit.tables.forests import trees
from godwit.tables.forests.forest import BF, LOCAL, NRF, PF, Forest, Rules
from godwit.tables.forests.kin import Kin, demands
from godwit.tables.forests.ranges import NO_RANGES


@pytest.mark.feature("content-routing F11")
@given(one=filters(), more=st.lists(attribute_filters(), max_size=2), other=filters())
def test_a_wider_filter_demands_nothing_that_a_narrower_one_does_not(
    one: Filter, more: list[AttributeFilter], other: Filter
) -> None:
    narrower = conjunction([*one, *more]) or one
    for wide, narrow in ((one, narrower), (one, other), (other, one), (narrower, one)):
        if wide.covers(narrow):
            assert set(demands(wide)) <= set(demands(narrow))


@pytest.mark.feature("content-routing F11")
def test_values_that_are_insisted_on_are_keys() -> None:
    wanted = filter_of(
        attribute("a", equ(5)),
        attribute("b", equ("x")),
        attribute("c", equ(True)),
        attribute("d", gr(5)),
        attribute("e", equ(1), equ(2)),
        attribute("f", Rate(5.0)),
    )
    assert list(demands(wanted)) == ["a", ("a", 5), "b", ("b", "x"), "c", ("c", True), "d", "e", "f"]


class Item:
    """Something with keys."""

    def __init__(self, numbers: frozenset[int]) -> None:
        self.keys = dict.fromkeys(numbers).keys()
        self.ranges = NO_RANGES


@pytest.mark.feature("content-routing F11")
@given(
    entered=st.lists(st.tuples(st.frozensets(st.integers(0, 5)), st.booleans()), max_size=15),
    probe=st.frozensets(st.integers(0, 5)),
)
def test_kin_are_those_with_more_keys_or_with_fewer(
    entered: list[tuple[frozenset[int], bool]], probe: frozenset[int]
) -> None:
    items = [(Item(numbers), leaving) for numbers, leaving in entered]
    kin = Kin(item for item, _ in items)
    for item, leaving in items:
        if leaving:
            kin.remove(item)
    keys = Item(probe).keys
    staying = [item for item, leaving in items if not leaving]
    assert set(kin.wider(keys)) == {item for item in staying if item.keys <= keys}
    assert set(kin.narrower(keys)) == {item for item in staying if keys <= item.keys}


def missing(wanted: Labelled) -> list[int]:
    """Keys for sets: the wider a set, the fewer numbers it lacks."""
    return [number for number in SMALL if number not in wanted[1]]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are used from two children on."""
    monkeypatch.setattr(trees, "MANY", 2)


@pytest.mark.usefixtures("eager")
@pytest.mark.feature("content-routing F11")
@pytest.mark.parametrize("rules", [PF, BF, NRF, LOCAL])
@given(steps=histories(labelled_sets(), steps_max=40))
def test_with_keys_the_forest_is_as_exact_as_without(rules: Rules, steps: list[Step]) -> None:
    keyed: Forest[Labelled, int] = Forest(LabelledSets(), rules, keys=missing)
    plain: Forest[Labelled, int] = Forest(LabelledSets(), rules)
    for _ in play(steps, keyed, plain):
        assert set(keyed.roots()) == set(uncovered(keyed.language, list(keyed)))
        for f in keyed:
            siblings = keyed.children(f)
            assert all(f[1] >= child[1] for child in siblings)
            assert not any(one != other and one[1] >= other[1] for one in siblings for other in siblings)
        if rules in (NRF, LOCAL):
            assert entries(keyed) == entries(plain)
        for event in SMALL:
            assert keyed.match(event) == {i for f, i in entries(keyed) if event in f[1]}


@pytest.mark.usefixtures("eager")
@pytest.mark.feature("content-routing F11")
@given(steps=histories(filters()), events=st.lists(value_maps(), min_size=2, max_size=4))
def test_so_it_is_for_filters_of_every_kind(steps: list[Step], events: list[Values]) -> None:
    keyed: Forest[Filter, Values] = Forest(rules=LOCAL, keys=demands)
    for _ in play(steps, keyed):
        assert set(keyed.roots()) == set(uncovered(keyed.language, list(keyed)))
    for event in events:
        assert keyed.match(event) == {i for f, i in entries(keyed) if f.matches(event)}


@pytest.mark.feature("content-routing F11")
def test_filters_on_other_attributes_and_values_cost_no_test() -> None:
    language = Counted(FILTERS)
    forest = Forest(language, LOCAL, keys=demands)
    forest.add(Filter(), "all")
    for number in range(100):
        forest.add(filter_of(attribute("device", equ(f"d{number}")), attribute("x", rng(0, number))), "a")
        forest.add(filter_of(attribute(f"n{number}", rng(0, 1))), "b")
    language.count.clear()
    forest.add(filter_of(attribute("device", equ("d7")), attribute("x", rng(0, 3)), attribute("y", gr(1))), "c")
    # The filter without demands covers it, and so does the one for the same device.
    assert language.count["covers"] == 2

"""The space partition: every place has one owner, and a broker's name follows from where it stands."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.gathering.space import Boundary, Cell, Leaf, cut_between, leaves, owner, partition
from godwit.protocols.host import LocalError

COORDINATES = st.floats(-180, 180, allow_nan=False).map(lambda value: round(value, 3))


def places(dimensions: int) -> st.SearchStrategy[list[tuple[float, ...]]]:
    return st.lists(st.tuples(*[COORDINATES] * dimensions), min_size=1, max_size=25, unique=True)


@pytest.mark.feature("data-gathering F4")
@given(st.sampled_from((2, 3)).flatmap(lambda n: st.tuples(places(n), st.tuples(*[COORDINATES] * n))))
def test_every_place_is_in_exactly_one_cell_and_every_broker_in_its_own(
    drawn: tuple[list[tuple[float, ...]], tuple[float, ...]],
) -> None:
    where, place = drawn
    tree = partition((f"b{at}", at_place) for at, at_place in enumerate(where))
    found = list(leaves(tree))
    owning = [leaf for leaf in found if leaf.cell.owns_all(place)]
    assert owning == [owner(tree, place)]
    for leaf in found:
        assert leaf.cell.owns_all(leaf.place)
        assert all(
            low <= at < high for at, (low, high) in zip(leaf.place, leaf.cell.box(None, len(place)), strict=True)
        )


@pytest.mark.feature("data-gathering F5")
@given(places(2))
def test_names_are_a_complete_prefix_code_in_the_order_of_the_leaves(where: list[tuple[float, ...]]) -> None:
    found = list(leaves(partition((f"b{at}", place) for at, place in enumerate(where))))
    names = [leaf.prefix for leaf in found]
    assert names == sorted(names)
    assert sum(2.0 ** -len(name) for name in names) == 1.0
    assert not any(a != b and b.startswith(a) for a in names for b in names)


@pytest.mark.feature("data-gathering F6")
@given(places(2), st.tuples(COORDINATES, COORDINATES))
def test_a_boundary_list_tells_the_sibling_at_every_level(
    where: list[tuple[float, ...]], place: tuple[float, float]
) -> None:
    tree = partition((f"b{at}", at_place) for at, at_place in enumerate(where))
    owning = owner(tree, place).prefix
    for leaf in leaves(tree):
        level = leaf.cell.first_not_owned(place)
        assert (level is None) == (leaf.prefix == owning)
        if level is not None:
            assert owning.startswith(leaf.cell.sibling_prefix(level))
            assert leaf.cell.signed(level, place) <= 0
            inside = [low <= at <= high for at, (low, high) in zip(place, leaf.cell.sibling(level), strict=True)]
            assert all(inside)


def test_the_larger_difference_is_cut_in_the_middle_and_a_tie_goes_to_the_first_dimension() -> None:
    assert cut_between((0.0, 0.0), (10.0, 40.0)) == Boundary(1, 20.0, True)
    assert cut_between((10.0, 0.0), (0.0, 10.0)) == Boundary(0, 5.0, False)
    assert cut_between((0.0, 0.0, 0.0), (1.0, 2.0, -3.0)) == Boundary(2, -1.5, False)


def test_two_brokers_at_one_place_or_at_none_are_refused() -> None:
    with pytest.raises(LocalError, match="'a' and 'b': no cut separates"):
        partition([("a", (1.0, 2.0)), ("b", (1.0, 2.0))])
    with pytest.raises(LocalError, match="two different places"):
        cut_between((0.0, 0.0), (float("nan"), 0.0))
    with pytest.raises(LocalError, match="one broker at least"):
        partition([])


def test_neighboring_floats_still_have_a_cut_between_them() -> None:
    small, large = 1.0, 1.0 + 2**-52
    cut = cut_between((small, 0.0), (large, 0.0))
    assert cut.owns((large, 0.0))
    assert not cut.owns((small, 0.0))


def test_a_cell_can_be_deeper_than_the_stack() -> None:
    tree = partition((f"b{at}", (2.0**-at, 0.0)) for at in range(120))
    assert max(len(leaf.cell) for leaf in leaves(tree)) == 119


def test_the_whole_of_space_has_no_boundaries() -> None:
    lonely = next(leaves(partition([("a", (1.0, 1.0))])))
    assert isinstance(lonely, Leaf)
    assert lonely.cell == Cell()
    assert lonely.cell.owns_all((Random(1).random(), -7.0))

"""What a broker believes about cells: the higher term wins, in whatever order it hears of them."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.broker.fabric.ring.atlas import Atlas, is_taken
from godwit.protocols.broker.fabric.ring.targets import homes_of, of_level
from godwit.protocols.broker.messages import Region
from godwit.protocols.broker.store import MemoryStore
from godwit.protocols.gathering.areas import Anywhere, Reach, Spot
from godwit.protocols.gathering.space import WHOLE, Cell, cut_between, leaves, partition

CUT = cut_between((0.0, 0.0), (10.0, 0.0))
CUT_2 = cut_between((0.0, 0.0), (0.0, 10.0))
LEFT, RIGHT = Cell("0", (CUT.opposite(),)), Cell("1", (CUT,))
LOW, HIGH = LEFT.append(CUT_2.opposite(), "0"), LEFT.append(CUT_2, "1")
HISTORY = (
    Region(WHOLE, "a", 1),
    Region(LEFT, "a", 2),
    Region(RIGHT, "b", 2),
    Region(LOW, "a", 3),
    Region(HIGH, "c", 3),
)


def atlas(disk: dict[str, dict[tuple[str, int], bytes]] | None = None) -> Atlas:
    return Atlas(MemoryStore(disk if disk is not None else {}, lambda call: call()), "me")


@pytest.mark.parametrize("order", list(permutations(range(5)))[::7])
def test_whatever_comes_first_the_newest_stays(order: tuple[int, ...]) -> None:
    known = atlas()
    for at in order:
        known.put(HISTORY[at])
    assert {one.prefix: one.owner for one in known.regions.values()} == {"1": "b", "00": "a", "01": "c"}


def test_what_is_left_of_a_cell_stays_with_its_owner_where_somebody_stands_in_for_a_part() -> None:
    known = atlas()
    known.put(HISTORY[0])
    known.put(HISTORY[4], stood_in=True)
    assert {one.prefix: one.owner for one in known.regions.values()} == {"1": "a", "00": "a", "01": "c"}
    assert known.covers(Anywhere())
    for one in (HISTORY[2], Region(LOW, "d", 2)):
        assert known.put(one), "any other owner counts more"


def test_of_a_cell_that_was_cut_nothing_is_known_but_what_is_told() -> None:
    """The rest may have been cut, too, and its owner may be gone."""
    known = atlas()
    known.put(HISTORY[0])
    known.put(HISTORY[4])
    assert list(known.regions) == ["01"]


def test_who_has_a_part_of_a_cell_of_this_brokers_has_it_give_way() -> None:
    known = atlas()
    known.put(Region(WHOLE, "me", 1))
    known.put(HISTORY[4])
    assert list(known.regions) == ["01"]


def test_every_place_and_every_key_has_one_owner_when_all_cells_are_known() -> None:
    known, dice = atlas(), Random(2)
    for one in HISTORY:
        known.put(one)
    assert known.covers(Anywhere())
    targets: list[Reach] = [Spot((dice.uniform(-180, 180), dice.uniform(-90, 90))) for _ in range(100)]
    targets += [*(of_level(str(n)) for n in range(100)), *homes_of("x", 3)]
    for target in targets:
        assert len(list(known.meeting(target))) == 1


coordinates = st.floats(-10, 10)
brokers = st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=12, unique=True)


@given(brokers, st.sets(st.integers(0, 11)), st.lists(st.tuples(coordinates, coordinates), max_size=20))
def test_a_place_is_found_along_the_cuts_as_by_looking_at_all_cells(
    stand: list[tuple[float, float]], unknown: set[int], places: list[tuple[float, float]]
) -> None:
    known = atlas()
    for at, leaf in enumerate(leaves(partition((f"b{at}", place) for at, place in enumerate(stand)))):
        if at not in unknown:
            known.put(Region(leaf.cell, leaf.name, len(leaf.cell) + 1))
    for place in (*places, *stand):
        assert known.owner(Spot(place)) == next(known.meeting(Spot(place)), None)


def test_a_cell_that_nobody_has_spoken_of_is_missed() -> None:
    known = atlas()
    known.put(HISTORY[2])
    assert not known.covers(Anywhere())
    assert known.covers(Spot((50.0, 0.0)))
    assert not known.covers(Spot((-50.0, 0.0)))


def test_all_of_it_survives_a_crash() -> None:
    disk: dict[str, dict[tuple[str, int], bytes]] = {}
    known = atlas(disk)
    for one in HISTORY:
        known.put(one)
    known.store.settled(lambda: None)
    assert atlas(disk).regions == known.regions


def test_of_two_who_took_what_nobody_remembered_one_stays_whoever_is_heard_first() -> None:
    rivals = Region(RIGHT, "b", 0), Region(RIGHT, "c", 0)
    for order in (rivals, rivals[::-1]):
        known = atlas()
        for one in order:
            known.put(one)
        assert known.regions["1"].owner == "c"


def test_any_owner_outranks_who_took_the_cell_as_nobodys() -> None:
    known = atlas()
    known.put(Region(RIGHT, "c", 1))
    assert is_taken(known.regions["1"])
    assert known.put(Region(RIGHT, "b", 2))
    assert not any(map(is_taken, HISTORY))


def test_equal_terms_of_two_owners_change_nothing() -> None:
    known = atlas()
    known.put(Region(RIGHT, "b", 2))
    assert not known.put(Region(RIGHT, "c", 2))

"""Ranges that say who can have to do with whom: never one too few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import uncovered
from tests.tables.histories import Step, entries, histories, play
from tests.worlds import attribute_filters, filters, range_filters, value_maps

from godwit.filters.areas import Box, Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, attribute, conjunction, filter_of
from godwit.filters.language import FILTERS, Counted
from godwit.filters.predicates import Values, Within, equ, gr, rng
from godwit.tables.forests import ranges as module
from godwit.tables.forests import trees
from godwit.tables.forests.forest import LOCAL, Forest
from godwit.tables.forests.kin import demands
from godwit.tables.forests.ranges import Crowd, Range, Ranges, ranges

longitudes = st.sampled_from([-180.0, -179.0, -90.0, 0.0, 90.0, 170.0, 179.5, 180.0])
latitudes = st.sampled_from([-90.0, -89.9, -45.0, 0.0, 0.5, 60.0, 89.9, 90.0])
areas = st.one_of(
    st.builds(Circle, latitudes, longitudes, st.sampled_from([1.0, 50_000.0, 1e6, 1e7, 2e7])),
    st.builds(
        lambda one, other, west, east: Box(min(one, other), west, max(one, other), east),
        latitudes,
        latitudes,
        longitudes,
        longitudes,
    ),
)


def hold(outer: Ranges, inner: Ranges) -> bool:
    """Whether all that the outer give is given by the inner too, and further in."""
    return all(name in inner and _holds(given, inner[name]) for name, given in outer.items())


def _holds(outer: Range, inner: Range) -> bool:
    return outer[0] <= inner[0] + module.ROUNDING and outer[1] >= inner[1] - module.ROUNDING


def cross(one: Ranges, other: Ranges) -> bool:
    common = one.keys() & other.keys()
    return all(
        one[name][0] <= other[name][1] + module.ROUNDING and one[name][1] >= other[name][0] - module.ROUNDING
        for name in common
    )


@pytest.mark.feature("content-routing F11")
@given(one=filters(), more=st.lists(attribute_filters(), max_size=2), other=filters())
def test_ranges_of_a_wider_filter_hold_those_of_a_narrower_one(
    one: Filter, more: list[AttributeFilter], other: Filter
) -> None:
    narrower = conjunction([*one, *more]) or one
    for wide, narrow in ((one, narrower), (one, other), (other, one), (narrower, one)):
        if wide.covers(narrow):
            assert hold(ranges(wide), ranges(narrow))
        if wide.overlaps(narrow):
            assert cross(ranges(wide), ranges(narrow))


@pytest.mark.feature("content-routing F11")
@given(one=areas, other=areas)
def test_so_do_those_of_areas_at_the_poles_and_the_date_line(one: Circle | Box, other: Circle | Box) -> None:
    wide, narrow = (filter_of(attribute("place", Within(area))) for area in (one, other))
    if wide.covers(narrow):
        assert hold(ranges(wide), ranges(narrow))
    if wide.overlaps(narrow):
        assert cross(ranges(wide), ranges(narrow))


spans = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda ends: (float(min(ends)), float(max(ends))))
given_ranges = st.dictionaries(st.sampled_from("xyz"), spans)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges are compared from one item on, and keys from two children on."""
    monkeypatch.setattr(module, "MANY", 1)
    monkeypatch.setattr(trees, "MANY", 2)


@pytest.mark.usefixtures("eager")
@pytest.mark.feature("content-routing F11")
@given(entered=st.lists(st.tuples(given_ranges, st.booleans()), max_size=25), probe=given_ranges)
def test_a_crowd_finds_exactly_those_around_inside_and_across(
    entered: list[tuple[dict[str, Range], bool]], probe: dict[str, Range]
) -> None:
    crowd: Crowd[int] = Crowd()
    for number, (own, _) in enumerate(entered):
        crowd.add(number, own)
        list(crowd.across(probe))
    for number, (_, leaving) in enumerate(entered):
        if leaving:
            crowd.remove(number)
    for own in [own for own, leaving in entered if leaving]:
        crowd.add(len(entered) + len(crowd), own)
    staying = {number: own for number, (own, leaving) in enumerate(entered) if not leaving}
    more = [number for number in crowd if number not in staying]
    staying |= dict(zip(more, (own for own, leaving in entered if leaving), strict=True))
    assert list(crowd.around(probe)) == [number for number in crowd if hold(staying[number], probe)]
    assert list(crowd.inside(probe)) == [number for number in crowd if hold(probe, staying[number])]
    assert list(crowd.across(probe)) == [number for number in crowd if cross(probe, staying[number])]


@pytest.mark.usefixtures("eager")
@pytest.mark.feature("content-routing F11")
@given(steps=histories(st.one_of(filters(), range_filters())), events=st.lists(value_maps(), min_size=2, max_size=4))
def test_with_ranges_the_forest_is_as_exact_as_without(steps: list[Step], events: list[Values]) -> None:
    ranged: Forest[Filter, Values] = Forest(rules=LOCAL, keys=demands, ranges=ranges)
    plain: Forest[Filter, Values] = Forest(rules=LOCAL)
    for _ in play(steps, ranged, plain):
        assert set(ranged.roots()) == set(uncovered(ranged.language, list(ranged)))
        assert entries(ranged) == entries(plain)
    for event in events:
        assert ranged.match(event) == {i for f, i in entries(ranged) if f.matches(event)}


@pytest.mark.feature("content-routing F11")
def test_filters_elsewhere_cost_no_test() -> None:
    language = Counted(FILTERS)
    forest = Forest(language, LOCAL, keys=demands, ranges=ranges)
    for x in range(20):
        for y in range(20):
            forest.add(filter_of(attribute("x", rng(x, x + 0.5)), attribute("y", rng(y, y + 0.5))), "a")
    forest.add(filter_of(attribute("x", gr(7))), "b")
    forest.add(filter_of(attribute("place", Within(Circle(52.0, 4.0, 5000)))), "c")
    language.count.clear()
    forest.add(filter_of(attribute("x", equ(3.25)), attribute("y", equ(4.25))), "d")
    # The one around it covers it, and is asked whether it is covered in turn.
    assert language.count["covers"] <= 2
    assert forest.parent(filter_of(attribute("x", equ(3.25)), attribute("y", equ(4.25)))) is not None

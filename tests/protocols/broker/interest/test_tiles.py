"""Many areas are stated as few tiles that hold them all, and as few others as may be."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.events import Value
from godwit.filters.areas import Box, Circle
from godwit.filters.filters import FilterSet, attribute, filter_of
from godwit.filters.predicates import Interval, Within
from godwit.filters.text import parse
from godwit.protocols.broker.interest import stated as wants
from godwit.protocols.broker.interest.stated import Wants
from godwit.protocols.broker.interest.tiles import TILES_MAX, Tiles
from godwit.protocols.broker.publication import topic_values
from godwit.protocols.broker.session.parse import wanted_filters

places = st.tuples(st.floats(-90, 90), st.floats(-180, 180, exclude_max=True))
circles = st.builds(lambda at, radius: Circle(at[0], at[1], radius), places, st.floats(1.0, 2e6))
boxes = st.builds(
    lambda at, height, width: Box(at[0], at[1], min(90.0, at[0] + height), (at[1] + width + 180) % 360 - 180),
    places,
    st.floats(0.01, 60),
    st.floats(0.01, 170),
)
areas = st.one_of(circles, boxes)


def within(area: Circle | Box) -> FilterSet:
    return FilterSet((filter_of(attribute("lat,lon", Within(area))),))


def wanting(lat: float, lon: float, value: int = 1) -> dict[str, Value]:
    return {**topic_values("a/b"), "lat": lat, "lon": lon, "n": value}


@settings(max_examples=150, deadline=None)
@given(st.lists(areas, min_size=1, max_size=12), st.lists(places, max_size=30), st.data())
def test_every_place_that_is_wanted_is_in_a_tile(
    wanted: list[Circle | Box], tried: list[tuple[float, float]], data: st.DataObject
) -> None:
    tiles = Tiles(map(within, wanted))
    gone = data.draw(st.lists(st.sampled_from(wanted), unique_by=id, max_size=len(wanted) - 1))
    left = list(wanted)
    for one in gone:
        tiles.remove(within(one))
        left.remove(one)
    stated = tiles.stated()
    assert stated is not None
    assert len(stated.clause) <= TILES_MAX
    edges = [edge for one in left for edge in _edges(one)]
    for lat, lon in (*tried, *edges):
        if any(one.contains(lat, lon) for one in left):
            assert stated.matches({"lat": lat, "lon": lon}), (lat, lon)


def _edges(area: Circle | Box) -> list[tuple[float, float]]:
    frame = area.frame()
    return [(lat, lon) for lat in (frame.south, frame.north) for lon in (frame.west, frame.east)]


def test_a_city_full_of_areas_is_no_more_than_the_city() -> None:
    dice = Random(1)
    many = [within(Circle(37.6 + dice.random() / 5, -122.5 + dice.random() / 5, 3000.0)) for _ in range(400)]
    stated = Tiles(many).stated()
    assert stated is not None
    assert stated.matches({"lat": 37.7, "lon": -122.4})
    for elsewhere in ((37.7, -121.0), (39.0, -122.4), (39.9, 116.4), (-37.7, 122.4)):
        assert not stated.matches(dict(zip(("lat", "lon"), elsewhere, strict=True)))


def test_one_who_wants_any_place_or_names_it_otherwise_leaves_no_tiles() -> None:
    area = within(Circle(1.0, 2.0, 500.0))
    anywhere = FilterSet((filter_of(attribute("n", Interval((1, 0), (5, 0)))),))
    other = FilterSet((filter_of(attribute("y,x", Within(Circle(1.0, 2.0, 500.0)))),))
    assert Tiles([area]).stated() is not None
    assert Tiles([area, anywhere]).stated() is None
    assert Tiles([area, other]).stated() is None
    tiles = Tiles([area, anywhere])
    tiles.remove(anywhere)
    assert tiles.stated() is not None


def test_beyond_so_many_conditions_a_broker_states_its_tiles_and_not_everything() -> None:
    stated, dice = Wants(), Random(2)
    many = [
        wanted_filters("a/#", parse(f"n > {n} AND within(lat, lon, {50 + dice.random()}, {8 + dice.random()}, 2km)"))
        for n in range(wants.CONDITIONS_MAX + 20)
    ]
    for one in many:
        stated.add("a/#", one)
    assert stated.review()
    said = FilterSet(stated.filters())
    assert len(said.filters) == 1
    assert said.matches(wanting(50.5, 8.5))
    assert not said.matches(wanting(50.5, 20.0))
    assert not said.matches(topic_values("a/b")), "what has no place is wanted by nobody"
    for at in range(30):
        stated.remove("a/#", many[at])
        stated.add("a/#", wanted_filters("a/#", parse(f"n > {at} AND within(lat, lon, 50.5, 8.5, {at + 1}km)")))
        assert not stated.review(), "a client that comes or goes within the tiles changes nothing"
    stated.add("a/#", None)
    assert stated.review()
    assert FilterSet(stated.filters()).matches(wanting(50.5, 20.0))

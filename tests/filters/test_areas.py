"""Areas against an independent geometry: unit vectors, angles between them, and a search for witnesses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import product

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from godwit.filters import clauses
from godwit.filters.areas import (
    EARTH_RADIUS_M,
    HALF_WAY_ROUND_M,
    M_PER_DEGREE,
    ROUNDING_M,
    WORLD,
    Area,
    Box,
    Circle,
    distance_m,
    is_place,
    wrapped,
)
from godwit.filters.errors import FilterError
from godwit.filters.filters import attribute, filter_of
from godwit.filters.predicates import ABSENT, AnyPredicate, Kind, Outside, Within

Floats = npt.NDArray[np.float64]
Place = tuple[float, float]
Measure = Callable[[Floats, Floats], Floats]

EVERYWHERE = Circle(0, 0, HALF_WAY_ROUND_M)

latitudes = st.one_of(
    st.floats(-90, 90),
    st.floats(0, 5).map(lambda digits: 90 - 10**-digits),
    st.floats(0, 5).map(lambda digits: 10**-digits - 90),
    st.sampled_from([-90.0, -45.0, 0.0, 60.0, 90.0]),
)
longitudes = st.one_of(
    st.floats(-180, 360),
    st.floats(0, 5).map(lambda digits: 180 - 10**-digits),
    st.floats(0, 5).map(lambda digits: 10**-digits - 180),
    st.sampled_from([-180.0, -90.0, 0.0, 90.0, 180.0, 360.0]),
)
radii = st.one_of(
    st.floats(0, 7.3).map(lambda digits: 10**digits),
    st.floats(5e6, HALF_WAY_ROUND_M),
    st.sampled_from([HALF_WAY_ROUND_M / 2, HALF_WAY_ROUND_M - 1, HALF_WAY_ROUND_M]),
)


@st.composite
def circles(draw: st.DrawFn) -> Circle:
    return Circle(draw(latitudes), draw(longitudes), draw(radii))


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """Of any size, lines, points and full circles of latitude included."""
    height = draw(st.one_of(st.floats(0, 180), st.floats(-6, 1).map(lambda digits: 10**digits), st.just(0.0)))
    width = draw(
        st.one_of(st.floats(0, 360), st.floats(-6, 1).map(lambda digits: 10**digits), st.sampled_from([0, 360]))
    )
    south, west = draw(latitudes), wrapped(draw(longitudes))
    return box_from(south, west, height, width)


def box_from(south: float, west: float, height: float, width: float) -> Box:
    if width >= 360:
        return Box(south, -180, min(south + height, 90), 180)
    east = west + width
    return Box(south, west, min(south + height, 90), east if east < 180 else max(east - 360, -180))


areas = st.one_of(circles(), boxes())


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Area, Area]:
    """Two areas that often have to do with each other: the second is placed by the first and sized after it."""
    one = draw(areas)
    if draw(st.booleans()):
        return one, draw(areas)
    return one, draw(beside(one))


@st.composite
def beside(draw: st.DrawFn, one: Area) -> Area:
    lat, lon = draw(st.sampled_from(sample(one, bearings=5, steps=3)))
    size_m = max(size_of(one) * 10 ** draw(st.floats(-4, 0.5)), 1.0)
    if draw(st.booleans()):
        return Circle(lat, lon, min(size_m, HALF_WAY_ROUND_M))
    height, width = draw(st.floats(0, 1)) * size_m / M_PER_DEGREE, draw(st.floats(0, 4)) * size_m / M_PER_DEGREE
    return box_from(max(lat - height / 2, -90), wrapped(lon), height, width)


def size_of(area: Area) -> float:
    return area.radius_m if isinstance(area, Circle) else (area.north - area.south) * M_PER_DEGREE / 2


def vectors(lats: npt.ArrayLike, lons: npt.ArrayLike) -> Floats:
    lat, lon = np.radians(np.asarray(lats, float)), np.radians(np.asarray(lons, float))
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def apart_m(lat: float, lon: float) -> Measure:
    """Distance from a centre by the angle between vectors, in a form that is exact at 0 and at a half turn alike."""
    centre = vectors(lat, lon)

    def measure(lats: Floats, lons: Floats) -> Floats:
        points = vectors(lats, lons)
        near, far = np.linalg.norm(points - centre, axis=-1), np.linalg.norm(points + centre, axis=-1)
        return np.asarray(2 * EARTH_RADIUS_M * np.arctan2(near, far))

    return measure


def travelled(lat: float, lon: float, distances_m: npt.ArrayLike, bearings: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Where one arrives from a centre after so many metres in these directions (degrees from north)."""
    angle, bearing = np.asarray(distances_m) / EARTH_RADIUS_M, np.radians(np.asarray(bearings))
    here, north = vectors(lat, lon), vectors(lat + 90, lon)
    east = np.cross(north, here)
    direction = np.multiply.outer(np.cos(bearing), north) + np.multiply.outer(np.sin(bearing), east)
    x, y, z = np.moveaxis(np.cos(angle)[..., None] * here + np.sin(angle)[..., None] * direction, -1, 0)
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))


def sample(area: Area, *, bearings: int = 24, steps: int = 9) -> list[Place]:
    """Places that the area contains, crowded along its edge."""
    if isinstance(area, Circle):
        shares = np.append(np.linspace(0, 1, steps), 1 - np.array([1e-15, 1e-12, 1e-9, 1e-6, 1e-3]))
        distances, directions = np.meshgrid(area.radius_m * shares, np.linspace(0, 360, bearings + 1))
        lats, lons = travelled(area.lat, area.lon, distances.ravel(), directions.ravel())
    else:
        lats, lons = (axis.ravel() for axis in np.meshgrid(*axes(area, steps)))
    return [place for place in zip(lats.tolist(), lons.tolist(), strict=True) if area.contains(*place)]


def axes(box: Box, steps: int) -> tuple[Floats, Floats]:
    west, width = box.west, width_of(box)
    lons = np.linspace(west, west + width, steps)
    return np.linspace(box.south, box.north, steps), np.append(np.where(lons >= 180, lons - 360, lons), box.east)


def width_of(box: Box) -> float:
    return box.east - box.west if box.east >= box.west else box.east - box.west + 360


def places_of(*some: Area) -> list[Place]:
    lats, lons = np.meshgrid(np.linspace(-90, 90, 13), np.linspace(-180, 165, 24))
    return [*zip(lats.ravel().tolist(), lons.ravel().tolist(), strict=True), *(p for a in some for p in sample(a))]


def highest(measure: Measure, area: Area) -> tuple[float, float, float]:
    """The greatest value of `measure` on the edge of an area, and where."""
    if isinstance(area, Box):
        lats, lons = (area.south, area.north), (area.west, area.west + width_of(area))
        sides = [(lats, (lon, lon)) for lon in lons] + [((lat, lat), lons) for lat in lats]
        return max(zoomed(measure, *side) for side in sides)

    def by_bearing(bearings: Floats, _: Floats) -> Floats:
        return measure(*travelled(area.lat, area.lon, np.full_like(bearings, area.radius_m), bearings))

    value, bearing, _ = zoomed(by_bearing, (0, 360), (0, 0))
    rim_lats, rim_lons = travelled(area.lat, area.lon, [area.radius_m], [bearing])
    return value, float(rim_lats[0]), float(rim_lons[0])


def zoomed(measure: Measure, lat: tuple[float, float], lon: tuple[float, float]) -> tuple[float, float, float]:
    steps, best = 13, (-math.inf, 0.0, 0.0)
    for _ in range(16):
        lats, lons = (
            np.linspace(*lat, steps if lat[0] < lat[1] else 1),
            np.linspace(*lon, steps if lon[0] < lon[1] else 1),
        )
        grid_lats, grid_lons = (axis.ravel() for axis in np.meshgrid(lats, lons))
        values = measure(grid_lats, grid_lons)
        at = int(values.argmax())
        best = max(best, (float(values[at]), float(grid_lats[at]), float(grid_lons[at])))
        lat, lon = around(lat, best[1], steps), around(lon, best[2], steps)
    return best


def around(span: tuple[float, float], centre: float, steps: int) -> tuple[float, float]:
    cell = (span[1] - span[0]) / (steps - 1)
    if span[1] - span[0] >= 360:
        return centre - cell, centre + cell
    return max(span[0], centre - cell), min(span[1], centre + cell)


def farthest_m(lat: float, lon: float, area: Area) -> float:
    """Distance has no summit but the antipode and no hollow but the centre: its extremes are otherwise on the edge."""
    if area.contains(-lat, wrapped(lon) + 180):
        return HALF_WAY_ROUND_M
    return highest(apart_m(lat, lon), area)[0]


def nearest_m(lat: float, lon: float, area: Area) -> float:
    measure = apart_m(lat, lon)
    return 0.0 if area.contains(lat, lon) else -highest(lambda lats, lons: -measure(lats, lons), area)[0]


def tolerance_m(distance: float) -> float:
    return 1e-3 + 1e-6 * distance


def nudged(place: Place) -> Iterator[Place]:
    """The same place and its neighbors some rounding errors away."""
    for north, east in product((-9, -1, 0, 1, 9), repeat=2):
        lat = place[0] + north * math.ulp(place[0])
        lon = wrapped(place[1]) + east * math.ulp(wrapped(place[1]))
        if is_place(lat, lon):
            yield lat, lon


def least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least number between, to the last bit, from which on a monotone condition holds; `high` where none does."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Circle(90.5, 0, 1), "circle: latitude 90.5 is outside -90..90"),
        (lambda: Circle(math.nan, 0, 1), "circle: latitude nan"),
        (lambda: Circle(0, -181, 1), "circle: longitude -181 is outside -180..360"),
        (lambda: Circle(0, math.inf, 1), "circle: longitude inf"),
        (lambda: Circle(0, 0, 0), "circle: radius 0 m must be above 0 and at most 20015114 m"),
        (lambda: Circle(0, 0, math.nan), "circle: radius nan m"),
        (lambda: Circle(0, 0, math.inf), "circle: radius inf m"),
        (lambda: Circle(0, 0, 20_015_115), "half way round the Earth"),
        (lambda: Box(-91, 0, 0, 1), "box: latitude -91 is outside -90..90"),
        (lambda: Box(0, math.nan, 0, 1), "box: longitude nan is outside -180..360"),
        (lambda: Box(0, 0, 1, 361), "box: longitude 361 is outside -180..360"),
        (lambda: Box(2, 0, 1, 1), "box: south 2.0 lies north of north 1.0; the southern edge comes first"),
    ],
)
def test_an_impossible_area_is_refused_with_a_reason(make: Callable[[], Area], complaint: str) -> None:
    with pytest.raises(FilterError) as refused:
        make()
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (Circle(10, 190, 5), Circle(10, -170, 5)),
        (Circle(10, 180, 5), Circle(10, -180, 5)),
        (Circle(10, 360, 5), Circle(10, -0.0, 5)),
        (Circle(90, 77, 5), Circle(90, 0, 5)),
        (Circle(-90, 77, 5), Circle(-90, -12, 5)),
        (Circle(12, 34, HALF_WAY_ROUND_M), EVERYWHERE),
        (Box(0, 170, 1, 190), Box(0, 170, 1, -170)),
        (Box(0, 170, 1, 180), Box(0, 170, 1, -180)),
        (Box(0, 180, 1, 180), Box(0, -180, 1, -180)),
        (Box(-90, 0, 90, 360), WORLD),
        (Box(-90, -170, 90, 190), WORLD),
        (Box(-90, -180, 90, 360), WORLD),
    ],
)
@pytest.mark.feature("content-routing F2")
def test_equal_areas_are_equal_structs_that_print_alike(one: Area, same: Area) -> None:
    assert (one, hash(one), repr(one)) == (same, hash(same), repr(same))


@pytest.mark.feature("content-routing F2")
def test_a_gap_however_narrow_keeps_a_box_from_going_all_the_way_round() -> None:
    assert not Box(0, 1e-20, 1, 360).contains(0.5, 1e-21)
    assert Box(0, 1e-20, 1, 360).contains(0.5, 0)


def test_a_line_on_the_date_line_is_not_a_box_all_the_way_round() -> None:
    line = Box(0, 180, 10, -180)
    assert line.contains(5, 180)
    assert line.contains(5, -180)
    assert not line.contains(5, 179)
    assert line != Box(0, -180, 10, 180)


@given(areas)
@pytest.mark.feature("content-routing F2")
def test_areas_travel_unchanged(area: Area) -> None:
    for codec in (msgspec.json, msgspec.msgpack):
        assert codec.decode(codec.encode(area), type=Area) == area


def test_decoding_an_area_validates_it() -> None:
    with pytest.raises(msgspec.ValidationError, match="latitude 91"):
        msgspec.json.decode(b'{"type":"circle","lat":91,"lon":0,"radius_m":5}', type=Area)


@given(latitudes, longitudes, latitudes, longitudes)
def test_distances_agree_with_the_angle_between_vectors(lat: float, lon: float, lat2: float, lon2: float) -> None:
    expected = float(apart_m(lat, lon)(np.array(lat2), np.array(lon2)))
    assert distance_m(lat, lon, lat2, lon2) == pytest.approx(expected, rel=1e-12, abs=ROUNDING_M / 20)
    assert distance_m(lat, lon, lat2, lon2) == distance_m(lat2, lon2, lat, lon)
    assert distance_m(lat, lon, lat2, lon2) <= HALF_WAY_ROUND_M


@given(circles(), latitudes, longitudes)
@pytest.mark.feature("content-routing F4")
def test_a_circle_contains_the_places_within_its_radius(circle: Circle, lat: float, lon: float) -> None:
    apart = float(apart_m(circle.lat, circle.lon)(np.array(lat), np.array(lon)))
    assume(abs(apart - circle.radius_m) > ROUNDING_M / 20)
    assert circle.contains(lat, lon) == (apart < circle.radius_m)


@given(boxes(), latitudes, longitudes)
@pytest.mark.feature("content-routing F4")
def test_a_box_contains_the_places_on_the_way_east(box: Box, lat: float, lon: float) -> None:
    way = (Fraction(box.east) - Fraction(box.west)) % 360 if box.east < 180 else 360
    on_the_way = (Fraction(lon) - Fraction(box.west)) % 360 <= way
    assert box.contains(lat, lon) == (box.south <= lat <= box.north and on_the_way)


@given(areas, latitudes, st.floats(180, 360))
@pytest.mark.feature("content-routing F4")
def test_one_place_in_two_spellings_gets_one_answer(area: Area, lat: float, lon: float) -> None:
    assert area.contains(lat, lon) == area.contains(lat, lon - 360)


@pytest.mark.feature("content-routing F4")
def test_a_circle_across_the_pole_contains_the_far_side() -> None:
    arctic = Circle(85, 20, 800_000)
    assert arctic.contains(90, 0)
    assert arctic.contains(88, -160)
    assert not arctic.contains(87, -160)


@pytest.mark.feature("content-routing F4")
def test_areas_across_the_date_line_contain_both_sides() -> None:
    fiji = Circle(-17, 179.5, 100_000)
    assert fiji.contains(-17, -179.9)
    assert fiji.contains(-17, 180.1)
    assert not fiji.contains(-17, -179)
    assert Box(-20, 177, -15, -178).contains(-17, 181)


@given(latitudes, longitudes)
@pytest.mark.feature("content-routing F4")
def test_the_largest_circle_and_box_contain_everything(lat: float, lon: float) -> None:
    assert EVERYWHERE.contains(lat, lon)
    assert WORLD.contains(lat, lon)


@given(areas)
@pytest.mark.feature("content-routing F4")
def test_bounds_hold_every_place_of_the_area(area: Area) -> None:
    south, north, lons = area.bounds()
    assert all(-180 <= west <= east <= 180 for west, east in lons)
    assert -90 <= south <= north <= 90
    for lat, lon in (near for place in sample(area, bearings=12, steps=2) for near in nudged(place)):
        if area.contains(lat, lon):
            assert south <= lat <= north
            assert any(west <= wrapped(lon) <= east for west, east in lons)


def edges(circle: Circle) -> list[float]:
    """South, west, north and east of a circle around no pole, by walking along its rim."""
    south, _, _ = highest(lambda lats, _: -lats, circle)
    north, _, _ = highest(lambda lats, _: lats, circle)
    half, _, _ = highest(lambda _, lons: (lons - circle.lon + 180) % 360 - 180, circle)
    return [-south, circle.lon - half, north, circle.lon + half]


@given(circles())
@pytest.mark.feature("content-routing F5")
def test_a_box_covers_a_circle_exactly_when_it_reaches_its_extremes(circle: Circle) -> None:
    slack = tolerance_m(circle.radius_m)
    assume(circle.radius_m + slack + 1 < (90 - abs(circle.lat)) * M_PER_DEGREE)
    beyond = edges(Circle(circle.lat, circle.lon, circle.radius_m + slack))
    short = edges(Circle(circle.lat, circle.lon, circle.radius_m - slack))
    assert spelled(beyond).covers(circle)
    for side in range(4):
        assert not spelled([*beyond[:side], short[side], *beyond[side + 1 :]]).covers(circle)


def spelled(edges: list[float]) -> Box:
    south, west, north, east = edges
    return Box(max(south, -90), west if west >= -180 else west + 360, min(north, 90), east)


@given(circles(), st.floats(0, 359.9), st.floats(-180, 179))
@pytest.mark.feature("content-routing F5")
def test_only_a_box_all_the_way_round_covers_a_circle_around_a_pole(circle: Circle, width: float, west: float) -> None:
    assume(circle.radius_m > (90 - abs(circle.lat)) * M_PER_DEGREE + 1)
    assert circle.frame().covers(circle)
    assert (circle.frame().west, circle.frame().east) == (-180, 180)
    assert not box_from(-90, west, 180, width).covers(circle)


@given(latitudes, longitudes, areas)
@pytest.mark.feature("content-routing F5")
def test_a_circle_covers_an_area_exactly_when_it_reaches_its_farthest_place(lat: float, lon: float, area: Area) -> None:
    reach = farthest_m(lat, lon, area)
    slack = tolerance_m(reach)
    if reach + slack < HALF_WAY_ROUND_M:
        assert Circle(lat, lon, reach + slack).covers(area)
    if reach > slack:
        assert not Circle(lat, lon, reach - slack).covers(area)


@given(latitudes, longitudes, areas)
@pytest.mark.feature("content-routing F6")
def test_a_circle_overlaps_an_area_exactly_when_it_reaches_its_nearest_place(
    lat: float, lon: float, area: Area
) -> None:
    reach = nearest_m(lat, lon, area)
    slack = tolerance_m(reach)
    if reach + slack < HALF_WAY_ROUND_M:
        assert Circle(lat, lon, reach + slack).overlaps(area)
        assert area.overlaps(Circle(lat, lon, reach + slack))
    if reach > slack:
        assert not Circle(lat, lon, reach - slack).overlaps(area)
        assert not area.overlaps(Circle(lat, lon, reach - slack))


corners = st.integers(0, 2).map(lambda step: -90 + 90 * step)
meridians = st.integers(0, 5).map(lambda step: -180 + 60 * step)


@st.composite
def coarse_boxes(draw: st.DrawFn) -> Box:
    south, north = sorted((draw(corners), draw(corners)))
    if draw(st.integers(0, 5)) == 0:
        return Box(south, -180, north, 180)
    return Box(south, draw(meridians), north, draw(meridians))


@given(coarse_boxes(), coarse_boxes())
@pytest.mark.feature("content-routing F5", "content-routing F6")
def test_boxes_cover_and_overlap_exactly_as_their_places_do(one: Box, other: Box) -> None:
    grid = list(product(range(-90, 91, 45), range(-180, 180, 30)))
    mine, theirs = ({place for place in grid if box.contains(*place)} for box in (one, other))
    assert one.covers(other) == (mine >= theirs)
    assert one.overlaps(other) == bool(mine & theirs)


@given(pairs())
@pytest.mark.feature("content-routing F5", "content-routing F6")
def test_no_place_contradicts_covering_or_overlap(pair: tuple[Area, Area]) -> None:
    for one, other in (pair, pair[::-1]):
        inside = [one.contains(*place) for place in sample(other)]
        assert all(inside) or not one.covers(other)
        assert not any(inside) or one.overlaps(other)


@given(latitudes, longitudes, areas)
@pytest.mark.feature("content-routing F5")
def test_the_tightest_covering_circle_loses_no_place_to_rounding(lat: float, lon: float, narrow: Area) -> None:
    wide = Circle(lat, lon, least(lambda radius: Circle(lat, lon, radius).covers(narrow), 1e-9, HALF_WAY_ROUND_M))
    assert wide.covers(narrow)
    for place in (near for far in outermost(apart_m(lat, lon), narrow) for near in nudged(far)):
        assert wide.contains(*place) or not narrow.contains(*place)


@given(latitudes, longitudes, areas)
@pytest.mark.feature("content-routing F6")
def test_the_widest_circle_apart_from_an_area_has_no_place_of_it(lat: float, lon: float, other: Area) -> None:
    touching = least(lambda radius: Circle(lat, lon, radius).overlaps(other), 1e-9, HALF_WAY_ROUND_M)
    apart = Circle(lat, lon, math.nextafter(touching, 0))
    assume(not apart.overlaps(other))
    measure = apart_m(lat, lon)
    for near in outermost(lambda lats, lons: -measure(lats, lons), other):
        assert not any(apart.contains(*place) and other.contains(*place) for place in nudged(near))


def outermost(measure: Measure, area: Area) -> Iterable[Place]:
    """Where the measure is greatest on the area, as a search finds it, and the area's edge."""
    _, lat, lon = highest(measure, area)
    return [(lat, wrapped(lon)), *sample(area, bearings=8, steps=5)]


@given(circles())
@pytest.mark.feature("content-routing F5")
def test_the_tightest_covering_box_loses_no_place_to_rounding(circle: Circle) -> None:
    box = circle.frame()
    assert box.covers(circle)
    for place in (near for rim in sample(circle, bearings=12, steps=2) for near in nudged(rim)):
        assert box.contains(*place) or not circle.contains(*place)


@given(areas)
@pytest.mark.feature("content-routing F5")
def test_every_area_covers_and_overlaps_itself(area: Area) -> None:
    assert area.covers(area)
    assert area.overlaps(area)
    assert EVERYWHERE.covers(area)
    assert WORLD.covers(area)


@given(latitudes, longitudes, radii, radii)
@pytest.mark.feature("content-routing F5")
def test_of_two_circles_with_one_centre_the_larger_covers(lat: float, lon: float, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert Circle(lat, lon, large).covers(Circle(lat, lon, small))
    assert small == large or not Circle(lat, lon, small).covers(Circle(lat, lon, large))
    assert Circle(lat, lon, large).covers(Circle(lat, lon, math.nextafter(large, 0)))


@given(pairs())
@pytest.mark.feature("content-routing F5")
def test_areas_that_cover_each_other_are_equal_unless_they_are_everything(pair: tuple[Area, Area]) -> None:
    one, other = pair
    if one.covers(other) and other.covers(one):
        assert one == other or {one, other} == {EVERYWHERE, WORLD}


@given(st.data(), areas)
@pytest.mark.feature("content-routing F5")
def test_covering_is_transitive_and_hands_overlap_upwards(data: st.DataObject, wide: Area) -> None:
    middle = data.draw(beside(wide))
    narrow = data.draw(beside(middle))
    if wide.covers(middle):
        assert wide.overlaps(middle)
        assert wide.covers(narrow) or not middle.covers(narrow)
        assert wide.overlaps(narrow) or not middle.overlaps(narrow)


@given(pairs())
@pytest.mark.feature("content-routing F6")
def test_overlap_is_symmetric(pair: tuple[Area, Area]) -> None:
    assert pair[0].overlaps(pair[1]) == pair[1].overlaps(pair[0])


area_predicates = pairs().flatmap(lambda pair: st.tuples(*(st.sampled_from([Within(a), Outside(a)]) for a in pair)))


@given(area_predicates)
@pytest.mark.feature("content-routing F5", "content-routing F6")
def test_no_place_contradicts_predicates_inside_and_outside(pair: tuple[Within | Outside, Within | Outside]) -> None:
    one, other = pair
    for place in places_of(one.area, other.area):
        if other.accepts(place, {}):
            assert one.accepts(place, {}) or not one.covers(other)
            assert one.overlaps(other) or not one.accepts(place, {})


@given(area_predicates)
@pytest.mark.feature("content-routing F26")
def test_joining_and_intersecting_area_predicates_changes_no_place(pair: tuple[AnyPredicate, AnyPredicate]) -> None:
    union = clauses.union(Kind.PLACE, pair)
    both = clauses.intersection(Kind.PLACE, (pair[0],), (pair[1],))
    for place in places_of(*(p.area for p in pair if isinstance(p, Within | Outside))):
        answers = [p.accepts(place, {}) for p in pair]
        assert any(p.accepts(place, {}) for p in union) == any(answers)
        assert both is None or any(p.accepts(place, {}) for p in both) == all(answers)


@pytest.mark.parametrize("world", [EVERYWHERE, WORLD])
@pytest.mark.feature("content-routing F2", "content-routing F26")
def test_inside_the_world_is_anywhere_and_outside_it_nothing(world: Area) -> None:
    assert clauses.union(Kind.PLACE, [Within(world)]) == clauses.ALWAYS
    assert clauses.union(Kind.PLACE, [Within(Circle(0, 0, 5)), Outside(world)]) == (Within(Circle(0, 0, 5)),)
    assert clauses.union(Kind.PLACE, [Outside(world)]) == clauses.NEVER


@pytest.mark.feature("content-routing F6")
def test_an_attribute_with_the_long_name_of_a_place_may_be_absent_where_the_place_is_there() -> None:
    near = filter_of(attribute("lat,lon", Within(Circle(0, 0, 1000))))
    unnamed = filter_of(attribute("lat,lon", ABSENT))
    here = {"lat": 0, "lon": 0}
    assert near.matches(here)
    assert unnamed.matches(here)
    assert near.overlaps(unnamed)
    assert unnamed.overlaps(near)

"""Areas against boxes: the exact test against sampled points, the half-plane test against the exact one."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.filters import areas
from godwit.protocols.gathering.areas import Disc, Zone, walk
from godwit.protocols.gathering.maps import generate
from godwit.protocols.gathering.space import leaves, partition

pytestmark = pytest.mark.feature("data-gathering F13")

PERCENT = st.floats(0, 100)


@given(st.tuples(PERCENT, PERCENT), st.floats(0, 40), st.tuples(PERCENT, PERCENT), st.tuples(PERCENT, PERCENT))
def test_a_disc_meets_a_box_if_some_point_of_the_box_is_in_it(
    center: tuple[float, float], radius: float, a: tuple[float, float], b: tuple[float, float]
) -> None:
    disc = Disc(center, radius)
    box = ((min(a[0], b[0]), max(a[0], b[0])), (min(a[1], b[1]), max(a[1], b[1])))
    grid = [(x, y) for x in _steps(*box[0]) for y in _steps(*box[1])]
    if any(disc.contains(point) for point in grid):
        assert disc.meets(box)
    if not disc.meets(box):
        assert all(math.dist(center, point) > radius for point in grid)


def _steps(low: float, high: float) -> list[float]:
    return [low + (high - low) * step / 6 for step in range(7)]


@given(st.integers(0, 30), st.integers(2, 40), st.tuples(PERCENT, PERCENT), st.floats(0, 30))
def test_half_planes_reach_every_cell_that_the_exact_walk_reaches(
    seed: int, brokers: int, center: tuple[float, float], radius: float
) -> None:
    disc = Disc(center, radius)
    for site in generate(brokers, Random(seed), phones=0).sites:
        exact, half = walk(site.cell, disc, 0, exact=True), walk(site.cell, disc, 0)
        assert exact.stays == disc.meets(site.cell.box())
        assert half.stays or not exact.stays
        assert set(exact.crossed) <= set(half.crossed)


def test_in_three_dimensions_a_ball_meets_boxes() -> None:
    space = ((0.0, 10.0), (0.0, 10.0), (0.0, 10.0))
    sites = generate(20, Random(5), space, phones=0).sites
    ball = Disc((5.0, 5.0, 9.0), 2.0)
    reached = {site.name for site in sites if walk(site.cell, ball, 0, exact=True).stays}
    assert reached == {site.name for site in sites if ball.meets(site.cell.box(None, 3))}
    assert 1 < len(reached) < 20


GLOBE = [
    ("fiji west", (177.4, -17.8)),
    ("fiji east", (-179.9, -16.8)),
    ("tromso", (18.9, 69.6)),
    ("barrow", (-156.8, 71.3)),
    ("vostok", (106.8, -78.5)),
    ("quito", (-78.5, -0.2)),
    ("nairobi", (36.8, -1.3)),
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("area", "reached"),
    [
        (areas.Circle(-17.0, 179.9, 60_000.0), {"fiji west", "fiji east"}),
        (areas.Circle(90.0, 0.0, 10_000.0), {"tromso", "barrow", "fiji west"}),
        (areas.Box(-20.0, 170.0, -10.0, -170.0), {"fiji west", "fiji east"}),
        (areas.Circle(-1.0, 36.0, 1_000.0), {"nairobi"}),
    ],
)
def test_an_area_on_the_date_line_or_a_pole_reaches_both_sides(
    area: areas.Area, reached: set[str], exact: bool
) -> None:
    zone = Zone(area)
    found = {leaf.name for leaf in leaves(partition(GLOBE)) if walk(leaf.cell, zone, 0, exact=exact).stays}
    by_sampling = {leaf.name for leaf in leaves(partition(GLOBE)) if any(map(leaf.cell.owns_all, _inside(area)))}
    assert by_sampling <= found
    assert reached <= found
    if exact:
        assert found == by_sampling


def _inside(area: areas.Area) -> list[tuple[float, float]]:
    dice = Random(3)
    points = [(dice.uniform(-180, 180), math.degrees(math.asin(dice.uniform(-1, 1)))) for _ in range(2000)]
    bounds = area.bounds()
    for _ in range(20_000):
        low, high = dice.choice(bounds.lons)
        points.append((dice.uniform(low, high), dice.uniform(bounds.south, bounds.north)))
    return [(lon, lat) for lon, lat in points if -180 <= lon < 180 and area.contains(lat, lon)]


@pytest.mark.parametrize(("center", "radius"), [((math.nan, 0.0), 1.0), ((0.0, 0.0), -1.0), ((), 1.0)])
def test_an_area_that_makes_no_sense_is_refused(center: tuple[float, ...], radius: float) -> None:
    with pytest.raises(ValueError, match="finite centre and radius"):
        Disc(center, radius)

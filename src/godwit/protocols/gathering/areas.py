"""Target areas: which boxes they touch, and which points they hold.

An area answers two kinds of question. `intervals` is all that the half-plane test of the report needs; `meets` is the
exact test. A `Disc` lies in the plane or in space; a `Zone` on the globe, where it may cross the date line or hold a
pole: then its longitudes are two intervals, or all.
"""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from godwit.filters import areas
from godwit.protocols.gathering.space import Box, Cell, Point
from godwit.protocols.topology.pastry.keys import digit, starts_with

Intervals = tuple[tuple[float, float], ...]


class Disc(msgspec.Struct, frozen=True, tag="disc"):
    """The points at most `radius` from the centre."""

    center: Point
    radius: float

    def __post_init__(self) -> None:
        if not self.center or not all(map(math.isfinite, self.center)) or not 0 <= self.radius < math.inf:
            raise ValueError(f"an area needs a finite centre and radius, not {self.center} and {self.radius}")

    def intervals(self, dimension: int) -> Intervals:
        middle = self.center[dimension]
        return ((middle - self.radius, middle + self.radius),)

    def meets(self, box: Box) -> bool:
        nearest = [min(max(at, low), high) for at, (low, high) in zip(self.center, box, strict=True)]
        return math.dist(self.center, nearest) <= self.radius

    def contains(self, point: Point) -> bool:
        return math.dist(self.center, point) <= self.radius


class Zone(msgspec.Struct, frozen=True, tag="zone"):
    """A circle or a box of the filter language, for points given as (longitude, latitude)."""

    area: areas.Area

    def intervals(self, dimension: int) -> Intervals:
        bounds = self.area.bounds()
        return bounds.lons if dimension == 0 else ((bounds.south, bounds.north),)

    def meets(self, box: Box) -> bool:
        (west, east), (south, north) = box
        if east < -180 or west > 180 or north < -90 or south > 90:
            return False
        clipped = areas.Box(max(south, -90.0), max(west, -180.0), min(north, 90.0), min(east, 180.0))
        return clipped.overlaps(self.area)

    def contains(self, point: Point) -> bool:
        return self.area.contains(point[1], point[0])


Area = Disc | Zone


class Spot(msgspec.Struct, frozen=True, tag="spot"):
    """One place: where something happened, or where a broker stands."""

    place: Point


class Keyed(msgspec.Struct, frozen=True, tag="keyed"):
    """A key of 128 bits, which belongs to the cell whose prefix it begins with."""

    key: Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]

    @property
    def number(self) -> int:
        return int.from_bytes(self.key, "big")


class Anywhere(msgspec.Struct, frozen=True, tag="anywhere"):
    """All of space, and all keys."""


Reach = Area | Spot | Keyed | Anywhere
"""What a walk over cells looks for."""


def meets(cell: Cell, reach: Reach) -> bool:
    """Whether the cell has a part of it."""
    match reach:
        case Anywhere():
            return True
        case Keyed():
            return starts_with(reach.number, cell.prefix)
        case Spot(place):
            return cell.owns_all(place)
    return reach.meets(cell.box(dimensions=_dimensions(reach)))


def _dimensions(area: Area) -> int:
    return len(area.center) if isinstance(area, Disc) else 2


class Walk(msgspec.Struct, frozen=True):
    """What the walk of one subscription does at one broker: on whose behalf it goes on, and whether it stays."""

    crossed: tuple[int, ...]
    """The levels whose other side the area touches."""
    stays: bool


def walk(cell: Cell, area: Reach, level: int, *, exact: bool = False) -> Walk:
    """Examine the cuts from this level on (spec 2.5); an area wholly beyond one ends the walk there."""
    crossed = []
    for at in range(level, len(cell)):
        far, near = sides(cell, area, at, exact=exact)
        if far:
            crossed.append(at)
        if not near:
            return Walk(tuple(crossed), False)
    return Walk(tuple(crossed), True)


def sides(cell: Cell, area: Reach, level: int, *, exact: bool = False) -> tuple[bool, bool]:
    """Whether the area touches the other side of the cut, and ours. Touching the cut itself counts as both."""
    match area:
        case Anywhere():
            return True, True
        case Keyed():
            near = digit(area.number, level, 1) == int(cell.prefix[level])
            return not near, near
        case Spot(place):
            near = cell.owns(level, place)
            return not near, near
    if exact:
        dimensions = _dimensions(area)
        return area.meets(cell.sibling(level, dimensions)), area.meets(cell.box(level + 1, dimensions))
    cut = cell.boundaries[level]
    less = more = False
    for low, high in area.intervals(cut.dimension):
        less = less or low <= cut.coordinate
        more = more or high >= cut.coordinate
    return (less, more) if cut.increasing else (more, less)

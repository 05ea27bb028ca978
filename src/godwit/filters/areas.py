"""Areas on the sphere: circles in metres and boxes in degrees, with containment, covering and overlap.

Equal areas are equal structs. Longitudes are kept in -180 <= lon < 180, and a circle around a pole has longitude 0. The
circle that holds everything is centred on (0, 0), and a box all the way round goes from -180 to 180.

Between boxes, covering and overlap are exact. Where a circle takes part they are decided as if its radius were
uncertain by `ROUNDING_M`, in the direction that loses no event: a tie is no covering, and a tie is an overlap.
"""

from __future__ import annotations

from math import asin, atan2, cos, degrees, pi, radians, sin, sqrt
from typing import NamedTuple

import msgspec
from msgspec.structs import force_setattr

from godwit.filters.errors import FilterError

EARTH_RADIUS_M = 6_371_008.8
HALF_WAY_ROUND_M = pi * EARTH_RADIUS_M
M_PER_DEGREE = HALF_WAY_ROUND_M / 180

ROUNDING_M = 1e-6
"""A hundred times the rounding error of `distance_m`, and small enough that nobody's event depends on it."""

# Two latitudes are never nearer than this says, rounding included: what lies beyond it needs no trigonometry.
_SURELY_M_PER_DEGREE = M_PER_DEGREE * (1 - 1e-12)


class Bounds(NamedTuple):
    """Where to look for the places of an area: latitudes, and one or two intervals of longitudes in -180..180.

    Every place that the area contains lies inside, its longitude taken by `wrapped`; some others may.
    """

    south: float
    north: float
    lons: tuple[tuple[float, float], ...]


class Circle(msgspec.Struct, frozen=True, tag="circle"):
    """The places at most `radius_m` from a centre, along the surface. The radius may reach half way round the Earth."""

    lat: float
    lon: float
    radius_m: float

    def __post_init__(self) -> None:
        lat, lon = _checked_lat("circle", self.lat), _wrapped_lon("circle", self.lon)
        if not 0 < self.radius_m <= HALF_WAY_ROUND_M:
            raise FilterError(
                f"circle: radius {self.radius_m} m must be above 0 and at most {HALF_WAY_ROUND_M:.0f} m,"
                " half way round the Earth"
            )
        if self.radius_m == HALF_WAY_ROUND_M:
            lat = lon = 0.0
        force_setattr(self, "lat", lat)
        force_setattr(self, "lon", 0.0 if abs(lat) == 90 else lon)
        force_setattr(self, "radius_m", float(self.radius_m))

    def contains(self, lat: float, lon: float) -> bool:
        if abs(lat - self.lat) * _SURELY_M_PER_DEGREE > self.radius_m:
            return False
        if lon >= 180.0:
            lon -= 360.0
        return distance_m(self.lat, self.lon, lat, lon) <= self.radius_m

    def covers(self, other: Area) -> bool:
        """Whether every place of `other` is one of this circle: False where less than `ROUNDING_M` decides."""
        if self.radius_m == HALF_WAY_ROUND_M:
            return True
        if isinstance(other, Box):
            if max(other.north - self.lat, self.lat - other.south) * _SURELY_M_PER_DEGREE > self.radius_m:
                return False
            return _farthest_m(self.lat, self.lon, other) + ROUNDING_M <= self.radius_m
        if abs(self.lat - other.lat) * _SURELY_M_PER_DEGREE > self.radius_m - other.radius_m:
            return False
        if self.lat == other.lat and self.lon == other.lon:
            return True
        return distance_m(self.lat, self.lon, other.lat, other.lon) + other.radius_m + ROUNDING_M <= self.radius_m

    def overlaps(self, other: Area) -> bool:
        """Whether some place is in both: True where less than `ROUNDING_M` decides."""
        if isinstance(other, Box):
            reach_m = self.radius_m + ROUNDING_M
            if max(other.south - self.lat, self.lat - other.north) * _SURELY_M_PER_DEGREE > reach_m:
                return False
            return _nearest_m(self.lat, self.lon, other) <= reach_m
        reach_m = self.radius_m + other.radius_m + ROUNDING_M
        if abs(self.lat - other.lat) * _SURELY_M_PER_DEGREE > reach_m:
            return False
        return distance_m(self.lat, self.lon, other.lat, other.lon) <= reach_m

    def frame(self) -> Box:
        """The smallest box around this circle, its radius taken `ROUNDING_M` larger."""
        reach = (self.radius_m + ROUNDING_M) / M_PER_DEGREE
        south, north = self.lat - reach, self.lat + reach
        if south <= -90 or north >= 90:
            return Box(max(south, -90.0), -180.0, min(north, 90.0), 180.0)
        # The meridians that touch the circle are asin(sin r / cos lat) away from its centre. Near a pole the arc sine
        # loses half its digits; the tangent, with cos2 lat - sin2 r = cos(lat + r) cos(lat - r), loses none.
        beside = sqrt(cos(radians(north)) * cos(radians(south)))
        width = degrees(atan2(sin(radians(reach)), beside))
        west = self.lon - width
        return Box(south, west if west >= -180 else west + 360, north, self.lon + width)

    def bounds(self) -> Bounds:
        return self.frame().bounds()


class Box(msgspec.Struct, frozen=True, tag="box"):
    """The places between two parallels and, going east, between two meridians, edges included.

    A box with `west > east` crosses the date line; one that is 360 degrees wide or more goes all the way round. A box
    is a rectangle of coordinates: at a pole, where all longitudes meet, the longitude that the place comes with counts.
    """

    south: float
    west: float
    north: float
    east: float

    def __post_init__(self) -> None:
        south, north = _checked_lat("box", self.south), _checked_lat("box", self.north)
        west, east = _wrapped_lon("box", self.west), _wrapped_lon("box", self.east)
        if south > north:
            raise FilterError(f"box: south {south} lies north of north {north}; the southern edge comes first")
        if self.east >= 180 and east >= self.west:
            west, east = -180.0, 180.0
        force_setattr(self, "south", south)
        force_setattr(self, "west", west)
        force_setattr(self, "north", north)
        force_setattr(self, "east", east)

    def contains(self, lat: float, lon: float) -> bool:
        if not self.south <= lat <= self.north:
            return False
        if lon >= 180.0:
            lon -= 360.0
        if self.west <= self.east:
            return self.west <= lon <= self.east
        return lon >= self.west or lon <= self.east

    def spans(self, lon: float) -> bool:
        """Whether the meridian `lon`, given in -180 <= lon < 180, goes through this box."""
        if self.west <= self.east:
            return self.west <= lon <= self.east
        return lon >= self.west or lon <= self.east

    def covers(self, other: Area) -> bool:
        """Whether every place of `other` is one of this box: exact for boxes, to `ROUNDING_M` of radius for circles."""
        if isinstance(other, Circle):
            return self.contains(other.lat, other.lon) and self.covers(other.frame())
        return self.south <= other.south and other.north <= self.north and self._spans_all_of(other)

    def overlaps(self, other: Area) -> bool:
        """Whether some place is in both: exact for boxes, to `ROUNDING_M` of radius for circles."""
        if isinstance(other, Circle):
            return other.overlaps(self)
        if self.south > other.north or other.south > self.north:
            return False
        return self.spans(other.west) or other.spans(self.west)

    def frame(self) -> Box:
        return self

    def bounds(self) -> Bounds:
        if self.west <= self.east:
            return Bounds(self.south, self.north, ((self.west, self.east),))
        return Bounds(self.south, self.north, ((self.west, 180.0), (-180.0, self.east)))

    def _spans_all_of(self, other: Box) -> bool:
        ordered = self.west <= other.west and other.east <= self.east
        if self.west <= self.east:
            return ordered and (other.west <= other.east or self.east == 180)
        return ordered if other.west > other.east else other.west >= self.west or other.east <= self.east


Area = Circle | Box


def is_place(lat: float, lon: float) -> bool:
    """Whether these can be coordinates; NaN cannot. Longitudes may be given in -180..180 or in 0..360."""
    return -90 <= lat <= 90 and -180 <= lon <= 360


def wrapped(lon: float) -> float:
    """The longitude in -180 <= lon < 180 that names the same meridian; no digit is lost."""
    return lon - 360.0 if lon >= 180.0 else lon


def distance_m(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """Along the great circle, by the haversine formula, to some nanometres; never more than `HALF_WAY_ROUND_M`."""
    cosines = cos(radians(lat)) * cos(radians(other_lat))
    half_turn = radians(other_lon - lon) / 2
    rise, turn = sin(radians(other_lat - lat) / 2), sin(half_turn)
    h = rise * rise + cosines * turn * turn
    if h <= 0.5:
        return 2 * EARTH_RADIUS_M * asin(sqrt(h))
    # The arc sine is useless near 1, so that beyond a quarter of the way round the distance is measured from the
    # antipode, whose haversine is 1 - h without the subtraction.
    rise, turn = sin(radians(other_lat + lat) / 2), cos(half_turn)
    return HALF_WAY_ROUND_M - 2 * EARTH_RADIUS_M * asin(sqrt(rise * rise + cosines * turn * turn))


# Where a box comes nearest to a centre, or goes farthest from it: on any one parallel the distance grows with the
# difference in longitude, so it happens on the meridian of the box with the least, or greatest, difference D. On that
# meridian the cosine of the distance, sin c sin lat + cos c cos lat cos D, is a sinusoid of lat with its one crest at
# atan2(sin c, cos c cos D) and its one trough opposite. The extreme is there if that lies in the box, else at an end.


def _nearest_m(lat: float, lon: float, box: Box) -> float:
    if box.spans(lon):
        return max(box.south - lat, lat - box.north, 0.0) * M_PER_DEGREE
    apart = min(_apart(lon, box.west), _apart(lon, box.east))
    return min(_extremes_m(lat, apart, box, 1.0))


def _farthest_m(lat: float, lon: float, box: Box) -> float:
    opposite = lon + 180 if lon < 0 else lon - 180
    apart = 180.0 if box.spans(opposite) else max(_apart(lon, box.west), _apart(lon, box.east))
    return max(_extremes_m(lat, apart, box, -1.0))


def _extremes_m(lat: float, apart: float, box: Box, sign: float) -> list[float]:
    """Distances from `lat` to the ends of the box's meridian `apart` degrees away, and to its crest or trough."""
    phi = radians(lat)
    turning = atan2(sign * sin(phi), sign * cos(phi) * cos(radians(apart)))
    lats = [box.south, box.north]
    if box.south < degrees(turning) < box.north:
        lats.append(degrees(turning))
    return [distance_m(lat, 0.0, other, apart) for other in lats]


def _apart(lon: float, other: float) -> float:
    difference = abs(lon - other)
    return 360 - difference if difference > 180 else difference


def _checked_lat(what: str, lat: float) -> float:
    if not -90 <= lat <= 90:
        raise FilterError(f"{what}: latitude {lat} is outside -90..90")
    return lat + 0.0  # no negative zero: equal areas print alike


def _wrapped_lon(what: str, lon: float) -> float:
    if not -180 <= lon <= 360:
        raise FilterError(f"{what}: longitude {lon} is outside -180..360")
    return wrapped(lon) + 0.0


WORLD = Box(-90.0, -180.0, 90.0, 180.0)
"""Every place there is; the one other area that holds them all is the largest circle."""

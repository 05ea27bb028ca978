"""Who takes part: taxis that report where they are, and people who walk through town and want to know.

Positions are made up and follow from the seed; the town lies around the bay of San Francisco's north-east.
"""

from __future__ import annotations

import math
from random import Random

import msgspec

from godwit.events import Value
from godwit.filters.areas import M_PER_DEGREE

LAT, LON = 37.78, -122.41
REACH_M = 4_000.0
M_PER_DEGREE_EAST = M_PER_DEGREE * math.cos(math.radians(LAT))

WISHES = (
    "kind = 'taxi' AND speed_kmh > 45",
    "kind = 'taxi' AND occupied = FALSE AND within(lat, lon, {lat:.4f}, {lon:.4f}, 1200m)",
    "kind = 'taxi' AND within(lat, lon, {lat:.4f}, {lon:.4f}, 2km) AND speed_kmh BETWEEN 10 AND 40",
    "company IN ('Dunlin', 'Curlew Cabs') AND occupied = TRUE AND speed_kmh < 20",
    "taxi BETWEEN {low} AND {high}",
)
COMPANIES = ("Curlew Cabs", "Dunlin", "Knot & Sons", "Sanderling")


class Taxi:
    """Drives about, turning a little all the time, and turns back at the edge of town."""

    def __init__(self, number: int, random: Random) -> None:
        self.number = number
        self.random = random
        self.east_m = random.uniform(-REACH_M, REACH_M)
        self.north_m = random.uniform(-REACH_M, REACH_M)
        self.heading = random.uniform(0, math.tau)
        self.speed_kmh = 30.0
        self.occupied = random.random() < 0.5

    def drive(self, seconds: float) -> dict[str, Value]:
        """Its report after that time."""
        self.heading += self.random.gauss(0, 0.3)
        if math.hypot(self.east_m, self.north_m) > REACH_M:
            self.heading = math.atan2(-self.north_m, -self.east_m)
        self.speed_kmh = min(max(self.speed_kmh + self.random.gauss(0, 6), 0.0), 70.0)
        self.occupied ^= self.random.random() < 0.05
        away_m = self.speed_kmh / 3.6 * seconds
        self.east_m += away_m * math.cos(self.heading)
        self.north_m += away_m * math.sin(self.heading)
        return {
            "kind": "taxi",
            "taxi": self.number,
            "company": COMPANIES[self.number % len(COMPANIES)],
            "speed_kmh": round(self.speed_kmh, 1),
            "occupied": self.occupied,
            "lat": round(LAT + self.north_m / M_PER_DEGREE, 6),
            "lon": round(LON + self.east_m / M_PER_DEGREE_EAST, 6),
        }


class Person(msgspec.Struct, frozen=True):
    name: str
    wish: str


def people(count: int, taxis: int, random: Random) -> list[Person]:
    """Each with a wish of their own, by content and by place."""
    return [Person(f"walker-{number:02d}", _wish(number, taxis, random)) for number in range(1, count + 1)]


def _wish(number: int, taxis: int, random: Random) -> str:
    low = random.randrange(taxis)
    return WISHES[number % len(WISHES)].format(
        lat=LAT + random.uniform(-1, 1) * REACH_M / 2 / M_PER_DEGREE,
        lon=LON + random.uniform(-1, 1) * REACH_M / 2 / M_PER_DEGREE_EAST,
        low=low,
        high=low + 5,
    )

"""A made-up city for the demo: where things move, what they report, and what its people want to hear of.

Limosa lies on a bay in the west. Its taxis drive from one busy spot to the next, a cloud of bad air drifts over its
sensors, and people write messages. All of it follows from one seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from godwit.filters.areas import M_PER_DEGREE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NAME = "Limosa"
SOUTH, WEST = 53.05, 5.3
WIDTH_M, HEIGHT_M = 16_000.0, 9_000.0
M_PER_DEGREE_EAST = M_PER_DEGREE * math.cos(math.radians(SOUTH))

DISTRICTS = ["Harbour", "Old Town", "Museums", "Lakeside", "Foundry", "Heath", "University", "Airport"]
SPOTS = np.array(
    [
        (3600.0, 4400.0),
        (6200.0, 5200.0),
        (7600.0, 3600.0),
        (9600.0, 6900.0),
        (5600.0, 1600.0),
        (11600.0, 1900.0),
        (10600.0, 4300.0),
        (14400.0, 6100.0),
    ]
)
"""The middle of each district, in metres east and north of the corner; where taxis wait and people live."""

COMPANIES = ["Curlew Cabs", "Dunlin", "Knot & Sons", "Sanderling"]
MESSAGES = {
    "sale/bicycles": (["racing bike", "tandem", "cargo bike"], ["hardly used", "needs love"]),
    "sale/books": (["atlas", "first edition", "box of crime novels"], ["collect today", "slightly foxed"]),
    "sale/instruments": (["violin", "cello", "piano"], ["hardly used", "needs tuning"]),
    "lost/animals": (["grey cat", "parrot", "red dog"], ["seen near the bridge", "answers to Otto"]),
    "lost/keys": (["bunch of keys", "bicycle key"], ["reward", "seen near the bridge"]),
    "music/tonight": (["string quartet", "brass band", "choir"], ["at eight", "in the park"]),
    "help/moving": (["piano to the third floor", "forty boxes of books"], ["pizza for all", "urgent"]),
}
"""By topic: what is written about, and what is said of it."""

LETTERS = [
    (topic, f"{thing}, {remark}")
    for topic, (things, remarks) in MESSAGES.items()
    for thing in things
    for remark in remarks
]
DANGERS = ["fire", "flood", "power cut", "closed bridge"]

TAXIS, SENSORS = 3_000, 400
TICK_S = 2.0
SPEED_MPS = 11.0


def coast_m(north_m: Floats) -> Floats:
    """How far east the water reaches: a bay, widest in its middle."""
    return 1500.0 + 1300.0 * np.sin(np.pi * north_m / HEIGHT_M) ** 2


def river_m(north_m: Floats) -> Floats:
    return 8600.0 + 900.0 * np.sin(north_m / 1500.0) + 0.1 * north_m


def districts_at(east_m: Floats, north_m: Floats) -> Ints:
    """The number of the district that each place belongs to: that of the nearest middle."""
    away = (east_m[:, None] - SPOTS[:, 0]) ** 2 + (north_m[:, None] - SPOTS[:, 1]) ** 2
    return np.asarray(np.argmin(away, axis=1), np.int64)


def places(random: np.random.Generator, count: int, spread_m: float) -> tuple[Floats, Floats]:
    """Places on land, most of them around the middles of districts; metres east and north."""
    spots = SPOTS[random.integers(len(SPOTS), size=count)]
    east = spots[:, 0] + random.normal(0, spread_m, count)
    north = np.clip(spots[:, 1] + random.normal(0, spread_m, count), 0, HEIGHT_M)
    return np.clip(east, coast_m(north) + 50, WIDTH_M), north


def degrees_at(east_m: Floats, north_m: Floats) -> tuple[Floats, Floats]:
    """Latitudes and longitudes to about a metre, as devices send them."""
    return np.round(SOUTH + north_m / M_PER_DEGREE, 5), np.round(WEST + east_m / M_PER_DEGREE_EAST, 5)


def metres_at(lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
    return (lon - WEST) * M_PER_DEGREE_EAST, (lat - SOUTH) * M_PER_DEGREE


class City:
    """Everything that moves and reports. Each call of `events` lets `TICK_S` seconds pass."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.time_s = 0.0
        self.taxis = np.column_stack(places(random, TAXIS, 1500.0))
        self.goals = np.column_stack(places(random, TAXIS, 900.0))
        self.free = random.random(TAXIS) < 0.5
        self.company = random.integers(len(COMPANIES), size=TAXIS)
        self.seats = random.choice([4, 4, 4, 6, 8], size=TAXIS)
        self.sensors = np.column_stack(places(random, SENSORS, 2000.0))

    def events(self, count: int) -> pa.RecordBatch:
        """The next `count` events, as columns: seven in ten from taxis, the others from sensors and people."""
        self.time_s += TICK_S
        self._drive()
        air, message, alert = (math.ceil(count * share) for share in (0.15, 0.13, 0.02))
        blocks = [
            self._taxis(count - air - message - alert),
            self._air(air),
            self._messages(message),
            self._alerts(alert),
        ]
        return _stacked(blocks)

    def _drive(self) -> None:
        way = self.goals - self.taxis
        left = np.hypot(way[:, 0], way[:, 1])
        step = np.minimum(SPEED_MPS * TICK_S / np.maximum(left, 1e-9), 1.0)
        self.taxis += way * step[:, None]
        arrived = np.flatnonzero(step == 1.0)
        self.goals[arrived] = np.column_stack(places(self.random, len(arrived), 900.0))
        self.free[arrived] = ~self.free[arrived]

    def _taxis(self, count: int) -> dict[str, pa.Array]:
        which = self.random.integers(TAXIS, size=count)
        return {
            **_common("taxi", self.taxis[which]),
            "plate": _words(plates(), which),
            "company": _words(COMPANIES, self.company[which]),
            "seats": pa.array(self.seats[which]),
            "free": pa.array(self.free[which]),
            "speed_kmh": pa.array(np.round(self.random.normal(SPEED_MPS * 3.6, 9.0, count).clip(0), 1)),
        }

    def cloud(self) -> tuple[float, float]:
        """Where the bad air is, in metres east and north: it circles over the city."""
        angle = self.time_s / 260.0
        return WIDTH_M * (0.55 + 0.3 * math.cos(angle)), HEIGHT_M * (0.5 + 0.35 * math.sin(angle))

    def _air(self, count: int) -> dict[str, pa.Array]:
        which = self.random.integers(SENSORS, size=count)
        at = self.sensors[which]
        east, north = self.cloud()
        near = np.exp(-((at[:, 0] - east) ** 2 + (at[:, 1] - north) ** 2) / (2 * 1600.0**2))
        noise = self.random.gamma(4.0, 4.0, (2, count))
        return {
            **_common("air", at),
            "station": _words(stations(), which),
            "pm25": pa.array(np.round(noise[0] + 170.0 * near, 1)),
            "no2": pa.array(np.round(noise[1] + 110.0 * near, 1)),
            "temp_c": pa.array(np.round(19.0 + 6.0 * near + self.random.normal(0, 1, count), 1)),
        }

    def _messages(self, count: int) -> dict[str, pa.Array]:
        topics = list(MESSAGES)
        which = self.random.integers(len(LETTERS), size=count)
        topic = np.array([topics.index(topic) for topic, _ in LETTERS])[which]
        for_sale = np.array([topic.startswith("sale/") for topic in topics])[topic]
        return {
            **_common("message", np.column_stack(places(self.random, count, 1200.0))),
            "topic": _words(topics, topic),
            "text": _words([text for _, text in LETTERS], which),
            "price_eur": pa.array(self.random.gamma(2.0, 60.0, count).astype(np.int64), mask=~for_sale),
        }

    def _alerts(self, count: int) -> dict[str, pa.Array]:
        return {
            **_common("alert", np.column_stack(places(self.random, count, 1500.0))),
            "what": _words(DANGERS, self.random.integers(len(DANGERS), size=count)),
            "severity": pa.array(1 + np.minimum(self.random.geometric(0.5, count) - 1, 4)),
        }


def plates() -> list[str]:
    return [f"L-{number:04}" for number in range(TAXIS)]


def stations() -> list[str]:
    """Every fifth sensor stands on a roof."""
    return [f"{'street' if number % 5 else 'roof'}-{number:03}" for number in range(SENSORS)]


def _common(kind: str, at: Floats) -> dict[str, pa.Array]:
    lat, lon = degrees_at(at[:, 0], at[:, 1])
    return {
        "kind": _words([kind], np.zeros(len(at), np.int64)),
        "lat": pa.array(lat),
        "lon": pa.array(lon),
        "district": _words(DISTRICTS, districts_at(at[:, 0], at[:, 1])),
    }


def _words(words: Sequence[str], which: Ints) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(which.astype(np.int32)), pa.array(words))


def _stacked(blocks: list[dict[str, pa.Array]]) -> pa.RecordBatch:
    """One batch from blocks with different columns; what a block lacks is absent there."""
    tables = [pa.table(block) for block in blocks]
    together = pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()
    return together.to_batches()[0]

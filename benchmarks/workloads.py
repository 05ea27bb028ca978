"""What the matching benchmark matches: subscriptions and events of many shapes, each decided by its seed."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.filters.areas import Box, Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import (
    AnyPredicate,
    Within,
    contains,
    end,
    equ,
    gre,
    lacks,
    like,
    neq,
    rng,
    stw,
    unlike,
)

BATCH = 256
RANGES = [f"r{i}" for i in range(10)]
SMALL = [f"s{i}" for i in range(4)]
WORDS = [f"w{i}" for i in range(6)]
ATTRIBUTES = [*RANGES, *SMALL, *WORDS]
DOMAIN = 10_000
DATA, FLIGHTS = Path("/work/shared/data"), "nyc_flights_2013.parquet"
"""Where recordings are looked for unless another folder is named, and the one of flights."""

Dice = np.random.Generator


@dataclass
class Workload:
    """Subscriptions, and a stream of events as one Arrow table; `arrays` is what a vectorised brute force wants."""

    name: str
    filters: list[Filter]
    events: pa.Table
    goal: float | None = None
    arrays: Conjunctions | None = None
    note: str = ""

    def batches(self, size: int = BATCH) -> list[pa.RecordBatch]:
        return list(self.events.combine_chunks().to_batches(max_chunksize=size))

    def rows(self) -> list[dict[str, Any]]:
        return [{k: v for k, v in row.items() if v is not None} for row in self.events.to_pylist()]


@dataclass
class Conjunctions:
    """Every subscription as as many (column, low, high) triples, and every event as a row of numbers."""

    column: np.ndarray[Any, Any]
    low: np.ndarray[Any, Any]
    high: np.ndarray[Any, Any]
    events: np.ndarray[Any, Any]


def uniform(subscriptions: int, share: float, *, events: int, seed: int = 1, goal: float | None = None) -> Workload:
    """The reference workload: 20 attributes, 3 predicates of about one selectivity, so that `share` of all match."""
    dice = np.random.default_rng([seed, subscriptions])
    values = round(share ** (-1 / 3))
    width = round(_range_selectivity(share, 1 / values) * DOMAIN)
    column = np.argsort(dice.random((subscriptions, len(ATTRIBUTES))), axis=1)[:, :3].astype(np.int64)
    low = dice.integers(0, DOMAIN - width + 1, (subscriptions, 3))
    equal = column >= len(RANGES)
    low[equal] = dice.integers(0, values, int(equal.sum()))
    high = np.where(equal, low, low + width - 1)
    numbers = dice.integers(0, DOMAIN, (events, len(ATTRIBUTES)))
    numbers[:, len(RANGES) :] = dice.integers(0, values, (events, len(SMALL) + len(WORDS)))
    filters = [_conjunction(c, lo, hi) for c, lo, hi in zip(column.tolist(), low.tolist(), high.tolist(), strict=True)]
    name = f"{subscriptions:,}, {share:.2%} match".replace("0%", "%").replace(".0%", "%")
    return Workload(name, filters, _table(numbers), goal, Conjunctions(column, low, high, numbers))


def fences(count: int, events: int, *, seed: int = 7) -> Workload:
    """Boxes on a map that hardly overlap: a place is in two of them, about."""
    dice = np.random.default_rng(seed)
    corner, side = dice.random((count, 2)) * (50, 100), (2 * 50 * 100 / count) ** 0.5
    boxes = [Box(lat, lon, lat + side, lon + side) for lat, lon in corner.tolist()]
    at = dice.random((events, 2)) * (50, 100)
    filters = [filter_of(attribute("lat,lon", Within(box))) for box in boxes]
    return Workload(f"{count:,} fences", filters, pa.table({"lat": at[:, 0], "lon": at[:, 1]}))


def _range_selectivity(share: float, equality: float) -> float:
    """How selective ranges must be for `share` to match, where equalities can only be one in a whole number."""
    low, high = 0.0, 1.0
    ways = [math.comb(10, k) * math.comb(10, 3 - k) / math.comb(20, 3) for k in range(4)]
    for _ in range(50):
        middle = (low + high) / 2
        got = sum(way * middle**k * equality ** (3 - k) for k, way in enumerate(ways))
        low, high = (middle, high) if got < share else (low, middle)
    return low


def _conjunction(columns: list[int], lows: list[int], highs: list[int]) -> Filter:
    parts = []
    for column, low, high in zip(columns, lows, highs, strict=True):
        name = ATTRIBUTES[column]
        parts.append(attribute(name, equ(_word(low)) if name in WORDS else rng(low, high)))
    return filter_of(*parts)


def _word(number: int) -> str:
    return f"value-{number:04d}"


def _table(numbers: np.ndarray[Any, Any]) -> pa.Table:
    columns: dict[str, Any] = {}
    for i, name in enumerate(ATTRIBUTES):
        if name in WORDS:
            columns[name] = pa.array([_word(n) for n in numbers[:, i].tolist()])
        else:
            columns[name] = pa.array(numbers[:, i])
    return pa.table(columns)


def _events(dice: Dice, count: int, *, values: int = 10, present: float = 1.0) -> pa.Table:
    numbers = dice.integers(0, DOMAIN, (count, len(ATTRIBUTES)))
    numbers[:, len(RANGES) :] = dice.integers(0, values, (count, len(SMALL) + len(WORDS)))
    table = _table(numbers)
    if present == 1.0:
        return table
    columns = {
        name: pa.array(
            [
                v if here else None
                for v, here in zip(table[name].to_pylist(), dice.random(count) < present, strict=True)
            ],
            type=table[name].type,
        )
        for name in ATTRIBUTES
    }
    return pa.table(columns)


def _choose(dice: Dice, names: list[str], count: int) -> list[str]:
    return [names[i] for i in dice.choice(len(names), size=count, replace=False)]


def _plain(dice: Dice, name: str, selectivity: float = 0.1) -> AttributeFilter:
    if name in WORDS:
        return attribute(name, equ(_word(int(dice.integers(0, round(1 / selectivity))))))
    if name in SMALL:
        return attribute(name, equ(int(dice.integers(0, round(1 / selectivity)))))
    width = round(selectivity * DOMAIN)
    low = int(dice.integers(0, DOMAIN - width))
    return attribute(name, rng(low, low + width - 1))


def mixed_counts(subscriptions: int, events: int, seed: int = 2) -> Workload:
    dice = np.random.default_rng(seed)
    counts = dice.integers(1, 9, subscriptions).tolist()
    filters = [
        filter_of(*(_plain(dice, name, 0.03 if count == 1 else 0.1 if count == 2 else 0.3) for name in names))
        for count in counts
        for names in [_choose(dice, ATTRIBUTES, count)]
    ]
    return Workload("1 to 8 predicates each", filters, _events(dice, events))


def rare_sets(subscriptions: int, events: int, seed: int = 3) -> Workload:
    """Five thousand attribute names; every event carries twenty of them and a subscription asks for three."""
    dice = np.random.default_rng(seed)
    names = [f"a{i:04d}" for i in range(5_000)]
    groups = [_choose(dice, names, 20) for _ in range(2_000)]
    filters = []
    for _ in range(subscriptions):
        chosen = _choose(dice, groups[int(dice.integers(len(groups)))], 3)
        filters.append(filter_of(*(attribute(n, gre(int(dice.integers(0, DOMAIN)))) for n in chosen)))
    columns: dict[str, list[int | None]] = {name: [None] * events for name in names}
    for row in range(events):
        for name in groups[int(dice.integers(len(groups)))]:
            columns[name][row] = int(dice.integers(0, DOMAIN))
    return Workload(
        "5,000 attribute names, rare sets", filters, pa.table({n: pa.array(c, pa.int64()) for n, c in columns.items()})
    )


def skewed(subscriptions: int, events: int, seed: int = 4) -> Workload:
    """Values and constants follow a Zipf law: a few values are everywhere."""
    dice = np.random.default_rng(seed)

    def zipf(size: int) -> np.ndarray[Any, Any]:
        return np.minimum(dice.zipf(1.3, size) - 1, 999)

    table = {name: zipf(events) for name in ATTRIBUTES}
    filters = []
    for _ in range(subscriptions):
        parts = []
        for name, value in zip(_choose(dice, ATTRIBUTES, 3), zipf(3).tolist(), strict=True):
            parts.append(
                attribute(
                    name,
                    equ(_word(value)) if name in WORDS else rng(value, value + 2) if name in RANGES else equ(value),
                )
            )
        filters.append(filter_of(*parts))
    columns = {n: pa.array([_word(v) for v in c.tolist()]) if n in WORDS else pa.array(c) for n, c in table.items()}
    return Workload("Zipf values", filters, pa.table(columns))


def floats(subscriptions: int, events: int, seed: int = 5) -> Workload:
    """Every constant is a float of its own: nothing is shared between subscriptions."""
    dice = np.random.default_rng(seed)
    filters = []
    for _ in range(subscriptions):
        parts = []
        for name in _choose(dice, RANGES, 3):
            low = float(dice.random())
            parts.append(attribute(name, rng(low, low + 0.1)))
        filters.append(filter_of(*parts))
    return Workload("float ranges, no constant twice", filters, pa.table({n: dice.random(events) for n in RANGES}))


def like_patterns(subscriptions: int, events: int, seed: int = 6) -> Workload:
    dice = np.random.default_rng(seed)
    letters = np.array(list(string.ascii_lowercase[:12]))

    def word(length: int) -> str:
        return "".join(dice.choice(letters, length))

    shapes: list[Callable[[], AnyPredicate]] = [
        lambda: stw(word(3)),
        lambda: end(word(3)),
        lambda: contains(word(3)),
        lambda: like(f"{word(1)}%{word(2)}%"),
        lambda: like(f"%{word(1)}_{word(1)}%{word(1)}"),
    ]
    filters = []
    for _ in range(subscriptions):
        one, other = _choose(dice, WORDS, 2)
        parts = [attribute(one, shapes[int(dice.integers(len(shapes)))]())]
        if dice.random() < 0.5:
            parts.append(attribute(other, shapes[int(dice.integers(len(shapes)))]()))
        filters.append(filter_of(*parts))
    return Workload("LIKE of five shapes", filters, pa.table({n: [word(20) for _ in range(events)] for n in WORDS}))


def negations(subscriptions: int, events: int, seed: int = 7) -> Workload:
    """Each subscription has one narrow range and two refusals: <>, NOT LIKE."""
    dice = np.random.default_rng(seed)
    filters = []
    for _ in range(subscriptions):
        refused = _word(int(dice.integers(0, 10)))
        no: list[AnyPredicate | None] = [neq(refused), lacks(refused[-2:]), unlike(f"{refused[:-1]}%")]
        text = no[int(dice.integers(3))]
        assert text is not None
        small = int(dice.integers(0, 10))
        filters.append(
            filter_of(
                _plain(dice, RANGES[int(dice.integers(10))], 0.003),
                attribute(WORDS[int(dice.integers(6))], text),
                attribute(SMALL[int(dice.integers(4))], neq(small)),
            )
        )
    return Workload("NOT: <>, NOT LIKE", filters, _events(dice, events))


def in_lists(subscriptions: int, events: int, seed: int = 8) -> Workload:
    dice = np.random.default_rng(seed)
    filters = []
    for _ in range(subscriptions):
        one, other = _choose(dice, WORDS, 2)
        some = [equ(_word(int(v))) for v in dice.choice(100, 5, replace=False)]
        more = [equ(_word(int(v))) for v in dice.choice(100, 8, replace=False)]
        filters.append(
            filter_of(attribute(one, *some), attribute(other, *more), _plain(dice, RANGES[int(dice.integers(10))], 0.3))
        )
    return Workload("IN lists of 5 and 8", filters, _events(dice, events, values=100))


def absent(subscriptions: int, events: int, seed: int = 9) -> Workload:
    dice = np.random.default_rng(seed)
    filters = [
        filter_of(*(_plain(dice, name, 0.3) for name in _choose(dice, ATTRIBUTES, 3))) for _ in range(subscriptions)
    ]
    return Workload("three in four attributes absent", filters, _events(dice, events, values=3, present=0.25))


def areas(subscriptions: int, events: int, seed: int = 10) -> Workload:
    """Circles and boxes over a city of 40 by 40 km, 20 m to 1 km across, and points all over it."""
    dice = np.random.default_rng(seed)
    lat0, lon0, span = 37.6, -122.6, 0.36
    filters = []
    for i in range(subscriptions):
        lat, lon = lat0 + span * dice.random(), lon0 + span * dice.random()
        radius = float(20 + 480 * dice.random())
        half = radius / 111_195
        area = Circle(lat, lon, radius) if i % 2 else Box(lat - half, lon - half, lat + half, lon + half)
        filters.append(filter_of(attribute("lat,lon", Within(area))))
    points = {"lat": lat0 + span * dice.random(events), "lon": lon0 + span * dice.random(events)}
    return Workload("areas: circles and boxes", filters, pa.table(points))


EQUAL = ("carrier", "origin", "dest")
NEAR = {"dep_delay": 15, "arr_delay": 20, "distance": 200, "air_time": 30, "hour": 2, "month": 1}


def flights(subscriptions: int, events: int, data: Path, seed: int = 11) -> Workload:
    """Real events (departures from New York in 2013) and subscriptions widened from some of them."""
    dice = np.random.default_rng(seed)
    table = flights_table(data)
    rows = table.take(dice.integers(0, len(table), subscriptions)).to_pylist()
    start = int(dice.integers(0, max(len(table) - events, 1)))
    filters = [widened(dice, row) for row in rows]
    return Workload("NYC flights, widened from events", filters, table.slice(start, events))


def flights_table(data: Path) -> pa.Table:
    """The flights of the shared data; raises `FileNotFoundError` where they are not in this folder."""
    table = pq.read_table(data / FLIGHTS).drop_columns(["time_hour"])
    # Spark hands text to Python in this form, and a benchmark should not measure two.
    texts = {field.name: pa.string() for field in table.schema if pa.types.is_large_string(field.type)}
    return table.cast(pa.schema([(field.name, texts.get(field.name, field.type)) for field in table.schema]))


def widened(dice: Dice, row: dict[str, Any]) -> Filter:
    names = [n for n in (*EQUAL, *NEAR) if row[n] is not None]
    parts = []
    for name in _choose(dice, names, 3):
        value, slack = row[name], NEAR.get(name)
        parts.append(attribute(name, equ(value) if slack is None else rng(value - slack, value + slack)))
    return filter_of(*parts)


SHAPES = (mixed_counts, rare_sets, skewed, floats, like_patterns, negations, in_lists, absent, areas)
"""One workload for each way in which real subscriptions differ from the reference."""

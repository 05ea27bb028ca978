"""Deliveries found by Spark beside those that the filters themselves decide."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from godwit.events import Value
from godwit.filters.text import parse
from godwit.pipeline.errors import PipelineError, SchemaError
from godwit.pipeline.io.reading import Dataset, checked
from godwit.pipeline.match.deliveries import _cuts, _rows, deliveries, key_of, unreadable
from godwit.pipeline.match.subscriptions import Compiled, Shipper
from godwit.pipeline.schemas import SUBSCRIPTIONS

WHOLE = [0, 1, -1, 7, 2**31, 2**53 + 1, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 0.1, 1.0, -1.5, 7.0, 1e300, 5e-324]
STRINGS = ["", "a", "ab", "it's", "a\\b", "50%", "a_b", "x\ny", "é", "e\u0301", "🐦", "NaN", "5"]
PATTERNS = ["a%", "%b", "_", "a\\_b", "%"]
POOLS: dict[str, list[Any]] = {
    "i": WHOLE,
    "d": [*FLOATS, math.inf, -math.inf, math.nan],
    "s": STRINGS,
    "odd `name.x": STRINGS,
    "b": [True, False],
    "lat": [-90.0, -45.5, -0.1, 0.0, 45.5, 89.9, 90.0, 91.0],
    "lon": [-180.0, -179.9, 0.0, 0.1, 116.42, 179.9, 180.0, 270.0, 361.0],
}
TYPES = dict(zip(POOLS, (pa.int64(), pa.float64(), *[pa.string()] * 2, pa.bool_(), *[pa.float64()] * 2), strict=True))


def subscriptions(spark: SparkSession, filters: dict[str, str]) -> Dataset:
    frame = spark.createDataFrame(list(filters.items()) or [], SUBSCRIPTIONS)
    return checked(frame, SUBSCRIPTIONS, "subscriptions")


@pytest.fixture
def shipper(spark: SparkSession) -> Shipper:
    return Shipper(spark)


def pairs(found: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, found.collect()))


def literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def some_predicate(dice: random.Random) -> str:
    name = dice.choice(list(POOLS))
    column = f'"{name}"'
    value = literal(dice.choice([*WHOLE, *FLOATS, *STRINGS, True, False]))
    words = literal(dice.choice(STRINGS))
    centre = f"{dice.choice([0, 45.5, -90, 89.95])}, {dice.choice([0.05, 116, 179.95, -180])}"
    return dice.choice(
        [
            f"{column} IS {dice.choice(['', 'NOT '])}NULL",
            f"{column} {dice.choice(['=', '<>'])} {value}",
            f"{column} IN ({value})",
            f"{dice.choice(['i', 'd', 'lat'])} {dice.choice(['<', '<=', '>', '>='])} {dice.choice(WHOLE + FLOATS)!r}",
            f"d BETWEEN {dice.choice([-1.5, 0])} AND {dice.choice([1, 7.0])}",
            f"{dice.choice('id')} {dice.choice(['=', '<>', '<', '>='])} {dice.choice(['d', 'lat'])}",
            f"{dice.choice(['startswith', 'endswith', 'contains'])}(s, {words})",
            f"s LIKE '{dice.choice(PATTERNS)}'",
            f's {dice.choice(["=", "<>"])} "odd `name.x"',
            f"within(lat, lon, {centre}, {dice.choice([1, 50, 5000, 12000])}km)",
            f"within_box(lat, lon, -45.5, {dice.choice([-90, 170, 0])}, 90, {dice.choice([-90, 179.9, 0.05])})",
        ]
    )


def some_filter(dice: random.Random, depth: int = 2) -> str:
    if depth == 0 or dice.random() < 0.3:
        return dice.choice(["", "NOT "]) + some_predicate(dice)
    parts = [f"({some_filter(dice, depth - 1)})" for _ in range(2)]
    return dice.choice(["", "NOT "]) + f"({dice.choice([' AND ', ' OR ']).join(parts)})"


def some_events(dice: random.Random, count: int) -> list[dict[str, Value]]:
    return [{name: dice.choice(pool) for name, pool in POOLS.items() if dice.random() < 0.7} for _ in range(count)]


@pytest.fixture(scope="module")
def filters() -> dict[str, str]:
    dice = random.Random(6)
    return {f"f{at}": some_filter(dice) for at in range(400)} | {"all": "TRUE", "none": "FALSE"}


def expected(events: list[dict[str, Value]], filters: dict[str, str]) -> list[tuple[Any, ...]]:
    """An event with a number that is none goes to quarantine, and to nobody else."""
    parsed = {name: parse(text) for name, text in filters.items()}
    sound = [(at, event) for at, event in enumerate(events) if all(map(is_sound, event.values()))]
    return sorted((at, name) for at, event in sound for name, one in parsed.items() if one.matches(event))


def is_sound(value: Value) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("part_max", [10**6, 150])
def test_columns_match_as_the_broker_matches(spark: SparkSession, filters: dict[str, str], part_max: int) -> None:
    events = some_events(random.Random(7), 200)
    schema = pa.schema([("id", pa.int64()), *TYPES.items()])
    table = pa.Table.from_pylist([{"id": at, **event} for at, event in enumerate(events)], schema=schema)
    compiled = Shipper(spark, part_max).ship(subscriptions(spark, filters))
    assert len(compiled.parts) == (1 if part_max > 400 else 3)
    found = deliveries(spark.createDataFrame(table), compiled, ["id"])
    assert pairs(found) == expected(events, filters)


@pytest.mark.parametrize("part_max", [10**6, 150])
def test_files_that_workers_read_match_as_the_broker_matches(
    spark: SparkSession, filters: dict[str, str], part_max: int, tmp_path: Path
) -> None:
    events = some_events(random.Random(9), 200)
    schema = pa.schema([("id", pa.int64()), *TYPES.items()])
    table = pa.Table.from_pylist([{"id": at, **event} for at, event in enumerate(events)], schema=schema)
    for name, rows in (("a b", table.slice(0, 120)), ("c", table.slice(120))):
        pq.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=50)
    frame = spark.read.parquet(str(tmp_path))
    found = deliveries(frame, Shipper(spark, part_max).ship(subscriptions(spark, filters)), ["id"], is_as_filed=True)
    assert "Scan" not in found._jdf.queryExecution().executedPlan().toString(), "Spark reads the events itself"
    assert pairs(found) == expected(events, filters)


@given(st.lists(st.integers(0, 30)), st.integers(1, 7))
def test_lists_have_every_delivery_once_and_are_bounded(counts: list[int], most: int) -> None:
    offsets = np.cumsum([0, *counts])
    events, begins = _rows(offsets, most)
    lengths = np.diff(begins)
    assert np.repeat(events, lengths).tolist() == np.repeat(np.arange(len(counts)), counts).tolist()
    assert all(0 < length <= most for length in lengths)


@given(st.lists(st.integers(1, 9)), st.integers(1, 20))
def test_batches_have_every_list_once_and_are_bounded(lengths: list[int], most: int) -> None:
    begins = np.cumsum([0, *lengths])
    cuts = _cuts(begins, most)
    assert (cuts[0], cuts[-1]) == (0, len(lengths))
    assert all(sum(lengths[first:end]) < most + 9 for first, end in pairwise(cuts))


def test_archived_events_match_as_the_broker_matches(
    spark: SparkSession, shipper: Shipper, filters: dict[str, str]
) -> None:
    """In JSON an attribute may be of another kind in every event."""
    dice = random.Random(8)
    finite = {
        name: [one for one in pool if not isinstance(one, float) or math.isfinite(one)] for name, pool in POOLS.items()
    }
    anything = [value for pool in finite.values() for value in pool]
    events = [
        {name: dice.choice([*pool, *anything]) for name, pool in finite.items() if dice.random() < 0.7}
        for _ in range(200)
    ]
    rows = [("p", at, json.dumps(event)) for at, event in enumerate(events)]
    frame = spark.createDataFrame(rows, "publisher string, sequence long, attributes string")
    found = deliveries(frame, shipper.ship(subscriptions(spark, filters)), key_of(frame))
    assert [(at, name) for _, at, name in pairs(found)] == expected(events, filters)


def test_times_are_seconds_and_decimals_are_numbers(spark: SparkSession, shipper: Shipper) -> None:
    frame = spark.sql(
        "SELECT 1 AS id, TIMESTAMP '1970-01-02 00:00:00.5' AS at, DATE '1970-01-02' AS day, 1.50 AS price"
        " UNION ALL SELECT 2, NULL, NULL, NULL"
    )
    wanted = {"t": "at = 86400.5", "d": "day = 86400", "p": "price = 1.5", "n": "at IS NULL AND price IS NULL"}
    found = deliveries(frame, shipper.ship(subscriptions(spark, wanted)), ["id"])
    assertDataFrameEqual(
        found, spark.createDataFrame([(1, "t"), (1, "d"), (1, "p"), (2, "n")], "id long, subscription string")
    )


def test_a_bad_filter_goes_to_quarantine_and_the_others_match(spark: SparkSession, shipper: Shipper) -> None:
    compiled = shipper.ship(subscriptions(spark, {"good": "a > 1", "bad": "a >"}))
    assert compiled.count == 1
    (row,) = compiled.quarantine(spark).collect()
    assert row["dataset"] == "subscriptions"
    assert "filter, column" in row["reason"]
    assert json.loads(row["record"]) == {"id": "bad", "filter": "a >"}


def test_attributes_that_are_no_object_go_to_quarantine(spark: SparkSession) -> None:
    rows = [("p", 1, '{"a": 1}'), ("p", 2, "[1]"), ("p", 3, "{"), ("p", 4, None)]
    frame = spark.createDataFrame(rows, "publisher string, sequence long, attributes string")
    bad = [json.loads(row["record"])["sequence"] for row in unreadable(frame).collect()]
    assert sorted(bad) == [2, 3, 4]


def test_nobody_subscribes_and_nothing_is_delivered(spark: SparkSession, shipper: Shipper) -> None:
    compiled: Compiled = shipper.ship(subscriptions(spark, {}))
    found = deliveries(spark.createDataFrame([(1, 2)], "id int, a int"), compiled, ["id"])
    assert found.columns == ["id", "subscription"]
    assert found.count() == 0


def test_equal_subscriptions_are_shipped_once(spark: SparkSession, shipper: Shipper) -> None:
    first = shipper.ship(subscriptions(spark, {"x": "a = 1", "y": "b = 2"}))
    assert shipper.ship(subscriptions(spark, {"y": "b = 2", "x": "a = 1"})) is first


def test_an_event_must_have_a_name(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "a int, subscription int")
    with pytest.raises(PipelineError, match="--key must name the columns that tell events apart"):
        key_of(frame)
    with pytest.raises(SchemaError, match="there is no column 'z'"):
        key_of(frame, ["z"])
    with pytest.raises(SchemaError, match="rename it"):
        key_of(frame, ["subscription"])


def test_a_filter_on_what_cannot_be_matched_names_the_column(spark: SparkSession, shipper: Shipper) -> None:
    frame = spark.sql("SELECT 1 AS id, array(1) AS a")
    with pytest.raises(SchemaError, match="column 'a' is array<int>; filters test only numbers"):
        deliveries(frame, shipper.ship(subscriptions(spark, {"x": "a = 1"})), ["id"])

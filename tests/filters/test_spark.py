"""Conditions for Spark against the filters that they stand for: the same events as rows of a real session."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from godwit.events import INT_MAX, INT_MIN, Value
from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter, FilterSet, attribute, filter_of
from godwit.filters.predicates import Kind, Text, TextOp, equ
from godwit.filters.spark import to_spark
from godwit.filters.text import parse

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import coalesce, expr, lit

COLUMNS = {
    "i": (pa.int64(), Kind.NUMBER),
    "d": (pa.float64(), Kind.NUMBER),
    "s": (pa.string(), Kind.STRING),
    "odd `name.x": (pa.string(), Kind.STRING),
    "b": (pa.bool_(), Kind.BOOL),
    "lat": (pa.float64(), Kind.NUMBER),
    "lon": (pa.float64(), Kind.NUMBER),
}
KINDS = {name: kind for name, (_, kind) in COLUMNS.items()}

WHOLE = [0, 1, -1, 7, 2**31, 2**53 + 1, -(2**53) - 1, INT_MAX, INT_MIN]
FLOATS = [0.0, 0.1, 1.0, -1.5, 7.0, 1e300, -5e-324, math.inf, -math.inf, math.nan]
STRINGS = [
    "",
    "a",
    "ab",
    "it's",
    "a\\b",
    "\\",
    "50%",
    "a_b",
    "x\ny",
    "\t\r",
    "é",
    "e\u0301",
    "🐦",
    "a🐦b",
    '"',
    "`",
    "NaN",
    "5",
]
DEGREES = [-90.0, -45.5, -0.1, 0.0, 0.1, 45.5, 89.9, 90.0, 91.0, math.nan]
MERIDIANS = [-180.0, -179.9, -90.0, 0.0, 0.1, 116.42, 179.9, 180.0, 180.1, 270.0, 360.0, 361.0]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Value]]:
    """Every value of every column in some row, beside chance neighbors, and a third of everything missing."""
    dice = random.Random(2)
    pools: dict[str, list[Any]] = dict(
        zip(COLUMNS, (WHOLE, FLOATS, STRINGS, STRINGS, [True, False], DEGREES, MERIDIANS), strict=True)
    )
    drawn = [{name: dice.choice(pool) for name, pool in pools.items() if dice.random() < 0.7} for _ in range(150)]
    drawn += [{name: value} for name, pool in pools.items() for value in pool]
    return drawn + [{"lat": lat, "lon": lon} for lat, lon in product(DEGREES, MERIDIANS)] + [{}]


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: list[dict[str, Value]]) -> DataFrame:
    schema = pa.schema([(name, of_type) for name, (of_type, _) in COLUMNS.items()])
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema)).coalesce(1).cache()


def matched(frame: DataFrame, conditions: list[str]) -> list[list[bool]]:
    """For each row whether each condition holds there, all asked in one job."""
    asked = [coalesce(expr(condition), lit(False)).alias(str(at)) for at, condition in enumerate(conditions)]
    return [list(row) for row in frame.select(*asked).collect()]


def check(
    frame: DataFrame, rows: list[dict[str, Value]], filters: list[FilterSet], kinds: dict[str, Kind] | None
) -> None:
    conditions = [to_spark(one, kinds) for one in filters]
    for row, found in zip(rows, matched(frame, conditions), strict=True):
        for one, condition, here in zip(filters, conditions, found, strict=True):
            assert here is one.matches(row), (row, one, condition)


def literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    assert isinstance(value, int | float)
    return ("-" if value < 0 else "") + "INFINITY" if math.isinf(value) else repr(value)


def quoted(name: str) -> str:
    return f'"{name}"'


def some_predicate(dice: random.Random, typed: bool) -> str:
    """One of any sort; where `typed`, of the kind of its column."""
    name = dice.choice(list(COLUMNS))
    kind = KINDS[name] if typed else dice.choice([Kind.NUMBER, Kind.STRING, Kind.BOOL])
    column = quoted(name)
    values: list[Any] = [True, False]
    if kind is Kind.NUMBER:
        values = [v for v in (WHOLE if name == "i" else []) + FLOATS if not math.isnan(v)]
        values = [v for v in values if abs(v) < 2**53 or isinstance(v, int) or name != "i"]
    if kind is Kind.STRING:
        values = STRINGS
    general = [
        f"{column} IS {dice.choice(['', 'NOT '])}NULL",
        f"{column} {dice.choice(['=', '<>'])} {literal(dice.choice(values))}",
        f"{column} {dice.choice(['', 'NOT '])}IN ({', '.join(literal(dice.choice(values)) for _ in range(3))})",
    ]
    signs = ["=", "<>", "<", "<=", ">", ">="]
    numeric = [
        f"{column} {dice.choice(signs[2:])} {literal(dice.choice(values))}",
        "{} BETWEEN {} AND {}".format(column, *map(literal, sorted(dice.choices(values, k=2)))),
        f"{dice.choice('id')} {dice.choice(signs)} {dice.choice(['d', 'lat'])}",
    ]
    textual = [
        f"{dice.choice(['startswith', 'endswith', 'contains'])}({column}, {literal(dice.choice(values))})",
        f"{column} {dice.choice(['', 'NOT '])}LIKE {literal(some_pattern(dice))}",
        f's {dice.choice(["=", "<>"])} "odd `name.x"',
        f'{dice.choice(["startswith", "endswith", "contains"])}(s, "odd `name.x")',
    ]
    centre = f"{dice.choice([0, 45.5, -90, 89.95])}, {dice.choice([0.05, 116, 179.95, -180])}"
    west, east = dice.choice([-90, 170, 0]), dice.choice([-90, 179.9, 0.05])
    place = [
        f"within(lat, lon, {centre}, {dice.choice([1, 50, 5000, 12000])}km)",
        f"within_box(lat, lon, -45.5, {west}, {dice.choice([45.5, 90])}, {east})",
    ]
    return dice.choice([*general, *{Kind.NUMBER: numeric, Kind.STRING: textual}.get(kind, []), dice.choice(place)])


def some_pattern(dice: random.Random) -> str:
    return "".join(
        dice.choice(["a", "b", "%", "_", "\\%", "\\_", "\\\\", "é", "🐦", "'", "\n"]) for _ in range(dice.randint(0, 4))
    )


def some_condition(dice: random.Random, typed: bool, depth: int = 2) -> str:
    if depth == 0 or dice.random() < 0.3:
        return dice.choice(["", "NOT "]) + some_predicate(dice, typed)
    parts = [f"({some_condition(dice, typed, depth - 1)})" for _ in range(2)]
    return dice.choice(["", "NOT "]) + f"({dice.choice([' AND ', ' OR ']).join(parts)})"


def filters_drawn(seed: int, count: int, typed: bool) -> list[FilterSet]:
    dice = random.Random(seed)
    return [parse(some_condition(dice, typed)) for _ in range(count)]


@pytest.mark.feature("content-routing F4")
def test_a_row_satisfies_the_condition_exactly_where_the_event_matches(
    frame: DataFrame, rows: list[dict[str, Value]]
) -> None:
    check(frame, rows, filters_drawn(1, 250, typed=False), KINDS)


def test_without_kinds_the_columns_are_taken_to_be_of_the_kinds_asked_for(
    frame: DataFrame, rows: list[dict[str, Value]]
) -> None:
    check(frame, rows, filters_drawn(2, 100, typed=True), None)


def test_an_attribute_without_a_column_is_missing_everywhere(frame: DataFrame, rows: list[dict[str, Value]]) -> None:
    texts = [
        "z IS NULL",
        "z IS NOT NULL",
        "NOT z = 1",
        "i = z OR z > i",
        "within(z, lon, 0, 0, 9km)",
        "z IS NULL OR z = i",
    ]
    check(frame, rows, [parse(text) for text in texts], KINDS)


def test_another_kind_is_false_and_never_cast() -> None:
    assert to_spark(parse("s = 5 OR b = 'TRUE' OR i = '5' OR i = s OR startswith(i, s)"), KINDS) == "FALSE"
    assert to_spark(parse("within(s, lon, 0, 0, 5km)"), KINDS) == "FALSE"


def test_where_takes_the_condition_compiled_too(spark: SparkSession) -> None:
    compiling = spark.newSession()
    compiling.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    compiling.conf.set("spark.sql.codegen.wholeStage", "true")
    events = {"kind": ["reading", "reading", "alarm"], "pm25": [160.0, math.nan, 200.0]}
    frame = compiling.createDataFrame(pa.table(events))
    found = frame.where(to_spark(parse("kind = 'reading' AND pm25 > 150"))).collect()
    assert [tuple(row) for row in found] == [("reading", 160.0)]


def test_everything_nothing_and_rates_are_conditions_too() -> None:
    assert to_spark(FilterSet()) == "FALSE"
    assert to_spark(Filter()) == to_spark(parse("TRUE")) == to_spark(parse("rate(5)")) == "TRUE"
    assert to_spark(filter_of(attribute("a", equ(1)))) == "`a` = 1"


def test_half_a_surrogate_pair_is_no_string_of_spark() -> None:
    with pytest.raises(FilterError, match="half a surrogate pair"):
        to_spark(filter_of(attribute("s", Text(TextOp.EQU, "\ud800"))))

"""Filters as conditions of Spark SQL, for rows that hold one event each, an attribute in a column of its name.

A row where the filter matches makes the condition true; any other makes it false or null, which WHERE takes alike. NaN
matches nothing here although Spark orders it above all numbers and equal to itself, a null is a missing attribute, and
no value is ever cast to another kind. What Spark cannot say exactly:

- A column of 64-bit integers against a float of 2^63 or more, or against a column of floats, and a column of floats
  against a whole number beyond 2^53, are compared as 64-bit floats.
- The JVM's sine may differ from ours in the last bit: a place closer to the rim of a circle than a micrometre may be
  decided differently.
- Spark does not tell apart columns whose names differ in letter case alone, unless `spark.sql.caseSensitive` is set.
- Strings are compared by their bytes, as long as the column has no other collation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from godwit.filters import patterns
from godwit.filters.areas import EARTH_RADIUS_M, HALF_WAY_ROUND_M, Area, Box, Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import (
    ABOVE_ALL,
    ABSENT,
    BELOW_ALL,
    VERSUS_KIND,
    Absent,
    AnyPredicate,
    Exists,
    Flag,
    Hole,
    Interval,
    Kind,
    Number,
    Outside,
    Text,
    TextOp,
    Versus,
    VersusOp,
    Within,
    number,
)

TRUE, FALSE = "TRUE", "FALSE"

Kinds = Mapping[str, Kind]


def to_spark(filters: FilterSet | Filter, kinds: Kinds | None = None) -> str:
    """The condition for `DataFrame.where`, true exactly where the filters match.

    `kinds` says of which kind each column is, and that there are no others: what asks for another kind is FALSE, and an
    attribute without a column is missing everywhere. Without it every attribute must have a column, of the kind that
    the filter asks for. A rate is no condition on rows and left out.
    """
    each = (filters,) if isinstance(filters, Filter) else filters.filters
    condition = _any_of([_all_of([_clause(own, kinds) for own in one]) for one in each])
    return condition[1:-1] if condition.startswith("(") else condition


def _all_of(conditions: Iterable[str]) -> str:
    """Their conjunction, which can stand anywhere; so can what the other functions here return."""
    wanted = [condition for condition in conditions if condition != TRUE]
    if FALSE in wanted:
        return FALSE
    return wanted[0] if len(wanted) == 1 else f"({' AND '.join(wanted)})" if wanted else TRUE


def _any_of(conditions: Iterable[str]) -> str:
    wanted = [condition for condition in conditions if condition != FALSE]
    if TRUE in wanted:
        return TRUE
    return wanted[0] if len(wanted) == 1 else f"({' OR '.join(wanted)})" if wanted else FALSE


def _clause(own: AttributeFilter, kinds: Kinds | None) -> str:
    if own.kind is Kind.RATE:
        return TRUE
    if own.kind is Kind.PLACE:
        return _place(own, kinds)
    if kinds is not None and own.name not in kinds:
        return TRUE if ABSENT in own.clause else FALSE
    if kinds is not None and own.kind not in (Kind.ANY, kinds[own.name]):
        return FALSE
    listed = [p for p in own.clause if _is_listed(p)]
    rest = [p for p in own.clause if not (len(listed) > 1 and _is_listed(p))]
    values = ", ".join(map(_listed_value, listed))
    together = [f"{_column(own.name)} IN ({values})"] if len(listed) > 1 else []
    return _any_of([*together, *(_predicate(own, p, kinds) for p in rest)])


def _is_listed(predicate: AnyPredicate) -> bool:
    """Only whole numbers, and strings: a float in the list would turn a column of integers into one of floats."""
    match predicate:
        case Interval((int(low), 0), (high, 1)):
            return low == high
        case Text(TextOp.EQU, _):
            return True
    return False


def _listed_value(predicate: AnyPredicate) -> str:
    if isinstance(predicate, Interval):
        return _number(predicate.lo[0])
    assert isinstance(predicate, Text)
    return _string(predicate.operand)


def _predicate(own: AttributeFilter, predicate: AnyPredicate, kinds: Kinds | None) -> str:
    column = _column(own.name)
    match predicate:
        case Exists():
            return _all_of([f"{column} IS NOT NULL", _not_nan(own.name, own.kind, kinds)])
        case Absent():
            return f"{column} IS NULL"
        case Interval():
            return _interval(column, predicate)
        case Hole(value):
            return _all_of([f"{column} <> {_number(value)}", f"NOT isnan({column})"])
        case Text(op, operand):
            return _TEXTS[op](column, operand)
        case Flag(value):
            return f"{column} = {TRUE if value else FALSE}"
        case Versus():
            return _versus(own, predicate, kinds)
    raise FilterError(f"attribute {own.name!r}: no Spark condition says {predicate!r}")


def _not_nan(name: str, kind: Kind, kinds: Kinds | None) -> str:
    kind = kinds.get(name, kind) if kinds is not None else kind
    column = _column(name)
    if kind is Kind.NUMBER:
        return f"NOT isnan({column})"
    # Of an unknown type: what is not a float must not be cast to one, and Spark folds the first half away.
    unknown = f"(typeof({column}) NOT IN ('float', 'double') OR NOT isnan(try_cast({column} AS DOUBLE)))"
    return unknown if kind is Kind.ANY else TRUE


def _interval(column: str, interval: Interval) -> str:
    (low, after_low), (high, after_high) = interval.lo, interval.hi
    if low == high:
        return f"{column} = {_number(low)}"
    above = f"{column} {'>' if after_low else '>='} {_number(low)}" if interval.lo > BELOW_ALL else TRUE
    below = f"{column} {'<=' if after_high else '<'} {_number(high)}" if interval.hi < ABOVE_ALL else TRUE
    return _all_of([above, below if below != TRUE else f"NOT isnan({column})"])


_TEXTS: dict[TextOp, Callable[[str, str], str]] = {
    TextOp.EQU: lambda column, operand: f"{column} = {_string(operand)}",
    TextOp.NEQ: lambda column, operand: f"{column} <> {_string(operand)}",
    TextOp.STW: lambda column, operand: f"startswith({column}, {_string(operand)})",
    TextOp.END: lambda column, operand: f"endswith({column}, {_string(operand)})",
    TextOp.IN: lambda column, operand: f"contains({column}, {_string(operand)})",
    TextOp.NIN: lambda column, operand: f"NOT contains({column}, {_string(operand)})",
    TextOp.LIKE: lambda column, operand: f"{column} LIKE {_pattern(operand)}",
    TextOp.NLIKE: lambda column, operand: f"{column} NOT LIKE {_pattern(operand)}",
}

_COMPARISONS = {
    VersusOp.EQU: "{} = {}",
    VersusOp.NEQ: "{} <> {}",
    VersusOp.GR: "{} > {}",
    VersusOp.GRE: "{} >= {}",
    VersusOp.LT: "{} < {}",
    VersusOp.LTE: "{} <= {}",
    VersusOp.IN: "contains({}, {})",
    VersusOp.NIN: "NOT contains({}, {})",
    VersusOp.STW: "startswith({}, {})",
    VersusOp.NSTW: "NOT startswith({}, {})",
    VersusOp.END: "endswith({}, {})",
    VersusOp.NEND: "NOT endswith({}, {})",
}


def _versus(own: AttributeFilter, predicate: Versus, kinds: Kinds | None) -> str:
    kind = VERSUS_KIND.get(predicate.op, own.kind)
    if kinds is not None:
        kind = kinds[own.name]
        if kinds.get(predicate.other) is not kind or VERSUS_KIND.get(predicate.op, kind) is not kind:
            return FALSE
    comparison = _COMPARISONS[predicate.op].format(_column(own.name), _column(predicate.other))
    return _all_of([comparison, *(_not_nan(name, kind, None) for name in (own.name, predicate.other))])


def _place(own: AttributeFilter, kinds: Kinds | None) -> str:
    lat_name, _, lon_name = own.name.partition(",")
    if kinds is not None and not kinds.get(lat_name) is kinds.get(lon_name) is Kind.NUMBER:
        return FALSE
    lat, lon = _column(lat_name), _column(lon_name)
    inside = [_area(lat, lon, p) for p in own.clause]
    return _all_of([f"{lat} BETWEEN -90 AND 90", f"{lon} BETWEEN -180 AND 360", _any_of(inside)])


def _area(lat: str, lon: str, predicate: AnyPredicate) -> str:
    match predicate:
        case Exists():
            return TRUE
        case Within(area):
            return _inside(lat, lon, area)
        case Outside(area):
            return f"NOT ({_inside(lat, lon, area)})"
    raise FilterError(f"no Spark condition says {predicate!r} of a place")


def _inside(lat: str, lon: str, area: Area) -> str:
    wrapped = f"IF({lon} >= 180, {lon} - 360, {lon})"
    frame = area.frame()
    between = f"{lat} BETWEEN {_number(frame.south)} AND {_number(frame.north)}"
    return _all_of([between, _box(wrapped, area) if isinstance(area, Box) else _circle(lat, wrapped, area)])


def _box(lon: str, box: Box) -> str:
    if box.west <= box.east:
        return f"{lon} BETWEEN {_number(box.west)} AND {_number(box.east)}"
    return f"({lon} >= {_number(box.west)} OR {lon} <= {_number(box.east)})"


def _circle(lat: str, lon: str, circle: Circle) -> str:
    """`areas.distance_m` against the radius, operation by operation, so that nothing differs but the last bits."""
    lat0, lon0, radius_m = map(_float, (circle.lat, circle.lon, circle.radius_m))
    cosines = f"{_float(math.cos(math.radians(circle.lat)))} * cos(radians({lat}))"
    half_turn = f"radians({lon} - {lon0}) / 2"
    rise, turn = f"sin(radians({lat} - {lat0}) / 2)", f"sin({half_turn})"
    haversine = f"{rise} * {rise} + {cosines} * {turn} * {turn}"
    if circle.radius_m <= HALF_WAY_ROUND_M / 2:
        return f"{_float(2 * EARTH_RADIUS_M)} * asin(sqrt({haversine})) <= {radius_m}"
    rise, turn = f"sin(radians({lat} + {lat0}) / 2)", f"cos({half_turn})"
    beyond_m = f"{_float(2 * EARTH_RADIUS_M)} * asin(sqrt({rise} * {rise} + {cosines} * {turn} * {turn}))"
    return f"({haversine} <= 0.5D OR {_float(HALF_WAY_ROUND_M)} - {beyond_m} <= {radius_m})"


def _number(value: Number) -> str:
    value = number(value)
    if isinstance(value, float):
        return _float(value)
    return str(value) if -(2**31) <= value < 2**31 else f"{value}L"


def _float(value: float) -> str:
    if math.isinf(value):
        return "double('Infinity')" if value > 0 else "double('-Infinity')"
    return f"{float(value)!r}D"


def _pattern(like: str) -> str:
    return _string(patterns.to_like(patterns.of("like", like)))


def _string(text: str) -> str:
    """A literal as Spark reads it while `spark.sql.parser.escapedStringLiterals` is false, which is the default."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise FilterError(f"{text!r} has half a surrogate pair, which no string of Spark can hold")
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

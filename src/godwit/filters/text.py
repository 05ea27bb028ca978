"""Filters as text: the SQL conditions that JMS selectors made familiar, with areas.

    condition   condition OR condition | condition AND condition | NOT condition | (condition)
                | predicate | TRUE | FALSE                              NOT binds tighter than AND, AND than OR
    predicate   attribute = | <> | != | < | <= | > | >= literal or attribute     the literal may come first
                | attribute                                             the same as attribute = TRUE
                | attribute [NOT] BETWEEN number AND number             both ends count
                | attribute [NOT] IN (literal, ...)
                | attribute [NOT] LIKE text [ESCAPE text]               % any run, _ any one, \\ escapes unless told
                | attribute IS [NOT] NULL
                | startswith | endswith | contains (attribute, text or attribute)
                | within(lat, lon, lat0, lon0, radius)                  degrees; radius in metres, 500m or 5km
                | within_box(lat, lon, south, west, north, east)        degrees; west > east crosses the date line
                | rate(per_second)                                      at most so many notifications a second
    literal     number | 'text' | TRUE | FALSE                          '' is a quote inside a text
    number      12, -1.5, 2.5e-3, INFINITY                              exact to 64 bits, with an exponent a float
    attribute   name, dotted.name, "any name", `any name`               as it is written, letter case included

Values of different kinds never match and are never converted: `a = 1` and `a <> 1` are both unknown, and NOT of either
too, where `a` is missing, a text, or NaN. Only numbers have an order; between attributes `=` and `<>` compare values of
any one kind. A condition means a set of filters, its alternatives, and a rate is one of each alternative it stands in.
"""

from __future__ import annotations

import math
from itertools import pairwise

from godwit.filters import patterns, plain, syntax
from godwit.filters.areas import WORLD, Area, Circle
from godwit.filters.canonical import canonical
from godwit.filters.clauses import AttributeFilter, Clause
from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.meaning import Reader
from godwit.filters.predicates import (
    ABOVE_ALL,
    BELOW_ALL,
    Absent,
    AnyPredicate,
    Exists,
    Flag,
    Hole,
    Interval,
    Kind,
    Number,
    Outside,
    Rate,
    Text,
    TextOp,
    Versus,
    VersusOp,
    Within,
    number,
)
from godwit.filters.syntax import DEFAULT, FilterSyntaxError, Limits

__all__ = ["DEFAULT", "FilterError", "FilterSyntaxError", "Limits", "parse", "to_text"]


def parse(text: str, limits: Limits = DEFAULT) -> FilterSet:
    """The canonical set of filters that the condition means; it matches an event exactly where the condition is true.

    Raises `FilterError` for any other text, and for one that asks for more than `limits` grants.
    """
    found = plain.read(text, limits)
    return found if found is not None else by_grammar(text, limits)


def by_grammar(text: str, limits: Limits = DEFAULT) -> FilterSet:
    """The same by the grammar alone, for texts of every kind."""
    try:
        return canonical(Reader(text, limits).alternatives(syntax.tree(text, limits)))
    except RecursionError:
        raise FilterError("filter: nested too deeply for what is left of the stack") from None


def to_text(filters: FilterSet | Filter) -> str:
    """A condition that means these filters; of canonical ones `parse` gives back the same.

    The text of a large set may be longer than the default limits of `parse` allow.
    """
    alternatives = [found for one in _each(filters) for found in _alternatives(one)]
    if len(alternatives) == 1:
        return " AND ".join(alternatives[0])
    return _any_of(alternatives) if alternatives else "FALSE"


Conjunction = list[str]
"""Conditions to be joined by AND, each of which stands safely between two of them."""


def _each(filters: FilterSet | Filter) -> tuple[Filter, ...]:
    return (filters,) if isinstance(filters, Filter) else filters.filters


def _any_of(alternatives: list[Conjunction]) -> str:
    return " OR ".join(found[0] if len(found) == 1 else f"({' AND '.join(found)})" for found in alternatives)


def _alternatives(one: Filter) -> list[Conjunction]:
    if len(one.attributes) == 1:
        return _disjuncts(one.attributes[0])
    conditions: Conjunction = []
    for own in one:
        disjuncts = _disjuncts(own)
        conditions += disjuncts[0] if len(disjuncts) == 1 else [f"({_any_of(disjuncts)})"]
    return [conditions or ["TRUE"]]


def _disjuncts(own: AttributeFilter) -> list[Conjunction]:
    single = [value for p in own.clause if (value := _single_value(p)) is not None]
    if len(single) < 2:
        holes = _holes(own.clause)
        return [_predicate(own, p) for p in own.clause] if holes is None else [[f"{_name(own.name)} NOT IN ({holes})"]]
    listed = [f"{_name(own.name)} IN ({', '.join(single)})"]
    return [listed, *(_predicate(own, p) for p in own.clause if _single_value(p) is None)]


def _single_value(predicate: AnyPredicate) -> str | None:
    match predicate:
        case Interval((low, 0), (high, 1)) if low == high:
            return _number(low)
        case Text(TextOp.EQU, operand):
            return _quoted(operand)
    return None


def _holes(clause: Clause) -> str | None:
    """The values that a union of intervals leaves out, where it leaves out nothing but two or more single values."""
    intervals = [p for p in clause if isinstance(p, Interval)]
    values = [one.hi[0] for one, other in pairwise(intervals) if one.hi[0] == other.lo[0]]
    if not 1 < len(values) == len(clause) - 1 or (intervals[0].lo, intervals[-1].hi) != (BELOW_ALL, ABOVE_ALL):
        return None
    return ", ".join(map(_number, values))


def _predicate(own: AttributeFilter, predicate: AnyPredicate) -> Conjunction:
    name = _name(own.name) if own.kind not in (Kind.PLACE, Kind.RATE) else ""
    match predicate:
        case Exists():
            return [_anything(own)]
        case Absent():
            return [f"{name} IS NULL"]
        case Interval():
            return _interval(name, predicate)
        case Hole(value):
            return [f"{name} <> {_number(value)}"]
        case Text():
            return [f"{name} {_text(predicate)}"]
        case Flag(value):
            return [f"{name} = {'TRUE' if value else 'FALSE'}"]
        case Versus(op, other):
            return _versus(own, op, other)
        case Within(area):
            return [_area(own.name, area)]
        case Outside(area):
            return [f"NOT {_area(own.name, area)}"]
        case Rate(per_s):
            return [f"rate({_number(per_s)})"]
    raise FilterError(f"attribute {own.name!r}: no text says {predicate!r}")


def _anything(own: AttributeFilter) -> str:
    match own.kind:
        case Kind.NUMBER:
            return f"{_name(own.name)} <= {syntax.INFINITY}"
        case Kind.STRING:
            return f"{_name(own.name)} LIKE '%'"
        case Kind.BOOL:
            return f"{_name(own.name)} IN (FALSE, TRUE)"
        case Kind.PLACE:
            return _area(own.name, WORLD)
    return f"{_name(own.name)} IS NOT NULL"


def _interval(name: str, interval: Interval) -> Conjunction:
    (low, after_low), (high, after_high) = interval.lo, interval.hi
    if low == high:
        return [f"{name} = {_number(low)}"]
    if interval.lo > BELOW_ALL and interval.hi < ABOVE_ALL and not after_low and after_high:
        return [f"{name} BETWEEN {_number(low)} AND {_number(high)}"]
    above = [f"{name} {'>' if after_low else '>='} {_number(low)}"] if interval.lo > BELOW_ALL else []
    below = [f"{name} {'<=' if after_high else '<'} {_number(high)}"] if interval.hi < ABOVE_ALL else []
    return above + below


def _text(predicate: Text) -> str:
    match predicate.op:
        case TextOp.EQU:
            return f"= {_quoted(predicate.operand)}"
        case TextOp.NEQ:
            return f"<> {_quoted(predicate.operand)}"
    like = _quoted(patterns.to_like(predicate.pattern))
    return f"NOT LIKE {like}" if predicate.negative else f"LIKE {like}"


_SIGNS = {
    VersusOp.EQU: "=",
    VersusOp.NEQ: "<>",
    VersusOp.GR: ">",
    VersusOp.GRE: ">=",
    VersusOp.LT: "<",
    VersusOp.LTE: "<=",
}

_CALLS = {
    VersusOp.IN: "contains",
    VersusOp.NIN: "NOT contains",
    VersusOp.STW: "startswith",
    VersusOp.NSTW: "NOT startswith",
    VersusOp.END: "endswith",
    VersusOp.NEND: "NOT endswith",
}


def _versus(own: AttributeFilter, op: VersusOp, other: str) -> Conjunction:
    if op in _CALLS:
        return [f"{_CALLS[op]}({_name(own.name)}, {_name(other)})"]
    comparison = f"{_name(own.name)} {_SIGNS[op]} {_name(other)}"
    # Equality alone would hold between values of any kind.
    return (
        [comparison, _anything(own)]
        if op in (VersusOp.EQU, VersusOp.NEQ) and own.kind is not Kind.ANY
        else [comparison]
    )


def _area(names: str, area: Area) -> str:
    coordinates = ", ".join(map(_name, names.split(",")))
    if isinstance(area, Circle):
        return f"within({coordinates}, {_number(area.lat)}, {_number(area.lon)}, {_metres(area.radius_m)})"
    edges = ", ".join(map(_number, (area.south, area.west, area.north, area.east)))
    return f"within_box({coordinates}, {edges})"


def _metres(length_m: float) -> str:
    whole = number(length_m)
    if isinstance(whole, int) and whole % 1000 == 0:
        return f"{whole // 1000}km"
    return f"{_number(whole)}m"


def _number(value: Number) -> str:
    if math.isinf(value):
        return syntax.INFINITY if value > 0 else f"-{syntax.INFINITY}"
    return repr(number(value))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    if syntax.NAME_RE.fullmatch(name) and name.upper() not in (*syntax.RESERVED, syntax.INFINITY):
        return name
    return '"' + name.replace('"', '""') + '"'

"""The text language against an evaluator of its own: three truth values, enumerated events, nothing of the algebra."""

from __future__ import annotations

import math
import random
import re
import sys
from collections.abc import Callable, Iterable
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import worlds

from godwit.events import INT_MAX, INT_MIN, Value
from godwit.filters import merging, syntax
from godwit.filters.areas import Box, Circle
from godwit.filters.canonical import canonical
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet, attribute, filter_of
from godwit.filters.predicates import (
    ABSENT,
    EXISTS,
    Flag,
    Kind,
    Outside,
    Rate,
    Text,
    TextOp,
    Versus,
    VersusOp,
    Within,
    equ,
    gr,
    gre,
    lt,
    lte,
    neq,
    rng,
)
from godwit.filters.spark import to_spark
from godwit.filters.text import FilterError, FilterSyntaxError, Limits, parse, to_text

Truth = bool | None
Tree = tuple[Any, ...]

VALUES: list[Value | None] = [None, 0, 1, 2, 1.5, math.nan, math.inf, "", "x", "xy", "y%", True, False]
EVENTS = [
    {name: value for name, value in zip("abc", drawn, strict=True) if value is not None}
    for drawn in product(VALUES, VALUES, [None, 1, "x", math.nan])
]

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
IN_TEXT: dict[str, Callable[[str, str], bool]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": str.__contains__,
}

names = st.sampled_from("abc")
numbers = st.sampled_from([0, 1, 2, 1.5, -1, math.inf])
strings = st.sampled_from(["", "x", "xy", "y%", "z"])
patterns = st.text("xy%_", max_size=3)
literals = numbers | strings | st.booleans()
kilometres = st.sampled_from([0, 1, 2]), st.sampled_from([0, 1, 2]), st.sampled_from([100, 200, 20_000])


def leaves() -> st.SearchStrategy[Tree]:
    ordered = st.tuples(st.just("compare"), names, st.sampled_from(["<", "<=", ">", ">="]), numbers, st.booleans())
    equal = st.tuples(st.just("compare"), names, st.sampled_from(["=", "<>", "!="]), literals, st.booleans())
    return st.one_of(
        ordered,
        equal,
        st.tuples(st.just("between"), names, numbers, numbers).filter(lambda tree: tree[2] <= tree[3]),
        st.tuples(st.just("in"), names, st.lists(literals, min_size=1, max_size=3)),
        st.tuples(st.just("like"), names, patterns),
        st.tuples(st.just("null"), names),
        st.tuples(st.just("flag"), names),
        st.tuples(st.just("versus"), names, st.sampled_from(list(COMPARISONS)), names),
        st.tuples(st.just("text"), st.sampled_from(list(IN_TEXT)), names, strings),
        st.tuples(st.just("text versus"), st.sampled_from(list(IN_TEXT)), names, names),
        st.tuples(st.just("within"), names, names, *kilometres),
        st.tuples(st.just("box"), names, names, st.sampled_from([(0, 0, 1, 1), (-90, 1, 90, 2), (1, 2, 2, 1)])),
        st.tuples(st.just("truth"), st.booleans()),
    )


trees = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=6,
)


def kind(value: object) -> str | None:
    """The kinds as the issue names them: int and float are one, NaN is none."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return None if math.isnan(value) else "number"
    return "string" if isinstance(value, str) else None


def truth(tree: Tree, event: dict[str, Value]) -> Truth:
    """What SQL would say of the condition: True, False, or None for unknown."""
    match tree:
        case ("truth", value):
            return bool(value)
        case ("not", inner):
            found = truth(inner, event)
            return None if found is None else not found
        case ("and", parts):
            return all_of(truth(part, event) for part in parts)
        case ("or", parts):
            refused = all_of(negation(truth(part, event)) for part in parts)
            return negation(refused)
        case ("null", name):
            return None if kind(event.get(name, 0)) is None else name not in event
        case ("in", name, items):
            return truth(("or", [("compare", name, "=", item, False) for item in items]), event)
        case ("flag", name):
            return truth(("compare", name, "=", True, False), event)
        case ("between", name, low, high):
            return truth(("and", [("compare", name, ">=", low, False), ("compare", name, "<=", high, False)]), event)
        case ("compare", name, sign, literal, _):
            return compared(sign, event.get(name), literal)
        case ("versus", name, sign, other):
            ordered = sign in MIRRORED and kind(event.get(name)) != "number"
            return None if ordered else compared(sign, event.get(name), event.get(other))
        case ("like", name, pattern):
            regex = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern)
            value = event.get(name)
            return re.fullmatch(regex, value, re.DOTALL) is not None if isinstance(value, str) else None
        case ("text", function, name, operand):
            value = event.get(name)
            return bool(IN_TEXT[function](value, operand)) if isinstance(value, str) else None
        case ("text versus", function, name, other):
            return (
                truth(("text", function, name, operand), event)
                if isinstance(operand := event.get(other), str)
                else None
            )
        case ("within", lat, lon, lat0, lon0, km):
            place = coordinates(event, lat, lon)
            return None if place is None else distance_km(*place, lat0, lon0) <= km
        case ("box", lat, lon, (south, west, north, east)):
            place = coordinates(event, lat, lon)
            if place is None:
                return None
            between = west <= place[1] <= east if west <= east else place[1] >= west or place[1] <= east
            return bool(south <= place[0] <= north and between)
    raise AssertionError(tree)


def negation(found: Truth) -> Truth:
    return None if found is None else not found


def all_of(found: Iterable[Truth]) -> Truth:
    seen = list(found)
    return False if False in seen else None if None in seen else True


def compared(sign: str, one: object, other: object) -> Truth:
    return None if kind(one) is None or kind(one) != kind(other) else COMPARISONS[sign](one, other)


def coordinates(event: dict[str, Value], lat: str, lon: str) -> tuple[float, float] | None:
    place = event.get(lat), event.get(lon)
    if not all(kind(half) == "number" for half in place):
        return None
    north, east = place
    assert isinstance(north, int | float)
    assert isinstance(east, int | float)
    return (north, east) if abs(north) <= 90 and -180 <= east <= 360 else None


def distance_km(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """By the angle between two vectors, which is another formula than that of the areas."""
    one, other = vector(lat, lon), vector(other_lat, other_lon)
    return 6371.0088 * math.acos(max(-1.0, min(1.0, sum(a * b for a, b in zip(one, other, strict=True)))))


def vector(lat: float, lon: float) -> tuple[float, float, float]:
    phi, theta = math.radians(lat), math.radians(lon)
    return math.cos(phi) * math.cos(theta), math.cos(phi) * math.sin(theta), math.sin(phi)


def literal_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "INFINITY" if value == math.inf else repr(value)


def written(tree: Tree) -> str:
    match tree:
        case ("truth", value):
            return literal_text(value)
        case ("not", inner):
            return f"NOT ({written(inner)})"
        case (("and" | "or") as connective, parts):
            return f" {connective} ".join(f"({written(part)})" for part in parts)
        case ("null", name):
            return f"{name} IS NULL"
        case ("in", name, items):
            return f"{name} IN ({', '.join(map(literal_text, items))})"
        case ("flag", name):
            return str(name)
        case ("between", name, low, high):
            return f"{name} BETWEEN {literal_text(low)} AND {literal_text(high)}"
        case ("compare", name, sign, literal, swapped):
            if swapped:
                return f"{literal_text(literal)}{MIRRORED.get(sign, sign)}{name}"
            return f'"{name}" {sign} {literal_text(literal)}'
        case ("versus", name, sign, other):
            return f"{name}{sign}{other}"
        case ("like", name, pattern):
            return f"{name} LIKE '{pattern}'"
        case ("text", function, name, operand):
            return f"{function}({name}, {literal_text(operand)})"
        case ("text versus", function, name, other):
            return f"{function.upper()} (`{name}`,{other})"
        case ("within", lat, lon, lat0, lon0, km):
            return f"within({lat}, {lon}, {lat0}, {lon0}, {km}km)"
        case ("box", lat, lon, edges):
            return f"within_box({lat}, {lon}, {', '.join(map(str, edges))})"
    raise AssertionError(tree)


@pytest.mark.feature("content-routing F2")
@pytest.mark.feature("content-routing F3")
@pytest.mark.feature("content-routing F4")
@given(trees)
def test_a_parsed_condition_matches_exactly_where_sql_finds_it_true(tree: Tree) -> None:
    found = parse(written(tree))
    for event in EVENTS:
        assert found.matches(event) is (truth(tree, event) is True), (written(tree), event)


@pytest.mark.feature("content-routing F2")
@given(trees)
def test_what_is_printed_parses_to_the_same_set(tree: Tree) -> None:
    found = parse(written(tree))
    assert parse(to_text(found)) == found


@pytest.mark.feature("content-routing F2")
@given(st.lists(worlds.filters(), max_size=5), st.lists(worlds.value_maps(), max_size=10))
def test_any_filters_print_as_text_that_matches_the_same(filters: list[Filter], events: list[dict[str, Value]]) -> None:
    text = to_text(FilterSet(tuple(filters)))
    for event in events:
        assert parse(text).matches(event) is any(one.matches(event) for one in filters), text
    assert parse(to_text(parse(text))) == parse(text)


odd_names = st.text(min_size=1, max_size=6) | st.sampled_from(
    ["and", "Infinity", "a.b", "a,b", 'a"b', "a`b", "\u0131s", "0"]
)
odd_texts = st.text(max_size=6) | st.sampled_from(
    ["'", "''", "%", "_", "\\", "\\%", "\n", "a' OR 'a' = 'a", "--", "/*"]
)
any_numbers = st.integers(INT_MIN, INT_MAX) | st.floats(allow_nan=False) | st.sampled_from([INT_MIN, INT_MAX, -0.0])
degrees = st.floats(-90, 90), st.floats(-180, 180)
areas = st.builds(Circle, *degrees, st.floats(1e-3, 2e7)) | st.builds(
    lambda south, west, height, east: Box(south, west, min(90.0, south + height), east),
    *degrees,
    st.floats(0, 180),
    st.floats(-180, 180),
)


def attribute_filters() -> st.SearchStrategy[AttributeFilter]:
    """Each says one thing, with all that names, texts and numbers can hold."""
    predicates = st.one_of(
        st.builds(lambda make, value: make(value), st.sampled_from([equ, neq, gr, gre, lt, lte]), any_numbers),
        st.tuples(any_numbers, any_numbers).map(lambda ends: rng(min(ends), max(ends))),
        st.builds(Text, st.sampled_from([TextOp.EQU, TextOp.NEQ]), odd_texts),
        st.builds(Text, st.sampled_from([TextOp.STW, TextOp.END, TextOp.IN, TextOp.NIN]), odd_texts.filter(bool)),
        st.builds(Flag, st.booleans()),
        st.sampled_from([EXISTS, ABSENT]),
    )
    places = st.builds(lambda make, area: attribute("lat,lon", make(area)), st.sampled_from([Within, Outside]), areas)
    rates = st.floats(1e-3, 1e9).map(lambda per_s: attribute("", Rate(per_s)))
    return st.builds(attribute, odd_names, predicates) | places | rates


@pytest.mark.feature("content-routing F2")
@given(st.lists(attribute_filters(), max_size=4))
def test_no_name_text_or_number_is_too_odd_to_be_printed_and_read_back(attributes: list[AttributeFilter]) -> None:
    sets = [canonical([Filter((one,))]) for one in attributes]
    for one in sets:
        assert parse(to_text(one)) == one
    together = canonical([one for each in sets for one in each])
    assert parse(to_text(together)) == together


@given(any_numbers)
def test_numbers_are_read_to_the_last_bit(value: float) -> None:
    text = {math.inf: "INFINITY", -math.inf: "-INFINITY"}.get(value, repr(value))
    assert parse(f"a = {text}") == parse(f"{text} = a") == canonical([filter_of(attribute("a", equ(value)))])


def test_whole_numbers_are_exact_unless_written_with_an_exponent() -> None:
    assert parse("a = 9007199254740993.0") == parse("a = 9007199254740993") != parse("a = 9.007199254740993e15")
    assert not parse("a = 9007199254740993").matches({"a": 9007199254740992})
    assert parse("a >= -9223372036854775808").matches({"a": INT_MIN})


@pytest.mark.feature("content-routing F2")
@pytest.mark.feature("content-routing F27")
@given(st.lists(trees, min_size=1, max_size=4), st.randoms())
def test_the_canonical_form_is_a_fixpoint_and_forgets_the_order(parts: list[Tree], dice: random.Random) -> None:
    filters = [one for tree in parts for one in parse(written(tree))]
    found = canonical(filters)
    shuffled = list(found)
    dice.shuffle(shuffled)
    dice.shuffle(filters)
    assert canonical(shuffled) == found == canonical(filters)
    for one, other in combinations(found, 2):
        assert merging.perfect(one, other) is None


@pytest.mark.feature("content-routing F2")
@pytest.mark.parametrize(
    ("canonical_text", "others"),
    [
        (
            "a IN (1, 2)",
            ["a = 1 OR a = 2", "a IN (2, 1)", "a in (1, 2, 1.0)", "2 = a or NOT a <> 1 or a = 1 AND b = 3"],
        ),
        ("a IN (1, 2) AND b > 3", ["(a=1 OR a=2) AND b>3", "b>3 AND a=1 OR a=2 AND NOT (b <= 3)"]),
        ("a <> 1", ["NOT (a = 1)", "a < 1 OR a > 1", "a != 1", "a NOT IN (1)", "NOT NOT a <> 1"]),
        ("a BETWEEN 1 AND 5", ["a >= 1 AND a <= 5", "5 >= a AND 1 <= a", "NOT (a < 1 OR a > 5)"]),
        ("a NOT IN (1, 2)", ["a <> 1 AND a <> 2", "NOT a IN (2, 1)", "a < 1 OR a > 1 AND a < 2 OR a > 2"]),
        ("a < 1 OR a > 5", ["a NOT BETWEEN 1 AND 5"]),
        (
            "a LIKE 'x%'",
            ["startswith(a, 'x')", "a LIKE 'x%%'", "a LIKE 'x!%' ESCAPE '#' AND a LIKE 'x%' OR a LIKE 'x%'"],
        ),
        ("a LIKE '%x\\%%'", ["contains(a, 'x%')", "a LIKE '%x!%%' ESCAPE '!'", "NOT a NOT LIKE '%x\\%%'"]),
        ("a NOT LIKE '%x'", ["NOT endswith(a, 'x')", "NOT (a LIKE '%x')"]),
        ("a LIKE '%'", ["contains(a, '')", "a = 'x' OR a <> 'x'"]),
        ("a <= INFINITY", ["a < 5 OR a >= 5", "a >= -INFINITY"]),
        ("a IN (FALSE, TRUE)", ["a OR NOT a", "a = TRUE OR a <> TRUE"]),
        ("a = TRUE", ["a", "(a)", "TRUE = a", "a <> FALSE", "NOT a <> TRUE"]),
        ("a < b", ["b > a", "NOT a >= b", "NOT b <= a"]),
        ("a IS NULL OR a = b", ["b = a OR a IS NULL"]),
        ("NOT startswith(b, a)", ["NOT STARTSWITH(b, a)"]),
        (
            "within(lat, lon, 39.92, 116.42, 5km)",
            ["WITHIN(lat, lon, 39.92, 116.42, 5000)", "within(lat,lon,3.992e1,116.42,5e3m)"],
        ),
        ("within_box(lat, lon, -90, -180, 90, 180)", ["within(lat,lon,0,0,1km) OR NOT within(lat,lon,0,0,1km)"]),
        ("type = 'a' OR type = 'b'", ["type IN ('b', 'a')"]),
        (
            "rate(20) AND a = 1",
            ["a = 1 AND rate(20)", "a = 1 AND (rate(20) OR rate(10))", "rate(30) AND a = 1 AND rate(20)"],
        ),
        ("TRUE", ["NOT FALSE", "a = 1 OR TRUE", "TRUE AND NOT (a = 1 AND FALSE)"]),
        ("FALSE", ["a = 1 AND a = 2", "a = 1 AND a = 'x'", "a > INFINITY", "a NOT LIKE '%'", "a NOT IN (1, 'x')"]),
    ],
)
def test_one_meaning_has_one_canonical_text(canonical_text: str, others: list[str]) -> None:
    assert to_text(parse(canonical_text)) == canonical_text
    for other in others:
        assert to_text(parse(other)) == canonical_text, other


def test_the_empty_set_is_false_and_the_empty_filter_true() -> None:
    assert (to_text(FilterSet()), to_text(FilterSet((Filter(),))), to_text(Filter())) == ("FALSE", "TRUE", "TRUE")
    assert parse("FALSE") == FilterSet()
    assert parse("TRUE") == FilterSet((Filter(),))


@pytest.mark.feature("content-routing F3")
def test_attributes_are_compared_as_placeholders_smaller_name_first() -> None:
    assert parse("b > a") == FilterSet((filter_of(AttributeFilter("a", Kind.NUMBER, (Versus(VersusOp.LT, "b"),))),))
    assert parse("b <> a") == FilterSet((filter_of(AttributeFilter("a", Kind.ANY, (Versus(VersusOp.NEQ, "b"),))),))
    assert parse("NOT endswith(b, a)") == FilterSet(
        (filter_of(AttributeFilter("b", Kind.STRING, (Versus(VersusOp.NEND, "a"),))),)
    )
    assert parse("NOT endswith(b, a)").matches({"a": "x", "b": "xy"})
    assert not parse("NOT endswith(b, a)").matches({"b": "xy"})


@pytest.mark.feature("content-routing F7")
def test_a_rate_is_an_attribute_of_its_own() -> None:
    limited = AttributeFilter("", Kind.RATE, (Rate(20),))
    assert parse("rate(20)") == FilterSet((Filter((limited,)),))
    assert parse("a = 1 AND rate(20)") == FilterSet((filter_of(limited, attribute("a", equ(1))),))
    assert parse("a = 1 AND rate(20)").covers(parse("a = 1 AND rate(10)"))
    assert parse("NOT (a OR NOT rate(20))") == parse("NOT a AND rate(20)")
    with pytest.raises(FilterError, match="column 12: a rate is no property of an event"):
        parse("NOT (a AND rate(20))")


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected an attribute, .*, found the end"),
        ("a = ", 5, "expected .*, found the end"),
        ("a = 1 AND", 10, "expected .*, found the end"),
        ("(a = 1", 7, r"expected AND, OR or '\)', found the end"),
        ("a = 1)", 6, r"expected AND, OR or the end, found '\)'"),
        ("a == 1", 4, "expected .*, found '='"),
        ("a = NULL", 5, "found 'NULL'; a missing attribute is found by IS NULL"),
        ("a IS 5", 6, "expected NULL or NOT, found '5'"),
        ("a IS NOT TRUE", 10, "expected NULL, found 'TRUE'"),
        ("a NOT NULL", 7, "expected IN, LIKE or BETWEEN, found 'NULL'"),
        ("a BETWEEN 1 5", 13, "expected AND, found '5'"),
        ("a BETWEEN 5 AND 1", 11, "the range 5 to 1 is upside down"),
        ("a BETWEEN 'x' AND 'y'", 11, "expected a number"),
        ("a < 'x'", 1, "only numbers have an order"),
        ("b = 1 AND a > TRUE", 11, "only numbers have an order; TRUE"),
        ("a IN ()", 7, "expected a number"),
        ("a IN b", 6, r"expected '\('"),
        ("a IN (1 2)", 9, r"expected ',' or '\)', found '2'"),
        ("a IN (SELECT b)", 7, "expected a number, .*, found 'SELECT'"),
        ("a LIKE b", 8, "expected a text in 'quotes', found 'b'"),
        ("a LIKE 'x' ESCAPE 'ab'", 19, "a single character"),
        ("a LIKE 'x' ESCAPE '%'", 19, "a single character"),
        ("a LIKE 'x!y' ESCAPE '!'", 8, "'!' escapes only %, _ and itself"),
        ("a LIKE 'x\\'", 8, "escapes only"),
        ("5 = 5", 5, "expected an attribute, found '5'"),
        ("1", 2, "expected a comparison, found the end"),
        ("'x'", 4, "expected a comparison"),
        ("a = 1 b", 7, "expected AND, OR or the end, found 'b'"),
        ("a = 'x' 'y'", 9, "expected AND, OR or the end"),
        ("a = 1; b", 6, "';'"),
        ("a = 1 -- b", 7, "unexpected '-'"),
        ("a = 1 /* b */", 7, "unexpected '/'"),
        ("a {# b #} = 1", 3, r"unexpected '\{'"),
        ("a + 1 = 2", 3, "expected .*, found '\\+ 1'"),
        ("a * 2 = 2", 3, "unexpected '\\*'"),
        ("a = $b", 5, "unexpected '\\$'"),
        ("a = :b", 5, "unexpected ':'"),
        ("a = ?", 5, "unexpected"),
        ("a = N'x'", 5, "unexpected"),
        ("a = .5", 5, "unexpected '.'"),
        ("a = 0x1F", 5, "found '0x1F'"),
        ("a = 1e", 5, "'1e' is not a number"),
        ("a = 5km", 5, "found '5km'"),
        ("a = 1e999", 5, "1e999 does not fit 64 bits"),
        ("a = -1e-999", 5, "closer to 0"),
        ("a = 9223372036854775808", 5, "does not fit 64 bits"),
        ("a = " + 5000 * "9", 5, "does not fit 64 bits"),
        ("CAST(a AS INT) = 1", 1, "no function 'CAST'; there are within, "),
        ("a = upper('x')", 5, "no function 'upper'"),
        ("a = within(b)", 5, "expected .*, found 'within'"),
        ("a = 1 AND within(lat, lon, 1, 2)", 11, "'within' takes 5 arguments, got 4"),
        ("within(lat, 7, 1, 2, 3)", 13, "expected an attribute, found '7'"),
        ("within(lat, lon, '1', 2, 3)", 18, "expected a number, found '1'"),
        ("within(lat, lon, 1, 2, 3mi)", 24, "'3mi' is not"),
        ("within(lat, lon, 1, 2, 3emm)", 24, "'3emm' is not a length"),
        ("within(lat, lon, 91, 2, 3)", 1, "circle: latitude 91.0 is outside"),
        ("within(lat, lon, 1, 2, -3km)", 1, "circle: radius -3000.0 m must be above 0"),
        ("a AND within_box(lat, lon, 1, 2, 0, 3)", 7, "box: south 1.0 lies north of north 0.0"),
        ('within("a,b", lon, 1, 2, 3)', 1, "must not contain a comma"),
        ("rate(0)", 6, "above 0"),
        ("rate(INFINITY)", 6, "above 0"),
        ("contains(a, 5)", 13, "expected a text in 'quotes' or an attribute, found '5'"),
        ("contains('a', 'a')", 10, "expected an attribute, found 'a'"),
        ("a = 'x", 5, "the quote ' opens here and never closes"),
        ('a = 1 AND "b', 11, 'the quote " opens here'),
        ("`` = 1", 1, "an attribute's name has 1 to 255 characters"),
        (f"{256 * 'a'} = 1", 1, "an attribute's name has 1 to 255 characters"),
        ("a-b = 1", 2, "unexpected '-'"),
        ("a.b. = 1", 4, "unexpected '.'; a name with such characters is written in"),
    ],
)
def test_errors_name_the_column_and_what_was_expected(text: str, column: int, problem: str) -> None:
    with pytest.raises(FilterSyntaxError, match=f"^filter, column {column}: .*{problem}") as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_every_place_in_a_sentence_can_be_left_and_reached() -> None:
    targets = {place for row in syntax.ROWS.values() for place in row.values()}
    assert targets == set(syntax.ROWS)
    assert all(syntax.ROWS.values())


def test_a_predicate_of_your_own_has_no_text() -> None:
    class Odd:
        def accepts(self, value: object, values: object) -> bool:
            return True

        def covers(self, other: object) -> bool:
            return self is other

        def overlaps(self, other: object) -> bool:
            return True

    own = Filter((AttributeFilter("a", Kind.NUMBER, (Odd(),)),))  # type: ignore[arg-type]
    with pytest.raises(FilterError, match="attribute 'a': no text says"):
        to_text(own)
    with pytest.raises(FilterError, match="attribute 'a': no Spark condition says"):
        to_spark(own)


def test_in_a_text_of_several_lines_errors_name_the_line() -> None:
    with pytest.raises(FilterSyntaxError, match=r"^filter, line 3, column 6: expected") as caught:
        parse("a = 'x\ny' AND\n b = ")
    assert (caught.value.line, caught.value.column) == (3, 6)


def some(word: str, count: int) -> str:
    return " OR ".join(word.format(at) for at in range(count))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = '" + "x" * 16_384 + "'", "16390 characters are too many, at most 16384"),
        ("(" * 33 + "a" + ")" * 33, "column 33: more than 32 levels of nesting"),
        ("NOT " * 33 + "a", "more than 32 levels of nesting"),
        ("(" * 5000 + "a", "more than 32 levels of nesting"),
        (some("a{0} = 1", 257), "more than 256 predicates"),
        ("a IN (" + ",".join(map(str, range(1025))) + ")", "more than 1024 items of a list"),
        ("a LIKE '" + "_a" * 129 + "'", "a pattern of more than 256 characters"),
        (" AND ".join(f"(a{at} = 1 OR b{at} = 1)" for at in range(10)), "1024 alternatives .* at most 512"),
        (" AND ".join(f"(a{at} = 1 OR b{at} = 1)" for at in range(100)), "1024 alternatives .* at most 512"),
        (some("(a{0} = 1 AND b{0} = 1)", 120) + " OR NOT (" + some("(c{0} = 1 AND d{0} = 1)", 8) + ")", None),
        ("NOT (" + some("(c{0} = 1 AND d{0} = 1)", 12) + ")", "alternatives"),
        ("type IN (" + ",".join(f"'{at}'" for at in range(1000)) + ")", "1000 alternatives"),
        ("a NOT IN (" + ",".join(f"'{at}'" for at in range(1000)) + ")", "too many conditions on the same attributes"),
        (some("a LIKE '" + 120 * "_x" + "%{0}'", 60), "too many conditions on the same attributes"),
    ],
)
def test_what_costs_too_much_is_refused_before_it_is_paid(text: str, problem: str | None) -> None:
    if problem is None:
        parse(text)
        return
    with pytest.raises(FilterError, match=problem):
        parse(text)


def test_limits_can_be_set() -> None:
    assert len(parse("(a = 1 OR b = 2) AND (c = 3 OR d = 4)", Limits(alternatives=4)).filters) == 4
    with pytest.raises(FilterError, match="4 alternatives"):
        parse("(a = 1 OR b = 2) AND (c = 3 OR d = 4)", Limits(alternatives=3))


def test_long_chains_that_stay_simple_are_welcome() -> None:
    ids = ", ".join(f"'sensor-{at}'" for at in range(1000))
    assert parse(f"id IN ({ids}) AND level > 3").matches({"id": "sensor-999", "level": 4})
    assert parse(some("a = {0}", 256)) == parse("a IN (" + ",".join(map(str, range(256))) + ")")
    assert parse("a NOT IN (" + ",".join(map(str, range(1000))) + ")").matches({"a": 0.5})


def test_deep_below_in_the_stack_a_filter_is_still_read_or_refused() -> None:
    def below(frames: int) -> str:
        try:
            return below(frames - 1) if frames else to_text(parse("(" * 32 + "a" + ")" * 32))
        except FilterError as error:
            return str(error)

    assert below(0) == "a = TRUE"
    assert "nested too deeply" in below(sys.getrecursionlimit() - 400)


WORDS = "a b AND OR NOT IN LIKE BETWEEN IS NULL TRUE FALSE ESCAPE ( ) ) ( , = <> < >= 5 -5 1e 'x' '%' ' \" ` . - +"
WORDS += " within rate contains ( lat , lon , 5km INFINITY CASE WHEN INTERVAL SELECT FROM :: -- /* */ ; ? @a $1 { } [ ]"
SOUP = st.sampled_from([*WORDS.split(), "\n", "\\", ""])


@pytest.mark.parametrize("kind_of_text", ["any", "soup", "mutated"])
@given(data=st.data())
def test_every_text_is_a_filter_or_a_filter_error(kind_of_text: str, data: st.DataObject) -> None:
    match kind_of_text:
        case "any":
            text = data.draw(st.text())
        case "soup":
            text = data.draw(st.sampled_from(["", " "])).join(data.draw(st.lists(SOUP, max_size=12)))
        case _:
            text = written(data.draw(trees))
            at = data.draw(st.integers(0, len(text)))
            text = text[:at] + data.draw(SOUP | st.characters()) + text[at + data.draw(st.integers(0, 2)) :]
    try:
        found = parse(text)
    except FilterError:
        return
    assert parse(to_text(found)) == found

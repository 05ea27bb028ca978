"""What is read in one pass means what the grammar says, and everything else is left to the grammar."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from godwit.filters import plain
from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.filters.syntax import DEFAULT, Limits
from godwit.filters.text import by_grammar, parse

names = st.sampled_from(["a", "b", "type", "kind.of", "within", "rate", "NOT", "infinity", "é", "a1", '"a b"'])
digits = st.from_regex(r"-?[0-9]{1,16}(\.[0-9]{0,12})?(e[0-9])?", fullmatch=True)
words = st.text("ab'\\%_ \n\x0bé", max_size=5).map(lambda text: f"'{text}'")
literals = digits | words | st.sampled_from(["TRUE", "false", "NULL", "b", "INFINITY", "- 1", "+1"])
signs = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">=", "=="])
spaces = st.sampled_from(["", " ", "  ", "\n", "\t", "\x0b", "\xa0"])


degrees = st.sampled_from(["0", "39.92", "-0.0", "91", "200", "1e1", "-90", "90", "-180", "180", "40"])


@st.composite
def predicates(draw: st.DrawFn) -> str:
    name, gap = draw(names), draw(spaces)
    match draw(st.integers(0, 6)):
        case 0 | 1:
            return f"{name}{gap}{draw(signs)}{draw(spaces)}{draw(literals)}"
        case 2:
            return f"{name} BETWEEN {draw(digits)} and {draw(digits)}"
        case 3:
            return f"{name} in{gap}({', '.join(draw(st.lists(literals, min_size=1, max_size=4)))})"
        case 4:
            return f"{name} like {draw(words)}"
        case 5:
            edges = ", ".join(draw(st.lists(degrees, min_size=3, max_size=5)))
            return f"{draw(st.sampled_from(['within_box', 'WITHIN_BOX']))}{gap}({name}, lon,{gap}{edges})"
    radius = draw(st.sampled_from(["5km", "500m", "7", "0.1KM", "30000km", "-1", "5 km", "1.5.5m"]))
    return f"within{gap}({name},{gap}lon, {draw(degrees)}, {draw(degrees)},{gap}{radius}{gap})"


joints = st.sampled_from([" AND ", " and ", "\nAND\t", " OR ", "AND", " AND NOT "])


@st.composite
def conditions(draw: st.DrawFn) -> str:
    found = draw(st.lists(predicates(), min_size=1, max_size=4))
    text = found[0] + "".join(draw(joints) + one for one in found[1:])
    return draw(spaces) + text + draw(st.sampled_from(["", " ", "\n", " AND ", ")", " x"]))


@given(conditions())
@example("type IN ('a', 'b')")
@example("a = 1 AND a = 2")
@example("a BETWEEN 1 AND 2 AND a > 5 AND within(lat, lon, 1, 2, 3km)")
@example("within_box(lat, lon, 10, 170, 20, -170) AND a = 1")
@example("a = 999999999999999.9")
@example("a = '' AND b = 'it''s'")
@example("a LIKE '%'")
def test_what_is_read_in_one_pass_means_what_the_grammar_says(text: str) -> None:
    found = plain.read(text, DEFAULT)
    if found is not None:
        assert found == by_grammar(text)


@given(conditions())
def test_a_text_is_refused_exactly_where_the_grammar_refuses_it(text: str) -> None:
    assert _outcome(parse, text) == _outcome(by_grammar, text)


def _outcome(read: object, text: str) -> FilterSet | str:
    try:
        return read(text)  # type: ignore[operator, no-any-return]
    except FilterError as error:
        return str(error)


@pytest.mark.parametrize(
    "text",
    [
        "kind = 'reading' AND pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)",
        "speed BETWEEN 3 AND 9.5",
        "speed > 40 AND within_box(lat, lon, 37.6, -122.5, 37.602, -122.498)",
        "within_box(lat, lon, -90, -180, 90, 180)",
        "line IN ('U1', 'U2') and delay >= -60 AND running = TRUE",
        "station.name LIKE 'Dong%' AND pm25 <> 0",
    ],
)
def test_common_conditions_need_no_parser(text: str) -> None:
    assert plain.read(text, DEFAULT) == by_grammar(text)


@pytest.mark.parametrize(
    "limits", [Limits(characters=8), Limits(predicates=1), Limits(effort=1), Limits(pattern_characters=1)]
)
def test_tighter_limits_hold(limits: Limits) -> None:
    with pytest.raises(FilterError):
        parse("aaa LIKE 'xy%' AND b = 2", limits)

"""LIKE patterns against regular expressions and against every short string."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.filters import patterns
from godwit.filters.patterns import ANY_ONE, ANY_RUN, Pattern

SHAPES = ["".join(letters) for length in range(5) for letters in product("ab_%", repeat=length)]
STRINGS = ["".join(letters) for length in range(7) for letters in product("abc", repeat=length)]

likes = st.text("ab_%\\", max_size=8)


def regex(like: str) -> re.Pattern[str]:
    """The same pattern in the words of Python's own matcher."""
    parts = re.findall(r"\\.|.", like, re.DOTALL) if like else []
    means = {"%": ".*", "_": "."}
    return re.compile("".join(means.get(part, re.escape(part[-1])) for part in parts), re.DOTALL)


@pytest.fixture(scope="module")
def accepted() -> dict[Pattern, int]:
    """For each pattern the strings that it accepts, as a bit mask."""
    distinct = {patterns.parse(shape) for shape in SHAPES}
    return {
        pattern: sum(1 << at for at, text in enumerate(STRINGS) if patterns.accepts(pattern, text))
        for pattern in distinct
    }


@pytest.mark.feature("content-routing F4")
@given(likes, st.text("ab%_\\\n", max_size=8))
def test_a_pattern_accepts_what_the_regular_expression_accepts(like: str, text: str) -> None:
    assert patterns.accepts(patterns.parse(like), text) == bool(regex(like).fullmatch(text))


@pytest.mark.feature("content-routing F5")
def test_containment_is_exact(accepted: dict[Pattern, int]) -> None:
    for (wide, all_wide), (narrow, all_narrow) in product(accepted.items(), repeat=2):
        assert patterns.contains(wide, narrow) == (all_wide | all_narrow == all_wide), (wide, narrow)


@pytest.mark.feature("content-routing F6")
def test_intersection_is_exact(accepted: dict[Pattern, int]) -> None:
    for (one, all_one), (other, all_other) in product(accepted.items(), repeat=2):
        assert patterns.intersects(one, other) == bool(all_one & all_other), (one, other)


@pytest.mark.feature("content-routing F5")
@given(likes, likes, st.text("abc", max_size=10))
def test_containment_and_intersection_hold_for_longer_patterns_too(wide: str, narrow: str, text: str) -> None:
    one, other = patterns.parse(wide), patterns.parse(narrow)
    if patterns.accepts(other, text):
        assert patterns.accepts(one, text) or not patterns.contains(one, other)
        assert patterns.intersects(one, other) or not patterns.accepts(one, text)


@pytest.mark.feature("content-routing F2")
def test_patterns_that_accept_the_same_strings_are_the_same_pattern(accepted: dict[Pattern, int]) -> None:
    assert len(set(accepted.values())) == len(accepted)


@pytest.mark.feature("content-routing F2")
@given(likes)
def test_a_pattern_is_in_normal_form_and_prints_back(like: str) -> None:
    pattern = patterns.parse(like)
    assert patterns.normal(pattern) == pattern
    assert patterns.parse(patterns.to_like(pattern)) == pattern


@pytest.mark.feature("content-routing F2")
@given(st.sampled_from(SHAPES))
def test_the_simplest_operator_says_what_the_pattern_said(like: str) -> None:
    says: dict[str, Callable[[str, str], bool]] = {
        "exists": lambda text, operand: True,
        "equ": lambda text, operand: text == operand,
        "neq": lambda text, operand: text != operand,
        "stw": lambda text, operand: text.startswith(operand),
        "end": lambda text, operand: text.endswith(operand),
        "in": lambda text, operand: operand in text,
        "like": lambda text, operand: bool(regex(operand).fullmatch(text)),
    }
    op, operand = patterns.simplest(like)
    assert [says[op](text, operand) for text in STRINGS[:400]] == [
        bool(regex(like).fullmatch(text)) for text in STRINGS[:400]
    ]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("equ", ("a", "%")),
        ("stw", ("a", "%", ANY_RUN)),
        ("end", (ANY_RUN, "a", "%")),
        ("in", (ANY_RUN, "a", "%", ANY_RUN)),
        ("like", ("a", ANY_RUN)),
    ],
)
def test_only_like_reads_wildcards_in_its_operand(op: str, expected: Pattern) -> None:
    assert patterns.of(op, "a%") == expected


def test_an_escape_makes_the_next_character_plain() -> None:
    assert patterns.parse(r"a\%\_\\b_") == ("a", "%", "_", "\\", "b", ANY_ONE)
    assert patterns.parse("a\\") == ("a", "\\")


@pytest.mark.feature("content-routing F4")
def test_no_pattern_makes_matching_or_comparing_explode() -> None:
    # One that tries every way to place its runs would take longer than the sun has left.
    hostile = patterns.parse("%a" * 300 + "%b")
    assert not patterns.accepts(hostile, "a" * 1000)
    assert not patterns.contains(hostile, patterns.parse("%a" * 300))
    assert patterns.intersects(hostile, patterns.parse("%a" * 300 + "%"))

"""`godwit filter explain`: what a filter means, and what is said of texts that mean nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from godwit.cli import app
from godwit.filters.text import parse


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["filter", "explain", *arguments])


def explained(*arguments: str) -> dict[str, Any]:
    result = explain(*arguments, "--json")
    assert result.exit_code == 0
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "b = 2 AND a = 1",
        "NOT (a = 1 OR b LIKE 'x%')",
        "a IN (1, 2) AND (b > 3 OR c)",
        "within(lat, lon, 39.92, 116.42, 5km) OR kind = 'x'",
    ],
)
def test_each_alternative_is_one_line_and_together_they_mean_the_filter(text: str) -> None:
    alternatives = explained(text)["canonical"]
    assert parse(" OR ".join(f"({one})" for one in alternatives)) == parse(text)
    told = explain(text).stdout
    assert all(one in told for one in alternatives)


def test_the_spark_condition_is_shown() -> None:
    assert "150" in explained("pm25 > 150")["spark"]
    assert "In Spark SQL:" in explain("pm25 > 150").stdout


@pytest.mark.parametrize(
    ("text", "against", "sentence"),
    [
        ("speed > 50", "speed BETWEEN 60 AND 90", "It covers the other"),
        ("speed BETWEEN 60 AND 90", "speed > 50", "The other covers it"),
        ("speed > 50 AND TRUE", "50 < speed", "The two say the same"),
        ("speed > 50", "speed < 70", "Some events may match both"),
        ("speed > 50", "speed < 20", "No event can match both"),
        ("speed > 50", "speed > 2 AND speed < 1", "It covers the other, which nothing can match"),
        ("speed > 2 AND speed < 1", "speed > 50", "The other covers it, because nothing can match it"),
    ],
)
def test_two_filters_are_compared_in_a_sentence(text: str, against: str, sentence: str) -> None:
    result = explain(text, "--against", against)
    assert result.exit_code == 0
    assert sentence in result.stdout


def test_the_comparison_is_there_for_programs() -> None:
    found = explained("speed > 50", "--against", "speed > 60")["against"]
    assert (found["covers"], found["covered"], found["overlaps"]) == (True, False, True)


@pytest.mark.parametrize(
    ("text", "event", "because"),
    [
        ("kind = 'bus' AND speed > 20", {"kind": "bus", "speed": 3}, "fails at speed > 20: speed is 3"),
        ("kind = 'bus' AND speed > 20", {"kind": "bus"}, "fails at speed > 20: there is no speed"),
        ("speed > 20", {"speed": "30"}, 'fails at speed > 20: speed is "30"'),
        ("speed > 20", {"speed": None}, "fails at speed > 20: there is no speed"),
        ("within(lat, lon, 0, 0, 1km)", {"lat": 0}, "lat is 0; there is no lon"),
        ("a > b", {"a": 1, "b": 2}, "fails at a > b: a is 1; b is 2"),
        ("a > 1 OR b > 1", {"a": 0, "b": 0}, "fails at b > 1: b is 0"),
    ],
)
def test_an_event_that_does_not_match_is_told_why(text: str, event: dict[str, Any], because: str) -> None:
    result = explain(text, "--event", json.dumps(event))
    assert result.exit_code == 0
    assert "The event does not match" in result.stdout
    assert because in result.stdout


def test_an_event_that_matches_is_told_by_which_alternative() -> None:
    found = explained("a > 1 OR b > 1", "--event", '{"b": 2}')["event"]
    assert found["matches"]
    assert [one["matches"] for one in found["alternatives"]] == [False, True]
    assert "The event matches" in explain("a > 1 OR b > 1", "--event", '{"b": 2}').stdout


def test_a_contradiction_and_a_triviality_are_named() -> None:
    assert "nothing matches" in explain("a = 1 AND a = 2").stdout
    assert "everything matches" in explain("a = 1 OR TRUE").stdout


def test_a_bad_filter_shows_a_caret_under_the_column() -> None:
    result = explain("speed > 50 AND within(lat, lon, 3, 4)")
    assert result.exit_code == 2
    error, text, caret = result.stderr.splitlines()
    assert error.startswith("godwit: filter, column 16: 'within' takes 5 arguments, got 4")
    assert text[caret.index("^") :].startswith("within")
    assert result.stdout == ""


def test_the_caret_finds_its_place_behind_wide_letters_and_tabs() -> None:
    _, text, caret = explain("名前 = 'x' AND\tAND").stderr.splitlines()
    assert text == "  名前 = 'x' AND\\tAND"
    assert caret == " " * 18 + "^"


def test_in_a_text_of_several_lines_the_bad_one_is_shown() -> None:
    error, text, caret = explain("speed > 50\nAND >").stderr.splitlines()
    assert "line 2, column 5" in error
    assert (text, caret) == ("  AND >", "      ^")


@pytest.mark.parametrize(
    "arguments",
    [
        ["speed >"],
        [""],
        ["speed > 1", "--against", "speed >"],
        ["speed > 1", "--event", "[1]"],
        ["speed > 1", "--event", '{"a": {"b": 1}}'],
        ["speed > 1", "--event", "{"],
        ["(" * 5000],
        ["a = " + "9" * 400],
        ["a" * 20_000],
    ],
)
def test_what_is_not_well_formed_is_told_with_status_2_and_no_traceback(arguments: list[str]) -> None:
    result = explain(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("godwit: ")
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) <= 3

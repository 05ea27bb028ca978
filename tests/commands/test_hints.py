"""What people type and do not mean."""

from __future__ import annotations

import pytest

from godwit.commands.hints import of_condition, of_message


@pytest.mark.parametrize("condition", ['kind = "taxi"', 'a > 1 AND kind <> "taxi"', 'kind="taxi"'])
def test_a_text_in_double_quotes_is_explained(condition: str) -> None:
    (hint,) = of_condition(condition)
    assert hint == "\"taxi\" in double quotes is an attribute of that name; a text stands in single quotes: 'taxi'"


@pytest.mark.parametrize("condition", ["kind = 'taxi'", '"my speed" > 50', "note = 'say \"x\"'", ""])
def test_what_may_be_meant_is_left_alone(condition: str) -> None:
    assert of_condition(condition) == []


def test_an_empty_or_broken_message_gets_a_hint_and_a_good_one_none() -> None:
    assert of_message("air/x", b"", said=False) == [
        "an empty message; right would be: godwit pub air/x '{\"pm25\": 163.5}'"
    ]
    assert "looks like JSON and is none" in of_message("air/x", b"{'pm25': 1}", said=True)[0]
    assert of_message("air/x", b'{"pm25": 1}', said=True) == []
    assert of_message("air/x", b"hello", said=True) == []
    assert of_message("air/x", b"", said=True) == []

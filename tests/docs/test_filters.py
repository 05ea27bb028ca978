"""What docs/filters.md shows is true."""

from __future__ import annotations

import re

import pytest
from tests.pages import blocks, page, run

import godwit
from godwit.filters.errors import FilterError
from godwit.filters.text import to_text

PAGE = page("docs/filters.md")


def rows(heading: str) -> list[tuple[str, ...]]:
    """The cells of the table under this heading, both in code quotes."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(.*)` \| `(.*)` \|$", section, re.MULTILINE)


@pytest.mark.parametrize("text", blocks(PAGE, "sql")[0].splitlines())
def test_the_examples_can_be_parsed(text: str) -> None:
    assert godwit.parse(text).filters


@pytest.mark.parametrize("text", re.findall(r"^\| `(.*?)`", PAGE.split("## What can be said")[1], re.MULTILINE)[:13])
def test_the_conditions_of_the_first_table_can_be_parsed(text: str) -> None:
    assert text in ("AND", "TRUE") or godwit.parse(text).filters


@pytest.mark.parametrize(("written", "canonical"), rows("One form"))
def test_the_canonical_form_is_as_shown(written: str, canonical: str) -> None:
    assert to_text(godwit.parse(written)) == canonical
    assert godwit.parse(canonical) == godwit.parse(written)


@pytest.mark.parametrize(("written", "answer"), rows("When it is wrong"))
def test_the_answer_to_a_mistake_is_as_shown(written: str, answer: str) -> None:
    with pytest.raises(FilterError) as refused:
        godwit.parse(written)
    assert str(refused.value) == answer


def test_the_python_example_runs() -> None:
    run(PAGE)

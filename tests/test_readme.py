"""What README.md shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import godwit

README = (Path(__file__).resolve().parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_first_filter_can_be_parsed() -> None:
    (filter_text,) = blocks("sql")
    assert godwit.parse(filter_text).filters


def test_the_python_example_runs() -> None:
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})

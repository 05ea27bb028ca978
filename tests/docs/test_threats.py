"""Every line of docs/threats.md names tests that are there, or says that nothing shows it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text()
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_test_that_the_page_names_is_there() -> None:
    named = TEST.findall(PAGE)
    assert len(named) >= 20
    missing = [f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text()]
    assert missing == []


def test_every_line_has_a_test_or_says_that_it_has_none() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith(("| to ", "| not to "))]
    assert lines
    silent = [line for line in lines if not (TEST.search(line) or "nothing yet" in line or "the same" in line)]
    assert silent == []

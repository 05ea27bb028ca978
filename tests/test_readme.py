"""What README.md shows is true."""

from __future__ import annotations

from tests.pages import blocks, page, run

import godwit


def test_the_first_filter_can_be_parsed() -> None:
    assert godwit.parse(blocks(page("README.md"), "sql")[0]).filters


def test_the_python_example_runs_as_it_stands() -> None:
    readme = page("README.md")
    assert blocks(readme, "python")
    run(readme)

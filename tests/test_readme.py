"""What README.md shows is true."""

from __future__ import annotations

import shlex

import pytest
from tests.pages import ROOT, blocks, page, run
from typer.testing import CliRunner

import godwit
from godwit.cli import app


def test_the_first_filter_can_be_parsed() -> None:
    assert godwit.parse(blocks(page("README.md"), "sql")[0]).filters


def test_the_python_examples_are_right() -> None:
    roaming, filters = blocks(page("README.md"), "python")
    compile(roaming, "README.md", "exec")  # it never ends by itself; tests/client/test_client.py does what it shows
    run(f"```python\n{filters}```\n")


COMMANDS = [line for line in blocks(page("README.md"), "sh")[1].splitlines() if " lab " not in line]


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_do_what_they_say(line: str) -> None:
    command, *arguments = shlex.split(line, comments=True)
    assert command == "godwit"
    paths = [str(ROOT / one) if one.startswith("examples/") else one for one in arguments]
    assert CliRunner().invoke(app, paths).exit_code == 0

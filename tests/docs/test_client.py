"""What docs/client.md shows is what a program gets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.brokers import FREE, Process, running
from tests.pages import blocks, page

import godwit

PAGE = page("docs/client.md")
WITH_ASYNCIO, WITHOUT, TOLD = blocks(PAGE, "python")


def test_both_examples_print_what_was_published_every_time(tmp_path: Path) -> None:
    broker = Process(tmp_path, "north", *FREE)
    with running(broker):
        for example in (WITH_ASYNCIO, WITHOUT, WITH_ASYNCIO):
            code = example.replace("127.0.0.1:1883", broker.at("mqtt"))
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
            assert (done.stdout, done.stderr) == ("air/beijing 163.5\n", "")


def test_a_program_can_be_told_as_shown() -> None:
    names: dict[str, object] = {}
    exec(compile(TOLD, "docs/client.md", "exec"), names)
    assert isinstance(names["client"], godwit.Client)


@pytest.mark.parametrize("name", re.findall(r"^\| `(\w+Error)`", PAGE, re.MULTILINE))
def test_every_error_of_the_table_is_one_of_the_family(name: str) -> None:
    assert issubclass(getattr(godwit, name), godwit.GodwitError)

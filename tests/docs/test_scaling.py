"""What docs/scaling.md says that a hop costs is what is counted, and its commands are there."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.pages import ROOT, page

PAGE = page("docs/scaling.md")
BENCHMARKS = ROOT / "benchmarks"


def called(*arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / arguments[0]), *arguments[1:]]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


@pytest.mark.parametrize(("row", "handoff"), [("reactive", "reactive"), ("pro-active, 5 copies", "proactive")])
def test_a_hop_costs_what_the_page_says_whatever_the_number_of_brokers(row: str, handoff: str) -> None:
    (designed, counted) = re.findall(rf"^\| {row} \|[^|]*\|.* = (\d+) \| (\d+) at ", PAGE, re.MULTILINE)[0]
    told = called("ring_hops.py", "--brokers", "10", "--brokers", "50", "--handoff", handoff)
    assert re.findall(r"(\d+) items a hop \(designed: (\d+)\)", told) == 2 * [(counted, designed)]


def test_the_commands_of_the_page_take_their_options() -> None:
    for name, options in re.findall(r"`python benchmarks/(\w+\.py)([^`]*)`", PAGE):
        wanted = set(re.findall(r"--[\w-]+", options))
        assert wanted <= set(re.findall(r"--[\w-]+", called(name, "--help"))), name

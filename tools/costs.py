"""What each test costs in processor time, with all processes that it starts: a plugin of pytest.

    python -m pytest --numprocesses 2 --dist loadgroup -p tools.costs

prints the dearest tests and files. Other work on the machine hardly changes these figures, unlike seconds of a clock.
What outlives a test (a session of Spark) counts for the test during which it works. Linux only.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

NAME = "processor_s"
DEAREST = 30
TICKS = os.sysconf("SC_CLK_TCK")
_begun = pytest.StashKey[float]()
_costs: defaultdict[str, float] = defaultdict(float)


def used_s(root: int) -> float:
    """Of a process, of those that descend from it, and of those that have ended and were waited for."""
    ticks, children = dict[int, int](), dict[int, list[int]]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                _, _, fields = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue  # it has ended since
            words = fields.split()
            children.setdefault(int(words[1]), []).append(int(entry.name))
            ticks[int(entry.name)] = sum(map(int, words[11:15]))
    total, ahead = 0, [root]
    while ahead:
        process = ahead.pop()
        total += ticks.get(process, 0)
        ahead += children.get(process, ())
    return total / TICKS


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[_begun] = used_s(os.getpid())
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    try:
        yield
    finally:
        item.user_properties.append((NAME, used_s(os.getpid()) - item.stash[_begun]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the process that collects reports of all others."""
    if report.when == "teardown":
        _costs[report.nodeid] += sum(float(str(value)) for name, value in report.user_properties if name == NAME)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    files = defaultdict[str, float](float)
    for test, cost_s in _costs.items():
        files[test.partition("::")[0]] += cost_s
    terminalreporter.section(f"{sum(_costs.values()):.0f} s of the processor")
    for costs in (files, _costs):
        for name in sorted(costs, key=lambda name: -costs[name])[:DEAREST]:
            terminalreporter.line(f"{costs[name]:8.1f} s  {name}")
        terminalreporter.line("")

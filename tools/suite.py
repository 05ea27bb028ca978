"""What `make test` runs: `python -m tools.suite --processes 4`, and whatever else pytest is to be told.

All tests run in several processes. A few that fail there are run once more, alone: what passes then failed for the
company it was in, which is a fault of the test and is told at the end, but fails nothing. What fails alone fails.

The run ends in any case. Each test has its bound (`tools.bounds`). Where nothing is reported for `STUCK_S`, or all
takes longer than `WHOLE_S`, all processes say where they stand and are ended. Tests that are missing then count as
failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tools.bounds import descendants

STUCK_S, WHOLE_S = 600.0, 3_600.0
FEW = 5
"""More than so many do not fail by accident."""
DUMP_S = 20.0
NOTES = "GODWIT_SUITE_NOTES"
"""Names the file in which the plugin notes what happens, a JSON list a line."""
ALONE = "GODWIT_SUITE_ALONE"
"""How many did what in the run of all; the plugin tells it in the run of those few."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.suite", description="Run all tests.")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--stuck-s", type=float, default=STUCK_S, help=argparse.SUPPRESS)
    told, more = parser.parse_known_args(arguments)
    # The order of tests is that of tests/conftest.py, which knows what takes long; xdist would count tests.
    shared = ["--numprocesses", str(told.processes), "--dist", "loadgroup", "--no-loadscope-reorder", *more]
    with tempfile.TemporaryDirectory(prefix="godwit-suite-") as folder:
        notes = Path(folder) / "notes.jsonl"
        status = ran(shared, notes, told.stuck_s)
        if status == 0:
            return 0
        failed, last = missed(notes)
        if not 0 < len(failed) <= FEW:
            return status if status > 0 else 1
        options = [word for word in more if not Path(word.partition("::")[0]).exists()]
        return ran(["--numprocesses", "1", *options, *failed], notes, told.stuck_s, {ALONE: last or "it did not end"})


def ran(words: Sequence[str], notes: Path, stuck_s: float, more: dict[str, str] | None = None) -> int:
    """The status of this run of pytest; below 0 where it was ended."""
    notes.write_text("")
    environment = {**os.environ, NOTES: str(notes), **(more or {})}
    command = [sys.executable, "-m", "pytest", "-p", "tools.suite", *words]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    begun_s = time.monotonic()
    with ended_with_us(process):
        while True:
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                return process.wait(1)
            silent_s = time.time() - notes.stat().st_mtime
            if silent_s > stuck_s or time.monotonic() - begun_s > WHOLE_S:
                print(f"\nsuite: nothing was reported for {silent_s:.0f} s; this is where all stand", flush=True)
                return end(process)


def end(process: subprocess.Popen[bytes]) -> int:
    """Have workers and then pytest itself print their stacks as they abort, and end all that they have started."""
    started = descendants(process.pid)
    for one in [*(child for child in started if _parent(child) == process.pid), process.pid]:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGABRT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(DUMP_S)
    for one in (*started, process.pid):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    process.wait()
    return -signal.SIGABRT


@contextmanager
def ended_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whoever ends this process ends the tests, too."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if process.poll() is None:
            process.terminate()


def missed(notes: Path) -> tuple[list[str], str]:
    """Which tests failed or were not run to their end, and how many did what; none where even finding them failed."""
    found = dict[str, bool]()
    last = ""
    for line in notes.read_text().splitlines():
        match json.loads(line):
            case ["found", list() as names]:
                found = {_plain(name): False for name in names} | found
            case ["passed", name]:
                found[name] = True
            case ["failed", name]:
                found[_plain(name)] = False
            case ["broken", _]:
                return [], ""
            case ["last", line]:
                last = line
    return [name for name, passed in found.items() if not passed], last


def _plain(name: str) -> str:
    """As it can be typed: a worker that ends leaves its test's name with the group (`tools.groups`)."""
    return re.sub(r"@[^\]]*$", "", name)


def _parent(process: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


# What follows is the plugin, in the process of pytest that hears of all tests.

_failing = set[str]()


def note(*words: object) -> None:
    if path := os.environ.get(NOTES):
        with Path(path).open("a") as notes:
            notes.write(json.dumps(words) + "\n")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: Sequence[str]) -> None:
    note("found", list(ids))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        note("broken", report.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failing.add(report.nodeid)
        note("failed", report.nodeid)
    elif report.when == "teardown" and report.nodeid not in _failing:
        note("passed", report.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if before := os.environ.get(ALONE):
        terminalreporter.section("these failed beside others, and were run again alone", bold=True, yellow=True)
        terminalreporter.line(f"beside others: {before}")
        for outcome in ("passed", "failed", "error"):
            for report in terminalreporter.getreports(outcome):
                if outcome != "passed" or report.when == "call":
                    terminalreporter.line(f"alone {outcome}: {report.nodeid}")
        terminalreporter.line("What passes alone only is at fault itself: have it wait for the thing, or share less.")


def pytest_unconfigure(config: pytest.Config) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        counts = {name: len(reporter.getreports(name)) for name in ("failed", "passed", "skipped", "error")}
        note("last", ", ".join(f"{count} {name}" for name, count in counts.items() if count))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

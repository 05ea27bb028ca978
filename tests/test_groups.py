"""Groups of tests in two workers of a suite of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CONFTEST = """
import pytest
from tools import groups

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if groups.shares(item):
            groups.join(item, item.nodeid.partition("::")[0])
    if groups.are_asked_for(config):
        items[:] = groups.ordered(items, ["long"])
        groups.name_after_groups(items)

@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    groups.name_plainly(session.items)

def pytest_xdist_make_scheduler(config, log):
    return groups.Scheduling(config, log)
"""
SHARING = """
import pytest, pathlib

@pytest.fixture(scope="module")
def made():
    with open("made", "a") as file:
        file.write(__name__ + "\\n")

@pytest.mark.parametrize("number", range(8))
def test_it_is_there(made, number):
    pass
"""
LONG = """
import pytest

@pytest.mark.xdist_group("long")
@pytest.mark.parametrize("number", [1, 2])
def test_it_takes_long(number):
    assert number == 1
"""
ENDING = """
import os, threading
import pytest

@pytest.mark.parametrize("number", range(8))
def test_whatever_comes(number):
    if number == 1:
        os._exit(1)
    while number == 5:
        try:
            threading.Event().wait()
        except BaseException:
            pass
"""


def ran(folder: Path, *more: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group: of one worker\n")
    words = ["-m", "pytest", "-v", "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    # Where CI is set pytest tells a failure whole in its summary, too.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
    own["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, *words, *more], cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=200
    )
    return done.stdout + done.stderr


def test_what_a_module_makes_is_made_once_and_what_takes_long_is_handed_out_first(tmp_path: Path) -> None:
    for name, text in {"a": SHARING, "b": SHARING, "z": LONG}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    said = ran(tmp_path)
    assert sorted((tmp_path / "made").read_text().split()) == ["test_a", "test_b"], said
    # As it can be typed again.
    assert "FAILED test_z.py::test_it_takes_long[2] - " in said
    workers = [line.split()[0] for line in said.splitlines() if line.startswith("[gw") and "test_z" in line]
    assert len(workers) == 2
    assert len(set(workers)) == 1
    assert "17 passed" in said


def test_a_test_that_ends_its_worker_fails_and_is_not_begun_again_and_all_others_are_run(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(ENDING)
    said = ran(tmp_path, "-p", "tools.bounds", "-o", "bound_s=5", "-o", "grace_s=3")
    assert "2 failed, 6 passed" in said
    assert said.count("' crashed while running '") == 2
    # Where a test never ends, stacks are told of it.
    assert said.count("Timeout (0:00:08)!") == 1
    assert "in test_whatever_comes" in said

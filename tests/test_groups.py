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


def test_what_a_module_makes_is_made_once_and_what_takes_long_is_handed_out_first(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group: of one worker\n")
    for name, text in {"a": SHARING, "b": SHARING, "z": LONG}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    words = ["-m", "pytest", "-v", "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    assert sorted((tmp_path / "made").read_text().split()) == ["test_a", "test_b"], done.stdout
    # As it can be typed again.
    assert "FAILED test_z.py::test_it_takes_long[2] - " in done.stdout
    workers = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("[gw") and "test_z" in line]
    assert len(workers) == 2
    assert len(set(workers)) == 1
    assert "17 passed" in done.stdout

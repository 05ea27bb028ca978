"""Tests that never end, in a suite of their own: each fails, and the others are run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

WAITING = """
import asyncio, subprocess, sys, threading, time
import pytest
from hypothesis import given, strategies as st

async def an_answer():
    await asyncio.Event().wait()

def test_a_loop_that_nobody_wakes():
    asyncio.run(an_answer())

def test_a_process_that_does_not_end():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(9)"]) as process:
        process.wait()

@given(st.integers())
def test_every_example(number):
    threading.Event().wait()

@pytest.fixture
def what_does_not_go():
    yield
    threading.Event().wait()

def test_what_is_left(what_does_not_go):
    pass

@pytest.mark.bound(30)
def test_a_bound_of_its_own():
    time.sleep(6)

def test_afterwards():
    pass
"""


def ran(folder: Path, text: str) -> str:
    (folder / "test_some.py").write_text(text)
    words = ["-m", "pytest", "-p", "tools.bounds", "-p", "no:cacheprovider", "-o", "bound_s=5"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=200
    )
    return done.stdout + done.stderr


def test_a_test_that_waits_for_ever_fails_and_says_where_and_the_rest_is_run(tmp_path: Path) -> None:
    said = ran(tmp_path, WAITING)
    assert "3 failed, 3 passed, 1 error" in said
    assert "FAILED test_some.py::test_every_example" in said
    assert "ERROR test_some.py::test_what_is_left" in said
    assert "its call took over 5 s" in said
    assert "await asyncio.Event().wait()" in said.partition("where everything stood")[2]
    assert "-c import time; time.sleep(9)" in said

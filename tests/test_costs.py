"""A test's processor time has that of the processes which it starts in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

TESTS = """
import subprocess, sys, time

WORK = "import time\\nwhile time.process_time() < 0.5: pass"

def test_waits():
    time.sleep(0.5)

def test_has_another_work():
    subprocess.run([sys.executable, "-c", WORK], check=True)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux tells what processes use")
def test_what_a_test_starts_counts_and_waiting_does_not(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    words = [sys.executable, "-m", "pytest", "-p", "tools.costs", "-p", "no:cacheprovider", "--numprocesses", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout
    found = {name: float(cost) for cost, name in re.findall(r"([\d.]+) s  \S+::(\w+)", done.stdout)}
    assert found["test_has_another_work"] >= 0.5
    assert found["test_waits"] < 0.4

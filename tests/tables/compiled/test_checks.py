"""The checked mode of compiled code, in processes of their own: it is chosen when numba is imported."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from godwit.tables.compiled.books import CHECKED
from godwit.tables.compiled.checks import function_name

ROOT = Path(__file__).resolve().parents[3]
FAULTS, FUZZING = "tests.tables.compiled.faults", "tests.tables.compiled.fuzzing"
SECONDS = (2, pytest.param(60, marks=pytest.mark.explore))

# Less optimised code is compiled in half the time; without any, numba would not keep it for the next run.
MODE = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1"}

pytestmark = [
    pytest.mark.skipif(CHECKED, reason="this process is in the checked mode already"),
    pytest.mark.xdist_group("checked"),
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **MODE}
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.bound(600)
def test_it_finds_every_planted_fault_and_none_in_the_property_tests_of_the_index() -> None:
    names = (f"{FAULTS.replace('.', '/')}.py", "tests/tables/matching/test_index.py")
    ran = run("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *names)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
    assert "skipped" not in ran.stdout


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("seconds", SECONDS)
def test_filters_and_events_made_of_any_bytes_touch_no_memory_but_theirs(seconds: int) -> None:
    ran = run(FUZZING, str(seconds))
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "stat::number_of_executed_units" in ran.stderr


def test_off_it_costs_nothing_but_a_flag() -> None:
    from godwit.tables.compiled.kernels import made

    assert all(hasattr(kernel, "py_func") for kernel in made()), "kernels are called directly, without a wrapper"


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZN6godwit6tables8compiled4walk4emitB3v12B38c8tJTIcFHzw", "walk.emit"),
        ("strange", "strange"),
    ],
)
def test_a_fault_names_the_function_as_people_do(mangled: str, name: str) -> None:
    assert function_name(mangled) == name

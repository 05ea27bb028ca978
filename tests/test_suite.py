"""Small suites as `make test` runs the large one: tests that fail in company, that fail, and that are stuck."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SOME = """
import os, pathlib, time
import pytest

@pytest.mark.parametrize("number", range(6))
def test_it_is_there(number):
    pass

def test_its_first_time():
    tried = pathlib.Path("tried")
    if not tried.exists():
        tried.touch()
        {trouble}
"""


def ran(folder: Path, trouble: str, *words: str) -> tuple[int, str]:
    (folder / "test_some.py").write_text(SOME.format(trouble=trouble))
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GODWIT_SUITE_"))}
    own |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "tools.suite", "--processes", "2", *words, "-p", "xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=200,
    )
    return done.returncode, done.stdout


def closing(said: str) -> str:
    return said.splitlines()[-1].strip("= ")


def test_where_all_pass_nothing_is_run_again(tmp_path: Path) -> None:
    status, said = ran(tmp_path, "pass")
    assert (status, "alone" in said) == (0, False)
    assert closing(said).startswith("7 passed in ")


def test_what_fails_beside_others_and_passes_alone_is_told_and_fails_nothing(tmp_path: Path) -> None:
    status, said = ran(tmp_path, "assert not 'its company'")
    assert status == 0, said
    assert "1 failed, 6 passed in" in said
    assert "beside others: 1 failed, 6 passed" in said
    assert "alone passed: test_some.py::test_its_first_time" in said
    assert closing(said).startswith("1 passed in ")


def test_what_fails_alone_fails(tmp_path: Path) -> None:
    status, said = ran(tmp_path, "pass\n    assert not 'right'")
    assert status == 1
    assert "alone failed: test_some.py::test_its_first_time" in said
    assert closing(said).startswith("1 failed in ")


def test_more_than_a_few_fail_at_once(tmp_path: Path) -> None:
    status, said = ran(tmp_path, "pass\n\n@pytest.mark.parametrize('number', range(6))\ndef test_not(number): assert 0")
    assert (status, "alone" in said) == (1, False)
    assert closing(said).startswith("6 failed, 7 passed in ")


def test_a_run_in_which_nothing_is_reported_says_where_it_stands_and_goes_on_with_what_is_missing(
    tmp_path: Path,
) -> None:
    status, said = ran(tmp_path, "time.sleep(1_000)", "--stuck-s", "40")
    assert status == 0, said
    assert "nothing was reported for" in said
    assert "in test_its_first_time" in said
    assert "alone passed: test_some.py::test_its_first_time" in said
    assert closing(said).startswith("1 passed in ")


def test_a_module_that_cannot_be_read_fails_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("1 / 0")
    status, said = ran(tmp_path, "pass")
    assert status != 0
    assert "alone" not in said

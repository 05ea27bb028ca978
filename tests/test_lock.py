"""The lock fits pyproject.toml, pins everything and says nothing of where to fetch it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools import environment, lock

UV = Path(sys.executable).with_name("uv")


def test_the_lock_fits_the_project() -> None:
    answer = subprocess.run([UV, "lock", "--check", "--offline"], cwd=lock.ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, f"run make lock:\n{answer.stderr}"


def test_the_lock_names_no_host_but_the_one_that_cannot_exist() -> None:
    addresses = re.findall(r"\w+://[^/\"]*", (lock.ROOT / "uv.lock").read_text())
    assert set(addresses) == {lock.NOWHERE}


def test_hosts_go_and_everything_else_stays() -> None:
    locked = """
source = { registry = "https://somewhere.example/simple" }
wheels = [
    { url = "https://files.example/ab/cd/one-1.0-py3-none-any.whl", hash = "sha256:12", size = 3 },
]
"""
    assert (
        lock.without_hosts(locked)
        == """
source = { registry = "https://registry.invalid/simple" }
wheels = [
    { url = "https://registry.invalid/one-1.0-py3-none-any.whl", hash = "sha256:12", size = 3 },
]
"""
    )
    assert lock.without_hosts(lock.without_hosts(locked)) == lock.without_hosts(locked)


def test_what_pip_is_given_has_hashes_and_no_addresses() -> None:
    for wanted in environment.WANTED.values():
        lines = environment.export(*wanted)
        assert "://" not in lines
        requirements = re.split(r"\n(?=\S)", lines.strip())
        assert [line for line in requirements if "==" not in line or "--hash=sha256:" not in line] == []

"""The index is loaded beside the broker's work."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from godwit.net import preload as warming
from godwit.net.preload import IndexLoader


def until(loader: IndexLoader) -> None:
    """Where the index was never compiled, that takes a minute and more."""
    while not loader.prepared():
        time.sleep(0.1)


def test_it_is_there_some_time_after_it_was_asked_for() -> None:
    loader = IndexLoader()
    until(loader)
    assert loader.prepared()


def test_where_it_cannot_be_loaded_the_broker_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def broken() -> None:
        tried.append(1)
        raise OSError("no compiler")

    monkeypatch.setattr(warming, "warm", broken)
    loader = IndexLoader()
    while not tried:
        loader.prepared()
    time.sleep(0.05)
    assert not loader.prepared()
    assert tried == [1]


def test_a_broker_whose_clients_have_no_conditions_starts_without_what_reads_them() -> None:
    code = """
import sys
import godwit.net.admin.portal, godwit.net.ops.services, godwit.net.server
assert "sqlglot" not in sys.modules
assert "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_what_reads_conditions_is_there_before_the_first_session_with_one_is_handed_over() -> None:
    code = """
import sys
from godwit.net.preload import ParserLoader
usual_s = sys.getswitchinterval()
assert "sqlglot" not in sys.modules
loader = ParserLoader()
for _ in range(3):
    loader.begin()
loader.thread.join()
assert "sqlglot" in sys.modules
assert "numpy" in sys.modules, "many filters of others would have the loop wait for it"
assert sys.getswitchinterval() == usual_s
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

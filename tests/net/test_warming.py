"""The index is loaded beside the broker's work."""

from __future__ import annotations

import time

import pytest

from godwit.net import warming
from godwit.net.warming import IndexLoader


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

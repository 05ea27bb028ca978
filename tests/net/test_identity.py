"""Names and disks: a broker is who it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.net.store.test_sqlite import with_store

from godwit.net.identity import Identity, identify
from godwit.net.store.sqlite import SqliteStore, StoreError


def identified(folder: Path, name: str = "") -> Identity:
    found: list[Identity] = []

    async def ask(store: SqliteStore) -> None:
        found.append(await identify(store, name, lambda: "made-up"))

    with_store(folder, ask)
    return found[0]


def test_a_broker_is_the_same_after_every_start(tmp_path: Path) -> None:
    first, second, third = identified(tmp_path, "north"), identified(tmp_path), identified(tmp_path, "north")
    assert (first.name, second.name, third.name) == ("north",) * 3
    assert first.disk == second.disk == third.disk
    assert (first.incarnation, second.incarnation, third.incarnation) == (1, 2, 3)


def test_a_name_is_made_up_once(tmp_path: Path) -> None:
    assert identified(tmp_path).name == identified(tmp_path).name == "made-up"


def test_a_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    identified(tmp_path, "north")
    with pytest.raises(StoreError, match=r"belongs to the broker 'north'; start 'south' with a data directory of its"):
        identified(tmp_path, "south")

"""A disk that an earlier version wrote is taken up as it is; what cannot be is said, and nothing is changed."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import msgspec
import pytest

from godwit.net.store.batch import NUMBERS
from godwit.net.store.migration import FORMATS
from godwit.net.store.sqlite import FILE, SCHEMA, SqliteStore, StoreError
from godwit.protocols.broker.store import MemoryStore
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import World

DISK = Path(__file__).parent / "disks" / "format-3.sql"
"""Made by the last version of that format: a session with two subscriptions and three deliveries, something retained,
and the name of another broker."""


def old_disk(folder: Path, *changes: tuple[str, tuple[object, ...]]) -> Path:
    connection = sqlite3.connect(folder / FILE)
    connection.executescript(DISK.read_text())
    for change in changes:
        connection.execute(*change)
    connection.commit()
    connection.close()
    return folder


def rows(folder: Path) -> MemoryStore:
    """All that a broker finds there."""

    async def read() -> MemoryStore:
        store = SqliteStore(folder)
        found = MemoryStore(
            {table: {(o, n): v for o, n, v in store.load(table)} for table in NUMBERS}, lambda call: None
        )
        await store.close()
        return found

    return asyncio.run(read())


def test_a_session_of_an_earlier_format_goes_on(tmp_path: Path) -> None:
    found = rows(old_disk(tmp_path))
    world = World(1)
    site = world.sites["b1"]
    site.crash()
    site.disk.update({table: {(o, n): v for o, n, v in found.load(table)} for table in NUMBERS})
    site.start()
    van = Client(world, "van-7")
    van.connect("b1", expiry_s=1e9)
    world.run()
    assert van.presents == [True]
    assert [msgspec.json.decode(payload)["n"] for payload in van.payloads] == [0, 1, 2]
    assert site.broker.sessions["van-7"].subscriptions.keys() == {"news/#", "gone/#"}
    assert site.broker.retained_count == 1


def test_it_is_brought_up_to_date_once(tmp_path: Path) -> None:
    first = rows(old_disk(tmp_path))
    again = rows(tmp_path)
    assert all(list(first.load(table)) == list(again.load(table)) for table in NUMBERS)
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
    assert SCHEMA not in FORMATS


def test_a_disk_of_the_last_format_is_as_it_was(tmp_path: Path) -> None:
    first = rows(old_disk(tmp_path))
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA - 1}")
    again = rows(tmp_path)
    assert all(list(first.load(table)) == list(again.load(table)) for table in NUMBERS)


def test_what_only_the_earlier_version_can_end_is_told_and_not_touched(tmp_path: Path) -> None:
    unknown = msgspec.msgpack.encode([["b2"], msgspec.msgpack.encode(["forgotten", 1])])
    insert = ('INSERT INTO "rows" VALUES (?, ?, ?, ?)', (NUMBERS["outbox"], "", 7, unknown))
    old_disk(tmp_path, insert)
    with pytest.raises(StoreError, match=r"format 3, and 1 messages wait for other brokers .* run the version"):
        rows(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)

"""A disk that an earlier version wrote is taken up as it is; what cannot be is said, and nothing is changed."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import msgspec
import pytest

from godwit.filters.text import parse
from godwit.net.store.batch import NUMBERS
from godwit.net.store.migration import FORMATS
from godwit.net.store.sqlite import FILE, SCHEMA, SqliteStore, StoreError
from godwit.protocols.broker.fabric.ring.book import Book
from godwit.protocols.broker.fabric.ring.custody import Passes
from godwit.protocols.broker.messages import Region
from godwit.protocols.broker.store import MemoryStore
from godwit.protocols.broker.topics import meaning
from godwit.protocols.gathering.space import WHOLE, cut_between
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


CUT = cut_between((-8.6, 41.2), (-3.7, 40.4))
WEST, EAST = WHOLE.append(CUT.opposite(), "0"), WHOLE.append(CUT, "1")
REGIONS = (Region(WEST, "porto", 2), Region(EAST, "madrid", 3))


def ring_disk(folder: Path, *more: tuple[str, bytes]) -> MemoryStore:
    """Of format 6, with rows of a ring that no later version writes, and as it is when it was opened."""
    rows(old_disk(folder))
    known = [(f"region {one.prefix}", msgspec.msgpack.encode(one)) for one in REGIONS]
    with sqlite3.connect(folder / FILE) as connection:
        for owner, value in (*known, *more):
            connection.execute('INSERT INTO "rows" VALUES (?, ?, 0, ?)', (NUMBERS["ring"], owner, value))
        connection.execute("PRAGMA user_version = 6")
    return rows(folder)


def names(store: MemoryStore) -> set[str]:
    return {owner.partition(" ")[0] for owner, _, _ in store.load("ring")}


def test_a_ring_knows_for_which_cells_it_had_sent_publications_to_whom(tmp_path: Path) -> None:
    found = ring_disk(tmp_path, ("routed porto", b""), ("routed gone", b""))
    passes = Passes(found)
    assert passes.begin(Region(WEST, "lisbon", 3), 1) == "porto", "what went there goes before what goes to lisbon"
    assert passes.begin(Region(EAST, "lisbon", 4), 2) == "", "nothing went to madrid"
    assert names(found) == {"region", "sent", "passing"}


def test_a_ring_goes_on_knowing_what_is_wanted_where_a_broker_stands_in_for_another(tmp_path: Path) -> None:
    wanted = (meaning("a/#"), *parse("pm25 > 150"))
    found = ring_disk(tmp_path, ("kept 0", msgspec.msgpack.encode(["porto", wanted])))
    book = Book(found, lambda region, filters: tuple(filters), 0.0)
    assert book.wanted["porto"] == wanted
    assert names(found) == {"region", "inherited"}


def test_what_a_ring_has_noted_since_stays(tmp_path: Path) -> None:
    found = ring_disk(tmp_path, ("routed porto", b""), ("sent 0", b"lisbon"))
    assert Passes(found).sent == {"0": "lisbon"}

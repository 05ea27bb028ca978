"""The disk: what is settled survives anything, and what cannot be written is said."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.net.store import sqlite as module
from godwit.net.store.sqlite import FILE, SCHEMA, SqliteStore, StoreError, Sync
from godwit.protocols.broker.store import TABLES

Rows = list[tuple[str, int, bytes]]


def with_store(folder: Path, use: Callable[[SqliteStore], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        store = SqliteStore(folder)
        try:
            await use(store)
        finally:
            await store.close()

    asyncio.run(run())


def on_disk(folder: Path, table: str) -> Rows:
    found: Rows = []

    async def look(store: SqliteStore) -> None:
        found.extend(store.load(table))

    with_store(folder, look)
    return found


def test_what_was_written_is_there_after_a_restart_by_owner_and_number(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        for owner, number in (("ü", 2), ("b", 10), ("b", 9), ("", -1)):
            store.put("queues", owner, number, f"{owner}{number}".encode())
        store.put("outbox", "b", 9, b"another table")

    with_store(tmp_path, write)
    assert on_disk(tmp_path, "queues") == [("", -1, b"-1"), ("b", 9, b"b9"), ("b", 10, b"b10"), ("ü", 2, "ü2".encode())]
    assert on_disk(tmp_path, "outbox") == [("b", 9, b"another table")]


owners = st.sampled_from(["a", "b", ""])
numbers = st.integers(0, 3)
tables = st.sampled_from(["queues", "outbox"])
operations = st.lists(
    st.tuples(st.just("put"), tables, owners, numbers, st.binary(max_size=3))
    | st.tuples(st.just("delete"), tables, owners, numbers)
    | st.tuples(st.just("drop"), tables, owners)
    | st.tuples(st.just("wait")),
    max_size=40,
)


@given(operations=operations)
@settings(max_examples=25)
def test_any_history_reads_like_a_dictionary_at_every_moment_and_after(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[Any, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    expected: dict[str, dict[tuple[str, int], bytes]] = {table: {} for table in TABLES}

    def rows(table: str) -> Rows:
        return [(owner, number, value) for (owner, number), value in sorted(expected[table].items())]

    async def play(store: SqliteStore) -> None:
        for operation in operations:
            match operation:
                case "put", table, owner, number, value:
                    store.put(table, owner, number, value)
                    expected[table][owner, number] = value
                case "delete", table, owner, number:
                    store.delete(table, owner, number)
                    expected[table].pop((owner, number), None)
                case "drop", table, owner:
                    store.drop(table, owner)
                    expected[table] = {key: value for key, value in expected[table].items() if key[0] != owner}
                case _:
                    await store.flushed()
            assert [list(store.load(table)) for table in ("queues", "outbox")] == [rows("queues"), rows("outbox")]

    with_store(folder, play)
    assert [on_disk(folder, table) for table in ("queues", "outbox")] == [rows("queues"), rows("outbox")]


def test_settled_calls_come_later_in_order_and_one_failing_stops_no_other(tmp_path: Path) -> None:
    called: list[int] = []

    async def write(store: SqliteStore) -> None:
        for number in range(300):
            store.put("bodies", "", number, b"x")
            store.settled(partial(called.append, number))
            if number % 100 == 50:
                store.settled(lambda: called.remove(-1))
            if number % 70 == 0:
                await asyncio.sleep(0)
        assert called != list(range(300))
        await store.flushed()

    with_store(tmp_path, write)
    assert called == list(range(300))


def test_whoever_asks_with_nothing_to_write_still_waits_for_those_before(tmp_path: Path) -> None:
    called: list[str] = []

    async def ask(store: SqliteStore) -> None:
        store.put("meta", "a", 0, b"")
        store.settled(partial(called.append, "first"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        store.settled(partial(called.append, "second"))
        await store.flushed()

    with_store(tmp_path, ask)
    assert called == ["first", "second"]


@pytest.mark.parametrize("pages", [module.WRITTEN_PAGES, 5])
def test_large_and_small_transactions_settle_in_the_order_they_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    monkeypatch.setattr(module, "WRITTEN_PAGES", pages)
    called: list[int] = []

    async def write(store: SqliteStore) -> None:
        dice = random.Random(pages)
        for turn in range(60):
            for number in range(dice.choice((0, 1, 3, 2 * module.SMALL_ROWS))):
                store.put("queues", str(turn), number, b"x")
            store.settled(partial(called.append, turn))
            if dice.random() < 0.5:
                await asyncio.sleep(dice.choice((0.0, 0.002)))
        await store.flushed()
        assert called == list(range(60))
        assert store.pending == 0

    with_store(tmp_path, write)


def test_what_is_settled_is_in_the_file_and_many_rows_take_few_transactions(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        seen: list[int] = []
        for number in range(1_000):
            store.put("bodies", "", number, b"x")
            store.settled(partial(seen.append, number))
            if number % 10 == 0:
                await asyncio.sleep(0)
                other = sqlite3.connect(tmp_path / FILE)
                (count,) = other.execute('SELECT count(*) FROM "rows"').fetchone()
                other.close()
                assert count >= len(seen)
        await store.flushed()
        assert store.changes == 1_000
        assert store.commits < 500

    with_store(tmp_path, write)


def test_a_row_that_comes_and_goes_before_it_is_written_is_written_once_at_most(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        for number in range(1_000):
            store.put("queues", "client", number, bytes(300))
            store.delete("queues", "client", number)
        await store.flushed()
        assert store.commits == 1

    with_store(tmp_path, write)
    assert on_disk(tmp_path, "queues") == []


def test_many_deletions_are_found_by_the_index(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        for number in range(1_000):
            store.put("queues", f"c{number % 7}", number, b"x")
        await store.flushed()
        for number in range(0, 1_000, 2):
            store.delete("queues", f"c{number % 7}", number)
        store.drop("queues", "c3")

    with_store(tmp_path, write)
    left = {number for _, number, _ in on_disk(tmp_path, "queues")}
    assert left == {number for number in range(1, 1_000, 2) if number % 7 != 3}


WRITER = """
import asyncio, sys
from pathlib import Path
from godwit.net.store.sqlite import SqliteStore, Sync

async def main():
    store = SqliteStore(Path(sys.argv[1]), Sync(sys.argv[2]))
    number = max((n for _, n, _ in store.load("bodies")), default=0)
    def told(number):
        return lambda: print(number, flush=True)
    while True:
        for _ in range(7):
            number += 1
            store.put("bodies", "", number, b"%d" % number * 50)
            store.put("queues", "gone", number, b"x")
            store.delete("queues", "gone", number - 3)
            store.settled(told(number))
        await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.mark.parametrize("sync", list(Sync))
def test_every_settled_row_outlives_a_killed_process(tmp_path: Path, sync: Sync) -> None:
    dice = random.Random(sync)
    settled = 0
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, str(tmp_path), sync]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(dice.uniform(0, 0.25))
            process.send_signal(signal.SIGKILL)
            told = [first, *process.stdout.readlines()]
        settled = max(int(line) for line in told if line.endswith("\n"))
        rows = on_disk(tmp_path, "bodies")
        assert [number for _, number, _ in rows] == list(range(1, len(rows) + 1))
        assert len(rows) >= settled
        assert all(value == b"%d" % number * 50 for _, number, value in rows)
        assert {n for _, n, _ in on_disk(tmp_path, "queues")} == set(range(max(1, len(rows) - 2), len(rows) + 1))
    assert settled > 0


def test_two_brokers_cannot_have_one_directory(tmp_path: Path) -> None:
    async def again(store: SqliteStore) -> None:
        with pytest.raises(StoreError, match=rf"{tmp_path}: in use by process {os.getpid()}; each broker needs"):
            SqliteStore(tmp_path)

    with_store(tmp_path, again)
    with_store(tmp_path, lambda store: asyncio.sleep(0))


def test_a_full_disk_stops_acknowledgements_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPEATED_S", 0.01)
    health: list[str] = []
    called: list[str] = []

    async def write(store: SqliteStore) -> None:
        store.on_health = lambda failure: health.append(str(failure))
        store.put("bodies", "", 1, b"fits")
        await store.flushed()
        limit(store, 1)
        store.put("bodies", "", 2, bytes(100_000))
        store.settled(lambda: called.append("large"))
        with pytest.raises(StoreError, match="the disk is full; make room"):
            await store.flushed()
        store.put("bodies", "", 3, b"small")
        store.settled(lambda: called.append("small"))
        await asyncio.sleep(0.05)
        assert called == []
        assert store.failure is not None
        limit(store, 1_000_000)
        while store.failure is not None:
            await asyncio.sleep(0.01)
        await store.flushed()
        assert called == ["large", "small"]

    def limit(store: SqliteStore, pages: int) -> None:
        store._connection.execute(f"PRAGMA max_page_count = {pages}")

    with_store(tmp_path, write)
    assert [number for _, number, _ in on_disk(tmp_path, "bodies")] == [1, 2, 3]
    assert len(health) == 2
    assert "full" in health[0]
    assert health[1] == "None"


def test_a_broken_disk_is_not_trusted_again(tmp_path: Path) -> None:
    called: list[str] = []

    async def write(store: SqliteStore) -> None:
        store._connection.close()
        store.put("bodies", "", 1, b"x")
        with pytest.raises(StoreError, match=f"{FILE}: Cannot operate on a closed database"):
            await store.flushed()
        for number in range(10_000):
            store.put("bodies", "", number, b"x")
            store.settled(lambda: called.append("settled"))
        while store.pending >= 10_000:
            await asyncio.sleep(0.01)
        with pytest.raises(StoreError):
            await store.flushed()

    with_store(tmp_path, write)
    assert called == []
    assert on_disk(tmp_path, "bodies") == []


async def opened(folder: Path) -> None:
    SqliteStore(folder)


def test_files_that_are_not_a_store_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"certainly not a database" * 100)
    with pytest.raises(StoreError, match=rf"{FILE}: .*this is no database; restore it from a copy"):
        asyncio.run(opened(tmp_path))
    (tmp_path / FILE).unlink()
    other = sqlite3.connect(tmp_path / FILE)
    other.execute("CREATE TABLE music (song)")
    other.close()
    with pytest.raises(StoreError, match=r"a database of another program; name another data directory"):
        asyncio.run(opened(tmp_path))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    async def fill(store: SqliteStore) -> None:
        for number in range(2_000):
            store.put("bodies", "", number, bytes(300))

    with_store(tmp_path, fill)
    path = tmp_path / FILE
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=rf"{FILE}: .*the file is damaged; restore it from a copy"):
        on_disk(tmp_path, "bodies")


def test_tables_keep_their_numbers_in_files_that_are_out_there() -> None:
    """A new table goes to the end; whoever moves one makes a new `SCHEMA`."""
    known = "meta sessions subscriptions bodies queues incoming retained outbox marks places peers interests"
    assert SCHEMA == 7
    assert " ".join(TABLES).startswith(known)


def test_a_newer_format_is_not_touched(tmp_path: Path) -> None:
    with_store(tmp_path, lambda store: asyncio.sleep(0))
    other = sqlite3.connect(tmp_path / FILE)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(StoreError, match=f"written by another version: format 99, this godwit reads {SCHEMA}"):
        asyncio.run(opened(tmp_path))


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/data: Not a directory; name a directory that this user may write"):
        asyncio.run(opened(tmp_path / "file" / "data"))


def test_anybody_may_glance_at_what_is_on_the_disk_while_a_broker_writes(tmp_path: Path) -> None:
    async def use(store: SqliteStore) -> None:
        store.put("neighbors", "south", 0, b"x")
        await store.flushed()
        store.put("neighbors", "east", 0, b"later")
        assert module.glance(tmp_path, "neighbors", "peers") == [[("south", 0, b"x")], []]
        assert module.is_served(tmp_path)

    with_store(tmp_path, use)
    assert not module.is_served(tmp_path)
    assert [owner for owner, _, _ in module.glance(tmp_path, "neighbors")[0]] == ["east", "south"]


def test_where_no_broker_ever_was_there_is_nothing_to_glance_at(tmp_path: Path) -> None:
    assert not module.is_served(tmp_path)
    with pytest.raises(StoreError, match="name the data directory of a broker"):
        module.glance(tmp_path, "meta")
    (tmp_path / FILE).write_bytes(b"something else entirely, and more of it" * 100)
    with pytest.raises(StoreError, match="this is no database"):
        module.glance(tmp_path, "meta")
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE]


def test_a_file_that_is_deleted_or_replaced_while_it_is_written_is_noticed(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        store.put("meta", "a", 0, b"1")
        await store.flushed()
        store.path.rename(tmp_path / "away")
        store.put("meta", "a", 0, b"2")
        with pytest.raises(StoreError, match=r"was deleted or replaced while the broker runs.*put the file"):
            await store.flushed()
        assert store.failure is not None

    with_store(tmp_path, write)


def test_only_its_user_may_read_the_store_though_its_folder_is_open(tmp_path: Path) -> None:
    """Also one that an earlier version made for everybody, and what the next process makes beside it."""
    tmp_path.chmod(0o755)

    async def look(store: SqliteStore) -> None:
        store.put("sessions", "van", 0, b"x")
        await store.flushed()
        files = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.glob(f"{FILE}*")}
        assert len(files) == 3
        assert set(files.values()) == {0o600}

    with_store(tmp_path, look)
    (tmp_path / FILE).chmod(0o644)
    with_store(tmp_path, look)


def test_single_rows_are_as_they_were_put_last(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        assert store.get("meta", "a", 1) is None
        store.put("meta", "a", 1, b"1")
        assert store.get("meta", "a", 1) == b"1"
        await store.flushed()
        assert store.get("meta", "a", 1) == b"1"
        store.put("meta", "a", 1, b"2")
        assert store.get("meta", "a", 1) == b"2"
        store.delete("meta", "a", 1)
        assert store.get("meta", "a", 1) is None
        await store.flushed()
        store.put("meta", "a", 1, b"3")
        store.drop("meta", "a")
        assert store.get("meta", "a", 1) is None
        store.put("meta", "a", 2, b"4")
        assert store.get("meta", "a", 2) == b"4"

    with_store(tmp_path, write)

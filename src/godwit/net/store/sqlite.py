"""The broker's disk: one SQLite file in WAL mode, many rows a transaction.

The loop collects what is written; at the end of its turn all of it becomes one transaction. Where that is small and
need not wait for the disk itself, the loop writes it: to hand it to a thread and to be told costs three times as much,
and milliseconds on a busy machine. Else a thread does, and gets all that has gathered whenever it is free. So the
slower the disk, the larger the transactions, and what is written twice meanwhile is written once.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import resource
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

from godwit.net.ops.histogram import Histogram
from godwit.net.store.batch import CREATE, GET, LOAD, NUMBERS, Batch
from godwit.net.store.migration import FORMATS, UnfinishedError, migrate

log = logging.getLogger("godwit.store")

FILE, LOCK = "godwit.db", "lock"
SCHEMA = 7
APPLICATION = int.from_bytes(b"gdwt", "big")
"""SQLite's mark in the file by which it is known to be ours."""

LAZY_S = 0.05
"""How long writes that nobody waits for may gather: most are deletions of rows that are not written yet."""
LAZY_ROWS = 4_096

SMALL_ROWS = 256
"""What the loop writes itself: not more than it would take a turn for."""
SLOW_S, AVOIDED_S = 0.05, 1.0
"""A disk that once kept the loop waiting for so long is left to the thread for a while."""
WRITTEN_PAGES = 3_500
"""About how much is written before SQLite moves it from its log to the file: that waits for the disk, in the thread."""
PAGES, ROWS_A_PAGE = 2, 8
"""What a transaction writes, as far as can be guessed: so many pages, and one more for so many rows."""

REPEATED_S = 1.0
PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
"""Failures that may go away and leave the file as it was before the transaction. No other one may be repeated: after a
failed fsync nobody knows what is on the disk."""

ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full; make room, and writing goes on by itself",
    sqlite3.SQLITE_BUSY: "another program has locked the file; end it, and writing goes on by itself",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy, or move it away to start empty",
    sqlite3.SQLITE_NOTADB: "this is no database; restore it from a copy, or move it away to start empty",
    sqlite3.SQLITE_READONLY: "the file may not be written; give this user the right to",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; give this user the right to read and write it",
    sqlite3.SQLITE_PERM: "the file may not be written; give this user the right to",
    sqlite3.SQLITE_IOERR: "the disk failed; check it, then start the broker again",
}


class Sync(StrEnum):
    PROCESS = "process"
    """What is settled survives a crash of the process."""
    POWER = "power"
    """It survives a failure of power too: each transaction waits for the disk."""


class StoreError(Exception):
    """The disk does not do what it must; the text says where, why and what to do."""


class LostError(Exception):
    """The file is not where it was."""


class SqliteStore:
    """`protocols.broker.store.Store` in a directory that no other broker has open. Make and use it on a running loop.

    While the disk fails, calls asked for with `settled` wait, so that nothing is acknowledged; `failure` says why, and
    `on_health` is called whenever that changes. A full disk is tried again until it has room.
    """

    def __init__(self, folder: Path, sync: Sync = Sync.PROCESS) -> None:
        self.path = folder / FILE
        self.failure: StoreError | None = None
        self.on_health: Callable[[StoreError | None], None] = lambda failure: None
        self.run: Callable[[Callable[[], None]], None] = _run
        """How what waits is called: a host's `run` counts what fails there."""
        self.after: Callable[[], None] = lambda: None
        """Called when all that waited for a transaction has been called."""
        self.on_write: Callable[[], None] = lambda: None
        self.commits = 0
        self.changes = 0
        self.took = Histogram()
        self._loop = asyncio.get_running_loop()
        self._lock = _locked(folder)
        try:
            self._connection = _opened(self.path, sync)
        except BaseException:
            self._lock.close()
            raise
        self._name = str(self.path)
        found = os.stat(self._name)
        self._inode = (found.st_dev, found.st_ino)
        self._reader: sqlite3.Connection | None = None
        """For single rows: the thread may be in the midst of a transaction with the other one."""
        self._next = Batch()
        self._writing: Batch | None = None
        self._timer: asyncio.Handle | None = None
        self._hurried = False
        self._gathering = False
        self._broken = False
        self._waits = sync is Sync.POWER
        """Whether each transaction waits for the disk."""
        self._avoided_until_s = 0.0
        self._pages = 0
        self._flushes: set[asyncio.Future[None]] = set()
        self._closing = threading.Event()
        self._work: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="godwit-store", daemon=True)
        self._thread.start()

    def touch(self) -> None:
        self._next.is_touched = True
        if self._timer is None:
            self._schedule()

    def put(self, table: str, owner: str, number: int, value: bytes) -> None:
        self._next.change(table, owner, number, value)
        if self._timer is None or self._next.asked >= LAZY_ROWS:
            self._schedule()

    def delete(self, table: str, owner: str, number: int) -> None:
        self._next.change(table, owner, number, None)
        if self._timer is None or self._next.asked >= LAZY_ROWS:
            self._schedule()

    def drop(self, table: str, owner: str) -> None:
        self._next.drop(table, owner)
        self._schedule()

    def load(self, table: str) -> Iterable[tuple[str, int, bytes]]:
        kind = NUMBERS[table]
        try:
            found: list[tuple[str, int, bytes]] = self._connection.execute(LOAD, [kind]).fetchall()
        except sqlite3.Error as error:
            raise _told(self.path, error) from error
        batches = [batch for batch in (self._writing, self._next) if batch]
        if not batches:
            return found
        rows = {(owner, number): value for owner, number, value in found}
        for batch in batches:
            batch.overlay(kind, rows)
        return [(owner, number, value) for (owner, number), value in sorted(rows.items())]

    def get(self, table: str, owner: str, number: int) -> bytes | None:
        for batch in (self._next, self._writing):
            if batch is not None:
                decided, value = batch.find(table, owner, number)
                if decided:
                    return value
        try:
            if self._reader is None:
                self._reader = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
            found: tuple[bytes] | None = self._reader.execute(GET, (NUMBERS[table], owner, number)).fetchone()
        except sqlite3.Error as error:
            raise _told(self.path, error) from error
        return found[0] if found is not None else None

    def settled(self, then: Callable[[], None]) -> None:
        self._next.waiting.append(partial(self.run, then))
        self._hurry()

    async def flushed(self) -> None:
        """Return once everything written so far is durable; `StoreError` where the disk fails."""
        if self.failure is not None:
            raise self.failure
        done: asyncio.Future[None] = self._loop.create_future()
        self._flushes.add(done)
        self._next.waiting.append(partial(_finish, done))
        self._hurry()
        try:
            await done
        finally:
            self._flushes.discard(done)

    async def close(self) -> None:
        """Write what is left, as far as the disk allows, and let go of the directory."""
        with suppress(StoreError):
            await self.flushed()
        self._closing.set()
        self._work.put(None)
        await asyncio.to_thread(self._thread.join)
        if self._timer is not None:
            self._timer.cancel()
        for connection in (self._reader, self._connection):
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
        self._lock.close()

    @property
    def pending(self) -> int:
        """Changes that are not durable yet."""
        return self._next.asked + (self._writing.asked if self._writing else 0)

    def _schedule(self) -> None:
        """Somebody has written; nobody waits for it yet."""
        if self._gathering:
            return
        if self._next.asked >= LAZY_ROWS:
            if self._broken:
                self._next = Batch()
            self._hurry()
        elif self._timer is None and self._writing is None:
            self._timer = self._loop.call_later(LAZY_S, self._flush)

    def _hurry(self) -> None:
        """Write at the end of this turn of the loop; where the thread is busy, that follows when it is done."""
        if self._writing is None and not self._hurried:
            self._hurried = True
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._gathering = True  # nobody needs to be told that there is something to write
        self.on_write()
        self._timer, self._hurried, self._gathering = None, False, False
        batch, self._next = self._next, Batch()
        if not batch:
            _call(batch.waiting)
        elif self._is_quick(batch) and self._write_here(batch):
            self._written(batch)
        else:
            self._writing = batch
            self._work.put(batch)

    def _is_quick(self, batch: Batch) -> bool:
        if self._waits or batch.asked > SMALL_ROWS or self.failure is not None:
            return False
        return self._pages < WRITTEN_PAGES and self._loop.time() >= self._avoided_until_s

    def _write_here(self, batch: Batch) -> bool:
        """False where that failed; the thread tries again, and knows what to say."""
        begun_s, waits = time.monotonic(), _waits()
        error = self._failed(batch)
        if time.monotonic() - begun_s > SLOW_S and _waits() > waits:
            self._avoided_until_s = self._loop.time() + AVOIDED_S
        self._pages += PAGES + batch.asked // ROWS_A_PAGE
        return error is None

    def _written(self, batch: Batch) -> None:
        self.commits += 1
        self.changes += batch.asked
        self._writing = None
        self._report(None)
        waiting = batch.waiting
        if not self._next:
            # Whoever asked since, with nothing to write, comes after those who asked before.
            waiting, self._next = waiting + self._next.waiting, Batch()
        elif self._is_quick(self._next) and self._next.waiting:
            self._hurry()
        elif self._next.waiting or self._next.asked >= LAZY_ROWS:
            self._flush()
        else:
            self._schedule()
        _call(waiting)
        self.after()

    def _report(self, failure: StoreError | None, broken: bool = False) -> None:
        self._broken = broken
        if (failure is None) == (self.failure is None):
            return
        self.failure = failure
        if failure is None:
            log.warning("%s: can be written again", self.path)
        else:
            log.error("%s. Nothing is acknowledged until then", failure)
            for flush in self._flushes:
                if not flush.done():
                    flush.set_exception(failure)
        self.on_health(failure)

    def _write_all(self) -> None:
        """The thread. What it does asks for Python's lock as seldom as possible: the loop is busy with it."""
        while (batch := self._work.get()) is not None:
            while (error := self._failed(batch)) is not None:
                passing = _code(error) in PASSING
                self._tell(self._report, _told(self.path, error), not passing)
                if not passing or self._closing.wait(REPEATED_S):
                    return
            self._move_pages()
            self._tell(self._written, batch)

    def _move_pages(self) -> None:
        """From the log to the file, when it is time; the loop does not write while the thread does."""
        self._pages += PAGES
        if self._pages >= WRITTEN_PAGES:
            self._pages = 0
            with suppress(sqlite3.Error):
                # What is in the log is safe; should this fail, the next transaction tells why.
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _failed(self, batch: Batch) -> Exception | None:
        """Write it; what went wrong, with nothing written."""
        connection = self._connection
        if not self._is_there():
            return LostError("was deleted or replaced while the broker runs")
        begun_s = time.monotonic()
        try:
            connection.execute("BEGIN IMMEDIATE")
            for text, many, values in batch.statements():
                (connection.executemany if many else connection.execute)(text, values)
            connection.execute("COMMIT")
        except Exception as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            return error
        self.took.add(time.monotonic() - begun_s)
        return None

    def _is_there(self) -> bool:
        """SQLite would go on writing to a file that has no name any more, and all of it would be gone with the end."""
        try:
            found = os.stat(self._name)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode

    def _tell(self, call: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):
            # The loop is closed where the broker was abandoned and not stopped: there is nobody to be told.
            self._loop.call_soon_threadsafe(partial(call, *arguments))


def glance(folder: Path, *tables: str) -> list[list[tuple[str, int, bytes]]]:
    """The rows of these tables as they are on the disk now, whether a broker runs there or not."""
    path = folder / FILE
    if not path.exists():
        raise StoreError(f"{path}: no such file; name the data directory of a broker")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return [connection.execute(LOAD, [NUMBERS[table]]).fetchall() for table in tables]
    except sqlite3.Error as error:
        raise _told(path, error) from error


def is_served(folder: Path) -> bool:
    """Whether a broker runs there."""
    try:
        with (folder / LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _locked(folder: Path) -> TextIO:
    """The lock of a directory, ours until it is closed or the process ends."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+")
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}; name a directory that this user may write") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StoreError(
            f"{folder}: in use by process {holder}; each broker needs a data directory of its own"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def _opened(path: Path, sync: Sync) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path, sync)
            _keep_private(path)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise _told(path, error) from error
    return connection


def _keep_private(path: Path) -> None:
    """What people publish and hashes of their passwords are in it: for its user only, whatever the folder is for."""
    for one in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        # Somebody else's that we may only write stays as it is.
        with suppress(FileNotFoundError, PermissionError):
            one.chmod(0o600)


def _prepare(connection: sqlite3.Connection, path: Path, sync: Sync) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != APPLICATION:
        raise StoreError(f"{path}: a database of another program; name another data directory")
    if tables and schema in FORMATS:
        _bring_up_to_date(connection, path, schema)
    elif tables and schema != SCHEMA:
        raise StoreError(f"{path}: written by another version: format {schema}, this godwit reads {SCHEMA}")
    full = "FULL" if sync is Sync.POWER else "NORMAL"
    for setting in (f"application_id = {APPLICATION}", f"user_version = {SCHEMA}"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(CREATE)
    for setting in (f"synchronous = {full}", "wal_autocheckpoint = 4000", "cache_size = -4000", "busy_timeout = 1000"):
        connection.execute(f"PRAGMA {setting}")


def _bring_up_to_date(connection: sqlite3.Connection, path: Path, schema: int) -> None:
    try:
        migrate(connection, schema, SCHEMA)
    except UnfinishedError as error:
        raise StoreError(
            f"{path}: format {schema}, and {error}; run the version that wrote it once more, with its peers, until"
            " 'godwit top' shows that nothing is unconfirmed and no session moves"
        ) from None
    log.info("%s: brought from format %d to %d", path, schema, SCHEMA)


def _waits() -> int:
    """How often this thread has waited for anything but other programs that had their turn before it."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def _call(waiting: list[Callable[[], None]]) -> None:
    for then in waiting:
        then()


def _run(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:
        log.exception("what waited for the disk failed")


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _told(path: Path, error: Exception) -> StoreError:
    advice = ADVICE.get(_code(error), "check the disk, then start the broker again")
    if isinstance(error, LostError):
        advice = "stop the broker, put the file or a copy of it back (godwit restore), and start it again"
    return StoreError(f"{path}: {error}: {advice}")

"""Copies of a broker's disk, made while it runs, and how a broker is put back from one.

A copy is one SQLite file, as the disk was at one moment. What the broker took after that moment is not in it: whoever
restores it loses that, and nothing else. The broker's numbers then leap above all that it can have used meanwhile, so
that others do not take what is new for what they have had.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from godwit.net.store.batch import NUMBERS
from godwit.net.store.migration import FORMATS
from godwit.net.store.sqlite import APPLICATION, FILE, SCHEMA, StoreError, is_served
from godwit.protocols.broker.streams.sequence import LEAP

PAGES = 256
"""Copied at once; the broker writes in between."""

PART = ".part"


def back_up(folder: Path, target: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Copy the disk of the broker in this directory, whether it runs or not. `StoreError` where that cannot be; then
    nothing is left of the copy. A copy that is there already is replaced once the new one is whole."""
    source = folder / FILE
    if not source.exists():
        raise StoreError(f"{source}: no such file; name the data directory of a broker")
    if target.exists() and not _is_ours(target):
        raise StoreError(f"{target}: is there already and is no copy of a broker's disk; name another file")
    part = target.with_name(target.name + PART)
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # passwords' hashes are in it
        _copy(source, part, progress)
        os.replace(part, target)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"{target}: {getattr(error, 'strerror', None) or error}; name a file that can be written"
        ) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def restore(copy: Path, folder: Path) -> str:
    """Put a copy into a directory that has no disk yet; the broker's name. Start it there, and only there."""
    if not _is_ours(copy):
        raise StoreError(f"{copy}: no copy of a broker's disk; `godwit backup` makes one")
    target = folder / FILE
    if is_served(folder):
        raise StoreError(f"{folder}: a broker runs there; stop it first")
    if target.exists():
        raise StoreError(f"{target}: is there already; move it away first, or name another directory")
    part = target.with_name(target.name + PART)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _copy(copy, part, lambda done, total: None)
        name = _prepared(part)
        for left in ("-wal", "-shm"):  # of the disk that was moved away: they are none of this one's
            target.with_name(target.name + left).unlink(missing_ok=True)
        os.replace(part, target)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{target}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return name


def _is_ours(path: Path) -> bool:
    try:
        with closing(_reading(path)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            (verdict,) = connection.execute("PRAGMA quick_check").fetchone()
    except sqlite3.Error:
        return False
    return bool(application == APPLICATION and schema in (*FORMATS, SCHEMA) and verdict == "ok")


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _copy(source: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """As it is at one moment: SQLite's online backup begins again where the file has changed meanwhile, so the copy is
    made within one read transaction, which waits for nobody and keeps nobody waiting."""
    with closing(_reading(source)) as reading, closing(sqlite3.connect(target, isolation_level=None)) as writing:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reading.backup(writing, pages=PAGES, progress=lambda status, left, total: progress(total - left, total))
        writing.execute("PRAGMA journal_mode = DELETE")


def _prepared(path: Path) -> str:
    """Let the numbers leap; the broker's name."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        meta, spilled = NUMBERS["meta"], NUMBERS["spilled"]
        rows = dict(connection.execute('SELECT owner, value FROM "rows" WHERE kind = ?', (meta,)).fetchall())
        if "numbers" in rows:
            leapt = str(int(rows["numbers"]) + LEAP).encode()
            connection.execute('UPDATE "rows" SET value = ? WHERE kind = ? AND owner = ?', (leapt, meta, "numbers"))
        connection.execute('DELETE FROM "rows" WHERE kind = ?', (spilled,))
        return bytes(rows.get("name", b"")).decode()

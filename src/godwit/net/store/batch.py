"""What one transaction of the store writes, and how it is said to SQLite."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from godwit.protocols.broker.store import TABLES

TOGETHER = 64
"""Rows that one statement writes: SQLite works on all of them without asking for Python's lock in between."""

NUMBERS = {table: number for number, table in enumerate(TABLES)}

CREATE = (
    'CREATE TABLE IF NOT EXISTS "rows" ('
    " kind INTEGER NOT NULL, owner TEXT NOT NULL, number INTEGER NOT NULL, value BLOB NOT NULL,"
    " PRIMARY KEY (kind, owner, number))"
)
DROP = 'DELETE FROM "rows" WHERE kind = ? AND owner = ?'
GET = 'SELECT value FROM "rows" WHERE kind = ? AND owner = ? AND number = ?'
LOAD = 'SELECT owner, number, value FROM "rows" WHERE kind = ? ORDER BY owner, number'

Statement = tuple[str, bool, list[Any]]
"""Text, whether it is executed for each of many, and what to bind."""


class Batch:
    """At most one change for each row, the last one asked for. Dropped owners come before all changes."""

    __slots__ = ("asked", "changes", "dropped", "is_touched", "waiting")

    def __init__(self) -> None:
        self.changes: dict[tuple[int, str], dict[int, bytes | None]] = {}
        self.dropped: dict[tuple[int, str], None] = {}
        self.waiting: list[Callable[[], None]] = []
        self.asked = 0
        """Changes asked for, those that later ones replaced included."""
        self.is_touched = False
        """There is more to write than has been asked for yet."""

    def __bool__(self) -> bool:
        return bool(self.changes or self.dropped or self.is_touched)

    def change(self, table: str, owner: str, number: int, value: bytes | None) -> None:
        key = (NUMBERS[table], owner)
        changes = self.changes.get(key)
        if changes is None:
            changes = self.changes[key] = {}
        changes[number] = value
        self.asked += 1

    def drop(self, table: str, owner: str) -> None:
        key = (NUMBERS[table], owner)
        self.changes.pop(key, None)
        self.dropped[key] = None
        self.asked += 1

    def overlay(self, kind: int, rows: dict[tuple[str, int], bytes]) -> None:
        """Do to these rows of a table what the transaction does to the file."""
        for key in [key for key in rows if (kind, key[0]) in self.dropped]:
            del rows[key]
        for (table, owner), changes in self.changes.items():
            for number, value in changes.items() if table == kind else ():
                if value is None:
                    rows.pop((owner, number), None)
                else:
                    rows[owner, number] = value

    def find(self, table: str, owner: str, number: int) -> tuple[bool, bytes | None]:
        """Whether the transaction decides about this row, and what becomes of it."""
        key = (NUMBERS[table], owner)
        changes = self.changes.get(key)
        if changes is not None and number in changes:
            return True, changes[number]
        return key in self.dropped, None

    def statements(self) -> list[Statement]:
        gone: list[tuple[int, str, int]] = []
        put: list[tuple[int, str, int, bytes]] = []
        for (kind, owner), changes in self.changes.items():
            for number, value in changes.items():
                if value is None:
                    gone.append((kind, owner, number))
                else:
                    put.append((kind, owner, number, value))
        found: list[Statement] = [(DROP, True, list(self.dropped))] if self.dropped else []
        if gone:
            _add(found, _delete, gone)
        if put:
            _add(found, _insert, put)
        return found


def _add(found: list[Statement], text: Callable[[int], str], rows: list[Any]) -> None:
    """Two texts whatever the number of rows, so that both stay prepared."""
    whole = len(rows) - len(rows) % TOGETHER
    found += [
        (text(TOGETHER), False, [value for row in rows[at : at + TOGETHER] for value in row])
        for at in range(0, whole, TOGETHER)
    ]
    if whole < len(rows):
        found.append((text(1), True, rows[whole:]))


@cache
def _insert(rows: int) -> str:
    return 'INSERT OR REPLACE INTO "rows" VALUES ' + ", ".join(["(?, ?, ?, ?)"] * rows)


@cache
def _delete(rows: int) -> str:
    if rows == 1:
        return 'DELETE FROM "rows" WHERE kind = ? AND owner = ? AND number = ?'
    # Said as a plain IN of row values, SQLite would read the whole table instead of its index.
    return (
        f"WITH gone(k, o, n) AS (VALUES {', '.join(['(?, ?, ?)'] * rows)})"
        ' DELETE FROM "rows" WHERE rowid IN (SELECT r.rowid FROM gone CROSS JOIN "rows" r'
        " ON r.kind = k AND r.owner = o AND r.number = n)"
    )

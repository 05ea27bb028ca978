"""Disks of earlier formats, brought to today's as they are opened; in one transaction, so that a crash leaves the old.

Formats 3 and 4 differ from 5 in two kinds of rows. What a session carries had nine parts and has twelve; some disks of
format 4 have today's already. Which brokers are known was a list, without the names of their disks. Format 6 may have
deliveries together in one row, which no earlier version would find; a disk of format 5 has none of these.

Until format 6 a broker of a ring knew to whom it had ever sent publications, and since then for which cells. What
another broker wants where this one stands in for it is kept since then with what else came with cells. An earlier
version would find neither of the two.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import msgspec

from godwit.net.store.batch import NUMBERS
from godwit.protocols.broker.messages import Content, Region
from godwit.protocols.broker.streams.outbox import Row

FORMATS = (3, 4, 5, 6)
"""Those that can be brought to today's."""

ROWS = 'SELECT owner, number, value FROM "rows" WHERE kind = ?'
CHANGE = 'UPDATE "rows" SET value = ? WHERE kind = ? AND owner = ? AND number = ?'
ADD = 'INSERT OR IGNORE INTO "rows" VALUES (?, ?, ?, ?)'
REMOVE = 'DELETE FROM "rows" WHERE kind = ? AND owner = ?'

FIRST = [0, ""]
"""A session that is older than all that know of ages."""
CARRIED_BEFORE = 9
GROUPED = 6
"""The first format with all that sessions carry today."""

_decode = msgspec.msgpack.Decoder().decode
_content = msgspec.msgpack.Decoder(Content).decode
_region = msgspec.msgpack.Decoder(Region).decode
_kept = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw]).decode
_encode = msgspec.msgpack.Encoder().encode


class UnfinishedError(Exception):
    """Something on the disk is half done in a way that only the version which wrote it can end; the text says what."""


def migrate(connection: sqlite3.Connection, schema: int, to: int) -> None:
    """Bring a disk of one of `FORMATS` to today's, or raise `UnfinishedError` and change nothing."""
    assert schema in FORMATS, schema
    connection.execute("BEGIN IMMEDIATE")
    try:
        if schema < GROUPED:
            _check_outbox(connection)
            _change(connection, "meta", _known)
            _change(connection, "sessions", _session)
        _change_ring(connection)
        connection.execute(f"PRAGMA user_version = {to}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _check_outbox(connection: sqlite3.Connection) -> None:
    rows = connection.execute(ROWS, (NUMBERS["outbox"],)).fetchall()
    unread = sum(not owner and not _can_be_said(value) for owner, _, value in rows)
    if unread:
        raise UnfinishedError(f"{unread} messages wait for other brokers that this version cannot say any more")


def _can_be_said(row: bytes) -> bool:
    try:
        _content(msgspec.msgpack.decode(row, type=Row).body)
    except msgspec.DecodeError:
        return False
    return True


def _change(connection: sqlite3.Connection, table: str, changed: Callable[[str, bytes], bytes | None]) -> None:
    for owner, number, value in connection.execute(ROWS, (NUMBERS[table],)).fetchall():
        new = changed(owner, value)
        if new is not None:
            connection.execute(CHANGE, (new, NUMBERS[table], owner, number))


def _known(owner: str, value: bytes) -> bytes | None:
    """The other brokers; of none of them the disk has been heard."""
    if owner != "brokers":
        return None
    names = _decode(value)
    return _encode(dict.fromkeys(names, 0)) if isinstance(names, list) else None


def _session(owner: str, value: bytes) -> bytes | None:
    standing, carried, upstreams = _decode(value)
    if len(carried) > CARRIED_BEFORE:
        return None
    client = owner.partition("\0")[0]
    expiry_s, token, clean, started, strange, unheard, claims, memory, passages = carried
    if memory is not None:
        raise UnfinishedError(f"two sessions of {client!r} are becoming one")
    carried = [expiry_s, token, token, clean, started, FIRST, strange, unheard, claims, None, passages]
    for way in upstreams:
        if way.get("born") or any(way.get("lines", ())):
            raise UnfinishedError(f"two sessions of {client!r} are becoming one")
        way["born"], way["lines"] = FIRST, [FIRST]
    return _encode([standing, carried, upstreams])


def _change_ring(connection: sqlite3.Connection) -> None:
    """What the disk has of the kind of today already is newer, and stays."""
    kind = NUMBERS["ring"]
    rows = {owner: value for owner, _, value in connection.execute(ROWS, (kind,))}
    for owner, value in rows.items():
        what, _, rest = owner.partition(" ")
        if what not in ("routed", "kept"):
            continue
        for new, row in (_sent(rest, rows) if what == "routed" else _inherited(rest, value)).items():
            connection.execute(ADD, (kind, new, 0, row))
        connection.execute(REMOVE, (kind, owner))


def _sent(broker: str, rows: dict[str, bytes]) -> dict[str, bytes]:
    """To this broker, for all of its cells that are known here: whoever has one next is told after it."""
    regions = [_region(row) for owner, row in rows.items() if owner.startswith("region ")]
    return {f"sent {one.prefix}": broker.encode() for one in regions if one.owner == broker}


def _inherited(prefix: str, value: bytes) -> dict[str, bytes]:
    broker, filters = _kept(value)
    return {f"inherited {prefix}\0{broker}": bytes(filters)}

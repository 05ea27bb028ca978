"""Publications that wait on the disk only: what a slow client has yet to get should not fill everybody's memory.

A session that outlives connections has its deliveries on the disk anyhow, and reads them from there. For any other a
row is written when it is needed; those rows mean nothing to another start of the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from godwit.protocols.broker.publication import PLAIN, Publication
from godwit.protocols.broker.store import Store

if TYPE_CHECKING:
    from godwit.protocols.broker.session.state import Body, Item

TABLE = "spilled"

_encode = msgspec.msgpack.Encoder().encode
_publication = msgspec.msgpack.Decoder(Publication).decode


class Away(Protocol):
    """Where publications are that are not in memory. What many wait in is one object, and they say which they are."""

    def fetch(self, item: Item) -> Publication: ...

    def release(self) -> None:
        """The one who has this needs it no longer."""


def label_of(publication: Publication) -> Publication:
    """What is kept in memory of one that is not: all but its content."""
    return msgspec.structs.replace(publication, payload=b"", properties=PLAIN)


class Page:
    """A row of this module's own, which several may share."""

    __slots__ = ("body", "number", "refs", "store")

    def __init__(self, store: Store, number: int, body: Body | None) -> None:
        self.store = store
        self.number = number
        self.body = body
        self.refs = 0

    def fetch(self, item: Item) -> Publication:
        return fetched(self.store, TABLE, "", self.number)

    def release(self) -> None:
        self.refs -= 1
        if not self.refs:
            self.store.delete(TABLE, "", self.number)
            if self.body is not None:
                self.body.page = None


class Shelf:
    """Makes such rows; those of an earlier start go first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._number = 0
        if any(True for _ in store.load(TABLE)):
            store.drop(TABLE, "")

    def put(self, publication: Publication, body: Body | None) -> Page:
        """A row, or the one in which others have put the same publication."""
        page = body.page if body is not None else None
        if page is None:
            self._number += 1
            page = Page(self._store, self._number, body)
            self._store.put(TABLE, "", page.number, _encode(publication))
            if body is not None:
                body.page = page
        page.refs += 1
        return page


def fetched(store: Store, table: str, owner: str, number: int) -> Publication:
    row = store.get(table, owner, number)
    assert row is not None, f"no row ({table}, {owner!r}, {number})"
    return _publication(row)

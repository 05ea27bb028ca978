"""Who a broker is, on its disk: the same after every start."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import msgspec

from godwit.net.store.sqlite import SqliteStore, StoreError
from godwit.protocols.host import NodeId


class Identity(msgspec.Struct, frozen=True):
    """Who a broker is: its name, the disk that it remembers with, and how often it has started from it."""

    name: NodeId
    disk: str
    incarnation: int


async def identify(store: SqliteStore, name: NodeId, new_name: Callable[[], NodeId]) -> Identity:
    """This start's identity, durable when it is returned. Without a name the broker has the one it had before, or a
    new one."""
    known = {what: value.decode() for what, _, value in store.load("meta") if what in ("name", "disk", "starts")}
    had = known.get("name", "")
    if name and had and name != had:
        raise StoreError(
            f"{store.path}: belongs to the broker {had!r}; start {name!r} with a data directory of its own,"
            f" or start this one as {had!r}"
        )
    identity = Identity(had or name or new_name(), known.get("disk") or uuid4().hex, int(known.get("starts", 0)) + 1)
    for what, value in (("name", identity.name), ("disk", identity.disk), ("starts", str(identity.incarnation))):
        store.put("meta", what, 0, value.encode())
    await store.flushed()
    return identity

"""How a broker of a tree tells apart what bridges bring from the air, so that two of them bring nothing twice.

What is in the air has a name: the broker where it entered, in which of its lives or streams, and a number there. Of
what was published in the tree the tree's own streams bring every copy that is owed. So a bridge's copy of it is not
needed, and of the rest the first copy is taken and remembered.

A session that moves gets some bridges' copies at one place and some at another. It takes the first of each name by
itself (`Session.passages`), since the first at either place may be the one that is not meant for it there.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId

Passage = tuple[str, int]

TABLE = "passages"
DEALT = "/dealt "
"""No broker can be named so."""
REMEMBERED_MAX = 65_536
REMEMBERED_S = 24 * 3600.0
"""A stream may bring its copy late: as late as its broker is given up."""


def passage_of(broker: NodeId, line: int, number: int) -> Passage:
    """`line` is the life or the stream of the broker in which the number is used once."""
    return f"{broker}/{line:x}", number


def entrance(passage: Passage) -> NodeId:
    """The broker where it entered the air, or that had it first."""
    return passage[0].rpartition("/")[0]


class Passages:
    """Those that were taken here, the oldest first. They are written in the turn that takes them, since another bridge
    or gateway may bring the same after a restart."""

    def __init__(self, store: Store, now_s: float, dealt: bool = False) -> None:
        """With `dealt` they are those of which a member of a group had one here, and their lines begin with `DEALT`."""
        self._store = store
        mine = [row for row in store.load(TABLE) if row[0].startswith(DEALT) is dealt]
        rows = [(msgspec.msgpack.decode(row, type=int), (line, number)) for line, number, row in mine]
        rows.sort()
        self._order = rows[-1][0] if rows else 0
        """Of the last one, over all starts: how many there were."""
        # How long ago that was nobody knows.
        self._taken: dict[Passage, tuple[int, float]] = {passage: (order, now_s) for order, passage in rows}

    def __contains__(self, passage: Passage) -> bool:
        return passage in self._taken

    def admit(self, passage: Passage, now_s: float) -> bool:
        """Whether it is the first of its name; it is then taken. Times must not go back."""
        if passage in self._taken:
            return False
        self._order += 1
        self._taken[passage] = self._order, now_s
        self._store.put(TABLE, *passage, msgspec.msgpack.encode(self._order))
        oldest, (_, taken_s) = next(iter(self._taken.items()))
        if len(self._taken) > REMEMBERED_MAX or taken_s < now_s - REMEMBERED_S:
            del self._taken[oldest]
            self._store.delete(TABLE, *oldest)
        return True

    @property
    def count(self) -> int:
        """How many there were, over all starts."""
        return self._order

    def after(self, count: int) -> list[Passage]:
        """Those that were taken when there had been so many, the newest first."""
        found = []
        for passage, (order, _) in reversed(self._taken.items()):
            if order <= count:
                break
            found.append(passage)
        return found


def is_owed(passage: Passage, origin: NodeId, tree: Container[NodeId]) -> bool:
    """Whether what `origin` brings is for others of the tree at all: what was published there comes from there only."""
    broker = entrance(passage)
    return broker == origin or broker not in tree

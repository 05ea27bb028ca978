"""The book of an owner: what other brokers want of its cells (docs/ring.md, "The book").

What a broker says itself comes in its own stream, and takes the place of what it said before. What came with a cell is
another matter: the broker told it to whoever had the cell then, and may still speak to this one without knowing that
the cell is here. So it stays beside what the broker says, until that speaks in knowledge of the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.interest.heard import Interests, marker
from godwit.protocols.broker.messages import BookEntry, Region, Wanted
from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId

ROWS = "inherited "

Part = Callable[[Region, Iterable[Filter]], tuple[Filter, ...]]
"""`part(region, filters)`: those of the filters that concern the cell."""


class Book:
    """All of it is on the disk."""

    def __init__(self, store: Store, part: Part, now_s: float) -> None:
        self.store = store
        self.part = part
        self.said = Interests(store, now_s)
        self.inherited: dict[str, dict[NodeId, tuple[Filter, ...]]] = {}
        """By prefix of the cell and by broker: what came with the cell."""
        for owner, _, row in store.load(TABLE):
            if owner.startswith(ROWS):
                prefix, _, broker = owner.removeprefix(ROWS).partition("\0")
                filters = msgspec.msgpack.decode(row, type=tuple[Filter, ...])
                self.inherited.setdefault(prefix, {})[broker] = filters
        self.wanted: dict[NodeId, tuple[Filter, ...]] = {}
        """By broker: what it said, and what came with cells."""
        self._show()

    def _show(self) -> None:
        wanted = dict(self.said.wanted)
        for entries in self.inherited.values():
            for broker, filters in entries.items():
                known = wanted.get(broker, ())
                wanted[broker] = (*known, *(one for one in filters if one not in known))
        # Whoever follows tells what has changed by whether it is the same tuple.
        self.wanted = {name: old if (old := self.wanted.get(name)) == new else new for name, new in wanted.items()}

    def statement(self, broker: NodeId) -> int:
        """The number of the last that it has said."""
        peer = self.said.peers.get(broker)
        return 0 if peer is None else peer.statement

    def hear(self, broker: NodeId, disk: int, wanted: Wanted, now_s: float) -> None:
        """A broker says what it wants of the cells that it takes for this one's, or that it is as before."""
        filters = self.said.wanted.get(broker, ()) if wanted.filters is None else wanted.filters
        if self.said.hear(broker, wanted.statement, (marker(broker, disk), *filters), now_s):
            self.said.keep(broker)
        known = [one for one in self.inherited if any(one.startswith(cell) for cell in wanted.cells)]
        for prefix in known:
            self._forget(prefix, broker)
        self._show()

    def inherit(self, region: Region, entries: Iterable[BookEntry]) -> None:
        """What the book of another owner says of a cell that is this one's now."""
        for entry in entries:
            filters = self.part(region, entry.filters)
            if filters:
                self._keep(region.prefix, entry.broker, filters)
        self._show()

    def review(self, own: Iterable[Region]) -> None:
        """Of cells that are gone nothing is kept, and of cells that were cut what concerns the rest."""
        cells = {one.prefix: one for one in own}
        for prefix in [prefix for prefix in self.inherited if prefix not in cells]:
            entries = dict(self.inherited[prefix])
            for broker in entries:
                self._forget(prefix, broker)
            for region in [one for one in cells.values() if one.prefix.startswith(prefix)]:
                self.inherit(region, (BookEntry(broker, 0, filters) for broker, filters in entries.items()))
            self._show()

    def _keep(self, prefix: str, broker: NodeId, filters: tuple[Filter, ...]) -> None:
        entries = self.inherited.setdefault(prefix, {})
        entries[broker] = tuple(dict.fromkeys((*entries.get(broker, ()), *filters)))
        self.store.put(TABLE, f"{ROWS}{prefix}\0{broker}", 0, msgspec.msgpack.encode(entries[broker]))

    def _forget(self, prefix: str, broker: NodeId) -> None:
        entries = self.inherited[prefix]
        if entries.pop(broker, None) is not None:
            self.store.delete(TABLE, f"{ROWS}{prefix}\0{broker}", 0)
        if not entries:
            del self.inherited[prefix]

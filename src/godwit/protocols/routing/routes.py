"""R_i: which filters of which subscriber are reached through which neighbor."""

from __future__ import annotations

from collections.abc import Iterator

from godwit.filters.filters import Filter
from godwit.filters.predicates import Values
from godwit.protocols.host import NodeId
from godwit.protocols.routing.messages import Row


class Routes:
    """A set of (filter, next hop, subscriber). All entries of one subscriber should share one next hop (P5)."""

    def __init__(self) -> None:
        self._of: dict[NodeId, dict[Filter, NodeId]] = {}
        self.changes = 0
        """How often anything has changed: whoever has looked since the last time need not look again."""

    def __contains__(self, subscriber: NodeId) -> bool:
        return subscriber in self._of

    def __iter__(self) -> Iterator[Row]:
        for subscriber, entries in self._of.items():
            for wanted, hop in entries.items():
                yield Row(wanted, hop, subscriber)

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    @property
    def subscribers(self) -> list[NodeId]:
        return list(self._of)

    def hop(self, subscriber: NodeId) -> NodeId | None:
        """The next hop of its oldest entry, or None where it has none."""
        return next(iter(self._of.get(subscriber, {}).values()), None)

    def filters(self, subscriber: NodeId) -> tuple[Filter, ...]:
        return tuple(self._of.get(subscriber, ()))

    def point(self, subscriber: NodeId, hop: NodeId) -> None:
        """Set the next hop in all entries of a subscriber."""
        entries = self._of.get(subscriber)
        if entries is not None and any(old != hop for old in entries.values()):
            self._of[subscriber] = dict.fromkeys(entries, hop)
            self.changes += 1

    def add(self, wanted: Filter, hop: NodeId, subscriber: NodeId) -> bool:
        """Add an entry unless the subscriber has that filter already, through whatever hop."""
        entries = self._of.setdefault(subscriber, {})
        if wanted in entries:
            return False
        entries[wanted] = hop
        self.changes += 1
        return True

    def discard(self, wanted: Filter, subscriber: NodeId) -> None:
        entries = self._of.get(subscriber, {})
        self.changes += entries.pop(wanted, None) is not None
        if not entries:
            self._of.pop(subscriber, None)

    def drop(self, subscriber: NodeId) -> None:
        self.changes += self._of.pop(subscriber, None) is not None

    def interested(self, values: Values, arrived: NodeId) -> dict[NodeId, list[NodeId]]:
        """The next hops of everybody who wants this event, each with its subscribers; never back where it came from."""
        found: dict[NodeId, list[NodeId]] = {}
        for subscriber, entries in self._of.items():
            for wanted, hop in entries.items():
                if hop != arrived and wanted.matches(values):
                    behind = found.setdefault(hop, [])
                    if subscriber not in behind:
                        behind.append(subscriber)
        return found

"""What each neighbor has been told, where not everybody is told everything (spec 2.8, equation 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic

from godwit.tables.forests.forwarder import Forwarder
from godwit.tables.merging.merging import Update
from godwit.tables.table import F, Interface, N

Allowed = Callable[[F], frozenset[Interface] | None]
"""The neighbors that may be told of a filter; None for all."""


class Statements(Generic[F, N]):
    """A forwarder within a scope: tells neighbors what the forwarder would, of that what they are allowed to know.

    That is right because who may know of a filter may know of all that it covers (closed form of 2.8). Whenever what
    is allowed changes, send what `refresh` returns.

    A withdrawal is always said. Published, a neighbor that withdraws an advert drops by itself what had come to it, and
    one message is saved. But a subscription that crosses the withdrawal on the link, and is itself withdrawn before the
    next advert, then stays at the neighbor for ever.
    """

    def __init__(self, forwarder: Forwarder[F, N], allowed: Allowed[F]) -> None:
        self.forwarder = forwarder
        self.allowed = allowed
        self._told: dict[Interface, Counter[F]] = {}

    def apply(self, update: Update[F], source: Interface) -> dict[Interface, Update[F]]:
        self.forwarder.apply(update, source)
        return self.refresh()

    def refresh(self) -> dict[Interface, Update[F]]:
        allowed: dict[F, frozenset[Interface] | None] = {}
        updates = {}
        for neighbor in sorted(self.forwarder.table.neighbors):
            before, after = self._told.get(neighbor, Counter()), Counter[F]()
            for wanted in self.forwarder.told(neighbor):
                if wanted not in allowed:
                    allowed[wanted] = self.allowed(wanted)
                ways = allowed[wanted]
                if ways is None or neighbor in ways:
                    after[wanted] += 1
            self._told[neighbor] = after
            if before != after:
                updates[neighbor] = Update(tuple((before - after).elements()), tuple((after - before).elements()))
        return updates

    def told(self, neighbor: Interface) -> list[F]:
        return list(self._told.get(neighbor, Counter()).elements())

    def presume(self, neighbor: Interface, filters: Iterable[F]) -> None:
        """Take these for told: the neighbor has noted them itself, as if we had said so (spec 2.11.7)."""
        held = self._told.setdefault(neighbor, Counter())
        for wanted in filters:
            held[wanted] = 1


class Unlimited(Statements[F, N]):
    """Everybody may know everything: the forwarder's own updates, without comparing before and after."""

    def __init__(self, forwarder: Forwarder[F, N]) -> None:
        super().__init__(forwarder, lambda wanted: None)

    def apply(self, update: Update[F], source: Interface) -> dict[Interface, Update[F]]:
        return self.forwarder.apply(update, source)

    def refresh(self) -> dict[Interface, Update[F]]:
        return {}

    def told(self, neighbor: Interface) -> list[F]:
        return self.forwarder.told(neighbor)

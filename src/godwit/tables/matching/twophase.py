"""Two-phase matching (spec 2.9, configuration 4.14): covering says whether any client is concerned, counting which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic

from godwit.filters.language import Language
from godwit.tables.forests.forest import LOCAL, Forest
from godwit.tables.forests.kin import KeysOf
from godwit.tables.merging.merging import Update
from godwit.tables.table import DEFAULT, F, Interface, N, Table

CLIENTS: Interface = "clients"
"""The interface under which the routing table knows all local clients together."""


class TwoPhase(Generic[F, N]):
    """The table of a router with many clients: a small one for routing, and a fast matcher that only clients are in.

    What neighbors want goes to `routing`, a table that drops redundant filters. What clients want goes to `matcher`
    and to a forest, of which `routing` sees the root set. Give `tell` to have changes of that root set, as one update
    each, instead of having them applied here: a forwarder will know whom else to tell.
    """

    def __init__(
        self,
        routing: Table[F, N],
        matcher: Table[F, N],
        *,
        neighbors: Iterable[Interface],
        language: Language[F, N] = DEFAULT,
        keys: KeysOf | None = None,
        tell: Callable[[Update[F]], object] | None = None,
    ) -> None:
        self.routing = routing
        self.matcher = matcher
        self.neighbors = frozenset(neighbors)
        self._forest = Forest(language, LOCAL, keys=keys)
        self._tell = tell or self._apply

    def add(self, wanted: F, interface: Interface, /) -> bool:
        if interface in self.neighbors:
            return self.routing.add(wanted, interface)
        known = wanted in self._forest
        if not self._forest.add(wanted, interface):
            return False
        self.matcher.add(wanted, interface)
        if not known and self._forest.is_root(wanted):
            self._tell(Update(added=(wanted,)))
        return True

    def remove(self, wanted: F, interface: Interface, /) -> bool:
        if interface in self.neighbors:
            return self.routing.remove(wanted, interface)
        was_root = self._forest.is_root(wanted)
        below = self._forest.children(wanted) if was_root else []
        if not self._forest.remove(wanted, interface):
            return False
        self.matcher.remove(wanted, interface)
        if was_root and wanted not in self._forest:
            self._tell(Update((wanted,), tuple(f for f in below if self._forest.is_root(f))))
        return True

    def match(self, event: N, /) -> set[Interface]:
        found = self.routing.match(event)
        if CLIENTS in found:
            found.discard(CLIENTS)
            found |= self.matcher.match(event)
        return found

    def roots(self) -> list[F]:
        return self.routing.roots()

    def interfaces(self, wanted: F, /) -> frozenset[Interface]:
        return (self.routing.interfaces(wanted) - {CLIENTS}) | self._forest.interfaces(wanted)

    def __iter__(self) -> Iterator[F]:
        return iter(list(dict.fromkeys([*self._forest, *self.routing])))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self._forest or wanted in self.routing

    def _apply(self, update: Update[F]) -> None:
        for wanted in update.removed:
            self.routing.remove(wanted, CLIENTS)
        for wanted in update.added:
            self.routing.add(wanted, CLIENTS)

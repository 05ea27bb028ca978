"""How much a broker tells its neighbors of what it wants (spec 2.1.2): five strategies, each a forwarder.

flooding   nothing: events go everywhere
simple     every subscription, also those that are told already
identity   what is not told already
covering   what nothing that is told already covers
merging    the same, and what goes the same ways merged into fewer filters
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Generic

from godwit.filters.language import Language
from godwit.tables.forests.forest import PF, Forest
from godwit.tables.forests.forwarder import Forwarder
from godwit.tables.forests.forwards import RoutingForest, RoutingPoset
from godwit.tables.matching.naive import Naive
from godwit.tables.merging.aggregate import Aggregate, Mergeable
from godwit.tables.merging.merging import Update
from godwit.tables.table import F, Interface, N


class Strategy(StrEnum):
    FLOODING = "flooding"
    SIMPLE = "simple"
    IDENTITY = "identity"
    COVERING = "covering"
    MERGING = "merging"


class Structure(StrEnum):
    """What holds the filters of neighbors and decides who is told which (spec 2.3, 2.7.2)."""

    POSET = "poset"
    FOREST = "forest"
    APPROXIMATE = "approximate forest"
    REDUNDANT = "redundant forest"
    """For hierarchies only: what goes up is replaced whole now and then (spec 2.7.1)."""


class Identical(Generic[F, N]):
    """A language in which a filter covers nothing but itself: what makes covering the strategy of identity."""

    def __init__(self, language: Language[F, N]) -> None:
        self.language = language

    def covers(self, wide: F, narrow: F, /) -> bool:
        return wide == narrow

    def overlaps(self, one: F, other: F, /) -> bool:
        return self.language.overlaps(one, other)

    def matches(self, wanted: F, event: N, /) -> bool:
        return self.language.matches(wanted, event)

    def merge(self, one: F, other: F, /) -> F | None:
        return one if one == other else None

    def type_of(self, wanted: F, /) -> str | None:
        return self.language.type_of(wanted)


class Silent(Forwarder[F, N]):
    """Flooding: who wants what is known here and told to nobody."""

    def apply(self, update: Update[F], source: Interface) -> dict[Interface, Update[F]]:
        for wanted in update.removed:
            self.table.remove(wanted, source)
        for wanted in update.added:
            self.table.add(wanted, source)
        return {}

    def told(self, neighbor: Interface) -> list[F]:
        return []


class Plain(Forwarder[F, N]):
    """Simple routing: whatever is said by one is said to all others. Filters are counted, so that one leaves one."""

    def __init__(self, table: Naive[F, N]) -> None:
        super().__init__(table)
        self._counts: Counter[tuple[F, Interface]] = Counter()

    def apply(self, update: Update[F], source: Interface) -> dict[Interface, Update[F]]:
        known = tuple(wanted for wanted in update.removed if self._forget(wanted, source))
        for wanted in update.added:
            self._counts[wanted, source] += 1
            self.table.add(wanted, source)
        passed_on = Update(known, update.added)
        others = sorted(self.table.neighbors - {source})
        return dict.fromkeys(others, passed_on) if passed_on else {}

    def told(self, neighbor: Interface) -> list[F]:
        return [wanted for (wanted, source), n in self._counts.items() if source != neighbor for _ in range(n)]

    def _forget(self, wanted: F, source: Interface) -> bool:
        if not self._counts[wanted, source]:
            return False
        self._counts[wanted, source] -= 1
        if not self._counts[wanted, source]:
            del self._counts[wanted, source]
            self.table.remove(wanted, source)
        return True


class RedundantForest(Forest[F, N]):
    """A forest that keeps redundant filters, below a master."""

    def __init__(self, language: Language[F, N], *, neighbors: Iterable[Interface]) -> None:
        super().__init__(language, PF)
        self.neighbors = frozenset(neighbors)

    def forwards(self, wanted: F, /) -> frozenset[Interface]:
        return self.neighbors if self.is_root(wanted) else frozenset()

    def heads(self) -> list[F]:
        return self.roots()

    def announce(self, wanted: F, interface: Interface, /) -> frozenset[Interface]:
        before = self.forwards(wanted)
        self.add(wanted, interface)
        return self.forwards(wanted) - before

    def retract(self, wanted: F, interface: Interface, /) -> dict[Interface, list[F]]:
        """Nobody is told: the master hears of it with the next root set, and until then gets more than it needs."""
        self.remove(wanted, interface)
        return {}


Table = Callable[[Language[Any, Any], Iterable[Interface]], Any]

TABLES: dict[Structure, Table] = {
    Structure.POSET: lambda language, neighbors: RoutingPoset(language, neighbors=neighbors),
    Structure.FOREST: lambda language, neighbors: RoutingForest(language, neighbors=neighbors),
    Structure.APPROXIMATE: lambda language, neighbors: RoutingForest(language, neighbors=neighbors, approximate=True),
    Structure.REDUNDANT: lambda language, neighbors: RedundantForest(language, neighbors=neighbors),
}


def forwarder(
    strategy: Strategy,
    neighbors: Iterable[Interface],
    language: Language[F, N],
    structure: Structure = Structure.POSET,
    mergeable: Mergeable = Mergeable.INTERSECTING,
) -> Forwarder[F, N]:
    """What tells these neighbors, by this strategy.

    Between peers merge by intersecting ways. Merged by equal ways, as published, what a broker tells a neighbor hangs
    on what that neighbor has told it: two that answer each other with other mergers of the same meaning never end.
    """
    neighbors = list(neighbors)
    if strategy is Strategy.FLOODING:
        return Silent(Naive(language, neighbors=neighbors))
    if strategy is Strategy.SIMPLE:
        return Plain(Naive(language, neighbors=neighbors))
    if strategy is Strategy.IDENTITY:
        language = Identical(language)
    table = TABLES[structure](language, neighbors)
    return Aggregate(table, language, mergeable=mergeable) if strategy is Strategy.MERGING else Forwarder(table)

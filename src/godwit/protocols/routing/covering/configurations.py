"""The published combinations of tables, matchers and mergers (spec 2.7.3), each by its number.

Every one has the same two parts. Outside, a table of what neighbors want, in which all clients together are one more
interface. Inside, a forest of what clients want, whose root set is that interface, and a matcher that knows which
client an event is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import msgspec

from godwit.filters.language import Language
from godwit.protocols.routing.covering.strategies import TABLES, Strategy, Structure, forwarder
from godwit.tables.forests.forest import LOCAL, Forest
from godwit.tables.forests.forwarder import Forwarder
from godwit.tables.forests.rootset import MergedRoots
from godwit.tables.matching.counting import Counting
from godwit.tables.matching.naive import Naive
from godwit.tables.matching.twophase import TwoPhase
from godwit.tables.merging.aggregate import Aggregate, Mergeable
from godwit.tables.merging.localmerge import LocalMerging
from godwit.tables.merging.merging import Update
from godwit.tables.table import F, Interface, N, Table


class Matcher(StrEnum):
    """What finds the clients that an event is for."""

    FOREST = "forest"
    COUNTING = "counting"
    NAIVE = "naive"


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """`merge_roots`: what clients want is merged before the routing table sees it. `merge_inside`: so is what each
    neighbor wants, within the table (definition 8.1)."""

    strategy: Strategy = Strategy.COVERING
    structure: Structure = Structure.POSET
    matcher: Matcher = Matcher.FOREST
    merge_roots: bool = False
    merge_inside: bool = False
    mergeable: Mergeable = Mergeable.INTERSECTING


PUBLISHED = {
    "4.13a": Configuration(),
    "4.13b": Configuration(structure=Structure.FOREST),
    "4.13c": Configuration(structure=Structure.FOREST),
    "4.14": Configuration(matcher=Matcher.COUNTING),
    "8.1": Configuration(strategy=Strategy.MERGING, merge_inside=True),
    "8.2a": Configuration(strategy=Strategy.MERGING, merge_roots=True),
    "8.2a, as published": Configuration(strategy=Strategy.MERGING, merge_roots=True, mergeable=Mergeable.EQUAL),
    "8.2b": Configuration(strategy=Strategy.MERGING, structure=Structure.FOREST, merge_roots=True),
    "RP": Configuration(structure=Structure.FOREST),
}
"""4.13c and 8.2b are for hierarchies, RP for rendezvous points: there the scope differs, not the tables.

8.2a as published may never come to rest between peers (`strategies.forwarder`)."""


class Condensed(Aggregate[F, N]):
    """An aggregate whose table holds the filters of each neighbor merged too."""

    def __init__(self, table: Any, language: Language[F, N]) -> None:
        self.inside = LocalMerging(table, language)
        super().__init__(table, language, mergeable=Mergeable.INTERSECTING)

    def apply(self, update: Update[F], source: Interface) -> dict[Interface, Update[F]]:
        self.inside.apply(update, source)
        return self.refresh()


def outside(configuration: Configuration, neighbors: Iterable[Interface], language: Language[F, N]) -> Forwarder[F, N]:
    """The table of what neighbors want, with what tells them."""
    if configuration.merge_inside:
        return Condensed(TABLES[configuration.structure](language, neighbors), language)
    return forwarder(configuration.strategy, neighbors, language, configuration.structure, configuration.mergeable)


def inside(
    configuration: Configuration,
    routing: Table[F, N],
    neighbors: Iterable[Interface],
    language: Language[F, N],
    tell: Callable[[Update[F]], None],
) -> TwoPhase[F, N]:
    """The tables of what clients want; `tell` has every change of what they want together."""
    if configuration.merge_roots:
        tell = _merged(language, tell)
    matcher = MATCHERS[configuration.matcher](language)
    return TwoPhase(routing, matcher, neighbors=neighbors, language=language, tell=tell)


def _merged(language: Language[F, N], tell: Callable[[Update[F]], None]) -> Callable[[Update[F]], None]:
    roots = MergedRoots(language)

    def change(update: Update[F]) -> None:
        went = [*update.removed, *_covered(roots, update, language)]
        tell(roots.change(update.added, went))

    return change


def _covered(roots: MergedRoots[F, N], update: Update[F], language: Language[F, N]) -> list[F]:
    """Roots that a new one covers are roots no longer, and nobody says so: the routing table would see it by itself."""
    gone = set(update.removed)
    return [r for r in roots.roots if r not in gone and any(n != r and language.covers(n, r) for n in update.added)]


MATCHERS: dict[Matcher, Callable[[Language[Any, Any]], Table[Any, Any]]] = {
    Matcher.FOREST: lambda language: Forest(language, LOCAL),
    Matcher.COUNTING: lambda language: Counting(),
    Matcher.NAIVE: Naive,
}

"""The words that all merging mechanisms share (spec 2.10.2, 2.10.3).

A *merger* is a filter made from several, its *components* (CO), and hides what else it covers (CV). Clients never learn
that mergers exist: they remove exactly what they added, and the mechanism un-merges.

    rootset      the roots of one table, merged for whoever stands above it
    aggregate    what each neighbor of a peer-to-peer router is told, merged
    localmerge   the entries of one interface, merged inside the table
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Generic

import msgspec

from godwit.filters.language import F, Language
from godwit.tables.table import Forwarding, Interface, Table


class Rules(StrEnum):
    """The published rules lose events or keep stale mergers (spec 2.10.3 to 2.10.5); they stay for comparison only."""

    CORRECTED = "corrected"
    LITERAL = "literal"


class Update(msgspec.Struct, Generic[F], frozen=True):
    """One atomic change of what somebody holds: first forget all of `removed`, then note all of `added`.

    Applied in parts it loses events: what was removed is covered again only by what is added. False when empty.
    """

    removed: tuple[F, ...] = ()
    added: tuple[F, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)


class Merger(msgspec.Struct, Generic[F]):
    """What stands behind one merger. Dictionaries serve as sets that remember their order: same input, same mergers."""

    components: dict[F, None]
    covered: dict[F, None]

    def hidden(self) -> list[F]:
        return [*self.components, *(f for f in self.covered if f not in self.components)]


def difference(before: Iterable[F], after: Iterable[F]) -> Update[F]:
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    return Update(tuple(f for f in old if f not in new), tuple(f for f in new if f not in old))


def minimal_cover(language: Language[F, Any], filters: Iterable[F]) -> list[F]:
    """Those that no other covers; among equivalent ones the first stays."""
    kept: list[F] = []
    for new in filters:
        if not any(language.covers(one, new) for one in kept):
            kept = [one for one in kept if not language.covers(new, one)]
            kept.append(new)
    return kept


def add_components(language: Language[F, Any], known: dict[F, None], news: Iterable[F]) -> None:
    """The spec's addComponents: what is covered by a member stays out, and members covered by a new one leave."""
    for new in news:
        if any(language.covers(one, new) for one in known):
            continue
        for one in [one for one in known if language.covers(new, one)]:
            del known[one]
        known[new] = None


def local_merger(
    language: Language[F, Any], table: Table[F, Any], one: F, other: F
) -> tuple[F, frozenset[Interface]] | None:
    """Definition 8.1: a merger for each interface that asked for both, or None. Each of these holds it alone."""
    return _merger(language, one, other, table.interfaces(one) & table.interfaces(other))


def remote_merger(
    language: Language[F, Any], table: Forwarding[F, Any], one: F, other: F
) -> tuple[F, frozenset[Interface]] | None:
    """Definition 8.2: a merger and the neighbors to send it to, which are those that both filters go to; or None."""
    return _merger(language, one, other, table.forwards(one) & table.forwards(other))


def _merger(
    language: Language[F, Any], one: F, other: F, shared: frozenset[Interface]
) -> tuple[F, frozenset[Interface]] | None:
    merged = language.merge(one, other) if shared else None
    return None if merged is None else (merged, shared)

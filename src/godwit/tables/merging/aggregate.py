"""Aggregate merging (spec 2.10.5): what a peer-to-peer router tells each neighbor, merged on the way out.

The table keeps every filter and decides who must be told what (its forwards sets). Here filters that go the same ways
are merged, the rest is told as it is, and every change becomes one atomic update for each neighbor concerned.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from godwit.filters.language import Language
from godwit.tables.forests.forwarder import Forwarder
from godwit.tables.forests.rootset import MergedRoots
from godwit.tables.merging.merging import Rules, Update, difference, minimal_cover
from godwit.tables.table import F, Forwarding, Interface, N

Ways = frozenset[Interface]
"""The neighbors that a filter goes to: its forwards set."""


class Mergeable(StrEnum):
    """Which filters may merge on their way out.

    `EQUAL`         roots that go exactly the same ways: one merger serves all of these neighbors, and the work is done
                    once for them (2.10.5)
    `INTERSECTING`  any two, for each neighbor that both go to: fewer filters told, the work done for each neighbor
                    anew (definition 8.2)
    """

    EQUAL = "equal"
    INTERSECTING = "intersecting"


class Aggregate(Forwarder[F, N]):
    """A forwarder that merges, and knows what each neighbor holds.

    After its updates a neighbor holds `told(neighbor)`, which accepts exactly what all other interfaces want (all of
    that and more where the language merges imperfectly), with never more filters than without merging. Whoever changes
    the table in another way, be it by local merging, sends what `refresh` returns.

    Updates name what they remove, also where something added covers it: a neighbor that has dropped it already has
    nothing to do, and one that drops nothing by itself stays right too.

    Literal rules leave filters of the second level out, as published, and lose events (spec 2.10.5, first trap).
    """

    def __init__(
        self,
        table: Forwarding[F, N],
        language: Language[F, N],
        *,
        mergeable: Mergeable = Mergeable.EQUAL,
        rules: Rules = Rules.CORRECTED,
        eager: bool = False,
    ) -> None:
        super().__init__(table)
        self.language = language
        self.mergeable = mergeable
        self.rules = rules
        self.eager = eager
        self._merged: dict[Ways, MergedRoots[F, N]] = {}
        self._alone: dict[F, Ways] = {}
        self._told: dict[Interface, list[F]] = {}
        self.refresh()

    def apply(self, update: Update[F], source: Interface) -> dict[Interface, Update[F]]:
        changed = [self.table.remove(wanted, source) for wanted in update.removed]
        changed += [self.table.add(wanted, source) for wanted in update.added]
        return self.refresh() if any(changed) else {}

    def told(self, neighbor: Interface) -> list[F]:
        """What this neighbor holds once all updates have arrived."""
        return list(self._told[neighbor])

    def forwards(self, wanted: F) -> Ways:
        """The neighbors that hold exactly this filter, be it an entry of the table or a merger (equation 8.1)."""
        return frozenset(neighbor for neighbor, told in self._told.items() if wanted in told)

    def refresh(self) -> dict[Interface, Update[F]]:
        """Follow the table; returns the update for each neighbor whose holding changes.

        A neighbor that is new in the table holds nothing yet and gets everything; one that left is forgotten.
        """
        self._regroup()
        before = self._told
        self._told = {neighbor: self._entries(neighbor) for neighbor in sorted(self.table.neighbors)}
        updates = {neighbor: difference(before.get(neighbor, ()), told) for neighbor, told in self._told.items()}
        return {neighbor: update for neighbor, update in updates.items() if update}

    def _regroup(self) -> None:
        """A filter whose ways change leaves one group and enters another: deletion, then addition (third trap)."""
        groups: dict[Ways, list[F]] = {ways: [] for ways in self._merged}
        roots = dict.fromkeys(self.table.roots())
        self._alone = {}
        for wanted in self.table.heads():
            ways = self.table.forwards(wanted)
            if self.mergeable is Mergeable.EQUAL and wanted not in roots:
                self._alone[wanted] = ways
                continue
            for group in self._groups_of(ways):
                groups.setdefault(group, []).append(wanted)
        for ways, members in groups.items():
            self._follow(ways, members)

    def _groups_of(self, ways: Ways) -> Iterable[Ways]:
        if self.mergeable is Mergeable.EQUAL:
            return [ways] if ways else []
        return [frozenset({neighbor}) for neighbor in sorted(ways)]

    def _follow(self, ways: Ways, members: list[F]) -> None:
        if not members:
            self._merged.pop(ways, None)
            return
        if ways not in self._merged:
            self._merged[ways] = MergedRoots(self.language, eager=self.eager)
        self._merged[ways].follow(members)

    def _entries(self, neighbor: Interface) -> list[F]:
        entries = [f for ways, merged in self._merged.items() if neighbor in ways for f in merged.propagated()]
        if self.rules is not Rules.LITERAL:
            entries += [f for f, ways in self._alone.items() if neighbor in ways]
        return minimal_cover(self.language, entries)

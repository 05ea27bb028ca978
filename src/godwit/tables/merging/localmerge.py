"""Local merging (spec 2.10.3, rules 1 to 6): the filters of one interface merged inside the table itself.

Unlike the other mechanisms this makes the table smaller and its own matching faster. The price: what a filter of the
same interface covers is forgotten for good. So it fits only interfaces whose sender sends again what a withdrawal
uncovers: neighboring routers, or a table of local clients seen as one interface. Never individual clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic

from godwit.filters.language import F, Language, N
from godwit.filters.merging import first_partner
from godwit.tables.merging.merging import Merger, Rules, Update, add_components
from godwit.tables.table import Interface, Table


class LocalMerging(Generic[F, N]):
    """A table whose entries are merged interface by interface, for as long as all changes go through here.

    Senders remove exactly what they added and never see a merger. With a language that merges perfectly `match` answers
    as without merging; otherwise it may name an interface too many, never one too few.
    """

    def __init__(self, table: Table[F, N], language: Language[F, N], *, rules: Rules = Rules.CORRECTED) -> None:
        self.table = table
        self.language = language
        self.rules = rules
        self._shares: dict[Interface, _Share[F, N]] = {}

    def add(self, wanted: F, interface: Interface, /) -> bool:
        if interface not in self._shares:
            self._shares[interface] = _Share(self.table, self.language, interface, self.rules)
        return self._shares[interface].add(wanted)

    def remove(self, wanted: F, interface: Interface, /) -> bool:
        share = self._shares.get(interface)
        return share is not None and share.remove(wanted)

    def apply(self, update: Update[F], interface: Interface) -> None:
        """One message of a sender: what it withdraws, and what that uncovers."""
        for wanted in update.removed:
            self.remove(wanted, interface)
        for wanted in update.added:
            self.add(wanted, interface)

    def match(self, event: N, /) -> set[Interface]:
        return self.table.match(event)

    def roots(self) -> list[F]:
        return self.table.roots()

    def interfaces(self, wanted: F, /) -> frozenset[Interface]:
        return self.table.interfaces(wanted)

    def mergers(self, interface: Interface) -> dict[F, Merger[F]]:
        """The mergers of an interface with what they stand for; not to be changed."""
        return self._shares[interface].mergers if interface in self._shares else {}

    def wanted(self, interface: Interface) -> list[F]:
        """What the interface asked for and has not withdrawn or superseded, whether it stands in the table or not."""
        return list(self._shares[interface].wanted()) if interface in self._shares else []

    def __iter__(self) -> Iterator[F]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self.table


class _Share(Generic[F, N]):
    """All that one interface has in the table. A merger has one interface (definition 8.1), so shares never meet.

    Each wanted filter is in one place: plain in the table, or a component of one merger, or covered by one merger. No
    wanted filter covers another.
    """

    def __init__(self, table: Table[F, N], language: Language[F, N], interface: Interface, rules: Rules) -> None:
        self.table = table
        self.language = language
        self.interface = interface
        self.literal = rules is Rules.LITERAL
        self.plain: dict[F, None] = {}
        self.mergers: dict[F, Merger[F]] = {}

    def wanted(self) -> Iterator[F]:
        yield from self.plain
        for merger in self.mergers.values():
            yield from merger.hidden()

    def add(self, new: F) -> bool:
        if new in self.wanted() or self._covered(new):
            return False
        survivors = self._supersede(new)
        for one in (new, *survivors):
            self._place(one)
        return True

    def remove(self, old: F) -> bool:
        if old in self.plain:
            self._drop(old)
            return True
        for one, merger in self.mergers.items():
            if old in merger.components:
                self._unmerge(one, {old})
                return True
            if old in merger.covered:
                del merger.covered[old]
                return True
        return False

    def _covered(self, new: F) -> bool:
        """Rule 1 where the newcomer is the one to go. Published, components and what mergers hide are not asked."""
        known = self.plain if self.literal else self.wanted()
        return any(self.language.covers(one, new) for one in known)

    def _supersede(self, new: F) -> list[F]:
        """Take out whatever `new` covers; returns what has to be placed again because its merger fell."""
        for one in self._below(new, self.plain):
            self._drop(one)
        if not self.literal:
            return self._supersede_merged(new)
        for one in self._below(new, self.mergers):
            self._drop_merger(one)
        return []

    def _supersede_merged(self, new: F) -> list[F]:
        """Rule 2, and elimination looking into mergers.

        What `new` covers the sender counts as superseded and will never withdraw: left alone it would stay for ever.
        """
        survivors: list[F] = []
        for one, merger in list(self.mergers.items()):
            gone = self._below(new, merger.hidden())
            if self.language.covers(new, one) or any(hidden in merger.components for hidden in gone):
                survivors += self._take_out(one, gone)
            else:
                for hidden in gone:
                    del merger.covered[hidden]
        return survivors

    def _place(self, new: F) -> None:
        """Put a wanted filter under a merger (rule 3), or into the table and there into a merger."""
        for one, merger in self.mergers.items():
            if self.language.covers(one, new):
                self._hide(merger, new)
                return
        found = first_partner((*self.mergers, *self.plain), new, self.language.merge)
        if found is not None:
            candidate, merged = found
            self._form(merged, candidate, new)
        else:
            self.plain[new] = None
            self.table.add(new, self.interface)

    def _form(self, merged: F, candidate: F, new: F) -> None:
        merger = self.mergers.get(candidate) or Merger({candidate: None}, {})
        merger.components[new] = None
        self._drop(candidate)
        for one in self._below(merged, self.mergers):
            # Rule 4 before rule 6: what the smaller merger stands for moves first, so that nothing is deleted with it.
            for hidden in self.mergers[one].hidden():
                self._hide(merger, hidden)
            self._drop(one)
        for one in self._below(merged, self.plain):
            self._hide(merger, one)
            self._drop(one)
        self.mergers[merged] = merger
        self.table.add(merged, self.interface)

    def _hide(self, merger: Merger[F], one: F) -> None:
        add_components(self.language, merger.covered, [one])

    def _unmerge(self, merged: F, gone: Iterable[F]) -> None:
        """Rule 5. Published, the survivors are added while the merger still covers them, and fall with it (rule 6)."""
        if self.literal:
            for one in self.mergers[merged].hidden():
                if one not in gone:
                    self._place(one)
            self._drop_merger(merged)
        else:
            for one in self._take_out(merged, gone):
                self._place(one)

    def _take_out(self, merged: F, gone: Iterable[F]) -> list[F]:
        survivors = [one for one in self.mergers[merged].hidden() if one not in gone]
        self._drop(merged)
        return survivors

    def _drop_merger(self, merged: F) -> None:
        """Rule 6 as published: with a merger goes all that it stands for, wherever else it was put meanwhile."""
        hidden = self.mergers[merged].hidden()
        self._drop(merged)
        for one in hidden:
            self.remove(one)

    def _drop(self, one: F) -> None:
        self.plain.pop(one, None)
        self.mergers.pop(one, None)
        self.table.remove(one, self.interface)

    def _below(self, wide: F, filters: Iterable[F]) -> list[F]:
        return [one for one in filters if self.language.covers(wide, one)]

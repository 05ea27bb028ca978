"""Root-set merging (spec 2.10.4): the roots of a table, told to others as fewer filters.

The table stays as it is; mergers live beside it and only in what is propagated. Whoever receives that holds less and
matches faster, and after any removal holds again exactly what is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic

from godwit.filters.language import F, Language, N
from godwit.filters.merging import Merge, first_partner
from godwit.tables.merging import Merger, Rules, Update, add_components, difference

Partner = Callable[[Iterable[F], F, Merge[F]], tuple[F, F] | None]
"""How a partner is chosen among candidates; it comes back with the merger."""


class RootMerger(Merger[F]):
    """A merger that may have outlived some of its components, and what that has cost so far."""

    stale: bool = False
    false_positives: int = 0


class MergedRoots(Generic[F, N]):
    """The roots as they are propagated: the mergers, and the roots that no merger hides.

    Tell it every root that comes and every root that goes, for whatever reason it goes; or give the whole root set to
    `follow` after each change. No root may cover another, so what goes must be told before what comes. With a language
    that merges perfectly the propagated filters accept exactly what the roots accept; otherwise all of it and more.
    They are never more than the roots. Each call costs at most one pass over the roots (Algorithms 14 to 16).

    `eager`: when a component leaves, its merger falls apart; merge the survivors again at once, not only with later
    arrivals. Fewer filters for longer updates.

    `false_positives_max`: when a component leaves, keep its merger while there is another component, and let `unwanted`
    decide when it costs too much. Fewer updates for some unwanted events.

    `partner`: which of several candidates to merge with; the first unless told otherwise.
    """

    def __init__(
        self,
        language: Language[F, N],
        *,
        rules: Rules = Rules.CORRECTED,
        eager: bool = False,
        false_positives_max: int | None = None,
        partner: Partner[F] = first_partner,
    ) -> None:
        self.language = language
        self.rules = rules
        self.eager = eager
        self.false_positives_max = false_positives_max
        self.partner = partner
        self.roots: dict[F, None] = {}
        self.mergers: dict[F, RootMerger[F]] = {}

    def propagated(self) -> list[F]:
        hidden = self._hidden()
        return [*self.mergers, *(root for root in self.roots if root not in hidden and root not in self.mergers)]

    def add(self, root: F) -> Update[F]:
        """Take in a new root; returns what changes in `propagated`."""
        before = self.propagated()
        self._enter(root)
        return difference(before, self.propagated())

    def remove(self, root: F) -> Update[F]:
        """Let go of a root; its merger, if it has one, falls apart into the others."""
        before = self.propagated()
        self._leave(root)
        return difference(before, self.propagated())

    def follow(self, roots: Iterable[F]) -> Update[F]:
        """Make these the roots, whatever they were; returns what changes in `propagated`."""
        before = self.propagated()
        wanted = dict.fromkeys(roots)
        for root in [root for root in self.roots if root not in wanted]:
            self._leave(root)
        for root in [root for root in wanted if root not in self.roots]:
            self._enter(root)
        return difference(before, self.propagated())

    def unwanted(self, event: N) -> Update[F]:
        """Count an event that came although nobody here wants it; a kept merger at its limit is merged anew."""
        before = self.propagated()
        for one, merger in list(self.mergers.items()):
            if merger.stale and self.language.matches(one, event):
                merger.false_positives += 1
                if merger.false_positives > (self.false_positives_max or 0):
                    self._place_again(self._dissolve(one))
        return difference(before, self.propagated())

    def _hidden(self) -> set[F]:
        return {f for merger in self.mergers.values() for f in (*merger.components, *merger.covered)}

    def _enter(self, root: F) -> None:
        if root not in self.roots:
            self.roots[root] = None
            self._place(root)

    def _place(self, root: F) -> None:
        """Algorithm 15: under a merger, else into a merger, else together with a root that stands alone."""
        if self._covered(root):
            return
        if not self._merge(list(self.mergers), root):
            hidden = self._hidden()
            self._merge([one for one in self.roots if one not in hidden and one != root], root)

    def _covered(self, root: F) -> bool:
        above = [merger for one, merger in self.mergers.items() if self.language.covers(one, root)]
        for merger in above:
            merger.covered[root] = None
        if not above:
            for one in [one for one in self.mergers if self.language.covers(root, one)]:
                del self.mergers[one]
        return bool(above)

    def _merge(self, candidates: list[F], root: F) -> bool:
        """Algorithm 14."""
        found = self.partner(candidates, root, self.language.merge)
        if found is None:
            return False
        candidate, merged = found
        self._form(merged, candidate, root)
        return True

    def _form(self, merged: F, candidate: F, root: F) -> None:
        grown = self.mergers.pop(candidate, None)
        merger = RootMerger(self._components(candidate, grown, root), {})
        if grown is not None:
            merger.covered.update(grown.covered)
            merger.stale, merger.false_positives = grown.stale, grown.false_positives
        for one in [one for one in self.mergers if self.language.covers(merged, one)]:
            merger.covered.update(dict.fromkeys(self.mergers.pop(one).hidden()))
        for one in self.roots:
            if one not in merger.components and one not in merger.covered and self.language.covers(merged, one):
                merger.covered[one] = None
        self.mergers[merged] = merger

    def _components(self, candidate: F, grown: RootMerger[F] | None, root: F) -> dict[F, None]:
        """Only roots are components, so that each of them dissolves the merger when it leaves.

        Published, a merger that grows becomes a component itself and swallows its own: their leaving then goes
        unnoticed, and the merger stays too wide.
        """
        if grown is None:
            return {candidate: None, root: None}
        components = dict(grown.components)
        if self.rules is Rules.LITERAL:
            add_components(self.language, components, (root, candidate))
        else:
            components[root] = None
        return components

    def _leave(self, root: F) -> None:
        """Algorithm 16."""
        self.roots.pop(root, None)
        for merger in self.mergers.values():
            merger.covered.pop(root, None)
        for one, merger in self.mergers.items():
            if root in merger.components:
                self._lose(one, merger, root)
                return

    def _lose(self, merged: F, merger: RootMerger[F], component: F) -> None:
        if self.false_positives_max is not None and len(merger.components) > 1:
            del merger.components[component]
            merger.stale = True
            return
        survivors = self._dissolve(merged)
        if self.eager:
            self._place_again(survivors)

    def _dissolve(self, merged: F) -> list[F]:
        return self.mergers.pop(merged).hidden()

    def _place_again(self, survivors: list[F]) -> None:
        for one in survivors:
            if one in self.roots and one not in self._hidden():
                self._place(one)

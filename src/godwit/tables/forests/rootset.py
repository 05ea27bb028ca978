"""Root-set merging (spec 2.10.4): the roots of a table, told to others as fewer filters.

The table stays as it is; mergers live beside it and only in what is propagated. Whoever receives that holds less and
matches faster, and after any removal holds again exactly what is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic

from godwit.filters.language import F, Language, N
from godwit.filters.merging import Merge, first_partner
from godwit.tables.forests.ranges import NO_RANGES, Crowd, Ranges, RangesOf
from godwit.tables.merging.merging import Merger, Rules, Update, add_components
from godwit.tables.partition import Partition

Partner = Callable[[Iterable[F], F, Merge[F]], tuple[F, F] | None]
"""How a partner is chosen among candidates; it comes back with the merger."""

Keys = Callable[[F], Iterable[Hashable]]
"""What a filter has in common with all that it can merge with; where no key is shared, nobody tries."""


def one_key(wanted: object) -> Iterable[Hashable]:
    """Everything may merge with everything."""
    return (None,)


class _Kin(Generic[F]):
    """Filters by their keys."""

    def __init__(self, keys: Keys[F]) -> None:
        self.keys = keys
        self._by_key: dict[Hashable, dict[F, None]] = {}

    def of(self, one: F) -> Iterable[F]:
        """All that share a key with it, once each and in the order they came."""
        return dict.fromkeys(kin for key in self.keys(one) for kin in self._by_key.get(key, ()))

    def add(self, one: F) -> None:
        for key in self.keys(one):
            self._by_key.setdefault(key, {})[one] = None

    def discard(self, one: F) -> None:
        for key in self.keys(one):
            kin = self._by_key.get(key, {})
            kin.pop(one, None)
            if not kin:
                self._by_key.pop(key, None)


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
    arrivals. Fewer filters and shorter updates for more work.

    `false_positives_max`: when a component leaves, keep its merger while there is another component, and let `unwanted`
    decide when it costs too much. Fewer updates for some unwanted events.

    `partner`: which of several candidates to merge with; the first unless told otherwise.

    `keys`: spares most candidates the attempt. `perfect`: the language merges perfectly; then a merger covers nothing
    that does not overlap the newcomer or was not covered before, and only the former is looked at. With `ranges` that
    is found without a test of all others.
    """

    def __init__(
        self,
        language: Language[F, N],
        *,
        rules: Rules = Rules.CORRECTED,
        eager: bool = False,
        false_positives_max: int | None = None,
        partner: Partner[F] = first_partner,
        keys: Keys[F] = one_key,
        perfect: bool = False,
        ranges: RangesOf | None = None,
    ) -> None:
        if perfect and false_positives_max is not None:
            raise ValueError("merged roots: a merger that outlives a component is not perfect")
        self.language = language
        self.rules = rules
        self.eager = eager
        self.false_positives_max = false_positives_max
        self.partner = partner
        self.perfect = perfect
        self.roots: dict[F, None] = {}
        self.mergers: dict[F, RootMerger[F]] = {}
        self._kin = _Kin(keys)
        self._ranges = ranges
        self._crowd: Crowd[F] | None = Crowd() if perfect and ranges is not None else None
        """All roots, where those that overlap one of them can be found."""
        self._roots_by_type: Partition[F] = Partition()
        self._mergers_by_type: Partition[F] = Partition()
        self._above: dict[F, dict[F, None]] = {}
        self._shown: dict[F, None] = {}
        self._was_shown: dict[F, bool] = {}

    def propagated(self) -> list[F]:
        return list(self._shown)

    def add(self, root: F) -> Update[F]:
        """Take in a new root; returns what changes in `propagated`."""
        return self.change([root], [])

    def remove(self, root: F) -> Update[F]:
        """Let go of a root; its merger, if it has one, falls apart into the others."""
        return self.change([], [root])

    def follow(self, roots: Iterable[F]) -> Update[F]:
        """Make these the roots, whatever they were; returns what changes in `propagated`."""
        wanted = dict.fromkeys(roots)
        came = [root for root in wanted if root not in self.roots]
        return self.change(came, [root for root in self.roots if root not in wanted])

    def change(self, came: Iterable[F], went: Iterable[F]) -> Update[F]:
        """Several roots at once; returns what changes in `propagated`."""
        for root in went:
            self._leave(root)
        for root in came:
            self._enter(root)
        return self._update()

    def unwanted(self, event: N) -> Update[F]:
        """Count an event that came although nobody here wants it; a kept merger at its limit is merged anew."""
        for one in [one for one, merger in self.mergers.items() if merger.stale and self.language.matches(one, event)]:
            self._blame(one)
        return self._update()

    def _blame(self, merged: F) -> None:
        merger = self.mergers.get(merged)
        if merger is not None:
            merger.false_positives += 1
            if merger.false_positives > (self.false_positives_max or 0):
                self._place_again(self._dissolve(merged))

    def _enter(self, root: F) -> None:
        if root not in self.roots:
            self.roots[root] = None
            self._roots_by_type.add(self.language.type_of(root), root)
            if self._crowd is not None:
                self._crowd.add(root, self._range(root))
            self._review(root)
            self._place(root)

    def _place(self, root: F) -> None:
        """Algorithm 15: under a merger, else into a merger, else together with a root that stands alone."""
        if self._covered(root):
            return
        kin = [one for one in self._kin.of(root) if one != root]
        if not self._merge([one for one in kin if one in self.mergers], root):
            self._merge([one for one in kin if one not in self.mergers], root)

    def _range(self, root: F) -> Ranges:
        return NO_RANGES if self._ranges is None else self._ranges(root)

    def _roots_across(self, root: F, kind: str | None) -> Iterable[F]:
        """The roots that a merger can have come to cover when it took in this root; `kind` is that of the merger."""
        if self._crowd is not None:
            return [one for one in self._crowd.across(self._range(root)) if self.language.overlaps(one, root)]
        near = self._roots_by_type.near(kind)
        return (one for one in near if self.language.overlaps(one, root)) if self.perfect else near

    def _mergers_across(self, root: F, kind: str | None) -> list[F]:
        """The mergers that can cover this root, or that a merger with it can have come to cover.

        Perfect mergers accept what their components accept. So one that has to do with the root has a component that
        overlaps it.
        """
        if self._crowd is None or not self.mergers:
            return list(self._mergers_by_type.near(kind))
        overlapping = self._crowd.across(self._range(root))
        return list(dict.fromkeys(above for one in overlapping for above in self._above.get(one, ())))

    def _covered(self, root: F) -> bool:
        near = self._mergers_across(root, self.language.type_of(root))
        above = [one for one in near if self.language.covers(one, root)]
        for one in above:
            self.mergers[one].covered[root] = None
            self._hide(root, one)
        if not above:
            for one in near:
                if self.language.covers(root, one):
                    self._dissolve(one)
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
        grown = self.mergers.get(candidate)
        merger = RootMerger(self._components(candidate, grown, root), {})
        if grown is not None:
            merger.covered.update(grown.covered)
            merger.stale, merger.false_positives = grown.stale, grown.false_positives
            self._dissolve(candidate)
        kind = self.language.type_of(merged)
        for one in self._mergers_across(root, kind):
            if self.language.covers(merged, one):
                merger.covered.update(dict.fromkeys(self._dissolve(one)))
        self._cover(merged, merger, self._roots_across(root, kind))
        self._establish(merged, merger)

    def _cover(self, merged: F, merger: RootMerger[F], roots: Iterable[F]) -> None:
        for one in roots:
            if one not in merger.components and one not in merger.covered and self.language.covers(merged, one):
                merger.covered[one] = None

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
        if root not in self.roots:
            return
        del self.roots[root]
        self._roots_by_type.discard(self.language.type_of(root), root)
        if self._crowd is not None:
            self._crowd.remove(root)
        above = self._above.pop(root, {})
        for one in above:
            self.mergers[one].covered.pop(root, None)
        for one in above:
            if root in self.mergers[one].components:
                self._lose(one, root)
                break
        self._review(root)

    def _lose(self, merged: F, component: F) -> None:
        merger = self.mergers[merged]
        del merger.components[component]
        if self.false_positives_max is not None and merger.components:
            merger.stale = True
            return
        survivors = self._dissolve(merged)
        if self.eager:
            self._place_again(survivors)

    def _place_again(self, survivors: list[F]) -> None:
        """Merge what a merger stood for, first with each other: that needs no look at any other root.

        A smaller merger made of survivors covers no other root, as the larger one did not.
        """
        survivors = [one for one in survivors if one in self.roots]
        inner = MergedRoots(self.language, partner=self.partner, keys=self._kin.keys)
        inner.follow(one for one in survivors if one in self._shown)
        for one, merger in inner.mergers.items():
            self._cover(one, merger, survivors)
            self._establish(one, merger)
        for one in inner.propagated():
            if one not in inner.mergers and one in self._shown:
                self._place(one)

    def _establish(self, merged: F, merger: RootMerger[F]) -> None:
        self.mergers[merged] = merger
        self._mergers_by_type.add(self.language.type_of(merged), merged)
        for one in merger.hidden():
            self._hide(one, merged)
        self._review(merged)

    def _dissolve(self, merged: F) -> list[F]:
        hidden = self.mergers.pop(merged).hidden()
        self._mergers_by_type.discard(self.language.type_of(merged), merged)
        for one in hidden:
            above = self._above.get(one, {})
            above.pop(merged, None)
            if not above:
                self._above.pop(one, None)
            self._review(one)
        self._review(merged)
        return hidden

    def _hide(self, one: F, merged: F) -> None:
        self._above.setdefault(one, {})[merged] = None
        self._review(one)

    def _review(self, one: F) -> None:
        """Decide anew whether a filter is propagated; only those that are can be merged with."""
        shown = one in self.mergers or (one in self.roots and one not in self._above)
        if shown == (one in self._shown):
            return
        self._was_shown.setdefault(one, not shown)
        if shown:
            self._shown[one] = None
            self._kin.add(one)
        else:
            del self._shown[one]
            self._kin.discard(one)

    def _update(self) -> Update[F]:
        before, self._was_shown = self._was_shown, {}
        return Update(
            tuple(one for one, was in before.items() if was and one not in self._shown),
            tuple(one for one, was in before.items() if not was and one in self._shown),
        )

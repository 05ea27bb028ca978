"""The table that tests everything against everything: slow, obviously right, the yardstick of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic

from godwit.filters.language import Language
from godwit.tables.table import DEFAULT, F, Interface, N


class Naive(Generic[F, N]):
    """Every filter with its interfaces, in the order of arrival.

    With `pruned`, an interface keeps only the most general of its filters, of equivalent ones the last, as the poset
    and the non-redundant forest do.
    """

    def __init__(
        self, language: Language[F, N] = DEFAULT, *, neighbors: Iterable[Interface] = (), pruned: bool = False
    ) -> None:
        self.language = language
        self.neighbors = frozenset(neighbors)
        self.pruned = pruned
        self._held: dict[F, set[Interface]] = {}

    def add(self, wanted: F, interface: Interface, /) -> bool:
        mine = [f for f, users in self._held.items() if interface in users]
        if wanted in mine or (self.pruned and any(self._strictly_covers(f, wanted) for f in mine)):
            return False
        self._held.setdefault(wanted, set()).add(interface)
        if self.pruned:
            for f in mine:
                if self.language.covers(wanted, f):
                    self.remove(f, interface)
        return True

    def remove(self, wanted: F, interface: Interface, /) -> bool:
        users = self._held.get(wanted, set())
        if interface not in users:
            return False
        users.discard(interface)
        if not users:
            del self._held[wanted]
        return True

    def match(self, event: N, /) -> set[Interface]:
        """The naive matcher of spec 2.9: every filter is tested."""
        found: set[Interface] = set()
        for wanted, users in self._held.items():
            if self.language.matches(wanted, event):
                found |= users
        return found

    def roots(self) -> list[F]:
        return [f for f in self._held if not any(True for _ in self._coverers(f))]

    def interfaces(self, wanted: F, /) -> frozenset[Interface]:
        return frozenset(self._held.get(wanted, ()))

    def forwards(self, wanted: F, /) -> frozenset[Interface]:
        """The closed form of spec 2.3: e needs it unless only e wants it, or others than e want something wider."""
        if wanted not in self._held:
            return frozenset()
        wider = [self._held[g] for g in self._coverers(wanted)]
        return frozenset(
            e for e in self.neighbors if self._held[wanted] - {e} and not any(users - {e} for users in wider)
        )

    def heads(self) -> list[F]:
        """All that is forwarded to anybody: here that is asked of every filter, not derived from its level."""
        return [f for f in self._held if self.forwards(f)]

    def announce(self, wanted: F, interface: Interface, /) -> frozenset[Interface]:
        before = self.forwards(wanted)
        self.add(wanted, interface)
        return self.forwards(wanted) - before

    def retract(self, wanted: F, interface: Interface, /) -> dict[Interface, list[F]]:
        before = {f: self.forwards(f) for f in self._held}
        self.remove(wanted, interface)
        lost = before.get(wanted, frozenset()) - self.forwards(wanted)
        gains = {f: self.forwards(f) - before[f] for f in self._held}
        return {e: [f for f, gain in gains.items() if e in gain] for e in sorted(lost)}

    def __iter__(self) -> Iterator[F]:
        return iter(list(self._held))

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self._held

    def _strictly_covers(self, wide: F, narrow: F) -> bool:
        return self.language.covers(wide, narrow) and not self.language.covers(narrow, wide)

    def _coverers(self, wanted: F) -> Iterator[F]:
        """Those that suppress it; of two filters that cover each other, the older suppresses the younger."""
        older = True
        for f in self._held:
            if f == wanted:
                older = False
            elif self._strictly_covers(f, wanted) or (older and self.language.covers(f, wanted)):
                yield f

"""Tables in closed form: every answer computed from the definition, nothing kept up to date (spec 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Generic

from godwit.filters.language import F, Language, N
from godwit.tables.merging import Update
from godwit.tables.table import Interface


def uncovered(language: Language[F, Any], filters: Iterable[F]) -> list[F]:
    """The minimal cover by its definition; of equivalent filters the first."""
    known = list(filters)
    return [
        f
        for at, f in enumerate(known)
        if not any(
            language.covers(g, f) and (older < at or not language.covers(f, g))
            for older, g in enumerate(known)
            if older != at
        )
    ]


class ClosedForm(Generic[F, N]):
    """Remembers who sent what, drops nothing, and answers by looking at everything."""

    def __init__(self, language: Language[F, N], neighbours: Iterable[Interface] = ()) -> None:
        self.language = language
        self.neighbours = frozenset(neighbours)
        self.senders: dict[F, set[Interface]] = {}

    def add(self, wanted: F, interface: Interface, /) -> bool:
        senders = self.senders.setdefault(wanted, set())
        if interface in senders:
            return False
        senders.add(interface)
        return True

    def remove(self, wanted: F, interface: Interface, /) -> bool:
        if interface not in self.interfaces(wanted):
            return False
        self.senders[wanted].remove(interface)
        if not self.senders[wanted]:
            del self.senders[wanted]
        return True

    def match(self, event: N, /) -> set[Interface]:
        return {i for f, senders in self.senders.items() if self.language.matches(f, event) for i in senders}

    def roots(self) -> list[F]:
        return uncovered(self.language, self.senders)

    def interfaces(self, wanted: F, /) -> frozenset[Interface]:
        return frozenset(self.senders.get(wanted, ()))

    def forwards(self, wanted: F, /) -> frozenset[Interface]:
        return frozenset(e for e in self.neighbours if wanted in self.wanted_beyond(e))

    def heads(self) -> list[F]:
        roots = self.roots()
        return [*roots, *(f for f in self.senders if f not in roots and self.forwards(f))]

    def announce(self, wanted: F, interface: Interface, /) -> frozenset[Interface]:
        before = self.forwards(wanted)
        self.add(wanted, interface)
        return self.forwards(wanted) - before

    def retract(self, wanted: F, interface: Interface, /) -> dict[Interface, list[F]]:
        before = {e: self.wanted_beyond(e) for e in self.neighbours}
        self.remove(wanted, interface)
        return {
            e: [f for f in self.wanted_beyond(e) if f not in before[e]]
            for e in self.neighbours
            if wanted in before[e] and wanted not in self.wanted_beyond(e)
        }

    def wanted_beyond(self, neighbour: Interface) -> list[F]:
        """The minimal cover of what all interfaces but this one sent: what the neighbour must be told."""
        return uncovered(self.language, [f for f, senders in self.senders.items() if senders - {neighbour}])

    def __iter__(self) -> Iterator[F]:
        return iter(self.senders)

    def __len__(self) -> int:
        return len(self.senders)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self.senders


class Sender(Generic[F]):
    """An interface that tells only what is not covered, and with what it withdraws also what that uncovers.

    What a new filter covers is not withdrawn: whoever was told drops it unasked (spec 2.2).
    """

    def __init__(self, language: Language[F, Any]) -> None:
        self.language = language
        self.wishes: dict[F, None] = {}

    def told(self) -> list[F]:
        return uncovered(self.language, self.wishes)

    def wish(self, wanted: F) -> Update[F]:
        before = self.told()
        self.wishes[wanted] = None
        return Update((), tuple(f for f in self.told() if f not in before))

    def unwish(self, wanted: F) -> Update[F]:
        before = self.told()
        self.wishes.pop(wanted, None)
        return Update((wanted,) if wanted in before else (), tuple(f for f in self.told() if f not in before))


def acceptance(language: Language[F, N], events: Iterable[N]) -> Callable[[Iterable[F]], frozenset[int]]:
    """A function from filters to what they accept together, as places in the enumeration of all events."""
    everything = list(events)

    @cache
    def alone(wanted: F) -> frozenset[int]:
        return frozenset(place for place, event in enumerate(everything) if language.matches(wanted, event))

    return lambda filters: frozenset().union(*(alone(f) for f in filters))

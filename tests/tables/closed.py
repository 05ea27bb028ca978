"""What merging must come to, by definition and enumeration, and senders that behave as tables rely on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Generic

from godwit.filters.language import F, Language, N
from godwit.tables.merging.merging import Update
from godwit.tables.table import Interface, Table


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


def beyond(language: Language[F, Any], table: Table[F, Any], neighbor: Interface) -> list[F]:
    """The minimal cover of what all interfaces but this one sent: what the neighbor must be told."""
    return uncovered(language, [f for f in table if table.interfaces(f) - {neighbor}])


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

    def toggle(self, wanted: F) -> Update[F]:
        return self.unwish(wanted) if wanted in self.wishes else self.wish(wanted)

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

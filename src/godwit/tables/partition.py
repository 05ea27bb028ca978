"""Root sets by event type (spec 1.4), and how many interfaces an event of a type can concern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Generic, TypeVar

from godwit.filters.filters import TYPE_ATTRIBUTE
from godwit.tables.table import Interface

T = TypeVar("T")


class Partition(Generic[T]):
    """Items in the order they came, by type.

    Filters of two different types never cover one another nor match the same event; one that is open (of type None)
    may have to do with any.
    """

    def __init__(self) -> None:
        self._by_type: dict[str | None, dict[T, None]] = {}

    def add(self, kind: str | None, item: T) -> None:
        self._by_type.setdefault(kind, {})[item] = None

    def discard(self, kind: str | None, item: T) -> None:
        items = self._by_type.get(kind, {})
        items.pop(item, None)
        if not items:
            self._by_type.pop(kind, None)

    def near(self, kind: str | None) -> Iterable[T]:
        """All that something of this type may have to do with."""
        if kind is None:
            return iter(self)
        return chain(self._by_type.get(None, ()), self._by_type.get(kind, ()))

    def of(self, kind: str | None) -> list[T]:
        """Exactly those of this type: the spec's Get-Roots."""
        return list(self._by_type.get(kind, ()))

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._by_type.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_type.values()))


class Users:
    """How many filters each interface has, by type: a matcher may stop once it has found everybody there is."""

    def __init__(self) -> None:
        self._by_type: dict[str | None, Counter[Interface]] = {}
        self._reach: dict[str | None, int] = {}

    def add(self, kind: str | None, interface: Interface) -> None:
        self._by_type.setdefault(kind, Counter())[interface] += 1
        self._reach.clear()

    def remove(self, kind: str | None, interface: Interface) -> None:
        users = self._by_type[kind]
        users[interface] -= 1
        if not users[interface]:
            del users[interface]
        self._reach.clear()

    def reach(self, kind: str | None) -> int:
        """The number of interfaces that an event of this type can concern; of all interfaces where it is unknown."""
        if kind not in self._reach:
            kinds = self._by_type.keys() if kind is None else (None, kind)
            self._reach[kind] = len(set().union(*(self._by_type.get(k, ()) for k in kinds)))
        return self._reach[kind]


def event_type(event: object) -> str | None:
    """The type that an event given as a mapping names, else None: then every partition has to be looked at."""
    if isinstance(event, Mapping):
        kind = event.get(TYPE_ATTRIBUTE)
        return kind if isinstance(kind, str) else None
    return None

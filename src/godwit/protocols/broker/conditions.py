"""Which of many conditions hold for a publication. The compiled index is taken only where it pays: it costs seconds to
load, and a broker whose clients ask for no content never needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from godwit.events import Value
from godwit.filters.filters import FilterSet

if TYPE_CHECKING:
    from godwit.tables.index import Index

T = TypeVar("T")

FEW = 64
"""So many conditions are asked one by one faster than the index is loaded."""

TOGETHER = 16
"""From so many publications on it is faster to match them as one batch."""


class Conditions(Generic[T]):
    """Filters, each with whoever asked for it."""

    def __init__(self) -> None:
        self._filters: dict[int, FilterSet] = {}
        self._asked_by: dict[int, T] = {}
        self._next = 0
        self._index: Index | None = None

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, filters: FilterSet, asked_by: T) -> int:
        """File it; the number by which it is removed."""
        self._next += 1
        self._filters[self._next] = filters
        self._asked_by[self._next] = asked_by
        if self._index is not None:
            self._index.add(self._next, filters)
        elif len(self._filters) > FEW:
            self._load()
        return self._next

    def remove(self, number: int) -> None:
        del self._filters[number], self._asked_by[number]
        if self._index is not None:
            self._index.remove(number)

    def match(self, events: Sequence[Mapping[str, Value]]) -> list[list[T]]:
        """For each event, who wants it."""
        if self._index is None:
            return [self._one_by_one(values) for values in events]
        asked_by = self._asked_by
        if len(events) < TOGETHER:
            return [[asked_by[number] for number in self._index.match(values).tolist()] for values in events]
        from godwit.tables.batch import Batch

        found = self._index.match_batch(Batch.from_events(events))
        return [[asked_by[number] for number in numbers.tolist()] for numbers in found]

    def _one_by_one(self, values: Mapping[str, Value]) -> list[T]:
        return [self._asked_by[number] for number, filters in self._filters.items() if filters.matches(values)]

    def _load(self) -> None:
        from godwit.tables.index import Index

        self._index = Index()
        self._index.add_many(self._filters, self._filters.values())

"""Which of many conditions hold for a publication.

Those that name values are found by them. For the others the compiled index is taken only where it pays: it costs
seconds to load, and a change of it as much as twenty questions. A broker whose clients ask for no content, or for
single values, never needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from godwit.events import Value
from godwit.filters.filters import FilterSet
from godwit.protocols.broker.points import Points

if TYPE_CHECKING:
    from godwit.tables.index import Index

T = TypeVar("T")

FEW = 64
"""So many conditions are asked one by one faster than the index is loaded."""

SOON = 8
"""From so many on the index may be needed soon."""

TOGETHER = 4
"""From so many publications on it is faster to match them as one batch."""


class Conditions(Generic[T]):
    """Filters, each with whoever asked for it."""

    def __init__(self) -> None:
        self.prepared: Callable[[], bool] = lambda: True
        """Whether the index can be had at once. Who runs the broker may load it beside its work, when first asked."""
        self._points = Points()
        self._filters: dict[int, FilterSet] = {}
        """Those that are not found by a value."""
        self._asked_by: dict[int, T] = {}
        self._next = 0
        self._index: Index | None = None
        self._new: dict[int, FilterSet] = {}
        """Not in the index yet: they are put there together when the next question comes, which costs less."""

    def __len__(self) -> int:
        return len(self._asked_by)

    def add(self, filters: FilterSet, asked_by: T) -> int:
        """File it; the number by which it is removed."""
        self._next += 1
        self._asked_by[self._next] = asked_by
        if self._points.take(self._next, filters):
            return self._next
        self._filters[self._next] = filters
        self._new[self._next] = filters
        if self._index is None and len(self._filters) >= SOON:
            self.prepared()
        return self._next

    def remove(self, number: int) -> None:
        del self._asked_by[number]
        if number in self._points:
            self._points.remove(number)
            return
        del self._filters[number]
        if self._new.pop(number, None) is None and self._index is not None:
            self._index.remove(number)

    def match(self, events: Sequence[Mapping[str, Value]]) -> list[list[T]]:
        """For each event, who wants it."""
        asked_by, find = self._asked_by, self._points.find
        if not self._filters:
            return [[asked_by[number] for number in find(values)] for values in events]
        return [
            [asked_by[number] for number in (*find(values), *others)]
            for values, others in zip(events, self._match_others(events), strict=True)
        ]

    def _match_others(self, events: Sequence[Mapping[str, Value]]) -> Iterable[list[int]]:
        index = self._loaded()
        if index is None:
            return [self._one_by_one(values) for values in events]
        if len(events) < TOGETHER:
            return [index.match(values).tolist() for values in events]
        from godwit.tables.batch import Batch

        return [numbers.tolist() for numbers in index.match_batch(Batch.from_events(events))]

    def _one_by_one(self, values: Mapping[str, Value]) -> list[int]:
        return [number for number, filters in self._filters.items() if filters.matches(values)]

    def _loaded(self) -> Index | None:
        """The index with all that is asked for, once it is worth having."""
        if self._index is None:
            if len(self._filters) <= FEW or not self.prepared():
                return None
            from godwit.tables.index import Index

            self._index = Index()
        if self._new:
            self._index.add_many(self._new, self._new.values())
            self._new = {}
        return self._index

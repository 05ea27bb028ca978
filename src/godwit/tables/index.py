"""The compiled index: which of very many subscriptions want this event, or each event of a batch."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from godwit.events import Value
from godwit.filters.filters import Filter, FilterSet
from godwit.tables.batch import Batch

Ints = npt.NDArray[np.int64]


@dataclass(slots=True, frozen=True)
class Matches:
    """The ids of the subscriptions that want each event: those of event i are `ids[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    ids: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> Ints:
        return self.ids[self.offsets[event] : self.offsets[event + 1]]

    def __iter__(self) -> Iterator[Ints]:
        return (self[event] for event in range(len(self)))

    @property
    def counts(self) -> Ints:
        return np.diff(self.offsets)


class Index:
    """Subscriptions by id, each a filter or a set of alternatives. One thread uses an index at a time."""

    def __init__(self) -> None:
        self._wanted: dict[int, Filter | FilterSet] = {}

    def add(self, id: int, wanted: Filter | FilterSet) -> None:  # noqa: A002
        """File a subscription; `KeyError` where the id is in use."""
        if id in self._wanted:
            raise KeyError(f"subscription {id} is in the index already")
        self._wanted[id] = wanted

    def add_many(self, ids: Iterable[int], wanteds: Iterable[Filter | FilterSet]) -> None:
        for one, wanted in zip(ids, wanteds, strict=True):
            self.add(one, wanted)

    def remove(self, id: int) -> None:  # noqa: A002
        """Take a subscription out; `KeyError` where it is not there."""
        del self._wanted[id]

    def __len__(self) -> int:
        return len(self._wanted)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        return id in self._wanted

    @property
    def nbytes(self) -> int:
        """The memory that the index holds."""
        return sys.getsizeof(self._wanted)

    def match(self, values: Mapping[str, Value]) -> Ints:
        """The ids of the subscriptions that want this event."""
        return np.array([id for id, wanted in self._wanted.items() if wanted.matches(values)], np.int64)  # noqa: A001

    def match_batch(self, batch: Batch) -> Matches:
        """The same for every event of a batch."""
        found = [self.match(batch.values(event)) for event in range(len(batch))]
        offsets = np.zeros(len(batch) + 1, np.int64)
        np.cumsum([len(ids) for ids in found], out=offsets[1:])
        return Matches(offsets, np.concatenate([*found, np.empty(0, np.int64)]))

    def count_batch(self, batch: Batch) -> Ints:
        """How many subscriptions want each event of a batch."""
        return self.match_batch(batch).counts

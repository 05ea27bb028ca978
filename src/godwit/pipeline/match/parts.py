"""A part of a set of subscriptions as executors have it: an index, the ids by number, and how it has changed since."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from godwit.filters.filters import FilterSet
from godwit.pipeline.driver import Parcel
from godwit.tables.matching.index import Index


@dataclass(slots=True)
class Part:
    """One compiled index, and the ids of its subscriptions by their numbers in it; null where one was taken out."""

    index: Index = field(default_factory=Index)
    names: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    def add(self, names: list[str], filters: list[FilterSet]) -> None:
        begin = len(self.names)
        self.index.add_many(range(begin, begin + len(names)), filters)
        self.names = pa.concat_arrays([self.names, pa.array(names, pa.string())])

    def remove(self, names: list[str]) -> None:
        """Those that are there; of the others there was no filter."""
        numbers = pc.index_in(pa.array(names, pa.string()), value_set=self.names).drop_null().to_numpy()
        for number in numbers.tolist():
            self.index.remove(number)
        gone = np.zeros(len(self.names), np.bool_)
        gone[numbers] = True
        self.names = pc.if_else(pa.array(gone), pa.scalar(None, pa.string()), self.names)


class Change(msgspec.Struct, frozen=True):
    """What became of the subscriptions of a part; one that means something else is removed and added."""

    removed: list[str]
    added: list[str]
    filters: list[FilterSet]


@dataclass(frozen=True, slots=True)
class Shipped:
    """A part as executors have it: as it was compiled, and how it has changed since."""

    base: Parcel
    changes: tuple[Parcel, ...] = ()

    def changed(self, change: Parcel) -> Shipped:
        return Shipped(self.base, (*self.changes, change))

    def parcels(self) -> tuple[Parcel, ...]:
        return (self.base, *self.changes)


class _Loaded:
    """The part that this Python worker holds; a worker that met all parts would come to hold all."""

    def __init__(self) -> None:
        self._base: object = None
        self._part = Part()
        self._changes = 0

    def part(self, wanted: Shipped) -> Part:
        """As it was compiled, and changed as often as it was since. A part cannot be changed back, but read again."""
        if self._base != wanted.base or self._changes > len(wanted.changes):
            self._base = None
            self._part, self._changes, self._base = wanted.base.load(), 0, wanted.base
        for change in wanted.changes[self._changes :]:
            told: Change = change.load()
            self._part.remove(told.removed)
            self._part.add(told.added, told.filters)
            self._changes += 1
        return self._part


_LOADED = _Loaded()


def loaded(part: Shipped) -> Part:
    """A part, read once in the life of a Python worker as long as it asks for no other."""
    return _LOADED.part(part)

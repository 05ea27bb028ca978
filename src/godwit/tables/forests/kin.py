"""Which of many filters can cover a given one, or be covered by it? Found by what they demand, without a test.

A covering test between filters that do not even speak of the same attributes is wasted, and where filters are many most
tests are of that sort. Spec 2.7.3 suggests an index in front of the tables; this one asks the language for keys, and
tells filters with the same keys apart by their ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, KeysView
from typing import Any, Generic, Protocol, TypeVar

from godwit.filters.clauses import Clause
from godwit.filters.filters import Filter
from godwit.filters.predicates import Flag, Interval, Text, TextOp
from godwit.tables.forests.ranges import NO_RANGES, Crowd, Ranges

KeysOf = Callable[[Any], Iterable[Hashable]]
"""A wider filter never has a key that a narrower one has not: covers(a, b) implies keys(a) <= keys(b)."""


def demands(wanted: Filter) -> Iterator[Hashable]:
    """The keys of a filter of this package: its attributes, and the values that it insists on."""
    for attribute in wanted:
        yield attribute.name
        value = _insisted(attribute.clause)
        if value is not None:
            yield attribute.name, value


class Keyed(Hashable, Protocol):
    @property
    def keys(self) -> KeysView[Hashable]: ...
    @property
    def ranges(self) -> Ranges: ...


T = TypeVar("T", bound=Keyed)


class Kin(Generic[T]):
    """Items by their keys.

    Each is entered under all of its keys, to be found by wider ones; and once more under the one that was rarest when
    it came, its anchor, since a narrower filter is sure to have that key too.
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._anchors: dict[T, Hashable] = {}
        self._by_key: dict[Hashable, Crowd[T]] = {}
        self._anchored: dict[Hashable, Crowd[T]] = {}
        for item in items:
            self.add(item)

    def add(self, item: T) -> None:
        for key in item.keys:
            _put(self._by_key, key, item)
        anchor = min(item.keys, key=lambda key: len(self._by_key[key]), default=None)
        _put(self._anchored, anchor, item)
        self._anchors[item] = anchor

    def remove(self, item: T) -> None:
        _take(self._anchored, self._anchors.pop(item), item)
        for key in item.keys:
            _take(self._by_key, key, item)

    def wider(self, keys: KeysView[Hashable], ranges: Ranges = NO_RANGES) -> Iterator[T]:
        """Those that may cover a filter with these keys and ranges; look at them before anything changes."""
        for key in (None, *keys):
            crowd = self._anchored.get(key)
            if crowd is not None:
                for item in crowd.around(ranges):
                    if item.keys <= keys:
                        yield item

    def narrower(self, keys: KeysView[Hashable], ranges: Ranges = NO_RANGES) -> Iterator[T]:
        """Those that a filter with these keys and ranges may cover; look at them before anything changes."""
        if not keys:
            return iter(self._anchors)
        fewest = min((self._by_key.get(key, ()) for key in keys), key=len)
        return (item for item in (fewest.inside(ranges) if isinstance(fewest, Crowd) else ()) if keys <= item.keys)


def _put(crowds: dict[Hashable, Crowd[T]], key: Hashable, item: T) -> None:
    crowd = crowds.get(key)
    if crowd is None:
        crowd = crowds[key] = Crowd()
    crowd.add(item, item.ranges)


def _take(crowds: dict[Hashable, Crowd[T]], key: Hashable, item: T) -> None:
    crowds[key].remove(item)
    if not crowds[key]:
        del crowds[key]


def _insisted(clause: Clause) -> Hashable | None:
    """The only value that satisfies the clause, where there is just one."""
    match clause:
        case (Interval((low, 0), (high, 1)),) if low == high:
            return low
        case (Text(TextOp.EQU, operand),):
            return operand
        case (Flag(value),):
            return value
    return None

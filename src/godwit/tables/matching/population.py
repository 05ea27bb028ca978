"""Things and the values they have now: which of them does a filter accept? The index asks the other way round.

Numbers stand in columns, sorted from time to time; what has changed since is looked through. A filter starts with its
most selective attribute, the columns of its others thin out what that leaves, and the filter itself decides about the
rest: the answer is that of `Filter.matches`, whatever its predicates are.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isinf, nan, nextafter
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import Interval, Kind, Text, TextOp, Values, Within

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEW = 1_024
"""So many changes are looked through rather than sorted in."""
SHARE = 64
"""The same as a part of all."""
TOLD_APART = 2.0**53
"""Below it, floats tell whole numbers apart."""
HALF_ROUND = 180.0
"""From here on a longitude is the same meridian as one below zero."""


class Span:
    """Numbers that an attribute must be among: all that is accepted is between these, both included."""

    __slots__ = ("exact", "high", "is_meridian", "low", "name")

    def __init__(self, name: str, low: float, high: float, *, exact: bool = False, is_meridian: bool = False) -> None:
        self.name = name
        self.low = low
        self.high = high
        self.exact = exact
        """And nothing else is between them."""
        self.is_meridian = is_meridian
        """A longitude, which things may also give in 0 to 360."""


class Column:
    """The numbers of one attribute by row; NaN where a thing has none. There is one for every row that may be used."""

    def __init__(self, size: int = FEW) -> None:
        self.values: Floats = np.full(size, nan)
        self.most = -inf
        """No number was ever above it."""
        self._keys: Floats = np.empty(0)
        self._order: Rows = np.empty(0, np.int64)
        self._is_recent: npt.NDArray[np.bool_] = np.zeros(size, np.bool_)
        self._recent: list[int] = []
        self._seen: Rows | None = None

    def put(self, row: int, value: float) -> None:
        self.values[row] = value
        self.most = max(self.most, value)
        if not self._is_recent[row]:
            self._is_recent[row] = True
            self._recent.append(row)
            self._seen = None
            if len(self._recent) > max(FEW, len(self._order) // SHARE):
                self._sort()

    def count(self, span: Span) -> int:
        """About how many rows are in it."""
        first, last = self._ends(span)
        return last - first + len(self._recent)

    def rows(self, span: Span) -> Rows:
        first, last = self._ends(span)
        settled = self._order[first:last]
        if not self._recent:
            return settled
        if self._seen is None:
            self._seen = np.array(self._recent, np.int64)
        return np.concatenate((settled[~self._is_recent[settled]], self.thin(self._seen, span)))

    def thin(self, rows: Rows, span: Span) -> Rows:
        """Those of the rows that are in it."""
        values = self.values.take(rows)
        return rows[(values >= span.low) & (values <= span.high)]

    def _ends(self, span: Span) -> tuple[int, int]:
        return int(self._keys.searchsorted(span.low, "left")), int(self._keys.searchsorted(span.high, "right"))

    def _sort(self) -> None:
        present = np.flatnonzero(~np.isnan(self.values))
        values = self.values[present]
        order = np.argsort(values, kind="stable")
        self._order, self._keys = present[order], values[order]
        self._is_recent[:] = False
        self._recent, self._seen = [], None

    def grow(self, size: int) -> None:
        more = size - len(self.values)
        self.values = np.concatenate((self.values, np.full(more, nan)))
        self._is_recent = np.concatenate((self._is_recent, np.zeros(more, np.bool_)))


class Population:
    """Things by id, an integer of 64 bits, each with the values of its last event."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._values: list[Values] = []
        self._ids: Rows = np.zeros(FEW, np.int64)
        self._free: list[int] = []
        self._columns: dict[str, Column] = {}
        self._words: dict[str, dict[str, dict[int, None]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        return id in self._rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def values(self, id: int) -> Values:  # noqa: A002
        """What it has now; `KeyError` where it is not there."""
        return self._values[self._rows[id]]

    def put(self, id: int, values: Values) -> None:  # noqa: A002
        """It has these values from now on, and no others."""
        row = self._rows.get(id)
        if row is None:
            row = self._rows[id] = self._new_row()
            self._ids[row] = id
        else:
            self._take_out(row, self._values[row], keep=values)
        self._values[row] = values
        for name, value in values.items():
            if isinstance(value, str):
                self._words.setdefault(name, {}).setdefault(value, {})[row] = None
            elif _is_number(value):
                column = self._columns.get(name)
                if column is None:
                    column = self._columns[name] = Column(len(self._ids))
                column.put(row, value)

    def remove(self, id: int) -> None:  # noqa: A002
        """It is there no longer; `KeyError` where it was not."""
        row = self._rows.pop(id)
        self._take_out(row, self._values[row], keep={})
        self._values[row] = {}
        self._free.append(row)

    def find(self, wanted: Filter | FilterSet) -> list[int]:
        """The ids of all that it accepts, each once."""
        filters = (wanted,) if isinstance(wanted, Filter) else tuple(wanted)
        if len(filters) == 1:
            rows = self._accepted(filters[0])
        else:
            once = dict.fromkeys(row for one in filters for row in self._accepted(one).tolist())
            rows = np.fromiter(once, np.int64, len(once))
        return self._ids.take(rows).tolist()  # type: ignore[no-any-return]

    def _accepted(self, wanted: Filter) -> Rows:
        spans = [span for attribute in wanted for span in _spans(attribute)]
        rows, values = self._candidates(wanted, spans), self._values
        if len(spans) == len(wanted.attributes) and all(span.exact for span in spans):
            return rows
        return np.array([row for row in rows.tolist() if wanted.matches(values[row])], np.int64)

    def _candidates(self, wanted: Filter, spans: list[Span]) -> Rows:
        """All rows that are in these spans, and may be accepted."""
        columns = self._columns
        if any(span.name not in columns for span in spans):
            return np.empty(0, np.int64)
        spans = [span for span in spans if not span.is_meridian or columns[span.name].most < HALF_ROUND]
        words = [rows for attribute in wanted if (rows := self._with_words(attribute)) is not None]
        counts = [columns[span.name].count(span) for span in spans]
        fewest = min(words, key=len, default=None)
        if fewest is not None and len(fewest) <= min(counts, default=len(fewest)):
            found = np.fromiter(fewest, np.int64, len(fewest))
        elif counts:
            span = spans.pop(counts.index(min(counts)))
            found = columns[span.name].rows(span)
        else:
            return np.fromiter(self._rows.values(), np.int64, len(self._rows))
        for span in spans:
            found = columns[span.name].thin(found, span)
        return found

    def _with_words(self, attribute: AttributeFilter) -> dict[int, None] | None:
        """The rows with one of the words that it asks for; None where it asks for something else."""
        clause = attribute.clause
        if attribute.kind is not Kind.STRING or not all(isinstance(p, Text) and p.op is TextOp.EQU for p in clause):
            return None
        known = self._words.get(attribute.name, {})
        found = [known[p.operand] for p in clause if isinstance(p, Text) and p.operand in known]
        if len(found) < 2:
            return found[0] if found else {}
        return {row: None for rows in found for row in rows}

    def _new_row(self) -> int:
        if self._free:
            return self._free.pop()
        self._values.append({})
        if len(self._values) > len(self._ids):
            size = 2 * len(self._ids)
            self._ids = np.concatenate((self._ids, np.zeros(size - len(self._ids), np.int64)))
            for column in self._columns.values():
                column.grow(size)
        return len(self._values) - 1

    def _take_out(self, row: int, values: Values, keep: Values) -> None:
        """What it had and has no longer; a number that it will have again is only written over."""
        for name, value in values.items():
            later = keep.get(name)
            if isinstance(value, str):
                if later != value:
                    self._forget_word(name, value, row)
            elif _is_number(value) and not _is_number(later):
                self._columns[name].put(row, nan)

    def _forget_word(self, name: str, word: str, row: int) -> None:
        rows = self._words[name][word]
        del rows[row]
        if not rows:
            del self._words[name][word]


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _spans(attribute: AttributeFilter) -> Iterator[Span]:
    """What its numbers, or those of its place, must be among; none where that cannot be said."""
    clause = attribute.clause
    if attribute.kind is Kind.NUMBER and all(isinstance(one, Interval) for one in clause):
        spans = [_span(attribute.name, one) for one in clause if isinstance(one, Interval)]
        if len(spans) == 1:
            yield spans[0]
        else:
            low, high = min((one.low for one in spans), default=inf), max((one.high for one in spans), default=-inf)
            yield Span(attribute.name, low, high)
    elif attribute.kind is Kind.PLACE and len(clause) == 1 and isinstance(clause[0], Within):
        bounds = clause[0].area.bounds()
        lat, _, lon = attribute.name.partition(",")
        yield Span(lat, bounds.south, bounds.north)
        if len(bounds.lons) == 1:
            yield Span(lon, *bounds.lons[0], is_meridian=True)


def _span(name: str, wanted: Interval) -> Span:
    """Whole numbers that a float cannot tell apart are rounded in the column, and large ends here: nothing falls out,
    but then something may be too much."""
    (low, after_low), (high, after_high) = wanted.lo, wanted.hi
    exact = all(abs(end) < TOLD_APART or isinf(end) for end in (low, high))
    if not exact:
        return Span(name, float(low), float(high))
    return Span(
        name,
        nextafter(low, inf) if after_low else low,
        high if after_high else nextafter(high, -inf),
        exact=True,
    )

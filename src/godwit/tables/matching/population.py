"""Things and the values they have now: which of them does a filter accept? The index asks the other way round.

Numbers stand in columns with lines of bits: which rows have a number in this part of the column or an earlier one. A
filter starts where the bits of all its ranges meet (`compiled.columns`), or with its rarest word. The columns thin out
what that leaves, and the filter itself decides about the rest: the answer is that of `Filter.matches`, whatever its
predicates are.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from math import inf, isinf, isnan, nan, nextafter
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import Interval, Kind, Text, TextOp, Values, Within
from godwit.tables.compiled import layout
from godwit.tables.compiled.kernels import KERNELS
from godwit.tables.compiled.state import Arrays

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint64]

FEW = 1_024
"""So many rows are looked at rather than divided; a multiple of `WORD`."""
PARTS = 64
"""Of a column, at most. More make fewer rows to look at and take more memory: a byte a row for eight."""
PART = 256
"""So many rows are worth a part."""
UNLIKE = 4
"""A column is divided anew when a part has become so many times as large as the largest was."""
WORD = 64
WORDS = np.dtype("<u8")
BIT = np.left_shift(np.uint64(1), np.arange(WORD, dtype=np.uint64)).astype(WORDS)
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
    """The numbers of one attribute by row; NaN where a thing has none. There is one for every row that may be used.

    The numbers are divided into parts, about as many in each. For each part there is a bit a row: whether its number is
    in this part or an earlier one. So any range costs the difference of two lines of bits, and several ranges are met
    where all their bits are.
    """

    def __init__(self, size: int = FEW) -> None:
        self.values: Floats = np.full(size, nan)
        self.most = -inf
        """No number was ever above it."""
        self._begins: list[float] = []
        """Of every part but the first."""
        self._upto: Bits = np.zeros((1, size // WORD), WORDS)
        self._part: npt.NDArray[np.uint8] = np.ones(size, np.uint8)
        """By row; the number of parts where a thing has no number."""
        self._counts = [0]
        self._limit = FEW
        self._settle()

    def put(self, row: int, number: float) -> None:
        value = float(number)
        self.values[row] = value
        before, parts = int(self._part[row]), len(self._counts)
        if isnan(value):
            after = parts
        else:
            after = bisect_right(self._begins, value)
            self.most = max(self.most, value)
        if before == after:
            return
        self._part[row] = after
        self._upto[min(before, after) : max(before, after), row // WORD] ^= BIT[row % WORD]
        if before < parts:
            self._counts[before] -= 1
        if after < parts:
            self._counts[after] += 1
            if self._counts[after] > self._limit:
                self._divide()

    def count(self, span: Span) -> int:
        """At least as many rows as are in it."""
        first, last = self._ends(span)
        return sum(self._counts[first : last + 1])

    def lines(self, span: Span) -> tuple[int, int, int]:
        """Where the numbers are, and the lines of bits whose difference has all rows that are in it, and others of the
        parts where it begins and ends; the second line is 0 where there is none."""
        first, last = self._ends(span)
        values, upto, line = self._places
        return values, upto + last * line, upto + (first - 1) * line if first else 0

    def regions(self) -> Iterator[tuple[int, int]]:
        """Where what `lines` speaks of is, as numpy says, for the checked mode: from, and up to."""
        for array in (self.values, self._upto):
            yield array.ctypes.data, array.ctypes.data + array.nbytes

    def thin(self, rows: Rows, span: Span) -> Rows:
        """Those of the rows that are in it."""
        values = self.values.take(rows)
        is_in = values >= span.low
        is_in &= values <= span.high
        return rows.compress(is_in)

    def _ends(self, span: Span) -> tuple[int, int]:
        return bisect_right(self._begins, span.low), bisect_right(self._begins, span.high)

    def _divide(self) -> None:
        """Anew, so that the parts are alike again. Of equal numbers one part may have very many."""
        is_absent = np.isnan(self.values)
        ordered = np.sort(self.values[~is_absent])
        parts = min(PARTS, max(1, len(ordered) // PART))
        self._begins = ordered[[len(ordered) * one // parts for one in range(1, parts)]].tolist()
        self._part = np.searchsorted(self._begins, self.values, "right").astype(np.uint8)
        self._part[is_absent] = parts
        self._upto = np.array([np.packbits(self._part <= one, bitorder="little").view(WORDS) for one in range(parts)])
        self._counts = np.bincount(self._part, minlength=parts + 1)[:parts].tolist()
        self._limit = max(FEW, UNLIKE * max(self._counts))
        self._settle()

    def grow(self, size: int) -> None:
        more = size - len(self.values)
        self.values = np.concatenate((self.values, np.full(more, nan)))
        self._part = np.concatenate((self._part, np.full(more, len(self._counts), np.uint8)))
        self._upto = np.hstack((self._upto, np.zeros((len(self._upto), more // WORD), WORDS)))
        self._settle()

    def _settle(self) -> None:
        """Note where the arrays are, which takes numpy a while to say: they stay there until they are made anew."""
        self._places = self.values.ctypes.data, self._upto.ctypes.data, self._upto.strides[0]


_SPAN = struct.Struct("<ddqqq")
_pack_span = _SPAN.pack_into
SPANS_FIRST = 16


class Search(Arrays):
    """The spans that columns are searched for, as compiled code sees them."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self._columns = columns
        super().__init__(layout.Search, {})
        self._make_room(SPANS_FIRST)

    def put_spans(self, spans: list[Span]) -> None:
        if len(spans) * _SPAN.size > len(self._packed):
            self._make_room(2 * len(spans))
        for at, span in enumerate(spans):
            lines = self._columns[span.name].lines(span)
            _pack_span(self._packed, at * _SPAN.size, span.low, span.high, *lines)
        self.resize("spans", len(spans))

    def regions(self) -> Iterator[tuple[int, int]]:
        yield from super().regions()
        for column in self._columns.values():
            yield from column.regions()

    def _make_room(self, spans: int) -> None:
        rows = np.zeros(spans, layout.SPAN)
        self.put({"spans": rows})
        self._packed = rows.view(np.uint8).data


class Population:
    """Things by id, an integer of 64 bits, each with the values of its last event."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._values: list[Values] = []
        self._ids: Rows = np.zeros(FEW, np.int64)
        self._free: list[int] = []
        self._columns: dict[str, Column] = {}
        self._search = Search(self._columns)
        self._found: Rows = np.empty(FEW, np.int64)
        """Room for as many rows as there may be."""
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
        fewest = min(words, key=len, default=None)
        if fewest is not None and all(len(fewest) <= columns[span.name].count(span) for span in spans):
            found = np.fromiter(fewest, np.int64, len(fewest))
            for span in spans:
                found = columns[span.name].thin(found, span)
            return found
        if spans:
            self._search.put_spans(spans)
            return KERNELS.rows_between(self._search.address, len(self._ids) // WORD, self._found)
        return np.fromiter(self._rows.values(), np.int64, len(self._rows))

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
            self._found = np.empty(size, np.int64)
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
    if not (_is_told_apart(low) and _is_told_apart(high)):
        return Span(name, float(low), float(high))
    return Span(
        name,
        nextafter(low, inf) if after_low else low,
        high if after_high else nextafter(high, -inf),
        exact=True,
    )


def _is_told_apart(end: float) -> bool:
    return -TOLD_APART < end < TOLD_APART or isinf(end)

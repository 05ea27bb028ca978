"""Events by the column: what the compiled index reads, from mappings, Arrow or numpy, converted only where it looks.

A column knows, for each event, which kind of value it has. Numbers are pairs (nearest float64, whole remainder), so
that 64-bit integers and floats order exactly. Strings are codes into the distinct words of the column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from godwit.events import Event, EventError, Value

ABSENT, NUMBER, STRING, FALSE, TRUE, UNMATCHABLE = range(6)
"""What one event has in a column; NaN and foreign objects are there, but no predicate accepts them."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

EXACT_MAX = 2**53
_INT_MAX = 2**63 - 1


@dataclass(slots=True, frozen=True)
class Column:
    """One attribute of all events of a batch.

    `high + low` is the number of an event whose kind is NUMBER, and the event's word is `words[codes[event]]` where it
    is STRING. `low` is None where all numbers are floats; `codes` is None where there is no string.
    """

    kinds: npt.NDArray[np.uint8]
    high: Floats | None = None
    low: Ints | None = None
    codes: npt.NDArray[np.int32] | None = None
    words: Sequence[str] = ()


def parts(number: int | float) -> tuple[float, int]:
    """A number as the nearest float and the exact rest; the rest of an integer beyond 64 bits keeps only its sign."""
    if isinstance(number, float):
        return number, 0
    try:
        high = float(number)
    except OverflowError:
        return (math.inf, -1) if number > 0 else (-math.inf, 1)
    rest = number - int(high)
    return high, max(-_INT_MAX, min(_INT_MAX, rest)) if abs(high) <= 2.0**64 else (rest > 0) - (rest < 0)


class Batch:
    """Events to be matched together. Made by one of the `from_` functions; the sources must not change afterwards."""

    def __init__(
        self, length: int, makers: Mapping[str, Callable[[], Column]], row: Callable[[int], Mapping[str, Value]]
    ) -> None:
        self._length = length
        self._makers = makers
        self._row = row
        self._columns: dict[str, Column] = {}

    @classmethod
    def from_events(cls, events: Sequence[Event | Mapping[str, Value]]) -> Batch:
        """Events, or mappings from name to value; None stands for an absent value."""
        rows = [event.values() if isinstance(event, Event) else event for event in events]
        names = dict.fromkeys(name for row in rows for name in row)
        makers = {name: partial(_column_of_rows, rows, name) for name in names}
        return cls(len(rows), makers, rows.__getitem__)

    @classmethod
    def from_arrow(cls, table: pa.RecordBatch | pa.Table) -> Batch:
        """Columns of integers, floats, booleans and strings, dictionary-encoded or not; null stands for absent.

        Raises `EventError` naming the first column of any other type.
        """
        for field in table.schema:
            _check_arrow_type(field)
        makers = {name: partial(_column_of_arrow, table, at) for at, name in enumerate(table.schema.names)}
        return cls(table.num_rows, makers, lambda row: table.slice(row, 1).to_pylist()[0])

    @classmethod
    def from_columns(cls, columns: Mapping[str, npt.NDArray[Any] | Sequence[Value | None]]) -> Batch:
        """Arrays or lists of equal length by name; in lists and object arrays None stands for an absent value."""
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise EventError(f"columns differ in length: {lengths}; each must have one value for each event")
        for name, column in columns.items():
            if isinstance(column, np.ndarray) and column.dtype.kind not in "iufbUO":
                raise EventError(f"column {name!r} is of type {column.dtype}; {_SUPPORTED}")
        makers = {name: partial(_column_of_values, name, column) for name, column in columns.items()}

        def row(at: int) -> dict[str, Value]:
            return {name: _plain(column[at]) for name, column in columns.items()}

        return cls(next(iter(lengths.values()), 0), makers, row)

    def __len__(self) -> int:
        return self._length

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    @property
    def names(self) -> Iterator[str]:
        return iter(self._makers)

    def column(self, name: str) -> Column | None:
        """The column of this name, or None where no event has the attribute."""
        made = self._columns.get(name)
        if made is None and name in self._makers:
            made = self._columns[name] = self._makers[name]()
        return made

    def values(self, event: int) -> Mapping[str, Value]:
        """One event as a filter sees it."""
        return {name: value for name, value in self._row(event).items() if value is not None}


_SUPPORTED = "only integers, floats, booleans and strings can be matched"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _column_of_rows(rows: Sequence[Mapping[str, Value]], name: str) -> Column:
    return _column_of_list([row.get(name) for row in rows])


def _column_of_values(name: str, values: npt.NDArray[Any] | Sequence[Value | None]) -> Column:
    if not isinstance(values, np.ndarray):
        return _column_of_list(list(values))
    match values.dtype.kind:
        case "i" | "u":
            return _whole_numbers(values)
        case "f":
            return _floats(values.astype(np.float64, copy=False))
        case "b":
            return Column(np.where(values, np.uint8(TRUE), np.uint8(FALSE)))
    return _column_of_list(values.tolist())


def _column_of_list(values: list[Any]) -> Column:
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return _whole_numbers(np.array(values, np.int64))
        except OverflowError:
            return _mixed(values)
    if kinds == {float}:
        return _floats(np.array(values, np.float64))
    if kinds == {str}:
        return Column(np.full(len(values), STRING, np.uint8), codes=_codes(values), words=list(dict.fromkeys(values)))
    return _mixed(values)


def _codes(words: Sequence[str]) -> npt.NDArray[np.int32]:
    numbers = {word: at for at, word in enumerate(dict.fromkeys(words))}
    return np.fromiter(map(numbers.__getitem__, words), np.int32, len(words))


def _mixed(values: list[Any]) -> Column:
    kinds = np.fromiter(map(_kind, values), np.uint8, len(values))
    high, low = np.zeros(len(values)), np.zeros(len(values), np.int64)
    for at in np.flatnonzero(kinds == NUMBER):
        high[at], low[at] = parts(values[at])
    codes = np.zeros(len(values), np.int32)
    strings = np.flatnonzero(kinds == STRING)
    words = [values[at] for at in strings]
    codes[strings] = _codes(words)
    return Column(kinds, high, low if low.any() else None, codes, list(dict.fromkeys(words)))


def _kind(value: Any) -> int:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, int):
        return NUMBER
    if isinstance(value, float):
        return UNMATCHABLE if math.isnan(value) else NUMBER
    return STRING if isinstance(value, str) else UNMATCHABLE


def _whole_numbers(values: npt.NDArray[Any]) -> Column:
    high = values.astype(np.float64)
    kinds = np.full(len(values), NUMBER, np.uint8)
    if values.dtype.itemsize < 8 or not len(values) or max(high.max(), -high.min()) <= EXACT_MAX:
        return Column(kinds, high)
    return Column(kinds, high, _rests(values, high))


def _rests(values: npt.NDArray[Any], high: Floats) -> Ints:
    """What is left of 64-bit integers beside their nearest floats, which may lie just outside of the type."""
    limit = np.iinfo(values.dtype).max
    beyond = high >= float(limit)
    inside = np.where(beyond, 0.0, high).astype(values.dtype)
    rest: Ints = np.where(beyond, values - limit, values - inside).astype(np.int64)
    return rest - beyond


def _floats(values: Floats) -> Column:
    return Column(np.where(np.isnan(values), np.uint8(UNMATCHABLE), np.uint8(NUMBER)), values)


def _check_arrow_type(field: pa.Field) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    fits = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_null,
    )
    if not any(fit(kind) for fit in fits):
        raise EventError(f"column {field.name!r} is of type {field.type}; {_SUPPORTED}")


def _column_of_arrow(table: pa.RecordBatch | pa.Table, at: int) -> Column:
    array = table.column(at)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    kind = array.type
    if pa.types.is_null(kind):
        return Column(np.zeros(len(array), np.uint8))
    if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        array = array.dictionary_decode()
        kind = array.type
    missing = np.asarray(array.is_null()) if array.null_count else None
    if pa.types.is_dictionary(kind) or _is_text(kind):
        return _without(_strings_of_arrow(array), missing)
    if pa.types.is_boolean(kind):
        made = _column_of_values("", np.asarray(pc.fill_null(array, False)))
    elif pa.types.is_floating(kind):
        made = _floats(np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0)))
    else:
        made = _whole_numbers(np.asarray(pc.fill_null(array, 0)))
    return _without(made, missing)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _strings_of_arrow(array: pa.Array) -> Column:
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes = np.asarray(pc.fill_null(array.indices, 0)).astype(np.int32, copy=False)
    return Column(np.full(len(array), STRING, np.uint8), codes=codes, words=array.dictionary.to_pylist())


def _without(column: Column, missing: npt.NDArray[np.bool_] | None) -> Column:
    if missing is not None:
        column.kinds[missing] = ABSENT
    return column

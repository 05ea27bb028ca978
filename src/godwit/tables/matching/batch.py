"""Events by the column, as Arrow record batches: what the compiled index reads."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from godwit.events import Event, EventError, Value
from godwit.tables.compiled.kernels import KERNELS

_SUPPORTED = "only integers, floats, booleans and strings can be matched"

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Piece:
    """A record batch and its addresses in Arrow's C data interface, which live as long as this object.

    A name may come several times, side by side: each event has a value in one of these columns at most.
    """

    def __init__(self, record: pa.RecordBatch) -> None:
        self.names: list[str] = record.schema.names
        self.length: int = record.num_rows
        self._capsules = record.__arrow_c_array__()
        schema, array = self._capsules
        self.schema: int = _pointer_of(schema, b"arrow_schema")
        self.array: int = _pointer_of(array, b"arrow_array")


class Batch:
    """Events to be matched together. Made by one of the `from_` functions; the sources must not change afterwards."""

    def __init__(self, length: int) -> None:
        self._length = length

    @staticmethod
    def from_events(events: Sequence[Event | Mapping[str, Value]]) -> Batch:
        """Events, or mappings from name to value; None stands for an absent value."""
        return _Rows([event.values() if isinstance(event, Event) else event for event in events])

    @staticmethod
    def from_arrow(table: pa.RecordBatch | pa.Table) -> Batch:
        """Columns of integers, floats, booleans and strings, dictionary-encoded or not; null stands for absent.

        Raises `EventError` naming the first column of any other type.
        """
        return _Arrow([table] if isinstance(table, pa.RecordBatch) else table.to_batches(), table)

    def __len__(self) -> int:
        return self._length

    def pieces(self, wanted: Mapping[str, int]) -> Iterator[Piece]:
        """The events in order, with at least the wanted columns of those there are."""
        raise NotImplementedError

    def rows(self) -> Sequence[Mapping[str, Value]]:
        """The events as filters see them; slow, and only asked for where a predicate is not one of ours."""
        raise NotImplementedError


class _Rows(Batch):
    def __init__(self, rows: list[Mapping[str, Value]]) -> None:
        super().__init__(len(rows))
        self._rows = rows
        self._arrays: dict[str, list[pa.Array]] = {}

    def rows(self) -> Sequence[Mapping[str, Value]]:
        return self._rows

    def pieces(self, wanted: Mapping[str, int]) -> Iterator[Piece]:
        names = {name: None for name in dict.fromkeys(chain.from_iterable(self._rows)) if name in wanted}
        for name in names:
            if name not in self._arrays:
                self._arrays[name] = _arrays_of(name, [row.get(name) for row in self._rows])
        yield _piece(names, self._arrays, self._length)


class _Arrow(Batch):
    def __init__(self, records: list[pa.RecordBatch], table: pa.RecordBatch | pa.Table) -> None:
        super().__init__(table.num_rows)
        self._table = table
        self._pieces = [_checked(record) for record in records]

    def rows(self) -> Sequence[Mapping[str, Value]]:
        found: list[dict[str, Value]] = self._table.to_pylist()
        return found

    def pieces(self, wanted: Mapping[str, int]) -> Iterator[Piece]:
        return iter(self._pieces)


def _piece(names: Sequence[str] | Mapping[str, None], arrays: Mapping[str, list[pa.Array]], length: int) -> Piece:
    flat = [array for name in names for array in arrays[name]]
    repeated = [name for name in names for _ in arrays[name]]
    if not flat:
        return Piece(pa.RecordBatch.from_arrays([pa.nulls(length)], names=[""]))
    return Piece(pa.RecordBatch.from_arrays(flat, names=repeated))


def _arrays_of(name: str, values: list[Any]) -> list[pa.Array]:
    """One array for each kind of value that a column has; None is in none of them."""
    kinds = set(map(_kind, set(map(type, values))))
    kinds.discard("nothing")
    if len(kinds) == 1:
        return [_array_of(kinds.pop(), name, values)]
    return [
        _array_of(kind, name, [value if _kind(type(value)) == kind else None for value in values])
        for kind in sorted(kinds)
    ]


def _kind(type_: type) -> str:
    if type_ is type(None):
        return "nothing"
    for kind, base in (("bool", bool), ("int", int), ("float", float), ("str", str)):
        if issubclass(type_, base):
            return kind
    return "other"


def _array_of(kind: str, name: str, values: list[Any]) -> pa.Array:
    match kind:
        case "bool":
            return pa.array(values, pa.bool_())
        case "int":
            return _ints_of(name, values)
        case "float":
            return pa.array(values, pa.float64(), from_pandas=False)
        case "str":
            return _texts_of(values)
    # Foreign objects are there, but nothing accepts them, as nothing accepts NaN.
    return pa.array([None if value is None else math.nan for value in values], pa.float64(), from_pandas=False)


def _ints_of(name: str, values: list[int | None]) -> pa.Array:
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        pass
    try:
        return pa.array(values, pa.uint64())
    except (OverflowError, pa.ArrowInvalid):
        raise EventError(f"attribute {name!r} has integers that do not fit 64 bits") from None


def _texts_of(values: list[str | None]) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        # Python can hold lone surrogates and Arrow cannot: they travel as bytes.
        return pa.array([None if v is None else v.encode("utf-8", "surrogatepass") for v in values], pa.binary())


def _native(array: pa.Array) -> pa.Array:
    """The same values in a type that the kernels read, where there is one."""
    kind = array.type
    if pa.types.is_float16(kind):
        return array.cast(pa.float64())
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    return array


def _checked(record: pa.RecordBatch) -> Piece:
    piece = Piece(record)
    if len(set(piece.names)) < len(piece.names):
        twice = next(name for name in piece.names if piece.names.count(name) > 1)
        raise EventError(f"there are several columns named {twice!r}; an event has one value for each name")
    if KERNELS.unreadable(piece.schema) < 0:
        return piece
    piece = Piece(pa.RecordBatch.from_arrays([_native(c) for c in record.columns], names=record.schema.names))
    odd = KERNELS.unreadable(piece.schema)
    if odd >= 0:
        field = record.schema.field(odd)
        raise EventError(f"column {field.name!r} is of type {field.type}; {_SUPPORTED}")
    return piece

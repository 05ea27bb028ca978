"""Columns of Parquet files as filters may see them: numbers, text and truth values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Set

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from godwit.commands.console import InputError, Reports

MISSING_SHOWN = 8


def columns_to_read(path: str, schema: pa.Schema, needed: Set[str], reports: Reports) -> list[str]:
    """The needed columns that the file has. Raises `InputError` where one of them holds what no filter can test."""
    tell_missing(path, schema.names, needed, reports)
    columns = [name for name in schema.names if name in needed]
    for name in columns:
        found = schema.field(name).type
        if _conversion(found) is None:
            raise InputError(f"{path}: column {name!r} is {found}; filters test only numbers, text and truth values")
        if types.is_temporal(found):
            reports.say(f"{path}: column {name!r} is {found}; filters see it as seconds since 1970-01-01 UTC")
    return columns or schema.names[:1]


def tell_missing(path: str, names: Collection[str], needed: Set[str], reports: Reports) -> None:
    """Say which attributes of filters are no columns: legal, since they are absent then, but often misspelt."""
    missing = sorted(needed - set(names))
    if missing:
        listed = ", ".join(missing[:MISSING_SHOWN]) + (", ..." if len(missing) > MISSING_SHOWN else "")
        reports.say(f"{path}: filters name what is no column here and so always absent: {listed}")


def matchable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch in types that can be matched; a column of another type, which no filter names, becomes empty."""
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        convert = _conversion(column.type)
        columns[name] = pa.nulls(len(batch)) if convert is None else convert(column)
    return pa.RecordBatch.from_pydict(columns)


def _conversion(found: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    found = found.value_type if types.is_dictionary(found) else found
    if types.is_date(found) or types.is_timestamp(found):
        return _seconds
    if types.is_decimal(found):
        return lambda column: column.cast(pa.float64())
    return (lambda column: column) if any(is_plain(found) for is_plain in _PLAIN) else None


def _seconds(column: pa.Array) -> pa.Array:
    zone = getattr(column.type, "tz", None)
    microseconds = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return pc.divide(microseconds.cast(pa.float64(), safe=False), 1e6)


_PLAIN: tuple[Callable[[pa.DataType], bool], ...] = (
    types.is_integer,
    types.is_floating,
    types.is_boolean,
    types.is_string,
    types.is_large_string,
    types.is_string_view,
    types.is_null,
)

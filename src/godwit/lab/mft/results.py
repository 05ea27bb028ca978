"""The results of a grid: one Parquet file, one row for each run with its configuration, its seed and our version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from godwit import __version__
from godwit.lab.mft.runs import Configuration, Result


class Row(msgspec.Struct, frozen=True):
    configuration: Configuration
    result: Result
    version: str = __version__


class ResultsError(Exception):
    """A results file that this version cannot continue or report on; the message says why."""


class Results:
    """The rows of one file. Every row that is added is on disk, in a whole file, before `add` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = _read(path) if path.exists() else []

    def add(self, configuration: Configuration, result: Result) -> None:
        self.rows.append(Row(configuration, result))
        self._write()

    def missing(self, wanted: Iterable[Configuration]) -> list[Configuration]:
        """Those that this version has not run yet."""
        finished = {row.configuration for row in self.rows if row.version == __version__}
        return [configuration for configuration in wanted if configuration not in finished]

    def of(self, wanted: Sequence[Configuration]) -> list[Row]:
        """The rows of a grid, whatever else the file holds; of several versions the last."""
        last = {row.configuration: row for row in self.rows}
        return [last[configuration] for configuration in wanted if configuration in last]

    def _write(self) -> None:
        flat = [{**_plain(row.configuration), **_plain(row.result), "version": row.version} for row in self.rows]
        table = pa.Table.from_pylist([_mapped(row) for row in flat], schema=SCHEMA)
        unfinished = self.path.with_name(self.path.name + ".part")
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(self.path)


def _plain(struct: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(struct)
    return plain


def _mapped(row: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in row.items()}


def _read(path: Path) -> list[Row]:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"{path}: not a Parquet file: {error}") from None
    if absent := [name for name in SCHEMA.names if name not in table.column_names]:
        raise ResultsError(f"{path}: column {absent[0]!r} is missing; was it written by another version?")
    return [_row(row, path) for row in table.to_pylist()]


def _row(row: dict[str, Any], path: Path) -> Row:
    whole = {name: dict(value) if pa.types.is_map(SCHEMA.field(name).type) else value for name, value in row.items()}
    try:
        configuration = msgspec.convert(_part(whole, Configuration), Configuration, strict=False)
        result = msgspec.convert(_part(whole, Result), Result, strict=False)
    except msgspec.ValidationError as error:
        raise ResultsError(f"{path}: a row makes no sense: {error}") from None
    return Row(configuration, result, str(whole["version"]))


def _part(row: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {name: row[name] for name in kind.__struct_fields__}


def _arrow(kind: Any) -> pa.DataType:
    plain = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if get_origin(kind) is dict:
        return pa.map_(pa.string(), _arrow(get_args(kind)[1]))
    if get_origin(kind) is tuple:
        return pa.list_(pa.string())
    return plain.get(kind, pa.string())


SCHEMA = pa.schema(
    [(field.name, _arrow(field.type)) for kind in (Configuration, Result) for field in msgspec.structs.fields(kind)]
    + [("version", pa.string())]
)

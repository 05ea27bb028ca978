"""The results of an experiment: one Parquet file, one row for each run with its configuration and our version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from godwit import __version__

C = TypeVar("C", bound=msgspec.Struct)
R = TypeVar("R", bound=msgspec.Struct)


class Row(msgspec.Struct, Generic[C, R], frozen=True):
    configuration: C
    result: R
    version: str = __version__


class ResultsError(Exception):
    """A results file that this version cannot continue or report on; the message says why."""


class Results(Generic[C, R]):
    """The rows of one file. Every row that is added is on disk, in a whole file, before `add` returns.

    Configurations are frozen structs, results structs, both of numbers, words, and results also of maps from words.
    """

    def __init__(self, path: Path, configuration: type[C], result: type[R], version: str = __version__) -> None:
        self.path = path
        self.version = version
        self._kinds = configuration, result
        self._schema = _schema(configuration, result)
        self.rows: list[Row[C, R]] = self._read() if path.exists() else []

    def add(self, configuration: C, result: R) -> None:
        self.rows.append(Row(configuration, result, self.version))
        self._write()

    def missing(self, wanted: Iterable[C]) -> list[C]:
        """Those that this version has not run yet."""
        finished = {row.configuration for row in self.rows if row.version == self.version}
        return [configuration for configuration in wanted if configuration not in finished]

    def of(self, wanted: Sequence[C]) -> list[Row[C, R]]:
        """The rows of these, whatever else the file holds; of several versions the last."""
        last = {row.configuration: row for row in self.rows}
        return [last[configuration] for configuration in wanted if configuration in last]

    def _write(self) -> None:
        flat = [{**_plain(row.configuration), **_plain(row.result), "version": row.version} for row in self.rows]
        table = pa.Table.from_pylist([_mapped(row) for row in flat], schema=self._schema)
        unfinished = self.path.with_name(self.path.name + ".part")
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(self.path)

    def _read(self) -> list[Row[C, R]]:
        try:
            table = pq.read_table(self.path)
        except (OSError, pa.ArrowException) as error:
            raise ResultsError(f"{self.path}: not a Parquet file: {error}") from None
        if absent := [name for name in self._schema.names if name not in table.column_names]:
            raise ResultsError(f"{self.path}: column {absent[0]!r} is missing; was it written by another version?")
        return [self._row(row) for row in table.to_pylist()]

    def _row(self, row: dict[str, Any]) -> Row[C, R]:
        is_map = {field.name: pa.types.is_map(field.type) for field in self._schema}
        whole = {name: dict(value) if is_map.get(name) else value for name, value in row.items()}
        kind, result_kind = self._kinds
        try:
            configuration = msgspec.convert(_part(whole, kind), kind, strict=False)
            result = msgspec.convert(_part(whole, result_kind), result_kind, strict=False)
        except msgspec.ValidationError as error:
            raise ResultsError(f"{self.path}: a row makes no sense: {error}") from None
        return Row(configuration, result, str(whole["version"]))


def _plain(struct: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(struct)
    return plain


def _mapped(row: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in row.items()}


def _part(row: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {name: row[name] for name in kind.__struct_fields__}


def _schema(*kinds: type[msgspec.Struct]) -> pa.Schema:
    fields = [(field.name, _arrow(field.type)) for kind in kinds for field in msgspec.structs.fields(kind)]
    return pa.schema([*fields, ("version", pa.string())])


def _arrow(kind: Any) -> pa.DataType:
    plain = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if get_origin(kind) is dict:
        return pa.map_(pa.string(), _arrow(get_args(kind)[1]))
    if get_origin(kind) is tuple:
        return pa.list_(pa.string())
    return pa.string() if isinstance(kind, type) and issubclass(kind, Enum) else plain.get(kind, pa.string())

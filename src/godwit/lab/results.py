"""The results of an experiment: one Parquet file, one row for each run with its configuration and its origin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.lab import provenance
from godwit.lab.provenance import UNKNOWN, Provenance

C = TypeVar("C", bound=msgspec.Struct)
R = TypeVar("R", bound=msgspec.Struct)

RECENT_SHARE = 1 / 50
"""Of all rows, those that may stand beside the Parquet file: to write it whole for each row of a large sweep would take
longer than the runs."""
TIMED = frozenset({"wall_s", "cpu_s", "took_s"})
"""Results that are the machine's: how long a run took."""
TO_THE_MILLISECOND = frozenset({"wall_s", "cpu_s"})
"""Of these no claim speaks. More digits would be a sixth of a file that stands in the repository."""
LEVEL = 19
"""Of compression: a file is written seldom, and kept for ever."""


class Row(msgspec.Struct, Generic[C, R], frozen=True):
    configuration: C
    result: R
    made: Provenance = Provenance()


class ResultsError(Exception):
    """A results file that this version cannot continue or report on; the message says why."""


class Results(Generic[C, R]):
    """The rows of one file. Every row that is added is on disk before `add` returns.

    The last few may stand in an Arrow stream beside it, named `NAME.recent`, until `settle` is called; whoever opens
    the results finds them there. Several may read, one may add.

    Configurations are frozen structs, results structs, both of numbers, words, and results also of maps from words.
    Unless `made` is given, the code that decides a row is the module that defines the configuration and all it imports.
    """

    def __init__(self, path: Path, configuration: type[C], result: type[R], made: Provenance | None = None) -> None:
        self.path = path
        self.made = made or provenance.of(configuration.__module__)
        self.any_code = False
        """Set by whoever goes on from rows that other code has left, or reports on them, and says so."""
        self.vouched: frozenset[tuple[str, str]] = frozenset()
        """Other codes and the strands of theirs whose rows count as ours (`lab.vouchers`)."""
        self.strand: Callable[[C], str] = lambda one: ""
        self.configuration = configuration
        self.result = result
        self._schema = _schema(configuration, result)
        self._recent = path.with_name(path.name + ".recent")
        self._stream: pa.RecordBatchStreamWriter | None = None
        self._settled = self._read() if path.exists() else self._schema.empty_table()
        self.rows: list[Row[C, R]] = [self._row(row) for row in self._settled.to_pylist()]
        self._add_recent()

    def add(self, configuration: C, result: R) -> None:
        row = Row(configuration, result, self.made)
        self.rows.append(row)
        left_by_another = self._stream is None and self._recent.exists()
        if left_by_another or len(self.rows) - len(self._settled) > RECENT_SHARE * len(self.rows):
            self.settle()
        else:
            self._write_recent(row)

    def settle(self) -> None:
        """Let the Parquet file have all rows."""
        if len(self._settled) < len(self.rows):
            self._settled = pa.concat_tables([self._settled, self._table(self.rows[len(self._settled) :])])
            unfinished = self.path.with_name(self.path.name + ".part")
            pq.write_table(self._settled, unfinished, compression="zstd", compression_level=LEVEL)
            unfinished.replace(self.path)
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._recent.unlink(missing_ok=True)

    def missing(self, wanted: Iterable[C]) -> list[C]:
        """Those that this code has not run yet; with `any_code` those that no code has."""
        finished = {row.configuration for row in self.rows if self.any_code or self._is_own(row)}
        return [configuration for configuration in wanted if configuration not in finished]

    def of(self, wanted: Sequence[C]) -> list[Row[C, R]]:
        """The rows of these by this code; with `any_code` those of other code too, the last of each."""
        last = {row.configuration: row for row in self.rows if self.any_code or self._is_own(row)}
        return [last[configuration] for configuration in wanted if configuration in last]

    @property
    def foreign(self) -> list[Row[C, R]]:
        """Rows of other code, which no later run takes for its own."""
        return [row for row in self.rows if not self._is_own(row)]

    def foreign_runs(self, wanted: Iterable[C]) -> dict[str, list[C]]:
        """Of these, what other code has run and this one has not, by the code that did it last."""
        missing = set(self.missing(wanted))
        last = {row.configuration: row.made.code for row in self.foreign if row.configuration in missing}
        return {code: [one for one, own in last.items() if own == code] for code in dict.fromkeys(last.values())}

    def is_equal(self, code: str, one: C, result: R) -> bool:
        """Whether this is what that code has left, to the last digit, but for the time that it took."""
        left = [row.result for row in self.rows if row.made.code == code and row.configuration == one]
        return bool(left) and _without_times(left[-1]) == _without_times(result)

    def table(self) -> pa.Table:
        """The rows of this code, as they stand in the file."""
        return self._table(row for row in self.rows if self._is_own(row))

    def _is_own(self, row: Row[C, R]) -> bool:
        own = (row.made.code, row.made.version) == (self.made.code, self.made.version)
        return own or (row.made.code, self.strand(row.configuration)) in self.vouched

    def _table(self, rows: Iterable[Row[C, R]]) -> pa.Table:
        return pa.Table.from_pylist([_flat(row) for row in rows], schema=self._schema)

    def _write_recent(self, row: Row[C, R]) -> None:
        if self._stream is None:
            self._stream = pa.ipc.new_stream(self._recent.open("wb", buffering=0), self._schema)
        self._stream.write_table(self._table([row]))

    def _add_recent(self) -> None:
        """Take what a run that was killed left beside the file, unless it was killed after settling it."""
        known = {(row.configuration, row.made) for row in self.rows}
        recent = map(self._row, _batched(self._recent, self._schema) if self._recent.exists() else ())
        self.rows += [row for row in recent if (row.configuration, row.made) not in known]

    def _read(self) -> pa.Table:
        try:
            table = pq.read_table(self.path)
        except (OSError, pa.ArrowException) as error:
            raise ResultsError(f"{self.path}: not a Parquet file: {error}") from None
        for name in _part_names(Provenance):
            if name not in table.column_names:  # a file from before rows said where they came from
                table = table.append_column(name, pa.array([UNKNOWN] * len(table), pa.string()))
        for field in self._later_fields():
            if field.name not in table.column_names:  # a file from before this field, which then had its default
                table = table.append_column(field.name, pa.array([field.default] * len(table), _arrow(field.type)))
        if absent := [name for name in self._schema.names if name not in table.column_names]:
            raise ResultsError(f"{self.path}: column {absent[0]!r} is missing; was it written by another version?")
        try:
            return table.select(self._schema.names).cast(self._schema)
        except pa.ArrowException as error:
            raise ResultsError(f"{self.path}: a column is not what it should be: {error}") from None

    def _later_fields(self) -> list[msgspec.structs.FieldInfo]:
        """Fields with a plain default: what was run before they came was run as if they had it."""
        every = [*msgspec.structs.fields(self.configuration), *msgspec.structs.fields(self.result)]
        return [field for field in every if isinstance(field.default, str | int | float | bool)]

    def _row(self, row: dict[str, Any]) -> Row[C, R]:
        is_map = {field.name: pa.types.is_map(field.type) for field in self._schema}
        whole = {name: dict(value) if is_map.get(name) else value for name, value in row.items()}
        try:
            configuration = msgspec.convert(_part(whole, self.configuration), self.configuration, strict=False)
            result = msgspec.convert(_part(whole, self.result), self.result, strict=False)
        except msgspec.ValidationError as error:
            raise ResultsError(f"{self.path}: a row makes no sense: {error}") from None
        return Row(configuration, result, Provenance(**{name: str(whole[name]) for name in _part_names(Provenance)}))


def _batched(path: Path, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    """The rows of a stream up to where it was cut off."""
    with path.open("rb") as file:
        try:
            stream = pa.ipc.open_stream(file)
            for batch in stream:
                yield from pa.Table.from_batches([batch]).select(schema.names).to_pylist()
        except (OSError, KeyError, pa.ArrowException):
            return


def _without_times(result: msgspec.Struct) -> dict[str, Any]:
    """As JSON has it, where what is not a number equals itself."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
    return {name: value for name, value in plain.items() if name not in TIMED}


def _flat(row: Row[C, R]) -> dict[str, Any]:
    flat = {**_plain(row.configuration), **_plain(row.result), **_plain(row.made)}
    flat |= {name: round(flat[name], 3) for name in TO_THE_MILLISECOND & flat.keys()}
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in flat.items()}


def _plain(struct: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(struct)
    return plain


def _part(row: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {name: row[name] for name in _part_names(kind)}


def _part_names(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return kind.__struct_fields__


def _schema(*kinds: type[msgspec.Struct]) -> pa.Schema:
    every: list[type[msgspec.Struct]] = [*kinds, Provenance]
    return pa.schema([(field.name, _arrow(field.type)) for kind in every for field in msgspec.structs.fields(kind)])


def _arrow(kind: Any) -> pa.DataType:
    plain = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if NoneType in get_args(kind):
        return _arrow(next(one for one in get_args(kind) if one is not NoneType))
    if get_origin(kind) is dict:
        return pa.map_(pa.string(), _arrow(get_args(kind)[1]))
    if get_origin(kind) is tuple:
        return pa.list_(pa.string())
    return pa.string() if isinstance(kind, type) and issubclass(kind, Enum) else plain.get(kind, pa.string())

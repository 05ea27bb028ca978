"""What was measured: one row for each structure in each setting, in a Parquet file that a later run continues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.lab import provenance
from godwit.lab.provenance import Provenance
from godwit.lab.structures.settings import Setting


class Measures(msgspec.Struct, kw_only=True):
    """Counts, None where an experiment has no such thing. Costs are covering tests unless the name says otherwise."""

    size: int | None = None
    """Filters in the structure once built."""
    roots: int | None = None
    """Filters that no other covers; with merging, those propagated in their place."""
    added: int | None = None
    """Filters that the interfaces told while building; the others were covered by one of the same interface."""
    add_covers: int | None = None
    eliminate_covers: int | None = None
    """The part of `add_covers` that went into dropping what new filters cover."""
    remove_covers: int | None = None
    resend_covers: int | None = None
    """For filters that came back because one that covered them was removed."""
    insert_covers: int | None = None
    """For the new filters that took the place of those removed."""
    forwarded: int | None = None
    """Filters, while building, of which some neighbor had to be told."""
    sent: int | None = None
    """How many neighbors, in all, had to be told of a filter while building."""
    replace_sent: int | None = None
    """The same during the replacements."""
    events: int | None = None
    match_tests: int | None = None
    """Filters tested for these events."""
    match_predicates: int | None = None
    """Constraints looked at for these events."""
    merge_tests: int | None = None
    """Attempts to merge two filters while building."""
    merge_covers: int | None = None
    replace_merge_tests: int | None = None
    replace_merge_covers: int | None = None
    replace_roots: int | None = None
    """As `roots`, after the replacements."""
    unwanted: int | None = None
    """Pairs of an event and an interface that does not want it."""
    false_positives: int | None = None
    """Those of them that match all the same."""


class Row(msgspec.Struct, frozen=True):
    setting: Setting
    structure: str
    measures: Measures
    made: Provenance = Provenance()


Part = TypeVar("Part", Setting, Measures, Provenance)


class StoreError(Exception):
    """The file cannot be continued: the message says which, why, and what to do."""


class Store:
    """The rows of one file. Those of a setting come together, and a whole file is on disk whenever `add` returns.

    Rows of other code stay in the file until this code has run their setting, and are not used unless asked for.
    """

    def __init__(self, path: Path, made: Provenance | None = None) -> None:
        self.path = path
        self.made = made or provenance.of("godwit.lab.structures.experiments")
        self.any_code = False
        self.vouched: frozenset[tuple[str, str]] = frozenset()
        """Other codes and the strands of theirs whose rows count as ours (`lab.vouchers`)."""
        self.strand: Callable[[Setting], str] = lambda one: ""
        self._rows: dict[Setting, list[Row]] = {}
        self._table = _read(path) if path.exists() else SCHEMA.empty_table()
        for row in map(_row, self._table.to_pylist()):
            self._rows.setdefault(row.setting, []).append(row)

    def missing(self, wanted: Iterable[Setting]) -> list[Setting]:
        return [setting for setting in wanted if not self.of([setting])]

    def settle(self) -> None:
        """Nothing waits to be written."""

    def add(self, setting: Setting, rows: list[Row]) -> None:
        is_new = setting not in self._rows
        self._rows[setting] = [msgspec.structs.replace(row, made=self.made) for row in rows]
        if is_new:
            self._table = pa.concat_tables([self._table, _table(self._rows[setting])]).combine_chunks()
        else:
            self._table = _table([row for own in self._rows.values() for row in own])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_name(self.path.name + ".part")
        pq.write_table(self._table, unfinished, compression="zstd")
        unfinished.replace(self.path)

    def of(self, settings: Iterable[Setting]) -> list[Row]:
        """The rows of these, whatever else the file holds."""
        return [
            row
            for setting in settings
            for row in self._rows.get(setting, ())
            if self.any_code or row.made.code == self.made.code or (row.made.code, self.strand(setting)) in self.vouched
        ]

    def foreign_runs(self, wanted: Iterable[Setting]) -> dict[str, list[Setting]]:
        """Of these, what other code has run and this one has not, by that code."""
        found: dict[str, list[Setting]] = {}
        for setting in self.missing(wanted):
            for row in self._rows.get(setting, ())[:1]:
                found.setdefault(row.made.code, []).append(setting)
        return found

    def is_equal(self, code: str, setting: Setting, rows: list[Row]) -> bool:
        """Whether these are what that code has left."""
        left = [(row.structure, row.measures) for row in self._rows.get(setting, ()) if row.made.code == code]
        return left == [(row.structure, row.measures) for row in rows]


def _cells(row: Row) -> tuple[object, ...]:
    parts = row.setting, row.measures, row.made
    setting, measures, made = (msgspec.structs.astuple(part) for part in parts)
    return (*setting, row.structure, *measures, *made)


def _table(rows: Iterable[Row]) -> pa.Table:
    columns = zip(*map(_cells, rows), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _read(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path}: not a Parquet file ({error}); move it away or name another --out") from None
    if table.schema != SCHEMA:
        raise StoreError(f"{path}: the columns are those of another version; move it away or name another --out")
    return table


def _row(cells: dict[str, Any]) -> Row:
    return Row(_part(Setting, cells), cells["structure"], _part(Measures, cells), _part(Provenance, cells))


def _part(kind: type[Part], cells: dict[str, Any]) -> Part:
    return kind(**{name: cells[name] for name in kind.__struct_fields__})


def _column(field: msgspec.structs.FieldInfo) -> pa.Field:
    return pa.field(field.name, pa.string() if field.type is str else pa.int64())


SCHEMA = pa.schema(
    [
        *map(_column, msgspec.structs.fields(Setting)),
        pa.field("structure", pa.string()),
        *map(_column, msgspec.structs.fields(Measures)),
        *map(_column, msgspec.structs.fields(Provenance)),
    ]
)

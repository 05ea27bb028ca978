"""CSV as typed columns.

A column has one type for the whole file: numbers or truth values where most of its first cells are such, else text. A
cell that is something else makes its line bad: a filter must not see a text in one line where it saw a number in the
line before, and one misspelt number must not turn a column into text. Empty cells are absent attributes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Set
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from godwit.commands.console import InputError, Reports, shortened
from godwit.commands.match.columns import tell_missing
from godwit.commands.match.lines import TextFile, grouped
from godwit.events import INT_MAX, INT_MIN

Mask = NDArray[np.bool_]

MISSING = pa.array(["", "NA", "N/A", "NaN", "nan", "NULL", "null"])
"""What stands for no value in a column of numbers or truth values; in a column of text only the empty cell does."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?inf$"
_LEADING_ZERO = r"^[+-]?0\d"
_LONG_INTEGER = r"^-?\d{19,}$"


class CellType(StrEnum):
    NUMBER = "number"
    FLAG = "truth value"
    TEXT = "text"


def csv_columns(
    file: TextFile, needed: Set[str], welcome: str, reports: Reports
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """The line numbers and the needed columns of each group of rows, with the `welcome` one where the file has it.

    Bad rows are told and left out.
    """
    rows = _rows(file, reports)
    header = next(rows, None)
    if header is None:
        raise InputError(f"{file.path}: the file is empty; a CSV file begins with a line of column names")
    names = header[2]
    if len(set(names)) < len(names):
        raise InputError(f"{file.path}: two columns have the same name: {', '.join(names)}")
    tell_missing(file.path, names, needed, reports)
    places = {name: at for at, name in enumerate(names) if name in needed or name == welcome}
    types: dict[str, CellType] = {}
    for numbers, group in grouped(_complete(rows, len(names), file, reports)):
        yield _typed(file.path, numbers, group, places, types, reports)


def _rows(file: TextFile, reports: Reports) -> Iterator[tuple[int, int, list[str]]]:
    """(line, bytes, cells) of each record. One that the format does not allow is told; reading goes on behind it."""
    position = 0

    def texts() -> Iterator[str]:
        nonlocal position
        for number, line in file:
            position += len(line)
            try:
                yield line.decode() + "\n"
            except UnicodeDecodeError:
                reports.bad_line(file.path, number, "not UTF-8 text")

    reader = csv.reader(texts(), delimiter="\t" if ".tsv" in file.path else ",", strict=True)
    while True:
        first_line, before = file.number + 1, position
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reports.bad_line(file.path, first_line, f"not CSV: {error}")
            continue
        if cells:
            yield first_line, position - before, cells


def _complete(
    rows: Iterator[tuple[int, int, list[str]]], width: int, file: TextFile, reports: Reports
) -> Iterator[tuple[int, int, list[str]]]:
    for number, size, cells in rows:
        if len(cells) != width:
            reports.bad_line(file.path, number, f"{len(cells)} fields, but the header names {width}")
        else:
            yield number, size, cells


def _typed(
    path: str,
    numbers: list[int],
    group: list[list[str]],
    places: dict[str, int],
    types: dict[str, CellType],
    reports: Reports,
) -> tuple[list[int], pa.RecordBatch]:
    columns: dict[str, pa.Array] = {}
    good = np.ones(len(group), np.bool_)
    transposed = list(zip(*group, strict=True))
    for name, at in places.items():
        cells = pa.array(transposed[at], pa.string())
        if name not in types and (decided := _decide(cells)) is not None:
            types[name] = decided
        columns[name], bad = _READ[types.get(name, CellType.TEXT)](cells)
        for row in np.flatnonzero(bad & good):
            cell = shortened(transposed[at][row], 40)
            reason = f"{cell!r} is no {types[name].value} that can be matched, as column {name!r} holds"
            reports.bad_line(path, numbers[row], reason)
        good &= ~bad
    batch = pa.RecordBatch.from_pydict(columns) if columns else _empty_columns(len(group))
    if good.all():
        return numbers, batch
    return [number for number, kept in zip(numbers, good, strict=True) if kept], batch.filter(pa.array(good))


def _empty_columns(rows: int) -> pa.RecordBatch:
    """A batch must have a column to have rows."""
    return pa.RecordBatch.from_pydict({"": pa.nulls(rows)})


def _decide(cells: pa.StringArray) -> CellType | None:
    present = cells.filter(pc.invert(pc.is_in(cells, MISSING)))
    if not len(present):
        return None
    if _mask(pc.match_substring_regex(present, _NUMBER)).mean() > 0.5:
        # A leading zero is lost in a number: such digits are a name (a postcode, a call sign), not a quantity.
        return CellType.TEXT if pc.any(pc.match_substring_regex(present, _LEADING_ZERO)).as_py() else CellType.NUMBER
    return CellType.FLAG if _not_flags(present).mean() < 0.5 else CellType.TEXT


def _numbers(cells: pa.StringArray) -> tuple[pa.Array, Mask]:
    """Integers where all are integers, so that 64 bits stay exact, else floats."""
    present = _without_missing(cells)
    bad = _mask(pc.invert(pc.match_substring_regex(present, _NUMBER))) | _too_long(present)
    sound = pc.if_else(pa.array(bad), None, present)
    try:
        return sound.cast(pa.int64()), bad
    except pa.ArrowInvalid:
        return sound.cast(pa.float64()), bad


def _too_long(cells: pa.StringArray) -> Mask:
    suspects = _mask(pc.match_substring_regex(cells, _LONG_INTEGER))
    for row in np.flatnonzero(suspects):
        suspects[row] = not INT_MIN <= int(cells[row].as_py()) <= INT_MAX
    return suspects


def _flags(cells: pa.StringArray) -> tuple[pa.Array, Mask]:
    present = _without_missing(cells)
    bad = _not_flags(present)
    return pc.equal(pc.utf8_lower(pc.if_else(pa.array(bad), None, present)), "true"), bad


def _not_flags(cells: pa.StringArray) -> Mask:
    return _mask(pc.invert(pc.is_in(pc.utf8_lower(cells), pa.array(["true", "false", None]))))


def _texts(cells: pa.StringArray) -> tuple[pa.Array, Mask]:
    return pc.if_else(pc.equal(cells, ""), None, cells), np.zeros(len(cells), np.bool_)


def _without_missing(cells: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.is_in(cells, MISSING), None, cells)


def _mask(flags: pa.BooleanArray) -> Mask:
    return np.asarray(flags.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


_READ = {CellType.NUMBER: _numbers, CellType.FLAG: _flags, CellType.TEXT: _texts}

"""Events from files, a bounded number at a time: JSON lines, CSV and Parquet, the text formats gzipped or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from godwit.commands.console import InputError, Reports
from godwit.commands.match.columns import columns_to_read, matchable
from godwit.commands.match.csvfiles import csv_columns
from godwit.commands.match.lines import TextFile, cannot_open, grouped, suffix
from godwit.events import INT_MAX, INT_MIN, EventError, Value, check_attribute

ID = "id"
"""The attribute that names an event in deliveries, where events have one."""

ROWS = 1 << 16

_Scalar = Annotated[int, msgspec.Meta(ge=INT_MIN, le=INT_MAX)] | float | str | bool | None
_Flat = dict[Annotated[str, msgspec.Meta(min_length=1, max_length=255)], _Scalar]


@dataclass(frozen=True, slots=True)
class Events:
    """Some events of a file, in its order.

    `numbers` says where each stands: its line in a text file, its row in a Parquet file, from 1. Contents are columns,
    or mappings where a name may have another type on the next line. `share` is how much of the file is read by now.
    """

    numbers: NDArray[np.int64]
    content: pa.RecordBatch | list[dict[str, Value]]
    share: float

    def __len__(self) -> int:
        return len(self.numbers)

    def slice(self, start: int, stop: int) -> Events:
        content = (
            self.content[start:stop] if isinstance(self.content, list) else self.content.slice(start, stop - start)
        )
        return Events(self.numbers[start:stop], content, self.share)

    def ids(self) -> list[Value | None]:
        """The `id` of each event; empty where no event has one."""
        if isinstance(self.content, list):
            ids = [values.get(ID) for values in self.content]
            return [] if ids.count(None) == len(ids) else ids
        return self.content.column(ID).to_pylist() if ID in self.content.schema.names else []


def read_events(path: str, needed: Set[str], reports: Reports) -> Iterator[Events]:
    """All events of a file, with at least the attributes in `needed` and the `id`.

    Bad lines are told to `reports` and left out. Raises `InputError` when nothing more can be read; what was yielded
    before stays good.
    """
    reader = _from_parquet if Path(path).is_dir() else _READERS.get(suffix(path))
    if reader is None:
        raise InputError(f"{path}: the name must end in {', '.join(_READERS)} (text also with .gz), or be - for stdin")
    yield from reader(path, needed, reports)


def flat_object(line: bytes) -> dict[str, Value]:
    """The attributes of one event given as JSON; null means absent. Raises `EventError` with the reason."""
    try:
        values = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise EventError(_why_not_flat(line)) from None
    if None not in values.values():
        return cast(dict[str, Value], values)
    return {name: value for name, value in values.items() if value is not None}


_decode = msgspec.json.Decoder(_Flat).decode


def _why_not_flat(line: bytes) -> str:
    try:
        found = msgspec.json.decode(line)
    except UnicodeDecodeError:
        return "not UTF-8 text"
    except RecursionError:
        return "nested too deeply; an event is a flat object"
    except msgspec.DecodeError as error:
        return f"not JSON: {str(error).removeprefix('JSON is malformed: ')}"
    if not isinstance(found, dict):
        return f'an event is an object such as {{"pm25": 12}}, not {_JSON_NAMES[type(found)]}'
    for name, value in found.items():
        if isinstance(value, list | dict):
            return (
                f"attribute {name!r} is {_JSON_NAMES[type(value)]}; only numbers, text, true and false can be matched"
            )
        if value is not None:
            try:
                check_attribute(name, value)
            except EventError as error:
                return str(error).removeprefix("event: ")
    return "not an event"


_JSON_NAMES: dict[type, str] = {
    list: "an array",
    dict: "an object",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "null",
}


def _from_json(path: str, needed: Set[str], reports: Reports) -> Iterator[Events]:
    file = TextFile(path, reports)
    for numbers, objects in grouped(_objects(file, reports)):
        yield Events(np.array(numbers, np.int64), objects, file.share)


def _objects(file: TextFile, reports: Reports) -> Iterator[tuple[int, int, dict[str, Value]]]:
    for number, line in file:
        if not line or line.isspace():
            continue
        try:
            yield number, len(line), flat_object(line)
        except EventError as error:
            reports.bad_line(file.path, number, str(error))


def _from_csv(path: str, needed: Set[str], reports: Reports) -> Iterator[Events]:
    file = TextFile(path, reports)
    for numbers, table in csv_columns(file, needed, ID, reports):
        yield Events(np.array(numbers, np.int64), table, file.share)


def _from_parquet(path: str, needed: Set[str], reports: Reports) -> Iterator[Events]:
    before = 0
    parts = _parts(path)
    for done, part in enumerate(parts):
        try:
            file = pq.ParquetFile(part)
            columns = columns_to_read(str(part), file.schema_arrow, needed, reports)
            if ID in file.schema_arrow.names and ID not in columns:
                columns.append(ID)
            read = 0
            for batch in file.iter_batches(ROWS, columns=columns, use_threads=False):
                numbers = np.arange(before + read + 1, before + read + len(batch) + 1, dtype=np.int64)
                read += len(batch)
                share = (done + read / file.metadata.num_rows) / len(parts)
                yield Events(numbers, matchable(batch), share)
            before += read
        except OSError as error:
            raise cannot_open(str(part), error) from None
        except pa.ArrowException as error:
            raise InputError(f"{part}: damaged or no Parquet file: {str(error).splitlines()[0]}") from None


def _parts(path: str) -> list[Path]:
    """The file itself or, as Spark writes them, all Parquet files of a directory in the order of their names."""
    if not Path(path).is_dir():
        return [Path(path)]
    parts = sorted(part for part in Path(path).rglob("*.parquet") if not part.name.startswith((".", "_")))
    if not parts:
        raise InputError(f"{path}: the directory holds no .parquet file")
    return parts


_READERS: dict[str, Callable[[str, Set[str], Reports], Iterator[Events]]] = {
    ".jsonl": _from_json,
    ".ndjson": _from_json,
    ".json": _from_json,
    ".csv": _from_csv,
    ".tsv": _from_csv,
    ".parquet": _from_parquet,
}

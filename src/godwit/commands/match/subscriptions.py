"""Subscriptions from files: JSON lines, Parquet, or one filter a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.commands.console import Bar, InputError, Reports
from godwit.commands.match.lines import TextFile, cannot_open, suffix
from godwit.events import INT_MAX, INT_MIN
from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.filters.text import parse

SubscriptionId = str | Annotated[int, msgspec.Meta(ge=INT_MIN, le=INT_MAX)]


@dataclass(frozen=True, slots=True)
class Subscription:
    id: SubscriptionId
    text: str
    filters: FilterSet


class _Line(msgspec.Struct):
    filter: str
    id: SubscriptionId | None = None


_Found = tuple[int, float, _Line]
"""A line number, the share of the file read by then, and what stands there."""


def read_subscriptions(path: str, reports: Reports) -> list[Subscription]:
    """All good subscriptions of a file; bad lines are told to `reports`; a line without an id is named by its number.

    Raises `InputError` where the file cannot be read to its end: matching against half of it would look like success.
    """
    reader = _READERS.get(suffix(path))
    if reader is None:
        raise InputError(f"{path}: the name must end in {', '.join(_READERS)} (text also with .gz), or be - for stdin")
    lines_of: dict[SubscriptionId, int] = {}
    parsed: dict[str, FilterSet | FilterError] = {}
    subscriptions: list[Subscription] = []
    with Bar(reports.console, "reading subscriptions") as bar:
        for number, share, line in reader(path, reports):
            bar.update(share, f"{len(subscriptions):,}")
            name = number if line.id is None else line.id
            if name in lines_of:
                reports.bad_line(path, number, f"the id {name!r} is taken by line {lines_of[name]}")
                continue
            filters = parsed.get(line.filter) or parsed.setdefault(line.filter, _parsed(line.filter))
            if isinstance(filters, FilterError):
                reports.bad_line(path, number, str(filters))
                continue
            lines_of[name] = number
            subscriptions.append(Subscription(name, line.filter, filters))
    return subscriptions


def _parsed(text: str) -> FilterSet | FilterError:
    try:
        return parse(text)
    except FilterError as error:
        return error


def _from_json(path: str, reports: Reports) -> Iterator[_Found]:
    decode = msgspec.json.Decoder(_Line).decode
    file = TextFile(path, reports)
    for number, line in file:
        if not line or line.isspace():
            continue
        try:
            yield number, file.share, decode(line)
        except msgspec.ValidationError as error:
            reports.bad_line(path, number, f'{error}; expected {{"id": ..., "filter": "..."}}')
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reports.bad_line(path, number, f"not JSON: {str(error).removeprefix('JSON is malformed: ')}")


def _from_text(path: str, reports: Reports) -> Iterator[_Found]:
    file = TextFile(path, reports)
    for number, line in file:
        try:
            text = line.decode().strip()
        except UnicodeDecodeError:
            reports.bad_line(path, number, "not UTF-8 text")
            continue
        if text and not text.startswith("#"):
            yield number, file.share, _Line(text)


def _from_parquet(path: str, reports: Reports) -> Iterator[_Found]:
    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        if "filter" not in names:
            raise InputError(f"{path}: there is no column 'filter'; the columns are {', '.join(map(repr, names))}")
        number = 0
        for batch in file.iter_batches(1 << 14, columns=[name for name in ("id", "filter") if name in names]):
            for row in batch.to_pylist():
                number += 1
                try:
                    yield number, number / file.metadata.num_rows, msgspec.convert(row, _Line)
                except msgspec.ValidationError as error:
                    reports.bad_line(path, number, str(error))
    except OSError as error:
        raise cannot_open(path, error) from None
    except pa.ArrowException as error:
        raise InputError(f"{path}: damaged or no Parquet file: {str(error).splitlines()[0]}") from None


_READERS: dict[str, Callable[[str, Reports], Iterator[_Found]]] = {
    ".jsonl": _from_json,
    ".ndjson": _from_json,
    ".json": _from_json,
    ".parquet": _from_parquet,
    ".txt": _from_text,
    ".filters": _from_text,
}

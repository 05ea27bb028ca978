"""Rows of CSV, JSON and Parquet files, and of folders that Spark has written: for what brokers are given to know."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

NUMBER_MAX = 1e15
"""Nothing that is counted or timed here is more; what says otherwise lies, and sums of it would not be numbers."""


class NeighborsError(ValueError):
    """A file that cannot be taken; the text names file, row and column, and what would be right."""


def rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """By how the name ends."""
    if not path.exists():
        raise NeighborsError(f"{path}: No such file or directory")
    if path.is_dir() or path.suffix == ".parquet":
        yield from _parquet(path)
    elif path.suffix == ".json":
        yield from _json(path)
    elif path.suffix == ".csv":
        yield from csv_rows(path)
    else:
        raise NeighborsError(f"{path}: right would be a .json, .csv or .parquet file, or a folder of the last")


def csv_rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        lines = contents(path).decode().splitlines()
    except UnicodeDecodeError:
        raise NeighborsError(f"{path}: not a text file") from None
    reader = csv.DictReader(lines)
    for number, row in enumerate(reader, 1):
        if None in row or None in row.values():
            wanted = len(reader.fieldnames or ())
            raise NeighborsError(f"{path}, row {number}: right would be {wanted} columns, as in the first line")
        yield row


def contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NeighborsError(f"{path}: {error.strerror}") from None


def name_in(where: str, row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value:
        raise NeighborsError(f"{where}, column {column}: {value!r}; right would be the name of a broker")
    return value


def number_in(
    where: str, row: Mapping[str, Any], column: str, least: float = 0.0, most: float = NUMBER_MAX
) -> float | None:
    """None where there is nothing."""
    value = row.get(column)
    if value is None or value == "":
        return None
    try:
        number = float(value) if not isinstance(value, bool) else least - 1
    except (TypeError, ValueError):
        number = least - 1
    if not isfinite(number) or not least <= number <= most:
        raise NeighborsError(f"{where}, column {column}: {value!r}; right would be a number from {least:g} to {most:g}")
    return number


def _json(path: Path) -> list[dict[str, Any]]:
    try:
        return msgspec.json.decode(contents(path), type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise NeighborsError(f"{path}: {error}; right would be a list of objects, one for each row") from None


def _parquet(path: Path) -> list[dict[str, Any]]:
    # Few brokers are given one, and Arrow takes its time to load.
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise NeighborsError(f"{path}: no .parquet file in it; right would be the folder `neighbors` of the pipeline")
    found: list[dict[str, Any]] = []
    for file in files:
        try:
            found += pq.ParquetFile(file).read().to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise NeighborsError(f"{file}: {error}") from None
    return found

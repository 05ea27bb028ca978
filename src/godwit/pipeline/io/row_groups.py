"""Parquet files by their row groups: shares of them planned on the driver, and read by the worker that needs the rows.

Spark turns Parquet into rows and rows into Arrow before Python sees them, which takes longer than to match them. A
worker that opens the file itself has the columns at once. It is done only where it can make no difference: `planned`
looks at the footer of every file, and leaves to Spark whatever Spark may understand in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from godwit.pipeline.driver import cores

SHARES_PER_CORE = 8
SHARE_ROWS_MIN, SHARE_ROWS_MAX = 20_000, 1_000_000
"""Tasks are many enough to keep all cores busy to the end, and long enough for their start not to count."""

_ALIKE: dict[DataType, pa.DataType] = {
    BooleanType(): pa.bool_(),
    ByteType(): pa.int8(),
    ShortType(): pa.int16(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    FloatType(): pa.float32(),
    DoubleType(): pa.float64(),
    StringType(): pa.string(),
}
"""Types that a file has no two ways to write: not times, which have calendars, nor decimals, which have digits."""


class RowGroups(msgspec.Struct, frozen=True, array_like=True):
    """Some row groups of one file."""

    path: str
    numbers: tuple[int, ...]

    def read(self, wanted: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        """The columns wanted, at most so many rows at a time."""
        with pq.ParquetFile(self.path) as file:
            found = file.iter_batches(rows, row_groups=list(self.numbers), columns=wanted.names, use_threads=False)
            for record in found:
                yield record.select(wanted.names).cast(wanted)


Share = tuple[RowGroups, ...]
"""What one task reads."""


def wanted_columns(events: DataFrame, names: Sequence[str]) -> pa.Schema | None:
    """The columns in Arrow's types, or None where Spark has to make something of one of them first."""
    types = [_ALIKE.get(events.schema[name].dataType) for name in names]
    return None if None in types else pa.schema(list(zip(names, types, strict=True)))


def planned(events: DataFrame, wanted: pa.Schema) -> list[Share] | None:
    """Shares for tasks of all files of a frame, or None where a worker might read something else than Spark.

    That is so for files that are not on a file system that all machines see as their own, for columns that a file does
    not have (it may be the name of a folder that has them), and for those that it has in another type.
    """
    groups = list[tuple[str, int, int]]()
    for address in events.inputFiles():
        place = urlsplit(address)
        path = Path(unquote(place.path))
        if place.scheme != "file" or not path.is_file():
            return None
        with pq.ParquetFile(path) as file:
            if not _is_alike(file.schema_arrow, wanted):
                return None
            footer = file.metadata
            groups += [(str(path), at, footer.row_group(at).num_rows) for at in range(footer.num_row_groups)]
    return _shared_out(groups, cores(events.sparkSession))


def _is_alike(there: pa.Schema, wanted: pa.Schema) -> bool:
    return all(there.get_field_index(field.name) >= 0 and _same(there.field(field.name), field) for field in wanted)


def _same(there: pa.Field, wanted: pa.Field) -> bool:
    return bool(there.type == wanted.type or (pa.types.is_large_string(there.type) and wanted.type == pa.string()))


def _shared_out(groups: Sequence[tuple[str, int, int]], cores: int) -> list[Share]:
    """Neighboring row groups together, until a share has rows enough."""
    total = sum(rows for _, _, rows in groups)
    enough = min(max(total // (SHARES_PER_CORE * cores), SHARE_ROWS_MIN), SHARE_ROWS_MAX)
    shares, held = list[list[tuple[str, int]]](), enough
    for path, number, rows in groups:
        if held >= enough:
            shares.append([])
            held = 0
        shares[-1].append((path, number))
        held += rows
    return [_by_file(share) for share in shares]


def _by_file(share: Sequence[tuple[str, int]]) -> Share:
    files = dict[str, list[int]]()
    for path, number in share:
        files.setdefault(path, []).append(number)
    return tuple(RowGroups(path, tuple(numbers)) for path, numbers in files.items())

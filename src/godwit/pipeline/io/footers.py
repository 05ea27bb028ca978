"""The columns of many Parquet files as one: the union of their schemas, and the files that cannot be united.

A file may lack columns that others have, and may have a narrower type. What cannot be united with most of the rows,
or cannot be read, is set aside file by file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

THREADS = 16
DECIMAL_DIGITS_MAX = 38
ON_EXECUTORS = 256
"""More footers than this are read by executors, which takes them a second to begin with."""

INTEGERS: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
FLOATS: tuple[type[DataType], ...] = (FloatType, DoubleType)
TIMES: tuple[type[DataType], ...] = (DateType, TimestampNTZType, TimestampType)


class Footer(msgspec.Struct, frozen=True):
    """Of one file: its columns as Arrow tells them, which is enough to tell schemas apart; or why there are none."""

    name: str
    columns: str
    rows: int
    fault: str = ""


class Group(msgspec.Struct, frozen=True):
    """Files with the same columns."""

    names: tuple[str, ...]
    schema: StructType


class Apart(msgspec.Struct, frozen=True):
    """A file that is not read, and why."""

    name: str
    reason: str


class United(msgspec.Struct, frozen=True):
    schema: StructType
    groups: tuple[Group, ...]
    apart: tuple[Apart, ...]


def united(spark: SparkSession, names: Sequence[str], settled: StructType | None = None) -> United:
    """The files in groups of one schema, the union of these, and those set apart.

    Where columns cannot be united, those count that have more rows. With `settled`, of files that came earlier, a file
    that differs from these is set apart.
    """
    footers = list(_footers(spark, names))
    apart = [Apart(one.name, one.fault) for one in footers if one.fault]
    alike = dict[str, list[Footer]]()
    for one in footers:
        if not one.fault:
            alike.setdefault(one.columns, []).append(one)
    schema, groups, origin = settled or StructType(), list[Group](), ""
    for found in sorted(alike.values(), key=lambda found: (-sum(one.rows for one in found), found[0].name)):
        own = _schema(spark, found[0].name)
        wider = own if isinstance(own, str) else _union(schema, own, origin)
        if isinstance(wider, str) or isinstance(own, str):
            apart += [Apart(one.name, str(own if isinstance(own, str) else wider)) for one in found]
            continue
        schema, origin = wider, origin or found[0].name
        groups.append(Group(tuple(one.name for one in found), own))
    return United(schema, tuple(groups), tuple(apart))


def _footers(spark: SparkSession, names: Sequence[str]) -> Iterator[Footer]:
    if any("://" in name for name in names):
        with ThreadPoolExecutor(THREADS) as threads:
            yield from threads.map(lambda name: _footer_by_spark(spark, name), names)
    elif len(names) <= ON_EXECUTORS:
        with ThreadPoolExecutor(THREADS) as threads:
            yield from threads.map(_footer, names)
    else:
        asked = spark.createDataFrame(pa.table({"name": list(names)})).repartition(len(names) // ON_EXECUTORS + 1)
        told = asked.mapInArrow(_footers_of, "packed binary").toArrow()
        found = {one.name: one for one in (_decode(packed.as_buffer()) for packed in told["packed"])}
        yield from (found[name] for name in names)


_decode = msgspec.msgpack.Decoder(Footer).decode


def _footers_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = [msgspec.msgpack.encode(_footer(name)) for name in batch.column(0).to_pylist()]
        yield pa.record_batch([pa.array(found, pa.binary())], names=["packed"])


def _footer(name: str) -> Footer:
    try:
        with pq.ParquetFile(Path(name)) as file:
            return Footer(name, str(file.schema_arrow.remove_metadata()), file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        return Footer(name, "", 0, f"damaged or no Parquet file: {_first_line(error)}")


def _footer_by_spark(spark: SparkSession, name: str) -> Footer:
    """Of a file that this machine cannot open by itself; how many rows it has is not known."""
    found = _schema(spark, name)
    return Footer(name, "", 0, found) if isinstance(found, str) else Footer(name, found.json(), 1)


def _schema(spark: SparkSession, name: str) -> StructType | str:
    """As Spark understands it, without the columns that folders may add; or why it does not."""
    try:
        return spark.read.option("recursiveFileLookup", "true").parquet(name).schema
    except PySparkException as error:
        return f"damaged or no Parquet file: {_first_line(error)}"


def _union(known: StructType, own: StructType, origin: str) -> StructType | str:
    there, united = {field.name: field for field in known}, list[StructField]()
    for field in own:
        before = there.get(field.name)
        kind = field.dataType if before is None else wider(before.dataType, field.dataType)
        if kind is None and before is not None:
            told, most = field.dataType.simpleString(), before.dataType.simpleString()
            where = f"in {origin} and most rows" if origin else "in earlier files"
            return f"column {field.name!r} is {told}; {where} it is {most}"
        united.append(StructField(field.name, kind or field.dataType))
    own_names = set(own.names)
    order = [*known.names, *(name for name in own.names if name not in there)]
    found = {field.name: field for field in united} | {n: f for n, f in there.items() if n not in own_names}
    return StructType([found[name] for name in order])


def wider(one: DataType, other: DataType) -> DataType | None:
    """The type that holds the values of both, None where none does.

    A column of whole numbers that pandas wrote with a gap in it is one of floats, so that these are united too: beyond
    2**53 a float does not tell neighbors apart.
    """
    if one == other or isinstance(other, NullType):
        return one
    if isinstance(one, NullType):
        return other
    for order in (INTEGERS, FLOATS, TIMES):
        if type(one) in order and type(other) in order:
            return max(one, other, key=lambda kind: order.index(type(kind)))
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        return _wider_decimal(one, other)
    numbers = (*INTEGERS, *FLOATS, DecimalType)
    if type(one) in numbers and type(other) in numbers:
        return DoubleType()
    return None


def _wider_decimal(one: DecimalType, other: DecimalType) -> DataType:
    scale = max(one.scale, other.scale)
    digits = max(one.precision - one.scale, other.precision - other.scale) + scale
    return DecimalType(digits, scale) if digits <= DECIMAL_DIGITS_MAX else DoubleType()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

"""Tables as frames: by Spark's own package where the session has it, else by the format's Python library in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.lake.address import DELTA, ICEBERG, TABLE, TableAddress


class TableReader(Protocol):
    """What a format's library must be able to do."""

    def pinned(self) -> TableAddress:
        """The address with the version that was opened: whoever opens it later sees the same."""

    def schema(self) -> pa.Schema: ...

    def parts(self) -> Sequence[object]: ...

    def read(self, part: object, /) -> Iterator[pa.RecordBatch]: ...


NAME, REGISTERED = "godwit_table", "spark.godwit.tables.registered"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def frame(spark: SparkSession, address: TableAddress) -> DataFrame:
    """All columns of the table, now or as it was; `PipelineError` says what is wrong with it."""
    try:
        return _by_spark(spark, address) if has_own_reader(spark, address) else _by_library(spark, address)
    except PySparkException as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise PipelineError(f"{address.text}: {told}") from None


def has_own_reader(spark: SparkSession, address: TableAddress) -> bool:
    """Whether this session was given the format's package: it knows more, and all executors work."""
    if address.format == TABLE:
        return True
    if address.format == DELTA:
        return spark.conf.get("spark.sql.catalog.spark_catalog", "") == _DELTA_CATALOG
    if address.is_folder:
        return "iceberg" in str(spark.conf.get("spark.sql.extensions", "")).lower()
    return bool(spark.conf.get(f"spark.sql.catalog.{address.place.partition('.')[0]}", ""))


def _by_spark(spark: SparkSession, address: TableAddress) -> DataFrame:
    reader = spark.read if address.format == TABLE else spark.read.format(address.format)
    names = ("snapshot-id", "as-of-timestamp") if address.format == ICEBERG else ("versionAsOf", "timestampAsOf")
    for name, value in zip(names, (address.version, address.time_ms), strict=True):
        if value is not None:
            reader = reader.option(name, value)
    return reader.load(address.place) if address.is_folder else reader.table(address.place)


def _by_library(spark: SparkSession, address: TableAddress) -> DataFrame:
    pinned = opened(address).pinned()
    if spark.conf.get(REGISTERED, "") != NAME:
        spark.dataSource.register(TableSource)
        spark.conf.set(REGISTERED, NAME)
    return spark.read.format(NAME).option("address", msgspec.json.encode(pinned).decode()).load()


def opened(address: TableAddress) -> TableReader:
    """The table by its library; says which one is missing."""
    try:
        if address.format == ICEBERG:
            from godwit.pipeline.io.lake.iceberg import IcebergTable

            return IcebergTable(address)
        from godwit.pipeline.io.lake.delta import DeltaFolder

        return DeltaFolder(address)
    except ModuleNotFoundError as missing:
        raise PipelineError(f"{address.text}: needs {missing.name}, which comes with godwit[tables]") from None


_remembered = lru_cache(maxsize=8)(opened)
"""For addresses with a version, which is the same table for ever; a worker reads many of its files."""


def _plain(schema: pa.Schema) -> pa.Schema:
    """With the types that Spark has: no long texts beside texts, times in microseconds."""
    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


class TableSource(DataSource):
    """A table by its Python library; a task reads a file."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self.address = msgspec.json.decode(options["address"], type=TableAddress)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(_plain(_remembered(self.address).schema()))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _TableReader(self.address)


class _TableReader(DataSourceReader):
    def __init__(self, address: TableAddress) -> None:
        self.address = address

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in _remembered(self.address).parts()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's word for: there is nothing
            return
        table = _remembered(self.address)
        wanted = _plain(table.schema())
        for batch in table.read(partition.value):
            columns = [batch.column(field.name).cast(field.type) for field in wanted]
            yield pa.RecordBatch.from_arrays(columns, schema=wanted)

"""Files of SenML packs (RFC 8428) as frames: `.senml` and `.sensml` in JSON, `.senmlc` and `.sensmlc` in CBOR.

A file is a pack. Jobs that want events get one for each pack, with the attributes that a broker would see in it; jobs
that want readings get a row for each record. Times that a pack tells relative to now are counted from its file's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from godwit.pipeline.schemas import ARCHIVE_FILES, BOOL, DOUBLE, STRING, TIME
from godwit.protocols.broker import senml
from godwit.protocols.broker.senml import SenmlRecord

SUFFIXES = (".senml", ".sensml", ".senmlc", ".sensmlc")
BROKER = "senml"
"""Stands for the broker of events that none has taken."""

RECORDS = StructType(
    [
        *(StructField(name, STRING) for name in ("name", "base_name", "local_name", "unit", "text")),
        *(StructField(name, DOUBLE) for name in ("value", "sum", "update_s", "time_s")),
        *(StructField("flag", BOOL), StructField("data", BinaryType()), StructField("time", TIME)),
    ]
)
"""One measurement: the value is in `value`, `text`, `flag` or `data` by its type."""


def frame(
    spark: SparkSession, path: str, corrupt: str, *, as_events: bool, stream: bool = False, files_per_batch: int | None
) -> DataFrame:
    """Events or records; what is no pack has its reason in the column `corrupt`."""
    reader = spark.readStream if stream else spark.read
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    packs = (
        reader.format("binaryFile").option("pathGlobFilter", "*.{" + ",".join(s[1:] for s in SUFFIXES) + "}").load(path)
    )
    told = packs.select("path", "content", sf.unix_micros("modificationTime").alias("modified_us"))
    schema = StructType([*(ARCHIVE_FILES if as_events else RECORDS), StructField(corrupt, StringType())])
    shaped = StructType([StructField(field.name, field.dataType) for field in schema])
    return told.mapInArrow(_resolver(_event if as_events else _records, shaped, corrupt), shaped)


Rows = Callable[[bytes, list[SenmlRecord]], Iterator[dict[str, object]]]


def _resolver(
    rows_of: Rows, schema: StructType, corrupt: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def resolved(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kinds = to_arrow_schema(schema, timezone="UTC")
        for batch in batches:
            rows = [row for file in batch.to_pylist() for row in _rows(file, rows_of, corrupt)]
            yield pa.RecordBatch.from_pylist(rows, schema=kinds)

    return resolved


def _rows(file: dict[str, object], rows_of: Rows, corrupt: str) -> Iterator[dict[str, object]]:
    content, modified_us = file["content"], file["modified_us"]
    assert isinstance(content, bytes)
    assert isinstance(modified_us, int)
    is_cbor = str(file["path"]).endswith("c")
    try:
        records = senml.decoded(content, modified_us / 1e6, senml.CBOR_TYPES[0] if is_cbor else senml.JSON_TYPES[0])
    except senml.SenmlError as error:
        yield {corrupt: f"{file['path']}: {error}"}
        return
    yield from rows_of(content, records)


def _event(content: bytes, records: list[SenmlRecord]) -> Iterator[dict[str, object]]:
    """A pack as the event that it would be, had its device published it: named by device and time."""
    first, seen = records[0], dict(senml.seen(records))
    yield {
        "broker": BROKER,
        "publisher": first.base_name or first.name,
        "sequence": int(first.time_s * 1e6),
        "time": int(first.time_s * 1e6),
        "attributes": msgspec.json.encode(seen).decode(),
        "lat": seen.get("lat"),
        "lon": seen.get("lon"),
        "payload": content,
    }


def _records(content: bytes, records: list[SenmlRecord]) -> Iterator[dict[str, object]]:
    for record in records:
        value = record.value
        yield {
            "name": record.name,
            "base_name": record.base_name,
            "local_name": record.local_name,
            "unit": record.unit,
            "text": value if isinstance(value, str) else None,
            "value": value if isinstance(value, float) else None,
            "flag": value if isinstance(value, bool) else None,
            "data": value if isinstance(value, bytes) else None,
            "sum": record.sum,
            "update_s": record.update_s,
            "time_s": record.time_s,
            "time": int(record.time_s * 1e6),
        }

"""Datasets from Parquet, CSV and JSON lines, checked against their schema, with what cannot be used set aside.

    read(spark, "sites.csv", SITES, "sites")                       columns of these names
    read(spark, "cells.csv.gz", SITES, "sites", select="cell DIV 256 AS site, lat, lon")

A dataset without a required column, or with one of a type that does not fit, is refused at once; the error names file
and column. A record with a missing or unreadable value goes to quarantine with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import DatetimeType, NumericType, StringType, StructField, StructType

from godwit.pipeline import schemas
from godwit.pipeline.errors import PipelineError, SchemaError
from godwit.pipeline.io import foreign
from godwit.pipeline.io.source import frame
from godwit.pipeline.io.source_options import EVENTS, EVERYTHING, TRACES, Live, is_live
from godwit.pipeline.schemas import QUARANTINE, column, quoted, shaped

PARQUET, CSV, JSON, FOREIGN = "parquet", "csv", "json", "foreign"
SUFFIXES = {".parquet": PARQUET, ".csv": CSV, ".jsonl": JSON, ".ndjson": JSON, ".json": JSON}
SAMPLE_LINES = 1000
"""Lines of JSON that are looked at for the names of columns: in JSON lines no header says them."""

_CORRUPT, _FILE, _REASON = "_godwit_corrupt", "_godwit_file", "_godwit_reason"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows of the schema asked for, and the records that are not, as rows of `QUARANTINE`."""

    good: DataFrame
    bad: DataFrame


def read(
    spark: SparkSession,
    path: str,
    schema: StructType,
    name: str,
    select: str | None = None,
    *,
    needed: Collection[str] = (),
    live: Live = EVERYTHING,
) -> Dataset:
    """A dataset of these columns, or of what the SQL expressions of `select` make of the file's columns.

    Columns that are `needed` must be there although their values may be missing. Raises `SchemaError` naming file and
    column.
    """
    raw = source(spark, path, live=live, kind=TRACES if schema is schemas.TRACES else EVENTS)
    return conforming(raw, path, schema, name, select, needed=needed)


def conforming(
    raw: DataFrame, path: str, schema: StructType, name: str, select: str | None, *, needed: Collection[str] = ()
) -> Dataset:
    """The same of what `source` found at the path."""
    # With a select the columns are made, and Spark checks what they are made of.
    if select is None:
        _check_columns(path, raw, schema, needed)
    chosen = _selected(raw, path, schema, select, needed)
    return checked(chosen, schema, name)


def source(
    spark: SparkSession,
    path: str,
    *,
    stream: bool = False,
    files_per_batch: int | None = None,
    live: Live = EVERYTHING,
    kind: str = EVENTS,
) -> DataFrame:
    """The columns of a file or folder as they are, text where the format has no types, and each record's file.

    With `stream`, files that appear in the folder later are read too. A live source has columns by its `kind`.
    """
    if is_live(path):
        told = TRACES if kind == TRACES else EVENTS
        return frame(spark, path, live, kind=told, stream=stream).withColumn(_FILE, sf.lit(path))
    there = foreign.found(
        spark,
        path,
        _CORRUPT,
        kind=kind,
        stream=stream,
        files_per_batch=files_per_batch,
        rows_per_batch=live.events_per_batch,
    )
    if there is not None:
        return there.withColumn(_FILE, sf.lit(path))
    form = kind_of(path)
    reader = _limited(spark.readStream, files_per_batch) if stream else spark.read
    try:
        if form == PARQUET:
            _check_alike(path)
            found = reader.schema(spark.read.parquet(path).schema).parquet(path)
        else:
            names = _names(spark, path, form)
            texts = StructType([StructField(name, StringType()) for name in [*names, _CORRUPT]])
            lines = reader.schema(texts).option("columnNameOfCorruptRecord", _CORRUPT).option("header", True)
            found = lines.csv(path) if form == CSV else lines.json(path)
    except AnalysisException as error:
        raise PipelineError(f"{path}: {_first_line(error)}") from None
    return found.withColumn(_FILE, sf.col("_metadata.file_path"))


def _limited(reader: DataStreamReader, files_per_batch: int | None) -> DataStreamReader:
    return reader if files_per_batch is None else reader.option("maxFilesPerTrigger", files_per_batch)


def events(
    spark: SparkSession,
    path: str,
    *,
    stream: bool = False,
    files_per_batch: int | None = None,
    live: Live = EVERYTHING,
) -> DataFrame:
    """Events of any columns, as they are in the files; `legible` tells the good from the bad.

    Text formats are searched for the types of their columns, which takes a pass over them.
    """
    if is_live(path):
        return frame(spark, path, live, stream=stream).withColumn(_FILE, sf.lit(path))
    there = foreign.found(
        spark,
        path,
        _CORRUPT,
        stream=stream,
        files_per_batch=files_per_batch,
        rows_per_batch=live.events_per_batch,
    )
    if there is not None:
        return there.withColumn(_FILE, sf.lit(path))
    kind = kind_of(path)
    if kind == PARQUET:
        _check_alike(path)
    try:
        known = spark.read.format(kind).options(**_TEXT_OPTIONS).load(path).schema
        if kind != PARQUET:
            known = StructType(
                [*(field for field in known if field.name != _CORRUPT), StructField(_CORRUPT, StringType())]
            )
        reader = _limited(spark.readStream, files_per_batch) if stream else spark.read
        reader = reader.format(kind).schema(known).options(**_TEXT_OPTIONS)
        return reader.load(path).withColumn(_FILE, sf.col("_metadata.file_path"))
    except AnalysisException as error:
        raise PipelineError(f"{path}: {_first_line(error)}") from None


_TEXT_OPTIONS = {"header": "true", "inferSchema": "true", "columnNameOfCorruptRecord": _CORRUPT}


def legible(raw: DataFrame, select: str | None = None) -> Dataset:
    """What `events` read, or what the SQL expressions of `select` make of it, and the lines that could not be read."""
    corrupt = sf.col(_CORRUPT) if _CORRUPT in raw.columns else sf.lit(None).cast("string")
    bad = raw.where(corrupt.isNotNull()).select(
        sf.lit("events").alias("dataset"),
        sf.lit("the line cannot be read").alias("reason"),
        sf.col(_FILE).alias("file"),
        # Spark refuses to read nothing but the line that it could not read.
        sf.coalesce(corrupt, sf.to_json(sf.struct(*map(column, raw.columns)))).alias("record"),
    )
    good = raw.where(corrupt.isNull()).drop(_CORRUPT, _FILE)
    try:
        return Dataset(good if select is None else good.selectExpr(*_expressions(select)), shaped(bad, QUARANTINE))
    except AnalysisException as error:
        raise SchemaError(f"--select: {_first_line(error)}") from None


def kind_of(path: str) -> str:
    """The format of a file, or of the files in a folder, by the ends of their names."""
    if foreign.is_foreign(path):
        return FOREIGN
    for name in _data_files(path):
        bare = name.removesuffix(".gz")
        for suffix, kind in SUFFIXES.items():
            if bare.endswith(suffix):
                return kind
    raise PipelineError(f"{path}: no file there ends in {', '.join(SUFFIXES)} (text also with .gz)")


def _data_files(path: str) -> Iterator[str]:
    local = Path(path)
    if "://" in path or not local.is_dir():
        if "://" not in path and not local.exists() and not set(path) & set("*?[{"):
            raise PipelineError(f"{path}: there is no such file or folder")
        yield path.rstrip("/")
        return
    for found in sorted(local.rglob("*")):
        if found.is_file() and not any(part.startswith((".", "_")) for part in found.relative_to(local).parts):
            yield str(found)


def _check_alike(path: str) -> None:
    """Spark takes the columns of a folder from one of its files; one that differs would fail late or read as null."""
    first: tuple[str, pa.Schema] | None = None
    for name in _data_files(path):
        if "://" in name or not Path(name).is_file():
            return
        try:
            found = pq.read_schema(name)
        except (pa.ArrowException, OSError) as error:
            raise SchemaError(f"{name}: damaged or no Parquet file: {_first_line(error)}") from None
        first = first or (name, found)
        for field in first[1]:
            if field.name not in found.names:
                raise SchemaError(f"{name}: there is no column {field.name!r}, which {first[0]} has")
            if found.field(field.name).type != field.type:
                here = found.field(field.name).type
                raise SchemaError(f"{name}: column {field.name!r} is {here}; in {first[0]} it is {field.type}")


def _names(spark: SparkSession, path: str, kind: str) -> list[str]:
    if kind == CSV:
        return list(spark.read.option("header", True).csv(path).columns)
    lines = spark.read.text(path).limit(SAMPLE_LINES)
    keys = lines.select(sf.explode(sf.expr("json_object_keys(value)")).alias("key")).distinct()
    return sorted(row["key"] for row in keys.collect())


def _check_columns(path: str, frame: DataFrame, schema: StructType, needed: Collection[str]) -> None:
    there = {field.name: field.dataType for field in frame.schema if not field.name.startswith("_godwit_")}
    for field in schema:
        kind = there.get(field.name)
        if kind is None and (not field.nullable or field.name in needed):
            listed = ", ".join(map(repr, there)) or "none"
            raise SchemaError(f"{path}: there is no column {field.name!r}; the columns are {listed}")
        if kind is not None and not _fits(kind, field):
            raise SchemaError(
                f"{path}: column {field.name!r} is {kind.simpleString()}; it must be {field.dataType.simpleString()}"
            )


def _fits(kind: object, field: StructField) -> bool:
    if kind == field.dataType or isinstance(kind, StringType) or isinstance(field.dataType, StringType):
        return True
    if isinstance(kind, DatetimeType) and isinstance(field.dataType, DatetimeType):
        return True
    return isinstance(kind, NumericType) and isinstance(field.dataType, NumericType)


def _selected(raw: DataFrame, path: str, schema: StructType, select: str | None, needed: Collection[str]) -> DataFrame:
    kept = [name for name in (_CORRUPT, _FILE) if name in raw.columns]
    there = set(raw.columns)
    try:
        if select is not None:
            chosen = raw.selectExpr(*_expressions(select), *map(quoted, kept))
            _check_columns(f"{path}, as selected", chosen, schema, needed)
            return chosen
        return raw.select(*(column(field.name) for field in schema if field.name in there), *kept)
    except AnalysisException as error:
        raise SchemaError(f"{path}: in --select: {_first_line(error)}") from None


def _expressions(select: str) -> list[str]:
    """The parts between commas, except for commas in brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in select:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'`\"":
            quote = letter
        depth += 0 if quote else (letter == "(") - (letter == ")")
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def checked(frame: DataFrame, schema: StructType, name: str) -> Dataset:
    """Split rows into those of the schema, cast where they were text, and those that cannot be, with the reason."""
    there = set(frame.columns)
    own = [field for field in schema if field.name in there]
    reasons = [_reason(frame, field) for field in own]
    if _CORRUPT in there:
        reasons.insert(0, sf.when(sf.col(_CORRUPT).isNotNull(), sf.lit("the line cannot be read")))
    judged = frame.withColumn(_REASON, sf.coalesce(*reasons, sf.lit(None).cast("string")))
    good = judged.where(sf.col(_REASON).isNull()).select(*(_value(field, field.name in there) for field in schema))
    bad = judged.where(sf.col(_REASON).isNotNull()).select(
        sf.lit(name).alias("dataset"),
        sf.col(_REASON).alias("reason"),
        (sf.col(_FILE) if _FILE in there else sf.lit(None).cast("string")).alias("file"),
        _record(own, _CORRUPT in there).alias("record"),
    )
    return Dataset(good, shaped(bad, QUARANTINE))


def _reason(frame: DataFrame, field: StructField) -> Column:
    value = column(field.name)
    none = sf.lit(None).cast("string")
    reason = none
    if not field.nullable:
        reason = sf.when(value.isNull(), sf.lit(f"column {field.name!r} has no value"))
    if frame.schema[field.name].dataType != field.dataType:
        wanted = field.dataType.simpleString()
        unreadable = value.isNotNull() & value.try_cast(field.dataType).isNull()
        text = sf.concat(sf.lit(f"column {field.name!r}: "), value.cast("string"), sf.lit(f" is no {wanted}"))
        reason = sf.coalesce(reason, sf.when(unreadable, text))
    return reason


def _value(field: StructField, is_there: bool) -> Column:
    if not is_there:
        return sf.lit(None).cast(field.dataType).alias(field.name)
    return column(field.name).try_cast(field.dataType).alias(field.name)


def _record(own: list[StructField], with_corrupt: bool) -> Column:
    row = sf.to_json(sf.struct(*(column(field.name) for field in own)))
    return sf.coalesce(sf.col(_CORRUPT), row) if with_corrupt else row


def quarantined(frame: DataFrame, rules: dict[str, Column], name: str) -> Dataset:
    """Split by rules: a row goes to quarantine under the name of the first that holds for it."""
    reasons = [sf.when(refused, sf.lit(rule)) for rule, refused in rules.items()]
    judged = frame.withColumn(_REASON, sf.coalesce(*reasons))
    bad = judged.where(sf.col(_REASON).isNotNull()).select(
        sf.lit(name).alias("dataset"),
        sf.col(_REASON).alias("reason"),
        sf.lit(None).cast("string").alias("file"),
        sf.to_json(sf.struct(*(column(one) for one in frame.columns))).alias("record"),
    )
    return Dataset(judged.where(sf.col(_REASON).isNull()).drop(_REASON), bad)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

"""Datasets from Parquet, CSV and JSON lines, checked against their schema, with what cannot be used set aside.

    read(spark, "sites.csv", SITES, "sites")                       columns of these names
    read(spark, "cells.csv.gz", SITES, "sites", select="cell DIV 256 AS site, lat, lon")

A dataset without a required column, or with one of a type that does not fit, is refused at once; the error names file
and column. A record with a missing or unreadable value goes to quarantine with the reason, and so does a whole file
that cannot be read or united with the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    DataType,
    DatetimeType,
    DoubleType,
    FloatType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from godwit.pipeline import schemas
from godwit.pipeline.errors import PipelineError, SchemaError
from godwit.pipeline.io import foreign, lines
from godwit.pipeline.io.counting import Counted
from godwit.pipeline.io.footers import Apart, Group, United, united
from godwit.pipeline.io.listing import CSV, JSON, PARQUET, data_files, kind_of, of_kind, table_format
from godwit.pipeline.io.source import frame
from godwit.pipeline.io.source_options import EVENTS, EVERYTHING, TRACES, Live, is_live
from godwit.pipeline.schemas import QUARANTINE, column, quoted, shaped

CORRUPT, FILE, REASON, SPARED = "_godwit_corrupt", "_godwit_file", "_godwit_reason", "_godwit_spared"
TIME_S, TIME = "time_s", "time"
"""Times are seconds since 1970 by the first name. A column of the second is taken for it where there is no other, and
one of either may be a timestamp, or text that is one."""


class UnreadableError(SchemaError):
    """Of some files none can be read; `apart` has the reason for each."""

    def __init__(self, told: str, apart: tuple[Apart, ...]) -> None:
        super().__init__(told)
        self.apart = apart


@dataclass(frozen=True, slots=True)
class Raw:
    """What is at a path: its columns as they are, and the files that are not read."""

    frame: DataFrame
    apart: tuple[Apart, ...] = ()
    schema: StructType | None = None
    """Of the files, for a stream to hold later files to."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows of the schema asked for, and the records that are not, as rows of `QUARANTINE`.

    `counted` knows how many there are once the good rows have been gone through, without another pass.
    """

    good: DataFrame
    bad: DataFrame
    counted: Counted = field(default_factory=Counted)

    def set_aside(self) -> DataFrame:
        """The bad ones, after the good ones have been written: nothing is read again where there are none."""
        return self.bad if self.counted.quarantined() else self.bad.sparkSession.createDataFrame([], QUARANTINE)


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
    optional = [field.name for field in schema if field.nullable and field.name not in needed]
    raw = source(spark, path, live=live, kind=TRACES if schema is schemas.TRACES else EVENTS, names=optional)
    return conforming(raw, path, schema, name, select, needed=needed)


def conforming(
    raw: Raw,
    path: str,
    schema: StructType,
    name: str,
    select: str | None,
    *,
    needed: Collection[str] = (),
    spared: Collection[str] = (),
) -> Dataset:
    """The same of what `source` found at the path.

    A bad value in a column that is `spared` is told of in quarantine, and the row stays without it.
    """
    # With a select the columns are made, and Spark checks what they are made of.
    if select is None:
        _check_columns(path, raw.frame, schema, needed)
    chosen = _selected(raw.frame, path, schema, select, needed)
    return checked(chosen, schema, name, raw.apart, spared)


def source(
    spark: SparkSession,
    path: str,
    *,
    live: Live = EVERYTHING,
    kind: str = EVENTS,
    names: Collection[str] = (),
) -> Raw:
    """The columns of a file or folder as they are, text where the format has no types, and each record's file.

    A live source has columns by its `kind`. JSON lines have the columns of these `names` in any case, since no header
    says that a line later on may have them.
    """
    if is_live(path):
        told = TRACES if kind == TRACES else EVENTS
        return Raw(frame(spark, path, live, kind=told).withColumn(FILE, sf.lit(path)))
    there = foreign.found(spark, path, CORRUPT, kind=kind)
    if there is not None:
        return Raw(there.withColumn(FILE, sf.lit(path)))
    return of_files(spark, path, found_at(spark, path), names, is_all=True)


def found_at(spark: SparkSession, path: str) -> list[str]:
    """The files at a path. A table with a log is refused by name: its files are not its rows."""
    if found := table_format(spark, path):
        form, folder = found
        raise PipelineError(
            f"{path}: {folder} is a table of {form}, of which plain Parquet files would give rows that were deleted or"
            f" replaced; read it through {form}'s own reader, or write out the rows that are wanted"
        )
    return data_files(spark, path)


def of_files(
    spark: SparkSession,
    path: str,
    files: Sequence[str],
    names: Collection[str] = (),
    *,
    settled: StructType | None = None,
    is_all: bool = False,
) -> Raw:
    """What is in these files, found at the path, and `is_all` that is there. With `settled`, they must fit what was
    read before."""
    form = kind_of(path, files)
    own, apart = _of_one_kind(files, form)
    try:
        if form == PARQUET:
            found = united(spark, own, settled)
            return _parquet(spark, path, found, (*apart, *found.apart), is_whole=is_all and not apart)
        if form == CSV:
            return _texts(lines.csv(spark, own, CORRUPT, FILE), apart, settled)
        return _texts(lines.json(spark, own, names, CORRUPT, FILE), apart, settled)
    except AnalysisException as error:
        raise PipelineError(f"{path}: {first_line(error)}") from None


def _texts(found: DataFrame, apart: tuple[Apart, ...], settled: StructType | None) -> Raw:
    """With the columns too that earlier files had."""
    missing = [name for name in (settled.names if settled else ()) if name not in found.columns]
    whole = found.select("*", *(sf.lit(None).cast("string").alias(name) for name in missing))
    names = [name for name in whole.columns if name not in (CORRUPT, FILE)]
    return Raw(whole, apart, StructType([StructField(name, StringType()) for name in names]))


def _of_one_kind(files: Sequence[str], form: str) -> tuple[list[str], tuple[Apart, ...]]:
    own = of_kind(files, form)
    others = sorted(set(files) - set(own))
    return own, tuple(
        Apart(name, f"its name does not end as that of a {form} file, as the others do") for name in others
    )


def _parquet(spark: SparkSession, path: str, found: United, apart: tuple[Apart, ...], *, is_whole: bool) -> Raw:
    if not found.groups:
        told = "; ".join(f"{one.name}: {one.reason}" for one in apart[:3])
        raise UnreadableError(f"{path}: no file there can be read: {told}", apart)
    is_whole = is_whole and len(found.groups) == 1 and not apart
    parts = [_of_group(spark, path, group, found.schema, is_whole) for group in found.groups]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    return Raw(whole, apart, found.schema)


def _of_group(spark: SparkSession, path: str, group: Group, schema: StructType, is_whole: bool) -> DataFrame:
    reader, folder = spark.read.schema(group.schema), path.rstrip("/")
    if is_whole:
        found = reader.parquet(path)
    else:
        # The columns that folders add are those between the path and the file.
        is_inside = all(name.partition(folder)[2].startswith("/") for name in group.names)
        reader = reader.option("basePath", folder) if is_inside else reader
        found = reader.parquet(*group.names)
    own = {one.name: one.dataType for one in group.schema}
    united = [_widened(one, own) for one in schema if one.name in own or one.name not in found.columns]
    of_folders = [column(name) for name in found.columns if name not in own]
    return found.select(*united, *of_folders, sf.col("_metadata.file_path").alias(FILE))


def _widened(wanted: StructField, own: Mapping[str, DataType]) -> Column:
    if wanted.name not in own:
        return sf.lit(None).cast(wanted.dataType).alias(wanted.name)
    value = column(wanted.name)
    return value if own[wanted.name] == wanted.dataType else value.cast(wanted.dataType).alias(wanted.name)


def events(spark: SparkSession, path: str, *, live: Live = EVERYTHING, as_columns: bool = False) -> Raw:
    """Events of any columns, as they are in the files; `legible` tells the good from the bad."""
    if is_live(path):
        return Raw(frame(spark, path, live).withColumn(FILE, sf.lit(path)))
    there = foreign.found(spark, path, CORRUPT)
    if there is not None:
        return Raw(there.withColumn(FILE, sf.lit(path)))
    return events_of_files(spark, path, found_at(spark, path), as_columns=as_columns, is_all=True)


def events_of_files(
    spark: SparkSession,
    path: str,
    files: Sequence[str],
    *,
    as_columns: bool = False,
    settled: StructType | None = None,
    is_all: bool = False,
) -> Raw:
    """Events in these files. Values of JSON lines keep the type that each has by itself; `as_columns`, they have a
    column for each name too, for expressions to use."""
    if kind_of(path, files) != JSON:
        return of_files(spark, path, files, settled=settled, is_all=is_all)
    own, apart = _of_one_kind(files, JSON)
    return Raw(lines.objects(spark, own, FILE, as_columns=as_columns), apart)


def legible(raw: Raw, select: str | None = None, where: str | None = None, typed: StructType | None = None) -> Dataset:
    """What `events` read, or what the SQL expressions of `select` make of it, and the lines that could not be read."""
    found = raw.frame
    corrupt = (
        sf.when(sf.col(CORRUPT).isNotNull(), sf.lit("the line cannot be read")) if CORRUPT in found.columns else None
    )
    given = [one for one in typed or () if one.name in found.columns and not lines.is_objects(found)]
    _check_typed(found, typed)
    reasons = [one for one in (corrupt, *(_reason(found, field) for field in given)) if one is not None]
    kept = [name for name in found.columns if name not in (CORRUPT, FILE)]
    counted, own = Counted(len(raw.apart)), {one.name: one for one in given}
    if reasons:
        judged = found.withColumn(REASON, sf.coalesce(*reasons))
        # Spark refuses to read nothing but the line that it could not read.
        record = sf.to_json(sf.struct(*map(column, kept)))
        record = sf.coalesce(sf.col(CORRUPT), record) if CORRUPT in found.columns else record
        bad = _quarantine(judged, "events", sf.col(FILE), record)
        good = counted.observed(judged, sf.col(REASON).isNotNull()).where(sf.col(REASON).isNull())
    else:
        bad, good = found.sparkSession.createDataFrame([], QUARANTINE), found
        counted.counts_nothing()
    good = good.select(*(_value(own[name], good) if name in own else column(name) for name in kept))
    try:
        asked = good if where is None else good.where(where)
        chosen = asked if select is None else lines.reselected(asked, expressions(select))
    except AnalysisException as error:
        raise SchemaError(f"--select or --where: {first_line(error)}{lines.advice(error)}") from None
    return Dataset(chosen, bad.unionByName(files_apart(found.sparkSession, "events", raw.apart)), counted)


def _check_typed(found: DataFrame, typed: StructType | None) -> None:
    for one in typed or ():
        if one.name not in found.columns and not lines.is_objects(found):
            listed = ", ".join(repr(name) for name in found.columns if not name.startswith("_godwit_"))
            raise SchemaError(f"--schema: there is no column {one.name!r}; the columns are {listed}")


def files_apart(spark: SparkSession, dataset: str, apart: Sequence[Apart]) -> DataFrame:
    return spark.createDataFrame([(dataset, one.reason, one.name, None) for one in apart], QUARANTINE)


def _check_columns(path: str, found: DataFrame, schema: StructType, needed: Collection[str]) -> None:
    there = {field.name: field.dataType for field in found.schema if not field.name.startswith("_godwit_")}
    for one in schema:
        kind = there.get(one.name, there.get(TIME) if one.name == TIME_S else None)
        if kind is None and (not one.nullable or one.name in needed):
            listed = ", ".join(map(repr, there)) or "none"
            raise SchemaError(f"{path}: there is no column {one.name!r}; the columns are {listed}")
        if kind is not None and not _fits(kind, one):
            raise SchemaError(
                f"{path}: column {one.name!r} is {kind.simpleString()}; it must be {one.dataType.simpleString()}"
            )


def _fits(kind: object, wanted: StructField) -> bool:
    if kind == wanted.dataType or isinstance(kind, StringType) or isinstance(wanted.dataType, StringType):
        return True
    if isinstance(kind, DatetimeType) and (isinstance(wanted.dataType, DatetimeType) or wanted.name == TIME_S):
        return True
    return isinstance(kind, NumericType) and isinstance(wanted.dataType, NumericType)


def _selected(
    found: DataFrame, path: str, schema: StructType, select: str | None, needed: Collection[str]
) -> DataFrame:
    kept = [name for name in (CORRUPT, FILE) if name in found.columns]
    try:
        chosen = found
        if select is not None:
            chosen = found.selectExpr(*expressions(select), *map(quoted, kept))
            _check_columns(f"{path}, as selected", chosen, schema, needed)
        if TIME_S in schema.names and TIME_S not in chosen.columns and TIME in chosen.columns:
            chosen = chosen.withColumnRenamed(TIME, TIME_S)
        there = set(chosen.columns)
        return chosen.select(*(column(one.name) for one in schema if one.name in there), *kept)
    except AnalysisException as error:
        raise SchemaError(f"{path}: in --select: {first_line(error)}") from None


def expressions(select: str) -> list[str]:
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


def checked(
    found: DataFrame, schema: StructType, name: str, apart: Sequence[Apart] = (), spared: Collection[str] = ()
) -> Dataset:
    """Split rows into those of the schema, cast where they were text, and those that cannot be, with the reason."""
    there = set(found.columns)
    own = [field for field in schema if field.name in there]
    nothing = sf.lit(None).cast("string")
    reasons = [_reason(found, field) for field in own if field.name not in spared]
    of_spared = {field.name: _reason(found, field) for field in own if field.name in spared}
    if CORRUPT in there:
        reasons.insert(0, sf.when(sf.col(CORRUPT).isNotNull(), sf.lit("the line cannot be read")))
    judged = found.withColumn(REASON, sf.coalesce(*reasons, nothing))
    judged = judged.withColumn(SPARED, sf.coalesce(*of_spared.values(), nothing))
    values = [_value(one, found) for one in schema]
    values = [
        sf.when(of_spared[one.name].isNull(), value).alias(one.name) if one.name in of_spared else value
        for one, value in zip(schema, values, strict=True)
    ]
    counted = Counted(len(apart))
    good = counted.observed(
        judged.select(*values, REASON, SPARED),
        sf.col(REASON).isNotNull(),
        {one.name: column(one.name) for one in own},
        sf.col(SPARED).isNotNull() if of_spared else None,
    )
    file = sf.col(FILE) if FILE in there else sf.lit(None).cast("string")
    whole = judged.withColumn(REASON, sf.coalesce(REASON, SPARED))
    bad = _quarantine(whole, name, file, _record(own, CORRUPT in there))
    bad = bad.unionByName(files_apart(found.sparkSession, name, apart)) if apart else bad
    return Dataset(good.where(sf.col(REASON).isNull()).drop(REASON, SPARED), bad, counted)


def _quarantine(judged: DataFrame, name: str, file: Column, record: Column) -> DataFrame:
    bad = judged.where(sf.col(REASON).isNotNull()).select(
        sf.lit(name).alias("dataset"), sf.col(REASON).alias("reason"), file.alias("file"), record.alias("record")
    )
    return shaped(bad, QUARANTINE)


def _reason(found: DataFrame, wanted: StructField) -> Column:
    """Why the value of a row cannot be used, or null."""
    value, cast = column(wanted.name), _value(wanted, found)
    reasons = [sf.lit(None).cast("string")]
    if not wanted.nullable:
        reasons.append(sf.when(value.isNull(), sf.lit(f"column {wanted.name!r} has no value")))
    told = [sf.lit(f"column {wanted.name!r}: "), value.cast("string")]
    if found.schema[wanted.name].dataType != wanted.dataType:
        text = sf.concat(*told, sf.lit(f" is no {wanted.dataType.simpleString()}"))
        reasons.append(sf.when(value.isNotNull() & cast.isNull(), text))
    if isinstance(wanted.dataType, DoubleType | FloatType):
        is_finite = sf.abs(cast) < sf.lit(float("inf"))
        reasons.append(sf.when(cast.isNotNull() & ~is_finite, sf.concat(*told, sf.lit(" is no finite number"))))
    return sf.coalesce(*reasons[1:], reasons[0])


def _value(wanted: StructField, found: DataFrame) -> Column:
    if wanted.name not in found.columns:
        return sf.lit(None).cast(wanted.dataType).alias(wanted.name)
    value, kind = column(wanted.name), found.schema[wanted.name].dataType
    if wanted.name != TIME_S or isinstance(kind, NumericType):
        return value.try_cast(wanted.dataType).alias(wanted.name)
    seconds = sf.unix_micros(value.try_cast(TimestampType())) / sf.lit(1e6)
    if isinstance(kind, StringType):
        seconds = sf.coalesce(value.try_cast(DoubleType()), seconds)
    return seconds.alias(wanted.name)


def _record(own: list[StructField], with_corrupt: bool) -> Column:
    row = sf.to_json(sf.struct(*(column(field.name) for field in own)))
    return sf.coalesce(sf.col(CORRUPT), row) if with_corrupt else row


def quarantined(found: DataFrame, rules: dict[str, Column], name: str) -> Dataset:
    """Split by rules: a row goes to quarantine under the name of the first that holds for it."""
    reasons = [sf.when(refused, sf.lit(rule)) for rule, refused in rules.items()]
    judged = found.withColumn(REASON, sf.coalesce(*reasons))
    counted = Counted()
    good = counted.observed(judged, sf.col(REASON).isNotNull()).where(sf.col(REASON).isNull()).drop(REASON)
    record = sf.to_json(sf.struct(*(column(one) for one in found.columns)))
    return Dataset(good, _quarantine(judged, name, sf.lit(None).cast("string"), record), counted)


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

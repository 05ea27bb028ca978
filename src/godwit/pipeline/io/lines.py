"""Lines of text as datasets: CSV by its headers, and JSON lines by the names in them.

Neither says types. CSV is text; a value in JSON has the type that it shows, so events of JSON lines stay whole objects,
and one text among numbers changes nothing for the numbers.
"""

from __future__ import annotations

import csv as csv_files
import gzip
from collections.abc import Collection, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType, VariantType

from godwit.pipeline.schemas import column

OBJECT = "_godwit_object"
"""The column with the JSON object of an event, where the events are JSON lines."""

SAMPLE_LINES = 1000
"""Lines of JSON that are looked at for the names of columns: in JSON lines no header says them."""


def csv(spark: SparkSession, files: Sequence[str], corrupt: str, file: str) -> DataFrame:
    """All columns of all files as text; what a file has no column for is missing in its rows."""
    groups = dict[tuple[str, ...], list[str]]()
    for name in files:
        groups.setdefault(_header(spark, name), []).append(name)
    parts = [_csv_of_one_header(spark, names, corrupt, file) for names in groups.values()]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    return whole


def _header(spark: SparkSession, name: str) -> tuple[str, ...]:
    if "://" in name:
        return tuple(spark.read.option("header", True).csv(name).columns)
    with gzip.open(name, "rt") if name.endswith(".gz") else Path(name).open() as opened:
        return tuple(next(csv_files.reader(opened), ()))


def _csv_of_one_header(spark: SparkSession, files: list[str], corrupt: str, file: str) -> DataFrame:
    names = spark.read.option("header", True).csv(files[0]).columns
    reader = spark.read.schema(_texts([*names, corrupt])).option("columnNameOfCorruptRecord", corrupt)
    return _with_file(reader.option("header", True).csv(files), file)


def json(spark: SparkSession, files: Sequence[str], names: Collection[str], corrupt: str, file: str) -> DataFrame:
    """A column of text for each name that the first lines have, and for these names."""
    known = sorted({*_names(spark, files), *names})
    reader = spark.read.schema(_texts([*known, corrupt])).option("columnNameOfCorruptRecord", corrupt)
    return _with_file(reader.json(list(files)), file)


def _texts(names: Sequence[str]) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


def _with_file(found: DataFrame, file: str) -> DataFrame:
    return found.withColumn(file, sf.col("_metadata.file_path"))


def _names(spark: SparkSession, files: Sequence[str]) -> list[str]:
    lines = spark.read.text(list(files)).limit(SAMPLE_LINES)
    keys = lines.select(sf.explode(sf.expr("json_object_keys(value)")).alias("key")).distinct()
    return sorted(row["key"] for row in keys.collect())


def objects(spark: SparkSession, files: Sequence[str], file: str, *, as_columns: bool = False) -> DataFrame:
    """Each line as it is, in the column `OBJECT`; `as_columns`, also a column of any type for each name."""
    found = _with_file(spark.read.text(list(files)).withColumnRenamed("value", OBJECT), file)
    if not as_columns:
        return found
    parsed = sf.try_parse_json(sf.col(OBJECT))
    named = [sf.try_variant_get(parsed, _path(name), "variant").alias(name) for name in _names(spark, files)]
    return found.select("*", *named)


def is_objects(found: DataFrame) -> bool:
    return OBJECT in found.columns


def value_of(found: DataFrame, name: str) -> Column:
    """The value of a name as text, where the events are JSON lines."""
    return sf.get_json_object(sf.col(OBJECT), _path(name)).alias(name)


def _path(name: str) -> str:
    return "$['" + name.replace("\\", "\\\\").replace("'", "\\'") + "']"


def reselected(found: DataFrame, expressions: Sequence[str]) -> DataFrame:
    """What the expressions make; of JSON lines, the object has these values from then on."""
    if not is_objects(found):
        return found.selectExpr(*expressions)
    made = found.drop(OBJECT).selectExpr(*expressions)
    values = sf.to_json(sf.struct(*map(column, made.columns))).alias(OBJECT)
    plain = [_plain(made, name) for name in made.columns]
    return made.select(*plain, values)


def _plain(made: DataFrame, name: str) -> Column:
    kind = made.schema[name].dataType
    return (column(name).cast("string") if isinstance(kind, VariantType) else column(name)).alias(name)


def advice(error: Exception) -> str:
    """What would be right where an expression compares a value of JSON that may be of any type."""
    if "VARIANT" not in str(error).upper():
        return ""
    return "; values of JSON lines have any type: say which is meant, as in speed::double > 50"

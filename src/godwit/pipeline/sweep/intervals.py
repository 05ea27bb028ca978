"""What the runs of an experiment agree on: a mean for each cell and measure, and how far to trust it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from godwit.pipeline.schemas import DOUBLE, INTERVALS, column, shaped


def intervals(runs: DataFrame, cell: Sequence[str], measures: Sequence[str], confidence: float = 0.95) -> DataFrame:
    """Of each cell, the runs that agree in these columns, and each measure: mean and Student's interval around it.

    Runs without a value, null or not a number, do not count; of a single one there is a mean and no interval.
    """
    values = [column(measure).cast("double").alias(measure) for measure in measures]
    long = runs.select(*map(column, cell), *values).unpivot(
        [column(name) for name in cell], [column(measure) for measure in measures], "measure", "value"
    )
    grouped = (
        long.where(sf.col("value").isNotNull() & ~sf.isnan("value"))
        .groupBy(*map(column, cell), "measure")
        .agg(sf.count("value").alias("runs"), sf.avg("value").alias("mean"), sf.stddev_samp("value").alias("spread"))
    )
    # A function with type hints would be taken for one on whole columns.
    quantile = sf.udf(lambda freedom: _student(freedom, confidence), DOUBLE)(sf.col("runs") - 1)
    half = quantile * sf.col("spread") / sf.sqrt("runs")
    with_half = grouped.withColumn("half", half)
    with_ends = with_half.withColumns({"low": sf.col("mean") - sf.col("half"), "high": sf.col("mean") + sf.col("half")})
    return shaped(with_ends, StructType([*(runs.schema[name] for name in cell), *INTERVALS]))


def summary(spark: SparkSession, runs: pa.Table, cell: Sequence[str], beside: Collection[str] = ()) -> pa.Table:
    """The intervals of every column of numbers that is neither of the cell nor `beside` it, cell by cell."""
    measures = [
        field.name
        for field in runs.schema
        if field.name not in {*cell, *beside} and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
    ]
    frame = spark.createDataFrame(runs.select([*cell, *measures]))
    return intervals(frame, cell, measures).toArrow()


def _student(freedom: int, confidence: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))

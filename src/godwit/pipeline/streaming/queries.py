"""What streams of jobs share: checkpoints, tables to which each micro-batch adds once, and how they end.

A table of a stream has a folder for each micro-batch, `batch=N`. A micro-batch that Spark repeats after a crash has the
same input, and replaces what its first try left; so each row is there once, for any reader of Parquet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import blake2b

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from godwit.pipeline.errors import PipelineError, reason
from godwit.pipeline.io.files import Files
from godwit.pipeline.match.subscriptions import Compiled
from godwit.pipeline.schemas import shaped

POLL_S = 1.0
START_POLL_S = 0.05
START_S, TOOK_TOO_LONG = 300.0, "Python worker failed to connect back"
BATCH = "batch"

Each = Callable[[DataFrame, int], None]
"""Is given each micro-batch and its number."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    follow: bool = False
    """Wait for more until interrupted; else take what is there now, in micro-batches, and end."""
    every: str = "0 seconds"
    """How often a micro-batch begins; one that takes longer is followed by the next at once."""


def started(frame: DataFrame, checkpoint: str, name: str, each: Each, pace: Pace) -> StreamingQuery:
    """Returns when the stream has done its first micro-batch, waits for one, or has failed.

    Spark gives each Python process of a stream ten seconds to start. On a busy machine several at once would take
    longer, so they start one after another, and one that took too long is tried again, for minutes if need be: it has
    done nothing yet.
    """
    writer = frame.writeStream.foreachBatch(each).outputMode("append").queryName(f"godwit {name}")
    writer = writer.option("checkpointLocation", checkpoint)
    writer = writer.trigger(processingTime=pace.every) if pace.follow else writer.trigger(availableNow=True)
    until_s = time.monotonic() + START_S
    while True:
        query = _settled(writer.start())
        if query.isActive or TOOK_TOO_LONG not in str(query.exception()) or time.monotonic() > until_s:
            return query


def _settled(query: StreamingQuery) -> StreamingQuery:
    while query.isActive and query.lastProgress is None and not query.status["message"].startswith("Waiting"):
        time.sleep(START_POLL_S)
    return query


def write_batch(frame: DataFrame, table: str, number: int, schema: StructType) -> int:
    """What one micro-batch found, and how many rows these are."""
    seen = Observation()
    counted = shaped(frame, schema).observe(seen, sf.count("*").alias("rows"))
    counted.write.mode("overwrite").parquet(f"{table}/{BATCH}={number}")
    return int(seen.get.get("rows", 0))


def quarantine_once(spark: SparkSession, compiled: Compiled, table: str) -> None:
    """Filters that are none, however often the stream is started with them."""
    if compiled.bad:
        digest = blake2b(msgspec.msgpack.encode(compiled.bad), digest_size=8).hexdigest()
        compiled.quarantine(spark).write.mode("overwrite").parquet(f"{table}/{BATCH}=filters-{digest}")


def written(spark: SparkSession, table: str, schema: StructType) -> DataFrame:
    """All that micro-batches have written to a table so far."""
    if not Files(spark).exists(table):
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(table).select(*schema.names)


def finished(*queries: StreamingQuery, meanwhile: Callable[[], None] | None = None) -> None:
    """Wait until all have ended, or until interrupted; where one fails the others are stopped.

    `meanwhile` is called now and then. Raises `PipelineError` with the reason of a failure.
    """
    try:
        while any(query.isActive for query in queries):
            for query in queries:
                query.awaitTermination(POLL_S)  # type: ignore[arg-type]
            if meanwhile is not None:
                meanwhile()
        for query in queries:
            query.awaitTermination()
    except KeyboardInterrupt:
        pass
    except StreamingQueryException as error:
        raise PipelineError(ending(str(error))) from error
    finally:
        for query in queries:
            query.stop()


def ending(told: str) -> str:
    """Why a stream has ended."""
    if TOOK_TOO_LONG in told:
        return f"{TOOK_TOO_LONG}: for {START_S:g} s this machine was too busy to start one in Spark's ten seconds"
    return reason(told)

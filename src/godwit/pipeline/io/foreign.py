"""Sources that are neither plain files of columns nor a live broker: tables of other formats, SenML, Kafka.

One question for readers of all jobs: is this address one of these, and what is there?
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io import senml_files
from godwit.pipeline.io.kafka.address import is_kafka
from godwit.pipeline.io.kafka.events import events as kafka_events
from godwit.pipeline.io.lake import address as lake
from godwit.pipeline.io.lake import source as tables
from godwit.pipeline.io.source_options import EVENTS


def is_foreign(path: str) -> bool:
    return is_kafka(path) or _table(path) is not None or _is_senml(path)


def found(
    spark: SparkSession,
    path: str,
    corrupt: str,
    *,
    kind: str = EVENTS,
    stream: bool = False,
    files_per_batch: int | None = None,
    rows_per_batch: int | None = None,
) -> DataFrame | None:
    """The columns there, as they are; None where plain files or a broker should be looked for.

    Of SenML, the kind `events` has an event for each pack, and any other a row for each record. What cannot be read has
    the reason in the column named `corrupt`.
    """
    if is_kafka(path):
        return kafka_events(spark, path, stream=stream, rows_per_batch=rows_per_batch)
    if (address := _table(path)) is not None:
        if stream:
            raise PipelineError(f"{path}: tables are read as they are now; --stream follows folders, brokers and Kafka")
        return tables.frame(spark, address)
    if _is_senml(path):
        return senml_files.frame(
            spark, path, corrupt, as_events=kind == EVENTS, stream=stream, files_per_batch=files_per_batch
        )
    return None


def _table(path: str) -> lake.TableAddress | None:
    """The table that is named, or whose folder is; a part of a table's data is refused."""
    address = lake.parsed(path) or lake.found_at(path)
    if address is None and (owner := lake.inside_of(path)) is not None:
        raise PipelineError(
            f"{path}: belongs to the table {owner.text}; its files alone would show rows that were deleted or replaced:"
            " name the table"
        )
    return address


def _is_senml(path: str) -> bool:
    if path.endswith(senml_files.SUFFIXES):
        return True
    folder = Path(path)
    return folder.is_dir() and any(child.suffix in senml_files.SUFFIXES for child in folder.iterdir())

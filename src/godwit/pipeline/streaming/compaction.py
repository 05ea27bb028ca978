"""Small files of micro-batches joined to large ones: the same rows, under the number of the newest of them.

Only micro-batches are joined that Spark has committed, and that every target has which the folder was published to:
none of them is ever written or read by its number again. What is about to be done is noted first, so that a compaction
that was killed is finished by whoever comes next.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import msgspec
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as sf

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io import marks
from godwit.pipeline.io.files import Files, within
from godwit.pipeline.io.lake.publication import PUBLISHED
from godwit.pipeline.io.locks import Lock
from godwit.pipeline.io.marks import CHECKPOINT, STREAM
from godwit.pipeline.progress import Progress, Summary, watched
from godwit.pipeline.streaming.queries import BATCH

JOURNAL, NEW, OLD = "_compaction.json", "_compact", "_compacted"
FILE_BYTES = 128 << 20


class Swap(msgspec.Struct, frozen=True):
    """In a folder: what takes the place of these micro-batches, as a folder that is finished."""

    folder: str
    made: str
    numbers: list[int]


def compact(spark: SparkSession, out: str, progress: Progress | None = None) -> Summary:
    """Join what can be joined in the tables of a stream that is not running. Raises `PipelineError`."""
    files = Files(spark)
    with watched(spark, "compact", progress) as summary:
        lock = Lock(files, out.rstrip("/"), "compact")
        try:
            _check(files, out)
            recover(files, out)
            newest = _newest(files, out)
            for folder, numbers in _folders(files, out):
                own = [number for number in numbers if number <= newest]
                if len(own) > 1:
                    table = folder.removeprefix(out.rstrip("/") + "/").partition("/")[0]
                    rows = _joined(spark, files, out, folder, own)
                    summary.rows_in += rows
                    summary.rows_out[table] = summary.rows_out.get(table, 0) + rows
            summary.notes.append(f"micro-batches up to {newest}")
        finally:
            lock.release()
    return summary


def recover(files: Files, out: str) -> None:
    """Finish what a compaction that was killed has begun."""
    told = files.read(within(out, JOURNAL))
    if told is not None:
        _swap(files, msgspec.json.decode(told, type=Swap))
        files.delete(within(out, JOURNAL))


def _check(files: Files, out: str) -> None:
    mark = marks.read(files, out)
    if mark is None or mark.mode != STREAM:
        raise PipelineError(f"{out}: has no tables of a stream; a batch writes large files by itself")


def _newest(files: Files, out: str) -> int:
    """The newest micro-batch that nobody will ask for by its number."""
    commits = [int(name) for name in files.names(within(out, f"{CHECKPOINT}/commits")) if name.isdecimal()]
    told = files.read(within(out, PUBLISHED))
    published = msgspec.json.decode(told, type=dict[str, int]) if told is not None else {}
    return min([max(commits, default=-1), *published.values()])


def _folders(files: Files, out: str) -> Iterator[tuple[str, list[int]]]:
    """Folders with micro-batches in them, and their numbers: a table's own, or those of its days."""
    for table in (name for name in files.names(out) if name[0] not in "._"):
        children = files.names(within(out, table))
        for folder in (within(out, table), *(within(within(out, table), name) for name in children)):
            numbers = [
                int(name.partition("=")[2])
                for name in files.names(folder)
                if name.startswith(f"{BATCH}=") and name.partition("=")[2].isdecimal()
            ]
            if numbers:
                yield folder, sorted(numbers)


def _joined(spark: SparkSession, files: Files, out: str, folder: str, numbers: list[int]) -> int:
    places, made = [f"{folder}/{BATCH}={number}" for number in numbers], f"{NEW}-{uuid.uuid4().hex[:12]}"
    size = sum(length for place in places for _, _, length in files.walk(place))
    seen = Observation()
    reader = spark.read.option("mergeSchema", "true").option("recursiveFileLookup", "true")
    rows = reader.parquet(*places)
    joined = rows.coalesce(max(-(-size // FILE_BYTES), 1)).observe(seen, sf.count("*").alias("rows"))
    joined.write.parquet(within(folder, made))
    if int(seen.get["rows"]) != rows.count():
        files.delete(within(folder, made))
        raise PipelineError(f"{folder}: its files change while they are read; is somebody at work there?")
    swap = Swap(folder, made, numbers)
    files.write(within(out, JOURNAL), msgspec.json.encode(swap).decode())
    _swap(files, swap)
    files.delete(within(out, JOURNAL))
    return int(seen.get["rows"])


def _swap(files: Files, swap: Swap) -> None:
    """Hide the old ones, show the new one; however often it is begun anew. Readers may meet the moment between."""
    made, shown = within(swap.folder, swap.made), f"{swap.folder}/{BATCH}={swap.numbers[-1]}"
    if files.exists(made):
        for number in swap.numbers:
            if files.exists(f"{swap.folder}/{BATCH}={number}"):
                files.rename(f"{swap.folder}/{BATCH}={number}", f"{swap.folder}/{OLD}-{number}")
        files.rename(made, shown)
    for number in swap.numbers:
        files.delete(f"{swap.folder}/{OLD}-{number}")

"""A stream of a job: its folder is its own, each micro-batch is written once, and no bad file ends it.

Jobs say what to do with the rows of a micro-batch; reading them, what is known from the one before, and counting are
done here, alike for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from godwit.pipeline.driver import is_remote
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io import marks
from godwit.pipeline.io.files import Files, within
from godwit.pipeline.io.footers import Apart
from godwit.pipeline.io.locks import Lock
from godwit.pipeline.io.marks import CHECKPOINT, Mark
from godwit.pipeline.io.reading import Raw, UnreadableError, files_apart
from godwit.pipeline.io.writing import write_empty
from godwit.pipeline.progress import Summary
from godwit.pipeline.schemas import QUARANTINE
from godwit.pipeline.streaming.compaction import recover
from godwit.pipeline.streaming.feeds import Feed
from godwit.pipeline.streaming.ledger import Entry, Ledger
from godwit.pipeline.streaming.queries import BATCH, Pace, finished, started, write_batch, written

BAD = "quarantine"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Rows, their number, and what the micro-batch before left."""

    spark: SparkSession
    number: int
    raw: Raw
    before: Entry

    def done(self, *, rows: int, latest_s: float | None = None) -> Entry:
        """What this one leaves: totals with its own counts."""
        before = self.before
        return Entry(
            number=self.number,
            rows=before.rows + rows,
            latest_s=before.latest_s if latest_s is None else max(latest_s, before.latest_s or latest_s),
            columns=before.columns if self.raw.schema is None else self.raw.schema.json(),
        )


Each = Callable[[MicroBatch], Entry]
"""Writes the rows of a micro-batch and says what it leaves."""


class Stream:
    """A stream that has begun. `finish` waits for its end, `close` gives its folder free."""

    def __init__(
        self,
        spark: SparkSession,
        out: str,
        mark: Mark,
        feed: Feed,
        each: Each,
        pace: Pace,
        tables: Mapping[str, StructType],
        close: Callable[[], None] | None = None,
    ) -> None:
        self._spark = spark
        self._out, self._feed, self._each, self._close = out.rstrip("/"), feed, each, close
        if is_remote(spark):
            raise PipelineError(
                "a stream is driven by this process, and Spark Connect would run it on the server: right would be a"
                " session of this process (--master local[*], spark://, yarn, k8s://), or a batch"
            )
        files = Files(spark)
        self._lock = Lock(files, self._out, mark.job)
        try:
            recover(files, self._out)
            marks.claim_stream(files, self._out, mark)
            self._ledger, self._before = Ledger(files, within(self._out, CHECKPOINT)), None
            for table, schema in ({BAD: QUARANTINE} | dict(tables)).items():
                if not files.exists(within(self._out, table)):
                    # Readable from the beginning; the first micro-batch takes the place of it.
                    write_empty(spark, f"{within(self._out, table)}/{BATCH}=0", schema)
            self.query: StreamingQuery = started(
                feed.frame(spark), within(self._out, CHECKPOINT), mark.job, self._run, pace
            )
        except BaseException:
            self.close()
            raise

    _before: Entry | None
    """What was there before the first micro-batch of this run."""

    def finish(self, meanwhile: Callable[[], None] | None = None) -> None:
        finished(self.query, meanwhile=meanwhile)

    def close(self) -> None:
        self._lock.release()
        if self._close is not None:
            self._close()

    def rows(self) -> tuple[int, int]:
        """Rows and micro-batches of this run, each counted once."""
        last = self._ledger.last()
        if self._before is None:
            return 0, 0
        return last.rows - self._before.rows, last.number - self._before.number

    def number(self) -> int:
        """The micro-batch that was finished last, -1 before the first."""
        return self._ledger.last().number

    def latest_s(self) -> float | None:
        return self._ledger.last().latest_s

    def tell(self, summary: Summary) -> None:
        """What this run took, and what is in quarantine from all runs."""
        summary.rows_in, batches = self.rows()
        summary.quarantined = written(self._spark, within(self._out, BAD), QUARANTINE).count()
        summary.notes.append(f"{batches} micro-batches in this run; tables count all runs from this checkpoint")

    def _run(self, batch: DataFrame, number: int) -> None:
        before = self._ledger.before(number)
        if self._before is None:
            self._before = before
        if self._feed.gives_rows:
            entry = self._each(MicroBatch(batch.sparkSession, number, Raw(batch), before))
        else:
            entry = self._of_files(batch, number, before)
        self._ledger.keep(entry)

    def _of_files(self, batch: DataFrame, number: int, before: Entry) -> Entry:
        files, spark = self._feed.files(batch), batch.sparkSession
        try:
            return self._read(spark, files, (), number, before)
        except (PySparkException, Py4JJavaError):
            damaged = self._feed.damaged(spark, files)
            if not damaged:
                raise
            sound = sorted(set(files) - {one.name for one in damaged})
            return self._read(spark, sound, damaged, number, before)

    def _read(
        self, spark: SparkSession, files: list[str], damaged: tuple[Apart, ...], number: int, before: Entry
    ) -> Entry:
        try:
            if not files:
                raise UnreadableError("no file is left", ())
            raw = self._feed.read(spark, files, before.schema)
        except UnreadableError as error:
            apart = (*damaged, *error.apart)
            write_batch(files_apart(spark, self._feed.dataset, apart), within(self._out, BAD), number, QUARANTINE)
            return msgspec.structs.replace(before, number=number)
        whole = Raw(raw.frame, (*damaged, *raw.apart), raw.schema)
        return self._each(MicroBatch(spark, number, whole, before))

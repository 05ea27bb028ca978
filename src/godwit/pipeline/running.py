"""A job as a user sees it: one progress bar from Spark's status tracker, and a summary at the end."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from pyspark import SparkContext
from pyspark.sql import SparkSession

POLL_S = 0.25

Progress = Callable[[float, str], None]
"""Told the share of the running stages that is done, and what runs."""


class Summary(msgspec.Struct, kw_only=True):
    """What a run did."""

    job: str
    rows_in: int = 0
    rows_out: dict[str, int] = {}
    quarantined: int = 0
    seconds: float = 0.0
    stages: int = 0
    notes: list[str] = []

    def lines(self) -> list[str]:
        width = max(map(len, self.rows_out), default=0)
        return [
            f"{self.job}: {self.rows_in:,} rows in, {self.quarantined:,} to quarantine",
            *(f"  {table:<{width}}  {rows:>13,} rows" for table, rows in self.rows_out.items()),
            *(f"  {note}" for note in self.notes),
            f"{self.seconds:.1f} s, {self.stages} stages",
        ]


@contextmanager
def watched(spark: SparkSession, job: str, progress: Progress | None = None) -> Iterator[Summary]:
    """Run the jobs inside as one group: the summary gets their time and stages when they are done."""
    context, group = spark.sparkContext, f"godwit-{job}-{uuid.uuid4().hex[:8]}"
    context.setJobGroup(group, f"godwit {job}", interruptOnCancel=True)
    summary, done = Summary(job=job), threading.Event()
    watcher = threading.Thread(target=_watch, args=(context, group, summary, progress, done), daemon=True)
    started = time.monotonic()
    watcher.start()
    try:
        yield summary
    except KeyboardInterrupt:
        context.cancelJobGroup(group)
        raise
    finally:
        done.set()
        watcher.join()
        summary.seconds = time.monotonic() - started
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def _watch(
    context: SparkContext, group: str, summary: Summary, progress: Progress | None, done: threading.Event
) -> None:
    tracker, seen = context.statusTracker(), set[int]()
    while not done.is_set():
        done.wait(POLL_S)
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            seen.update(info.stageIds if info else ())
        summary.stages = len(seen)
        running = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = sum(stage.numTasks for stage in running if stage)
        if progress is not None and tasks:
            finished = sum(stage.numCompletedTasks for stage in running if stage)
            progress(finished / tasks, f"stage {max(seen, default=0)}: {finished} of {tasks} tasks")

"""A job as a user sees it: one progress bar from Spark's status tracker, and a summary at the end."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager

import msgspec
from pyspark import SparkContext, inheritable_thread_target
from pyspark.sql import SparkSession
from pyspark.status import StatusTracker

POLL_S, COUNT_S, CANCEL_S = 0.25, 5.0, 0.1

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


def at_once(spark: SparkSession, *works: Callable[[], None]) -> None:
    """Run these beside each other, so that the small stages of one fill the cores that another leaves idle.

    Their jobs are of the caller's group. Where one fails, or the caller is interrupted, the jobs of all are cancelled,
    and the first error goes on.
    """
    threads, inherited = ThreadPoolExecutor(len(works), "godwit"), inheritable_thread_target(spark)
    running = [threads.submit(inherited(work)) for work in works]
    try:
        for one in as_completed(running):
            one.result()
    except BaseException:
        group = spark.sparkContext.getLocalProperty("spark.jobGroup.id")
        # A work that was between two jobs has the next one ahead of it.
        while group is not None and wait(running, timeout=CANCEL_S).not_done:
            spark.sparkContext.cancelJobGroup(group)
        raise
    finally:
        threads.shutdown()


def _watch(
    context: SparkContext, group: str, summary: Summary, progress: Progress | None, done: threading.Event
) -> None:
    """Every question goes to Java and back, a job's several times: jobs are asked once, what runs only for the bar."""
    tracker, jobs, stages = context.statusTracker(), set[int](), set[int]()
    counted_s = time.monotonic()
    while not done.wait(COUNT_S if progress is None else POLL_S):
        if time.monotonic() - counted_s > COUNT_S:
            _count(tracker, group, jobs, stages)
            counted_s = time.monotonic()
        if progress is not None:
            _show(tracker, progress)
    _count(tracker, group, jobs, stages)
    summary.stages = len(stages)


def _count(tracker: StatusTracker, group: str, jobs: set[int], stages: set[int]) -> None:
    """Add the stages of jobs that are new. Spark forgets the oldest of thousands, so it is asked now and then."""
    for job in set(tracker.getJobIdsForGroup(group)) - jobs:
        if info := tracker.getJobInfo(job):
            jobs.add(job)
            stages.update(info.stageIds)


def _show(tracker: StatusTracker, progress: Progress) -> None:
    active = tracker.getActiveStageIds()
    running = [stage for stage in map(tracker.getStageInfo, active) if stage]
    if tasks := sum(stage.numTasks for stage in running):
        finished = sum(stage.numCompletedTasks for stage in running)
        progress(finished / tasks, f"stage {max(active)}: {finished} of {tasks} tasks")

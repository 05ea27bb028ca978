"""A job as a user sees it: one progress bar from Spark's status tracker, and a summary at the end."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager

import msgspec
from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

from godwit.pipeline import driver

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
    group = driver.jobs(spark, f"godwit-{job}-{uuid.uuid4().hex[:8]}", f"godwit {job}")
    summary, done = Summary(job=job), threading.Event()
    watcher = threading.Thread(target=_watch, args=(group, summary, progress, done), daemon=True)
    started = time.monotonic()
    watcher.start()
    try:
        yield summary
    except KeyboardInterrupt:
        group.cancel()
        raise
    finally:
        done.set()
        watcher.join()
        summary.seconds = time.monotonic() - started
        group.close()


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
        # A work that was between two jobs has the next one ahead of it.
        while wait(running, timeout=CANCEL_S).not_done and driver.cancel(spark):
            pass
        raise
    finally:
        threads.shutdown()


def _watch(group: driver.Jobs, summary: Summary, progress: Progress | None, done: threading.Event) -> None:
    """Stages are counted now and then; what runs is asked only for the bar."""
    counted_s = time.monotonic()
    while not done.wait(COUNT_S if progress is None else POLL_S):
        if time.monotonic() - counted_s > COUNT_S:
            group.stages()
            counted_s = time.monotonic()
        if progress is not None and (found := group.running()):
            stage, finished, tasks = found
            progress(finished / tasks, f"stage {stage}: {finished} of {tasks} tasks")
    summary.stages = group.stages()

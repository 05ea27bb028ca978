"""Experiment grids on Spark: every result at the driver as soon as its task is done.

Runs are the tasks of one job, so that Spark sees the whole backlog: it retries, moves work from lost machines,
speculates and asks for more executors as for any stage. What a task found comes with the message that it has finished,
as the update of an accumulator. Spark applies that once for each task of an action however often it was tried, and no
storage that all machines see is needed. (A job for each run, from a pool of threads, took three times the CPU.)

A task costs Spark 10 to 20 ms, so runs that are over in much less than `TASK_S` share one. A small job with a task for
each of its runs goes ahead and tells how long they take. Runs that fail among others, or are lost with them, are tried
again in a task for each.
"""

from __future__ import annotations

import gc
import pickle
import queue
import re
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

from pyspark import RDD, SparkContext, TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from godwit import __version__
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.session import QUIET

LOCAL = r"local(?:\[(\d+|\*)(?:,(\d+))?\])?"
FAILURES_MAX = 4
"""Of a task, before Spark gives up the job: Spark's own default, which local masters do not have by themselves."""

SETTINGS = {
    # What goes wrong in a run is told with its configuration; Spark would tell it for every attempt.
    "spark.log.level": "OFF",
    # The driver only hands out tasks and sums up a few thousand rows: compiling for that costs more than it saves.
    "spark.driver.extraJavaOptions": f"{QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Of a session that sweeps and does nothing else."""

TASK_S = 1.0
"""What runs that share a task may take together."""
AHEAD_S = 15.0
"""So long the runs that go ahead are waited for; if they are not over then, runs are long."""

AMONG_OTHERS = 0
"""Attempts of a run that shares a task: none that Spark could repeat without repeating the others."""

Run = tuple[int, Any]
Found = tuple[int, bytes | None, float]
"""The number of a run, what came of it or None where it must be tried again, and the seconds that it took."""
Outcome = tuple[int, Any, str]


def retrying(master: str) -> str:
    """The same master; a local one that would give up a job at the first failure of a task retries like a cluster."""
    local = re.fullmatch(LOCAL, master)
    if local is None or local.group(2):
        return master
    return f"local[{local.group(1) or 1},{FAILURES_MAX}]"


def attempts(context: SparkContext) -> int:
    """How often a run is tried: once less than Spark allows, since the last attempt only tells of the others."""
    local = re.fullmatch(LOCAL, context.master or "")
    allowed = local.group(2) or 1 if local else context.getConf().get("spark.task.maxFailures", str(FAILURES_MAX))
    return max(1, int(allowed or FAILURES_MAX) - 1)


def outcomes(spark: SparkSession, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Generator[Outcome, None, None]:
    """The number of each task with `work(task)`, or with None and a traceback where every attempt failed, as they come.

    `work` and what it needs must be importable on the executors. Closed early, or interrupted, it ends the runs that
    are under way. Raises `PipelineError` where Spark gives up, for which no single run is to blame.
    """
    jobs = _Jobs(spark.sparkContext, work)
    runs, cores = list(enumerate(tasks)), spark.sparkContext.defaultParallelism
    ahead, rest, again, seen = runs[: 2 * cores], runs[2 * cores :], list[Run](), list[float]()
    deadline = time.monotonic() + AHEAD_S
    try:
        jobs.start([[run] for run in ahead])
        while jobs.are_running or rest or again:
            # The first run of each worker has loaded what the others find there.
            if rest and (len(seen) > cores or time.monotonic() > deadline):
                jobs.start(shared(rest, min(seen, default=TASK_S), cores))
                rest = []
            elif again and not jobs.are_running:
                jobs.start([[run] for run in again])
                again = []
            for number, found, took_s in jobs.arrived(until=deadline if rest else None):
                seen.append(took_s)
                if found is None:
                    again.append(runs[number])
                else:
                    yield number, *pickle.loads(found)
    finally:
        jobs.end()


def shared(runs: Sequence[Run], run_s: float, cores: int) -> list[list[Run]]:
    """Runs of about so many seconds by the tasks that they share, in order and fewer and fewer of them in each, so that
    all cores have something to do until the end."""
    most, tasks, left = int(TASK_S / max(run_s, 1e-3)), list[list[Run]](), list(runs)
    while left:
        some = max(1, min(most, len(left) // (2 * cores)))
        tasks.append(left[:some])
        del left[:some]
    return tasks


class _Jobs:
    """Spark jobs under way, of one group, and what arrives from them."""

    def __init__(self, context: SparkContext, work: Callable[[Any], Any]) -> None:
        self._context = context
        self._work = work
        self._group = f"godwit-sweep-{uuid.uuid4().hex[:8]}"
        self._arrived: queue.SimpleQueue[Found | Exception | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._running = 0

    @property
    def are_running(self) -> bool:
        return self._running > 0

    def start(self, tasks: Sequence[list[Run]]) -> None:
        if tasks:
            accumulator = self._context.accumulator([], _Arrivals(self._arrived))
            attempt = _attempt(self._work, accumulator, attempts(self._context))
            job = self._context.parallelize(tasks, len(tasks)).mapPartitions(attempt)
            self._threads.append(threading.Thread(target=self._run, args=(job,), name="godwit sweep", daemon=True))
            self._running += 1
            self._threads[-1].start()

    def arrived(self, until: float | None) -> Iterator[Found]:
        """What comes next: one, or none where a job has ended or it is so late by the monotonic clock."""
        try:
            found = self._arrived.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
        except queue.Empty:
            return
        if isinstance(found, Exception):
            raise PipelineError(f"Spark gave up on the runs: {_reason(found)}") from found
        if found is None:
            self._running -= 1
        else:
            yield found

    def end(self) -> None:
        """A group can be cancelled only once its job is there, so it is asked for until the jobs are gone."""
        for thread in self._threads:
            while thread.is_alive():
                self._context.cancelJobGroup(self._group)
                thread.join(0.1)

    def _run(self, job: RDD[None]) -> None:
        try:
            self._context.setJobGroup(self._group, "godwit sweep", interruptOnCancel=True)
            job.count()
        except Exception as error:
            self._arrived.put(error)
        else:
            self._arrived.put(None)


class _Arrivals(AccumulatorParam[list[Found]]):
    """Collects within a task; at the driver, where the queue is, what comes is handed on and forgotten."""

    def __init__(self, arrived: queue.SimpleQueue[Any] | None = None) -> None:
        self._arrived = arrived

    def __reduce__(self) -> tuple[type[_Arrivals], tuple[()]]:
        return _Arrivals, ()

    def zero(self, value: list[Found]) -> list[Found]:
        return []

    def addInPlace(self, value1: list[Found], value2: list[Found]) -> list[Found]:  # noqa: N802
        if self._arrived is None:
            return value1 + value2
        for found in value2:
            self._arrived.put(found)
        return value1


def _attempt(
    work: Callable[[Any], Any], arrivals: Accumulator[list[Found]], attempts_max: int
) -> Callable[[Iterable[list[Run]]], Iterable[None]]:
    version = __version__

    def attempted(tasks: Iterable[list[Run]]) -> Iterable[None]:
        # Spark's worker looks for garbage after every task, in all that was ever imported: 25 ms, unless it is frozen.
        gc.freeze()
        for runs in tasks:
            for number, task in runs:
                began_s = time.perf_counter()
                found = _tried(work, task, attempts_max if len(runs) == 1 else AMONG_OTHERS, version)
                arrivals.add([(number, found, time.perf_counter() - began_s)])
        return ()

    return attempted


def _tried(work: Callable[[Any], Any], task: Any, attempts_max: int, version: str) -> bytes | None:
    """The result or the last error, pickled here: what cannot be pickled is an error of this run and of no other.

    Among others a run is tried once, and not at all where Spark tries them all again: None then.
    """
    context = TaskContext.get()
    number = context.attemptNumber() if context is not None else 0
    if number > 0 and attempts_max == AMONG_OTHERS:
        return None
    if number >= attempts_max > AMONG_OTHERS:
        return pickle.dumps((None, f"the process that ran it ended without a word, {number} times"))
    try:
        if version != __version__:
            raise PipelineError(f"this executor has godwit {__version__}, the driver {version}: send one along")
        return pickle.dumps((work(task), ""))
    except Exception:
        if attempts_max == AMONG_OTHERS:
            return None
        if number + 1 < attempts_max:
            raise
        return pickle.dumps((None, traceback.format_exc()))


def _reason(error: Exception) -> str:
    """The line that names an exception of Java's, which is not the first; else the first."""
    lines = [line.lstrip(": ") for line in str(error).strip().splitlines()] or [type(error).__name__]
    return next((line for line in lines if "Exception: " in line), lines[0])

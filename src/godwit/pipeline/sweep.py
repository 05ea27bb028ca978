"""Experiment grids on Spark: one task for each run, every result at the driver as soon as its task is done.

All runs are the tasks of one job, so that Spark sees the whole backlog: it retries, moves work from lost machines,
speculates and asks for more executors as for any stage. What a task found comes with the message that it has finished,
as the update of an accumulator, which Spark applies once for each task of an action however often it was tried; no
storage that all machines see is needed. (A job for each run, from a pool of threads, took three times the CPU.)
"""

from __future__ import annotations

import gc
import pickle
import queue
import re
import threading
import traceback
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from pyspark import SparkContext, TaskContext
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

Found = tuple[int, bytes]
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
    if not tasks:
        return
    arrived: queue.SimpleQueue[Found | Exception | None] = queue.SimpleQueue()
    job = _Job(spark.sparkContext, work, tasks, arrived)
    job.start()
    try:
        while (found := arrived.get()) is not None:
            if isinstance(found, Exception):
                raise PipelineError(f"Spark gave up on the runs: {_reason(found)}") from found
            yield found[0], *pickle.loads(found[1])
    finally:
        job.end()


class _Job(threading.Thread):
    """Runs the Spark job, which returns when all is done, while results arrive."""

    def __init__(
        self,
        context: SparkContext,
        work: Callable[[Any], Any],
        tasks: Sequence[Any],
        arrived: queue.SimpleQueue[Found | Exception | None],
    ) -> None:
        super().__init__(name="godwit sweep", daemon=True)
        self._context = context
        self._group = f"godwit-sweep-{uuid.uuid4().hex[:8]}"
        self._arrived = arrived
        self._runs = context.parallelize(list(enumerate(tasks)), len(tasks)).mapPartitions(
            _attempt(work, context.accumulator([], _Arrivals(arrived)), attempts(context))
        )

    def run(self) -> None:
        try:
            self._context.setJobGroup(self._group, "godwit sweep", interruptOnCancel=True)
            self._runs.count()
        except Exception as error:
            self._arrived.put(error)
        else:
            self._arrived.put(None)

    def end(self) -> None:
        """A group can be cancelled only once its job is there, so it is asked for until the job is gone."""
        while self.is_alive():
            self._context.cancelJobGroup(self._group)
            self.join(0.1)


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
) -> Callable[[Iterable[tuple[int, Any]]], Iterable[None]]:
    version = __version__

    def attempted(tasks: Iterable[tuple[int, Any]]) -> Iterable[None]:
        # Spark's worker looks for garbage after every task, in all that was ever imported: 25 ms, unless it is frozen.
        gc.freeze()
        for number, task in tasks:
            arrivals.add([(number, _tried(work, task, attempts_max, version))])
        return ()

    return attempted


def _tried(work: Callable[[Any], Any], task: Any, attempts_max: int, version: str) -> bytes:
    """The result or the last error, pickled here: what cannot be pickled is an error of this run and of no other."""
    context = TaskContext.get()
    number = context.attemptNumber() if context is not None else 0
    if number >= attempts_max:
        return pickle.dumps((None, f"the process that ran it ended without a word, {number} times"))
    try:
        if version != __version__:
            raise PipelineError(f"this executor has godwit {__version__}, the driver {version}: send one along")
        return pickle.dumps((work(task), ""))
    except Exception:
        if number + 1 < attempts_max:
            raise
        return pickle.dumps((None, traceback.format_exc()))


def _reason(error: Exception) -> str:
    """The line that names an exception of Java's, which is not the first; else the first."""
    lines = [line.lstrip(": ") for line in str(error).strip().splitlines()] or [type(error).__name__]
    return next((line for line in lines if "Exception: " in line), lines[0])

"""What only a session of this process can do, and what does the same for a client of Spark Connect.

A session of this process has Java beside it; a client of Spark Connect has a connection to a server, and knows nothing
of the server's Java. This module and `io.hadoop` are the only ones that ask which of the two it is, but for `sweep`,
which needs a session of this process.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from pyspark import Broadcast, SparkContext, SparkFiles
from pyspark.sql import SparkSession
from pyspark.status import StatusTracker


def is_remote(spark: SparkSession) -> bool:
    """Whether the session is that of a Spark Connect server."""
    return ".connect." in type(spark).__module__


def cores(spark: SparkSession) -> int:
    """How many tasks may run beside each other; a server does not tell, so it is what its shuffles are made for."""
    if is_remote(spark):
        return max(int(spark.conf.get("spark.sql.shuffle.partitions", "2") or "2") // 2, 1)
    return int(spark.sparkContext.defaultParallelism)


class Parcel(Protocol):
    """A pickled value that is sent to every executor once; tasks load it."""

    def load(self) -> Any:
        """In a task."""

    def forget(self) -> None:
        """On the driver: no task will ask for it any more."""


def sent(spark: SparkSession, pickled: Path) -> Parcel:
    """Send a file that has a pickled value. Nothing of it stays in this process, and the file may be removed."""
    if is_remote(spark):
        return _Artifact.of(spark, pickled)
    return _Broadcasted(_FromFile(spark.sparkContext, str(pickled), spark.sparkContext._pickled_broadcast_vars))


def sent_value(spark: SparkSession, value: object) -> Parcel:
    """The same of a value that this process has."""
    with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
        file = Path(folder, "value")
        with file.open("wb") as out:
            pickle.dump(value, out, pickle.HIGHEST_PROTOCOL)
        return sent(spark, file)


class _FromFile(Broadcast[Any]):
    """A broadcast whose value is in a file already, pickled: this process need not hold it."""

    def dump(self, value: Any, f: BinaryIO) -> None:
        with open(value, "rb") as pickled:
            shutil.copyfileobj(pickled, f)
        f.close()


@dataclass(frozen=True, slots=True)
class _Broadcasted:
    broadcast: Broadcast[Any]

    def load(self) -> Any:
        """Anew each time: a broadcast keeps its value for ever once asked for it."""
        path = self.broadcast._path
        assert path is not None
        return self.broadcast.load_from_path(path)

    def forget(self) -> None:
        self.broadcast.destroy()


@dataclass(frozen=True, slots=True)
class _Artifact:
    """A file of the session; the server removes it with the session, and has no way to do it before."""

    name: str

    @classmethod
    def of(cls, spark: SparkSession, pickled: Path) -> _Artifact:
        with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
            file = Path(folder, f"godwit-{uuid.uuid4().hex}")
            shutil.copyfile(pickled, file)
            spark.addArtifacts(str(file), file=True)
            return cls(file.name)

    def load(self) -> Any:
        with open(SparkFiles.get(self.name), "rb") as pickled:
            return pickle.load(pickled)

    def forget(self) -> None:
        pass


class Jobs(Protocol):
    """The jobs that a thread, and those that inherit from it, run from now on."""

    def stages(self) -> int:
        """How many there were so far."""

    def running(self) -> tuple[int, int, int] | None:
        """The newest stage that runs, and the tasks of all that run: finished, and together."""

    def cancel(self) -> None: ...

    def close(self) -> None: ...


def jobs(spark: SparkSession, name: str, description: str) -> Jobs:
    return _TaggedJobs(spark, name) if is_remote(spark) else _GroupedJobs(spark.sparkContext, name, description)


def cancel(spark: SparkSession) -> bool:
    """Cancel what the group of this thread runs; False where it is in none."""
    if is_remote(spark):
        tags = spark.getTags()
        for tag in tags:
            spark.interruptTag(tag)
        return bool(tags)
    group = spark.sparkContext.getLocalProperty(_GROUP)
    if group is not None:
        spark.sparkContext.cancelJobGroup(group)
    return group is not None


_GROUP = "spark.jobGroup.id"


class _GroupedJobs:
    """Every question goes to Java and back, a job's several times: jobs are asked once."""

    def __init__(self, context: SparkContext, name: str, description: str) -> None:
        self._context, self._name = context, name
        self._tracker: StatusTracker = context.statusTracker()
        self._jobs, self._stages = set[int](), set[int]()
        context.setJobGroup(name, description, interruptOnCancel=True)

    def stages(self) -> int:
        """Spark forgets the oldest of thousands of jobs, so it should be asked now and then."""
        for job in set(self._tracker.getJobIdsForGroup(self._name)) - self._jobs:
            if info := self._tracker.getJobInfo(job):
                self._jobs.add(job)
                self._stages.update(info.stageIds)
        return len(self._stages)

    def running(self) -> tuple[int, int, int] | None:
        active = self._tracker.getActiveStageIds()
        found = [stage for stage in map(self._tracker.getStageInfo, active) if stage]
        tasks = sum(stage.numTasks for stage in found)
        return (max(active), sum(stage.numCompletedTasks for stage in found), tasks) if tasks else None

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._name)

    def close(self) -> None:
        self._context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]


class _TaggedJobs:
    """A server tells by itself how far it is."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark, self._name, self._lock = spark, name, threading.Lock()
        self._told = dict[int, Any]()
        spark.addTag(name)
        spark.registerProgressHandler(self._hear)  # type: ignore[arg-type]

    def stages(self) -> int:
        with self._lock:
            return len(self._told)

    def running(self) -> tuple[int, int, int] | None:
        with self._lock:
            found = [stage for stage in self._told.values() if not stage.done]
        tasks = sum(stage.num_tasks for stage in found)
        finished = sum(stage.num_completed_tasks for stage in found)
        return (max(stage.stage_id for stage in found), finished, tasks) if tasks else None

    def cancel(self) -> None:
        self._spark.interruptTag(self._name)

    def close(self) -> None:
        self._spark.removeProgressHandler(self._hear)  # type: ignore[arg-type]
        self._spark.removeTag(self._name)

    def _hear(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        with self._lock:
            self._told |= {stage.stage_id: stage for stage in stages or ()}

"""Many independent runs: each is tried, what finishes is kept at once, and what fails stops nothing else.

Who runs them is given: this process, one after the other, or a Spark job with a task for each
(`godwit.pipeline.sweep.runs`, of which nothing here knows).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, Generic, Protocol, TypeVar

import msgspec

Task = TypeVar("Task")
Done = TypeVar("Done")

Outcomes = Generator[tuple[int, Any, str], None, None]
"""The number of each task with its result, or with None and the traceback of what went wrong, as they finish. Closed
early, it drops what has not finished."""


class Workers(Protocol):
    """Calls `work` with every task. `work` must be importable by name, tasks and results picklable."""

    def __call__(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Outcomes: ...


class Failure(msgspec.Struct, Generic[Task], frozen=True):
    """A run that was given up. `error` is the traceback as it is printed, or a line that says how it was lost."""

    task: Task
    error: str

    @property
    def reason(self) -> str:
        """The error in a line."""
        return self.error.strip().splitlines()[-1]


class RunsFailedError(Exception):
    """Some runs failed for good; all others were kept before this was raised."""

    def __init__(self, failures: Sequence[Failure[Any]]) -> None:
        super().__init__(f"{len(failures)} failed, first {failures[0].task}: {failures[0].reason}")
        self.failures = failures


def one_by_one(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Outcomes:
    """In this process and in their order; a run that fails here would fail again, so each is tried once."""
    for number, task in enumerate(tasks):
        try:
            done = work(task)
        except Exception:
            yield number, None, traceback.format_exc()
        else:
            yield number, done, ""


def each(
    work: Callable[[Task], Done],
    tasks: Sequence[Task],
    keep: Callable[[Task, Done], None],
    *,
    by: Workers = one_by_one,
) -> None:
    """Call `keep(task, work(task))` for every task, `keep` in this thread and as runs finish.

    Raises `RunsFailedError` at the end if there were any that failed. Whatever ends this early, Ctrl-C or an exception
    of `keep`, what was kept stays kept, unfinished work is dropped, and the exception goes on.
    """
    failures: list[Failure[Task]] = []
    with closing(by(work, tasks)) as outcomes:
        for number, done, error in outcomes:
            if error:
                failures.append(Failure(tasks[number], error))
            else:
                keep(tasks[number], done)
    if failures:
        raise RunsFailedError(failures)

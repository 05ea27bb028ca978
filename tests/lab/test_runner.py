"""Many runs: all of them are tried once, what finishes is kept, and what fails is told at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from godwit.lab.runner import Outcomes, RunsFailedError, each


def backwards(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Outcomes:
    """Workers that finish in another order than they began."""
    for number in reversed(range(len(tasks))):
        yield number, work(tasks[number]), ""


def test_every_task_is_kept_with_its_result() -> None:
    kept: dict[float, int] = {}
    each(math.floor, [1.5, 2.5, 3.5], kept.__setitem__)
    assert list(kept.items()) == [(1.5, 1), (2.5, 2), (3.5, 3)]


def test_whoever_runs_results_are_kept_as_they_come() -> None:
    kept: dict[float, int] = {}
    each(math.floor, [1.5, 2.5, 3.5], kept.__setitem__, by=backwards)
    assert list(kept.items()) == [(3.5, 3), (2.5, 2), (1.5, 1)]


def test_what_fails_is_told_when_all_others_are_kept() -> None:
    kept: dict[int, float] = {}
    with pytest.raises(RunsFailedError) as told:
        each(lambda number: 1 / number, [0, 1, 2], kept.__setitem__)
    assert kept == {1: 1.0, 2: 0.5}
    (failure,) = told.value.failures
    assert failure.task == 0
    assert failure.reason == "ZeroDivisionError: division by zero"
    assert failure.error.startswith("Traceback")


def test_after_an_interruption_what_finished_is_kept_and_nobody_works_on() -> None:
    ran, kept = [], []

    def work(number: int) -> int:
        ran.append(number)
        return number

    def keep(number: int, done: int) -> None:
        kept.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        each(work, range(100), keep)
    assert ran == kept == [0]


def test_workers_are_told_when_nobody_waits_for_them_any_more() -> None:
    left = []

    def by(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Outcomes:
        try:
            yield 0, work(tasks[0]), ""
        finally:
            left.append(True)

    def keep(task: float, done: int) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        each(math.floor, [1.5], keep, by=by)
    assert left

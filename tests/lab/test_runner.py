"""Work over several processes: all of it is done once, and nothing finished is lost."""

from __future__ import annotations

import math
import multiprocessing

import pytest

from godwit.lab.runner import each


@pytest.mark.parametrize("processes", [1, 2])
def test_every_task_is_kept_with_its_result(processes: int) -> None:
    kept: dict[float, int] = {}
    each(math.floor, [1.5, 2.5, 3.5], kept.__setitem__, processes=processes)
    assert kept == {1.5: 1, 2.5: 2, 3.5: 3}


@pytest.mark.parametrize("processes", [1, 2])
def test_after_an_interruption_what_finished_is_kept_and_nobody_works_on(processes: int) -> None:
    kept = []

    def keep(task: float, done: int) -> None:
        kept.append(done)
        raise KeyboardInterrupt

    before = set(multiprocessing.active_children())
    with pytest.raises(KeyboardInterrupt):
        each(math.floor, [float(i) for i in range(100)], keep, processes=processes)
    assert len(kept) == 1
    for child in set(multiprocessing.active_children()) - before:
        child.join(10.0)
        assert not child.is_alive()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failing_task_is_told_to_the_caller(processes: int) -> None:
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        each(math.sqrt, [1.0, -1.0], lambda task, done: None, processes=processes)

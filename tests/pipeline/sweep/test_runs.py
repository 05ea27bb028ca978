"""Runs as tasks of Spark: each is done, told as it finishes, tried again when it fails, and given up alone."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import TaskContext
from pyspark.sql import SparkSession

import godwit
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.sweep import runs as sweep


def found(spark: SparkSession, work: Any, tasks: list[Any]) -> dict[Any, tuple[Any, str]]:
    seen = list(sweep.outcomes(spark, work, tasks))
    assert sorted(number for number, _, _ in seen) == list(range(len(tasks)))
    return {tasks[number]: (done, error) for number, done, error in seen}


def test_every_run_is_told_once_with_its_result(spark: SparkSession) -> None:
    assert found(spark, lambda number: number**2, list(range(40))) == {n: (n**2, "") for n in range(40)}


def test_a_result_is_there_while_others_still_run(spark: SparkSession, tmp_path: Path) -> None:
    done = tmp_path / "done"

    def work(name: str) -> str:
        while name == "slow" and not done.exists():
            time.sleep(0.01)
        return name

    for number, name, error in sweep.outcomes(spark, work, ["slow", "quick"]):
        assert (number, error) == (("slow", "quick").index(name), "")
        done.touch()


def test_what_fails_now_and_then_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    def work(number: int) -> int:
        tried = tmp_path / f"{number}-{time.monotonic_ns()}"
        tried.touch()
        if number == 1 and len(list(tmp_path.glob("1-*"))) < 3:
            raise RuntimeError("not yet")
        return number

    assert found(spark, work, [0, 1, 2]) == {n: (n, "") for n in range(3)}
    assert len(list(tmp_path.glob("*-*"))) == 5


def test_what_always_fails_is_told_with_its_error_and_the_others_go_on(spark: SparkSession) -> None:
    def work(number: int) -> float:
        return 1 / number

    told = found(spark, work, [0, 1, 2])
    assert told[1] == (1.0, "")
    assert told[2] == (0.5, "")
    assert told[0][0] is None
    assert told[0][1].startswith("Traceback")
    assert told[0][1].endswith("ZeroDivisionError: division by zero\n")


def test_a_run_that_takes_its_process_with_it_is_given_up_alone(spark: SparkSession) -> None:
    def work(number: int) -> int:
        if number == 2:
            os._exit(3)
        return number

    told = found(spark, work, [1, 2, 3, 4])
    assert {number: done for number, (done, _) in told.items()} == {1: 1, 2: None, 3: 3, 4: 4}
    assert told[2][1] == "the process that ran it ended without a word, 3 times"


def test_what_fails_or_dies_among_others_is_tried_again_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    def work(number: int) -> int:
        (tmp_path / f"{number}-{time.monotonic_ns()}").touch()
        tries = len(list(tmp_path.glob(f"{number}-*")))
        if number == 20 and tries == 1:
            raise RuntimeError("not among others")
        if number == 21:
            os._exit(3)
        return number

    told = found(spark, work, list(range(32)))
    assert {number for number, (done, _) in told.items() if done != number} == {21}
    assert told[21][1] == "the process that ran it ended without a word, 3 times"
    assert len(list(tmp_path.glob("20-*"))) == 2


@given(
    runs=st.integers(0, 300),
    run_s=st.floats(0, 10, exclude_min=True),
    cores=st.integers(1, 64),
)
def test_runs_share_tasks_in_their_order_and_never_longer_ones_than_before(runs: int, run_s: float, cores: int) -> None:
    tasks = sweep.shared(list(enumerate(range(runs))), run_s, cores)
    assert [run for task in tasks for run in task] == list(enumerate(range(runs)))
    sizes = [len(task) for task in tasks]
    assert sizes == sorted(sizes, reverse=True)
    assert all(size == 1 or size * run_s <= sweep.TASK_S for size in sizes)
    assert sizes[-2 * cores :] == [1] * len(sizes[-2 * cores :])


def test_a_result_that_cannot_be_sent_is_the_error_of_its_run(spark: SparkSession) -> None:
    told = found(spark, lambda number: (lambda: None) if number else 0, [0, 1])
    assert told[0] == (0, "")
    assert "pickle" in told[1][1]


def test_leaving_early_ends_what_is_under_way(spark: SparkSession, tmp_path: Path) -> None:
    def work(number: int) -> int:
        for _ in range(number * 6000):
            time.sleep(0.01)
            (tmp_path / "alive").touch()
        return number

    runs = sweep.outcomes(spark, work, [0, 1, 1, 1])
    assert next(runs)[0] == 0
    runs.close()
    until = time.monotonic() + 300
    while time.monotonic() < until:
        (tmp_path / "alive").unlink(missing_ok=True)
        time.sleep(0.5)
        if not (tmp_path / "alive").exists():
            return
    raise AssertionError("a run goes on though nobody waits for it")


def test_where_no_task_may_fail_a_lost_process_is_the_end_and_spark_s_reason_is_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(number: int) -> int:
        if TaskContext.get() is not None:
            os._exit(3)
        return number

    monkeypatch.setattr(sweep, "attempts", lambda context: 9)
    with pytest.raises(PipelineError, match=r"Spark gave up on the runs: .*Job aborted .* failed 4 times"):
        list(sweep.outcomes(spark, work, [1]))


def test_nothing_to_run_is_nothing_to_wait_for(spark: SparkSession) -> None:
    assert found(spark, abs, []) == {}


def test_an_executor_with_another_version_says_so() -> None:
    told = sweep._tried(abs, -1, 1, version="0.0.0")
    assert told is not None
    done, error = pickle.loads(told)
    assert done is None
    assert f"this executor has godwit {godwit.__version__}, the driver 0.0.0" in error


def test_work_that_cannot_be_sent_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file, pytest.raises(PipelineError, match="Spark gave up on the runs"):
        list(sweep.outcomes(spark, lambda number: file.write(str(number)), [1, 2]))


@pytest.mark.parametrize(
    ("master", "retried"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[*,9]", "local[*,9]"),
        ("spark://host:7077", "spark://host:7077"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
    ],
)
def test_a_local_master_retries_like_a_cluster(master: str, retried: str) -> None:
    assert sweep.retrying(master) == retried

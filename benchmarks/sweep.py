"""Speed of sweeps: two hundred short simulations on Spark, beside a plain loop and two plain processes of the same run.

    python benchmarks/sweep.py
    python benchmarks/sweep.py --runs 40

The simulations are those of `godwit lab mft`, four brokers for 28 s, about a sixth of a second each. Run it on an idle
machine with two cores or more.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec

from godwit.lab.mft.runs import Configuration, Result, run
from godwit.pipeline.session import Options, start
from godwit.pipeline.sweep.runs import SETTINGS, outcomes, retrying

RUNS, CORES, GOAL = 200, 2, 1.7


class Measured(msgspec.Struct, frozen=True):
    """Seconds. `spark_s` is from the first task to the last result, with workers that have run something before."""

    runs: int
    loop_s: float
    processes_s: float
    """As many plain processes as cores, each given the next run when it is done: what these cores allow."""
    start_s: float
    first_s: float
    """The first run of each worker, imports included."""
    spark_s: float

    @property
    def ratio(self) -> float:
        return self.loop_s / self.spark_s

    @property
    def ceiling(self) -> float:
        return self.loop_s / self.processes_s

    @property
    def whole_ratio(self) -> float:
        """With the start of Spark and of its workers."""
        return self.loop_s / (self.start_s + self.first_s + self.spark_s)

    def __str__(self) -> str:
        begin_s = self.start_s + self.first_s
        return (
            f"sweep, {self.runs} short simulations: plain loop {self.loop_s:.1f} s; local[{CORES}] {self.spark_s:.1f} s"
            f", {self.ratio:.2f} times faster (goal {GOAL}); {CORES} plain processes {self.processes_s:.1f} s,"
            f" {self.ceiling:.2f} times, of which Spark reaches {self.ratio / self.ceiling:.0%};"
            f" with {begin_s:.1f} s for the start of Spark and workers"
            f" {self.whole_ratio:.2f} times"
        )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=RUNS)
    print(measured(arguments.parse_args().runs))


def measured(runs: int = RUNS) -> Measured:
    """Both ways in this process; whatever session it has must have been stopped."""
    wanted = [_short(seed) for seed in range(runs)]
    run(wanted[0])
    began = time.perf_counter()
    here = [run(one).digest for one in wanted]
    loop_s = time.perf_counter() - began
    processes_s = _by_processes(wanted, here)
    looped = time.perf_counter()
    spark = start(Options(master=retrying(f"local[{CORES}]"), name="sweep", settings=SETTINGS))
    started = time.perf_counter()
    list(outcomes(spark, run, [_short(runs + more) for more in range(CORES)]))
    warm = time.perf_counter()
    there = {number: _digest(done, error) for number, done, error in outcomes(spark, run, wanted)}
    done = time.perf_counter()
    spark.stop()
    assert [there[number] for number in range(runs)] == here
    return Measured(runs, loop_s, processes_s, started - looped, warm - started, done - warm)


def _by_processes(wanted: list[Configuration], digests: list[str]) -> float:
    with ProcessPoolExecutor(CORES, get_context("spawn")) as processes:
        list(processes.map(run, [_short(len(wanted) + more) for more in range(4 * CORES)]))
        began = time.perf_counter()
        there = [result.digest for result in processes.map(run, wanted)]
        took_s = time.perf_counter() - began
    assert there == digests
    return took_s


def _short(seed: int) -> Configuration:
    return Configuration(size=4, speed_mps=8.0, seed=seed, protocol="hardened", publish_s=20.0, drain_s=8.0)


def _digest(done: Result | None, error: str) -> str:
    assert done is not None, error
    return done.digest


if __name__ == "__main__":
    main()

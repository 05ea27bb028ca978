"""Speed of sweeps: two hundred short simulations as tasks of Spark, beside a plain loop of the same run.

    python benchmarks/sweep.py
    python benchmarks/sweep.py --runs 40

The simulations are those of `godwit lab mft`, four brokers for 28 s, about a sixth of a second each. Run it on an idle
machine with two cores or more.
"""

from __future__ import annotations

import argparse
import time

import msgspec

from godwit.lab.mft.runs import Configuration, Result, run
from godwit.pipeline.session import Options, start
from godwit.pipeline.sweep import SETTINGS, outcomes, retrying

RUNS, CORES, GOAL = 200, 2, 1.7


class Measured(msgspec.Struct, frozen=True):
    """Seconds. `spark_s` is from the first task to the last result, with workers that have run something before."""

    runs: int
    loop_s: float
    start_s: float
    first_s: float
    """The first run of each worker, imports included."""
    spark_s: float

    @property
    def ratio(self) -> float:
        return self.loop_s / self.spark_s

    @property
    def whole_ratio(self) -> float:
        """With the start of Spark and of its workers."""
        return self.loop_s / (self.start_s + self.first_s + self.spark_s)

    def __str__(self) -> str:
        begin_s = self.start_s + self.first_s
        return (
            f"sweep, {self.runs} short simulations: plain loop {self.loop_s:.1f} s; local[{CORES}] {self.spark_s:.1f} s"
            f", {self.ratio:.2f} times faster (goal {GOAL}); with {begin_s:.1f} s for the start of Spark and workers"
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
    looped = time.perf_counter()
    spark = start(Options(master=retrying(f"local[{CORES}]"), name="sweep", settings=SETTINGS))
    started = time.perf_counter()
    list(outcomes(spark, run, [_short(runs + more) for more in range(CORES)]))
    warm = time.perf_counter()
    there = {number: _digest(done, error) for number, done, error in outcomes(spark, run, wanted)}
    done = time.perf_counter()
    spark.stop()
    assert [there[number] for number in range(runs)] == here
    return Measured(runs, looped - began, started - looped, warm - started, done - warm)


def _short(seed: int) -> Configuration:
    return Configuration(size=4, speed_mps=8.0, seed=seed, protocol="hardened", publish_s=20.0, drain_s=8.0)


def _digest(done: Result | None, error: str) -> str:
    assert done is not None, error
    return done.digest


if __name__ == "__main__":
    main()

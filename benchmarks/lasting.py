"""What it costs to put a thing among lasting questions, or a question among things: `python benchmarks/lasting.py`.

The baseline of the same run is numpy's brute force over all of the other kind. Every audience of the sample is checked
against it.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

import numpy as np
import numpy.typing as npt

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import rng
from godwit.tables.standing import Standing

NAMES = ("x", "y", "z")
GOAL_US = 200
Floats = npt.NDArray[np.float64]


class Watch:
    """How long the processor takes for what is done under it, in microseconds."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *error: object) -> None:
        self.taken.append((time.process_time() - self._began) * 1e6)


def told(name: str, taken: list[float], baseline: list[float]) -> None:
    tail = sorted(taken)[int(len(taken) * 0.99)]
    middle, rival = median(taken), median(baseline)
    verdict = "" if middle <= GOAL_US else "  MISSED"
    print(f"{name:<28} {middle:9.1f} {tail:9.1f} {rival:12.1f} {rival / middle:8.2f}{verdict}")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--things", type=int, default=100_000)
    options.add_argument("--questions", type=int, default=10_000)
    options.add_argument("--share", type=float, default=0.001, help="of the things that a question is answered by")
    options.add_argument("--sample", type=int, default=2_000)
    options.add_argument("--quick", action="store_true", help="a tenth of everything")
    given = options.parse_args()
    scale = 10 if given.quick else 1
    things, questions, sample = given.things // scale, given.questions // scale, given.sample // scale
    dice = np.random.default_rng(7)
    width = given.share ** (1 / len(NAMES))
    points = dice.random((things + sample, len(NAMES)))
    lows = dice.random((questions + sample, len(NAMES))) * (1 - width)
    standing = Standing()
    print(f"{things:,} things, {questions:,} questions, each answered by {given.share:.1%} of the things")

    def question(row: Floats) -> Filter:
        pairs = zip(NAMES, row, strict=True)
        return filter_of(*(attribute(name, rng(float(low), float(low) + width)) for name, low in pairs))

    for number in range(questions):
        standing.ask(number, question(lows[number]))
    for number in range(things):
        standing.put(number, dict(zip(NAMES, points[number].tolist(), strict=True)))

    added, against, asked, beside = Watch(), Watch(), Watch(), Watch()
    for number in range(things, things + sample):
        point, values = points[number], dict(zip(NAMES, points[number].tolist(), strict=True))
        with added:
            change = standing.put(number, values)
        with against:
            low = lows[:questions]
            hits = np.flatnonzero(((low <= point) & (point <= low + width)).all(axis=1))
        assert sorted(change.entered) == hits.tolist(), "an audience differs from brute force"
    for number in range(questions, questions + sample):
        wanted, low = question(lows[number]), lows[number]
        with asked:
            found = standing.ask(number, wanted)
        with beside:
            hits = np.flatnonzero(((low <= points) & (points <= low + width)).all(axis=1))
        assert sorted(found) == hits.tolist(), "an audience differs from brute force"
    print(f"{'':<28} {'median us':>9} {'99 % us':>9} {'numpy us':>12} {'ratio':>8}")
    told("a thing comes", added.taken, against.taken)
    told("a question comes", asked.taken, beside.taken)
    print(f"goal: {GOAL_US} us in the median; {2 * sample:,} audiences are those of brute force")
    return 0


if __name__ == "__main__":
    sys.exit(main())

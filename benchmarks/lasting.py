"""What it costs to put a thing among lasting questions, or a question among things: `python benchmarks/lasting.py`.

The baseline of the same run is numpy's brute force over all of the other kind. Every audience of the sample is checked
against it. Half of the sample comes one after another, and is checked afterwards. Before each of the other half numpy
goes through all of the other kind, which leaves nothing of ours in the processor's caches: so it is to who does
something else between any two. The goal is for the first.

Questions are in the index of filters and things in columns, as a broker keeps them. What a broker does besides (views,
numbers, the disk) is not measured here.
"""

from __future__ import annotations

import argparse
import sys
import time
from math import inf
from statistics import median

import numpy as np
import numpy.typing as npt

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import rng
from godwit.tables.matching.index import Index
from godwit.tables.matching.population import Population

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


class Row:
    """What was measured of one kind of insert."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.answers: list[int] = []

    def told(self, name: str, baseline: list[float], goal_us: float = inf) -> str:
        taken, rival = self.watch.taken, median(baseline)
        middle, tail = median(taken), sorted(taken)[int(len(taken) * 0.99)]
        verdict = "" if middle <= goal_us else "  MISSED"
        answers = f"{median(self.answers):9.0f} {max(self.answers):6}"
        return f"{name:<34} {answers} {middle:9.1f} {tail:9.1f} {rival:9.1f} {rival / middle:7.2f}{verdict}"


class World:
    """Things that are points, questions that are boxes, and brute force over both by numpy."""

    def __init__(self, things: int, questions: int, sample: int, share: float) -> None:
        dice = np.random.default_rng(7)
        self.things, self.questions, self.width = things, questions, share ** (1 / len(NAMES))
        self.points = dice.random((things + sample, len(NAMES)))
        self.lows = dice.random((questions + sample, len(NAMES))) * (1 - self.width)
        self.against, self.beside = Watch(), Watch()
        """What brute force takes for a thing, and for a question."""
        self.index, self.population = Index(), Population()
        for number in range(questions):
            self.index.add(number, self._question(number))
        for number in range(things):
            self.population.put(number, self._values(number))

    def _question(self, number: int) -> Filter:
        pairs = zip(NAMES, self.lows[number], strict=True)
        return filter_of(*(attribute(name, rng(float(low), float(low) + self.width)) for name, low in pairs))

    def _values(self, number: int) -> dict[str, float]:
        return dict(zip(NAMES, self.points[number].tolist(), strict=True))

    def asking(self, number: int) -> list[int]:
        point, low = self.points[number], self.lows[: self.questions]
        high = low + self.width
        with self.against:
            hits = np.flatnonzero(((low <= point) & (point <= high)).all(axis=1))
        return hits.tolist()

    def answering(self, number: int) -> list[int]:
        begin = self.lows[number]
        with self.beside:
            hits = np.flatnonzero(((begin <= self.points) & (self.points <= begin + self.width)).all(axis=1))
        return hits.tolist()

    def put(self, number: int, row: Row) -> list[int]:
        values = self._values(number)
        with row.watch:
            concerned = self.index.match(values).tolist()
            self.population.put(number, values)
        row.answers.append(len(concerned))
        return sorted(concerned)

    def ask(self, number: int, row: Row) -> list[int]:
        wanted = self._question(number)
        with row.watch:
            self.index.add(number, wanted)
            found = self.population.find(wanted)
        row.answers.append(len(found))
        return sorted(found)


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
    print(f"{things:,} things, {questions:,} questions, each answered by {given.share:.1%} of the things")
    world = World(things, questions, sample, given.share)
    added, added_cold, asked, asked_cold = Row(), Row(), Row(), Row()
    for insert, truth, first, warm, cold in (
        (world.put, world.asking, things, added, added_cold),
        (world.ask, world.answering, questions, asked, asked_cold),
    ):
        half, end = first + sample // 2, first + sample
        found = {number: insert(number, warm) for number in range(first, half)}
        assert all(truth(number) == one for number, one in found.items()), "an audience differs from brute force"
        for number in range(half, end):
            expected = truth(number)
            assert insert(number, cold) == expected, "an audience differs from brute force"
    print(f"{'':<34} {'answers':>9} {'most':>6} {'median us':>9} {'99 % us':>9} {'numpy us':>9} {'ratio':>7}")
    print(added.told("a thing comes", world.against.taken, GOAL_US))
    print(asked.told("a question comes", world.beside.taken, GOAL_US))
    print(added_cold.told("a thing comes, caches empty", world.against.taken))
    print(asked_cold.told("a question comes, caches empty", world.beside.taken))
    print(f"goal: {GOAL_US} us in the median; {2 * sample:,} audiences are those of brute force")
    return 0


if __name__ == "__main__":
    sys.exit(main())

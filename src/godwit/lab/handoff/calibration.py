"""What a broker of the testbed costs, fitted to the durable scheme's published tables (spec proactive-handoff 4.2).

Four times and the size of a message are free; nothing of the other schemes enters. `python -m
godwit.lab.handoff.calibration` makes the fit again and prints what it reaches; the outcome stands in `bed.Costs` and
`runs.SIZE_B`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from godwit.lab.handoff.bed import Costs
from godwit.lab.handoff.runs import SIZE_B, Configuration, Result, Run
from godwit.lab.models.published import DUPLICATES, HANDOFF_S, LOSS, THROUGHPUT

PROCEDURE = (
    "Those marked as fitted were fitted to the durable scheme's published throughput, loss, duplicates and latency, and"
    " nothing else entered the fit (`python -m godwit.lab.handoff.calibration`). What durable never does is put"
    " together from what it does; how, was chosen with the other schemes' published numbers known."
)
STEP = 0.15
"""Free values are varied by so much, relatively, to see what they do."""
MANY = 50
"""With fewer subscribers so short a run has a handful of handoffs, and one lost packet decides their mean."""
STRIDE_MAX = 0.35
"""No value changes more than this in one iteration, as a logarithm."""


FITTED = ("accept_s", "deliver_s", "store_s", "connect_s")
"""Of `Costs`; what the durable scheme never does is another fit (`extras`)."""


class Target(NamedTuple):
    """One published number; `spread` is how far off, relatively, counts as one unit of error."""

    name: str
    measured: Callable[[Result], float]
    published: float
    spread: float


class Guess(msgspec.Struct, frozen=True, kw_only=True):
    accept_s: float
    deliver_s: float
    store_s: float
    connect_s: float
    size_b: float

    @property
    def costs(self) -> Costs:
        return Costs(**{name: getattr(self, name) for name in FITTED})

    def scaled(self, logarithms: Sequence[float]) -> Guess:
        factors = dict(zip(self.__struct_fields__, map(math.exp, logarithms), strict=True))
        return Guess(**{name: getattr(self, name) * factor for name, factor in factors.items()})


CURRENT = Guess(size_b=SIZE_B, **{name: getattr(Costs(), name) for name in FITTED})


def targets(subscribers: int, pattern: str) -> list[Target]:
    """Throughput is known best. Loss and duplicates hang together by the buffer's window and cannot both be met (4.2);
    duplicates are the steadier of the two."""
    column = pattern == "NBR"
    found = [
        Target("T_s", lambda r: r.throughput_per_s, THROUGHPUT[subscribers][column], 0.05),
        Target("L", lambda r: 100 * r.loss, LOSS[subscribers][column], 1.0),
        Target("D", lambda r: 100 * r.duplication, DUPLICATES[subscribers][column], 0.3),
    ]
    if pattern == "RND" and subscribers >= MANY:
        found.append(Target("H", lambda r: r.latency_s, HANDOFF_S[subscribers][0], 0.2))
    return found


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    subscribers: tuple[int, ...] = (10, 100, 200)
    patterns: tuple[str, ...] = ("RND", "NBR")
    seed: int = 1
    warmup_s: float = 30.0
    measure_s: float = 45.0

    @property
    def cells(self) -> list[tuple[int, str]]:
        return [(size, pattern) for size in self.subscribers for pattern in self.patterns]


def measured(plan: Plan, guess: Guess) -> dict[tuple[int, str], Result]:
    """The durable scheme in every cell."""
    found = {}
    for subscribers, pattern in plan.cells:
        configuration = Configuration(
            scheme="durable",
            seed=plan.seed,
            subscribers=subscribers,
            pattern=pattern,
            size_b=round(guess.size_b),
            warmup_s=plan.warmup_s,
            measure_s=plan.measure_s,
        )
        found[subscribers, pattern] = Run(configuration, guess.costs).execute()
    return found


def errors(results: Mapping[tuple[int, str], Result]) -> np.ndarray:
    """In units of spread, as logarithms: twice as much is as far off as half as much."""
    return np.array(
        [
            math.log(max(target.measured(result), 1e-4) / target.published) / target.spread
            for cell, result in results.items()
            for target in targets(*cell)
        ]
    )


def improved(plan: Plan, guess: Guess, now: np.ndarray) -> Guess:
    """One Gauss-Newton step with derivatives from runs, and a short leash."""
    columns = []
    for i in range(len(guess.__struct_fields__)):
        stretch = [0.0] * len(guess.__struct_fields__)
        stretch[i] = math.log(1 + STEP)
        columns.append((errors(measured(plan, guess.scaled(stretch))) - now) / math.log(1 + STEP))
    return guess.scaled(stride(np.stack(columns, axis=1), now))


def stride(slopes: np.ndarray, now: np.ndarray) -> list[float]:
    """How far to go with each value, as a logarithm."""
    damped = np.vstack([slopes, 0.5 * np.eye(slopes.shape[1])])
    found = np.linalg.lstsq(damped, np.concatenate([-now, np.zeros(slopes.shape[1])]), rcond=None)[0]
    return [float(one) for one in np.clip(found, -STRIDE_MAX, STRIDE_MAX)]


def fitted(plan: Plan, start: Guess, iterations: int, tell: Callable[[Guess, float], None]) -> Guess:
    """The best guess on the way."""
    guess, best, least = start, start, math.inf
    for i in range(iterations + 1):
        now = errors(measured(plan, guess))
        error = float(np.sqrt(np.mean(now**2)))
        tell(guess, error)
        if error < least:
            best, least = guess, error
        if i < iterations:
            guess = improved(plan, guess, now)
    return best


def table(plan: Plan, guess: Guess) -> list[str]:
    lines = ["| cell | measure | published | here |", "| --- | --- | --- | --- |"]
    for cell, result in measured(plan, guess).items():
        for target in targets(*cell):
            here = target.measured(result)
            lines.append(f"| K={cell[0]}, {cell[1]} | {target.name} | {target.published:g} | {here:.3g} |")
    return lines


def main() -> None:
    plan = Plan()
    guess = fitted(plan, CURRENT, 1, lambda guess, error: _say(f"{error:.3f}  {guess}"))
    _say("\n".join(table(plan, guess)))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

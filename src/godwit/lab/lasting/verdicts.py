"""C20 to C23 of the content-routing spec, judged by counts of tests and by processor time.

Runs of one seed are given the same filters, so that they are compared seed by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

from godwit.lab.claims import Claim, Finding, judged, undecided
from godwit.lab.intervals import Interval, difference, interval_if_any
from godwit.lab.lasting.runs import Configuration, Result
from godwit.lab.results import Row
from godwit.tables.double import Effort, Sense

Rows = Sequence[Row[Configuration, Result]]
Measure = Callable[[Result], float]

PLACE = "content-routing 4.3"
COST = "four minutes of a core: godwit lab all --only lasting --size published"
CONSIDERABLY = 0.75
"""A quarter saved is what one sees in a curve without looking twice."""
SMALL = 0.5
"""Whoever saves more than half would not call it a small margin."""
SIGNIFICANT = 0.10
"""An overhead below a tenth disappears in the published curves."""
STRAIGHT = 0.98
"""The share of a curve's variance that a straight line explains before it counts as one."""

C20 = Claim(
    "C20",
    "With covering, the optimised double forest is considerably better than the plain one and than sets, in operations"
    " and in time.",
    PLACE,
    f"At 1000 + 1000 at most {CONSIDERABLY} of the better of the others in operations and less in time; at all smaller"
    " sizes fewer operations.",
)
C21 = Claim(
    "C21",
    "With overlap, the optimised double forest is better than sets, by a small margin.",
    PLACE,
    f"Fewer operations at every size, and at 1000 + 1000 more than {SMALL} of them.",
)
C22 = Claim(
    "C22",
    "Where all is preloaded, inserting takes constant time and no covering operation, for covering and overlap.",
    PLACE,
    "No test at all in any replication; the fewer, the more is preloaded, by intervals of the differences.",
    was="that tests become fewer was judged by means without their error",
)
C23 = Claim(
    "C23",
    "Random filters preloaded cost covering no significant overhead, and overlap linearly more.",
    PLACE,
    f"With covering less than {SIGNIFICANT:.0%} more operations at the most filters preloaded; with overlap a straight"
    f" line that explains {STRAIGHT:.0%} of each replication's variance.",
    was="whether it is a line was judged by the means alone, without an error",
)


def judge(rows: Rows) -> list[Finding]:
    return [_covering(rows), _overlap(rows), _preloaded(rows), _random(rows)]


def tests(result: Result) -> float:
    return result.tests


def took_s(result: Result) -> float:
    return result.took_s


def matching_a_pair(row: Row[Configuration, Result]) -> float:
    """The tests that match, by how many of the other kind are there when an input comes, of all inputs together."""
    one = row.configuration
    pairs = one.profiles * one.queries + one.preloaded * (one.profiles + one.queries)
    return (row.result.tests - row.result.placing) / pairs


def by_seed(rows: Rows, measure: Measure, **wanted: object) -> dict[int, float]:
    """The measure of the runs with these settings."""
    return {
        row.configuration.seed: measure(row.result)
        for row in rows
        if all(getattr(row.configuration, name) == value for name, value in wanted.items())
    }


def ratio(one: dict[int, float], other: dict[int, float]) -> Interval | None:
    """Seed by seed."""
    return interval_if_any(value / other[seed] for seed, value in one.items() if other.get(seed))


def sizes(rows: Rows) -> list[tuple[str, int, int]]:
    """What was varied, and how many there were of each kind, in E10."""
    found = {
        (one.varied, one.profiles, one.queries)
        for one in (row.configuration for row in rows)
        if one.experiment == "E10"
    }
    return sorted(found, key=lambda size: (size[0], size[1] + size[2]))


def _against(rows: Rows, measure: Measure, size: tuple[str, int, int], sense: Sense, rival: Effort) -> Interval | None:
    settings: dict[str, object] = dict(
        zip(("varied", "profiles", "queries"), size, strict=True), experiment="E10", sense=sense
    )
    own = by_seed(rows, measure, effort=Effort.BOUNDED, **settings)
    return ratio(own, by_seed(rows, measure, effort=rival, **settings))


def _below(found: Sequence[Interval | None], limit: float) -> bool | None:
    """Whether all are; None where one of them cannot be told."""
    known = [None if one is None else one.exceeds(limit) for one in found]
    if any(one is True for one in known):
        return False
    return None if not known or any(one is None for one in known) else True


def _covering(rows: Rows) -> Finding:
    rivals = (Effort.PLAIN, Effort.SETS)
    every = sizes(rows)
    if not every:
        return undecided(C20, "no runs of E10", COST)
    largest = max(every, key=lambda size: size[1] + size[2])
    at_largest = [_against(rows, tests, largest, Sense.COVER, rival) for rival in rivals]
    in_time = [_against(rows, took_s, largest, Sense.COVER, rival) for rival in rivals]
    elsewhere = [_against(rows, tests, size, Sense.COVER, rival) for size in every for rival in rivals]
    parts = (_below(at_largest, CONSIDERABLY), _below(in_time, 1.0), _below(elsewhere, 1.0))
    numbers = (
        f"of the plain forest's operations {at_largest[0]}, of the sets' {at_largest[1]}; of their time {in_time[0]}"
        f" and {in_time[1]}; largest share at any size {max((one.mean for one in elsewhere if one), default=1):.2f}"
    )
    return judged(C20, _all(parts), numbers, COST)


def _overlap(rows: Rows) -> Finding:
    every = sizes(rows)
    if not every:
        return undecided(C21, "no runs of E10", COST)
    found = [_against(rows, tests, size, Sense.OVERLAP, Effort.SETS) for size in every]
    largest = max(every, key=lambda size: size[1] + size[2])
    last = _against(rows, tests, largest, Sense.OVERLAP, Effort.SETS)
    is_small = None if last is None else last.exceeds(SMALL)
    numbers = f"of the sets' operations {last} at the largest size; largest share at any size " + (
        f"{max((one.mean for one in found if one), default=1):.2f}"
    )
    return judged(C21, _all((_below(found, 1.0), is_small)), numbers, COST)


def _preloaded(rows: Rows) -> Finding:
    levels = _levels(rows, "inputs")
    if len(levels) < 2:
        return undecided(C22, "no runs of E11 with preloaded inputs", COST)
    parts, told = [], []
    for sense in Sense:
        counts = [_counts(rows, "inputs", sense, level) for level in levels]
        parts += [not any(counts[-1].values()), *(_falls(more, less) for more, less in pairwise(counts))]
        told.append(f"{sense.value}: {', '.join(f'{fmean(count.values()):,.0f}' for count in counts)}")
    if levels[-1] < _inputs(rows):
        return undecided(C22, "no runs in which all inputs were preloaded", COST)
    numbers = f"operations with {', '.join(map(str, levels))} of each kind preloaded: {'; '.join(told)}"
    return judged(C22, _all(parts), numbers, COST)


def _falls(before: dict[int, float], after: dict[int, float]) -> bool | None:
    """Replication by replication."""
    less = difference(before, after)
    return None if less is None else less.is_positive


def _random(rows: Rows) -> Finding:
    levels = _levels(rows, "random")
    if len(levels) < 3:
        return undecided(C23, "fewer than three levels of random preloading", COST)
    none, most = (_counts(rows, "random", Sense.COVER, level) for level in (levels[0], levels[-1]))
    overhead = ratio(most, none)
    curve = [_counts(rows, "random", Sense.OVERLAP, level) for level in levels]
    line = _line(levels, curve)
    parts = (
        _below([overhead], 1 + SIGNIFICANT),
        None if line is None else line.exceeds(STRAIGHT),
        _falls(curve[-1], curve[0]),
    )
    numbers = (
        f"covering with {levels[-1]} preloaded: {overhead} times the operations of none; overlap"
        f" {', '.join(f'{fmean(count.values()):,.0f}' for count in curve)} at {', '.join(map(str, levels))}: a line"
        f" explains {line} of the variance"
    )
    return judged(C23, _all(parts), numbers, COST)


def _all(parts: Sequence[bool | None]) -> bool | None:
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def _levels(rows: Rows, varied: str) -> list[int]:
    wanted = [row.configuration for row in rows if row.configuration.experiment == "E11"]
    return sorted({one.preloaded for one in wanted if one.varied == varied})


def _inputs(rows: Rows) -> int:
    return max(row.configuration.profiles for row in rows if row.configuration.experiment == "E11")


def _counts(rows: Rows, varied: str, sense: Sense, preloaded: int) -> dict[int, float]:
    return by_seed(rows, tests, experiment="E11", varied=varied, sense=sense, preloaded=preloaded)


def _line(levels: Sequence[float], curve: Sequence[dict[int, float]]) -> Interval | None:
    """The share that a line explains, over replications that have every level."""
    whole = set.intersection(*(set(counts) for counts in curve))
    return interval_if_any(_straightness(levels, [counts[seed] for counts in curve]) for seed in sorted(whole))


def _straightness(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The share of the variance that a straight line explains."""
    x, y = fmean(xs), fmean(ys)
    common = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    spread_x, spread_y = sum((a - x) ** 2 for a in xs), sum((b - y) ** 2 for b in ys)
    return common * common / (spread_x * spread_y) if spread_x and spread_y else 0.0

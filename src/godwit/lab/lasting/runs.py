"""One run: profiles and queries go into a double forest in random order, and every test is counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

import msgspec

from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS, Counted
from godwit.filters.predicates import Values
from godwit.lab.workloads import Workload, random_filter
from godwit.sim.streams import Streams
from godwit.tables.double import STAND_IN, DoubleForest, Effort, Sense, Side
from godwit.tables.forests.forest import LOCAL, Forest

BOXES = Workload(filters=0, attributes_min=2, attributes_max=2, names=2)
"""Two ranges within 0 to 100 and one type, as published (spec 4.1)."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    experiment: str
    """E10, or E11."""
    sense: Sense
    effort: Effort
    profiles: int = 1000
    queries: int = 1000
    varied: str = "both"
    """What the published curve has on its axis: profiles, queries, both; in E11 what was preloaded: inputs, random."""
    preloaded: int = 0
    """Of each kind, before anything is counted."""


class Result(msgspec.Struct, frozen=True):
    tests: int
    """Covering and overlap tests of all insertions, those that place a filter in its own forest included."""
    pairs: int
    took_s: float
    """Of the processor."""
    placing: int = 0
    """Of the tests, those that place a filter in its own forest; counted where random filters were preloaded."""


def run(configuration: Configuration) -> Result:
    dice = Streams(configuration.seed)
    every = _drawn(configuration, dice)
    language = Counted[Filter, Values](FILTERS)
    double = DoubleForest(language, configuration.sense, configuration.effort)
    for side, wanted in _preloaded(configuration, every, dice):
        double.preload(side, [wanted])
    placing = _placing(configuration, every, dice) if configuration.varied == "random" else 0
    before, pairs, began = language.count.total(), 0, time.process_time()
    for number, (side, wanted) in enumerate(every):
        pairs += len(double.add(side, wanted, str(number)))
    return Result(language.count.total() - before, pairs, time.process_time() - began, placing)


def _placing(configuration: Configuration, every: list[tuple[Side, Filter]], dice: Streams) -> int:
    """The same filters in two forests that nothing is matched with."""
    language = Counted[Filter, Values](FILTERS)
    forests: dict[Side, Forest[Filter, Values]] = {side: Forest(language, LOCAL) for side in Side}
    for side, wanted in _preloaded(configuration, every, dice):
        forests[side].add(wanted, STAND_IN)
    before = language.count.total()
    for side, wanted in every:
        forests[side].add(wanted, STAND_IN)
    return language.count.total() - before


def _drawn(configuration: Configuration, dice: Streams) -> list[tuple[Side, Filter]]:
    """The larger set contains the smaller one of the same seed."""
    counts = {Side.PROFILES: configuration.profiles, Side.QUERIES: configuration.queries}
    every = [(side, one) for side, count in counts.items() for one in _filters(dice.stream(side.value), count)]
    dice.stream("order").shuffle(every)
    return every


def _preloaded(
    configuration: Configuration, every: list[tuple[Side, Filter]], dice: Streams
) -> Iterator[tuple[Side, Filter]]:
    for side in Side:
        stream = dice.stream("preloaded", side.value)
        if configuration.varied == "inputs":
            chosen = stream.sample([one for own, one in every if own is side], configuration.preloaded)
        else:
            chosen = list(_filters(stream, configuration.preloaded))
        yield from ((side, one) for one in chosen)


def _filters(dice: Random, count: int) -> Iterator[Filter]:
    return (random_filter(BOXES, dice) for _ in range(count))

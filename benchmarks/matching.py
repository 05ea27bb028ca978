"""How fast the compiled index matches, beside a vectorised brute force and the counting matcher in the same run.

    python benchmarks/matching.py                 every row, about ten minutes
    python benchmarks/matching.py --quick         smaller streams and no row of a million
    python benchmarks/matching.py --only flights  rows whose workload has the word in its name
    python benchmarks/matching.py --ways          where a batch of few events is matched one by one

Every row is checked: the reference rows id by id against the brute force, the others by `Filter.matches` on a sample.
Figures are the median of several passes over the same stream, one thread, ids emitted, batches of 256 events.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import workloads
from godwit.filters.areas import Box
from godwit.filters.predicates import Within
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.counting import Counting
from godwit.tables.matching.index import Index
from workloads import BATCH, Conjunctions, Workload, uniform

PASSES = 5
console = Console()


EVENT_GOALS = {(10_000, 0.001): 20, (10_000, 0.01): 40, (100_000, 0.001): 60, (100_000, 0.01): 150}
"""Microseconds for one event, by subscriptions and the share of them that match."""


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def build(load: Workload) -> tuple[Index, float]:
    index = Index()
    ids = list(range(len(load.filters)))
    return index, seconds(lambda: index.add_many(ids, load.filters))


def index_rate(index: Index, load: Workload) -> tuple[float, float]:
    """Events a second, and matches an event."""
    batches = load.batches()
    found = 0

    def one_pass() -> None:
        nonlocal found
        found = 0
        for batch in batches:
            found += len(index.match_batch(Batch.from_arrow(batch)).ids)

    one_pass()
    times = [seconds(one_pass) for _ in range(PASSES)]
    return len(load.events) / statistics.median(times), found / len(load.events)


def brute(arrays: Conjunctions, row: int) -> np.ndarray[Any, Any]:
    """Every subscription against one event, vectorised over the subscriptions."""
    values = arrays.events[row][arrays.column]
    return np.nonzero(((values >= arrays.low) & (values <= arrays.high)).all(axis=1))[0]


def brute_rate(load: Workload) -> float | None:
    arrays = load.arrays
    if arrays is None:
        return None
    rows = min(len(load.events), max(5, 2_000_000 // len(load.filters)))
    brute(arrays, 0)
    return rows / statistics.median(seconds(lambda: [brute(arrays, row) for row in range(rows)]) for _ in range(3))


def counting_rate(load: Workload, at_most: int = 10_000) -> float | None:
    """The counting matcher is filled one filter at a time and grows with the matches: rows beyond `at_most` skip it."""
    if len(load.filters) > at_most:
        return None
    table = Counting()
    for number, wanted in enumerate(load.filters):
        table.add(wanted, str(number))
    rows = load.rows()[:200]
    return len(rows) / seconds(lambda: [table.match(row) for row in rows])


def verify(index: Index, load: Workload, samples: int = 64) -> str:
    """Raise unless the index says what the oracle says; return how much was compared."""
    if load.arrays is not None:
        for batch_number, batch in enumerate(load.batches()[:4]):
            matches = index.match_batch(Batch.from_arrow(batch))
            for row in range(len(batch)):
                np.testing.assert_array_equal(np.sort(matches[row]), brute(load.arrays, batch_number * BATCH + row))
        return f"{min(4 * BATCH, len(load.events)):,} events, every id"
    rows = load.rows()[:samples]
    chosen = random.Random(0).sample(range(len(load.filters)), min(2_000, len(load.filters)))
    matches = index.match_batch(Batch.from_arrow(load.batches(samples)[0]))
    for row, values in enumerate(rows):
        got = set(matches[row].tolist())
        wanted = {i for i in chosen if load.filters[i].matches(values)}
        assert got & set(chosen) == wanted, f"{load.name}: event {row} differs"
    return f"{len(rows)} events x {len(chosen):,} filters"


def strtree_rate(load: Workload) -> float:
    """shapely's STRtree on the same boxes and circles (as 64-gons in degrees), the same batches."""
    import shapely

    shapes = []
    for wanted in load.filters:
        (within,) = wanted.attributes[0].clause
        assert isinstance(within, Within)
        area = within.area
        if isinstance(area, Box):
            shapes.append(shapely.box(area.west, area.south, area.east, area.north))
        else:
            shapes.append(shapely.Point(area.lon, area.lat).buffer(area.radius_m / 111_195, quad_segs=16))
    tree = shapely.STRtree(shapes)
    points = shapely.points(load.events["lon"].to_numpy(), load.events["lat"].to_numpy())

    def one_pass() -> None:
        for start in range(0, len(points), BATCH):
            tree.query(points[start : start + BATCH], predicate="within")

    one_pass()
    return len(points) / statistics.median(seconds(one_pass) for _ in range(3))


def batch_table(loads: list[Callable[[], Workload]]) -> Table:
    table = Table(title="Matching, batches of 256, one thread")
    for column in (
        "workload",
        "subscriptions",
        "matches/event",
        "events/s",
        "goal",
        "brute force",
        "counting",
        "ratio",
        "checked",
    ):
        table.add_column(column, justify="left" if column in ("workload", "checked") else "right")
    for make in loads:
        load = make()
        with console.status(f"{load.name}: {len(load.filters):,} subscriptions"):
            index, _ = build(load)
            checked = verify(index, load)
            rate, matches = index_rate(index, load)
            slow, counted = brute_rate(load), counting_rate(load)
            if load.name.startswith("areas"):
                slow, load.note = strtree_rate(load), " (STRtree)"
        baseline = max(filter(None, (slow, counted)), default=None)
        ratio = f"{rate / baseline:,.1f}" if baseline else "-"
        goal = f"{load.goal:,.0f} ({rate / load.goal:.2f})" if load.goal else "-"
        cells = [f"{v:,.0f}" if v else "-" for v in (slow, counted)]
        table.add_row(
            load.name,
            f"{len(load.filters):,}",
            f"{matches:,.1f}",
            f"{rate:,.0f}",
            goal,
            cells[0] + load.note,
            cells[1],
            ratio,
            checked,
        )
        console.print(f"  {load.name}: {rate:,.0f} events/s")
        del index, load
        gc.collect()
    return table


def singles_table(subscriptions: int) -> Table:
    """What a broker feels: one event, one insert, one remove at a time."""
    load = workloads.uniform(subscriptions, 0.001, events=2_000)
    index, built = build(load)
    rows = load.rows()
    for row in rows[:200]:
        index.match(row)
    match = [seconds(lambda row=row: index.match(row)) * 1e6 for row in rows]  # type: ignore[misc]
    more = workloads.uniform(2_000, 0.001, events=1, seed=2).filters
    first = len(load.filters)
    add = [seconds(lambda i=i, f=f: index.add(first + i, f)) * 1e6 for i, f in enumerate(more)]  # type: ignore[misc]
    remove = [seconds(lambda i=i: index.remove(first + i)) * 1e6 for i in range(len(more))]  # type: ignore[misc]
    naive = [seconds(lambda row=row: [f for f in load.filters if f.matches(row)]) * 1e6 for row in rows[:5]]  # type: ignore[misc]
    table = Table(title=f"Single operations at {subscriptions:,} subscriptions, microseconds")
    for column in ("operation", "median", "99 %", "worst", "goal", "naive matcher"):
        table.add_column(column, justify="left" if column == "operation" else "right")
    plain = f"{statistics.median(naive):,.0f}"
    for name, times, goal, base in (
        ("match one event", match, "40" if subscriptions == 10_000 else "-", plain),
        ("insert", add, "50", "-"),
        ("remove", remove, "50", "-"),
    ):
        quantiles = np.quantile(times, [0.5, 0.99, 1.0])
        table.add_row(name, *(f"{q:,.1f}" for q in quantiles), goal, base)
    table.add_row("build", f"{built:.2f} s in all", "", "", "1 s for 100,000", "")
    return table


def event_us(call: Callable[[Any], object], events: Iterable[Any], passes: int = PASSES) -> float:
    """Microseconds of the processor for one of these events: the median of each one's best of some passes."""
    best: dict[int, float] = {}
    for _ in range(passes):
        for at, event in enumerate(events):
            begun = time.thread_time_ns()
            call(event)
            best[at] = min(best.get(at, inf), (time.thread_time_ns() - begun) / 1e3)
    return statistics.median(best.values())


@cache
def single_us(subscriptions: int, share: float) -> dict[str, float]:
    """What one event costs the index, and brute force over arrays, in the same run; and how many want one."""
    load = workloads.uniform(subscriptions, share, events=1_000)
    index, _ = build(load)
    rows, arrays = load.rows(), load.arrays
    assert arrays is not None
    found = sum(len(index.match(row)) for row in rows) / len(rows)
    return {
        "godwit": event_us(index.match, rows),
        "brute force": event_us(partial(brute, arrays), range(100), 3),
        "found": found,
    }


def events_table() -> Table:
    """One event at a time, at three sizes, beside brute force over arrays in the same run."""
    table = Table(title="One event at a time, microseconds of the processor")
    for column in ("workload", "matches/event", "index", "goal", "brute force", "ratio"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    for subscriptions, share in ((n, s) for n in (1_000, 10_000, 100_000) for s in (0.001, 0.01)):
        told = single_us(subscriptions, share)
        ours, theirs, goal = told["godwit"], told["brute force"], EVENT_GOALS.get((subscriptions, share))
        cells = (f"{told['found']:,.1f}", f"{ours:,.1f}", f"{goal}" if goal else "-", f"{theirs:,.0f}")
        table.add_row(f"{subscriptions:,}, {share:.1%} match", *cells, f"{theirs / ours:.1f}")
    return table


def ways_table() -> Table:
    """Batches of several sizes both ways, and which the index takes: what its constants of cost rest on.

    Times are those of the processor, for a whole batch, without the making of it.
    """
    table = Table(title="Batches one by one and as a slice, median milliseconds")
    for column in ("workload", "events", "reached by one", "cuts", "one by one", "as a slice", "taken"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    loads = [uniform(n, share, events=1_024) for n in (10_000, 100_000) for share in (0.001, 0.01)]
    for load in [*loads, workloads.fences(100_000, 1_024)]:
        index, _ = build(load)
        for size in (8, 32, 100, 256):
            batches = [Batch.from_arrow(one) for one in load.batches(size)[:12]]
            times = {True: list[float](), False: list[float]()}
            for batch in batches:
                for apart, taken in times.items():
                    taken.append(way_seconds(index, batch, apart=apart))
            matcher = index._matcher
            (_, source), *_ = matcher._sources(batches[0])
            few, cuts = matcher._are_few(size, matcher._cuts(source)), matcher._cuts(source)
            cells = (f"{statistics.median(times[apart]) * 1e3:.2f}" for apart in (True, False))
            taken_way = "one by one" if few else "slice"
            table.add_row(load.name, f"{size}", f"{matcher._reach:,.0f}", f"{cuts:,}", *cells, taken_way)
    return table


def way_seconds(index: Index, batch: Batch, *, apart: bool) -> float:
    matcher = index._matcher
    (piece, source), *_ = matcher._sources(batch)
    began = time.process_time()
    matcher._match(piece, source, 0, piece.length, [], [], apart=apart)
    return time.process_time() - began


def memory_line(load: Workload) -> str:
    index, built = build(load)
    each = index.nbytes / len(load.filters)
    return f"{len(load.filters):,} subscriptions: {each:.0f} bytes each (goal 300), built in {built:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller streams, no row of a million subscriptions")
    parser.add_argument("--only", default="", metavar="WORD", help="only rows whose workload has this in its name")
    parser.add_argument("--data", type=Path, default=workloads.DATA, help="the folder of the recorded flights")
    parser.add_argument("--singles", action="store_true", help="only single events beside brute force")
    parser.add_argument("--ways", action="store_true", help="only small batches, one by one and as a slice")
    options = parser.parse_args()
    if options.singles or options.ways:
        console.print(events_table() if options.singles else ways_table())
        return
    scale = 4 if options.quick else 1
    many, few = 25_600 // scale, 10_240 // scale
    size, stream = 100_000 // scale, 5_120 // scale
    loads: list[Callable[[], Workload]] = [
        partial(uniform, 10_000, 0.01, events=many, goal=200_000),
        partial(uniform, 10_000, 0.001, events=many, goal=300_000),
        partial(uniform, 100_000, 0.01, events=few, goal=40_000),
        partial(uniform, 100_000, 0.001, events=few, goal=120_000),
        *([] if options.quick else [partial(uniform, 1_000_000, 0.0001, events=2_560, goal=20_000)]),
        *(partial(shape, size, stream) for shape in workloads.SHAPES),
    ]
    if (options.data / workloads.FLIGHTS).exists():
        loads += [
            partial(workloads.flights, count, rows, options.data)
            for count, rows in ((10_000, 5 * stream), (size, stream))
        ]
    else:
        console.print(f"flights: skipped, there is no {options.data / workloads.FLIGHTS}; --data names its folder")
    if options.only:
        loads = [make for make in loads if options.only in make.func.__name__]  # type: ignore[attr-defined]
    console.print(batch_table(loads))
    if not options.only:
        for subscriptions in (10_000, 100_000):
            console.print(singles_table(subscriptions))
        console.print(events_table())
        if not options.quick:
            console.print(memory_line(workloads.uniform(1_000_000, 0.0001, events=1)))
    console.print(f"pyarrow {pa.__version__}, numpy {np.__version__}")


if __name__ == "__main__":
    main()

"""X2 and X10 of the published evaluation with real brokers and real clients on this machine, smaller and faster.

Six broker processes, one publisher that waits for its broker, subscribers that move as in 4.3 with all times divided by
twenty. What the published testbed had and this has not is the wireless link, and buffers that overflow.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec

from godwit.lab.deployed.account import late, mean, middle
from godwit.lab.deployed.crowd import Crowd, Itinerary, Plan, Step
from godwit.lab.models.published import DUPLICATES, HANDOFF_S, LOSS, THROUGHPUT
from godwit.lab.models.topology import complete, six_brokers
from godwit.lab.pages import Page, Table
from godwit.lab.results import Results
from godwit.net.processes import agreed, cluster, rested

SCHEMES = ("durable", "reactive", "proactive")
PATTERNS = ("RND", "NBR")
NAMES = tuple(f"B{number}" for number in range(1, 7))


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    scheme: str
    seed: int
    subscribers: int
    pattern: str = "RND"
    connect_s: float = 3.0
    disconnect_s: float = 0.6
    handoff_s: float = 0.15
    sleep_s: float = 0.02
    """About the rate that 4.2 derives: what slows the publisher down there does not exist here."""
    size_b: int = 3_500
    warmup_s: float = 10.0
    measure_s: float = 30.0


class Result(msgspec.Struct, kw_only=True):
    """The metrics of 4.4 that a client sees."""

    published: int
    owed: int
    lost: int
    received: int
    duplicated: int
    disordered: int
    throughput_per_s: float
    """Unique events."""
    loss: float
    duplication: float
    delay_s: float
    latency_s: float
    """H: from asking to be let in at another broker to the first event there."""
    latency_median_s: float
    let_in_s: float
    """Until the broker had the session, in the median; H also waits for an event that is wanted."""
    let_in_95_s: float
    handoffs: int
    load: float
    """How many programs waited for this machine's processors, as it said afterwards."""


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    subscribers: tuple[int, ...] = (10, 50)
    seeds: int = 1
    schemes: tuple[str, ...] = SCHEMES
    warmup_s: float = 10.0
    measure_s: float = 30.0

    def cells(self) -> list[Configuration]:
        return [
            Configuration(
                scheme=scheme,
                seed=seed,
                subscribers=size,
                pattern=pattern,
                warmup_s=self.warmup_s,
                measure_s=self.measure_s,
            )
            for size in self.subscribers
            for seed in range(1, self.seeds + 1)
            for pattern in PATTERNS
            for scheme in self.schemes
        ]


QUICK = Grid(subscribers=(10,), warmup_s=4.0, measure_s=8.0)


def itinerary(configuration: Configuration, number: int) -> Itinerary:
    """4.3: half disconnect, half handoff; of the disconnected half return to the same broker."""
    dice = Random(f"{configuration.seed}/moves/{number}")
    graph = six_brokers() if configuration.pattern == "NBR" else complete(NAMES)
    here = NAMES[number % len(NAMES)]
    while True:
        stay_s, away_s, back = dice.expovariate(1 / configuration.connect_s), 0.0, False
        if dice.random() < 0.5:
            away_s = dice.expovariate(1 / configuration.disconnect_s)
            back = dice.random() < 0.5
        if not back:
            away_s += dice.expovariate(1 / configuration.handoff_s)
            here = dice.choice(graph[here])
        yield Step(stay_s, away_s, NAMES.index(here))


def plan_of(configuration: Configuration) -> Plan:
    return Plan(
        subscribers=configuration.subscribers,
        warmup_s=configuration.warmup_s,
        seconds=configuration.measure_s,
        sleep_s=configuration.sleep_s,
        payload_b=configuration.size_b,
        drain_s=5.0,
        seed=configuration.seed,
    )


def run(configuration: Configuration) -> Result:
    return asyncio.run(_run(configuration))


async def _run(configuration: Configuration) -> Result:
    with tempfile.TemporaryDirectory(prefix="godwit-deployed-") as folder:
        brokers = cluster(list(NAMES), Path(folder), {"handoff": configuration.scheme, "handoff_wait_s": 60})

        async def settled() -> None:
            await agreed(brokers)
            await rested(brokers)

        crowd = Crowd(
            plan_of(configuration),
            [broker.port for broker in brokers],
            lambda number: itinerary(configuration, number),
            settled,
        )
        try:
            await asyncio.gather(*(broker.start() for broker in brokers))
            found = await crowd.run()
        finally:
            await asyncio.gather(*(broker.kill() for broker in brokers))
    unique = found.received - found.duplicated
    return Result(
        published=crowd.measured,
        owed=found.owed,
        lost=found.lost,
        received=found.received,
        duplicated=found.duplicated,
        disordered=found.out_of_order,
        throughput_per_s=unique / configuration.measure_s,
        loss=found.lost / found.owed if found.owed else 0.0,
        duplication=found.duplicated / found.received if found.received else 0.0,
        delay_s=found.delays_s["mean"],
        latency_s=mean(found.first_s),
        latency_median_s=middle(found.first_s),
        let_in_s=middle(found.let_in_s),
        let_in_95_s=late(found.let_in_s),
        handoffs=found.moves,
        load=os.getloadavg()[0],
    )


def results(path: Path) -> Results[Configuration, Result]:
    return Results(path, Configuration, Result)


Cells = Mapping[tuple[int, str, str], Sequence[Result]]
"""By subscribers, scheme and pattern."""


def page(grid: Grid, kept: Results[Configuration, Result], command: str) -> Page:
    cells: dict[tuple[int, str, str], list[Result]] = {}
    for row in kept.of(grid.cells()):
        key = row.configuration.subscribers, row.configuration.scheme, row.configuration.pattern
        cells.setdefault(key, []).append(row.result)
    loads = [one.load for found in cells.values() for one in found]
    size_b = Configuration(scheme="", seed=0, subscribers=0).size_b
    lead = (
        f"Six broker processes and MQTT clients on one machine of {os.cpu_count()} processors, {grid.seeds} runs of"
        f" each cell, {grid.measure_s:g} s measured after {grid.warmup_s:g} s; times of stay and absence a twentieth"
        f" of the published ones, {size_b} B an event. Published numbers in brackets. The machine's load was"
        f" {min(loads):.1f} to {max(loads):.1f}. Made by `{command}`."
    )
    tables = [
        _table("X10: throughput, msg/s", grid, cells, lambda one: one.throughput_per_s, THROUGHPUT, ".1f"),
        _table("X10: loss, %", grid, cells, lambda one: 100 * one.loss, LOSS, ".2f"),
        _table("X10: duplicates, %", grid, cells, lambda one: 100 * one.duplication, DUPLICATES, ".2f"),
        _handoffs(grid, cells),
    ]
    return Page("Handoff: deployed brokers", lead, [], tables)


def _table(
    title: str,
    grid: Grid,
    cells: Cells,
    quantity: Callable[[Result], float],
    published: Mapping[int, tuple[float, ...]],
    form: str,
) -> Table:
    header = ["K", *(f"{scheme} {pattern}" for scheme in SCHEMES for pattern in PATTERNS)]
    rows = []
    for size in grid.subscribers:
        row = [f"{size}"]
        for at, (scheme, pattern) in enumerate((scheme, pattern) for scheme in SCHEMES for pattern in PATTERNS):
            found = cells.get((size, scheme, pattern), ())
            told = f"{mean([quantity(one) for one in found]):{form}}" if found else "-"
            row.append(told + (f" ({published[size][at]:{form}})" if size in published else ""))
        rows.append(row)
    return Table(title, "Deployed, and published where there is a number.", header, rows)


def _handoffs(grid: Grid, cells: Cells) -> Table:
    rows = []
    for size in grid.subscribers:
        for at, scheme in enumerate(SCHEMES):
            for pattern in PATTERNS:
                found = cells.get((size, scheme, pattern), ())
                if not found:
                    continue
                said = f" ({HANDOFF_S[size][at]:.3f})" if size in HANDOFF_S and pattern == "RND" else ""
                rows.append(
                    [
                        f"{size}",
                        scheme,
                        pattern,
                        f"{mean([one.latency_s for one in found]):.4f}{said}",
                        f"{mean([one.latency_median_s for one in found]):.4f}",
                        f"{mean([one.let_in_s for one in found]):.4f}",
                        f"{mean([one.let_in_95_s for one in found]):.4f}",
                        f"{sum(one.disordered for one in found)}",
                        f"{sum(one.handoffs for one in found)}",
                    ]
                )
    header = ["K", "scheme", "pattern", "H, mean", "H, median", "let in, median", "95 %", "out of order", "handoffs"]
    note = (
        "Seconds. H is the time to the first event at the new broker, in RND as published; a client that nothing waits"
        " for waits for the next event that it wants. `let in` is the time until the broker has the session."
    )
    return Table("X2: handoff latency", note, header, rows)

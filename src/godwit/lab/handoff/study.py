"""The study of handoff: the published experiments in three readings of their channel, and what they predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from godwit.lab.handoff import report
from godwit.lab.handoff.bed import Air, Costs
from godwit.lab.handoff.evidence import Evidence
from godwit.lab.handoff.extras import FITTED, SHARED
from godwit.lab.handoff.grid import JUDGED, PUBLISHED, PUBLISHED_SCHEMES, QUICK, SHORT, Grid, all_readings, readings
from godwit.lab.handoff.results import Results, Row
from godwit.lab.handoff.runs import Configuration, run
from godwit.lab.handoff.verdicts import over_readings
from godwit.lab.pages import Table
from godwit.lab.studies import Outcome, Parameter, Study, spanned

PLANS: Mapping[str, Grid] = {
    "quick": Grid(
        subscribers=(10, 100),
        base=50,
        seeds=2,
        first_seed=401,
        schemes=PUBLISHED_SCHEMES,
        experiments=JUDGED,
        warmup_s=QUICK.warmup_s,
        measure_s=QUICK.measure_s,
        sleeps_s=(1.0,),
        queues_mb=(4.0,),
        lean=True,
        quick=True,
    ),
    "short": SHORT,
    "published": PUBLISHED,
}


def outcome(rows: Sequence[Row], size: str) -> Outcome:
    grid = PLANS[size]
    known = {row.configuration: row for row in rows}
    by_reading = {
        name: Evidence([known[cell] for cell in own.cells() if cell in known], own.base, quick=grid.quick)
        for name, own in readings(grid).items()
    }
    tables: list[Table] = []
    for name, evidence in by_reading.items():
        if evidence.sizes_of("durable"):
            tables += [_named(name, table) for table in report.published_tables(evidence)]
    seeds = sorted({row.configuration.seed for row in rows})
    return Outcome(
        lead=(
            f"{len(rows)} runs. Durable, reactive and pro-active handoff in an emulation of the published testbed, in"
            f" {len(by_reading)} readings of its channel and of durable's store: {'; '.join(by_reading)}."
            f" {grid.warmup_s:g} s of warm-up and"
            f" {grid.measure_s:g} s measured, up to {grid.seeds} seeds; {grid.base} subscribers where something else"
            " varies. Published numbers stand in brackets. Three costs that the durable scheme never has were fitted to"
            " X2 and X10 with 100 subscribers; everything else is predicted, and the fit does not meet X2 and X10."
            + (" Runs of this size are shorter than a buffer takes to fill: they refute nothing." if grid.quick else "")
        ),
        findings=over_readings(by_reading),
        tables=tables,
        parameters=parameters(grid),
        seeds=spanned(seeds),
        figures=partial(_figures, by_reading),
    )


def _named(reading: str, table: Table) -> Table:
    return Table(f"{table.title}: {reading}", table.note, table.header, table.rows)


def _figures(by_reading: Mapping[str, Evidence]) -> Mapping[str, bytes]:
    from godwit.lab.handoff.figures import drawn

    return {
        f"{caption}: {name}": png
        for name, evidence in by_reading.items()
        if evidence.sizes_of("durable") and evidence.sizes_of("proactive")
        for caption, png in drawn(evidence).items()
    }


def parameters(grid: Grid) -> list[Parameter]:
    costs, air = Costs(), Air()
    return [
        Parameter("brokers, patterns, times of stay, queue, selectors", "as published", "text"),
        Parameter("channel", "one of 11 Mb/s for all; one for each cell", "text (total bandwidth); ours"),
        Parameter("size of a message", f"{SHARED['size_b']} B; 2,400 B", "the most the channel carries; fitted"),
        Parameter(
            "what a stored event occupies, durable", f"{SHARED['stored']} times its size; 1 and 4 times", "free, varied"
        ),
        Parameter("publication at a broker", f"{costs.accept_s * 1e3:g} ms", "fitted to durable"),
        Parameter("delivery", f"{costs.deliver_s * 1e3:g} ms", "fitted to durable"),
        Parameter("storing", f"{costs.store_s * 1e3:g} ms", "fitted to durable"),
        Parameter("connection", f"{costs.connect_s * 1e3:g} ms", "fitted to durable"),
        *(Parameter(name, f"{1e3 * value:.2f} ms", "fitted to X2 and X10, K=100") for name, value in FITTED.items()),
        Parameter(
            "delay and loss on the air", f"{air.delay_s[0] * 1e3:g} to {air.delay_s[1] * 1e3:g} ms, 0.5 %", "spec"
        ),
        Parameter("warm-up and measured time", f"{grid.warmup_s:g} s and {grid.measure_s:g} s", "ours"),
        Parameter(
            "deployed broker",
            "disks, links and messages only: its machines take no time; its publisher says 20 events a second at most,"
            " so that its throughput is the publisher's",
            "ours",
        ),
    ]


def cost_s(one: Configuration) -> float:
    """Measured on one of two shared cores: by events; a publisher that sleeps leaves moves only."""
    per_s = 1e-3 if one.scheme == "product" else 1.8e-4 if not one.sleep_s else 4e-6
    return per_s * one.subscribers * (one.warmup_s + one.measure_s) + 0.2


STUDY = Study(
    name="handoff",
    title="Handoff: durable, reactive, pro-active",
    spec="proactive-handoff",
    runs=lambda size: all_readings(PLANS[size]),
    work=run,
    cost_s=cost_s,
    kept=Results,
    outcome=outcome,
    named=lambda one: f"K={one.subscribers} {one.scheme}",
    strand=lambda one: "the deployed broker" if one.scheme == "product" else "",
)

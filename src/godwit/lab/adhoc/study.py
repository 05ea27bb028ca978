"""The study of brokers without infrastructure: the published evaluation in every reading of how the air is shared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from godwit.lab.adhoc import readings, waits
from godwit.lab.adhoc.evidence import delivery, overhead
from godwit.lab.adhoc.plan import CREDITS, Plan, receptions_per_s
from godwit.lab.adhoc.runs import Configuration, Result, run
from godwit.lab.adhoc.verdicts import GossipCurve
from godwit.lab.pages import Table
from godwit.lab.results import Results, Row
from godwit.lab.studies import Outcome, Parameter, Study, spanned

AdhocRow = Row[Configuration, Result]

PLANS: Mapping[str, Plan] = {
    "quick": Plan(
        seeds=2,
        first_seed=301,
        warm_s=40.0,
        measure_s=40.0,
        rates_per_s=(0.1, 0.5, 2.5),
        speeds_mps=(1.0, 15.0, 40.0),
        sizes=(50, 100),
        densities=(50, 100, 150),
        heavy=1500.0,
        heavy_s=20.0,
        heavy_seeds=2,
        quick=True,
    ),
    "short": readings.SHORT,
    "published": msgspec.structs.replace(readings.PUBLISHED, densities=(50, 100, 150, 200, 300, 400)),
}


BESIDE = " What was not run at this size in a reading is shown there as the size short has it, which is then named."


def outcome(rows: Sequence[AdhocRow], size: str) -> Outcome:
    plan = PLANS[size]
    known = readings.known(plan, rows)
    seeds = sorted({row.configuration.seed for row in rows})
    cpu_s = sum(row.result.cpu_s for row in rows)
    return Outcome(
        lead=(
            f"{len(rows)} runs, {cpu_s:.0f} s of processor time. Gossip and proximity-driven routing,"
            f" {plan.measure_s:g} s measured after {plan.warm_s:g} s, {len(seeds)} seeds; settings with more than"
            f" {plan.heavy:g} receptions a second {plan.heavy_s:g} s and up to {plan.heavy_seeds} seeds. Published are"
            " numbers without the length of a run; the spec suggests 300 s and ten seeds. Each claim is judged on the"
            " radio with 802.11's slots, for four longest waits of gossip, and on one that senses at once."
            f"{BESIDE if size == 'published' else ''}"
        ),
        findings=readings.findings(plan, rows),
        tables=[waits.published(known), waits.table(known), _gossip(known), _headline(known)],
        parameters=PARAMETERS,
        seeds=spanned(seeds),
        figures=partial(_figures, known),
    )


def _figures(known: readings.Known) -> Mapping[str, bytes]:
    from godwit.lab.adhoc.figures import drawn, swept

    return {**swept(known), **drawn(known[readings.TEXTS][0])}


def _gossip(known: readings.Known) -> Table:
    rows = []
    for name, sizes in known.items():
        curve = next((found for own in sizes if (found := GossipCurve(own)).seeds), None)
        if curve is not None:
            points = zip(curve.mean(delivery), curve.mean(overhead), strict=True)
            rows.append(
                (name, str(len(curve.seeds)), *(f"{d:.2f} at {o:.1f}" for d, o in points), str(curve.sigmoid()))
            )
    some = known[readings.TEXTS][0]
    header = ("reading", "seeds", *(f"p {p:g}" for p in some.plan.probabilities), "fitted sigmoid")
    note = "Delivery and packets per delivery of gossip in the default scenario, means over seeds."
    return Table("Gossip over its probability (E1, E2)", note, header, rows)


def _headline(known: readings.Known) -> Table:
    rows = []
    for name in (readings.TEXTS, readings.NO_SLOTS):
        evidence = known[name][0]
        for count in CREDITS:
            cell = evidence.plan.cell(credits=count)
            delivered, cost = evidence.mean(delivery, cell), evidence.mean(overhead, cell)
            if delivered is not None:
                published = " [0.70 at 2.5]" if not count else ""
                rows.append((name, str(count), f"{delivered} at {cost}{published}"))
    note = "Proximity-driven routing: delivery at packets per delivery; the published point in brackets."
    return Table("Credits (E2)", note, ("reading", "credits", "delivery at cost"), rows)


PARAMETERS = (
    Parameter("nodes, field, speeds, roles, rates, beacons", "100 in 1 km2, 10-20 m/s, 2 and 10, 0.5/s, 5 s", "text"),
    Parameter("radio", "two-ray ground, ranges drawn once a node, 100 to 200 m", "text; once a node is the spec's"),
    Parameter("sharing the air", "802.11 slots of 20 us, or sensing at once, varied", "text names 802.11; ours"),
    Parameter("longest wait of gossip", "0, 0.02, 0.05, 0.1 ms; 10 ms without slots", "ours: the text has none"),
    Parameter("payload, bit rate", "400 B, 2 Mb/s", "spec"),
    Parameter("longest delay, jitter", "0.3 s, a tenth of it", "spec"),
)


def kept(path: Path) -> Results[Configuration, Result]:
    return Results(path, Configuration, Result)


def cost_s(one: Configuration) -> float:
    """Measured on one of two shared cores: by receptions."""
    per_s = 0.002 + 1.1e-7 * receptions_per_s(one) * math.sqrt(one.nodes)
    return float(per_s * (one.warm_s + one.measure_s + one.drain_s))


STUDY = Study(
    name="adhoc",
    title="Proximity-driven routing without infrastructure",
    spec="manet-cbr",
    runs=lambda size: readings.runs(PLANS[size]),
    work=run,
    cost_s=cost_s,
    kept=kept,
    outcome=outcome,
    named=lambda one: f"{one.nodes} nodes, {one.protocol}",
)

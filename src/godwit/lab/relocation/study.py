"""The study of relocation in routing networks, as one of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from godwit.lab.relocation import report
from godwit.lab.relocation.evidence import Evidence
from godwit.lab.relocation.plan import PUBLISHED, QUICK, SHORT, Plan, cost, named
from godwit.lab.relocation.runs import DEPLOYED, Configuration, Result, run
from godwit.lab.results import Results, Row
from godwit.lab.studies import Outcome, Parameter, Study, reported

NAME = "relocation"
PLANS: Mapping[str, Plan] = {"quick": QUICK, "short": SHORT, "published": PUBLISHED}


def outcome(rows: Sequence[Row[Configuration, Result]], size: str) -> Outcome:
    evidence = Evidence(PLANS[size], rows)
    page = report.page(evidence, len(rows), f"godwit lab all --only {NAME} --size {size}")
    plan = PLANS[size]
    seeds = f"{plan.seeds} topologies with {plan.handovers} handovers each, numbered from 1"
    if plan.further:
        seeds += f"; {plan.further} more for the ratio of latencies"
    if plan.fresh:
        first = plan.seeds + plan.further + 1
        seeds += f"; {plan.fresh} from {first} on for C12 and C14, and {2 * plan.fresh} for C15's covering and C17"
    return reported(page, PARAMETERS, seeds, partial(_figures, evidence))


def _figures(evidence: Evidence) -> Mapping[str, bytes]:
    from godwit.lab.relocation.figures import drawn

    return drawn(evidence)


def kept(path: Path) -> Results[Configuration, Result]:
    return Results(path, Configuration, Result)


PARAMETERS = (
    Parameter("brokers, systems, subscribers, producers, absence", "100, 4, 50, 1, 30 min", "text"),
    Parameter("ping period, longest delay, processing at a node", "100 ms, 25.7 ms, 2 ms", "text"),
    Parameter("how routers are joined within a system", "preferential attachment, two links", "ours"),
    Parameter("what subscribers want", "all the same, or random ranges; adverts are of everything", "ours"),
    Parameter("RP", "by hash among brokers that are not at the border", "text: uniform"),
)

STUDY = Study(
    name=NAME,
    title="Relocation in routing networks",
    spec="content-routing",
    runs=lambda size: PLANS[size].runs(),
    work=run,
    cost_s=cost,
    kept=kept,
    outcome=outcome,
    named=named,
    strand=lambda one: "the deployed broker" if one.protocol in DEPLOYED else "",
)

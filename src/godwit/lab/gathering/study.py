"""The study of data gathering over a ring, as one of the catalogue: its own plan, judges and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from godwit.lab.gathering import report
from godwit.lab.gathering.evidence import Evidence
from godwit.lab.gathering.plan import QUICK, Plan, cost, named
from godwit.lab.gathering.runs import Configuration, Result, run
from godwit.lab.results import Results, Row
from godwit.lab.studies import Outcome, Parameter, Study, reported

NAME = "ring"
PLANS: Mapping[str, Plan] = {"quick": QUICK, "short": Plan(), "published": Plan(defects=True, close=40)}
"""The evaluation takes minutes, so that there is no shorter one; the published size also shows every defect."""


def outcome(rows: Sequence[Row[Configuration, Result]], size: str) -> Outcome:
    evidence = Evidence(PLANS[size], rows)
    page = report.page(evidence, len(rows), f"godwit lab all --only {NAME} --size {size}")
    plan = PLANS[size]
    seeds = f"up to {max(plan.maps, plan.close)} maps and {plan.seeds} runs of a setting, numbered from 1"
    return reported(page, PARAMETERS, seeds, partial(_figures, evidence))


def _figures(evidence: Evidence) -> Mapping[str, bytes]:
    from godwit.lab.gathering.figures import drawn

    return drawn(evidence)


def kept(path: Path) -> Results[Configuration, Result]:
    return Results(path, Configuration, Result)


PARAMETERS = (
    Parameter("sizes, leaf set, digits, requests, period of events", "8 to 64, 8, 1, 2 and 4 bits, 1000, 10 s", "text"),
    Parameter("area, radius of subscriptions, delays, speeds", "100 x 100, 1, 1 ms + 1 ms a unit, 0.1/s", "spec"),
    Parameter("range of association", "25 units", "spec"),
)

STUDY = Study(
    name=NAME,
    title="Data gathering over a ring",
    spec="data-gathering",
    runs=lambda size: PLANS[size].runs(),
    work=run,
    cost_s=cost,
    kept=kept,
    outcome=outcome,
    named=named,
)

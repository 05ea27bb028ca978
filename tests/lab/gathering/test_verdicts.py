"""Verdicts: each claim holds in a world made as published, and falls in one made otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from godwit.lab.claims import Verdict
from godwit.lab.gathering.evidence import Evidence
from godwit.lab.gathering.figures import drawn
from godwit.lab.gathering.plan import QUICK, Plan
from godwit.lab.gathering.report import page
from godwit.lab.gathering.runs import Configuration, Result
from godwit.lab.gathering.verdicts import CLAIMS, JUDGES, findings
from godwit.lab.results import Row

pytestmark = pytest.mark.feature("data-gathering F41")

PLAN = Plan(seeds=3, maps=3, rival_seeds=1, races=3)
SERIES: dict[str, Any] = {
    "short": {"latencies": [(200.0, 0.05), (210.0, 0.05)], "associations": [205.0]},
    "long": {"latencies": [(200.0, 0.05), (210.0, 30.0), (220.0, 20.0), (230.0, 10.0)], "associations": [240.0]},
    "storage": [(200.0, 1, 0), (210.0, 1, 1), (220.0, 0, 4), (240.0, 1, 0)],
}


def as_published(one: Configuration) -> Result:
    """What the claims say, with a little spread from map to map."""
    spread = 1 + 0.004 * one.seed
    steps = math.log2(one.brokers)
    if one.experiment == "race":
        return Result(wanted=10, received=10, bad=int(one.variant == "as published"))
    if one.experiment == "M":
        handover = (3.7 + 0.8 * (steps - 3)) * spread
        return Result(
            wanted=1000,
            received=990,
            buffered=10,
            associations=1000 + one.seed,
            relocations=1000,
            handover_sent=round(1000 * handover),
            redirected=800,
            series=msgspec.json.encode(SERIES).decode() if one.brokers == 24 else "",
        )
    fewer = {1: 0.0, 2: 0.3, 4: 0.7}[one.bits] if one.experiment == "S2" else 0.0
    hops = (1.0 + (0.6 - 0.15 * fewer) * (steps - 3)) * spread - (0.0 if one.brokers == 8 else fewer * 0.3)
    overhead = 2.6 + 1.9 * (steps - 3) / 3 if one.experiment == "S1" else _idm(one)
    return Result(
        deliveries=1000,
        hops_sum=round(1000 * hops),
        hops_max=math.ceil(steps) + 1,
        sent=round(500 * overhead * spread),
        confirmed=round(500 * overhead * spread),
    )


def _idm(one: Configuration) -> float:
    return 2.0 + ({1: 3.4, 2: 3.3, 4: 3.0}[one.bits] - 2.0) * (math.log2(one.brokers) - 3) / 3


def evidence(changed: Callable[[Configuration, Result], dict[str, Any]] = lambda one, result: {}) -> Evidence:
    rows = []
    for one in PLAN.runs():
        result = as_published(one)
        rows.append(Row(one, msgspec.structs.replace(result, **changed(one, result))))
    return Evidence(PLAN, rows)


def test_every_claim_of_the_spec_is_judged_once() -> None:
    assert list(JUDGES) == list(CLAIMS) == [f"C{number}" for number in range(1, 16)]


def test_in_a_world_as_published_every_claim_is_reproduced() -> None:
    found = {finding.claim.name: finding for finding in findings(evidence())}
    assert {name: one.numbers for name, one in found.items() if one.verdict is not Verdict.REPRODUCED} == {}


def test_without_runs_nothing_is_decided() -> None:
    assert {finding.verdict for finding in findings(Evidence(PLAN, []))} == {Verdict.NOT_DECIDABLE}


CHANGES: dict[str, Callable[[Configuration, Result], dict[str, Any]]] = {
    "C1": lambda one, r: {"hops_sum": 9000} if one.experiment == "S1" else {},
    "C2": lambda one, r: {"hops_sum": r.hops_sum + 300} if one.experiment == "S1" and one.bits == 1 else {},
    "C3": lambda one, r: {"hops_max": 2} if one.experiment == "S1" else {},
    "C4": lambda one, r: {"sent": 2 * r.sent} if one.experiment == "S1" else {},
    "C5": lambda one, r: {"hops_sum": r.hops_sum + 2000} if one.experiment == "S2" and one.bits == 4 else {},
    "C6": lambda one, r: {"sent": 2 * r.sent} if one.experiment == "S2" and one.brokers == 8 else {},
    "C7": lambda one, r: {"sent": 2 * r.sent} if one.experiment == "S2" and one.brokers == 64 else {},
    "C8": lambda one, r: {"associations": 100 * one.brokers} if one.experiment == "M" else {},
    "C9": lambda one, r: {"redirected": 3000} if one.experiment == "M" else {},
    "C10": lambda one, r: _seen(one, long={**SERIES["long"], "latencies": [(200.0, 40.0), (210.0, 22.0)]}),
    "C11": lambda one, r: {"handover_sent": 9000} if one.experiment == "M" else {},
    "C12": lambda one, r: {"received": 989} if one.experiment == "M" and one.seed == 1 else {},
    "C13": lambda one, r: _seen(one, storage=[(200.0, 1, 0), (210.0, 1, 4), (240.0, 1, 4)]),
    "C14": lambda one, r: {"redirected": 1} if one.experiment == "S1" else {},
    "C15": lambda one, r: {"bad": 1} if one.experiment == "race" else {},
}


def _seen(one: Configuration, **others: Any) -> dict[str, Any]:
    """Another course of time in M at 24 brokers."""
    is_it = one.experiment == "M" and one.brokers == 24
    return {"series": msgspec.json.encode({**SERIES, **others}).decode()} if is_it else {}


def test_every_judge_is_tried_in_a_world_that_contradicts_it() -> None:
    assert list(CHANGES) == list(JUDGES)


@pytest.mark.parametrize(
    ("latencies_s", "verdict"),
    [((0.05, 0.02, 0.09, 0.02), Verdict.REPRODUCED), ((0.05, 0.02, 0.09, 0.07, 0.02), Verdict.NOT_REPRODUCED)],
    ids=["one after a relocation", "two"],
)
def test_one_item_off_the_level_of_a_stay_is_a_detour_and_two_are_no_level(
    latencies_s: tuple[float, ...], verdict: Verdict
) -> None:
    items = [(200.0 + 10 * i, latency_s) for i, latency_s in enumerate(latencies_s)]
    seen = evidence(lambda one, r: _seen(one, short={"latencies": items, "associations": [205.0]}))
    found = {one.claim.name: one for one in findings(seen)}
    assert found["C9"].verdict is verdict, found["C9"].numbers


def test_where_nobody_was_away_for_long_two_claims_stay_open() -> None:
    short = {"long": {**SERIES["long"], "latencies": [(200.0, 0.05)]}, "storage": [(200.0, 1, 0), (210.0, 1, 1)]}
    found = {one.claim.name: one.verdict for one in findings(evidence(lambda one, r: _seen(one, **short)))}
    assert (found["C10"], found["C13"]) == (Verdict.NOT_DECIDABLE, Verdict.NOT_DECIDABLE)


@pytest.mark.parametrize("name", CHANGES)
def test_a_world_made_otherwise_refutes_the_claim(name: str) -> None:
    found = {finding.claim.name: finding.verdict for finding in findings(evidence(CHANGES[name]))}
    assert found[name] is Verdict.NOT_REPRODUCED


def test_a_quick_plan_never_refutes() -> None:
    plan = msgspec.structs.replace(QUICK, seeds=2, maps=2, races=2)
    rows = [Row(one, msgspec.structs.replace(as_published(one), hops_sum=9000)) for one in plan.runs()]
    assert Verdict.NOT_REPRODUCED not in {finding.verdict for finding in findings(Evidence(plan, rows))}


def test_the_page_has_every_table_and_the_figures_every_plot() -> None:
    shown = page(evidence(), len(PLAN.runs()), "godwit lab gathering")
    titles = [table.title for table in shown.tables]
    assert titles[:3] == ["S1: subscriptions", "S2: notices", "M: mobile clients"]
    plots = " ".join(drawn(evidence()))
    assert all(f"P{number}" in plots for number in (17, 18, 19, 20, 21, 22, 23, 24, 25))

"""Judges say what rows show, and nothing where there are none."""

from __future__ import annotations

import msgspec

from godwit.lab.claims import Verdict
from godwit.lab.relocation import report
from godwit.lab.relocation.evidence import Evidence
from godwit.lab.relocation.plan import TABLE, Plan, cost, named
from godwit.lab.relocation.runs import PROTOCOLS, Configuration, Result
from godwit.lab.relocation.verdicts import PUBLISHED_MS, findings
from godwit.lab.results import Row

PLAN = Plan(seeds=3, subscribers=(10, 20, 50), publishers=(1, 10), trials=1, trees=1)
COSTS = dict(zip(TABLE, (230.0, 60.0, 50.0, 16.0, 40.0, 5.0), strict=True))


def made_up(one: Configuration) -> Result:
    """A world in which everything is as published."""
    if one.variant:
        unsafe = any(word in one.variant for word in ("out of band", "direct", "one direction"))
        return Result(trials=50, bad=int(unsafe))
    cost_of = COSTS.get(one.protocol, 8.0)
    if one.protocol == "incomplete acyclic":
        cost_of += (one.subscribers - 50) * 0.5 + one.publishers
    if one.protocol == "complete acyclic":
        cost_of += 5.0 * (one.subscribers == 20) + 0.2 * one.publishers
    told = PUBLISHED_MS.get(one.protocol.removesuffix(", joined"), (40, 1))
    border = one.mobility == "border"
    return Result(
        moved=20,
        signalling=cost_of + 3 * border + 0.01 * one.seed,
        latency_s=told[0] / 1000,
        path=6.0 + border,
        direct=0.5 + 0.1 * border + 0.001 * one.seed,
        longest=18,
    )


def rows(plan: Plan = PLAN) -> list[Row[Configuration, Result]]:
    return [Row(one, made_up(one)) for one in plan.runs()]


def test_as_published_every_claim_is_reproduced() -> None:
    verdicts = {one.claim.name: one.verdict for one in findings(Evidence(PLAN, rows()))}
    assert {name: verdict for name, verdict in verdicts.items() if verdict is not Verdict.REPRODUCED} == {}


def test_without_rows_nothing_is_decided() -> None:
    assert {one.verdict for one in findings(Evidence(PLAN, []))} == {Verdict.NOT_DECIDABLE}


def test_a_safe_variant_that_loses_and_a_slow_pong_are_seen() -> None:
    wrong = []
    for row in rows():
        result = row.result
        if row.configuration.variant == "acyclic, in-band marker":
            result = msgspec.structs.replace(result, bad=1)
        if row.configuration.protocol == "ping/pong":
            result = msgspec.structs.replace(result, latency_s=0.3, flaws=1)
        wrong.append(Row(row.configuration, result))
    verdicts = {one.claim.name: one.verdict for one in findings(Evidence(PLAN, wrong))}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.NOT_REPRODUCED} == {
        "C14",
        "C14 ratio",
        "T21",
        "T24",
    }


def test_the_page_has_a_row_for_every_protocol_and_every_variant() -> None:
    page = report.page(Evidence(PLAN, rows()), len(PLAN.runs()), "godwit lab relocation")
    latency = next(table for table in page.tables if table.title == "Latency")
    assert [row[0] for row in latency.rows] == list(PROTOCOLS)
    assert latency.rows[0][1] == "170 ± 26"
    tried = report.page(Evidence(msgspec.structs.replace(PLAN, only_trials=True), rows()), 1, "godwit")
    assert [table.title for table in tried.tables] == ["Ways to move, tried", "Networks, tried"]
    assert all(cost(one) > 0 and named(one) for one in PLAN.runs())

"""Judges say what rows show, and nothing where there are none."""

from __future__ import annotations

import msgspec
from tests.lab.relocation.publications import PLAN, rows

from godwit.lab.claims import Verdict
from godwit.lab.relocation import report
from godwit.lab.relocation.evidence import Evidence
from godwit.lab.relocation.plan import cost, named
from godwit.lab.relocation.runs import PROTOCOLS
from godwit.lab.relocation.verdicts import findings
from godwit.lab.results import Row


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

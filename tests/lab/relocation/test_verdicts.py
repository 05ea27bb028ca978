"""Each judge says each of its verdicts in a world made for it, and nothing where there are no rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.lab.relocation.publications import PLAN, rows

from godwit.lab.claims import Finding, Verdict
from godwit.lab.relocation import report
from godwit.lab.relocation.evidence import Evidence
from godwit.lab.relocation.plan import cost, named
from godwit.lab.relocation.runs import PROTOCOLS, Configuration, Result
from godwit.lab.relocation.verdicts import JUDGES, findings
from godwit.lab.results import Row


def test_as_published_every_claim_is_reproduced() -> None:
    verdicts = {one.claim.name: one.verdict for one in findings(Evidence(PLAN, rows()))}
    assert {name: verdict for name, verdict in verdicts.items() if verdict is not Verdict.REPRODUCED} == {}


def test_without_rows_nothing_is_decided() -> None:
    assert {one.verdict for one in findings(Evidence(PLAN, []))} == {Verdict.NOT_DECIDABLE}


Change = Callable[[Configuration, Result], dict[str, Any]]


def changed(change: Change) -> dict[str, Finding]:
    """What is found in a world that is as published but for this."""
    made = [Row(row.configuration, _replaced(row.result, change(row.configuration, row.result))) for row in rows()]
    return {one.claim.name: one for one in findings(Evidence(PLAN, made))}


def _replaced(result: Result, change: dict[str, Any]) -> Result:
    return msgspec.structs.replace(result, **change)


FALSE: dict[str, Change] = {
    "C12": lambda one, r: {"signalling": 1e4},
    "C13": lambda one, r: {"signalling": r.signalling + 1000} if one.protocol == "complete acyclic RP" else {},
    "C14": lambda one, r: {"latency_s": 0.3} if one.protocol == "ping/pong" else {},
    "C14 ratio": lambda one, r: {"latency_s": 0.3} if one.protocol == "ping/pong" else {},
    "C15 path": lambda one, r: {"path": 9.0} if one.mobility == "full" else {},
    "C15 covering": lambda one, r: {"direct": r.direct + 0.3} if one.mobility == "full" else {},
    "C16": lambda one, r: {"signalling": 50.0 + 0.01 * one.seed} if one.protocol == "incomplete acyclic" else {},
    "C17": lambda one, r: {"signalling": float(one.subscribers)} if one.protocol == "complete acyclic" else {},
    "C18": lambda one, r: {"signalling": r.signalling + 9 * one.subscribers} if one.protocol == "ping/pong" else {},
    "C19 acyclic": lambda one, r: {"signalling": r.signalling - 9 * one.publishers},
    "C19 RP": lambda one, r: {"signalling": r.signalling + 9 * one.publishers},
    "T12, T13": lambda one, r: {"bad": 1} if one.variant == "adverts, covering" else {},
    "T21": lambda one, r: {"bad": 1} if one.variant == "acyclic, in-band marker" else {},
    "T21 negative": lambda one, r: {"bad": 0},
    "T24": lambda one, r: {"flaws": 1} if one.protocol == "ping/pong" else {},
}

PARTLY: dict[str, tuple[Change, str]] = {
    "C13": (lambda one, r: FALSE["C13"](one, r) if one.filters == "one" else {}, "each wants a random range"),
    "C14": (
        lambda one, r: {"latency_s": 0.3} if one.protocol == "complete acyclic RP" else {},
        "leaving where the source's way joins",
    ),
    "C15 covering": (
        lambda one, r: FALSE["C15 covering"](one, r) if one.filters == "ranges" else {},
        "all subscribers want the same",
    ),
    "C16": (lambda one, r: FALSE["C16"](one, r) if one.filters == "ranges" else {}, "all subscribers want the same"),
    "C17": (lambda one, r: FALSE["C17"](one, r) if one.filters == "one" else {}, "each wants a random range"),
    "C19 acyclic": (
        lambda one, r: FALSE["C19 acyclic"](one, r) if one.protocol == "complete acyclic" else {},
        "incomplete acyclic",
    ),
}


def test_every_judge_is_tried_in_a_world_that_contradicts_it() -> None:
    assert list(FALSE) == list(JUDGES)


@pytest.mark.parametrize("name", FALSE)
def test_a_claim_falls_where_the_world_is_otherwise(name: str) -> None:
    assert changed(FALSE[name])[name].verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize("name", PARTLY)
def test_a_claim_that_holds_in_part_says_where_and_by_how_much(name: str) -> None:
    change, where = PARTLY[name]
    found = changed(change)[name]
    assert found.verdict is Verdict.DEPENDS
    assert found.told.endswith(f"holds with {where}")
    assert found.depends is not None
    for point in found.depends.curve:
        assert point.margins
        assert (min(margin.by.mean for margin in point.margins) > 0) is point.holds


@pytest.mark.parametrize("name", [name for name in FALSE if not name.startswith(("C12", "C14", "T"))])
def test_two_topologies_decide_nothing_about_costs(name: str) -> None:
    """C12 and C14 compare a mean with a number; trials are counted."""
    few = [row for row in rows() if row.configuration.seed <= 2]
    found = {one.claim.name: one for one in findings(Evidence(PLAN, few))}
    assert found[name].verdict is Verdict.NOT_DECIDABLE


def test_a_quick_plan_refutes_nothing() -> None:
    quick = msgspec.structs.replace(PLAN, quick=True)
    made = [Row(row.configuration, _replaced(row.result, {"signalling": 1e4, "flaws": 1})) for row in rows()]
    assert Verdict.NOT_REPRODUCED not in {one.verdict for one in findings(Evidence(quick, made))}


def test_the_page_has_a_row_for_every_protocol_and_every_variant() -> None:
    page = report.page(Evidence(PLAN, rows()), len(PLAN.runs()), "godwit lab relocation")
    latency = next(table for table in page.tables if table.title == "Latency")
    assert [row[0] for row in latency.rows] == list(PROTOCOLS)
    assert latency.rows[0][1] == "170 ± 26"
    tried = report.page(Evidence(msgspec.structs.replace(PLAN, only_trials=True), rows()), 1, "godwit")
    assert [table.title for table in tried.tables] == ["Ways to move, tried", "Networks, tried"]
    assert all(cost(one) > 0 and named(one) for one in PLAN.runs())

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
from godwit.lab.relocation.plan import PUBLISHED, SHORT, cost, named
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


OPEN: dict[str, Change] = {
    "C12": lambda one, r: {"signalling": 30.0 + 8 * (one.seed - 2)} if one.protocol == "incomplete acyclic RP" else {},
    "C14": lambda one, r: {"latency_s": 0.2 + 0.02 * (one.seed - 2)} if one.protocol == "ping/pong" else {},
    "C15 covering": lambda one, r: (
        {"direct": r.direct + 0.1 * one.seed * (one.filters == "one") + 0.3 * (one.filters == "ranges")}
        if one.mobility == "full"
        else {}
    ),
    "C16": lambda one, r: {"signalling": r.signalling * (1 + one.seed * (one.subscribers == 10))},
    "C18": lambda one, r: {"signalling": r.signalling * (1 + 0.06 * one.seed * (one.publishers == 10))},
    "C19 acyclic": lambda one, r: {"signalling": r.signalling * (1 + 0.4 * one.seed * (one.publishers == 10))},
}
"""Worlds whose mean alone would decide, and in which topologies differ too much for that."""


@pytest.mark.parametrize("name", OPEN)
def test_topologies_that_differ_too_much_decide_nothing(name: str) -> None:
    assert changed(OPEN[name])[name].verdict is Verdict.NOT_DECIDABLE


def test_a_cost_is_held_against_the_bound_of_its_own_topology() -> None:
    """Bounds of 10, 18 and 26 with costs one below each: on average they are below, though the spread is wide."""

    def just_below(one: Configuration, r: Result) -> dict[str, Any]:
        longest = 2 + 8 * one.seed
        return {"longest": longest, "signalling": longest - 1.0} if one.protocol == "complete acyclic RP" else {}

    def beyond_a_small_one(one: Configuration, r: Result) -> dict[str, Any]:
        return {**just_below(one, r), "signalling": 20.0} if one.protocol == "complete acyclic RP" else {}

    assert changed(just_below)["C12"].verdict is Verdict.REPRODUCED
    assert changed(beyond_a_small_one)["C12"].verdict is Verdict.NOT_DECIDABLE


def test_one_latency_that_is_surely_too_long_refutes_the_table_whatever_was_not_run() -> None:
    late = [
        Row(row.configuration, _replaced(row.result, FALSE["C14"](row.configuration, row.result))) for row in rows()
    ]
    some = [row for row in late if not row.configuration.protocol.endswith("joined")]
    found = {one.claim.name: one for one in findings(Evidence(PLAN, some))}
    assert found["C14"].verdict is Verdict.NOT_REPRODUCED
    assert "not run" in found["C14"].numbers


@pytest.mark.parametrize(
    ("at_40", "verdict"), [(43.0, Verdict.REPRODUCED), (60.0, Verdict.NOT_REPRODUCED)], ids=["plateau", "later peak"]
)
def test_a_peak_may_be_the_beginning_of_a_plateau_and_must_not_come_later(at_40: float, verdict: Verdict) -> None:
    plan = msgspec.structs.replace(PLAN, subscribers=(10, 20, 40, 50))
    made = [
        Row(one, _replaced(row.result, {"signalling": at_40 if one.subscribers == 40 else row.result.signalling}))
        for row in rows(plan)
        for one in [row.configuration]
    ]
    found = {one.claim.name: one for one in findings(Evidence(plan, made))}
    assert found["C17"].verdict is verdict


@pytest.mark.parametrize("name", [name for name in FALSE if not name.startswith("T")])
def test_two_topologies_decide_nothing_about_costs(name: str) -> None:
    """Trials are counted."""
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


def test_fresh_topologies_come_first_and_have_seeds_that_no_other_run_has() -> None:
    fresh = PUBLISHED.runs()[:330]
    assert {one.seed for one in fresh} == set(range(21, 41))
    assert not {one.seed for one in PUBLISHED.runs()[330:] if not one.variant} & set(range(21, 41))
    assert max(one.seed for one in SHORT.runs() if not one.variant) == SHORT.seeds

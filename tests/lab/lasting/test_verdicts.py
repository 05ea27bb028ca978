"""Every judge of what lasts says each of its verdicts on rows made for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from godwit.lab.claims import Verdict
from godwit.lab.lasting.runs import Configuration, Result
from godwit.lab.lasting.study import PLANS, STUDY, outcome
from godwit.lab.lasting.verdicts import Rows, judge
from godwit.lab.results import Row
from godwit.tables.double import Effort, Sense

Cost = Callable[[Configuration], float]


def rows(cost: Cost, time_of: Cost | None = None, size: str = "published") -> Rows:
    """As if each run had cost so many operations, more or less."""
    return [
        Row(one, Result(round(cost(one) * (1 + one.seed % 5 / 1000)), 0, (time_of or cost)(one) * (1 + one.seed % 5)))
        for one in PLANS[size].runs()
    ]


def published(one: Configuration) -> float:
    """What the text describes."""
    every = one.profiles * one.queries
    if one.experiment == "E11":
        if one.varied == "inputs":
            return every * (1 - one.preloaded / one.profiles)
        return every * (1 if one.sense is Sense.COVER else 1 + one.preloaded / 1000)
    share = {Effort.SETS: 1.0, Effort.PLAIN: 0.8, Effort.BOUNDED: 0.3 if one.sense is Sense.COVER else 0.75}
    return every * share[one.effort]


def slow_where_bounded(one: Configuration) -> float:
    return published(one) * (10 if one.effort is Effort.BOUNDED else 1)


def dear_when_preloaded(one: Configuration) -> float:
    return published(one) * (1.5 if one.varied == "random" and one.preloaded == 1000 else 1)


def crooked(one: Configuration) -> float:
    return published(one) * (3 if one.varied == "random" and one.preloaded == 500 else 1)


def never_free(one: Configuration) -> float:
    return published(one) + 10


def no_cheaper_on_average(one: Configuration) -> float:
    """A quarter preloaded costs as much as none, more in some replications and less in others."""
    some = one.varied == "inputs" and one.preloaded == 250
    return published(one) * ((1 + (one.seed % 5 - 2) / 5) / 0.75 if some else 1)


def now_straight_now_crooked(one: Configuration) -> float:
    bent = one.varied == "random" and one.preloaded == 500
    return published(one) * (1 + 0.4 * (one.seed % 2) if bent and one.sense is Sense.OVERLAP else 1)


def verdicts(of: Rows) -> dict[str, Verdict]:
    return {finding.claim.name: finding.verdict for finding in judge(of)}


@pytest.mark.parametrize(
    ("claim", "found", "verdict"),
    [
        ("C20", rows(published), Verdict.REPRODUCED),
        ("C20", rows(slow_where_bounded), Verdict.NOT_REPRODUCED),
        ("C20", rows(published, slow_where_bounded), Verdict.NOT_REPRODUCED),
        ("C20", [], Verdict.NOT_DECIDABLE),
        ("C21", rows(published), Verdict.REPRODUCED),
        ("C21", rows(slow_where_bounded), Verdict.NOT_REPRODUCED),
        ("C21", [], Verdict.NOT_DECIDABLE),
        ("C22", rows(published), Verdict.REPRODUCED),
        ("C22", rows(never_free), Verdict.NOT_REPRODUCED),
        ("C22", [row for row in rows(published) if row.configuration.preloaded < 1000], Verdict.NOT_DECIDABLE),
        ("C22", rows(no_cheaper_on_average), Verdict.NOT_DECIDABLE),
        ("C23", rows(published), Verdict.REPRODUCED),
        ("C23", rows(now_straight_now_crooked), Verdict.NOT_DECIDABLE),
        ("C23", rows(dear_when_preloaded), Verdict.NOT_REPRODUCED),
        ("C23", rows(crooked), Verdict.NOT_REPRODUCED),
        ("C23", [row for row in rows(published) if row.configuration.preloaded < 300], Verdict.NOT_DECIDABLE),
    ],
)
def test_a_judge_says_what_the_rows_say(claim: str, found: Rows, verdict: Verdict) -> None:
    assert verdicts(found)[claim] is verdict


def test_a_single_run_decides_nothing_about_costs() -> None:
    alone = [row for row in rows(published) if row.configuration.seed % 5 == PLANS["published"].runs()[0].seed % 5]
    assert verdicts(alone)["C20"] is Verdict.NOT_DECIDABLE
    assert verdicts(alone)["C21"] is Verdict.NOT_DECIDABLE
    assert verdicts(alone)["C22"] is Verdict.NOT_DECIDABLE
    assert verdicts(alone)["C23"] is Verdict.NOT_DECIDABLE


def test_runs_that_count_what_earlier_ones_did_not_are_vouched_for_by_themselves() -> None:
    strands = {STUDY.strand(one): one.varied for one in PLANS["published"].runs() if one.varied in ("both", "random")}
    assert strands == {"": "both", "random preloading": "random"}


def test_a_quick_plan_refutes_nothing() -> None:
    contradicting = rows(slow_where_bounded, size="quick")
    assert Verdict.NOT_REPRODUCED in verdicts(contradicting).values()
    assert Verdict.NOT_REPRODUCED not in {one.verdict for one in outcome(contradicting, "quick").findings}

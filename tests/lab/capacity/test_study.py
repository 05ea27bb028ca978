"""The judge of C30 says each of its verdicts where it should."""

from __future__ import annotations

import pytest

from godwit.lab.capacity.runs import Result
from godwit.lab.capacity.study import AWAY, CLIENTS, DEFAULT_AWAY, STUDY, Cells, judge
from godwit.lab.claims import Verdict
from godwit.lab.results import Row


def result(factor: float, stored_share: float, seed: int) -> Result:
    moved = round(10_000 * (factor - 1)) + seed
    stored = round(moved * stored_share)
    return Result(
        carried=10_000, stored=stored, control=moved - stored, carried_busiest=100, all_busiest=200, cpu_s=0.1
    )


def cells(factors: dict[int, float], stored_share: float = 0.8, seeds: int = 5) -> Cells:
    return {(n, DEFAULT_AWAY): [result(f, stored_share, seed) for seed in range(seeds)] for n, f in factors.items()}


MOST, LEAST = dict.fromkeys(CLIENTS, 3.0), dict.fromkeys(CLIENTS, 1.2)
TABLE = {
    "everywhere doubled": (cells(MOST), Verdict.REPRODUCED),
    "nowhere doubled": (cells(LEAST), Verdict.NOT_REPRODUCED),
    "doubled by control": (cells(MOST, stored_share=0.2), Verdict.NOT_REPRODUCED),
    "doubled with many": (cells({**LEAST, 100: 3.0, 300: 8.0}), Verdict.DEPENDS),
    "one seed": (cells(MOST, seeds=1), Verdict.NOT_DECIDABLE),
    "nothing run": ({}, Verdict.NOT_DECIDABLE),
}


@pytest.mark.parametrize("case", TABLE)
def test_each_verdict_is_said_where_it_should_be(case: str) -> None:
    found, verdict = TABLE[case]
    assert judge(found).verdict is verdict


def test_the_threshold_is_told_and_a_quick_plan_refutes_nothing() -> None:
    told = judge(TABLE["doubled with many"][0]).told
    assert told == "depends on how many clients a broker has: holds from 100 clients a broker on"
    assert judge(TABLE["nowhere doubled"][0], quick=True).verdict is Verdict.NOT_DECIDABLE


def test_the_page_has_a_line_for_each_cell() -> None:
    rows = [Row(one, result(1.5, 0.8, one.seed)) for one in STUDY.runs("quick")]
    outcome = STUDY.outcome(rows, "quick")
    assert len(outcome.tables[0].rows) == len(CLIENTS) * len(AWAY)
    assert all(one.source for one in outcome.parameters)

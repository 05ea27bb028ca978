"""The screening: which factor a claim hangs on, found again where it was hidden."""

from __future__ import annotations

import pytest
from tests.lab.mft.made import Figures, rows

from godwit.lab.claims import Verdict
from godwit.lab.mft.runs import Configuration
from godwit.lab.mft.screening import FACTORS, JUDGED, Margins, Screening, settings, told

pytestmark = pytest.mark.feature("mft-pubsub F34")

SCREENING = Screening()


def by_period(run: Configuration) -> Figures:
    """MFT has the better rate with every heartbeat period from 5 s on, and nothing else matters."""
    better = run.protocol == "mft" and run.period_s >= 5
    return {"routed": 1000, "delivered_routed": 900 if better else 500 + 100 * (run.protocol == "aodv")}


@pytest.fixture(scope="module")
def margins() -> Margins:
    return Margins(rows(SCREENING.runs(), by_period))


def test_every_combination_is_compared_though_each_protocol_is_run_only_as_often_as_it_must() -> None:
    assert len(settings(FACTORS)) == 288
    assert len(SCREENING.runs()) == len(set(SCREENING.runs())) == 96 * 6 + 18 * 7
    assert {run.seed for run in SCREENING.runs()} == {101}


def test_the_factor_that_decides_is_found_with_its_threshold(margins: Margins) -> None:
    assert margins.decisive("E5") == "period_s"
    assert margins.explained("E5")["period_s"] == pytest.approx(1.0)
    assert margins.explained("E5")["aodv"] == pytest.approx(0.0, abs=1e-9)
    assert [(point.at, point.holds) for point in margins.curve("E5", "period_s")] == [
        ("1 s", False),
        ("2 s", False),
        ("5 s", True),
        ("10 s", True),
    ]


def test_the_settings_that_satisfy_the_most_come_first(margins: Margins) -> None:
    counts = [count for count, _ in margins.together()]
    assert counts == sorted(counts, reverse=True)
    assert "heartbeat period" in told(margins.together()[0][1])


def test_without_runs_nothing_is_said() -> None:
    empty = Margins([])
    assert {empty.holding(name) for name in JUDGED} == {None}
    assert all(point.holds is None for point in empty.curve("E5", "range_m"))


def test_what_the_study_makes_of_it(margins: Margins) -> None:
    from godwit.lab.mft.study import outcome

    found = {one.claim.name: one for one in outcome(rows(SCREENING.runs(), by_period), "short").findings}
    assert found["E5"].told == "depends on the heartbeat period: holds from 5 s on"
    assert found["E6"].verdict is not Verdict.DEPENDS
    assert found["E17"].verdict is Verdict.NOT_DECIDABLE

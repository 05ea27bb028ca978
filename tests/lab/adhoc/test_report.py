"""The report shows every claim, every reading and every improvement that was run, and draws its figures."""

from __future__ import annotations

import pytest
from tests.lab.adhoc.made import PLAN, evidence

from godwit.lab import pages
from godwit.lab.adhoc.claims import CLAIMS
from godwit.lab.adhoc.evidence import Evidence
from godwit.lab.adhoc.figures import drawn
from godwit.lab.adhoc.plan import BEYOND, QUICK, READINGS, Plan
from godwit.lab.adhoc.report import page

pytestmark = pytest.mark.feature("manet-cbr F20")


def test_a_report_has_claims_readings_goals_and_every_setting() -> None:
    text = pages.markdown(page(evidence(), 2, "godwit lab adhoc"))
    for name in (*CLAIMS, *READINGS, *BEYOND, "not reached", "reached"):
        assert f"| {name} |" in text, name
    settings = text.partition("## All settings")[2]
    assert settings.count("\n| ") == len(PLAN.cells()) + 2


def test_a_report_of_nothing_is_a_report() -> None:
    nothing = Evidence(PLAN, [])
    text = pages.html(page(nothing, 0, "godwit lab adhoc"), drawn(nothing))
    assert "not decidable" in text


def test_every_experiment_has_its_figure() -> None:
    figures = drawn(evidence())
    for experiment in ("E1", "E2", "E3", "E4", "E5", "E6", "E7", "A1"):
        assert any(experiment in caption for caption in figures)
    assert all(png.startswith(b"\x89PNG") for png in figures.values())


@pytest.mark.parametrize("plan", [QUICK, Plan()])
def test_a_plan_runs_each_setting_once_a_seed_and_starts_with_everything(plan: Plan) -> None:
    runs = plan.runs()
    assert len(set(runs)) == len(runs) == plan.seeds * len(plan.cells())
    assert {run.seed for run in runs[: len(plan.cells())]} == {1}

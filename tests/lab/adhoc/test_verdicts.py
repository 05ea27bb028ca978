"""Verdicts: each claim holds in a world made as published, and falls in one made otherwise (spec manet-cbr 4.3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs
from tests.lab.adhoc.made import PLAN, as_published, evidence, result

from godwit.lab.adhoc.claims import CLAIMS
from godwit.lab.adhoc.evidence import Evidence
from godwit.lab.adhoc.readings import NO_SLOTS, TEXTS, over
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.adhoc.verdicts import JUDGES, findings, judge
from godwit.lab.claims import Verdict
from godwit.lab.results import Row

pytestmark = pytest.mark.feature("manet-cbr F20", "manet-cbr F23")


def test_every_claim_of_the_spec_is_judged_once() -> None:
    assert [*JUDGES, "A1"] == list(CLAIMS)
    experiments = {name.rstrip("abcde") for name in CLAIMS}
    assert experiments == {"E1", "E2", "E3", "E4", "E5", "E6", "E7", "A1"}


def test_in_a_world_as_published_every_claim_is_reproduced() -> None:
    found = {finding.claim.name: finding for finding in findings(evidence())}
    failed = {name: one.numbers for name, one in found.items() if one.verdict is not Verdict.REPRODUCED}
    assert list(failed) == ["A1"], failed
    assert found["A1"].verdict is Verdict.ARITHMETIC


def test_without_runs_only_the_model_says_anything() -> None:
    verdicts = {finding.claim.name: finding.verdict for finding in findings(Evidence(PLAN, []))}
    assert verdicts.pop("A1") is Verdict.ARITHMETIC
    assert set(verdicts.values()) == {Verdict.NOT_DECIDABLE}


def changed(where: Callable[[Configuration], bool], *numbers: float) -> dict[Configuration, Result]:
    return {setting: result(*numbers) for setting in PLAN.cells() if where(setting)}


def flat_in_speed(setting: Configuration) -> Result:
    return result(0.5 if setting.period_s == 2.0 else 0.7, 2.5)


FALSE: dict[str, dict[Configuration, Result]] = {
    "E1a": changed(lambda s: s.protocol == "gossip", 0.9, 5.0),
    "E1b": changed(lambda s: s == PLAN.gossip(1.0), 1.0, 10.0),
    "E1c": changed(lambda s: s == PLAN.gossip(0.4), 0.55, 3.0),
    "E2a": changed(lambda s: s == PLAN.cell(), 0.70, 3.2),
    "E2b": changed(lambda s: s == PLAN.cell(), 0.70, 3.0),
    "E2c": changed(lambda s: s == PLAN.gossip(0.2), 0.5, 2.2),
    "E2d": changed(lambda s: s == PLAN.cell(credits=2), 0.6, 2.5),
    "E2e": changed(lambda s: s == PLAN.cell(credits=3), 0.99, 2.5),
    "E3a": changed(lambda s: s == PLAN.cell(subscribers=2), 0.9, 9.0),
    "E3b": changed(lambda s: s.subscribers == 20 and s.protocol == "proximity", 0.8, 1.2),
    "E3c": changed(lambda s: s == PLAN.gossip(0.5, subscribers=50), 0.7, 90.0),
    "E4a": changed(lambda s: s.rate_per_s == 5.0 and s.protocol == "proximity", 0.5, 2.2),
    "E4b": changed(lambda s: s == PLAN.gossip(1.0, rate_per_s=5.0), 0.99, 10.0),
    "E4c": changed(lambda s: s.rate_per_s == 5.0 and s.protocol == "proximity", 0.7, 9.0),
    "E5": {s: flat_in_speed(s) for s in PLAN.cells() if s.speed_max_mps != 20.0},
    "E6": changed(lambda s: s == PLAN.grown(400), 0.4, 2.5),
    "E7a": changed(lambda s: s == PLAN.denser(300, protocol="gossip", probability=0.3), 0.1, 2.8),
    "E7b": changed(lambda s: s == PLAN.denser(300, protocol="gossip", probability=1.0), 0.99, 10.0),
    "E7c": changed(lambda s: s == PLAN.denser(300), 0.7, 9.0),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_claim_falls_where_the_world_is_otherwise(name: str) -> None:
    fallen = judge(name, evidence(FALSE[name]))
    assert fallen.verdict is Verdict.NOT_REPRODUCED, fallen.numbers
    quick = judge(name, evidence(FALSE[name], structs.replace(PLAN, quick=True)))
    assert quick.verdict is Verdict.NOT_DECIDABLE


@pytest.mark.parametrize("name", [name for name in JUDGES if name != "E1b"])
def test_one_seed_decides_nothing_and_says_what_more_would_cost(name: str) -> None:
    alone = judge(name, evidence(plan=structs.replace(PLAN, seeds=1)))
    assert alone.verdict is Verdict.NOT_DECIDABLE
    assert alone.missing is not None
    assert "a core" in alone.missing.cost


def test_an_effect_that_is_nil_in_many_worlds_is_refuted() -> None:
    same = {s: as_published(PLAN.cell()) for s in PLAN.cells() if s.nodes in (50, 400) and s.side_m != 1000.0}
    assert judge("E6", evidence(same)).verdict is Verdict.NOT_REPRODUCED, "exactly nothing is no rise"


@pytest.mark.parametrize("name", JUDGES)
def test_a_claim_that_holds_under_one_reading_only_depends_on_the_air(name: str) -> None:
    found = over(name, {TEXTS: [evidence()], NO_SLOTS: [evidence(FALSE[name])]})
    assert found.told == "depends on how neighbors share the air: holds with 802.11 slots"
    assert found.depends is not None
    assert [point.holds for point in found.depends.curve] == [True, False]


def test_credits_are_not_cheaper_than_a_gossip_that_was_not_run() -> None:
    proximity = {s: as_published(s) for s in PLAN.cells() if s.protocol == "proximity"}
    rows = [Row(structs.replace(s, seed=seed), found) for s, found in proximity.items() for seed in (1, 2, 3, 4)]
    assert judge("E2d", Evidence(PLAN, rows)).verdict is Verdict.NOT_DECIDABLE


def test_a_model_in_which_distance_falls_with_time_is_not_that_of_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("godwit.lab.adhoc.verdicts.expected_distances", lambda torus, ticks: list(range(20, 0, -1)))
    assert judge("A1", evidence()).verdict is Verdict.NOT_REPRODUCED


def test_the_model_s_arithmetic_does_not_hang_on_a_reading() -> None:
    assert over("A1", {TEXTS: [evidence()], NO_SLOTS: [evidence()]}).verdict is Verdict.ARITHMETIC

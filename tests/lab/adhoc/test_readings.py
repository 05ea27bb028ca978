"""Readings of how neighbors share the air: the same plan in each, and verdicts that say on which they hang."""

from __future__ import annotations

import msgspec
import pytest
from tests.lab.adhoc.made import as_published, result

from godwit.lab.adhoc.claims import CLAIMS
from godwit.lab.adhoc.plan import Plan
from godwit.lab.adhoc.readings import NO_SLOTS, PUBLISHED, SHORT, SLOTS, findings, left_open, plans, runs
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.adhoc.sigmoid import fitted
from godwit.lab.claims import Verdict
from godwit.lab.results import Row

pytestmark = pytest.mark.feature("manet-cbr F23")

BASE = Plan(seeds=3, first_seed=301)


def made(change: dict[str, tuple[float, float]]) -> list[Row[Configuration, Result]]:
    """As published everywhere, but gossip at p 0.5 as given for a radio."""
    rows = []
    for run in runs(BASE):
        setting = msgspec.structs.replace(run, seed=0)
        found = as_published(setting)
        if run.protocol == "gossip" and run.radio in change and run.subscribers == 10:
            found = result(*change[run.radio])
        rows.append(Row(run, msgspec.structs.replace(found, delivered=found.delivered + run.seed % 3)))
    return rows


def test_the_text_comes_first_and_what_gossip_does_not_change_is_run_once() -> None:
    names = list(plans(BASE))
    assert names[0] == SLOTS + "0 ms"
    assert names[-1] == NO_SLOTS
    every = runs(SHORT)
    assert len(every) == len(set(every))
    proximity = [run for run in every if run.protocol == "proximity" and run.radio == "slots"]
    assert {run.gossip_jitter_s for run in proximity} == {0.01}
    text = set(plans(SHORT)[names[0]].runs())
    assert set(every[: len(text)]) == text
    first = [run for own in left_open(plans(SHORT)[names[0]])[:1] for run in own]
    assert {msgspec.structs.replace(run, seed=0) for run in every[: len(first) * SHORT.seeds]} == set(first)


def test_a_claim_that_holds_on_one_radio_only_depends_on_the_air() -> None:
    found = {one.claim.name: one for one in findings(BASE, made({"per node": (0.9, 3.0)}))}
    assert list(found) == list(CLAIMS)
    assert found["E1a"].verdict is Verdict.DEPENDS
    assert "how neighbors share the air: holds with 802.11 slots" in found["E1a"].told
    assert found["A1"].verdict is Verdict.ARITHMETIC


def test_heavy_settings_are_shorter_and_fewer() -> None:
    dense = SHORT.denser(300, protocol="gossip", probability=1.0)
    assert SHORT.is_heavy(dense)
    assert dense.measure_s == SHORT.heavy_s
    assert not SHORT.is_heavy(SHORT.cell())
    seeds = {run.seed for run in runs(SHORT) if run.nodes == 300 and run.probability == 1.0 and run.radio == "slots"}
    assert seeds == {301, 302, 303}


def test_a_sigmoid_is_found_again() -> None:
    x = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0]
    y = [0.9 / (1 + 2.718281828 ** (-(p - 0.35) / 0.05)) for p in x]
    found = fitted(x, y)
    assert (found.top, found.middle, found.width) == pytest.approx((0.9, 0.35, 0.05), rel=0.05)
    assert found.steepest == pytest.approx(4.5, rel=0.05)
    assert found.r_squared > 0.999


def test_what_ten_worlds_leave_open_has_thirty_more_in_the_texts_reading() -> None:
    further = [run for run in runs(PUBLISHED) if run.seed > 310]
    assert {run.seed for run in further} == set(range(311, 341))
    text = plans(PUBLISHED)[SLOTS + "0 ms"]
    settings = {msgspec.structs.replace(run, seed=0) for run in further}
    assert {text.denser(n, protocol="gossip", probability=1.0) for n in text.densities} <= settings
    assert {text.gossip(p, rate_per_s=text.rates_per_s[-1]) for p in (0.3, 1.0)} <= settings

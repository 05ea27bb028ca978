"""Judges of what lasts see what they judge, and let the broker as it is pass."""

from __future__ import annotations

import pytest
from tests.sim.exploration.plans import PLANTED_LASTING, lasting_plan

from godwit.sim.exploration.judges_lasting import Thing, answers
from godwit.sim.exploration.plan import Ask, metres
from godwit.sim.exploration.trial import Trial


def test_the_broker_as_it_is_passes() -> None:
    trial = Trial(lasting_plan())
    verdict = trial.run()
    assert verdict.findings == []
    assert {"lasting", "since", "rate"} <= {kind for kind, count in verdict.done.items() if count}
    assert trial.roamers["s1"].changes
    assert sum(trial.roamers["r1"].counts.values()) > 20
    assert 4 <= sum(trial.roamers["k1"].counts.values()) < 20


@pytest.mark.parametrize("fault", PLANTED_LASTING)
def test_a_broker_that_breaks_a_promise_is_found(fault: str) -> None:
    tamper, kind = PLANTED_LASTING[fault]
    found = {finding.kind for finding in Trial(lasting_plan(), tamper=tamper).run().findings}
    assert kind in found


@pytest.mark.parametrize(
    ("ask", "wanted"),
    [
        (Ask("t"), {"t/1", "t/2", "t/3"}),
        (Ask("t", warm=True), {"t/2"}),
        (Ask("t", low=2, high=4), {"t/1", "t/3"}),
        (Ask("t", low=2, high=4, cover=True), {"t/1"}),
        (Ask("t", near="t/1", reach=2), {"t/2"}),
        (Ask("t", near="t/1", reach=1), set()),
        (Ask("t", near="t/9", reach=5), set()),
    ],
)
def test_what_answers_a_question_is_arithmetic(ask: Ask, wanted: set[str]) -> None:
    things = {
        "t/1": Thing(b"1", {"warm": False, "x": 2, "lon": 0.002}, 2, 0),
        "t/2": Thing(b"2", {"warm": True, "x": 4, "lon": 0.004}, 4, 0),
        "t/3": Thing(b"3", {"warm": False}, 3, 4),
        "u/1": Thing(b"4", {"warm": True, "x": 2, "lon": 0.002}, 2, 0),
    }
    assert {topic for topic in things if answers(ask, topic, things)} == wanted


def test_a_reach_ends_between_two_places() -> None:
    assert 2 * 111.195 < metres(2) < 3 * 111.195

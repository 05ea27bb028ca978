"""A judge that sees nothing would let every broker pass: each is shown a broker that does what it judges."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.sim.exploration.plans import CRASH, PLANTED, PLANTED_RICH, rich_plan, small_plan

from godwit.protocols.broker.streams.frames import Parcels
from godwit.sim.exploration.findings import Finding, shown
from godwit.sim.exploration.judges import disordered, longest_fall
from godwit.sim.exploration.plan import AnyStep, Come, Publish, Twice, load
from godwit.sim.exploration.trial import Trial

ELSEWHERE = Publish(at_s=0.2, client="p1", topic="b/y", warm=False, qos=2)
"""Something that the subscriber does not want."""


def test_the_broker_as_it_is_passes() -> None:
    verdict = Trial(small_plan(ELSEWHERE, *CRASH)).run()
    assert verdict.findings == []
    assert verdict.done["strike"] == 1
    assert verdict.delivered >= 8


@pytest.mark.parametrize("fault", PLANTED)
def test_a_broker_that_breaks_a_promise_is_found(fault: str) -> None:
    tamper, kind = PLANTED[fault]
    crash = () if kind == "disorder" else CRASH  # what goes wrong excuses some disorder
    verdict = Trial(small_plan(ELSEWHERE, *crash), tamper=tamper).run()
    assert kind in {finding.kind for finding in verdict.findings}, verdict.findings


def test_the_broker_as_it_is_passes_with_wills_clean_starts_and_groups() -> None:
    verdict = Trial(rich_plan()).run()
    assert verdict.findings == []
    assert {"will", "clean", "goodbye", "retain", "share"} <= verdict.done.keys()


@pytest.mark.parametrize("fault", PLANTED_RICH)
def test_a_broker_that_breaks_a_promise_beyond_deliveries_is_found(fault: str) -> None:
    tamper, kind = PLANTED_RICH[fault]
    found = {finding.kind for finding in Trial(rich_plan(), tamper=tamper).run().findings}
    assert kind in found


def test_what_nobody_wants_is_looked_for_on_the_links_themselves() -> None:
    trial = Trial(small_plan())
    seen: list[str] = []
    trial.cluster.cables.spy = lambda sender, to, message: seen.append(type(message).__name__)
    assert trial.run().findings == []
    assert Parcels.__name__ in seen


@pytest.mark.parametrize(
    ("sequence", "parts"), [((), 0), ((1, 2, 3), 1), ((1, 3, 2), 2), ((3, 2, 1), 3), ((5, 1, 6, 2, 7), 2)]
)
def test_a_sequence_has_as_many_parts_as_its_longest_fall(sequence: tuple[int, ...], parts: int) -> None:
    assert longest_fall(sequence) == parts


THREE_SESSIONS = load(Path(__file__).parent / "failures" / "dht-three-sessions-and-one-answer.json")
KNOCKED = [step for step in THREE_SESSIONS.steps if not isinstance(step, Twice)]


def judged_as(trial: Trial, client: str, order: list[int]) -> list[str]:
    """What a judge would say, had it come in this order."""
    trial.roamers[client].order[:] = order
    return [finding.kind for finding in disordered(trial)]


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("stays_s", [0.0, 0.5])
def test_a_session_is_a_part_whether_or_not_its_client_has_heard_of_it(stays_s: float, clean: bool) -> None:
    knocks: tuple[AnyStep, ...] = (
        Come(at_s=9.6, client="s3", to="b3", notice_s=None, clean=clean),
        Come(at_s=9.6 + stays_s, client="s3", to="b2", notice_s=None),
    )
    steps = tuple(sorted((*KNOCKED, *knocks), key=lambda step: step.at_s))
    trial = Trial(msgspec.structs.replace(THREE_SESSIONS, steps=steps))
    assert trial.run().findings == []
    client = trial.roamers["s3"]
    assert [one.at for one in client.admissions] == (["b1", "b3", "b2"] if stays_s else ["b1", "b2"])
    if not clean:
        assert client.order == [3, 2, 1, 4, 5]
    parts = 2 if clean and not stays_s else 3
    assert judged_as(trial, "s3", [5, 4, 3, 2, 1][-parts:]) == []
    assert judged_as(trial, "s3", [5, 4, 3, 2, 1][-parts - 1 :]) == ["disorder"]


def test_where_the_older_session_comes_in_time_a_knock_without_an_answer_is_no_part() -> None:
    trial = Trial(msgspec.structs.replace(THREE_SESSIONS, session_wait_s=0.5))
    assert trial.run().findings == []
    assert judged_as(trial, "s3", [2, 1, 3]) == []
    assert judged_as(trial, "s3", [3, 2, 1]) == ["disorder"]


def test_a_finding_reads_as_a_line() -> None:
    assert str(Finding("lost", "s1", f"never got {shown(list(range(1, 9)))}")) == (
        "lost: s1 never got 1, 2, 3, 4, 5, 6 and 2 more"
    )
    assert str(Finding("error", "", "KeyError: 3")) == "error: KeyError: 3"

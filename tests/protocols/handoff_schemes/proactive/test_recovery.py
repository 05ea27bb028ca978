from __future__ import annotations

from math import inf

import msgspec
import pytest
from tests.protocols.handoff_schemes.stages import UNBOUNDED, Desk, Stage

from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.proactive.recovery import Recovering
from godwit.protocols.handoff_schemes.records import Kind
from godwit.protocols.neighbors.graph import GraphOptions

FIXED = msgspec.structs.replace(UNBOUNDED, timeout_s=60.0, guard_s=inf)


def make(desk: Desk, options: HandoffOptions) -> Recovering:
    others = frozenset("ABC") - {desk.name}
    return Recovering(desk, msgspec.structs.replace(options, graph=GraphOptions(static=others)))


def staged() -> Stage:
    stage = Stage("ABC", FIXED, make)
    stage.client("s", "A")
    stage.settle()
    return stage


def crash(stage: Stage, name: str) -> tuple[list[object], list[str]]:
    """The broker and all that was under way to and from it are gone."""
    saved, neighbors = stage.brokers[name].saved(), list(stage.brokers[name].graph.edges)
    for route in list(stage.mail):
        if name in route:
            stage.mail[route].clear()
    stage.brokers[name] = make(Desk(stage, name), FIXED)
    return saved, neighbors


@pytest.mark.feature("proactive-handoff F27")
def test_a_neighbor_that_does_not_answer_is_left_out_from_then_on() -> None:
    stage = staged()
    stage.brokers["A"].watch()
    for _ in range(4):
        stage.mail["A", "C"].clear()
        stage.settle()
        stage.pass_time(1.0)
    assert stage.brokers["A"].graph.names == {"B"}
    stage.settle()
    stage.vanish("s")
    assert stage.waiting("A", "C") == []
    assert "Activate" in stage.waiting("A", "B")
    stage.brokers["A"].stop()


@pytest.mark.feature("proactive-handoff F27")
def test_copies_that_a_failed_broker_has_woken_do_not_stay_awake_for_ever() -> None:
    stage = staged()
    stage.vanish("s")
    stage.settle()
    assert stage.brokers["B"].records["s"].is_active
    stage.brokers["B"].failed("A")
    stage.pass_time(59)
    assert "s" in stage.brokers["B"].records
    stage.pass_time(1)
    assert "s" not in stage.brokers["B"].records


@pytest.mark.feature("proactive-handoff F27")
@pytest.mark.parametrize(("meanwhile", "expected"), [("away", True), ("here", False), ("gone", None)])
def test_a_recovered_broker_s_copies_are_made_to_agree(meanwhile: str, expected: bool | None) -> None:
    stage = staged()
    if meanwhile == "here":
        stage.vanish("s")
        stage.settle()
    saved, neighbors = crash(stage, "B")
    if meanwhile == "away":
        stage.vanish("s")
    elif meanwhile == "here":
        stage.clients["s"].connect("A")
    else:
        stage.clients["s"].unsubscribe()
    stage.mail["A", "B"].clear()
    stage.brokers["B"].recover(saved, neighbors)
    stage.settle()
    record = stage.brokers["B"].records.get("s")
    assert (record and record.is_active) is expected
    if meanwhile == "away":
        stage.publish(to="ABC")
        stage.clients["s"].connect("B")
        stage.settle()
        assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F27")
def test_subscribers_of_a_crashed_broker_are_kept_for_a_while_and_found_by_whoever_asks() -> None:
    stage = staged()
    saved, neighbors = crash(stage, "A")
    stage.brokers["A"].recover(saved, neighbors)
    stage.settle()
    stage.publish(to="ABC")
    stage.clients["s"].vanish()
    stage.clients["s"].connect("C")
    stage.settle()
    assert stage.got["s"] == [0]
    assert stage.brokers["A"].records["s"].kind is Kind.DUMMY


@pytest.mark.feature("proactive-handoff F27")
def test_those_who_do_not_come_back_to_a_recovered_broker_are_given_up() -> None:
    stage = staged()
    saved, neighbors = crash(stage, "A")
    stage.brokers["A"].recover(saved, neighbors)
    stage.settle()
    stage.pass_time(60)
    stage.settle()
    assert [("s" in broker.records) for broker in stage.brokers.values()] == [False, False, False]

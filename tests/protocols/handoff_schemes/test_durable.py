from __future__ import annotations

import pytest
from tests.protocols.handoff_schemes.stages import ALL, Stage

from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.durable import Durable


def stage_of(names: str, *, everywhere: bool) -> Stage:
    stage = Stage(names, HandoffOptions(), Durable)
    if everywhere:
        for broker in stage.brokers.values():
            broker.provide("s", {"w": ALL})
    return stage


@pytest.mark.feature("proactive-handoff F28")
def test_what_comes_while_the_client_is_away_waits_for_its_return() -> None:
    stage = stage_of("A", everywhere=False)
    stage.client("s", "A")
    stage.publish(to="A")
    stage.vanish("s")
    stage.publish(to="A")
    stage.clients["s"].connect("A")
    stage.publish(to="A")
    assert stage.got["s"] == [0, 1, 2]


@pytest.mark.feature("proactive-handoff F28")
@pytest.mark.parametrize(("everywhere", "got"), [(False, [0]), (True, [0, 0, 1])])
def test_the_first_visit_loses_the_gap_unless_everything_is_stored_everywhere(everywhere: bool, got: list[int]) -> None:
    stage = stage_of("AB", everywhere=everywhere)
    stage.client("s", "A")
    stage.publish(to="AB")
    stage.vanish("s")
    stage.publish(to="AB")
    stage.clients["s"].connect("B")
    assert stage.got["s"] == got


@pytest.mark.feature("proactive-handoff F28")
def test_on_return_the_old_broker_repeats_what_the_other_had_delivered() -> None:
    stage = stage_of("AB", everywhere=False)
    stage.client("s", "A")
    stage.move("s", "B")
    stage.publish(to="AB")
    stage.move("s", "A")
    assert stage.got["s"] == [0, 0]


@pytest.mark.feature("proactive-handoff F28", "proactive-handoff F4")
def test_a_full_buffer_loses_the_oldest() -> None:
    stage = stage_of("A", everywhere=False)
    stage.brokers["A"].buffer.capacity_b = -1
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="A")
    stage.clients["s"].connect("A")
    assert stage.got["s"] == []
    assert stage.brokers["A"].buffer.lost["s"] == 1


def test_unsubscribing_ends_it_here_only() -> None:
    stage = stage_of("AB", everywhere=True)
    stage.client("s", "A").unsubscribe()
    assert [("s" in broker.records) for broker in stage.brokers.values()] == [False, True]

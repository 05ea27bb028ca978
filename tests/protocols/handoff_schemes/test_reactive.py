from __future__ import annotations

import pytest
from tests.protocols.handoff_schemes.stages import Stage

from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.reactive import Reactive


def stage_of(names: str, *, dedupe: bool = False) -> Stage:
    return Stage(names, HandoffOptions(dedupe=dedupe, chunk=2), Reactive)


@pytest.mark.feature("proactive-handoff F29")
def test_the_first_event_comes_after_the_whole_backlog_was_fetched_and_merged() -> None:
    stage = stage_of("AB")
    stage.client("s", "A")
    stage.vanish("s")
    for _ in range(5):
        stage.publish(to="A")
    stage.clients["s"].connect("B")
    for _ in range(5):
        stage.carry("P", "B")
    stage.carry_all("B", "A")
    stage.carry("A", "B", 2)
    assert stage.got["s"] == []
    stage.carry("A", "B")
    assert sorted(set(stage.got["s"])) == [0, 1, 2, 3, 4]
    assert stage.brokers["A"].records == {}


@pytest.mark.feature("proactive-handoff F29")
@pytest.mark.parametrize(("dedupe", "got"), [(False, [0, 1, 1]), (True, [0, 1])])
def test_an_event_that_both_brokers_had_comes_twice_unless_duplicates_are_removed(dedupe: bool, got: list[int]) -> None:
    stage = stage_of("AB", dedupe=dedupe)
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="AB")
    stage.clients["s"].connect("B")
    stage.publish(to="AB")
    stage.settle()
    assert stage.got["s"] == got


@pytest.mark.feature("proactive-handoff F29")
def test_moves_chain_and_the_backlog_hops_after_the_client() -> None:
    stage = stage_of("ABCD", dedupe=True)
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="ABCD")
    for place in "BC":
        stage.clients["s"].connect(place)
        stage.vanish("s")
        stage.publish(to="ABCD")
    stage.clients["s"].connect("D")
    stage.settle()
    assert stage.got["s"] == [0, 1, 2]


@pytest.mark.feature("proactive-handoff F29")
def test_a_quick_return_does_not_wait_in_a_circle() -> None:
    stage = stage_of("AB", dedupe=True)
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="AB")
    stage.clients["s"].connect("B")
    stage.move("s", "A")
    stage.settle()
    stage.publish(to="AB")
    assert stage.got["s"] == [0, 1]


@pytest.mark.feature("proactive-handoff F29")
def test_a_return_to_the_same_broker_needs_nobody() -> None:
    stage = stage_of("AB")
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="AB")
    stage.clients["s"].connect("A")
    assert stage.got["s"] == [0]
    assert not any(stage.mail.get(pair) for pair in (("A", "B"), ("B", "A")))
    stage.clients["s"].unsubscribe()
    assert stage.brokers["A"].records == {}

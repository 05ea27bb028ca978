from __future__ import annotations

import pytest
from tests.protocols.handoff_schemes.stages import UNBOUNDED, Stage

from godwit.protocols.handoff_schemes.home import Home


@pytest.mark.feature("proactive-handoff F30")
def test_wherever_the_client_is_its_home_sends_everything_there() -> None:
    stage = Stage("ABC", UNBOUNDED, Home)
    stage.client("s", "A")
    for place in "BCA":
        stage.publish(to="ABC")
        stage.move("s", place)
        stage.publish(to="ABC")
        stage.settle()
        stage.publish(to="ABC")
        stage.settle()
    assert stage.got["s"] == list(range(stage.published))
    assert [list(broker.records) for broker in stage.brokers.values()] == [["s"], [], []]


@pytest.mark.feature("proactive-handoff F30")
def test_news_that_come_late_do_not_send_events_to_where_the_client_was() -> None:
    stage = Stage("ABC", UNBOUNDED, Home)
    stage.client("s", "A")
    stage.move("s", "B", noticed=False)
    stage.move("s", "C", noticed=False)
    stage.carry_all("C", "A")
    stage.carry_all("B", "A")
    stage.brokers["B"].lost("s")
    stage.settle()
    stage.publish(to="ABC")
    stage.settle()
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F30")
def test_a_visitor_that_unsubscribes_is_forgotten_at_home() -> None:
    stage = Stage("AB", UNBOUNDED, Home)
    stage.client("s", "A")
    stage.move("s", "B")
    stage.settle()
    stage.clients["s"].unsubscribe()
    stage.settle()
    assert stage.brokers["A"].records == {}
    assert stage.brokers["B"].visitors == {}

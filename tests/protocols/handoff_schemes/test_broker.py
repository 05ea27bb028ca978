"""What all schemes share: floods, topics with selectors, marks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.handoff_schemes.stages import UNBOUNDED, Stage

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ, rng
from godwit.protocols.handoff_schemes.broker import HandoffBroker, HandoffOptions
from godwit.protocols.handoff_schemes.durable import Durable
from godwit.protocols.handoff_schemes.home import Home
from godwit.protocols.handoff_schemes.messages import Publish
from godwit.protocols.handoff_schemes.proactive.scheme import ProActive
from godwit.protocols.handoff_schemes.reactive import Reactive

RING = {"A": "BD", "B": "AC", "C": "BD", "D": "CA"}
SCHEMES = [Durable, Reactive, ProActive, Home]


def news(low: int, high: int) -> Filter:
    return filter_of(attribute("type", equ("news")), attribute("value", rng(low, high)))


def flooding() -> Stage:
    stage = Stage("ABCD")
    for name, others in RING.items():
        stage.brokers[name].overlay = tuple(others)
    return stage


@pytest.mark.feature("proactive-handoff F1")
@given(st.lists(st.sampled_from(["P>A", "Q>C", *(f"{a}>{b}" for a in RING for b in RING[a])]), max_size=60))
def test_a_flood_over_any_graph_reaches_everybody_once_and_in_order_however_links_race(steps: list[str]) -> None:
    stage = flooding()
    for name in RING:
        stage.client(f"s{name}", name)
    for step in steps:
        a, b = step.split(">")
        if a in "PQ":
            publish_at(stage, a, b)
        elif stage.mail.get((a, b)):
            stage.carry(a, b)
    stage.settle()
    for name in RING:
        got = stage.got[f"s{name}"]
        assert sorted(got) == list(range(stage.published))
        for publisher in "PQ":
            own = [sequence for sequence in got if stage.publishers[sequence] == publisher]
            assert own == sorted(own)


def publish_at(stage: Stage, publisher: str, broker: str) -> None:
    event = Event(publisher, stage.published, attributes={"value": 1})
    stage.published += 1
    stage.publishers.append(publisher)
    stage.brokers[broker].receive(publisher, Publish(event))


@pytest.mark.feature("proactive-handoff F1")
def test_only_who_wants_an_event_gets_it_and_only_from_its_own_broker() -> None:
    stage = Stage("AB")
    stage.client("low", "A", filter_of(attribute("value", rng(0, 9))))
    stage.client("high", "B", filter_of(attribute("value", rng(10, 19))))
    stage.publish(5, to="AB")
    stage.publish(15, to="AB")
    assert (stage.got["low"], stage.got["high"]) == ([0], [1])
    assert not any(stage.mail.values())


@pytest.mark.feature("proactive-handoff F2", "proactive-handoff F3")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_topic_and_selector_choose_and_what_was_acknowledged_is_not_kept(scheme: type[HandoffBroker]) -> None:
    stage = Stage("A", UNBOUNDED, scheme)
    stage.client("s", "A", news(10, 29))
    broker = stage.brokers["A"]
    for sequence, (topic, value) in enumerate([("news", 15), ("sport", 15), ("news", 40), ("news", 29)]):
        broker.receive("P", Publish(Event("P", sequence, attributes={"value": value}, type=topic)))
    assert stage.got["s"] == [0, 3]
    assert broker.records["s"].marks["P"] == 3
    assert len(broker.buffer) == 0


@pytest.mark.feature("proactive-handoff F2")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_comes_while_nobody_listens_is_kept_and_comes_in_order(scheme: type[HandoffBroker]) -> None:
    stage = Stage("A", UNBOUNDED, scheme)
    stage.client("s", "A")
    stage.lossy.add("s")
    stage.publish(to="A")
    stage.vanish("s")
    stage.lossy.clear()
    stage.publish(to="A")
    assert len(stage.brokers["A"].buffer) == 2
    stage.clients["s"].connect("A")
    assert stage.got["s"] == [0, 0, 1]
    assert len(stage.brokers["A"].buffer) == 0


@pytest.mark.feature("proactive-handoff F3")
@pytest.mark.parametrize("scheme", [Reactive, ProActive])
def test_the_mark_goes_with_the_context(scheme: type[HandoffBroker]) -> None:
    stage = Stage("AB", HandoffOptions(dedupe=True), scheme)
    stage.client("s", "A")
    for _ in range(3):
        stage.publish(to="A")
    stage.move("s", "B")
    stage.settle()
    assert stage.got["s"] == [0, 1, 2]
    assert stage.brokers["B"].records["s"].marks == {"P": 2}

"""The published worked examples, message for message (spec mft-pubsub 2.1, 2.2, 2.9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.protocols.overlay import Broker, Overlay, mft, topic

from godwit.events import Event
from godwit.protocols.host import Core, Host
from godwit.protocols.routing.messages import Bmig, Bsub, Claim, Pub, Rbmig
from godwit.protocols.routing.phoenix import PhoenixBroker
from godwit.protocols.routing.recursive import RecursiveBroker
from godwit.protocols.routing.rules import HARDENED, THESIS, Rules
from godwit.protocols.routing.simple import SimpleBroker
from godwit.protocols.topology.tree import Tree

EDGES = [("b1", "b2"), ("b1", "b3"), ("b2", "b4"), ("b2", "b5"), ("b3", "b6"), ("b3", "b7")]


WANTED = {
    ("s1", "b1"): ["f1"],
    ("s2", "b2"): ["f1", "f2"],
    ("s4", "b2"): ["f4"],
    ("s3", "b3"): ["f3"],
    ("s5", "b3"): ["f1", "f6"],
    ("s6", "b3"): ["f6"],
}


def three(broker: Broker) -> Overlay:
    overlay = Overlay(broker, [("b1", "b2"), ("b1", "b3")])
    for (client, at), topics in WANTED.items():
        overlay.subscribe(client, at, *topics)
    overlay.settle()
    return overlay


def trips(overlay: Overlay) -> list[str]:
    """Every hop since the last look, clients included."""
    overlay.world.run()
    hops = [f"{sender}->{to}" for sender, to, _ in overlay.medium.log]
    overlay.medium.log.clear()
    return hops


@pytest.mark.feature("mft-pubsub F5")
def test_g1_simple_routing_counts_equal_rows() -> None:
    overlay = three(SimpleBroker)
    broker = overlay.broker("b1")
    assert isinstance(broker, SimpleBroker)
    rows = [(topic(name), hop) for name, hop in [
        ("f1", "s1"), ("f1", "b2"), ("f1", "b3"), ("f2", "b2"), ("f3", "b3"), ("f4", "b2"), ("f6", "b3"), ("f6", "b3"),
    ]]  # fmt: skip
    assert Counter(broker.routes) == Counter(rows)


@pytest.mark.feature("mft-pubsub F5")
@pytest.mark.parametrize("broker", [SimpleBroker, PhoenixBroker])
def test_g1_a_subscription_and_events_cross_each_link_once(broker: Callable[[Host, Tree], Core]) -> None:
    overlay = three(broker)
    overlay.subscribe("s4", "b2", "f7")
    assert trips(overlay) == ["s4->b2", "b2->b1", "b1->b3"]
    overlay.say("p1", "b2", Pub(Event("p1", 1, attributes={"topic": "f1"})))
    assert sorted(trips(overlay)) == ["b1->b3", "b1->s1", "b2->b1", "b2->s2", "b3->s5", "p1->b2"]
    overlay.say("p1", "b2", Pub(Event("p1", 2, attributes={"topic": "f6"})))
    assert sorted(trips(overlay)) == ["b1->b3", "b2->b1", "b3->s5", "b3->s6", "p1->b2"]


@pytest.mark.feature("mft-pubsub F6")
def test_g1_phoenix_names_the_subscriber_in_each_row() -> None:
    broker = three(PhoenixBroker).broker("b1")
    assert isinstance(broker, PhoenixBroker)
    rows = Counter((row.wanted, row.hop, row.subscriber) for row in broker.routes)
    assert rows == Counter(
        (topic(name), hop, subscriber)
        for name, hop, subscriber in [
            ("f1", "s1", "s1"), ("f1", "b2", "s2"), ("f1", "b3", "s5"), ("f2", "b2", "s2"),
            ("f3", "b3", "s3"), ("f4", "b2", "s4"), ("f6", "b3", "s5"), ("f6", "b3", "s6"),
        ]
    )  # fmt: skip


def seven_recursive() -> Overlay:
    overlay = Overlay(RecursiveBroker, EDGES)
    for i in range(1, 8):
        overlay.subscribe(f"s{i}", f"b{i}", f"f{i}")
    overlay.settle()
    return overlay


def short(overlay: Overlay) -> list[str]:
    """`b3->b2 Rbmig[s3]`, sorted: the order between independent messages is free."""
    return sorted(
        f"{a}->{b} {type(m).__name__}" + (f"[{','.join(m.clients)}]" if isinstance(m, Rbmig) else "")
        for a, b, m in overlay.settle()
    )


@pytest.mark.feature("mft-pubsub F7", "mft-pubsub F36")
def test_example_a_takes_the_recursive_approach_thirteen_messages() -> None:
    overlay = seven_recursive()
    overlay.cut("b1", "b3")
    overlay.move("b3", "b2")
    assert short(overlay) == sorted([
        "b3->b2 Rbmig[s3]", "b2->b3 Btab", "b2->b1 Rbmig[s3]", "b3->b6 Fmig", "b3->b7 Fmig", "b6->b3 Rbmig[s6]",
        "b7->b3 Rbmig[s7]", "b3->b6 Btab", "b3->b7 Btab", "b3->b2 Rbmig[s6]", "b3->b2 Rbmig[s7]",
        "b2->b1 Rbmig[s6]", "b2->b1 Rbmig[s7]",
    ])  # fmt: skip


@pytest.mark.feature("mft-pubsub F7", "mft-pubsub F36")
def test_example_b_takes_the_recursive_approach_twelve_messages() -> None:
    overlay = seven_recursive()
    overlay.cut("b1", "b3")
    overlay.cut("b3", "b6")
    overlay.move("b6", "b5")
    first = short(overlay)
    overlay.move("b3", "b2")
    assert sorted(first + short(overlay)) == sorted([
        "b6->b5 Rbmig[s6]", "b5->b6 Btab", "b5->b2 Rbmig[s6]", "b2->b1 Rbmig[s6]", "b3->b2 Rbmig[s3]", "b2->b3 Btab",
        "b2->b1 Rbmig[s3]", "b3->b7 Fmig", "b7->b3 Rbmig[s7]", "b3->b7 Btab", "b3->b2 Rbmig[s7]", "b2->b1 Rbmig[s7]",
    ])  # fmt: skip


def seven(rules: Rules) -> Overlay:
    overlay = Overlay(mft(rules), EDGES)
    for i in range(1, 8):
        overlay.subscribe(f"s{i}", f"b{i}", f"f{i}", t=1)
    overlay.settle()
    return overlay


def claims(*triples: tuple[str, int, int]) -> tuple[Claim, ...]:
    return tuple(Claim(*triple) for triple in triples)


@pytest.mark.parametrize("rules", [THESIS, HARDENED])
@pytest.mark.feature("mft-pubsub F8")
def test_every_broker_knows_how_far_each_subscriber_is(rules: Rules) -> None:
    overlay = seven(rules)
    assert {name: overlay.mft(name).known["s7"] for name in overlay.trees} == {
        "b7": (1, 1), "b3": (1, 2), "b1": (1, 3), "b6": (1, 3), "b2": (1, 4), "b4": (1, 5), "b5": (1, 5),
    }  # fmt: skip


@pytest.mark.parametrize("rules", [THESIS, HARDENED])
@pytest.mark.feature("mft-pubsub F9", "mft-pubsub F10", "mft-pubsub F36")
def test_example_a_takes_two_messages(rules: Rules) -> None:
    overlay = seven(rules)
    overlay.cut("b1", "b3")
    overlay.move("b3", "b2")
    below = claims(("s3", 1, 1), ("s6", 1, 2), ("s7", 1, 2))
    beyond = claims(("s1", 1, 2), ("s2", 1, 3), ("s4", 1, 4), ("s5", 1, 4))
    first, second = overlay.settle()
    assert first[:2] == ("b3", "b2")
    assert isinstance(first[2], Bmig)
    assert (set(first[2].below), set(first[2].beyond), first[2].h) == (set(below), set(beyond), 0)
    assert second[:2] == ("b2", "b1")
    assert isinstance(second[2], Bmig)
    assert (set(second[2].below), second[2].beyond, second[2].h) == (set(below), (), 1)


@pytest.mark.feature("mft-pubsub F10", "mft-pubsub F11", "mft-pubsub F36")
@pytest.mark.parametrize("rules", [THESIS, HARDENED])
def test_example_b_takes_thirteen_messages_and_ends_right(rules: Rules) -> None:
    overlay = seven(rules)
    overlay.cut("b1", "b3")
    overlay.cut("b3", "b6")
    overlay.move("b6", "b5")
    first = overlay.settle()
    assert [(a, b, type(m).__name__) for a, b, m in first] == [
        ("b6", "b5", "Bmig"), ("b5", "b2", "Bmig"), ("b2", "b1", "Bmig"),
    ]  # fmt: skip
    overlay.move("b3", "b2")
    second = overlay.settle()
    assert len(first) + len(second) == 13
    below = claims(("s3", 1, 1), ("s6", 1, 2), ("s7", 1, 2))
    assert sorted((a, b, m.h) for a, b, m in second if isinstance(m, Bmig)) == [
        ("b2", "b1", 1), ("b2", "b5", 1), ("b3", "b2", 0), ("b5", "b6", 2),
    ]  # fmt: skip
    assert all(set(m.below) == set(below) for _, _, m in second if isinstance(m, Bmig))
    assert sorted((a, b, m.subscriber, m.filters, (m.t, m.hs), m.h) for a, b, m in second if isinstance(m, Bsub)) == [
        ("b2", "b1", "s6", (topic("f6"),), (1, 1), 2),
        ("b2", "b3", "s6", (topic("f6"),), (1, 1), 2),
        ("b2", "b4", "s6", (topic("f6"),), (1, 1), 2),
        ("b3", "b7", "s6", (topic("f6"),), (1, 1), 3),
        ("b5", "b2", "s6", (topic("f6"),), (1, 1), 1),
        ("b6", "b5", "s6", (topic("f6"),), (1, 1), 0),
    ]
    expected = {"b6": 1, "b5": 2, "b2": 3, "b1": 4, "b3": 4, "b4": 4, "b7": 5}
    assert {name: overlay.mft(name).known["s6"] for name in expected} == {n: (1, h) for n, h in expected.items()}

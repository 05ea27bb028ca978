"""The network below a ring: delays follow distance, hops are counted by type, radios end where clients leave."""

from __future__ import annotations

import pytest

from godwit.protocols.gathering.messages import Associate, Matched, Notify, Pub
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.pastry.messages import Cast, Hop, HopAck
from godwit.sim.ring.underlay import Underlay, kind_of
from godwit.sim.world import Node, World

pytestmark = pytest.mark.feature("data-gathering F35")


class Ear:
    def __init__(self, host: Node) -> None:
        self.host = host
        self.heard: list[tuple[float, NodeId]] = []

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.heard.append((self.host.world.engine.now, sender))


def world() -> tuple[World, Underlay, dict[NodeId, Ear]]:
    made = World(1, Underlay)
    ears: dict[NodeId, Ear] = {}
    assert isinstance(made.medium, Underlay)
    for name, place in (("a", (0.0, 0.0)), ("b", (3.0, 4.0)), ("p", None)):
        if place is None:
            made.medium.attached[name] = None
        else:
            made.medium.places[name] = place

        def start(host: Node, name: NodeId = name) -> Ear:
            ears[name] = Ear(host)
            return ears[name]

        made.add(name, start)
    return made, made.medium, ears


def test_a_message_takes_a_millisecond_and_one_more_for_each_unit_of_distance() -> None:
    made, underlay, ears = world()
    underlay.send("a", "b", HopAck(1))
    made.run()
    ((when_s, sender),) = ears["b"].heard
    assert sender == "a"
    assert when_s == pytest.approx(0.006)
    assert underlay.travelled == 5.0


def test_what_travels_is_counted_by_what_it_carries_once_for_each_hop() -> None:
    _, underlay, _ = world()
    for message in (Hop(1, Pub(None)), Hop(2, Cast((), Matched(None))), HopAck(1), HopAck(2)):  # type: ignore[arg-type]
        underlay.send("a", "b", message)
    assert underlay.sent == {"Pub": 1, "Matched": 1, "HopAck": 2}
    assert kind_of(Hop(3, Cast((), Matched(None)))) == "Matched"  # type: ignore[arg-type]


def test_a_radio_works_while_the_client_is_attached_to_that_broker_and_only_then() -> None:
    made, underlay, ears = world()
    underlay.send("p", "a", Associate("p", 1))
    made.run(1.0)
    underlay.attached["p"] = "a"
    underlay.send("p", "a", Associate("p", 1))
    underlay.send("p", "b", Associate("p", 1))
    made.run(2.0)
    underlay.send("a", "p", Notify(None))  # type: ignore[arg-type]
    underlay.attached["p"] = "b"
    made.run(3.0)
    assert [name for name, ear in ears.items() if ear.heard] == ["a"]
    assert len(ears["a"].heard) == 1


def test_random_delays_let_messages_overtake_each_other() -> None:
    made = World(3, lambda one: Underlay(one, draw=lambda dice: dice.expovariate(1.0)))
    assert isinstance(made.medium, Underlay)
    order: list[int] = []
    made.medium.places.update(a=(0.0, 0.0), b=(1.0, 1.0))
    made.medium.watch = lambda sender, to, message: order.append(message.number)  # type: ignore[attr-defined]
    for name in "ab":
        made.add(name, Ear)
    for number in range(20):
        made.medium.send("a", "b", HopAck(number))
    made.run()
    assert sorted(order) == list(range(20)) != order

"""Phoenix: fixed brokers, moving clients (spec mft-pubsub 2.2)."""

from __future__ import annotations

import pytest
from tests.protocols.overlay import Broker, Overlay, chain, event, topic

from godwit.protocols.host import NodeId
from godwit.protocols.routing.messages import Mig, Rep, Uns
from godwit.protocols.routing.phoenix import PhoenixBroker

pytestmark = pytest.mark.feature("mft-pubsub F6")


def phoenix(overlay: Overlay, name: NodeId) -> PhoenixBroker:
    core = overlay.broker(name)
    assert isinstance(core, PhoenixBroker)
    return core


def line(broker: Broker = PhoenixBroker) -> Overlay:
    """A real subscriber at the last of three brokers."""
    overlay = Overlay(broker, chain("b1", "b2", "b3"))
    overlay.subscriber("s", "f")
    overlay.attach("s", "b3")
    overlay.subscriber("s").subscribe(topic("f"))
    overlay.settle()
    return overlay


def missed(overlay: Overlay, *numbers: int) -> None:
    """Events for a subscriber that is out of reach of b3."""
    overlay.medium.cut("s", "b3")
    for n in numbers:
        overlay.publish("b1", event("f", n))
        overlay.settle(1)


def test_a_client_that_moves_gets_what_it_missed_and_nothing_else() -> None:
    overlay = line()
    overlay.publish("b1", event("f", 1))
    overlay.settle(1)
    missed(overlay, 2, 3)
    overlay.attach("s", "b1")
    replays = [m for _, _, m in overlay.settle() if isinstance(m, Rep)]
    assert overlay.got("s") == [("p1", 1), ("p1", 2), ("p1", 3)]
    assert {e.sequence for m in replays for e in m.events} == {2, 3}
    assert overlay.trace.counts["duplicate"] == 0


def test_a_client_that_comes_back_to_the_same_broker_is_still_its_client() -> None:
    """The printed code would drop it from the local clients."""
    overlay = line()
    missed(overlay, 1)
    overlay.medium.heal("s", "b3")
    overlay.say_as("s", "b3", Mig("s", "b3"))
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]
    assert phoenix(overlay, "b3").local == {"s"}
    overlay.publish("b1", event("f", 2))
    overlay.settle()
    assert overlay.got("s") == [("p1", 1), ("p1", 2)]


def test_what_is_replayed_is_logged_again_since_the_client_may_move_on() -> None:
    overlay = line()
    missed(overlay, 1)
    overlay.medium.connect("s", "b2")
    overlay.medium.cut("s", "b2")
    overlay.at["s"] = "b2"
    overlay.world.deliver("s", "b2", Mig("s", "b3"))
    overlay.settle()
    assert overlay.got("s") == []
    overlay.attach("s", "b1")
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]


def test_a_client_that_wants_nothing_more_is_no_longer_local() -> None:
    overlay = line()
    overlay.say_as("s", "b3", Uns(topic("f"), "s"))
    overlay.settle()
    assert phoenix(overlay, "b3").local == set()
    assert len(phoenix(overlay, "b1").routes) == 0


def test_stamps_are_the_brokers_own_and_compared_nowhere_else() -> None:
    """b3's clock is days ahead of everybody's; what it replays depends on its own stamps alone."""
    overlay = line()
    overlay.world.nodes["b3"].clock_offset_s = 1e6
    overlay.publish("b1", event("f", 1))
    overlay.settle(1)
    missed(overlay, 2)
    overlay.attach("s", "b1")
    overlay.settle()
    overlay.publish("b3", event("f", 3))
    overlay.settle()
    assert overlay.got("s") == [("p1", 1), ("p1", 2), ("p1", 3)]
    assert overlay.trace.counts["duplicate"] == 0


@pytest.mark.feature("mft-pubsub F26")
def test_a_log_keeps_no_more_than_agreed() -> None:
    overlay = line(lambda host, tree: PhoenixBroker(host, tree, log_max=2))
    missed(overlay, 1, 2, 3)
    overlay.attach("s", "b1")
    overlay.settle()
    assert overlay.got("s") == [("p1", 2), ("p1", 3)]

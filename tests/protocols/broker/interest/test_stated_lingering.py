"""What a broker states does not follow every hop of a client, and follows in the end."""

from __future__ import annotations

from tests.protocols.broker.resting import nothing_is_left, resting_world

from godwit.protocols.broker.interest.stated import LINGER_S
from godwit.protocols.host import NodeId
from godwit.sim.brokers.world import World


def stated(world: World) -> dict[tuple[NodeId, NodeId], int]:
    """By who has heard it and of whom, the number of the newest statement."""
    return {(here, of): said[0] for here, site in world.sites.items() for of, said in site.heard.items()}


def test_a_client_that_hops_among_brokers_that_know_it_makes_nobody_restate_and_loses_nothing() -> None:
    world, subscriber, publisher = resting_world()
    subscriber.connect("b1")
    world.run(0.5)
    before = stated(world)
    for number, broker in enumerate(["b3", "b2", "b1", "b2"]):
        subscriber.drop()
        world.run(0.5)
        publisher.publish("a/x", str(number).encode(), qos=2)
        subscriber.connect(broker)
        world.run(0.5)
    assert stated(world) == before
    assert [payload.decode() for payload in subscriber.payloads] == ["0", "1", "2", "3"]


def test_what_is_wanted_no_longer_is_stated_no_longer_after_a_while() -> None:
    world, subscriber, _ = resting_world()
    subscriber.connect("b1")
    world.run(0.5)
    assert world.sites["b2"].heard["b3"][1] != ()
    world.run(LINGER_S)
    assert world.sites["b2"].heard["b3"][1] == ()
    nothing_is_left(world)


def test_a_client_that_unsubscribes_is_wanted_nothing_for_at_once() -> None:
    world, subscriber, _ = resting_world()
    subscriber.connect("b1")
    world.run(LINGER_S + 1)
    assert world.sites["b2"].heard["b1"][1] != ()
    world.sites["b1"].broker.unsubscribe(subscriber.session, ["a/#"])
    world.run(0.5)
    assert world.sites["b2"].heard["b1"][1] == ()

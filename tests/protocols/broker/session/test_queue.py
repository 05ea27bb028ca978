"""Deliveries that a crash interrupts: QoS 0 means at most once, whatever was published and whoever repeats it."""

from __future__ import annotations

from random import Random

import pytest

from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import Trees


class SlowTrees(Trees):
    def write_s(self, dice: Random) -> float:
        return 0.5


def got_after_a_crash(at_s: float, qos: int, *, retain: bool = False) -> int:
    """How often a subscriber at QoS 0 gets a publication of another broker, if its own crashes so long after it."""
    world = SlowTrees(2)
    subscriber = Client(world, "s").connect("b1", expiry_s=3600.0).subscribe("a/#", qos=0)
    publisher = Client(world, "p").connect("b2")
    world.run(20)
    publisher.publish("a/x", b"1", qos=qos, retain=retain)
    world.run(at_s)
    world.sites["b1"].crash()
    world.run(1)
    world.sites["b1"].start()
    subscriber.connect("b1")
    world.run(60)
    return sum(not one.retain for one in subscriber.got)


@pytest.mark.parametrize(("qos", "retain"), [(0, False), (0, True), (1, False), (2, False)])
def test_at_qos_0_nothing_comes_twice_whenever_its_broker_crashes(qos: int, retain: bool) -> None:
    found = [got_after_a_crash(tenths / 10, qos, retain=retain) for tenths in range(2, 30, 2)]
    assert max(found) == 1
    assert found[-1] == 1, "what is on the disk when the broker crashes has been delivered"

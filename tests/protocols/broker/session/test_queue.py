"""Deliveries that a crash interrupts: QoS 0 means at most once, whatever was published and whoever repeats it. And what
comes together for a client that is away."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from godwit.protocols.broker.api import Limits
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.rows import CHUNK_MAX
from godwit.protocols.broker.session.state import Item
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import Trees, World


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


TOGETHER = [b"%d" % number for number in range(300)]


def handed_together(limits: Limits) -> World:
    """What is published at once at QoS 1 for a session whose client is away, and acknowledged."""
    world = World()
    Client(world, "s").connect("b1", limits=limits).subscribe("a", qos=1).drop()
    publisher, broker, safe = Client(world, "p").connect("b1").session, world.sites["b1"].broker, list[str]()
    world.run()
    publications = [Publication("p", publisher.next_sequence(), "a", one, 1, False, 1.0) for one in TOGETHER]
    takers = broker.takers("a")
    assert takers is not None
    assert broker.hand(publisher, publications, takers, lambda: safe.append("yes")) == [[]]
    world.run()
    assert safe == ["yes"]
    return world


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("kept", [7, 256, 300])
def test_what_came_together_while_a_client_was_away_comes_in_order_as_far_as_its_bounds_allow(
    crashes: bool, kept: int
) -> None:
    world = handed_together(Limits(queue_max=kept))
    site = world.sites["b1"]
    if crashes:
        site.crash()
        site.start()
    assert (len(site.broker.sessions["s"].queue.waiting), site.broker.counts.waiting) == (kept, kept)
    back = Client(world, "s").connect("b1")
    world.run()
    assert back.payloads == TOGETHER[-kept:]
    assert site.broker.counts.waiting == 0
    assert not site.disk["queues"]


def test_nothing_is_made_of_what_came_together_until_its_client_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Item] = []

    def counted(*given: Any, **named: Any) -> Item:
        made.append(Item(*given, **named))
        return made[-1]

    for module in ("dispatch", "session.rows"):
        monkeypatch.setattr(f"godwit.protocols.broker.{module}.Item", counted)
    world = handed_together(Limits())
    queue = world.sites["b1"].broker.sessions["s"].queue
    assert (len(queue.waiting), made) == (len(TOGETHER), [])
    Client(world, "s").connect("b1", inflight_max=20)
    assert len(made) == CHUNK_MAX, "the first row of them"
    world.run()
    assert len(made) == len(TOGETHER)

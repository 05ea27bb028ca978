"""A world in which a session rests and copies of it are out, and what a test asks of it."""

from __future__ import annotations

from typing import Any

from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.broker.session.state import Copy
from godwit.protocols.host import NodeId
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import Even, World


class SlowWorld(World):
    """Some streams are as slow as a test wants them to be."""

    slow: frozenset[tuple[NodeId, NodeId]] = frozenset()

    def _delay(self, sender: NodeId, receiver: NodeId) -> float:
        return 3.0 if (sender, receiver) in self.slow else super()._delay(sender, receiver)


def resting_world(
    kind: type[World] = Even, *, handoff: Handoff = "proactive", token: bool = False, **more: Any
) -> tuple[World, Client, Client]:
    """A subscriber that was at b1 and has left, a publisher at b2; all copies are there."""
    world = kind(3, handoff=handoff, **more)
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    subscriber.keeps_token = token
    publisher = Client(world, "p").connect("b2")
    world.run()
    subscriber.drop()
    world.run()
    return world, subscriber, publisher


def copies(world: World) -> dict[str, Copy]:
    """By holder."""
    found = {name: site.broker._registry.copies.get("s") for name, site in world.sites.items() if site.up}
    return {name: copy for name, copy in found.items() if copy is not None}


def places(world: World) -> list[str]:
    return [name for name, site in world.sites.items() if site.up and "s" in site.broker.sessions]


def nothing_is_left(world: World) -> None:
    assert not copies(world)
    for site in [site for site in world.sites.values() if site.up]:
        assert not site.broker.shadows
        assert not site.broker._moves.holding.bytes
        for session in site.broker.sessions.values():
            assert not session.inflow.gates
            assert not session.inflow.upstreams
            assert not session.carried.claims


def talk(world: World, since: int, *kinds: str) -> list[str]:
    """What brokers have said of the session."""
    return [
        f"{sender} > {' '.join(sorted(to))}: {type(content).__name__}"
        for sender, to, content in world.said[since:]
        if type(content).__name__ in kinds
    ]

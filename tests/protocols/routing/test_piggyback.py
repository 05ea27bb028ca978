"""Heartbeats that carry other messages: each gets its own, in order, and nothing waits for ever."""

from __future__ import annotations

import pytest
from tests.sim.worlds import Word

from godwit.protocols.host import Host, Message, NodeId
from godwit.protocols.routing.messages import Ack
from godwit.protocols.routing.piggyback import Carrying, Laden
from godwit.protocols.topology.election import Heartbeat
from godwit.sim.mobility import Still
from godwit.sim.radio import Disc
from godwit.sim.world import Node, World

pytestmark = pytest.mark.feature("mft-pubsub F38")

BEAT = Heartbeat("a", 0, 1, 0)


class Core:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.got: list[tuple[NodeId, Message]] = []

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.got.append((sender, message))


def three(hold_s: float = 5.0, **options: int) -> tuple[World, Disc, dict[str, Core]]:
    """Carriers a, b and c within reach of each other."""
    world = World(1, lambda world: Disc(world, range_m=10))
    disc = world.medium
    assert isinstance(disc, Disc)
    cores: dict[str, Core] = {}

    def start(node: Node) -> Carrying:
        carrying = Carrying(node, Core, hold_s=hold_s, **options)
        assert isinstance(carrying.core, Core)
        cores[node.name] = carrying.core
        return carrying

    for name in "abc":
        disc.place(name, Still(0, 0))
        world.add(name, start)
    return world, disc, cores


def test_what_waits_travels_in_the_next_heartbeat_and_everybody_takes_its_own() -> None:
    world, disc, cores = three()
    for to, serial in (("b", 1), ("c", 2), ("b", 3)):
        cores["a"].host.send(to, Ack(serial))
    world.run(1.0)
    assert not disc.sent
    cores["a"].host.broadcast(BEAT)
    world.run(2.0)
    assert disc.sent == {("a", "Laden"): 1}
    assert cores["b"].got == [("a", BEAT), ("a", Ack(1)), ("a", Ack(3))]
    assert cores["c"].got == [("a", BEAT), ("a", Ack(2))]


def test_without_a_heartbeat_everything_goes_by_itself_in_the_end() -> None:
    world, _, cores = three(hold_s=5.0)
    cores["a"].host.send("b", Ack(1))
    world.run(4.9)
    assert cores["b"].got == []
    world.run(6.0)
    assert cores["b"].got == [("a", Ack(1))]


def test_a_full_heartbeat_leaves_the_rest_for_the_next() -> None:
    world, disc, cores = three(load_max_b=20)
    for serial in range(4):
        cores["a"].host.send("b", Ack(serial))
    for _ in range(2):
        cores["a"].host.broadcast(BEAT)
    world.run(1.0)
    acks = [message.serial for _, message in cores["b"].got if isinstance(message, Ack)]
    assert acks == [0, 1, 2, 3]
    assert disc.sent["a", "Laden"] == 2


def test_a_client_holds_nothing_back_and_a_bare_heartbeat_stays_bare() -> None:
    world, disc, cores = three(hold_s=0.0)
    cores["a"].host.send("b", Ack(1))
    cores["a"].host.broadcast(BEAT)
    cores["a"].host.broadcast(Word(7))
    world.run(1.0)
    assert {message for _, message in cores["b"].got} == {Ack(1), BEAT, Word(7)}
    assert ("a", "Laden") not in disc.sent


def test_a_laden_heartbeat_weighs_what_is_in_it() -> None:
    _, disc, cores = three()
    cores["a"].host.send("b", Ack(1))
    cores["a"].host.broadcast(BEAT)
    assert disc.sent_b["a"] == BEAT.size_b + 2 + Ack(1).size_b
    assert Laden(BEAT, ()).size_b == BEAT.size_b

"""Gossip: sent on with a probability by whoever hears it first (spec manet-cbr 2.8)."""

from __future__ import annotations

import pytest
from tests.protocols.adhoc.fields import BLACK, GREY, Air, black

from godwit.protocols.adhoc.gossip import GossipBroker, GossipOptions
from godwit.protocols.adhoc.messages import Beacon
from godwit.protocols.host import LocalError, NodeId, RemoteError
from godwit.sim.recorder import Trace
from godwit.sim.world import World

pytestmark = pytest.mark.feature("manet-cbr F16")


class Circle:
    """So many brokers, each in range of its two neighbors; all but the first want black."""

    def __init__(self, count: int, probability: float, seed: int = 1) -> None:
        self.trace = Trace()
        self.world = World(seed, Air, self.trace)
        assert isinstance(self.world.medium, Air)
        self.air = self.world.medium
        names = [f"n{i}" for i in range(count)]
        for name in names:
            self.world.add(name, lambda host: GossipBroker(host, GossipOptions(probability=probability)))
        for a, b in zip(names, [*names[1:], names[0]], strict=True):
            self.air.connect(a, b)
        for name in names[1:]:
            self[name].subscribe(BLACK, "app")

    def __getitem__(self, name: NodeId) -> GossipBroker:
        core = self.world.nodes[name].core
        assert isinstance(core, GossipBroker)
        return core


def test_with_certainty_everybody_sends_once_and_everybody_who_wants_it_has_it() -> None:
    net = Circle(10, 1.0)
    net["n0"].publish(black())
    net.world.run(5)
    assert sorted(sender for _, sender, _ in net.air.log) == sorted(net.world.nodes)
    assert net.trace.counts["delivered"] == 9


def test_with_probability_nought_only_the_source_sends() -> None:
    net = Circle(10, 0.0)
    net["n0"].publish(black())
    net.world.run(5)
    assert [sender for _, sender, _ in net.air.log] == ["n0"]
    assert net.trace.counts["delivered"] == 2


def test_about_as_many_send_as_the_probability_says() -> None:
    sent = 0
    for seed in range(400):
        net = Circle(3, 0.3, seed)
        net["n0"].publish(black())
        net.world.run(1)
        sent += len(net.air.log) - 1
    assert sent / 800 == pytest.approx(0.3, abs=0.05)


def test_who_wants_nothing_is_told_nothing_and_who_leaves_is_told_no_more() -> None:
    net = Circle(3, 1.0)
    net["n1"].unsubscribe(BLACK, "app")
    net["n1"].subscribe(GREY, "app")
    net["n0"].publish(black())
    net.world.run(1)
    assert [row[1] for row in net.trace.of("delivered")] == ["n2"]


def test_beacons_and_used_names_and_impossible_odds_are_refused() -> None:
    net = Circle(3, 1.0)
    with pytest.raises(RemoteError, match="Beacon"):
        net["n0"].receive("n1", Beacon(BLACK))
    net["n0"].publish(black())
    with pytest.raises(LocalError, match="published before"):
        net["n0"].publish(black())
    with pytest.raises(ValueError, match="from 0 to 1"):
        GossipOptions(probability=1.5)

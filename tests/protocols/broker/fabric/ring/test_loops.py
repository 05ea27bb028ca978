"""A ring inside a site: what a gateway brings in is matched by its ring, and a cut waits until all of it is back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from tests.sim.brokers.lands import Land

from godwit.protocols.broker.fabric.gateway import ring_of
from godwit.protocols.broker.fabric.ring.loops import USED_MAX, Loops
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import Crossed, Marker, Passed, Routed
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.broker.streams.frames import Parcels, decode_items
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.site import SimHost
from godwit.sim.engine import Engine


def said(topic: str) -> Publication:
    return Publication("p", 1, topic, b"{}", qos=1)


class Ways:
    """A broker with loops, whose probes stay where the test leaves them."""

    def __init__(self, disk: Disk) -> None:
        self.engine = Engine()
        host = SimHost("g", self.engine, Random(1))
        store = MemoryStore(disk, lambda call: host.after(0.001, call))
        self.sent: list[Routed] = []
        self.back: list[str] = []
        self.loops = Loops(host, store, Targets(), self.sent.append)

    def when_back(self, name: str) -> Callable[[], None]:
        return lambda: self.back.append(name)


def test_a_cut_waits_for_one_probe_to_each_target_that_was_used() -> None:
    ways = Ways({})
    for topic in ("a/x", "a/y", "b/x"):
        ways.loops.add(said(topic))
    ways.loops.flush(ways.when_back("first"))
    assert [one.publication.topic.partition("/")[0] for one in ways.sent] == ["a", "b"]
    ways.loops.passed(ways.sent[0].probe)
    assert ways.back == []
    ways.loops.passed(ways.sent[1].probe)
    assert ways.back == ["first"]


def test_where_nothing_was_sent_nobody_waits() -> None:
    ways = Ways({})
    ways.loops.flush(ways.when_back("at once"))
    assert ways.back == ["at once"]


def test_a_later_cut_comes_after_an_earlier_one_whichever_probes_are_back() -> None:
    ways = Ways({})
    ways.loops.add(said("a/x"))
    ways.loops.flush(ways.when_back("first"))
    ways.loops.add(said("b/x"))
    ways.loops.flush(ways.when_back("second"))
    first, second = ways.sent
    ways.loops.passed(second.probe)
    assert ways.back == []
    ways.loops.passed(first.probe)
    assert ways.back == ["first", "second"]


def test_after_a_crash_what_was_under_way_is_waited_for_again() -> None:
    disk: Disk = {}
    ways = Ways(disk)
    ways.loops.add(said("a/x"))
    ways.loops.flush(ways.when_back("never"))
    ways.engine.run(1.0)
    again = Ways(disk)
    again.loops.flush(again.when_back("again"))
    assert len(again.sent) == 1
    assert again.back == []
    again.loops.passed(again.sent[0].probe)
    again.engine.run(1.0)
    assert again.back == ["again"]
    assert not disk.get("ring")


def test_what_a_client_said_that_has_left_is_followed_to_each_target_and_a_cut_does_not_wait_for_that() -> None:
    ways, back = Ways({}), list[int]()
    ways.loops.on_back = back.append
    tickets = ways.loops.follow([said("a/x"), said("a/y"), said("b/x")])
    assert [one.publication.topic.partition("/")[0] for one in ways.sent] == ["a", "b"]
    assert tickets == [one.probe for one in ways.sent]
    ways.loops.flush(ways.when_back("cut"))
    assert ways.back == ["cut"]
    for ticket in (*tickets, *tickets):
        ways.loops.passed(ticket)
    assert back == tickets


def test_what_follows_is_on_the_disk_and_is_sent_again_where_another_disk_is_lost() -> None:
    disk: Disk = {}
    ways = Ways(disk)
    (ticket,) = ways.loops.follow([said("a/x")])
    ways.loops.store.settled(lambda: None)
    ways.engine.run(1.0)
    again, back = Ways(disk), list[int]()
    again.loops.on_back = back.append
    assert again.sent == [], "the probe itself is on the disk, wherever it is kept"
    again.loops.again()
    assert again.sent == ways.sent
    again.loops.passed(ticket)
    again.loops.again()
    assert back == [ticket]
    assert again.sent == ways.sent, "it is back"


def test_many_targets_are_probed_meanwhile_so_that_their_number_is_bounded() -> None:
    ways = Ways({})
    for number in range(USED_MAX + 1):
        ways.loops.add(said(f"t{number}/x"))
    ways.engine.run(1.0)
    assert len(ways.sent) == USED_MAX + 1


RINGS = "a1-a2 a2-a3 a1-a3 b1-b2 b2-b3 b1-b3 a1-b1"


@pytest.mark.parametrize("seed", range(3))
def test_events_cross_between_rings_once_each_and_what_nobody_wants_does_not(seed: int) -> None:
    land = Land(RINGS, seed, "sites-dht")
    hearers = {at: land.client(f"s{at}", at, "x/#", "y/#") for at in ("a2", "b1", "b3")}
    speakers = [land.client(f"p{at}", at) for at in ("a3", "b2", "a1")]
    land.run(5.0)
    for number in range(30):
        for speaker in speakers:
            speaker.speak(f"{'xyz'[number % 3]}/{number}", {}, 2)
        land.run(0.05)
    land.run(10.0)
    wanted = [n for n, one in land.said.items() if one.topic[0] in "xy"]
    for hearer in hearers.values():
        assert sorted(hearer.order) == wanted
        for line in {(one.publisher, one.topic[0]) for one in land.said.values()}:
            own = [n for n in hearer.order if (land.said[n].publisher, land.said[n].topic[0]) == line]
            assert own == sorted(own), line
    for name in ("a1", "b1"):
        crossed = [one.counts.events_out for one in land.gateway(name).uplinks.values()]
        from_here = [n for n in wanted if land.said[n].publisher[1] == name[0]]
        assert crossed == [len(from_here)], "once, and not back to where it came from"


def test_every_broker_of_a_ring_hears_of_its_gateway_though_nobody_knows_all() -> None:
    land = Land("a1-a2 a2-a3 a3-a4 a4-a5 a5-a6 a1-b1", 1, "sites-dht")
    land.run(20.0)
    for name in ("a2", "a3", "a4", "a5", "a6"):
        ring = ring_of(land.cluster.sites[name].station.fabric)
        assert ring is not None
        assert set(ring.statements.gateways) == {"a1"}, name


def test_a_cut_is_made_when_all_that_came_before_it_is_back() -> None:
    """Over the uplink comes `Marker`, probes go round, and only then `Crossed` is said."""
    land = Land(RINGS, 1, "sites-dht")
    client, speaker = land.client("s", "a2", "x/#"), land.client("p", "b2")
    other = land.client("o", "a3", "x/#")
    for _ in range(5):
        speaker.speak("x/y", {}, 2)
    land.run(2.0)
    heard: list[str] = []

    def listen(sender: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Parcels):
            for item in (item for run in message.runs for item in decode_items(run)):
                content = item.content
                if isinstance(content, Marker | Crossed | Passed) or (isinstance(content, Routed) and content.probe):
                    heard.append(type(content).__name__)

    land.cluster.cables.spy = listen
    client.come("b3")
    land.run(5.0)
    assert client.admissions[-1].present
    assert heard[0] == "Marker"
    assert heard.index("Crossed") > heard.index("Marker")
    if "Routed" in heard:  # unless the gateway matches it itself
        assert heard.index("Marker") < heard.index("Routed") < heard.index("Passed") < heard.index("Crossed")
    assert sorted(client.order) == sorted(other.order) == [*land.said]

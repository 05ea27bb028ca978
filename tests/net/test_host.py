"""The asyncio host keeps the contract of `protocols.host`, and cores behave on it as in simulation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from tests.net.stations import Station, played, until
from tests.protocols import fleet
from tests.protocols.overlay import topic

from godwit.events import Event
from godwit.net.host import AsyncHost
from godwit.protocols.host import Host, LocalError, Message, NodeId, Record, RemoteError
from godwit.protocols.routing.clients import ClientOptions, Publisher, Subscriber
from godwit.protocols.routing.messages import Ack
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.process import BrokerProcess
from godwit.protocols.routing.rules import HARDENED
from godwit.protocols.topology.election import ElectionOptions
from godwit.protocols.topology.tree import Tree


class Wire:
    """Notes what leaves."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, ...]] = []

    def send(self, to: NodeId, message: Message) -> None:
        self.sent.append(("send", to, type(message).__name__))

    def broadcast(self, message: Message) -> None:
        self.sent.append(("broadcast", type(message).__name__))

    def drop(self, peer: NodeId, reason: str) -> None:
        self.sent.append(("drop", peer, reason))


class Failing:
    """Raises what it is told to."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def receive(self, sender: NodeId, message: Message, /) -> None:
        raise self.error


def test_a_host_is_a_host() -> None:
    async def scene() -> None:
        host: Host = AsyncHost("a", Wire())
        assert host.name == "a"
        before = host.now()
        await asyncio.sleep(0.01)
        assert host.now() > before

    played(scene)


def test_timers_fire_once_unless_cancelled_or_stopped() -> None:
    async def scene() -> None:
        host = AsyncHost("a", Wire())
        fired: list[str] = []
        host.after(0.0, lambda: fired.append("first"))
        cancelled = host.after(0.0, lambda: fired.append("cancelled"))
        cancelled.cancel()
        cancelled.cancel()
        await until(lambda: fired == ["first"])
        host.after(0.0, lambda: fired.append("after the end"))
        host.stop()
        await asyncio.sleep(0.02)
        assert fired == ["first"]

    played(scene)


def test_dice_differ_between_hosts() -> None:
    async def scene() -> None:
        one, other = AsyncHost("a", Wire()), AsyncHost("a", Wire())
        assert [one.random.random() for _ in range(4)] != [other.random.random() for _ in range(4)]

    played(scene)


def test_facts_go_to_the_sink_with_the_node() -> None:
    async def scene() -> None:
        facts: list[tuple[NodeId, str]] = []
        host = AsyncHost("a", Wire(), lambda time_s, node, record: facts.append((node, record.kind)))
        host.trace(Record("leading"))
        AsyncHost("b", Wire()).trace(Record("to nobody"))
        assert facts == [("a", "leading")]

    played(scene)


def test_a_peer_that_breaks_the_protocol_loses_its_link() -> None:
    async def scene() -> None:
        wire = Wire()
        host = AsyncHost("a", wire)
        host.core = Failing(RemoteError("counts below zero"))
        host.deliver("liar", Ack(1))
        assert wire.sent == [("drop", "liar", "counts below zero")]

    played(scene)


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (ZeroDivisionError("oh"), "bug", "ZeroDivisionError: oh"),
        (LocalError("no such thing"), "local", "no such thing"),
    ],
)
def test_any_other_failure_is_logged_and_counted_and_the_broker_goes_on(
    caplog: pytest.LogCaptureFixture, error: Exception, kind: str, told: str
) -> None:
    def fail() -> None:
        raise error

    async def scene() -> None:
        wire = Wire()
        host = AsyncHost("a", wire)
        host.core = Failing(error)
        host.deliver("b", Ack(1))
        host.after(0.0, fail)
        await until(lambda: host.failures[kind] == 2)
        fired: list[int] = []
        host.after(0.0, lambda: fired.append(1))
        await until(lambda: fired)
        assert wire.sent == []

    played(scene)
    # Not `caplog.text`: Spark has it written as JSON where a test of it came first.
    text = "\n".join(map(logging.Formatter().format, caplog.records))
    assert told in text
    assert ("Traceback" in text) == (kind == "bug")


QUICK = ElectionOptions(period_s=0.05, leader_timeout_s=0.5, child_timeout_s=0.5, jitter_s=0.002)
CLIENTS = ClientOptions(refresh_s=10.0, acknowledge=True)
EDGES = [("b1", "b2"), ("b2", "b3"), ("b2", "b4"), ("s1", "b3"), ("s2", "b4"), ("p1", "b1"), ("p2", "b4")]
EVENTS = 20

Facts = list[tuple[NodeId, Record]]


def test_the_same_processes_deliver_the_same_in_simulation_and_over_sockets() -> None:
    """Brokers elect a leader and route by MFT; two subscribers get from two publishers what they want, in order."""
    simulated = in_simulation()
    real = over_sockets()
    assert simulated == real
    assert [len(got) for got in real.values()] == [EVENTS * 2] * 2


def delivered_by_publisher(pairs: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Each publisher's events in the order of arrival; how the publishers' interleave is the world's business."""
    return sorted(pairs, key=lambda pair: pair[0])


def in_simulation() -> dict[NodeId, list[tuple[str, int]]]:
    system = fleet.wired(EDGES, election=QUICK, clients=CLIENTS)
    system.run(5)
    for number in range(1, EVENTS + 1):
        for publisher in ("p1", "p2"):
            for subscriber in ("s1", "s2"):
                system.publish(publisher, subscriber, 2 * number + (subscriber == "s2"))
        system.run(0.01)
    system.run(5)
    rows = system.trace.of("delivered")
    return {
        name: delivered_by_publisher([(str(row[3]), int(row[4] or 0)) for row in rows if row[1] == name])
        for name in ("s1", "s2")
    }


def over_sockets() -> dict[NodeId, list[tuple[str, int]]]:
    facts: Facts = []
    played(lambda: _live(facts))
    return {
        name: delivered_by_publisher([event for node, event in _delivered(facts) if node == name])
        for name in ("s1", "s2")
    }


def _delivered(facts: Facts) -> list[tuple[NodeId, tuple[str, int]]]:
    return [(node, record.event) for node, record in facts if record.kind == "delivered" and record.event is not None]


async def _live(facts: Facts) -> None:
    stations = {name: Station(name) for edge in EDGES for name in edge}
    hosts = {name: AsyncHost(name, stations[name].links, _noting(facts)) for name in stations}
    for name, host in hosts.items():
        stations[name].links.on_message = host.deliver
        stations[name].links.on_known = lambda peers: None
        host.core = _process(host)
    for a, b in EDGES:
        host_, port = "127.0.0.1", await stations[a].links.listen("127.0.0.1", 0)
        stations[b].dialler.dial(f"{host_}:{port}")
    subscribers = [core for core in (host.core for host in hosts.values()) if isinstance(core, Subscriber)]
    publishers = [core for core in (host.core for host in hosts.values()) if isinstance(core, Publisher)]
    brokers = [host.core.router for host in hosts.values() if isinstance(host.core, BrokerProcess)]
    await until(lambda: all(client.attachment.broker for client in (*subscribers, *publishers)))
    await until(lambda: all(_knows(broker, {"s1", "s2"}) for broker in brokers))
    for number in range(1, EVENTS + 1):
        for publisher in publishers:
            for subscriber in ("s1", "s2"):
                sequence = 2 * number + (subscriber == "s2")
                publisher.publish(
                    Event(publisher.host.name, sequence, attributes={"topic": subscriber}, payload=bytes(16))
                )
        await asyncio.sleep(0)
    await until(lambda: len(_delivered(facts)) >= 4 * EVENTS)
    assert all(not host.failures for host in hosts.values())
    for host in hosts.values():
        host.stop()
    for station in stations.values():
        await station.stop()


def _noting(facts: Facts) -> Callable[[float, NodeId, Record], None]:
    return lambda time_s, node, record: facts.append((node, record))


def _knows(router: object, subscribers: set[NodeId]) -> bool:
    assert isinstance(router, MftBroker)
    return set(router.routes.subscribers) >= subscribers


def _process(host: Host) -> BrokerProcess | Subscriber | Publisher:
    match host.name[0]:
        case "b":
            return BrokerProcess(host, _router, QUICK, incarnation=1)
        case "s":
            return Subscriber(host, [topic(host.name)], CLIENTS, disk={})
        case _:
            return Publisher(host, CLIENTS)


def _router(host: Host, tree: Tree) -> MftBroker:
    return MftBroker(host, tree, HARDENED, acknowledge=True)

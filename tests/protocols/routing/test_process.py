"""Processes, devices of several roles, and the same cores on every medium (spec mft-pubsub 1.2, 1.3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.overlay import topic

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ, gre
from godwit.protocols.host import Core, Host, LocalError, Message, NodeId
from godwit.protocols.routing.clients import ClientOptions, Publisher, Subscriber
from godwit.protocols.routing.messages import Sub
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.process import BrokerProcess, Device, Enclosed
from godwit.protocols.topology.election import Heartbeat
from godwit.sim.mobility import Still
from godwit.sim.radio import CC2420, Disc, Radio
from godwit.sim.recorder import Trace
from godwit.sim.wired import Wired
from godwit.sim.world import Medium, Node, World

CLIENTS = ClientOptions(refresh_s=10.0, acknowledge=True)


def broker(host: Host) -> BrokerProcess:
    incarnation = int(host.now() * 1000)
    return BrokerProcess(host, partial(MftBroker, acknowledge=True), incarnation=incarnation)


def subscriber(host: Host, wanted: Filter, home: NodeId | None = None) -> Subscriber:
    return Subscriber(host, [wanted], CLIENTS, home=home)


class Devices:
    """Devices 1, 2, 3, ... in a row, each within reach of the next."""

    def __init__(self, count: int) -> None:
        self.trace = Trace()
        self.world = World(0, partial(Disc, range_m=15), self.trace)
        assert isinstance(self.world.medium, Disc)
        self.air = self.world.medium
        for i in range(1, count + 1):
            self.air.place(str(i), Still(10.0 * i, 0.0))
            self.world.add(str(i), Device)

    def __getitem__(self, name: str) -> Device:
        core = self.world.nodes[name].core
        assert isinstance(core, Device)
        return core

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def publish(self, name: str, wanted: str, sequence: int) -> None:
        core = self[name].processes[f"p{name}"]
        assert isinstance(core, Publisher)
        core.publish(Event(f"p{name}", sequence, attributes={"topic": wanted}))

    def got(self, process: NodeId) -> list[tuple[str | None, int | None]]:
        return [(row[3], row[4]) for row in self.trace.of("delivered") if row[5] == process]


def three_roles(devices: Devices, name: str) -> None:
    """Broker, subscriber to whatever names this device, and publisher."""
    home = devices[name].play("b", broker)
    devices[name].play("s", lambda host: subscriber(host, topic(name), home))
    devices[name].play("p", lambda host: Publisher(host, CLIENTS, home=home))


@pytest.mark.feature("mft-pubsub F2", "mft-pubsub F3", "mft-pubsub F39")
def test_devices_with_all_three_roles_can_each_speak_to_any_other() -> None:
    devices = Devices(4)
    for name in "1234":
        three_roles(devices, name)
    devices.run(10)
    for n, (source, aim) in enumerate((a, b) for a in "1234" for b in "1234"):
        devices.publish(source, aim, n)
        devices.run(0.5)
    devices.run(5)
    for aim in "1234":
        assert [publisher for publisher, _ in devices.got(f"s{aim}")] == ["p1", "p2", "p3", "p4"]


@pytest.mark.feature("mft-pubsub F2")
def test_processes_of_one_device_do_not_use_the_air_for_one_another() -> None:
    devices = Devices(1)
    three_roles(devices, "1")
    devices.run(5)
    devices.publish("1", "1", 1)
    devices.run(1)
    assert devices.got("s1") == [("p1", 1)]
    heartbeats = 6
    assert sum(devices.air.sent.values()) <= heartbeats


@pytest.mark.feature("mft-pubsub F2", "mft-pubsub F4")
def test_a_device_stops_being_a_broker_and_its_subscriber_finds_another() -> None:
    devices = Devices(2)
    three_roles(devices, "1")
    home = devices["2"].play("b", broker)
    devices["2"].play("s", lambda host: subscriber(host, topic("2"), home))
    devices.run(10)
    devices["2"].stop("b")
    devices["2"].stop("s")
    devices["2"].play("s", lambda host: subscriber(host, topic("2")))
    devices.run(15)
    devices.publish("1", "2", 1)
    devices.run(2)
    assert devices.got("s2") == [("p1", 1)]
    core = devices["2"].processes["s2"]
    assert isinstance(core, Subscriber)
    assert core.attachment.broker == "b1"


@pytest.mark.feature("mft-pubsub F2")
def test_a_role_is_played_once_and_only_what_is_played_can_be_stopped() -> None:
    device = Devices(1)["1"]
    device.play("b", broker)
    with pytest.raises(LocalError, match="plays 'b' already"):
        device.play("b", broker)
    with pytest.raises(LocalError, match="does not play 's'"):
        device.stop("s")


@pytest.mark.feature("mft-pubsub F2")
def test_the_timers_of_a_stopped_process_are_silent() -> None:
    devices = Devices(2)
    devices["1"].play("b", broker)
    devices["1"].stop("b")
    devices.run(10)
    assert sum(devices.air.sent.values()) == 0


@pytest.mark.feature("mft-pubsub F1", "mft-pubsub F35")
def test_an_envelope_weighs_nothing_and_can_be_read_back() -> None:
    enclosed = Enclosed("b1", Heartbeat("b1", 1, 1, 0))
    assert enclosed.size_b == 15
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(enclosed), type=Enclosed) == enclosed


class Actor:
    """Passes each message on to the next, and notes whether it is ever disturbed while at work."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.got: list[int] = []
        self.busy = False

    def receive(self, sender: NodeId, message: Message, /) -> None:
        assert not self.busy, "one message at a time, to completion"
        assert isinstance(message, Sub)
        self.busy = True
        self.got.append(message.t)
        if message.h < 5:
            self.host.send(sender, Sub(message.wanted, "s", message.t, message.h + 1))
            self.host.send(self.host.name, Sub(message.wanted, "s", message.t, 9))
        self.busy = False


@pytest.mark.feature("mft-pubsub F1")
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_a_link_keeps_the_order_and_handlers_run_to_completion(seed: int, count: int) -> None:
    world = World(seed, Wired)
    assert isinstance(world.medium, Wired)
    world.medium.connect("a", "b", latency_s=lambda dice: dice.uniform(0, 1))
    world.medium.connect("a", "a", latency_s=0.0)
    world.add("a", Actor)
    world.add("b", Actor)
    for n in range(count):
        world.nodes["a"].send("b", Sub(topic("f"), "s", n, 5))
    world.nodes["b"].send("a", Sub(topic("f"), "s", 1, 0))
    world.run()
    core = world.nodes["b"].core
    assert isinstance(core, Actor)
    assert core.got[:count] == sorted(core.got[:count])


def on_wires(world: World) -> Medium:
    wired = Wired(world)
    for a, b in (("b1", "b2"), ("b2", "s"), ("b1", "p")):
        wired.connect(a, b)
    return wired


def on_air(medium: Callable[[World], Disc | Radio]) -> Callable[[World], Medium]:
    def make(world: World) -> Medium:
        air = medium(world)
        for i, name in enumerate(("p", "b1", "b2", "s")):
            air.place(name, Still(10.0 * i, 0.0))
        return air

    return make


QUIET = msgspec.structs.replace(CC2420, sigma_db=0.0, one_way_sigma_db=0.0)


@pytest.mark.feature("mft-pubsub F1", "mft-pubsub F4")
@pytest.mark.parametrize(
    "medium",
    [on_wires, on_air(partial(Disc, range_m=15)), on_air(partial(Radio, profile=QUIET))],
    ids=["wires", "disc", "radio"],
)
def test_the_same_cores_run_on_every_medium(medium: Callable[[World], Medium]) -> None:
    trace = Trace()
    world = World(1, medium, trace)
    starts: dict[NodeId, Callable[[Node], Core]] = {
        "b1": broker,
        "b2": broker,
        "s": lambda host: subscriber(host, topic("f")),
        "p": lambda host: Publisher(host, CLIENTS),
    }
    for name, start in starts.items():
        world.add(name, start)
    world.run(15)
    publisher = world.nodes["p"].core
    assert isinstance(publisher, Publisher)
    publisher.publish(Event("p", 1, attributes={"topic": "f"}))
    world.run(20)
    assert [(row[1], row[4]) for row in trace.of("delivered")] == [("s", 1)]


@pytest.mark.feature("mft-pubsub F3")
def test_filters_are_predicates_on_content_or_a_topic_or_ones_own_name() -> None:
    devices = Devices(3)
    three_roles(devices, "1")
    home = devices["3"].play("b", broker)
    devices["2"].play("b", broker)
    hot = filter_of(attribute("heat", gre(30)), attribute("topic", equ("2")))
    devices["3"].play("s", lambda host: subscriber(host, hot, home))
    devices.run(10)
    core = devices["1"].processes["p1"]
    assert isinstance(core, Publisher)
    for n, (name, heat) in enumerate([("2", 10), ("2", 30), ("1", 50), ("2", 99)]):
        core.publish(Event("p1", n, attributes={"topic": name, "heat": heat}))
        devices.run(1)
    assert devices.got("s3") == [("p1", 1), ("p1", 3)]
    assert devices.got("s1") == [("p1", 2)]

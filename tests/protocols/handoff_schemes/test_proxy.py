"""Broker and proxy of one machine, the same over staged mail and over real links on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import reduce
from operator import or_

import msgspec
import pytest
from tests.net.stations import QUICK, played, until
from tests.protocols.handoff_schemes.stages import ALL, UNBOUNDED, Desk, Stage

from godwit.events import Event
from godwit.net.host import AsyncHost
from godwit.net.identity import Identity
from godwit.net.peers.links import Links
from godwit.protocols.handoff_schemes import messages
from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.client import MobileClient
from godwit.protocols.handoff_schemes.messages import CtxRequest, Publish
from godwit.protocols.handoff_schemes.proxy import BrokerMachine
from godwit.protocols.handoff_schemes.rules import HARDENED, OURS, Rules
from godwit.protocols.host import Core, Message, NodeId, RemoteError

CATALOGUE = [
    kind
    for kind in vars(messages).values()
    if isinstance(kind, type) and issubclass(kind, Message) and kind not in (Message, messages.Control)
]
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(reduce(or_, CATALOGUE))


class Station:
    """A node on real sockets."""

    def __init__(self, name: NodeId) -> None:
        self.links = Links(
            Identity(name, f"disk of {name}", 1), options=QUICK, encode=msgspec.msgpack.encode, decode=_decoder.decode
        )
        self.host = AsyncHost(name, self.links)
        self.links.on_message = self.host.deliver
        self.port = 0


@asynccontextmanager
async def linked(names: str) -> AsyncIterator[dict[NodeId, Station]]:
    """Everybody with everybody, over TCP on loopback."""
    stations = {name: Station(name) for name in names}
    try:
        for i, station in enumerate(stations.values()):
            station.port = await station.links.listen("127.0.0.1", 0)
            station.links.address = f"127.0.0.1:{station.port}"
            for other in list(stations.values())[:i]:
                await station.links.connect("127.0.0.1", other.port, other.links.address)
        await until(lambda: all(len(station.links.up) == len(names) - 1 for station in stations.values()))
        yield stations
    finally:
        for station in stations.values():
            station.host.stop()
            await station.links.close()


def options_of(rules: Rules) -> HandoffOptions:
    return msgspec.structs.replace(UNBOUNDED, rules=rules, latest_b=5 if rules.own_memory else 0)


class Silent:
    def receive(self, sender: NodeId, message: Message, /) -> None:
        raise AssertionError("nobody talks to a publisher")


@pytest.mark.feature("proactive-handoff F46", "proactive-handoff F5", "proactive-handoff F7")
@pytest.mark.parametrize("rules", [HARDENED, OURS], ids=["hardened", "ours"])
def test_over_real_links_a_silent_wanderer_gets_everything_once_and_in_order(rules: Rules) -> None:
    async def scene() -> None:
        async with linked("ABCPs") as stations:
            machines = {
                name: BrokerMachine(stations[name].host, options_of(rules), ping_s=0.02, misses=2) for name in "ABC"
            }
            got: list[int] = []
            client = MobileClient(
                stations["s"].host, {"w": ALL}, {}, lambda event, delivery: got.append(event.sequence)
            )
            cores: dict[str, Core] = {**machines, "s": client, "P": Silent()}
            for name, core in cores.items():
                stations[name].host.core = core
            published = 0

            def publish() -> None:
                nonlocal published
                event = Event("P", published, attributes={"value": 1}, payload=b".")
                published += 1
                for name in "ABC":
                    stations["P"].host.send(name, Publish(event))

            client.connect("A")
            await until(lambda: client.log.previous == "A")
            for i, place in enumerate("BCABACB"):
                publish()
                if i % 2:
                    await until(lambda: len(got) == published)
                client.vanish()
                publish()
                if i % 3:
                    await asyncio.sleep(0.08)
                client.connect(place)
                publish()
                await until(lambda place=place: client.log.previous == place)  # type: ignore[misc]
            await until(lambda: len(got) >= published)
            await asyncio.sleep(0.05)
            assert got == list(range(published))
            assert sum(machine.peer_port.received_b for machine in machines.values()) > 0
            assert not any(station.host.failures for station in stations.values())

    played(scene)


@pytest.mark.feature("proactive-handoff F7")
def test_the_two_interfaces_are_counted_apart_and_the_proxy_can_be_left_out() -> None:
    def plain(desk: Desk, options: HandoffOptions) -> BrokerMachine:
        return BrokerMachine(desk, options, proxy=False)

    def whole(desk: Desk, options: HandoffOptions) -> BrokerMachine:
        return BrokerMachine(desk, options)

    stages = [Stage("AB", UNBOUNDED, kind) for kind in (plain, whole)]  # type: ignore[arg-type]
    for stage in stages:
        stage.client("s", "A")
        stage.publish(to="AB")
        stage.clients["s"].vanish()
        stage.pass_time(0.11)
        stage.pass_time(0.11)
        stage.publish(to="AB")
        stage.clients["s"].connect("B")
        stage.settle()
    without, with_proxy = ({name: m.peer_port.received_b for name, m in stage.brokers.items()} for stage in stages)
    assert (without["A"], without["B"]) == (0, 0)
    assert with_proxy["A"] > 0 < with_proxy["B"]
    assert stages[1].brokers["B"].broker_port.received["Connect"] == 1
    assert stages[0].got["s"] == [0]
    assert stages[1].got["s"] == [0, 1]
    with pytest.raises(RemoteError, match="to a broker without a proxy"):
        stages[0].brokers["A"].receive("B", CtxRequest("s"))


@pytest.mark.feature("proactive-handoff F5")
def test_who_says_goodbye_is_not_pinged_any_more() -> None:
    stage = Stage("A", UNBOUNDED, lambda desk, options: BrokerMachine(desk, options))  # type: ignore[arg-type,return-value]
    client = stage.client("s", "A")
    client.leave()
    heard: list[str] = []
    stage.post = lambda sender, to, message: heard.append(type(message).__name__)  # type: ignore[method-assign]
    stage.pass_time(0.5)
    assert "Ping" not in heard

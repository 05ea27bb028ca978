"""Real brokers that send clients to one another, and clients that follow, cannot, or will not."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import cast

import aiomqtt
import mqtt5
import paho.mqtt.client as paho
import pytest
import websockets
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.reasoncodes import ReasonCode
from tests.net.certificates import Authority
from tests.net.servers import client, cluster, parts, port, serving
from tests.net.stations import played, until
from websockets.typing import Subprotocol

import godwit
from godwit.net.server import Server
from godwit.protocols.broker import balance

BALANCED = {"balance__redirect": "balance"}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One client is enough to be a burden."""
    monkeypatch.setattr(balance, "CLIENTS_FEW", 1)


def at(one: Server) -> str:
    return f"127.0.0.1:{port(one)}"


async def burdened(one: Server, others: list[Server]) -> None:
    """Wait until the others are known to have nothing to do, and this one to have something."""
    names = {parts(other).identity.name for other in others}
    balance = parts(one).balance
    await until(lambda: balance.loads.keys() >= names and parts(one).broker.counts.connected > 0)


async def answered(one: Server, packet: mqtt5.ConnectPacket) -> tuple[mqtt5.ConnAckPacket, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port(one))
    writer.write(packet.write())
    head = await reader.readexactly(2)
    answer, _ = mqtt5.read(memoryview(head + await reader.readexactly(head[1])))
    assert isinstance(answer, mqtt5.ConnAckPacket)
    return answer, writer


@pytest.mark.feature("proactive-handoff F48")
def test_a_native_client_is_sent_to_the_broker_with_less_to_do_and_goes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **BALANCED) as (a, b), client(a, "one"), client(a, "two"):
            await burdened(a, [b])
            async with asyncio.timeout(60), godwit.connect(at(a), client="van") as van:
                assert str(van.broker) == at(b)
                events = await van.subscribe("pm25 > 150")
                await van.publish({"pm25": 163.5})
                async for event in events:
                    assert event.attributes["pm25"] == 163.5
                    break
            assert parts(a).balance.redirected == 1
            assert "van" in parts(b).broker.sessions
            assert "van" not in parts(a).broker.sessions

    played(scene)


@pytest.mark.feature("proactive-handoff F48")
def test_paho_is_told_where_to_go_and_is_let_in_when_it_comes_back_all_the_same(tmp_path: Path) -> None:
    answers: list[tuple[int, str]] = []

    def connect(where: int) -> None:
        one = paho.Client(CallbackAPIVersion.VERSION2, "van", protocol=MQTTProtocolVersion.MQTTv5)

        def told(_: object, __: object, ___: object, reason: ReasonCode, properties: object) -> None:
            answers.append((reason.value, getattr(properties, "ServerReference", "")))
            one.disconnect()

        one.on_connect = told
        one.connect("127.0.0.1", where)
        one.loop_forever()

    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **BALANCED) as (a, b), client(a, "one"), client(a, "two"):
            await burdened(a, [b])
            for where in (port(a), port(b), port(a)):
                await asyncio.to_thread(connect, where)
            assert answers == [(0x9C, at(b)), (0, ""), (0, "")]

    played(scene)


@pytest.mark.feature("proactive-handoff F48")
@pytest.mark.parametrize("kind", ["ws", "wss"])
def test_a_client_within_websocket_is_told_where_to_go_and_is_let_in_there(tmp_path: Path, kind: str) -> None:
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.files("broker")
    told = {f"listen__{kind}": ["127.0.0.1:0"], "tls__certificate": certificate, "tls__key": key, **BALANCED}
    context = ssl.create_default_context(cafile=str(authority.ca)) if kind == "wss" else None

    async def knock(url: str) -> mqtt5.ConnAckPacket:
        mqtt = Subprotocol("mqtt")
        async with asyncio.timeout(60), websockets.connect(url, subprotocols=[mqtt], ssl=context) as socket:
            await socket.send(mqtt5.ConnectPacket(client_id="van").write())
            answer, _ = mqtt5.read(memoryview(cast("bytes", await socket.recv())))
        assert isinstance(answer, mqtt5.ConnAckPacket)
        return answer

    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **told) as (a, b), client(a, "one"), client(a, "two"):
            await burdened(a, [b])
            sent = await knock(f"{kind}://127.0.0.1:{port(a, kind)}/mqtt")
            assert sent.reason_code is mqtt5.ConnAckReasonCode.USE_ANOTHER_SERVER
            assert sent.server_reference == f"{kind}://127.0.0.1:{port(b, kind)}/mqtt"
            assert (await knock(sent.server_reference)).reason_code is mqtt5.ConnAckReasonCode.SUCCESS

    played(scene)


def test_a_client_of_3_1_1_is_let_in_until_there_is_no_room(tmp_path: Path) -> None:
    async def scene() -> None:
        told = {**BALANCED, "balance__clients_max": 3}
        async with cluster(tmp_path, "a", "b", **told) as (a, b), client(a, "one"), client(a, "two"):
            await burdened(a, [b])
            async with client(a, "three"):
                with pytest.raises(aiomqtt.MqttError, match="Server unavailable"):
                    async with client(a, "four"):
                        pass
                async with client(b, "four"):
                    pass
            async with client(a, "four"):
                pass

    played(scene)


def test_a_client_whose_session_is_here_is_not_sent_away(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **BALANCED) as (a, b):
            async with godwit.connect(at(a), client="mine"):
                pass
            async with client(a, "one"), client(a, "two"):
                await burdened(a, [b])
                async with asyncio.timeout(60), godwit.connect(at(a), client="mine") as mine:
                    assert str(mine.broker) == at(a)
                assert parts(a).balance.redirected == 0

    played(scene)


def test_a_client_of_which_a_copy_is_here_is_not_sent_away(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **BALANCED) as (a, b):
            parts(b).neighbors.went("a", ())
            async with client(b, "van") as van:
                await van.subscribe("#", qos=1)
            await until(lambda: parts(a).broker.counts.copies == 1)
            async with client(a, "one"), client(a, "two"):
                await burdened(a, [b])
                async with asyncio.timeout(60), godwit.connect(at(a), client="van") as roamed:
                    assert str(roamed.broker) == at(a)
                assert parts(a).balance.redirected == 0

    played(scene)


@pytest.mark.feature("proactive-handoff F48")
def test_a_client_that_moves_to_a_broker_with_too_much_to_do_is_sent_on_and_its_session_follows(tmp_path: Path) -> None:
    async def scene() -> None:
        told = {**BALANCED, "handoff": "reactive"}
        async with cluster(tmp_path, "a", "b", "c", **told) as (a, b, c), client(a, "one"), client(a, "two"):
            async with asyncio.timeout(60), godwit.connect(at(b), client="van") as van:
                events = await van.subscribe("n >= 0")
                await burdened(a, [b, c])
                await van.roam(at(a))
                assert str(van.broker) in (at(b), at(c))
                await van.publish({"n": 7})
                async for event in events:
                    assert event.attributes["n"] == 7
                    break
            assert parts(a).balance.redirected == 1

    played(scene)


def test_where_it_is_off_nobody_is_sent_anywhere(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b") as (a, b), client(a, "one"), client(a, "two"):
            await burdened(a, [b])
            async with godwit.connect(at(a), client="van") as van:
                assert str(van.broker) == at(a)

    played(scene)


def test_within_websocket_nobody_is_sent_where_there_is_no_websocket(tmp_path: Path) -> None:
    async def scene() -> None:
        told = {**BALANCED, "listen__ws": ["127.0.0.1:0"]}
        async with cluster(tmp_path, "a", "b", **told) as (a, b), client(a, "one"), client(a, "two"):
            parts(b).balance.address_ws = ""
            await burdened(a, [b])
            await until(lambda: not parts(a).balance.loads["b"].address_ws)
            page = aiomqtt.Client(
                "127.0.0.1", port(a, "ws"), transport="websockets", protocol=aiomqtt.ProtocolVersion.V5
            )
            async with page:
                assert parts(a).balance.redirected == 0

    played(scene)


@pytest.mark.feature("proactive-handoff F48")
def test_a_broker_that_is_drained_sends_its_clients_elsewhere_with_all_that_waits_for_them(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", balance__drain_s=10) as (a, b):
            await until(lambda: "a" in parts(b).balance.loads and "b" in parts(a).balance.loads)
            async with asyncio.timeout(60), godwit.connect(at(a), client="van") as van:
                events = await van.subscribe("n >= 0")
                stopping = asyncio.create_task(a.stop())
                await until(lambda: str(van.broker) == at(b))
                async with godwit.connect(at(b), client="hub") as hub:
                    for number in range(20):
                        await hub.publish({"n": number})
                seen = []
                async for event in events:
                    seen.append(event.attributes["n"])
                    if len(seen) == 20:
                        break
                assert seen == list(range(20))
                await stopping

    played(scene)


def test_who_comes_while_a_broker_is_drained_is_sent_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", balance__drain_s=10) as (a, b):
            await until(lambda: "b" in parts(a).balance.loads)
            # A session that has nowhere to go: the broker stays for it as long as it may.
            _, writer = await answered(a, mqtt5.ConnectPacket(client_id="stays", session_expiry_interval=100))
            stopping = asyncio.create_task(a.stop())
            await until(lambda: parts(a).balance.leaving)
            assert a.troubles() == ["stopping: clients are sent to other brokers"]
            answer, _ = await answered(a, mqtt5.ConnectPacket(client_id="late"))
            assert (int(answer.reason_code), answer.server_reference) == (0x9C, at(b))
            _, other = await answered(b, mqtt5.ConnectPacket(client_id="stays", session_expiry_interval=100))
            await stopping
            writer.close()
            other.close()

    played(scene)


def test_a_broker_that_others_cannot_name_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **BALANCED):
            pass
        told = {**BALANCED, "listen__advertise": "north.example:1883", "listen__mqtt": ["0.0.0.0:0"]}
        async with serving(tmp_path, "b", **told) as b:
            assert parts(b).balance.address == "north.example:1883"

    with caplog.at_level(logging.WARNING):
        played(scene)
    assert caplog.text.count("say where with listen.advertise") == 1


async def _sends_on(port_of: list[int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    reason = mqtt5.ConnAckReasonCode.USE_ANOTHER_SERVER
    writer.write(mqtt5.ConnAckPacket(reason_code=reason, server_reference=f"127.0.0.1:{port_of[0]}").write())
    await writer.drain()
    writer.close()


def test_a_client_that_is_sent_in_circles_goes_back_to_its_own_brokers(tmp_path: Path) -> None:
    async def scene() -> None:
        port_of: list[int] = []
        liar = await asyncio.start_server(lambda *pair: _sends_on(port_of, *pair), "127.0.0.1", 0)
        port_of.append(liar.sockets[0].getsockname()[1])
        async with liar, serving(tmp_path, "a") as a, asyncio.timeout(60):
            brokers = f"127.0.0.1:{port_of[0]}", at(a)
            async with godwit.connect(*brokers, client="van") as van:
                assert str(van.broker) == at(a)

    played(scene)

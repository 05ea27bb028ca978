"""Sensors, sinks and phones at a whole broker: UDP and TCP clients get one another's events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from tests.net.servers import parts, scene, serving
from tests.net.sn.clients import SnClient
from tests.net.stations import until

from godwit.net.server import Server

TOPICS = {"1": "air/temperature", "2": "air/dust"}


def sn_at(server: Server) -> tuple[str, int]:
    where = dict(server.addresses())["sn"]
    host, _, port = where.rpartition(":")
    return host, int(port)


def mqtt_at(server: Server) -> tuple[str, int]:
    host, _, port = dict(server.addresses())["mqtt"].rpartition(":")
    return host, int(port)


def broker(folder: Path, **flags: Any) -> Any:
    return serving(folder, "gate", sn__listen="127.0.0.1:0", sn__topics=TOPICS, **flags)


def phone(server: Server, name: str, **options: Any) -> aiomqtt.Client:
    host, port = mqtt_at(server)
    told = {"timeout": 60, **options}
    return aiomqtt.Client(host, port, identifier=name, **told)


async def received(client: aiomqtt.Client, count: int) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    async for message in client.messages:
        assert isinstance(message.payload, bytes)
        found.append((str(message.topic), message.payload))
        if len(found) == count:
            break
    return found


@pytest.mark.feature("data-gathering F10")
@pytest.mark.feature("data-gathering F11")
@scene
async def test_sensors_over_udp_and_phones_over_tcp_are_clients_of_one_broker(tmp_path: Path) -> None:
    """One association each, one session each, whatever carries them."""
    async with broker(tmp_path) as server, phone(server, "phone") as reader:
        await reader.subscribe("air/#", qos=1)
        sensor, sink = await SnClient.at(*sn_at(server)), await SnClient.at(*sn_at(server))
        assert await sensor.connect("sensor-1") == 0
        assert await sink.connect("sink-1", clean=False) == 0
        assert set(parts(server).broker.sessions) == {"phone", "sensor-1", "sink-1"}
        topic = await sensor.register("air/temperature")
        sensor.publish(topic, b"21.5", qos=1, number=9)
        assert await sensor.acknowledged() == (topic, 9, 0)
        for number, name in enumerate(("a", "b"), 1):  # a sink speaks for all sensors behind it
            topic = await sink.register(f"air/{name}", number)
            sink.publish(topic, name.encode())
        assert sorted(await received(reader, 3)) == [("air/a", b"a"), ("air/b", b"b"), ("air/temperature", b"21.5")]
        sensor.close()
        sink.close()


@scene
async def test_a_publication_without_a_connection_reaches_subscribers_by_a_number_that_all_know(
    tmp_path: Path,
) -> None:
    async with broker(tmp_path) as server, phone(server, "phone") as reader:
        await reader.subscribe("#", qos=0)
        sensor = await SnClient.at(*sn_at(server))
        sensor.publish(9, b"no such number", qos=-1, kind=1)
        sensor.publish(3, b"registered by nobody", qos=-1, kind=0)
        sensor.publish(2, b"40", qos=-1, kind=1)
        sensor.publish(int.from_bytes(b"t1"), b"short", qos=-1, kind=2)
        assert await received(reader, 2) == [("air/dust", b"40"), ("t1", b"short")]
        assert "gate" not in parts(server).broker.sessions
        sensor.close()


@scene
async def test_a_sensor_is_told_the_number_of_a_topic_before_its_first_event(tmp_path: Path) -> None:
    async with broker(tmp_path) as server, phone(server, "phone") as writer:
        sensor = await SnClient.at(*sn_at(server))
        await sensor.connect("valve")
        assert await sensor.subscribe("valves/#") == 0
        exact = await sensor.subscribe("all")
        await writer.publish("valves/7", b"open", qos=1)
        number, name = await sensor.registered()
        assert name == "valves/7"
        flags, topic, payload = await sensor.event()
        assert (flags >> 5 & 3, topic, payload) == (1, number, b"open")
        await writer.publish("valves/7", b"shut", qos=0)
        assert (await sensor.event())[1:] == (number, b"shut")
        await writer.publish("all", b"stop", qos=1)
        assert (await sensor.event())[1:] == (exact, b"stop")
        await writer.publish("air/dust", b"not asked for", qos=1)
        sensor.say(0x16)
        await sensor.hear(0x17)
        assert sensor.came == []
        sensor.close()


@scene
async def test_what_is_not_acknowledged_is_said_again_as_a_repetition(tmp_path: Path) -> None:
    async with broker(tmp_path, sn__retry_s=0.3) as server, phone(server, "phone") as writer:
        sensor = await SnClient.at(*sn_at(server))
        await sensor.connect("valve")
        await sensor.subscribe("valve")
        await writer.publish("valve", b"open", qos=1)
        first = await sensor.event(acknowledge=False)
        again = await sensor.event()
        assert again[1:] == first[1:]
        assert (first[0] >> 7, again[0] >> 7) == (0, 1)
        sensor.close()


@scene
async def test_who_sleeps_gets_what_waits_when_it_asks_and_sleeps_on(tmp_path: Path) -> None:
    async with broker(tmp_path) as server, phone(server, "phone") as writer:
        sensor = await SnClient.at(*sn_at(server))
        await sensor.connect("valve", clean=False)
        topic = await sensor.subscribe("valve")
        sensor.say(0x18, (60).to_bytes(2))
        await sensor.hear(0x18)
        for number in range(5):
            await writer.publish("valve", b"%d" % number, qos=1)
        await writer.publish("valve", b"0 at most", qos=0)
        await until(lambda: parts(server).broker.counts.published[1] >= 5)
        assert sensor.came == []
        sensor.say(0x16, b"valve")
        got = [await sensor.event() for _ in range(6)]
        assert [one[1] for one in got] == [topic] * 6
        assert sorted(one[2] for one in got) == [b"0", b"0 at most", b"1", b"2", b"3", b"4"]
        in_order = [payload for flags, _, payload in got if flags >> 5 & 3 == 1]
        assert in_order == [b"0", b"1", b"2", b"3", b"4"]
        await sensor.hear(0x17)
        await writer.publish("valve", b"later", qos=1)
        await until(lambda: parts(server).broker.counts.published[1] >= 6)
        assert sensor.came == []
        sensor.close()


@pytest.mark.feature("data-gathering F34")
@scene
async def test_a_profile_says_how_long_a_session_outlives_its_client(tmp_path: Path) -> None:
    async with broker(tmp_path, sn__expiry_s=3600, sn__profiles={"spark-": 0.0}) as server:
        kept, short = await SnClient.at(*sn_at(server)), await SnClient.at(*sn_at(server))
        await kept.connect("sink-1", clean=False)
        await short.connect("spark-1", clean=False)
        sessions = parts(server).broker.sessions
        for client in (kept, short):
            client.say(0x18)
            await client.hear(0x18)
        await until(lambda: "spark-1" not in sessions)
        assert "sink-1" in sessions
        kept.close()
        short.close()


@scene
@pytest.mark.parametrize("said", [b"", bytes(2)])
async def test_who_sleeps_for_no_time_leaves_and_what_waits_when_its_profile_ends_is_counted(
    tmp_path: Path, said: bytes
) -> None:
    async with broker(tmp_path, sn__profiles={"sink-": 0.5}) as server, phone(server, "phone") as writer:
        sink = await SnClient.at(*sn_at(server))
        await sink.connect("sink-1", clean=False)
        assert await sink.subscribe("valves/#") == 0
        sink.say(0x18, said)
        await sink.hear(0x18)
        await writer.publish("valves/1", b"open", qos=1)
        core = parts(server).broker
        await until(lambda: "sink-1" not in core.sessions)
        assert core.counts.dropped == {"ended": 1}
        sink.close()


@scene
async def test_a_sensor_that_is_silent_for_too_long_is_gone_and_its_session_stays(tmp_path: Path) -> None:
    async with broker(tmp_path) as server:
        sensor = await SnClient.at(*sn_at(server))
        await sensor.connect("valve", clean=False, duration_s=1)
        session = parts(server).broker.sessions["valve"]
        await until(lambda: session.outlet is None)
        sensor.publish(1, b"late", kind=1)
        await sensor.hear(0x18)  # it learns that it is not connected
        assert "valve" in parts(server).broker.sessions
        sensor.close()


@scene
async def test_what_is_no_packet_is_counted_and_changes_nothing(tmp_path: Path) -> None:
    async with broker(tmp_path) as server:
        sensor = await SnClient.at(*sn_at(server))
        assert await sensor.connect("valve") == 0
        assert sensor.transport is not None
        for data in (b"\x00", b"\x05\x0c", b"\x03\x7f\x00", b"\x01\x00\x02", b"\x06\x12\x03\x00\x01x"):
            sensor.transport.sendto(data)
        sensor.publish(99, b"x", qos=1, number=4)
        assert await sensor.acknowledged() == (99, 4, 2)
        sensor.publish(1, b"x", qos=2, number=5, kind=1)
        assert await sensor.acknowledged() == (1, 5, 3)
        assert await sensor.subscribe("a/#/b") == -2
        sensor.say(0x01, b"\x00")
        assert await sensor.hear(0x02) == b"\x01"
        other = await SnClient.at(*sn_at(server))
        other.say(0x04, bytes([0x0C, 1, 0, 60]) + b"with-a-will")
        assert (await other.hear(0x05))[0] == 3
        sensor.close()
        other.close()


@scene
async def test_a_sensor_may_do_what_its_grant_says_and_no_more(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text('[anonymous]\npublish = ["air/#"]\nsubscribe = false\n')
    async with broker(tmp_path, access__users=users) as server:
        sensor = await SnClient.at(*sn_at(server))
        assert await sensor.connect("s") == 0
        allowed, other = await sensor.register("air/x", 1), await sensor.register("doors/x", 2)
        sensor.publish(allowed, b"1", qos=1, number=1)
        assert (await sensor.acknowledged())[2] == 0
        sensor.publish(other, b"1", qos=1, number=2)
        assert (await sensor.acknowledged())[2] == 3
        assert await sensor.subscribe("air/#") < 0
        sensor.close()

"""`client.query()`: what a program knows, whatever becomes of brokers and sessions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiomqtt
import mqtt5
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.net.servers import cluster, port, serving
from tests.net.stations import played, until

import godwit
from godwit.client.client import connect
from godwit.client.query import Query
from godwit.client.received import Received, Subscription
from godwit.net.server import Server

DEPOT = "within(lat, lon, 52.0, 4.0, 5km)"
IN, OUT = {"lat": 52.0, "lon": 4.0}, {"lat": 53.0, "lon": 5.0}


def at(one: Server) -> str:
    return f"127.0.0.1:{port(one)}"


async def told(query: Query, count: int) -> list[str]:
    found = []
    async with asyncio.timeout(60):
        for _ in range(count):
            change = await anext(query)
            found.append(f"{change.sign} {change.topic} {change.because}".strip())
    return found


async def nothing(subscription: Subscription) -> None: ...


def delivered(view: str, number: int, sign: str, topic: str, payload: bytes = b"x", pending: int = 0) -> Received:
    said = [("lasting", sign), ("lasting-number", str(number)), ("lasting-view", view)]
    said.append(("lasting-pending", str(pending)))
    return Received(mqtt5.PublishPacket(topic, payload, user_properties=said), lambda: None, 1)


def signs(query: Query) -> list[str]:
    return [f"{one.sign} {one.topic}" for one in query._waiting if isinstance(one, godwit.Change)]


def test_where_brokers_begin_anew_the_difference_is_made_here() -> None:
    query = Query("", "#", 2, nothing)
    query.add(delivered("v", 1, "+", "a", pending=1))
    query.add(delivered("v", 2, "+", "b"))
    query.add(delivered("w", 1, "+", "a", b"other", pending=1))
    query.add(delivered("v", 2, "+", "b"))
    query.add(delivered("w", 2, "+", "c"))
    assert signs(query) == ["+ a", "+ b", "~ a", "+ c", "- b"]
    query.answered((("lasting-view", "x"), ("lasting-matches", "0")))
    assert signs(query)[5:] == ["- a", "- c"]
    assert query.known == {}


def test_what_matches_now_and_what_changes_also_at_another_broker(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b") as (a, b),
            connect(at(b)) as publisher,
            connect(at(a), client="desk") as desk,
        ):
            await publisher.publish(IN, topic="vans/1", retain=True)
            await publisher.publish(OUT, topic="vans/2", retain=True)
            query = await desk.query(DEPOT, topics="vans/#")
            async with asyncio.timeout(60):
                while "vans/1" not in await query.now():
                    await asyncio.sleep(0.01)
            await publisher.publish(IN, topic="vans/2", retain=True)
            assert await told(query, 1) == ["+ vans/2"]
            await desk.roam(at(b))
            await publisher.publish(OUT, topic="vans/1", retain=True)
            assert await told(query, 1) == ["- vans/1 left"]
            await publisher.publish(topic="vans/2", payload=b"", retain=True)
            assert await told(query, 1) == ["- vans/2 cleared"]

    played(scene)


def test_asked_once_there_may_be_nothing_and_a_program_of_the_same_name_may_go_on(tmp_path: Path) -> None:
    def used(broker: str) -> list[str]:
        with godwit.connect(broker, client="desk") as desk:
            assert desk.query("x = 1").now() == {}
            desk.publish({"x": 1}, topic="a", retain=True)
            assert [change.topic for change in desk.query("x >= 1").now().values()] == ["a"]
        with godwit.connect(broker, client="desk") as desk:
            desk.publish({"x": 2}, topic="b", retain=True)
            change = next(iter(desk.query("x >= 1", resume=True)))
            return [change.sign, change.topic]

    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            assert await asyncio.to_thread(used, at(a)) == ["+", "b"]

    played(scene)


def test_any_client_of_mqtt_5_can_ask(tmp_path: Path) -> None:
    seen: list[tuple[str, ...]] = []

    def came(client: paho.Client, data: object, message: paho.MQTTMessage) -> None:
        assert message.properties is not None
        said = dict(getattr(message.properties, "UserProperty"))  # noqa: B009
        seen.append((said["lasting"], said["lasting-number"], message.topic, said.get("lasting-because", "")))

    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as publisher:
            await publisher.publish(IN, topic="vans/1", retain=True)
            asking = paho.Client(CallbackAPIVersion.VERSION2, "third", protocol=paho.MQTTv5)
            asking.on_message = came
            asking.connect("127.0.0.1", port(a))
            asking.loop_start()
            wanted = Properties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]
            wanted.UserProperty = [("lasting", "quiet"), ("filter", DEPOT)]
            asking.subscribe("vans/#", qos=1, properties=wanted)
            await until(lambda: len(seen) == 1)
            await publisher.publish(OUT, topic="vans/1", retain=True)
            await until(lambda: len(seen) == 2)
            asking.disconnect()
            asking.loop_stop()
        assert seen == [("+", "1", "vans/1", ""), ("-", "2", "vans/1", "left")]

    played(scene)


def test_clients_of_mqtt_3_read_the_change_in_the_topic(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as publisher:
            await publisher.publish(IN, topic="vans/1", retain=True)
            async with aiomqtt.Client("127.0.0.1", port(a), protocol=aiomqtt.ProtocolVersion.V311) as old:
                await old.subscribe("$lasting/$filter/lat%20%3C%2052.5/vans/#", qos=1)
                first = await anext(old.messages)
                await publisher.publish(OUT, topic="vans/1", retain=True)
                second = await anext(old.messages)
        levels = [str(one.topic).split("/") for one in (first, second)]
        assert [(one[:3], one[4:]) for one in levels] == [
            (["$lasting", "in", "1"], ["vans", "1"]),
            (["$lasting", "out", "2"], ["vans", "1"]),
        ]
        assert json.loads(first.payload) == IN
        assert second.payload == b""

    played(scene)


def test_only_what_lasts_can_ask_for_what_is_near(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as client:
            with pytest.raises(godwit.RefusedError, match="no function"):
                await client.subscribe("near('vans/1', 2km)")

    played(scene)

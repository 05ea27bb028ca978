"""What a client was told is true after a kill -9: its session and its will are there when the broker is back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import mqtt5
from tests.net.mqtt.serving import Raw

from godwit.net.processes import BrokerProcess


def test_whoever_was_told_that_its_session_and_will_are_kept_finds_them_after_a_kill(tmp_path: Path) -> None:
    """Killed the moment after the CONNACK or SUBACK is read, over and over."""
    broker = BrokerProcess("north", tmp_path / "north")

    async def scene() -> None:
        await broker.start()
        try:
            for number in range(3):
                await asyncio.to_thread(promised, broker.port, number)
                await broker.kill()
                await broker.start()
                await asyncio.to_thread(kept, broker.port, number)
        finally:
            await broker.kill()

    asyncio.run(scene())


def promised(port: int, number: int) -> None:
    """Sessions with and without an expiry, each with a will that is retained; the last is answered just before."""
    with Raw(port) as lasting, Raw(port) as passing:
        for client, name, expiry_s in ((lasting, "lasting", 600), (passing, "passing", 0)):
            will = mqtt5.Will(f"will/{name}/{number}", payload=b"gone", retain=True, qos=mqtt5.QoS.AT_LEAST_ONCE)
            client.connect(f"{name}-{number}", session_expiry_interval=expiry_s, will=will)
        lasting.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter(f"for/{number}")]).write())
        assert isinstance(lasting.packet(), mqtt5.SubAckPacket)


def kept(port: int, number: int) -> None:
    with Raw(port) as client:
        answer = client.connect(f"lasting-{number}", clean_start=False, session_expiry_interval=600)
        assert answer.session_present
        publication = mqtt5.PublishPacket(f"for/{number}", b"x", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1)
        client.send(publication.write())
        assert {type(client.packet()).__name__ for _ in range(2)} == {"PubAckPacket", "PublishPacket"}
    with Raw(port) as heir:
        heir.connect(f"heir-{number}")
        heir.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter(f"will/+/{number}")]).write())
        found: set[tuple[str, bytes]] = set()
        while len(found) < 2:
            packet = heir.packet()
            if isinstance(packet, mqtt5.PublishPacket):
                found.add((packet.topic, packet.payload))
    assert found == {(f"will/{name}/{number}", b"gone") for name in ("lasting", "passing")}

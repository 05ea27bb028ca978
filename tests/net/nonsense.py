"""A broker without sockets, clients that say anything, and byte streams that are nearly right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import mqtt5
from hypothesis import strategies as st
from tests.net.mqtt.packetstrategies import packets3
from tests.net.mqtt.serving import lone_broker

from godwit.net.host import AsyncHost
from godwit.net.mqtt import codec3 as version3
from godwit.net.mqtt.connection import Connection
from godwit.net.mqtt.front import Front
from godwit.net.mqtt.options import Options
from godwit.net.mqtt.websocket import WebSocket

UPGRADE = (
    b"GET /mqtt HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
)
TURNS = 12
"""Enough turns of the loop for everything that one packet sets off."""


class Pipe(asyncio.Transport):
    """A transport that keeps what is written, and tells its protocol that it is closed, once."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.written = bytearray()
        self.ends = 0
        self._protocol = protocol
        self._closing = False
        protocol.connection_made(self)

    def can_write_eof(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        assert not self.ends, "written after the end"
        self.written += data

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._end)

    abort = close

    def _end(self) -> None:
        self.ends += 1
        self._protocol.connection_lost(None)

    def is_closing(self) -> bool:
        return self._closing

    def say(self, data: bytes) -> None:
        """As if it had come over a socket; after the end nothing comes."""
        if not self._closing:
            self._protocol.data_received(data)

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default


class Scene:
    """A broker, somebody who listens, and whoever comes."""

    def __init__(self) -> None:
        self.failures: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.failures.append(context))
        self.broker = lone_broker()
        self.front = Front(self.broker, Options(packet_bytes_max=20_000, inflight_max=50))
        self.front.begin()
        self.bystander = Pipe(Connection(self.front))

    async def begin(self) -> None:
        wanted = mqtt5.TopicFilter("bystander", max_qos=mqtt5.QoS.EXACTLY_ONCE)
        self.bystander.say(mqtt5.ConnectPacket("bystander", clean_start=True).write())
        self.bystander.say(mqtt5.SubscribePacket(1, [wanted]).write())
        await turns()
        assert self.bystander.written[:1] == b"\x20"

    def newcomer(self, *, websocket: bool = False) -> Pipe:
        return Pipe(WebSocket(self.front) if websocket else Connection(self.front))

    async def check(self) -> None:
        """Nothing has failed, and the bystander is served as before."""
        await turns()
        self.bystander.written.clear()
        self.bystander.say(mqtt5.PublishPacket("bystander", b"still here").write())
        await turns()
        assert bytes(self.bystander.written) == mqtt5.PublishPacket("bystander", b"still here").write()
        assert not self.bystander.is_closing()
        host = self.broker.host
        assert isinstance(host, AsyncHost)
        assert not host.failures, host.failures
        assert not self.failures, self.failures

    async def end(self) -> None:
        self.front.end()
        await turns()


async def turns(count: int = TURNS) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def played(scene: Callable[[Scene], Any]) -> None:
    async def run() -> None:
        one = Scene()
        await one.begin()
        await scene(one)
        await one.check()
        await one.end()

    asyncio.run(run())


FRAGMENTS = [
    mqtt5.PublishPacket("a/b", b'{"n": 1}').write(),
    mqtt5.PublishPacket("a/b", b"x", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=3, retain=True).write(),
    mqtt5.PublishPacket("a", b"x", qos=mqtt5.QoS.EXACTLY_ONCE, packet_id=4, user_properties=[("a", "b")]).write(),
    mqtt5.PublishPacket("alias", b"x", topic_alias=2).write(),
    mqtt5.PublishPacket("", b"x", topic_alias=2).write(),
    mqtt5.PubRelPacket(4).write(),
    mqtt5.PubRecPacket(1).write(),
    mqtt5.PubAckPacket(1).write(),
    mqtt5.PubCompPacket(1).write(),
    mqtt5.SubscribePacket(9, [mqtt5.TopicFilter("#"), mqtt5.TopicFilter("$share/g/a/+")]).write(),
    mqtt5.SubscribePacket(9, [mqtt5.TopicFilter("a/#")], user_properties=[("filter", "n > 0")]).write(),
    mqtt5.SubscribePacket(9, [mqtt5.TopicFilter("$filter/n%20%3E%200/a/#")], subscription_id=7).write(),
    mqtt5.UnsubscribePacket(10, ["#", "a/b"]).write(),
    mqtt5.PingReqPacket().write(),
    mqtt5.DisconnectPacket().write(),
    mqtt5.DisconnectPacket(session_expiry_interval=5).write(),
]
"""What a client of version 5 may say."""

WELCOMES = [
    mqtt5.ConnectPacket("fuzz", clean_start=True).write(),
    mqtt5.ConnectPacket("fuzz", session_expiry_interval=10, receive_max=1, topic_alias_max=2).write(),
    mqtt5.ConnectPacket("", clean_start=True, max_packet_size=30, request_problem_info=False).write(),
    mqtt5.ConnectPacket("fuzz", will=mqtt5.Will("a/will", payload=b"gone", will_delay_interval=1)).write(),
    b"\x10\x10\0\4MQTT\4\2\0\0\0\4fuzz",
    b"\x10\x10\0\4MQTT\4\0\0\0\0\4fuzz",
    b"\x10\x0f\0\6MQIsdp\3\2\0\0\0\1f",
]

old_packets = packets3.map(version3.write)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Packets of both versions in any order, then damaged in a few places, and cut anywhere."""
    said = draw(st.lists(st.sampled_from(FRAGMENTS) | old_packets | st.binary(max_size=20), max_size=8))
    if draw(st.integers(0, 9)):
        said.insert(0, draw(st.sampled_from(WELCOMES)))
    data = bytearray(b"".join(said))
    for _ in range(draw(st.integers(0, 3)) if data else 0):
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.integers(0, 2)):
            case 0:
                data[at] = draw(st.integers(0, 255))
            case 1:
                del data[at : at + draw(st.integers(1, 4))]
            case _:
                data[at:at] = draw(st.binary(min_size=1, max_size=4))
        if not data:
            break
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    return [bytes(data[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def masked(opcode: int, data: bytes, *, fin: bool = True) -> bytes:
    """A WebSocket frame as a client sends it."""
    mask, size = b"\1\2\3\4", len(data)
    head = bytes(((0x80 if fin else 0) | opcode,))
    length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return head + length + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))

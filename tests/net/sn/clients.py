"""A client of MQTT-SN 1.2 for tests, written from the standard's text and sharing nothing with the broker's code."""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple, cast

PATIENCE_S = 20.0


class Heard(NamedTuple):
    kind: int
    body: bytes


class SnClient(asyncio.DatagramProtocol):
    """`say` sends a packet, `hear` waits for the next of a type; others that come before it are kept."""

    def __init__(self) -> None:
        self.transport: asyncio.DatagramTransport | None = None
        self.came: list[Heard] = []
        self._news = asyncio.Event()

    @classmethod
    async def at(cls, host: str, port: int) -> SnClient:
        _, client = await asyncio.get_running_loop().create_datagram_endpoint(cls, remote_addr=(host, port))
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: object) -> None:
        if data[0] == 1:
            (length,) = struct.unpack(">H", data[1:3])
            kind, body = data[3], data[4:]
        else:
            length, kind, body = data[0], data[1], data[2:]
        assert length == len(data)
        self.came.append(Heard(kind, body))
        self._news.set()

    def say(self, kind: int, body: bytes = b"") -> None:
        assert self.transport is not None
        length = len(body) + 2
        head = bytes([length]) if length < 256 else b"\x01" + struct.pack(">H", length + 2)
        self.transport.sendto(head + bytes([kind]) + body)

    async def hear(self, kind: int) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for heard in self.came:
                    if heard.kind == kind:
                        self.came.remove(heard)
                        return heard.body
                self._news.clear()
                await self._news.wait()

    def close(self) -> None:
        assert self.transport is not None
        self.transport.close()

    async def connect(self, name: str, *, clean: bool = True, duration_s: int = 60) -> int:
        self.say(0x04, bytes([0x04 if clean else 0, 1]) + struct.pack(">H", duration_s) + name.encode())
        return (await self.hear(0x05))[0]

    async def register(self, topic: str, number: int = 1) -> int:
        self.say(0x0A, struct.pack(">HH", 0, number) + topic.encode())
        topic_id, answered, code = struct.unpack(">HHB", await self.hear(0x0B))
        assert (answered, code) == (number, 0)
        return int(topic_id)

    def publish(self, topic_id: int, payload: bytes, *, qos: int = 0, number: int = 0, kind: int = 0) -> None:
        bits = {-1: 0x60, 0: 0, 1: 0x20, 2: 0x40}[qos]
        self.say(0x0C, bytes([bits | kind]) + struct.pack(">HH", topic_id, number) + payload)

    async def acknowledged(self) -> tuple[int, int, int]:
        return struct.unpack(">HHB", await self.hear(0x0D))

    async def subscribe(self, pattern: str, *, qos: int = 1, number: int = 7) -> int:
        self.say(0x12, bytes([qos << 5]) + struct.pack(">H", number) + pattern.encode())
        _, topic_id, answered, code = struct.unpack(">BHHB", await self.hear(0x13))
        assert answered == number
        return int(topic_id) if code == 0 else -code

    async def registered(self) -> tuple[int, str]:
        """The broker tells it the identifier of a topic; it agrees."""
        body = await self.hear(0x0A)
        topic_id, number = struct.unpack(">HH", body[:4])
        self.say(0x0B, struct.pack(">HHB", topic_id, number, 0))
        return topic_id, body[4:].decode()

    async def event(self, *, acknowledge: bool = True) -> tuple[int, int, bytes]:
        """The flags, the topic and the payload of the next; at QoS 1 it is acknowledged."""
        body = await self.hear(0x0C)
        topic_id, number = struct.unpack(">HH", body[1:5])
        if body[0] >> 5 & 3 == 1 and acknowledge:
            self.say(0x0D, struct.pack(">HHB", topic_id, number, 0))
        return body[0], topic_id, body[5:]

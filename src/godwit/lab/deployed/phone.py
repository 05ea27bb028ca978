"""An MQTT 5 client as a moving device has it: it knows nothing of Godwit, and goes away without a word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import mqtt5

from godwit.client.connection import Wire
from godwit.net.address import Address

ANSWER_S = 60.0
KEEP_S = 3600
REFUSED = 128
NUMBERS = 65_535
QOS = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE)


class PhoneError(Exception):
    """A broker did not do what was asked of it."""


class Phone:
    """`hear` gets every payload once where QoS 2 promises it, since what MQTT has a client remember is remembered over
    connections. With `keep_s` 0 nothing is, on either side, and each connection begins anew."""

    def __init__(self, name: str, hear: Callable[[bytes], None], *, keep_s: int = KEEP_S) -> None:
        self.name = name
        self.hear = hear
        self.keep_s = keep_s
        self._wire: Wire | None = None
        self._number = 0
        self._unreleased: set[int] = set()
        self._answers: dict[int, asyncio.Future[Any]] = {}

    @property
    def attached(self) -> bool:
        return self._wire is not None and not self._wire.closed.is_set()

    async def attach(self, port: int) -> bool:
        """Connect there; whether the broker knew the session. `OSError`, `TimeoutError` or `PhoneError` where not."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[mqtt5.ConnAckPacket] = loop.create_future()

        def first(packet: mqtt5.Packet) -> None:
            if isinstance(packet, mqtt5.ConnAckPacket) and not answer.done():
                wire.on_packet = self._receive
                answer.set_result(packet)

        async with asyncio.timeout(ANSWER_S):
            wire = await Wire.dial(Address("127.0.0.1", port), None, 0)
            wire.on_packet = first
            self._wire = wire
            wire.write(self._hello())
            found = await wire.unless_closed(answer)
        if int(found.reason_code) >= REFUSED:
            raise PhoneError(f"{self.name}: refused at port {port}: {found.reason_str or found.reason_code}")
        if not found.session_present:
            self._unreleased.clear()
        return bool(found.session_present)

    def _hello(self) -> bytes:
        anew = not self.keep_s
        return mqtt5.ConnectPacket(
            self.name, clean_start=anew, session_expiry_interval=self.keep_s, receive_max=NUMBERS
        ).write()

    def vanish(self) -> None:
        """The broker hears that the connection is gone, and nothing else."""
        if self._wire is not None:
            self._wire.abort()
            self._wire = None

    async def subscribe(self, pattern: str, qos: int) -> None:
        number = self._next_number()
        wanted = mqtt5.TopicFilter(pattern, max_qos=QOS[qos])
        answer = await self._ask(number, mqtt5.SubscribePacket(number, [wanted]).write())
        if int(answer.reason_codes[0]) >= REFUSED:
            raise PhoneError(f"{self.name}: {pattern}: {answer.reason_str or answer.reason_codes[0]}")

    async def publish(self, topic: str, payload: bytes, qos: int) -> None:
        """Returns when the broker has it; at QoS 0 when it has left."""
        if not qos:
            self._write(mqtt5.PublishPacket(topic, payload).write())
            return
        number = self._next_number()
        await self._ask(number, mqtt5.PublishPacket(topic, payload, qos=QOS[qos], packet_id=number).write())

    async def _ask(self, number: int, packet: bytes) -> Any:
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self._write(packet)
            return await answer
        finally:
            del self._answers[number]

    def _next_number(self) -> int:
        while True:
            self._number = self._number % NUMBERS + 1
            if self._number not in self._answers:
                return self._number

    def _write(self, data: bytes) -> None:
        if self._wire is not None:
            self._wire.write(data)

    def _receive(self, packet: mqtt5.Packet) -> None:
        match packet:
            case mqtt5.PublishPacket():
                self._take(packet)
            case mqtt5.PubRelPacket():
                self._unreleased.discard(packet.packet_id)
                self._write(mqtt5.PubCompPacket(packet.packet_id).write())
            case mqtt5.PubRecPacket():
                self._write(mqtt5.PubRelPacket(packet.packet_id).write())
            case mqtt5.PubAckPacket() | mqtt5.PubCompPacket() | mqtt5.SubAckPacket():
                answer = self._answers.get(packet.packet_id)
                if answer is not None and not answer.done():
                    answer.set_result(packet)

    def _take(self, packet: mqtt5.PublishPacket) -> None:
        number = packet.packet_id
        if number is None:
            self.hear(packet.payload)
        elif packet.qos == mqtt5.QoS.AT_LEAST_ONCE:
            self.hear(packet.payload)
            self._write(mqtt5.PubAckPacket(number).write())
        else:
            if number not in self._unreleased:
                self._unreleased.add(number)
                self.hear(packet.payload)
            self._write(mqtt5.PubRecPacket(number).write())

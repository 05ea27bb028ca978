"""The client's side of an MQTT connection, of version 5 or 3.1.1, as a bridge needs it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import cast

import mqtt5

from godwit.net.mqtt import codec3
from godwit.net.mqtt.codec import Packet, PacketError, Subscribe, Wish
from godwit.net.mqtt.framing import length_at
from godwit.protocols.broker.api import Delivery

CONNECT_S = 20.0
HIGH_WATER_B = 256 * 1024
PACKET_MAX_B = 16 * 1024 * 1024
FOR_EVER_S = 0xFFFFFFFF


class Remote(asyncio.Protocol):
    """Set the listeners, then `connect`. Silence for longer than the keep-alive ends it."""

    def __init__(self, version: int, keep_alive_s: int) -> None:
        self.version = version
        self.keep_alive_s = keep_alive_s
        self.on_packet: Callable[[object], None] = lambda packet: None
        self.on_ready: Callable[[], None] = lambda: None
        """Called when more may be published."""
        self.on_lost: Callable[[], None] = lambda: None
        self.takes_more = True
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._heard_s = self._loop.time()
        self._welcome: asyncio.Future[mqtt5.ConnAckPacket] = self._loop.create_future()
        self._pulse: asyncio.TimerHandle | None = None

    @classmethod
    async def dial(cls, host: str, port: int, tls: ssl.SSLContext | None, version: int, keep_alive_s: int) -> Remote:
        try:
            async with asyncio.timeout(CONNECT_S):
                _, remote = await asyncio.get_running_loop().create_connection(
                    lambda: cls(version, keep_alive_s), host, port, ssl=tls
                )
        except TimeoutError:
            raise OSError(f"no answer within {CONNECT_S:g} s") from None
        return remote

    async def connect(self, client: str, user: str | None, password: bytes | None, inflight_max: int) -> None:
        """`ConnectionError` where the other broker does not let us in."""
        packet = mqtt5.ConnectPacket(
            client,
            username=user,
            password=password,
            clean_start=False,
            keep_alive=self.keep_alive_s,
            session_expiry_interval=FOR_EVER_S if self.version == 5 else 0,
            receive_max=inflight_max,
        )
        self._write(packet)
        try:
            async with asyncio.timeout(CONNECT_S):
                answer = await self._welcome
        except TimeoutError:
            raise ConnectionError(f"no CONNACK within {CONNECT_S:g} s") from None
        if int(answer.reason_code):
            raise ConnectionError(f"the other broker refuses: {_words(answer.reason_code)}")

    def subscribe(self, topics: Sequence[str]) -> None:
        if not topics:
            return
        if self.version == 5:
            filters = [mqtt5.TopicFilter(one, max_qos=mqtt5.QoS.AT_LEAST_ONCE, no_local=True) for one in topics]
            self._put(mqtt5.SubscribePacket(65_535, filters).write())
        else:
            self._write(Subscribe(65_535, tuple(Wish(one, 1) for one in topics)))

    def publish(self, delivery: Delivery, topic: str, user: list[tuple[str, str]]) -> None:
        publication, properties = delivery.publication, delivery.publication.properties
        self._write(
            mqtt5.PublishPacket(
                topic,
                publication.payload,
                qos=mqtt5.QoS(min(delivery.qos, 1)),
                retain=delivery.retain,
                packet_id=delivery.number or None,
                duplicate=delivery.again,
                payload_format_indicator=int(bool(properties.payload_is_text)),
                content_type=properties.content_type,
                response_topic=properties.response_topic,
                correlation_data=properties.correlation_data,
                user_properties=user,
            )
        )

    def acknowledge(self, number: int) -> None:
        self._write(mqtt5.PubAckPacket(number))

    def close(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._write(mqtt5.DisconnectPacket())
            self._transport.close()

    def _write(self, packet: Packet) -> None:
        self._put(codec3.write(packet) if self.version != 5 else packet.write())  # type: ignore[union-attr]

    def _put(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    # The transport calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER_B)
        self._pulse = self._loop.call_later(self.keep_alive_s / 2, self._beat)

    def pause_writing(self) -> None:
        self.takes_more = False

    def resume_writing(self) -> None:
        self.takes_more = True
        self.on_ready()

    def data_received(self, data: bytes) -> None:
        self._heard_s = self._loop.time()
        self._buffer += data
        try:
            for packet in self._packets():
                self._take(packet)
        except (PacketError, ValueError) as error:
            self._fail(ConnectionError(f"what the other broker says is no MQTT: {error}"))
            if self._transport is not None:
                self._transport.abort()

    def _packets(self) -> list[object]:
        found: list[object] = []
        data, at = bytes(self._buffer), 0
        while at < len(data):
            body, size = length_at(data, at, len(data))
            if size > PACKET_MAX_B:
                raise PacketError(f"a packet of {size:,} bytes")
            if not body or body + size > len(data):
                break
            whole = data[at : body + size]
            found.append(codec3.read(whole) if self.version != 5 else mqtt5.read(memoryview(whole))[0])
            at = body + size
        del self._buffer[:at]
        return found

    def _take(self, packet: object) -> None:
        match packet:
            case mqtt5.ConnAckPacket():
                if not self._welcome.done():
                    self._welcome.set_result(packet)
            case mqtt5.PingRespPacket():
                pass
            case mqtt5.DisconnectPacket():
                self._fail(ConnectionError(f"the other broker hangs up: {_words(packet.reason_code)}"))
                self.close()
            case _:
                self.on_packet(packet)

    def _fail(self, error: Exception) -> None:
        if not self._welcome.done():
            self._welcome.set_exception(error)

    def connection_lost(self, error: Exception | None) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
        self._fail(error or ConnectionError("the other broker hung up"))
        self._welcome.exception()
        self.on_lost()

    def _beat(self) -> None:
        if self._loop.time() - self._heard_s > self.keep_alive_s * 1.5 and self._transport is not None:
            self._transport.abort()
            return
        self._write(mqtt5.PingReqPacket())
        self._pulse = self._loop.call_later(self.keep_alive_s / 2, self._beat)


def _words(code: object) -> str:
    return str(getattr(code, "name", code)).lower().replace("_", " ")

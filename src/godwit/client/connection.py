"""One MQTT 5 connection of a client: packets in, bytes out, and whether it is still there."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TypeVar, cast

import mqtt5

from godwit.net.address import Address

T = TypeVar("T")

PING = mqtt5.PingReqPacket().write()


class Wire(asyncio.Protocol):
    """`on_packet` gets every packet but answers to pings. Once `keep_alive` is called, silence for longer than that
    closes it: before CONNACK a broker may be silent for as long as it waits for a session."""

    def __init__(self, keep_alive_s: float) -> None:
        self.on_packet: Callable[[mqtt5.Packet], None] = lambda packet: None
        self.closed = asyncio.Event()
        self._keep_alive_s = keep_alive_s
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._heard_at = self._loop.time()
        self._pulse: asyncio.TimerHandle | None = None

    @classmethod
    async def dial(cls, to: Address, tls: ssl.SSLContext | None, keep_alive_s: float) -> Wire:
        context = tls or (ssl.create_default_context() if to.tls else None)
        loop = asyncio.get_running_loop()
        try:
            _, wire = await loop.create_connection(lambda: cls(keep_alive_s), to.host, to.port, ssl=context)
        except ConnectionResetError:
            if context is None:
                raise
            raise ssl.SSLError("the other side has hung up instead; does it speak TLS there?") from None
        return wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's only by what they can do.
        self._transport = cast("asyncio.Transport", transport)

    def keep_alive(self) -> None:
        """The broker has let the client in: from now on it answers pings."""
        if self._keep_alive_s and not self.closed.is_set():
            self._heard_at = self._loop.time()
            self._pulse = self._loop.call_later(self._keep_alive_s / 2, self._beat)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
        self.closed.set()

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._buffer += data
        view, at = memoryview(bytes(self._buffer)), 0
        while at < len(view):
            try:
                packet, length = mqtt5.read(view[at:])
            except IndexError:
                break
            except ValueError:
                self.abort()
                return
            at += length
            self.on_packet(packet)
        del self._buffer[:at]

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def unless_closed(self, answer: asyncio.Future[T]) -> T:
        """The answer; `ConnectionResetError` where the connection ends before it comes."""
        closed = asyncio.ensure_future(self.closed.wait())
        try:
            await asyncio.wait((answer, closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()
        if not answer.done():
            raise ConnectionResetError("the connection has ended")
        return answer.result()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _beat(self) -> None:
        if self._loop.time() - self._heard_at > self._keep_alive_s:
            self.abort()
            return
        self.write(PING)
        self._pulse = self._loop.call_later(self._keep_alive_s / 2, self._beat)

"""MQTT within WebSocket (section 6): binary frames, subprotocol `mqtt`, packets wherever they fall in them."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

from websockets.exceptions import NegotiationError
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from godwit.net.mqtt.connection import Connection
from godwit.net.mqtt.front import Front

log = logging.getLogger("godwit.mqtt")

SUBPROTOCOLS = ("mqtt", "mqttv3.1")
"""The second is what clients of version 3.1 say."""


def chosen(protocol: ServerProtocol, offered: Any) -> Subprotocol:
    """The first one offered that is MQTT."""
    for name in SUBPROTOCOLS:
        if name in offered:
            return Subprotocol(name)
    raise NegotiationError("this is MQTT: offer the subprotocol 'mqtt'")


def is_welcome(origin: str, host: str, allowed: Collection[str]) -> bool:
    """Whether a page from there may speak for its user: those that are named, and those of this very address.

    A browser says where a page comes from; any page could else use a broker that trusts the machine it runs on. A host
    name counts only if it is `localhost`: a page can make its own name point here.
    """
    if origin in allowed or "*" in allowed:
        return True
    theirs, ours = urlsplit(origin).hostname, urlsplit(f"//{host}").hostname
    return theirs is not None and theirs == ours and (ours == "localhost" or _is_number(ours))


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Inside(asyncio.Transport):
    """What a connection takes for its transport: one binary frame for each write."""

    def __init__(self, outside: WebSocket) -> None:
        super().__init__()
        self._outside = outside
        assert outside.transport is not None
        self._transport = outside.transport

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._outside.write(bytes(data))

    def close(self) -> None:
        self._outside.close()

    def can_write_eof(self) -> bool:
        return False  # a closing frame says so instead

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._outside.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return True if name == "websocket" else self._transport.get_extra_info(name, default)


class WebSocket(asyncio.Protocol):
    """The handshake and the frames; what is in them goes to a `Connection`."""

    __slots__ = ("_front", "_full", "_inner", "_protocol", "_timer", "transport")

    def __init__(self, front: Front) -> None:
        self._front = front
        # A frame may hold many packets, so its size says nothing that the connection would not check.
        self._protocol = ServerProtocol(
            subprotocols=[Subprotocol(name) for name in SUBPROTOCOLS],
            select_subprotocol=chosen,
            max_size=front.options.packet_bytes_max * 16,
        )
        self._inner: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._full = False
        """More waits to be written than the transport likes."""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's only by what they can do.
        self.transport = transport = cast("asyncio.Transport", transport)
        self._timer = self._front.loop.call_later(self._front.options.connect_wait_s, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._shaken()
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        # Whoever pings without reading the answers is not read either, else the answers would fill the memory.
        self._full = True
        if self.transport is not None:
            self.transport.pause_reading()
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._full = False
        if self.transport is not None and (self._inner is None or self._inner.is_read):
            self.transport.resume_reading()
        if self._inner is not None:
            self._inner.resume_writing()

    def resume_reading(self) -> None:
        """The connection wants to hear more."""
        if self.transport is not None and not self._full:
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        self._take()

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._take()

    def _take(self) -> None:
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._greet(event)
            elif isinstance(event, Frame):
                self._take_frame(event)
        self._send()

    def _greet(self, request: Request) -> None:
        self._shaken()
        origin = request.headers.get("Origin")
        if origin is not None and not is_welcome(origin, request.headers.get("Host", ""), self._front.options.origins):
            log.info("refused a page of %s: not in listen.origins", origin[:200])
            self._front.counts.refused += 1
            response = self._protocol.reject(HTTPStatus.FORBIDDEN, "this page may not use the broker\n")
        else:
            response = self._protocol.accept(request)
        self._protocol.send_response(response)
        if self._protocol.state is State.OPEN:
            self._send()
            self._inner = Connection(self._front)
            self._inner.connection_made(Inside(self))

    def _take_frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.TEXT:
            # MQTT-6.0.0-1: anything but binary closes the connection.
            self._protocol.fail(CloseCode.UNSUPPORTED_DATA, "MQTT is binary")
        elif frame.opcode in (Opcode.BINARY, Opcode.CONT) and self._inner is not None:
            self._inner.data_received(bytes(frame.data))

    def write(self, data: bytes) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_binary(data)
            self._send()

    def close(self) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        self._send()
        if self.transport is not None:
            self.transport.close()

    def _send(self) -> None:
        for data in self._protocol.data_to_send():
            if self.transport is None:
                return
            if data:
                self.transport.write(data)
            else:
                self.transport.close()
        if self.transport is not None and self._protocol.close_expected() and not self.transport.is_closing():
            self.transport.close()

    def _shaken(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

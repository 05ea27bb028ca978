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

from godwit.net.mqtt.connection import CLOSE_WAIT_S, CONNECT_BYTES_MAX, HELD_BYTES_MAX, Connection
from godwit.net.mqtt.front import Front
from godwit.net.mqtt.secure import Layer

log = logging.getLogger("godwit.mqtt")

SUBPROTOCOLS = ("mqtt", "mqttv3.1")
"""The second is what clients of version 3.1 say."""

REQUEST_END = b"\r\n\r\n"

PACKETS_IN_FRAME = 4
"""So many of the largest packets may come in one frame."""


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


class Inside(Layer):
    """Inside WebSocket: one binary frame for each write."""

    def __init__(self, outside: WebSocket) -> None:
        assert outside.transport is not None
        super().__init__(outside.transport)
        self._outside = outside

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._outside.write(bytes(data))

    def close(self) -> None:
        self._outside.end()

    def write_eof(self) -> None:
        self._outside.end()

    def resume_reading(self) -> None:
        self._outside.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return True if name == "websocket" else super().get_extra_info(name, default)


class WebSocket(asyncio.Protocol):
    """The handshake and the frames; what is in them goes to a `Connection`."""

    __slots__ = ("_before", "_ended", "_front", "_full", "_inner", "_protocol", "_timer", "transport")

    def __init__(self, front: Front) -> None:
        self._front = front
        # A frame is kept until it is whole, whoever sends it: of somebody who is not known yet that must not be much.
        self._protocol = ServerProtocol(
            subprotocols=[Subprotocol(name) for name in SUBPROTOCOLS],
            select_subprotocol=chosen,
            max_size=min(front.options.packet_bytes_max, CONNECT_BYTES_MAX) + HELD_BYTES_MAX,
        )
        self._before = b""
        """The last bytes of a request that has not ended."""
        self._inner: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        """The last frame was sent, and nothing that comes is looked at."""
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
        # The package wants the request answered before it sees a frame, and who is in a hurry sends both at once.
        if self._protocol.state is State.CONNECTING:
            joined = self._before + data
            end = joined.find(REQUEST_END)
            self._before = joined[-len(REQUEST_END) + 1 :]
            if end >= 0:
                size = end + len(REQUEST_END) - (len(joined) - len(data))
                self._receive(data[:size])
                data = data[size:]
        if data:
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        if self._ended:
            return
        if self._inner is not None and self._inner.is_known:
            self._protocol.max_message_size = self._front.options.packet_bytes_max * PACKETS_IN_FRAME
        self._protocol.receive_data(data)
        self._take()

    def eof_received(self) -> bool:
        if self._ended:
            return False
        self._protocol.receive_eof()
        self._take()
        return not self._ended and self._inner is not None

    def _take(self) -> None:
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._greet(event)
            elif isinstance(event, Frame):
                self._take_frame(event)
        if self._protocol.state in (State.CONNECTING, State.OPEN) or self._inner is None:
            self._send()
        else:
            self._finish(self._inner)

    def _finish(self, inner: Connection) -> None:
        """No more frames come, and the last one that goes is ready. What came before counts first, and our answers to
        that go before it."""
        if self._protocol.close_rcvd is None and self._protocol.close_sent is not None:
            inner.break_off(self._protocol.close_sent.reason or "what came is no frame of a WebSocket")
        elif not inner.eof_received():
            self.end()

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
        elif self.transport is not None and not self._ended and not self.transport.is_closing():
            # The last frame is ready and has not gone: this goes before it.
            self.transport.write(Frame(Opcode.BINARY, data).serialize(mask=False))

    def end(self) -> None:
        """Say the last frame and close our half: a client that still talks must be able to read it. Whoever closes too
        ends the connection; whoever does not is not waited for."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        transport = self.transport
        if self._ended or transport is None or transport.is_closing():
            return
        self._ended = True
        transport.write(b"".join(self._protocol.data_to_send()))
        if self._protocol.close_rcvd is not None or not transport.can_write_eof():
            transport.close()
        else:
            transport.write_eof()
            transport.resume_reading()
            self._timer = self._front.loop.call_later(CLOSE_WAIT_S, transport.abort)

    def _send(self) -> None:
        if self._ended or self.transport is None or self.transport.is_closing():
            return
        pieces = self._protocol.data_to_send()
        self.transport.write(b"".join(pieces))
        if b"" in pieces:
            self.end()

    def _shaken(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

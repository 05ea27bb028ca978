"""A connection over TLS: the handshake, then whatever is served within it.

Where client and broker do not agree, the client gets the alert that says why, the log a line, and a count goes up. The
TLS of asyncio and of uvloop closes the connection without a word, at both ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from typing import Any, cast

from godwit.net.mqtt.front import Front

log = logging.getLogger("godwit.mqtt")

CHUNK_B = 256 * 1024


class Secured(asyncio.Protocol):
    """The outside. `make` makes the protocol that is served once both sides agree."""

    __slots__ = ("_front", "_in", "_inner", "_make", "_out", "_said_all", "_timer", "_tls", "transport")

    def __init__(self, front: Front, context: ssl.SSLContext, make: Callable[[], asyncio.Protocol]) -> None:
        self._front = front
        self._make = make
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._inner: asyncio.Protocol | None = None
        self._said_all = False
        """Nothing more is sent, and nothing that comes is looked at."""
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's only by what they can do.
        self.transport = cast("asyncio.Transport", transport)
        wait_s = self._front.options.connect_wait_s
        self._timer = self._front.loop.call_later(wait_s, self._give_up, f"not within {wait_s:g} s")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._inner is not None:
            self._inner.connection_lost(exc)
        elif self._timer is not None:
            self._tell("the client hung up")
        self.transport = None
        self._shaken()

    def data_received(self, data: bytes) -> None:
        if self._said_all:
            return
        self._in.write(data)
        if self._inner is None:
            self._shake()
        else:
            self._read(self._inner)

    def eof_received(self) -> bool:
        return self._inner is not None and not self._said_all and bool(self._inner.eof_received())

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def _shake(self) -> None:
        if self._timer is None:
            return  # it is over; what comes after a failure is not looked at
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # the alert
            self._give_up((error.reason or str(error)).replace("_", " ").lower())
        else:
            self._flush()
            self._shaken()
            assert self.transport is not None
            self._inner = self._make()
            self._inner.connection_made(Within(self, self.transport, self._tls))
            self._read(self._inner)

    def _read(self, inner: asyncio.Protocol) -> None:
        said, ended = self._decrypted()
        self._flush()
        if said:
            inner.data_received(said)
        if ended and self.transport is not None and not inner.eof_received():
            self.transport.close()

    def _decrypted(self) -> tuple[bytes, bool]:
        """What the client has said, and whether that was all."""
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._tls.read(CHUNK_B)
            except ssl.SSLWantReadError:
                return b"".join(pieces), False
            except ssl.SSLError:
                return b"".join(pieces), True
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)

    def write(self, data: bytes) -> None:
        if self.transport is not None and data:
            with contextlib.suppress(ssl.SSLError):  # after the end of what may be said
                self._tls.write(data)
            self._flush()

    def say_goodbye(self) -> None:
        """The last record: nothing more comes from here."""
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._flush()
        self._said_all = True

    def _flush(self) -> None:
        data = self._out.read()
        if data and not self._said_all and self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def _give_up(self, reason: str) -> None:
        self._tell(reason)
        self._shaken()
        if self.transport is not None:
            self.transport.close()

    def _tell(self, reason: str) -> None:
        self._front.counts.handshakes_failed += 1
        peer = self.transport.get_extra_info("peername") if self.transport is not None else None
        address = str(peer[0]) if peer else "?"
        log.info("no TLS with %s: %s", address, reason, extra={"address": address, "reason": reason})

    def _shaken(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Layer(asyncio.Transport):
    """What a protocol that is served inside another takes for its transport: that of the other, and what it adds."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)


class Within(Layer):
    """Inside TLS."""

    def __init__(self, outside: Secured, transport: asyncio.Transport, tls: ssl.SSLObject) -> None:
        super().__init__(transport)
        self._outside = outside
        self._tls = tls

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._outside.write(bytes(data))

    def write_eof(self) -> None:
        """The client may go on talking, to nobody; it hears the end all the same."""
        self._outside.say_goodbye()
        self._transport.write_eof()

    def close(self) -> None:
        self._outside.say_goodbye()
        self._transport.close()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else super().get_extra_info(name, default)

"""Just enough HTTP for scrapers, probes, curl and readers of the archive: GET, one request a connection."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

import msgspec

REQUEST_BYTES = 8192
REQUEST_S = 5.0
TEXT = "text/plain; charset=utf-8"

Answer = tuple[HTTPStatus, str, bytes]
"""Status, type and body."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    query: Mapping[str, str]
    peer: str
    """The network address of whoever asks."""
    user: str | None = None
    password: bytes | None = None
    """As given by HTTP's basic authentication."""


class HttpServer:
    """Listens from `start` until `stop`; an answer must be ready, and be taken, within `answer_s`."""

    def __init__(
        self,
        answer: Callable[[Request], Awaitable[Answer]],
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        answer_s: float = REQUEST_S,
    ) -> None:
        self.host = host
        self.port = port
        self._answer = answer
        self._tls = tls
        self._answer_s = answer_s
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=REQUEST_BYTES, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 1)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(self._answer_s):
                request = _request(head, writer.get_extra_info("peername"))
                if request is None:
                    answer = HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"only GET is understood\n"
                else:
                    answer = await self._answer(request)
                writer.write(_response(*answer))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass
        finally:
            writer.close()


def _request(head: bytes, peer: tuple[str, int] | None) -> Request | None:
    """None where it is no GET."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    if method != "GET":
        return None
    path, _, query = rest.split(" ", 1)[0].partition("?")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    user, password = _credentials(headers.get("authorization", ""))
    return Request(
        path=unquote(path),
        query=dict(parse_qsl(query)),
        peer=peer[0] if peer else "",
        user=user,
        password=password,
    )


def _credentials(header: str) -> tuple[str | None, bytes | None]:
    """What cannot be read is nobody's password."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None, None
    try:
        user, _, password = base64.b64decode(encoded, validate=True).partition(b":")
        return user.decode(), password
    except (binascii.Error, UnicodeDecodeError):
        return "", b""


def _response(status: HTTPStatus, kind: str, body: bytes) -> bytes:
    ask = 'WWW-Authenticate: Basic realm="godwit"\r\n' if status is HTTPStatus.UNAUTHORIZED else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{ask}Connection: close\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode() + body

"""Just enough HTTP for scrapers, probes, curl, operators and readers of the archive: one request a connection."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl, unquote

import msgspec

REQUEST_BYTES = 8192
REQUEST_S = 5.0
BODY_BYTES_MAX = 1024 * 1024
TEXT = "text/plain; charset=utf-8"

Answer = tuple[HTTPStatus, str, bytes | AsyncIterator[bytes]]
"""Status, type and body, or its parts as they come."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    query: Mapping[str, str]
    peer: str
    """The network address of whoever asks."""
    user: str | None = None
    password: bytes | None = None
    """As given by HTTP's basic authentication."""
    method: str = "GET"
    headers: Mapping[str, str] = {}
    """By lower-case name."""
    body: bytes = b""


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
        methods: tuple[str, ...] = ("GET",),
    ) -> None:
        self.host = host
        self.port = port
        self._answer = answer
        self._tls = tls
        self._answer_s = answer_s
        self._methods = methods
        self._server: asyncio.Server | None = None
        self._pouring: set[asyncio.Task[None]] = set()
        self._stopped = False

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=REQUEST_BYTES, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._stopped = True
            for task in self._pouring:
                task.cancel()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 1)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                request = _request(await reader.readuntil(b"\r\n\r\n"), writer.get_extra_info("peername"))
                problem = self._problem(request)
                if problem is None and (size := _size_of(request)):
                    request = msgspec.structs.replace(request, body=await reader.readexactly(size))
            async with asyncio.timeout(self._answer_s):
                status, kind, body = problem or await self._answer(request)
                if isinstance(body, bytes):
                    writer.write(_response(status, kind, body))
                    await writer.drain()
            if not isinstance(body, bytes):
                await self._pour(writer, status, kind, body)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass
        finally:
            writer.close()

    async def _pour(
        self, writer: asyncio.StreamWriter, status: HTTPStatus, kind: str, parts: AsyncIterator[bytes]
    ) -> None:
        """Until there is no more, or nobody takes it."""
        task = asyncio.current_task()
        assert task is not None
        self._pouring.add(task)
        try:
            writer.write(_head(status, kind))
            async with contextlib.aclosing(cast("AsyncGenerator[bytes]", parts)) as pouring:
                async for part in pouring:
                    writer.write(part)
                    async with asyncio.timeout(self._answer_s):
                        await writer.drain()
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        finally:
            self._pouring.discard(task)

    def _problem(self, request: Request) -> Answer | None:
        """Why it is not even looked at."""
        if request.method not in self._methods:
            return HTTPStatus.METHOD_NOT_ALLOWED, TEXT, f"only {' and '.join(self._methods)} is understood\n".encode()
        if "transfer-encoding" in request.headers or _size_of(request) > BODY_BYTES_MAX:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TEXT, f"at most {BODY_BYTES_MAX} bytes, at once\n".encode()
        return None


def _size_of(request: Request) -> int:
    text = request.headers.get("content-length", "")
    return int(text) if request.method != "GET" and text.isascii() and text.isdecimal() else 0


def _request(head: bytes, peer: tuple[str, int] | None) -> Request:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    path, _, query = rest.split(" ", 1)[0].partition("?")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    user, password = _credentials(headers.get("authorization", ""))
    return Request(
        path=unquote(path),
        query=dict(parse_qsl(query, keep_blank_values=True)),
        peer=peer[0] if peer else "",
        user=user,
        password=password,
        method=method,
        headers=headers,
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


def _head(status: HTTPStatus, kind: str) -> bytes:
    first = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n"
    return f"{first}Connection: close\r\nCache-Control: no-store\r\n\r\n".encode()


def _response(status: HTTPStatus, kind: str, body: bytes) -> bytes:
    ask = 'WWW-Authenticate: Basic realm="godwit"\r\n' if status is HTTPStatus.UNAUTHORIZED else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{ask}Connection: close\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode() + body

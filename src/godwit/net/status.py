"""What operators ask a broker over HTTP: `/metrics` for Prometheus, `/health`, and `/status` for people and `top`.

Only GET is understood, one request a connection: enough for scrapers, probes and curl, and nothing to attack.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

REQUEST_BYTES = 8192
REQUEST_S = 5.0
TEXT, JSON = "text/plain; charset=utf-8", "application/json"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

Figures = Mapping[str, int | float | Mapping[str, int | float]]
"""Numbers by name; a mapping is one number for each label."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Where the answers come from; each is asked when somebody asks."""

    counts: Callable[[], Figures]
    """What only grows."""
    levels: Callable[[], Figures]
    """What goes up and down."""
    troubles: Callable[[], list[str]]
    """Why this broker should not be given more to do; healthy where there is none."""
    status: Callable[[], Mapping[str, Any]]


class StatusServer:
    """Listens from `start` until `stop`."""

    def __init__(self, facts: Facts, host: str, port: int) -> None:
        self.facts = facts
        self.host = host
        self.port = port
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(facts))
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=REQUEST_BYTES)
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
                writer.write(_response(*self._answer(head)))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass
        finally:
            writer.close()

    def _answer(self, head: bytes) -> tuple[HTTPStatus, str, bytes]:
        method, _, rest = head.decode("latin-1").partition(" ")
        if method != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"only GET is understood\n"
        match rest.split(" ", 1)[0].partition("?")[0]:
            case "/metrics":
                return HTTPStatus.OK, PROMETHEUS, generate_latest(self._registry)
            case "/health":
                troubles = self.facts.troubles()
                status = HTTPStatus.SERVICE_UNAVAILABLE if troubles else HTTPStatus.OK
                return status, TEXT, "".join(f"{line}\n" for line in troubles or ["ok"]).encode()
            case "/status":
                return HTTPStatus.OK, JSON, msgspec.json.encode(self.facts.status())
            case "/":
                return HTTPStatus.OK, TEXT, b"/metrics  /health  /status\n"
        return HTTPStatus.NOT_FOUND, TEXT, b"there are /metrics, /health and /status\n"


class _Collector:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def collect(self) -> Iterable[Metric]:
        for name, figure in self.facts.counts().items():
            yield _family(CounterMetricFamily, f"godwit_{name}", figure)
        for name, figure in self.facts.levels().items():
            yield _family(GaugeMetricFamily, f"godwit_{name}", figure)


def _family(kind: Any, name: str, figure: int | float | Mapping[str, int | float]) -> Metric:
    words = name.replace("_", " ")
    if not isinstance(figure, Mapping):
        return kind(name, words, value=figure)  # type: ignore[no-any-return]
    family = kind(name, words, labels=["what"])
    for label, value in figure.items():
        family.add_metric([label], value)
    return family  # type: ignore[no-any-return]


def _response(status: HTTPStatus, kind: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode() + body

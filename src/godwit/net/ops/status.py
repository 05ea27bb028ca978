"""What operators ask a broker over HTTP: `/metrics` for Prometheus, `/health`, and `/status` for people and `top`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from godwit.net.http import TEXT, Answer, HttpServer, Request

JSON = "application/json"
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


class StatusServer(HttpServer):
    """Listens from `start` until `stop`."""

    def __init__(self, facts: Facts, host: str, port: int) -> None:
        super().__init__(self._tell, host, port)
        self.facts = facts
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(facts))

    async def _tell(self, request: Request) -> Answer:
        match request.path:
            case "/metrics":
                return HTTPStatus.OK, PROMETHEUS, generate_latest(self._registry)
            case "/live":
                # Whoever can answer is alive: a broker with a full disk must not be started again for it.
                return HTTPStatus.OK, TEXT, b"ok\n"
            case "/ready" | "/health":
                troubles = self.facts.troubles()
                status = HTTPStatus.SERVICE_UNAVAILABLE if troubles else HTTPStatus.OK
                return status, TEXT, "".join(f"{line}\n" for line in troubles or ["ok"]).encode()
            case "/status":
                return HTTPStatus.OK, JSON, msgspec.json.encode(self.facts.status())
            case "/":
                return HTTPStatus.OK, TEXT, b"/metrics  /live  /ready  /health  /status\n"
        return HTTPStatus.NOT_FOUND, TEXT, b"there are /metrics, /live, /ready, /health and /status\n"


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

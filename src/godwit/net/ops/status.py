"""What operators ask a broker over HTTP: `/metrics` for Prometheus, `/health`, and `/status` for people and `top`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from godwit.net.http import TEXT, Answer, HttpServer, Request
from godwit.net.ops.catalogue import COUNTERS, GAUGES, HISTOGRAMS, Figure, figure_of
from godwit.net.ops.histogram import Histogram

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
    timings: Callable[[], Mapping[str, Histogram]] = dict
    """How long things took."""
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
        ProcessCollector(registry=self._registry)

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
            yield _family(CounterMetricFamily, name, figure_of(COUNTERS, name), figure)
        for name, figure in self.facts.levels().items():
            yield _family(GaugeMetricFamily, name, figure_of(GAUGES, name), figure)
        for name, took in self.facts.timings().items():
            family = HistogramMetricFamily(f"godwit_{name}_seconds", HISTOGRAMS[name].help)
            family.add_metric([], took.buckets(), took.sum_s)
            yield family


def _family(kind: Any, name: str, told: Figure, figure: int | float | Mapping[str, int | float]) -> Metric:
    if not isinstance(figure, Mapping):
        return kind(f"godwit_{name}", told.help, value=figure)  # type: ignore[no-any-return]
    family = kind(f"godwit_{name}", told.help, labels=[told.label])
    for value, number in figure.items():
        # `qos 1` is how people read it in the report; here the label says it.
        family.add_metric([value.removeprefix(f"{told.label} ")], number)
    return family  # type: ignore[no-any-return]

"""What verdicts and tables rest on: the runs of a grid, found by what was varied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from godwit.lab.handoff.results import Row
from godwit.lab.handoff.runs import Configuration, Result
from godwit.lab.intervals import Interval, interval_if_any

Quantity = Callable[[Result], float]

DEFAULTS = Configuration(scheme="durable", seed=0)
VARIED = (
    "scheme",
    "subscribers",
    "pattern",
    "sleep_s",
    "bandwidth_mbps",
    "queue_mb",
    "disconnect_s",
    "connect_s",
    "moving",
    "skew",
    "strays",
    "mass",
)


class Evidence:
    """The rows of one reading of the testbed. `quick` plans refute nothing."""

    def __init__(self, rows: Sequence[Row], base: int, *, quick: bool = False) -> None:
        self.rows = rows
        self.base = base
        self.quick = quick
        self.schemes = list(dict.fromkeys(row.configuration.scheme for row in rows))
        self.sizes = sorted({row.configuration.subscribers for row in rows})
        self._by_cell: dict[tuple[Any, ...], dict[int, Result]] = {}
        for row in rows:
            key = tuple(getattr(row.configuration, name) for name in VARIED)
            self._by_cell.setdefault(key, {})[row.configuration.seed] = row.result

    def by_seed(self, scheme: str, subscribers: int, **others: Any) -> dict[int, Result]:
        """The runs of one cell; what is not said is the published default."""
        said = {"scheme": scheme, "subscribers": subscribers, **others}
        return self._by_cell.get(tuple(said.get(name, getattr(DEFAULTS, name)) for name in VARIED), {})

    def results(self, scheme: str, subscribers: int, **others: Any) -> list[Result]:
        return list(self.by_seed(scheme, subscribers, **others).values())

    def interval(self, quantity: Quantity, scheme: str, subscribers: int, **others: Any) -> Interval | None:
        return interval_if_any(map(quantity, self.results(scheme, subscribers, **others)))

    def mean(self, quantity: Quantity, scheme: str, subscribers: int, **others: Any) -> float | None:
        found = self.interval(quantity, scheme, subscribers, **others)
        return found.mean if found else None

    def sizes_of(self, scheme: str) -> list[int]:
        """The sizes of which both patterns were run."""
        return [k for k in self.sizes if self.results(scheme, k) and self.results(scheme, k, pattern="NBR")]


def throughput(result: Result) -> float:
    return result.throughput_per_s


def loss(result: Result) -> float:
    return 100 * result.loss


def duplication(result: Result) -> float:
    return 100 * result.duplication


def delay(result: Result) -> float:
    return result.delay_s


def handoff(result: Result) -> float:
    return result.latency_s


def q60(result: Result) -> float:
    return result.latency_q60_s


def transfer_share(result: Result) -> float:
    return 100 * result.transfer_share


def copies(result: Result) -> float:
    return result.copies_per_handoff


def hit_rate(result: Result) -> float:
    arrivals = result.hits + result.misses
    return 100 * result.hits / arrivals if arrivals else 0.0


def processing(result: Result) -> float:
    """Of the testbed's brokers; the deployed broker has no such costs."""
    values = result.broker_processing_s.values()
    return sum(values) / len(values) if values else 0.0

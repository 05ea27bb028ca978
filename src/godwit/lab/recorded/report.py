"""The schemes beside each other, as one page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from godwit.lab.pages import Page, Table
from godwit.lab.recorded.runs import Configuration, Result
from godwit.lab.results import Row

PLAN: tuple[dict[str, object], ...] = (
    {"scheme": "durable"},
    {"scheme": "reactive"},
    {"scheme": "neighbors"},
    *({"scheme": "weighted", "mass": mass} for mass in (0.999, 0.99, 0.95)),
    *({"scheme": "foreseen", "mass": mass} for mass in (0.997, 0.99, 0.95)),
    {"scheme": "neighbors", "disk": True},
    {"scheme": "product", "disk": True},
    *({"scheme": "foreseen", "mass": mass, "disk": True} for mass in (0.9995, 0.997)),
)
HEADER = (
    *("scheme", "hit rate", "stand-ins per handoff", "fewer than at all neighbors", "events sent per handoff"),
    *("MB between brokers", "lost", "twice", "out of order", "first event: mean", "median", "99 %"),
)


def plan(base: Configuration) -> list[Configuration]:
    return [msgspec.structs.replace(base, **one) for one in PLAN]


def name_of(configuration: Configuration) -> str:
    name = configuration.scheme
    if name in ("weighted", "foreseen"):
        name += f" {configuration.mass:g}"
    return name + ", disk" * configuration.disk


def page(rows: Sequence[Row[Configuration, Result]], command: str) -> Page:
    one = rows[0].configuration
    handoffs = max(row.result.handoffs for row in rows)
    lead = (
        f"{one.measure_s / 3600:g} h of recorded movement, {handoffs} handoffs; what brokers know of habits is from "
        f"{(one.begin_s - one.learn_from_s) / 3600:g} h before. {one.rate_per_s:g} events/s of {one.size_b} B; each "
        f"subscriber wants a fifth. {one.latency_s * 1e3:g} ms between two brokers; away for {one.away_s:g} s in the "
        f"mean, noticed after {one.detection_s:g} s; {one.buffer_mb:g} MB of buffer at a broker. Made by `{command}`."
    )
    note = (
        "Latency is that of messages between brokers alone: clients and processing take no time. Only handoffs during "
        "which something came count for it. Durable subscriptions are made at each broker at the first visit; who is "
        "at a broker for the first time finds nothing there."
    )
    return Page("Handoff on recorded movement", lead, (), (Table("Schemes", note, HEADER, list(_lines(rows))),))


def _lines(rows: Iterable[Row[Configuration, Result]]) -> Iterable[tuple[str, ...]]:
    rows = list(rows)
    everywhere = {one.disk: _copies(row.result) for row in rows if (one := row.configuration).scheme == "neighbors"}
    for row in rows:
        result, copies = row.result, _copies(row.result)
        all_copies = everywhere.get(row.configuration.disk, 0.0)
        fewer = f"{1 - copies / all_copies:.0%}" if copies and all_copies else "-"
        yield (
            name_of(row.configuration),
            f"{result.hit_rate:.4f}" if result.hits else "-",
            f"{copies:.2f}" if copies else "-",
            fewer,
            f"{result.events_sent / max(1, result.handoffs):.2f}",
            f"{result.peer_mb:.1f}",
            f"{result.lost} of {result.due} ({result.lost / max(1, result.due):.2%})",
            str(result.twice),
            str(result.disordered),
            *(f"{s * 1e3:.2f} ms" for s in (result.latency_mean_s, result.latency_median_s, result.latency_p99_s)),
        )


def _copies(result: Result) -> float:
    return result.copies / max(1, result.handoffs)

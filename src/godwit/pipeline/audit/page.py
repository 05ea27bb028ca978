"""The audit as one HTML page that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from statistics import median
from typing import Any

Rows = Sequence[Any]
"""Rows of Spark, by the names of their columns."""

CLIENTS_MAX = 50
WIDTH, HEIGHT = 640, 140

STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem } td, th { padding: .2rem .8rem; text-align: right }
th { border-bottom: 1px solid #999 } td:first-child, th:first-child { text-align: left }
.good { color: #176b2c } .bad { color: #a3161c } svg { background: #f6f6f4; width: 100% }
svg text { font-size: 11px }"""


def page(traces: str, overall: Any | None, cuts: Rows, moves: Rows, costs: Rows) -> str:
    """`overall` and `cuts` are rows of FIGURES, `moves` of RELOCATIONS, `costs` of OVERHEAD."""
    minutes = sorted((row for row in cuts if row["cut"] == "minute" and row["name"]), key=lambda row: int(row["name"]))
    clients = sorted((row for row in cuts if row["cut"] == "client"), key=lambda row: (-row["lost"], row["name"]))
    parts = [
        f"<h1>Audit</h1><p>{escape(traces)}</p>",
        _verdict(overall),
        "<h2>By minute of publication</h2>",
        _chart("delivered", minutes, lambda row: row["delivered"]),
        _chart("lost", minutes, lambda row: row["lost"]),
        _chart("median latency, s", minutes, lambda row: row["latency_p50_s"] or 0.0),
        f"<h2>By client</h2>{_clients(clients)}",
        f"<h2>Relocations</h2>{_moves(moves)}",
        "<h2>Records</h2>",
        _table(
            ("kind", "message", "records", "bytes"),
            [(row["kind"], row["message"], row["records"], row["bytes"]) for row in _by_count(costs)],
        ),
    ]
    title = "<title>Audit</title>"
    head = f'<meta charset="utf-8">{title}<style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _by_count(costs: Rows) -> Rows:
    return sorted(costs, key=lambda row: (-row["records"], row["kind"], row["message"]))


def _verdict(overall: Any | None) -> str:
    if overall is None:
        return '<p class="bad">Nothing was published, matched or delivered.</p>'
    names = ("expected", "delivered", "lost", "dropped", "duplicates", "out_of_order", "unexpected")
    faults = sum(overall[name] for name in ("lost", "duplicates", "out_of_order"))
    verdict = "Everything arrived, once and in order."
    if not overall["expected"]:
        verdict, faults = "The traces do not say who should have got what.", 1
    elif faults:
        verdict = (
            f"{overall['lost']:,} lost, {overall['duplicates']:,} twice, {overall['out_of_order']:,} out of order."
        )
    latencies = [overall[f"latency_{mark}_s"] for mark in ("p50", "p95", "p99", "max")]
    marks = _table(("", "median", "95 %", "99 %", "most"), [("latency, s", *map(_seconds, latencies))])
    counts = _table(("", *names), [("pairs", *(overall[name] for name in names))])
    return f'<p class="{"bad" if faults else "good"}">{verdict}</p>{counts}{marks}'


def _clients(clients: Rows) -> str:
    names = ("name", "expected", "delivered", "lost", "duplicates", "out_of_order")
    shown = [[*(row[name] for name in names), _seconds(row["latency_p50_s"])] for row in clients[:CLIENTS_MAX]]
    more = f"<p>and {len(clients) - CLIENTS_MAX:,} more</p>" if len(clients) > CLIENTS_MAX else ""
    return _table(("client", *names[1:], "median latency, s"), shown) + more


def _moves(moves: Rows) -> str:
    times = [row["latency_s"] for row in moves if row["latency_s"] is not None]
    if not moves:
        return "<p>Nobody changed brokers.</p>"
    told = f"<p>{len(moves):,} times a client attached to another broker"
    if not times:
        return f"{told}.</p>"
    return f"{told}; the first event came after {_seconds(median(times))} s in the median.</p>"


def _chart(title: str, rows: Rows, value: Callable[[Any], float]) -> str:
    """A bar for each row."""
    values = [float(value(row)) for row in rows]
    most = max(values, default=0.0) or 1.0
    step = WIDTH / max(len(values), 1)
    bars = "".join(
        f'<rect x="{at * step:.1f}" y="{HEIGHT - HEIGHT * one / most:.1f}" width="{max(step - 1, 0.5):.1f}"'
        f' height="{HEIGHT * one / most:.1f}" fill="#3b6ea5"><title>{escape(str(row["name"]))}: {one:g}</title></rect>'
        for at, (row, one) in enumerate(zip(rows, values, strict=True))
    )
    label = f'<text x="4" y="14">{escape(title)}, at most {max(values, default=0.0):g}</text>'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{bars}{label}</svg>'


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    cells = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"

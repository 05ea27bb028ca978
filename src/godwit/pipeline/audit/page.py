"""The audit as one HTML page that needs nothing but a browser: the verdict first, then when, who and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from statistics import median
from typing import Any

from godwit.pipeline.audit import charts
from godwit.pipeline.audit.charts import Series

Rows = Sequence[Any]
"""Rows of Spark, by the names of their columns."""

CLIENTS_MAX, BARS_MAX = 50, 240
SHOWN = ("expected", "delivered", "lost", "dropped", "duplicates", "out_of_order", "unexpected")
FAULTS = ("lost", "duplicates", "out_of_order")
MEANING = {
    "expected": "who should get what",
    "lost": "expected, and never came",
    "dropped": "lost knowingly: expired, or a full queue",
    "duplicates": "came again to the same client",
    "out_of_order": "came after one that was published later",
    "unexpected": "came to somebody who did not ask",
}

STYLE = (
    """
:root { color-scheme: light dark; --ink: #1c1f23; --faint: #5b6470; --line: #dfe3e8; --paper: #fff; --card: #f5f7f9;
--good: #00704a; --bad: #b3320a }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --faint: #a4adb8; --line: #333a42; --paper: #15181c;
--card: #1f242a; --good: #4fd6a4; --bad: #ff9a6b } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
background: var(--paper) }
h1 { margin-bottom: 0 } h2 { margin: 2.5rem 0 .5rem; border-top: 1px solid var(--line); padding-top: 1.5rem }
.source { color: var(--faint); margin-top: 0; overflow-wrap: anywhere }
.verdict { font-size: 1.25rem; font-weight: 600; padding: .8rem 1rem; border-left: 6px solid; background: var(--card) }
.good { color: var(--good) } .bad { color: var(--bad) }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(7.2rem, 1fr)); gap: .6rem; margin: 1rem 0 }
.card { background: var(--card); border-radius: 6px; padding: .6rem .8rem } .card b { display: block; font-size: 1.3rem;
font-variant-numeric: tabular-nums } .card span { color: var(--faint); font-size: .85rem }
figure { margin: 1rem 0 2rem } figcaption { font-weight: 600 } figure p { margin: .2rem 0 .4rem; font-size: .9rem }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
td, th { padding: .3rem .6rem; text-align: right; white-space: nowrap }
td:first-child, th:first-child { text-align: left }
th { border-bottom: 2px solid var(--line); color: var(--faint); font-weight: 600 }
td { border-bottom: 1px solid var(--line) }
tr.bad { color: inherit } tr.bad td:first-child { font-weight: 600; color: var(--bad) }"""
    + charts.STYLE
)


def page(traces: str, overall: Any | None, cuts: Rows, moves: Rows, costs: Rows) -> str:
    """`overall` and `cuts` are rows of FIGURES, `moves` of RELOCATIONS, `costs` of OVERHEAD."""
    minutes = sorted((row for row in cuts if row["cut"] == "minute" and row["name"]), key=lambda row: int(row["name"]))
    clients = sorted((row for row in cuts if row["cut"] == "client"), key=lambda row: (-_faults(row), row["name"]))
    parts = [
        f'<h1>Audit</h1><p class="source">{escape(traces)}</p>',
        _verdict(overall),
        f"<h2>When</h2>{_minutes(minutes)}",
        f"<h2>Who</h2>{_clients(clients)}",
        f"<h2>Changes of broker</h2>{_moves(moves)}",
        "<h2>What was recorded</h2>",
        _table(
            ("kind", "message", "records", "bytes"),
            [(row["kind"], row["message"], row["records"], row["bytes"]) for row in _by_count(costs)],
        ),
    ]
    sized = '<meta name="viewport" content="width=device-width">'
    head = f'<meta charset="utf-8">{sized}<title>Audit of {escape(traces)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _by_count(costs: Rows) -> Rows:
    return sorted(costs, key=lambda row: (-row["records"], row["kind"], row["message"]))


def _faults(row: Any) -> int:
    return sum(row[name] for name in FAULTS)


def _verdict(overall: Any | None) -> str:
    if overall is None:
        return '<p class="verdict bad">Nothing was published, matched or delivered.</p>'
    verdict, is_bad = "Everything arrived, once and in order.", bool(_faults(overall))
    if not overall["expected"]:
        verdict, is_bad = "The traces do not say who should have got what.", True
    elif is_bad:
        verdict = (
            f"{overall['lost']:,} lost, {overall['duplicates']:,} twice, {overall['out_of_order']:,} out of order."
        )
    counts = "".join(_card(name, f"{overall[name]:,}", name in FAULTS and bool(overall[name])) for name in SHOWN)
    marks = {"p50": "median", "p95": "95 %", "p99": "99 %", "max": "longest"}
    latencies = "".join(_card(name, _seconds(overall[f"latency_{mark}_s"]), False) for mark, name in marks.items())
    shown = f'<div class="cards">{counts}</div><h3>Latency, seconds</h3><div class="cards">{latencies}</div>'
    return f'<p class="verdict {"bad" if is_bad else "good"}">{verdict}</p>{shown}'


def _card(name: str, value: str, is_bad: bool) -> str:
    mark, told = ' class="bad"' if is_bad else "", escape(MEANING.get(name, ""))
    return f'<div class="card" title="{told}"><b{mark}>{value}</b><span>{name.replace("_", " ")}</span></div>'


def _minutes(minutes: Rows) -> str:
    """What was published in each minute became of it; neighboring minutes are joined where there are very many."""
    if not minutes:
        return "<p>The traces do not say when events were published.</p>"
    first, last = int(minutes[0]["name"]), int(minutes[-1]["name"])
    wide = -(-(last - first + 1) // BARS_MAX)
    groups = dict[int, list[Any]]()
    for row in minutes:
        groups.setdefault((int(row["name"]) - first) // wide, []).append(row)
    places = [first + number * wide for number in range((last - first) // wide + 1)]
    told = [groups.get(number, []) for number in range(len(places))]
    counts = [
        Series("delivered", "a", [sum(row["delivered"] for row in group) for group in told]),
        Series("lost", "b", [sum(row["lost"] for row in group) for group in told]),
    ]
    latencies = [
        Series(name, colour, [_worst(group, f"latency_{mark}_s") for group in told])
        for name, colour, mark in (("99 %", "b", "p99"), ("95 %", "c", "p95"), ("median", "a", "p50"))
    ]
    each = "minute" if wide == 1 else f"{wide} minutes"
    tell = _clock if first * 60 > 1e8 else _minute
    return charts.bars(f"Deliveries by {each} of publication", places, counts, tell) + charts.lines(
        f"Latency by {each} of publication, seconds", places, latencies, tell
    )


def _worst(group: Sequence[Any], name: str) -> float | None:
    return max((row[name] for row in group if row[name] is not None), default=None)


def _clock(minute: float) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%d %b %H:%M")


def _minute(minute: float) -> str:
    """Of a simulation, which begins at 0."""
    return f"minute {minute:.0f}"


def _clients(clients: Rows) -> str:
    if not clients:
        return "<p>No client should have got anything, and none did.</p>"
    bad = sum(1 for row in clients if _faults(row))
    told = f"<p>{bad:,} of {len(clients):,} clients lost something, got it twice or out of order; worst first.</p>"
    names = ("name", *SHOWN[:3], *SHOWN[4:6])
    shown = [[*(row[name] for name in names), _seconds(row["latency_p50_s"])] for row in clients[:CLIENTS_MAX]]
    marks = ["bad" if _faults(row) else "" for row in clients[:CLIENTS_MAX]]
    more = f"<p>and {len(clients) - CLIENTS_MAX:,} more, in the table figures</p>" if len(clients) > CLIENTS_MAX else ""
    return told + _table(("client", *names[1:], "median latency, s"), shown, marks) + more


def _moves(moves: Rows) -> str:
    times = sorted(row["latency_s"] for row in moves if row["latency_s"] is not None)
    if not moves:
        return "<p>Nobody changed brokers.</p>"
    told = f"<p>{len(moves):,} times a client attached to another broker"
    if not times:
        return f"{told}.</p>"
    shares = [float(number) for number in range(0, 101, 5)]
    values = [times[min(round(share / 100 * (len(times) - 1)), len(times) - 1)] for share in shares]
    drawn = charts.lines(
        "Until the first event came at the new broker, seconds",
        shares,
        [Series("s", "a", values)],
        lambda s: f"{s:.0f} %",
    )
    return f"{told}; the first event came after {_seconds(median(times))} s in the median.</p>{drawn}"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]], marks: Sequence[str] = ()) -> str:
    cells = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in head)
    lines = "".join(
        f"<tr{_class(marks, at)}>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>"
        for at, row in enumerate(rows)
    )
    return f'<div class="wide"><table><tr>{cells}</tr>{lines}</table></div>'


def _class(marks: Sequence[str], at: int) -> str:
    return f' class="{marks[at]}"' if at < len(marks) and marks[at] else ""


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"

"""What a grid has shown: every claim with its verdict, and the published tables beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from godwit.lab.handoff import calibration
from godwit.lab.handoff import evidence as of
from godwit.lab.handoff.bed import Air, Costs
from godwit.lab.handoff.evidence import Evidence, Quantity
from godwit.lab.handoff.extras import FREE
from godwit.lab.handoff.grid import FORESEEING, UNEVEN, WALK, Grid
from godwit.lab.handoff.results import Results
from godwit.lab.handoff.runs import LATEST_SHARE, SCHEMES, SIZE_B, Result
from godwit.lab.handoff.verdicts import findings, own_curve, refined_curve
from godwit.lab.models import curve, published
from godwit.lab.models.populations import Places, Population, Stays, active_dummies, neighbor_places, random_places
from godwit.lab.models.prediction import predict
from godwit.lab.models.topology import complete, six_brokers
from godwit.lab.pages import Page, Table

NAMES = {
    **{scheme: scheme for scheme in SCHEMES},
    "proactive": "pro-active",
    "product": "deployed",
}

SIX = ("Dur RND", "Dur NBR", "Rea RND", "Rea NBR", "Pro RND", "Pro NBR")
OURS = {"ours": "Ours", "memory": "Memory", "product": "Deployed"}
"""What nobody published, where it was run. `product` is the broker that people run; its machines take no time."""


def evidence_of(grid: Grid, results: Results) -> Evidence:
    return Evidence(results.of(grid.cells()), grid.base, quick=grid.quick)


def page(grid: Grid, results: Results, command: str) -> Page:
    """From whatever runs of the grid there are; claims that need others are not decidable."""
    evidence = evidence_of(grid, results)
    tables = [
        _parameters(grid),
        _six("X10: throughput, msg/s", of.throughput, published.THROUGHPUT, evidence, ".2f"),
        _six("X10: loss, %", of.loss, published.LOSS, evidence, ".2f"),
        _six("X10: duplicates, %", of.duplication, published.DUPLICATES, evidence, ".2f"),
        _handoffs(evidence),
        _overhead(evidence),
        _deciles(evidence),
        *_varied(evidence),
        _weighted(evidence),
        _brokers(evidence),
        _prediction(evidence),
        _control(evidence),
    ]
    return Page("Handoff: the published evaluation", _lead(grid, evidence, command), findings(evidence), tables)


def published_tables(evidence: Evidence) -> list[Table]:
    """The tables that the text has, with its numbers in brackets, and what varies beside."""
    if not evidence.sizes_of("proactive"):
        return []
    varied = [table for table in _varied(evidence) if table.rows]
    return [
        _six("X10: throughput, msg/s", of.throughput, published.THROUGHPUT, evidence, ".2f"),
        _six("X10: loss, %", of.loss, published.LOSS, evidence, ".2f"),
        _six("X10: duplicates, %", of.duplication, published.DUPLICATES, evidence, ".2f"),
        _handoffs(evidence),
        *varied,
    ]


def _lead(grid: Grid, evidence: Evidence, command: str) -> str:
    kind = "The quick grid, with short runs and few of them: a first look, not the evaluation. " if grid.quick else ""
    versions = ", ".join(sorted({row.made.commit for row in evidence.rows})) or "none"
    return (
        f"{kind}{len(evidence.rows)} of {len(grid.cells())} runs, {grid.seeds} seeds, {grid.warmup_s:g} s of warm-up"
        f" and {grid.measure_s:g} s measured; published numbers in brackets. `pro-active` has all race rules; `ours`"
        f" has the disk below its buffer and remembers the latest events; `memory` is ours without the disk, with"
        f" pooled memory."
        f" Commits: {versions}."
        f" Made by `{command}`."
    )


def _parameters(grid: Grid) -> Table:
    costs, air = Costs(), Air()
    rows = [
        ("message", f"{SIZE_B} B (fitted)"),
        ("publication at a broker", f"{costs.accept_s * 1e3:g} ms, {costs.deliver_s * 1e3:g} ms a delivery (fitted)"),
        ("storing for one subscriber", f"{costs.store_s * 1e3:g} ms (fitted)"),
        ("connection of a client, or of a reactive proxy for a handoff", f"{costs.connect_s * 1e3:g} ms (fitted)"),
        ("control message", "as a delivery; an acknowledgement a quarter"),
        ("event of a context", "a delivery at the old broker, a publication at the new one; ours sends 50 at once"),
        ("a backlog", "goes out at once, and takes its deliveries' time between other work"),
        ("order of work", "broker and proxy take turns (2.1); ours lets publications wait for all else"),
        ("B3, B4", "1.1 times as slow"),
        (
            "air",
            f"{air.delay_s[0] * 1e3:g} to {air.delay_s[1] * 1e3:g} ms, {air.loss:.1%} lost and repeated after 0.2 s",
        ),
        ("redelivery", f"where an arrival takes longer than {air.late_s:g} s"),
        ("publisher", f"waits for the slowest broker, which waits while its cell is busy for {air.ahead_s:g} s ahead"),
        ("T_timeout", "five mean disconnect times; ours an hour"),
        ("detection", "0.2 s after a client has gone"),
        ("latest events", f"ours: {LATEST_SHARE:.0%} of the buffer"),
        ("notices, stand-ins, moved events", f"free: {', '.join(FREE)}, fitted to X2 and X10 on the shared channel"),
        ("base of X4 to X8, X12 and X13", f"{grid.base} subscribers"),
    ]
    lead = f"What the published text leaves open is stated here. {calibration.PROCEDURE}"
    return Table("Parameters", lead, ("parameter", "value"), rows)


def _cell(evidence: Evidence, quantity: Quantity, form: str, scheme: str, size: int, **others: Any) -> str:
    found = evidence.interval(quantity, scheme, size, **others)
    if found is None:
        return "-"
    return f"{found.mean:{form}}" + (f" ± {found.half:.2g}" if found.runs > 1 else "")


def _six(
    title: str, quantity: Quantity, published: Mapping[int, tuple[float, ...]], evidence: Evidence, form: str
) -> Table:
    cells = [(scheme, pattern) for scheme in ("durable", "reactive", "proactive") for pattern in ("RND", "NBR")]
    own = [(scheme, pattern) for scheme in OURS if scheme in evidence.schemes for pattern in ("RND", "NBR")]
    rows = []
    for size in evidence.sizes_of("proactive"):
        texts = [_cell(evidence, quantity, form, scheme, size, pattern=p) for scheme, p in [*cells, *own]]
        old = published.get(size, ())
        rows.append((str(size), *(f"{text} [{old[i]}]" if i < len(old) else text for i, text in enumerate(texts))))
    return Table(title, "By subscribers.", ("K", *SIX, *(f"{OURS[scheme]} {p}" for scheme, p in own)), rows)


def _handoffs(evidence: Evidence) -> Table:
    own = [scheme for scheme in OURS if scheme in evidence.schemes]
    rows = []
    for size in evidence.sizes_of("proactive"):
        schemes = ("durable", "reactive", "proactive", *own)
        texts = [_cell(evidence, of.handoff, ".3f", scheme, size) for scheme in schemes]
        old = published.HANDOFF_S.get(size, ())
        rows.append((str(size), *(f"{text} [{old[i]}]" if i < len(old) else text for i, text in enumerate(texts))))
    header = ("K", "Durable", "Reactive", "Pro-active", *(OURS[scheme] for scheme in own))
    return Table("X2: handoff latency, s", "RND, means.", header, rows)


def _overhead(evidence: Evidence) -> Table:
    rows = [
        (
            f"{NAMES[scheme]}, K={size}, {pattern}",
            _cell(evidence, of.delay, ".3f", scheme, size, pattern=pattern),
            _cell(evidence, of.transfer_share, ".1f", scheme, size, pattern=pattern),
            _cell(evidence, of.hit_rate, ".1f", scheme, size, pattern=pattern),
            _cell(evidence, of.copies, ".1f", scheme, size, pattern=pattern),
            _cell(evidence, lambda r: r.peer_mb, ".1f", scheme, size, pattern=pattern),
            _cell(evidence, lambda r: float(r.disordered), ".1f", scheme, size, pattern=pattern),
        )
        for size in evidence.sizes_of("proactive")
        for pattern in ("RND", "NBR")
        for scheme in evidence.schemes
    ]
    header = ("", "E, s", "transferred, %", "hits, %", "copies per handoff", "between brokers, MB", "out of order")
    return Table("X1: overhead", "Publisher to subscriber, and what it took.", header, rows)


def _deciles(evidence: Evidence) -> Table:
    size = max(evidence.sizes_of("proactive"), default=0)
    rows = [
        (NAMES[scheme], *(_cell(evidence, _decile(q), ".3f", scheme, size) for q in range(1, 10)))
        for scheme in evidence.schemes
    ]
    header = ("scheme", *(f"{q}0 %" for q in range(1, 10)))
    return Table("X3: distribution of handoff latency, s", f"K={size}, RND.", header, rows)


def _decile(q: int) -> Callable[[Result], float]:
    return lambda result: result.latency_deciles_s[str(q)]


def _varied(evidence: Evidence) -> list[Table]:
    named = {
        "X4: publisher's sleep, s": "sleep_s",
        "X5: queue, MB": "queue_mb",
        "X6: disconnect time, s": "disconnect_s",
        "X7: connect time, s": "connect_s",
        "X8: bandwidth, Mbps": "bandwidth_mbps",
        "X12: moving": "moving",
    }
    return [_one_varied(evidence, title, field) for title, field in named.items()]


def _one_varied(evidence: Evidence, title: str, field: str) -> Table:
    every = (row.configuration for row in evidence.rows)
    values = sorted({getattr(one, field) for one in every if one.warmup_s != WALK["warmup_s"]})
    quantities: Sequence[tuple[Quantity, str]] = (
        (of.throughput, ".1f"),
        (of.loss, ".2f"),
        (of.duplication, ".2f"),
        (of.delay, ".3f"),
        (lambda result: 1e3 * of.processing(result), ".1f"),
    )
    rows = [
        (
            f"{value:g}" if isinstance(value, float) else str(value),
            NAMES[scheme],
            *(
                _cell(evidence, quantity, form, scheme, evidence.base, **{field: value})
                for quantity, form in quantities
            ),
        )
        for value in values
        for scheme in evidence.schemes
        if evidence.results(scheme, evidence.base, **{field: value})
    ]
    header = (title.partition(": ")[2], "scheme", "T_s, msg/s", "L, %", "D, %", "E, s", "M, ms")
    return Table(title, f"K={evidence.base}, RND.", header, rows)


def _weighted(evidence: Evidence) -> Table:
    """What it saves to leave unlikely neighbors out, and what it costs."""
    masses = sorted({row.configuration.mass for row in evidence.rows}, reverse=True)
    quantities: Sequence[tuple[Quantity, str]] = (
        (of.copies, ".2f"),
        (of.hit_rate, ".1f"),
        (of.handoff, ".3f"),
        (of.loss, ".2f"),
    )
    rows = [
        (
            NAMES[scheme],
            f"{mass:g}",
            *(
                _cell(evidence, q, form, scheme, evidence.base, pattern="NBR", mass=mass, **UNEVEN)
                for q, form in quantities
            ),
        )
        for scheme in FORESEEING
        for mass in masses
        if evidence.results(scheme, evidence.base, pattern="NBR", mass=mass, **UNEVEN)
    ]
    lead = (
        f"K={evidence.base}; the next neighbor is {UNEVEN['skew']:.0%} less likely than the one before, and"
        f" {UNEVEN['strays']:.0%} of all moves lead anywhere. Copies go to the most used neighbors with this share."
    )
    header = ("scheme", "share", "copies per handoff", "hits, %", "H, s", "L, %")
    return Table("X13: copies for likely neighbors only", lead, header, rows)


def _brokers(evidence: Evidence) -> Table:
    size = max(evidence.sizes_of("proactive"), default=0)
    rows = []
    for pattern in ("RND", "NBR"):
        for result in evidence.results("proactive", size, pattern=pattern)[:1]:
            rows += [
                (
                    pattern,
                    name,
                    f"{1e3 * result.broker_processing_s[name]:.1f}",
                    f"{result.broker_throughput_per_s[name]:.1f}",
                    f"{result.population[name]:.1f}",
                    f"{result.dummies[name]:.1f}",
                )
                for name in result.population
            ]
    header = ("pattern", "broker", "M, ms", "T_b, msg/s", "subscribers", "stand-ins awake")
    return Table("X9: broker by broker", f"Pro-active, K={size}, the first seed.", header, rows)


def _prediction(evidence: Evidence) -> Table:
    """F43 and F44: the published curve, and one fitted to these runs, against what these runs measured."""
    size = max(evidence.sizes_of("proactive"), default=0)
    own, graph = own_curve(evidence), six_brokers()
    places = {"RND": random_places(list(graph), Stays()), "NBR": neighbor_places(graph, Stays())}
    around = {"RND": complete(list(graph)), "NBR": graph}
    rows = []
    for pattern in ("RND", "NBR"):
        runs = evidence.results("proactive", size, pattern=pattern)
        if not runs:
            continue
        dummies = active_dummies(places[pattern], around[pattern], size)
        rows += [(pattern, name, *_predicted(places[pattern], name, size, own, runs, dummies[name])) for name in graph]
    header = (
        *("pattern", "broker", "subscribers", "measured", "stand-ins", "measured"),
        *("msg/s, published curve", "own curve", "measured"),
    )
    fitted = f" Own curve: R² {own.r_squared:.3f}, from {own.low:.0f} to {own.high:.0f} subscribers." if own else ""
    if refined := refined_curve(evidence):
        fitted += (
            f" With stand-ins (F44), both patterns: R² {refined.r_squared:.3f}, {refined.dummy:+.2f} msg/s for each."
        )
    return Table("Predicted and measured", f"K={size}.{fitted}", header, rows)


def _predicted(
    places: Places, name: str, size: int, own: curve.Curve | None, runs: list[Result], dummies: float
) -> tuple[str, ...]:
    population = Population(size, places.connected[name])
    theirs = predict(places, size, curve.PUBLISHED)[name]
    ours = f"{predict(places, size, own)[name].throughput_per_s:.1f}" if own else "-"
    return (
        f"{population.mean:.1f}",
        f"{_over(runs, 'population', name):.1f}",
        f"{dummies:.1f}",
        f"{_over(runs, 'dummies', name):.1f}",
        f"{theirs.throughput_per_s:.1f}" + (" (beyond its data)" if theirs.extrapolated else ""),
        ours,
        f"{_over(runs, 'broker_throughput_per_s', name):.1f}",
    )


def _over(runs: list[Result], field: str, name: str) -> float:
    return float(sum(getattr(run, field)[name] for run in runs)) / len(runs)


def _control(evidence: Evidence) -> Table:
    size = max(evidence.sizes_of("proactive"), default=0)
    kinds: dict[str, None] = {}
    for scheme in evidence.schemes:
        for result in evidence.results(scheme, size):
            kinds.update(dict.fromkeys(sorted(result.control)))
    rows = [
        (kind, *(_cell(evidence, _count(kind), ".0f", scheme, size) for scheme in evidence.schemes)) for kind in kinds
    ]
    header = ("message", *(NAMES[scheme] for scheme in evidence.schemes))
    return Table("Messages between brokers", f"K={size}, RND, in the measured time.", header, rows)


def _count(kind: str) -> Callable[[Result], float]:
    return lambda result: float(result.control.get(kind, 0))

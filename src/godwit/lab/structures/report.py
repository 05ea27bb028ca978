"""The results in words and tables: on the terminal, and as a page that says how it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from godwit.lab.claims import Verdict
from godwit.lab.structures.claims.base import Judged
from godwit.lab.structures.rows import Row
from godwit.lab.structures.sanity import Compared, compare
from godwit.lab.structures.settings import EXPERIMENTS, SHAPES, Setting

HEADINGS = ("claim", "expected", "measured", "verdict")
STYLES = {
    Verdict.REPRODUCED: "green",
    Verdict.NOT_REPRODUCED: "red",
    Verdict.DEPENDS: "blue",
    Verdict.NOT_DECIDABLE: "yellow",
    Verdict.ARITHMETIC: "white",
}

ASSUMPTIONS = (
    "The source leaves open what follows (spec 6.3, item 13, and our own readings):",
    "Range ends are two uniform whole numbers in 0..100, sorted. There are as many attribute names as a filter can have"
    " constraints, and a filter with fewer draws its names. All filters are of one schema.",
    "E4 and E5 take 1000 filters, as E3 does. In E1 to E5 as many filters are replaced as there are, the one that goes"
    " drawn uniformly; the new one comes on the same interface. Filters go to the interfaces in turn, to neighbors and"
    " local clients alike.",
    "Routers are told only what no other filter of the same interface covers (the intermediate layer of E3; in E2 to E5"
    " for every structure that prunes); with a withdrawal comes what it uncovers, and the cost of that is part of"
    " add/remove. The search for a covering filter of the same interface is therefore skipped in NRF (spec 2.6).",
    "In E2 the forests PF and BF keep everything, as local clients need it; the poset prunes, as Siena does, and NRF"
    " does by definition.",
    "Forwarded filters are counted once however many neighbors are told; sent subscriptions once for each of them.",
    "E12 and E13 draw from <, >, <=, >=, =, <> and ranges; clauses may hold alternatives. The attributes of static"
    " schemas have fixed names. 100 events, all attributes uniform in 0..100.",
    "The measure is the number of covering tests, for events that of filters tested, for merging the attempts to merge"
    " and the covering tests made for them; not seconds.",
)


def show(console: Console, judgements: Sequence[Judged]) -> None:
    """The table of claims, and how many came out how."""
    table = Table(show_lines=True)
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold", ratio=None if heading == "verdict" else 1)
    for one in judgements:
        verdict = one.finding.verdict
        table.add_row(*_cells(one)[:3], Text(one.finding.told, STYLES[verdict]))
    console.print(table)
    console.print(_tally(judgements), highlight=False)


def page(rows: Sequence[Row], judgements: Sequence[Judged], command: str, figures: Iterable[Path]) -> str:
    """The same in Markdown, with everything that is needed to judge it."""
    notes = [f"- {one.check.claim.name}, {one.check.claim.text}: {one.check.note}" for one in _remarkable(judgements)]
    parts = [
        "# Structures: posets, forests and merging",
        f"Made by `{command}`. One row for each structure and replication is in `structures.parquet`.",
        _tally(judgements),
        _table(HEADINGS, map(_cells, judgements)),
        *(["Why some came out otherwise, as far as we can tell:", "\n".join(notes)] if notes else []),
        *_sanity(compare(rows)),
        "## What was run",
        _table(("experiment", "schemas", "filters", "interfaces", "local clients", "replications"), _runs(rows)),
        "Every structure was checked in every run, after building and after the replacements: what it holds, its root"
        " set, that its edges are covering pairs and reach everything, its forwards sets against a naive computation,"
        " and its matching against a naive matcher. Any difference would have ended the run.",
        "## Assumptions",
        "\n".join([ASSUMPTIONS[0] + "\n", *(f"- {one}" for one in ASSUMPTIONS[1:])]),
        *[f"![{path.stem}]({path.name})" for path in figures],
    ]
    return "\n\n".join(parts) + "\n"


def _cells(one: Judged) -> tuple[str, str, str, str]:
    claim = one.check.claim
    return f"{claim.name} {claim.text}", one.check.expected, one.finding.numbers, one.finding.told


def _remarkable(judgements: Iterable[Judged]) -> list[Judged]:
    return [one for one in judgements if one.check.note and one.finding.verdict is not Verdict.REPRODUCED]


def _tally(judgements: Sequence[Judged]) -> str:
    found = Counter(one.finding.verdict for one in judgements)
    return f"{len(judgements)} statements: " + ", ".join(f"{found[verdict]} {verdict}" for verdict in Verdict) + "."


def _sanity(compared: Sequence[Compared]) -> list[str]:
    if not compared:
        return []
    cells = [
        (one.schema, one.column, f"{one.expected:,.0f}", f"{one.measured:,.0f}", f"{one.ratio:.2f}") for one in compared
    ]
    return [
        "## Against the spec's own measurements",
        "500 filters, each on an interface of its own, means over the replications (spec 4.4).",
        _table(("schema", "", "spec", "here", "ratio"), cells),
    ]


def _runs(rows: Sequence[Row]) -> Iterable[tuple[str, ...]]:
    for experiment, title in EXPERIMENTS.items():
        settings = {row.setting for row in rows if row.setting.experiment == experiment}
        if settings:
            yield (
                f"{experiment} {title}",
                ", ".join(name for name in SHAPES if any(one.schema == name for one in settings)),
                _values(one.filters for one in settings),
                _interfaces(settings),
                _values(one.clients for one in settings),
                _values(Counter(_point(one) for one in settings).values()),
            )


def _point(setting: Setting) -> tuple[object, ...]:
    return setting.schema, setting.filters, setting.interfaces, setting.clients, setting.seed


def _interfaces(settings: Iterable[Setting]) -> str:
    counts = {one.interfaces for one in settings}
    return "one a filter" if counts == {0} else _values(counts)


def _values(values: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(set(values))))


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    cells = [headings, ["---"] * len(headings), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)

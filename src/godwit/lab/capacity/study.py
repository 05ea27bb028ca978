"""The study of what mobile clients cost a hierarchical network (C30), as one of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from godwit.lab.capacity.runs import Configuration, Result, run
from godwit.lab.claims import Claim, Finding, along, fair
from godwit.lab.intervals import Interval, interval_if_any
from godwit.lab.pages import Table
from godwit.lab.parts import Part, decided
from godwit.lab.results import Results, Row
from godwit.lab.studies import Outcome, Parameter, Study

CLAIM = Claim(
    "C30",
    "Quoted: with 10 % mobile clients a hierarchical network needs twice the capacity; forwarding what was stored"
    " dominates.",
    "content-routing 4.3, of a study that it cites",
    "at least twice the messages on links, interval over seeds above it; stored events are most of what moves",
)
SEED = 611
CLIENTS = (10, 30, 100, 300)
AWAY = (0.1, 0.25, 0.5)
DEFAULT_AWAY = 0.25
SEEDS = {"quick": 3, "short": 10, "published": 10}
COST = "ten seeds, ten seconds of a core"
CapacityRow = Row[Configuration, Result]
Cells = Mapping[tuple[int, float], Sequence[Result]]


def runs(size: str) -> list[Configuration]:
    return [
        Configuration(seed=SEED + i, clients=clients, away=away)
        for i in range(SEEDS[size])
        for clients in CLIENTS
        for away in AWAY
    ]


def judge(cells: Cells, *, quick: bool = False) -> Finding:
    """Along the number of clients that a broker has, which the text does not give."""
    every = {clients: decided(CLAIM, parts(cells.get((clients, DEFAULT_AWAY), ())), cost=COST) for clients in CLIENTS}
    points = [one.at(f"{clients} clients a broker") for clients, one in every.items()]
    numbers = "; ".join(f"{point.at}: {point.numbers}" for point in points)
    return fair(along(CLAIM, "how many clients a broker has", points, numbers, COST), quick=quick, cost=COST)


def parts(results: Sequence[Result]) -> list[Part]:
    return [
        Part("times the messages on links, beyond 2", _mean([one.factor - 2 for one in results])),
        Part(
            "share of stored events in what moving costs, beyond a half",
            _mean([one.stored / (one.stored + one.control) - 0.5 for one in results if one.stored + one.control]),
        ),
    ]


def _mean(values: Sequence[float]) -> Interval | None:
    return interval_if_any(values)


def cells_of(rows: Sequence[CapacityRow]) -> Cells:
    found: dict[tuple[int, float], list[Result]] = {}
    for row in rows:
        found.setdefault((row.configuration.clients, row.configuration.away), []).append(row.result)
    return found


def outcome(rows: Sequence[CapacityRow], size: str) -> Outcome:
    cells = cells_of(rows)
    return Outcome(
        lead=(
            f"{len(rows)} runs. A binary tree of 31 brokers in which a tenth of the clients move; what its links carry"
            " is counted, message by message. The study that the text quotes is not described there: how many clients a"
            " broker has and how long they are away is varied, and the claim is judged for clients that are away for a"
            " quarter of their time."
        ),
        findings=[judge(cells, quick=size == "quick")],
        tables=[_table(cells)],
        parameters=PARAMETERS,
        seeds=f"from {SEED}",
    )


def _table(cells: Cells) -> Table:
    rows = [
        (
            str(clients),
            f"{away:.0%}",
            str(_mean([one.factor for one in results])),
            str(_mean([one.factor_busiest for one in results])),
            str(_mean([one.stored / max(1, one.stored + one.control) for one in results])),
        )
        for (clients, away), results in sorted(cells.items())
    ]
    header = ("clients a broker", "away", "times the messages", "on the busiest link", "of it stored events")
    return Table("What moving costs", "A tenth of the clients move; ± is the 95 % interval over seeds.", header, rows)


PARAMETERS = (
    Parameter("mobile clients", "10 %", "text"),
    Parameter("network", "binary tree of 31 brokers, events go up to the root", "ours; text says hierarchical"),
    Parameter("clients a broker", ", ".join(map(str, CLIENTS)), "ours, varied"),
    Parameter("share of the time away", ", ".join(f"{share:.0%}" for share in AWAY), "ours, varied"),
    Parameter("interest of a client in an event", "10 %", "ours"),
    Parameter("from one appearance to the next", "400 events, of which a client wants 40", "ours"),
    Parameter("relocation", "a message to the old broker and one back", "ours"),
)


def kept(path: Path) -> Results[Configuration, Result]:
    return Results(path, Configuration, Result)


def cost_s(one: Configuration) -> float:
    """Measured on one of two shared cores."""
    return 0.03 + 3e-4 * one.clients


STUDY = Study(
    name="capacity",
    title="What mobile clients cost a network",
    spec="content-routing",
    runs=runs,
    work=run,
    cost_s=cost_s,
    kept=kept,
    outcome=outcome,
    named=lambda one: f"{one.clients} clients",
)

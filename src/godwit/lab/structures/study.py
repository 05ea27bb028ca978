"""The study of routing structures: covering tests of posets, forests and mergers, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter

import msgspec

from godwit.lab.claims import fair
from godwit.lab.pages import Table
from godwit.lab.structures import experiments
from godwit.lab.structures.claims.base import COST, judge
from godwit.lab.structures.report import ASSUMPTIONS
from godwit.lab.structures.rows import Row, Store
from godwit.lab.structures.sanity import compare
from godwit.lab.structures.settings import EXPERIMENTS, FULL, QUICK, Setting, Sweep, planned
from godwit.lab.studies import Outcome, Parameter, Study

SEED = 2111
PLACE = "content-routing 4.3"


SHORT_REPLICATIONS = 4
FURTHER = Sweep(experiment="E13", schemas=("2 mixed",), filters=(100, 200, 300, 400, 500), replications=80)
"""What C28 hangs on, beyond the published twenty replications, which leave it open."""


def runs(size: str) -> list[Setting]:
    """The short size has the published points with a third of the replications. The published size begins with what a
    claim is open for."""
    settings = planned(QUICK if size == "quick" else FULL, SEED, None, ())
    if size == "published":
        return list(dict.fromkeys([*FURTHER.settings(SEED, None), *settings]))
    return [one for one in settings if size != "short" or one.replication < SHORT_REPLICATIONS]


TEXT = (
    Parameter("filters", "up to 500, each on an interface of its own, in E1 and E13; 500 in E2; 1000 in E3", "text"),
    Parameter("interfaces", "3 to 15 in E3 and E4, 4 neighbors in E5; up to 500 filters on 3, and 500, in E12", "text"),
    Parameter("schemas", "2, 3, and 1 to 3 constraints: ranges; in E12 and E13 any of seven predicates", "text"),
    Parameter("replications", "10; 60 in E12, 20 in E13", "text"),
    Parameter("points of a curve", "those that show its shape", "ours: the text has curves without points"),
)
OURS = (
    "values and names",
    "filters in E4 and E5, replacements",
    "what routers are told",
    "who prunes in E2",
    "forwarded and sent",
    "predicates, events",
    "measure",
)
"""What each of the assumptions is about."""


def outcome(rows: Sequence[Row], size: str) -> Outcome:
    judgements = judge(rows, runs(size))
    found = []
    for one in judgements:
        claim = msgspec.structs.replace(one.check.claim, place=PLACE, tolerance=one.check.expected)
        own = fair(one.finding, quick=size == "quick", cost=COST)
        found.append(msgspec.structs.replace(own, claim=claim))
    replications = len({row.setting.replication for row in rows})
    return Outcome(
        lead=(
            f"{len(rows)} rows of {len({row.setting for row in rows})} settings, up to {replications} replications;"
            " published are 10, 60 (E12) and 20 (E13, of which C28 has more)."
            " Every structure was checked against a naive one in every run."
            " Where the source speaks of speed, covering and matching tests stand in for it. C12 to C19 are"
            " judged by the study of relocation, C20 to C23 by that of what lasts, C30 by that of capacity."
        ),
        findings=found,
        tables=[_against_the_spec(rows), _run_table(rows)],
        parameters=[*TEXT, *(Parameter(name, told, "ours") for name, told in zip(OURS, ASSUMPTIONS[1:], strict=True))],
        seeds=str(SEED),
        figures=partial(_figures, rows),
    )


def _figures(rows: Sequence[Row]) -> Mapping[str, bytes]:
    from godwit.lab.structures.figures import drawn

    return drawn(rows)


def _against_the_spec(rows: Sequence[Row]) -> Table:
    cells = [
        (one.schema, one.column, f"{one.expected:,.0f}", f"{one.measured:,.0f}", f"{one.ratio:.2f}")
        for one in compare(rows)
    ]
    note = "500 filters, each on an interface of its own, means over the replications (spec 4.4)."
    return Table("Against the spec's own measurements", note, ("schema", "", "spec", "here", "ratio"), cells)


def _run_table(rows: Sequence[Row]) -> Table:
    lines = []
    for experiment, title in EXPERIMENTS.items():
        settings = {row.setting for row in rows if row.setting.experiment == experiment}
        points = {(one.schema, one.filters, one.interfaces, one.clients) for one in settings}
        most = max((one.replication for one in settings), default=-1) + 1
        lines.append((f"{experiment} {title}", str(len(points)), str(most)))
    return Table("What was run", "Points of curves, and replications.", ("experiment", "points", "replications"), lines)


def cost_s(one: Setting) -> float:
    """Measured on one of two shared cores."""
    per_filter = {"E1": 3e-3, "E2": 3e-3, "E3": 2e-3, "E4": 3e-3, "E5": 5e-3, "E12": 2e-4, "E13": 4e-4}
    return per_filter[one.experiment] * one.filters * one.filters / 700


STUDY = Study(
    name="structures",
    title="Posets, forests and merging",
    spec="content-routing",
    runs=runs,
    work=experiments.run,
    cost_s=cost_s,
    kept=Store,
    outcome=outcome,
    named=lambda one: EXPERIMENTS[one.experiment],
    ran=attrgetter("setting"),
)

"""The study of what lasts, as one of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from godwit.lab.claims import fair
from godwit.lab.intervals import interval, interval_if_any
from godwit.lab.lasting.runs import Configuration, Result, run
from godwit.lab.lasting.verdicts import COST, by_seed, judge, matching_a_pair, sizes, tests, took_s
from godwit.lab.pages import Table, line, picture
from godwit.lab.results import Results, Row
from godwit.lab.studies import Outcome, Parameter, Study
from godwit.tables.double import Effort, Sense

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "lasting"
SEED = 3119


class Plan(msgspec.Struct, frozen=True):
    points: tuple[int, ...] = (500, 1000)
    """Of the kind that varies, or of both."""
    most: int = 1000
    replications: int = 5
    levels: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)

    def runs(self) -> list[Configuration]:
        found: list[Configuration] = []
        for replication in range(self.replications):
            for sense in Sense:
                found += self._forests(SEED + replication, sense)
                found += self._preloads(SEED + replication, sense)
        return list(dict.fromkeys(found))

    def _forests(self, seed: int, sense: Sense) -> list[Configuration]:
        counts = [(varied, point) for varied in ("profiles", "queries", "both") for point in self.points]
        return [
            Configuration(
                seed=seed,
                experiment="E10",
                sense=sense,
                effort=effort,
                varied=varied,
                profiles=self.most if varied == "queries" else point,
                queries=self.most if varied == "profiles" else point,
            )
            for varied, point in counts
            for effort in Effort
        ]

    def _preloads(self, seed: int, sense: Sense) -> list[Configuration]:
        return [
            Configuration(
                seed=seed,
                experiment="E11",
                sense=sense,
                effort=Effort.BOUNDED,
                varied=varied,
                profiles=self.most,
                queries=self.most,
                preloaded=round(level * self.most),
            )
            for varied in ("inputs", "random")
            for level in self.levels
        ]


PLANS: Mapping[str, Plan] = {
    "quick": Plan((100, 200), 200, 2, (0.0, 0.5, 1.0)),
    "short": Plan(),
    "published": Plan(),
}
"""The published size takes minutes, so that there is no shorter one."""


def outcome(rows: Sequence[Row[Configuration, Result]], size: str) -> Outcome:
    plan = PLANS[size]
    return Outcome(
        lead=(
            f"{len(rows)} runs, {plan.replications} replications of each point, as published. Profiles and queries of"
            f" two ranges go into a double forest in random order, up to {plan.most} of each. Counted are covering and"
            " overlap tests, those that place a filter in its own forest included."
        ),
        findings=[fair(one, quick=size == "quick", cost=COST) for one in judge(rows)],
        tables=[_operations(rows), _preloading(rows), *_parts(rows)],
        parameters=PARAMETERS,
        seeds=f"{SEED} to {SEED + plan.replications - 1}",
        figures=partial(_figures, rows),
    )


def _figures(rows: Sequence[Row[Configuration, Result]]) -> Mapping[str, bytes]:
    return {
        **{
            f"E10: {sense.value} operations, both kinds vary": picture(partial(_efforts, rows, sense))
            for sense in Sense
        },
        "E11: operations by what was preloaded": picture(partial(_loads, rows)),
    }


def _efforts(rows: Sequence[Row[Configuration, Result]], sense: Sense, axes: Axes) -> None:
    both = [size for size in sizes(rows) if size[0] == "both"]
    for effort in Effort:
        found = [
            (
                profiles,
                by_seed(rows, tests, profiles=profiles, queries=queries, sense=sense, effort=effort, varied=varied),
            )
            for varied, profiles, queries in both
        ]
        line(axes, [(x, interval_if_any(own.values())) for x, own in found], effort.value)
    axes.set_xlabel("profiles, and as many queries")
    axes.set_ylabel("tests")


def _loads(rows: Sequence[Row[Configuration, Result]], axes: Axes) -> None:
    for varied in ("inputs", "random"):
        for sense in Sense:
            wanted = {"experiment": "E11", "varied": varied, "sense": sense}
            levels = sorted({r.configuration.preloaded for r in rows if r.configuration.varied == varied})
            found = [(level, by_seed(rows, tests, preloaded=level, **wanted)) for level in levels]
            line(axes, [(x, interval_if_any(own.values())) for x, own in found], f"{varied}, {sense.value}")
    axes.set_xlabel("preloaded of each kind")
    axes.set_ylabel("tests")


def _operations(rows: Sequence[Row[Configuration, Result]]) -> Table:
    lines = []
    for varied, profiles, queries in sizes(rows):
        for sense in Sense:
            found = [
                by_seed(rows, tests, varied=varied, profiles=profiles, queries=queries, sense=sense, effort=effort)
                for effort in Effort
            ]
            cells = [str(interval(own.values())) if own else "" for own in found]
            lines.append((varied, f"{profiles:,}", f"{queries:,}", sense.value, *cells))
    heads = ("varied", "profiles", "queries", "sense", *(effort.value for effort in Effort))
    return Table("Operations (E10)", "Tests of all insertions, means over the replications.", heads, lines)


def _preloading(rows: Sequence[Row[Configuration, Result]]) -> Table:
    levels = sorted(
        {(one.varied, one.preloaded) for one in (row.configuration for row in rows) if one.experiment == "E11"}
    )
    lines = []
    for varied, level in levels:
        for sense in Sense:
            wanted = {"experiment": "E11", "varied": varied, "preloaded": level, "sense": sense}
            counts, times = by_seed(rows, tests, **wanted), by_seed(rows, took_s, **wanted)
            if counts:
                cells = [str(interval(own.values())) for own in (counts, times)]
                lines.append((varied, f"{level:,}", sense.value, *cells))
    heads = ("what", "of each kind", "sense", "operations", "seconds")
    return Table("Preloading (E11)", "What inserting the inputs costs afterwards.", heads, lines)


def _parts(rows: Sequence[Row[Configuration, Result]]) -> list[Table]:
    """What random filters cost: where the inputs are placed, and where they are matched. Older rows do not tell."""
    random = [row for row in rows if row.configuration.varied == "random"]
    if not any(row.result.placing for row in random):
        return []
    lines = []
    for level in sorted({row.configuration.preloaded for row in random}):
        for sense in Sense:
            some = [r for r in random if r.configuration.preloaded == level and r.configuration.sense is sense]
            placed, matched = (r.result.placing for r in some), (r.result.tests - r.result.placing for r in some)
            cells = [str(interval_if_any(own)) for own in (placed, matched, map(matching_a_pair, some))]
            lines.append((f"{level:,}", sense.value, *cells))
    heads = ("random of each kind", "sense", "placing", "matching", "matching, a pair")
    return [Table("Why random filters cost covering something (C23)", WHY, heads, lines)]


WHY = (
    "An input is placed in its own forest, and matched with all that is in the other one. A pair is an input and a"
    " filter that is there when it comes. Placing hardly costs more beside random filters. Matching does: with 1000"
    " preloaded there are three times as many pairs, and who matches is found and remembered whether or not anybody"
    " has it yet. A pair costs less then, since denser forests bound better, but not a third. So C23 holds of the"
    " operations that place, which may be what the text counts. It cannot hold of those that match, since three times"
    " as much is found."
)


def kept(path: Path) -> Results[Configuration, Result]:
    return Results(path, Configuration, Result)


def cost_s(one: Configuration) -> float:
    """Measured on one of two shared cores."""
    return 2.5e-6 * (one.profiles + one.preloaded) * (one.queries + one.preloaded)


PARAMETERS = (
    Parameter("filters", "one type, two ranges with whole ends in 0 to 100", "text"),
    Parameter("sizes", "1000 of the kind that does not vary; 1000 + 1000 in random order", "text"),
    Parameter("replications", "5", "text"),
    Parameter("points on the axis", "half of 1000, and 1000", "ours"),
)

STUDY = Study(
    name=NAME,
    title="What lasts: profiles and queries",
    spec="content-routing",
    runs=lambda size: PLANS[size].runs(),
    work=run,
    cost_s=cost_s,
    kept=kept,
    outcome=outcome,
    named=lambda one: f"{one.experiment} {one.varied}",
    strand=lambda one: "random preloading" if one.varied == "random" else "",
)
"""Where random filters are preloaded a run counts more than earlier ones did: these are vouched for by themselves."""

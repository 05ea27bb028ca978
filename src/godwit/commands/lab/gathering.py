"""`godwit lab gathering`: the published evaluation of the ring, its baselines and the table of its defects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from godwit.commands.lab.lab import _command, _judged, _numbers, _sweeping, _tabled
from godwit.commands.pipeline.sweeping import Where
from godwit.lab import pages
from godwit.lab.gathering import report
from godwit.lab.gathering.evidence import Evidence
from godwit.lab.gathering.plan import QUICK, Plan, cost, named
from godwit.lab.gathering.runs import Configuration, Result, run
from godwit.lab.results import Results

Kept = Results[Configuration, Result]


def gathering(
    *,
    quick: bool,
    sizes: str | None,
    seeds: int | None,
    defects: bool,
    out: str,
    report_only: bool,
    where: Where,
) -> int:
    said = {
        "sizes": _numbers("--sizes", sizes, int, lambda size: 2 <= size <= 256, "2 to 256 brokers"),
        "seeds": seeds,
    }
    changes = {name: value for name, value in said.items() if value is not None}
    if seeds is not None and defects:
        changes |= {"races": seeds, "joins": seeds}
    plan = msgspec.structs.replace(QUICK if quick else Plan(), defects=defects, **changes)
    command = _command("gathering", quick, said) + " --defects" * defects
    wanted = plan.runs()
    sweep = _sweeping(wanted, run, where, cost, named)

    def kept(path: Path) -> Kept:
        return Results(path, Configuration, Result)

    def paged(results: Kept) -> pages.Page:
        rows = results.of(wanted)
        return report.page(Evidence(plan, rows), len(rows), command)

    def reported(results: Kept) -> tuple[pages.Page, Mapping[str, bytes]]:
        from godwit.lab.gathering.figures import drawn

        return paged(results), drawn(Evidence(plan, results.of(wanted)))

    if defects:
        return _tabled(out, "defects", kept, sweep, paged)
    return _judged(out, kept, wanted, None if report_only else sweep, reported)

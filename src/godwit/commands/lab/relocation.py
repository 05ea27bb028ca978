"""`godwit lab relocation`: clients that move in routing networks, by every published way and by the deployed one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from godwit.commands.lab.experiments import RelocationOptions
from godwit.commands.lab.lab import _command, _judged, _sweeping, _tabled
from godwit.lab import pages
from godwit.lab.relocation import report
from godwit.lab.relocation.evidence import Evidence
from godwit.lab.relocation.plan import QUICK, Plan, cost, named
from godwit.lab.relocation.runs import Configuration, Result, run
from godwit.lab.results import Results

Kept = Results[Configuration, Result]


def relocation(options: RelocationOptions) -> int:
    said = {"seeds": options.seeds, "handovers": options.handovers}
    plan = _planned(QUICK if options.quick else Plan(), said, trials=options.trials)
    command = _command("relocation", options.quick, said) + " --trials" * options.trials
    wanted = plan.runs()
    sweep = _sweeping(wanted, run, options.where.where, cost, named)

    def kept(path: Path) -> Kept:
        return Results(path, Configuration, Result)

    def paged(results: Kept) -> pages.Page:
        rows = results.of(wanted)
        return report.page(Evidence(plan, rows), len(rows), command)

    def reported(results: Kept) -> tuple[pages.Page, Mapping[str, bytes]]:
        from godwit.lab.relocation.figures import drawn

        return paged(results), drawn(Evidence(plan, results.of(wanted)))

    if options.trials:
        return _tabled(options, "trials", kept, sweep, paged)
    return _judged(options, kept, wanted, sweep, reported)


def _planned(plan: Plan, said: Mapping[str, int | None], *, trials: bool) -> Plan:
    changes: dict[str, int] = {name: value for name, value in said.items() if value is not None}
    if trials and "seeds" in changes:
        changes |= {"trials": changes["seeds"], "trees": changes["seeds"]}
    return msgspec.structs.replace(plan, only_trials=trials, **changes)

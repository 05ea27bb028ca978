"""`godwit lab structures`: run, show, write; what has finished is never lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from godwit.commands.console import InputError, Reports, print_json
from godwit.commands.lab.experiments import StructuresOptions
from godwit.commands.pipeline.sweeping import alone_in, swept
from godwit.lab.structures import experiments, figures, report
from godwit.lab.structures.claims.base import judge
from godwit.lab.structures.rows import Store, StoreError
from godwit.lab.structures.settings import EXPERIMENTS, FULL, QUICK, Setting, planned

NAME = "structures"


def structures(options: StructuresOptions) -> int:
    only = options.only or []
    if unknown := [one for one in only if one not in EXPERIMENTS]:
        raise InputError(f"--only: there is no {unknown[0]}; there are {', '.join(EXPERIMENTS)}")
    settings = planned(QUICK if options.quick else FULL, options.seed, options.seeds, only)
    words = [
        *["--quick"] * options.quick,
        *(f"--only {one}" for one in only),
        *([f"--seeds {options.seeds}"] if options.seeds else []),
        f"--seed {options.seed}",
    ]
    folder, reports = Path(options.out), Reports()
    try:
        with alone_in(folder):
            store = Store(folder / f"{NAME}.parquet")
            status = swept(
                settings, store, experiments.run, options.where.where, named=lambda one: EXPERIMENTS[one.experiment]
            )
            written = _report(
                settings, store, f"godwit lab structures {' '.join(words)}", reports, options.where.as_json
            )
    except (StoreError, OSError) as error:
        raise InputError(str(error)) from None
    reports.say(f"written to {folder}: {', '.join(path.name for path in written)}")
    return status


def _report(settings: Sequence[Setting], store: Store, command: str, reports: Reports, as_json: bool) -> list[Path]:
    rows, out = store.of(settings), store.path.parent
    if not rows:
        return []
    judgements = judge(rows, settings)
    if as_json:
        print_json([one.finding for one in judgements])
    else:
        report.show(Console(), judgements)
    try:
        drawn = figures.draw(rows, out)
    except ImportError:
        reports.say("no figures: they need matplotlib, which comes with godwit[lab]")
        drawn = []
    page = out / f"{NAME}.md"
    page.write_text(report.page(rows, judgements, command, drawn))
    return [page, store.path, *drawn]

"""`godwit lab structures`: run, show, write; what has finished is never lost."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from godwit.lab.runner import PROCESSES, each
from godwit.lab.structures import experiments, figures, report
from godwit.lab.structures.claims import judge
from godwit.lab.structures.rows import Row, Store, StoreError
from godwit.lab.structures.settings import EXPERIMENTS, FULL, QUICK, Setting, planned
from godwit.lab.structures.truth import ViolationError

NAME = "structures"
LINES = 20
"""Without a terminal, so many lines tell how far it is."""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _known(only: list[str]) -> list[str]:
    unknown = [one for one in only if one not in EXPERIMENTS]
    if unknown:
        raise typer.BadParameter(f"there is no {unknown[0]}; there are {', '.join(EXPERIMENTS)}")
    return only


@app.command()
def structures(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sets, few replications: about a minute.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="E", callback=lambda only: _known(only or []), help="One experiment; may be repeated."),
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="In place of the published 10, 60 (E12) and 20 (E13).")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Decides all filters and events.")] = 1,
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, help="Where results go, and what finished is found again.")
    ] = Path("out/structures"),
    processes: Annotated[int, typer.Option(min=1, metavar="N", help="How many work at the same time.")] = PROCESSES,
) -> None:
    """Judge published claims on posets, forests and merging by counting covering operations.

    Examples:

        godwit lab structures --quick

        godwit lab structures --only E1 --only E13 --replications 5 --out results

    DIR gets structures.md (the table shown here, and how it came about), structures.parquet (one row for each structure
    and replication) and the figures. Called again with the same DIR, it runs only what is missing.

    Exit status: 0 whatever the verdicts; 1 where a structure was wrong or a worker was killed; 2 where DIR cannot be
    used; 130 after Ctrl-C. What had finished is kept and reported on.
    """
    settings = planned(QUICK if quick else FULL, seed, replications, only or ())
    options = [
        *(["--quick"] if quick else []),
        *(f"--only {one}" for one in only or ()),
        *([f"--replications {replications}"] if replications else []),
        f"--seed {seed}",
    ]
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        with _alone_in(out):
            store = Store(out / f"{NAME}.parquet")
            status = _run(settings, store, processes, console)
            written = _report(settings, store, f"godwit lab structures {' '.join(options)}", console)
    except (StoreError, OSError) as error:
        console.print(f"godwit: {error}", markup=False)
        raise typer.Exit(2) from None
    except ViolationError as error:
        console.print(f"godwit: a structure is wrong: {error}", markup=False)
        raise typer.Exit(1) from None
    console.print(f"written to {out}: {', '.join(path.name for path in written)}", markup=False)
    raise typer.Exit(status)


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """Two runs in one directory would overwrite each other's rows. The lock goes with the process, however it ends."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{out}: another run is at work there; wait for it or name another --out") from None
        yield


def _run(settings: list[Setting], store: Store, processes: int, console: Console) -> int:
    missing = [setting for setting in settings if setting not in store]
    if len(missing) < len(settings):
        console.print(f"{len(settings) - len(missing)} of {len(settings)} settings were run before")
    with Steps(console, len(settings), len(settings) - len(missing)) as steps:

        def keep(setting: Setting, rows: list[Row]) -> None:
            store.add(setting, rows)
            steps.forward(setting)

        try:
            each(experiments.run, missing, keep, processes=processes)
        except KeyboardInterrupt:
            console.print("interrupted; the report is on what had finished")
            return 130
        except BrokenProcessPool:
            console.print("a worker process was killed; the report is on what had finished, the same command goes on")
            return 1
    return 0


def _report(settings: list[Setting], store: Store, command: str, console: Console) -> list[Path]:
    rows, out = store.of(settings), store.path.parent
    if not rows:
        return []
    judgements = judge(rows, settings)
    report.show(Console(), judgements)
    try:
        drawn = figures.draw(rows, out)
    except ImportError:
        console.print("no figures: they need matplotlib, which comes with godwit[lab]", markup=False)
        drawn = []
    page = out / f"{NAME}.md"
    page.write_text(report.page(rows, judgements, command, drawn))
    return [page, store.path, *drawn]


class Steps:
    """How far it is: a bar on a terminal, now and then a line elsewhere."""

    def __init__(self, console: Console, total: int, done: int) -> None:
        self.console = console
        self.total = total
        self.done = done
        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        self.progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.progress.add_task("", total=total, completed=done)

    def __enter__(self) -> Steps:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def forward(self, setting: Setting) -> None:
        before, self.done = self.done, self.done + 1
        self.progress.update(self.task, completed=self.done, description=EXPERIMENTS[setting.experiment])
        if not self.console.is_terminal and self.done * LINES // self.total > before * LINES // self.total:
            self.console.print(f"{self.done} of {self.total} settings")

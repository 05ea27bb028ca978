"""`godwit lab mft`, `lab trees`, `lab convergence` and `lab models`: options checked, work watched, pages written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import msgspec
import typer

from godwit.commands.reports import Bar, InputError, Reports
from godwit.lab import convergencetable, pages, runner
from godwit.lab.adhoc import plan as adhoc_plan
from godwit.lab.adhoc import report as adhoc_report
from godwit.lab.adhoc import runs as adhoc_runs
from godwit.lab.adhoc.evidence import Evidence as AdhocEvidence
from godwit.lab.handoff import grid as handoff_grid
from godwit.lab.handoff import racetable
from godwit.lab.handoff import report as handoff_report
from godwit.lab.handoff import runs as handoff_runs
from godwit.lab.handoff.results import Results as HandoffResults
from godwit.lab.mft import report, trees
from godwit.lab.mft.grid import PROTOCOLS, QUICK, Grid
from godwit.lab.mft.results import Results, ResultsError
from godwit.lab.mft.runs import SIDES_M, Configuration, run
from godwit.lab.mft.verdicts import Evidence
from godwit.lab.models import report as models_report
from godwit.lab.results import Results as AnyResults

Number = TypeVar("Number", int, float)
C = TypeVar("C", bound=msgspec.Struct)
R = TypeVar("R", bound=msgspec.Struct)
RESULTS = "results.parquet"


def mft(
    *,
    quick: bool,
    sizes: str | None,
    speeds: str | None,
    seeds: int | None,
    protocols: str | None,
    workload: str,
    seconds: float | None,
    out: str,
    report_only: bool,
) -> int:
    grid = _grid(quick, sizes, speeds, seeds, protocols, workload, seconds)
    _need_figures()
    folder = _folder(out, exists=report_only)
    with _results_told(folder) as results:
        if not report_only:
            _run(grid.all(), results)
        if not results.of(grid.cells()):
            raise InputError(f"{folder}: no run of this grid is there")
        page = report.page(grid, results, _command("mft", grid, QUICK if quick else Grid(), ["--quick"] * quick))
        _write(folder, page, report.evidence_of(grid, results))
    return 0


def compare_trees(*, sizes: str | None, speeds: str | None, seeds: int | None, seconds: float | None, out: str) -> int:
    comparison = _replaced(trees.Comparison(), sizes, speeds, seeds, None, seconds)
    folder = _folder(out)
    with _results_told(folder) as results:
        _run(comparison.all(), results)
        page = trees.page(comparison, results, _command("trees", comparison, trees.Comparison(), []))
    _write_text(folder / "trees.md", pages.markdown(page))
    typer.echo(pages.markdown(page))
    return 0


def convergence(*, seeds: int, out: str) -> int:
    folder = _folder(out)
    reports = Reports()
    with Bar(reports.console, "trials") as bar, _interruption_told(reports, folder):
        try:
            page = convergencetable.run(seeds, folder / "trials.jsonl", lambda done, total: bar.update(done / total))
        except ValueError as error:
            raise InputError(str(error)) from None
    _write_text(folder / "convergence.md", pages.markdown(page))
    typer.echo(pages.markdown(page))
    return 0


def races(*, seeds: int, out: str) -> int:
    folder = _folder(out)
    reports = Reports()
    with Bar(reports.console, "races") as bar, _interruption_told(reports, folder):
        try:
            page = racetable.made(seeds, folder / "races.jsonl", lambda done, total: bar.update(done / total))
        except ValueError as error:
            raise InputError(str(error)) from None
    _write_text(folder / "races.md", pages.markdown(page))
    typer.echo(pages.markdown(page))
    return 0


def handoff(
    *,
    quick: bool,
    experiments: str | None,
    subscribers: str | None,
    seeds: int | None,
    schemes: str | None,
    seconds: float | None,
    out: str,
    report_only: bool,
) -> int:
    said = {
        "experiments": _names("--experiments", experiments, handoff_grid.EXPERIMENTS),
        "subscribers": _numbers("--subscribers", subscribers, int, lambda k: 0 < k <= 1000, "1 to 1000"),
        "seeds": seeds,
        "schemes": _names("--schemes", schemes, handoff_runs.SCHEMES),
        "measure_s": seconds,
    }
    told = {name: value for name, value in said.items() if value is not None}
    grid = msgspec.structs.replace(handoff_grid.QUICK if quick else handoff_grid.Grid(), **told)
    _need_figures()
    folder = _folder(out, exists=report_only)
    try:
        results = HandoffResults(folder / RESULTS)
    except ResultsError as error:
        raise InputError(str(error)) from None
    if not report_only:
        _watched(grid.cells(), results, handoff_runs.run, _handoff_cost, lambda o: f"K={o.subscribers} {o.scheme}")
    if not results.of(grid.cells()):
        raise InputError(f"{folder}: no run of this grid is there")
    _write_handoff(folder, handoff_report.page(grid, results, _handoff_command(quick, told)), grid, results)
    return 0


def _handoff_cost(one: handoff_runs.Configuration) -> float:
    return one.subscribers * (one.warmup_s + one.measure_s)


def _handoff_command(quick: bool, told: Mapping[str, object]) -> str:
    words = ["godwit lab handoff", *["--quick"] * quick]
    for field, value in told.items():
        text = ",".join(_short(one) for one in value) if isinstance(value, tuple) else _short(value)
        words += [f"--{'seconds' if field == 'measure_s' else field}", text]
    return " ".join(words)


def _write_handoff(folder: Path, page: pages.Page, grid: handoff_grid.Grid, results: HandoffResults) -> None:
    from godwit.lab.handoff.figures import drawn

    _write_page(folder, page, drawn(handoff_report.evidence_of(grid, results)))


def models() -> int:
    typer.echo(pages.markdown(models_report.page()))
    return 0


def adhoc(*, quick: bool, seeds: int | None, seconds: float | None, out: str, report_only: bool) -> int:
    plain = adhoc_plan.QUICK if quick else adhoc_plan.Plan()
    said = {"seeds": seeds, "measure_s": seconds}
    plan = msgspec.structs.replace(plain, **{name: value for name, value in said.items() if value is not None})
    _need_figures()
    folder = _folder(out, exists=report_only)
    try:
        results = AnyResults(folder / RESULTS, adhoc_runs.Configuration, adhoc_runs.Result)
    except ResultsError as error:
        raise InputError(str(error)) from None
    if not report_only:
        _watched(plan.runs(), results, adhoc_runs.run, _adhoc_cost, lambda one: f"{one.nodes} nodes, {one.protocol}")
    rows = results.of(plan.runs())
    if not rows:
        raise InputError(f"{folder}: no run of this plan is there")
    evidence = AdhocEvidence(plan, rows)
    words = ["godwit lab adhoc", *["--quick"] * quick]
    words += [f"--seeds {seeds}"] * (seeds is not None) + [f"--seconds {_short(seconds)}"] * (seconds is not None)
    _write_adhoc(folder, adhoc_report.page(evidence, len(rows), " ".join(words)), evidence)
    return 0


def _adhoc_cost(one: adhoc_runs.Configuration) -> float:
    """Receptions, about: who hears a frame, how many send it, how often."""
    heard = one.nodes * 1e6 / one.side_m**2
    return one.nodes * heard * one.publishers * one.rate_per_s * (one.probability if one.protocol == "gossip" else 0.3)


def _write_adhoc(folder: Path, page: pages.Page, evidence: AdhocEvidence) -> None:
    from godwit.lab.adhoc.figures import drawn

    _write_page(folder, page, drawn(evidence))


def _grid(
    quick: bool,
    sizes: str | None,
    speeds: str | None,
    seeds: int | None,
    protocols: str | None,
    workload: str,
    seconds: float | None,
) -> Grid:
    if workload not in ("unicast", "multicast"):
        raise InputError(f"--workload {workload}: unicast or multicast")
    plain = msgspec.structs.replace(QUICK if quick else Grid(), workload=workload)
    return _replaced(plain, sizes, speeds, seeds, protocols, seconds)


Plan = TypeVar("Plan", Grid, trees.Comparison)


def _replaced(
    plan: Plan, sizes: str | None, speeds: str | None, seeds: int | None, protocols: str | None, seconds: float | None
) -> Plan:
    """The plan with what the options say; every bad option is told before anything runs."""
    said = {
        "sizes": _numbers("--sizes", sizes, int, lambda size: size in SIDES_M, f"one of {_listed(SIDES_M)}"),
        "speeds_mps": _numbers("--speeds", speeds, float, lambda speed: 0 < speed <= 100, "more than 0, up to 100 m/s"),
        "seeds": seeds,
        "protocols": _names("--protocols", protocols, PROTOCOLS),
        "publish_s": seconds,
    }
    return msgspec.structs.replace(plan, **{name: value for name, value in said.items() if value is not None})


def _numbers(
    option: str, text: str | None, kind: Callable[[str], Number], fits: Callable[[Number], bool], right: str
) -> tuple[Number, ...] | None:
    if text is None:
        return None
    found: list[Number] = []
    for word in text.split(","):
        try:
            number = kind(word)
        except ValueError:
            raise InputError(f"{option} {text}: {word.strip()!r} is not a number; as in {option} 2,8") from None
        if not fits(number):
            raise InputError(f"{option} {text}: {word.strip()} must be {right}")
        found.append(number)
    return tuple(sorted(set(found)))


def _names(option: str, text: str | None, known: Sequence[str]) -> tuple[str, ...] | None:
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in known:
            raise InputError(f"{option} {text}: {word!r} is none of {_listed(known)}")
    return tuple(name for name in known if name in words)


def _listed(some: object) -> str:
    return ", ".join(str(one) for one in some)  # type: ignore[attr-defined]


def _need_figures() -> None:
    if find_spec("matplotlib") is None:
        raise InputError("the report's figures need matplotlib: pip install 'godwit[lab]'")


def _folder(out: str, *, exists: bool = False) -> Path:
    folder = Path(out)
    if exists and not (folder / RESULTS).exists():
        raise InputError(f"{folder / RESULTS}: no such file; run without --report-only first")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made a folder for results: {error.strerror}") from None
    return folder


@contextmanager
def _results_told(folder: Path) -> Iterator[Results]:
    try:
        yield Results(folder / RESULTS)
    except ResultsError as error:
        raise InputError(str(error)) from None


def _run(wanted: Sequence[Configuration], results: Results) -> None:
    _watched(wanted, results, run, _cost, lambda one: f"C{one.size} {one.protocol}")


def _watched(
    wanted: Sequence[C],
    results: AnyResults[C, R],
    work: Callable[[C], R],
    cost: Callable[[C], float],
    named: Callable[[C], str],
) -> None:
    """Run what is missing, with a bar that goes by what each run costs."""
    reports = Reports()
    missing = results.missing(wanted)
    before = len(wanted) - len(missing)
    reports.say(f"{len(wanted)} runs" + (f", {before} finished before" if before else ""))
    total = sum(cost(one) for one in missing)
    left = total
    with Bar(reports.console, "runs") as bar, _interruption_told(reports, results.path.parent):

        def keep(configuration: C, result: R) -> None:
            nonlocal left
            results.add(configuration, result)
            left -= cost(configuration)
            bar.update(1 - left / total, named(configuration))

        runner.each(work, missing, keep)


def _cost(configuration: Configuration) -> float:
    """Time goes about with the square of the size."""
    return configuration.size**2 * (configuration.publish_s + configuration.drain_s)


@contextmanager
def _interruption_told(reports: Reports, folder: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        reports.say(f"interrupted; what has finished is kept in {folder}, and the same command goes on from there")
        raise typer.Exit(130) from None


def _write(folder: Path, page: pages.Page, evidence: Evidence) -> None:
    from godwit.lab.mft.figures import drawn

    _write_page(folder, page, drawn(evidence))


def _write_page(folder: Path, page: pages.Page, figures: Mapping[str, bytes]) -> None:
    _write_text(folder / "report.html", pages.html(page, figures))
    _write_text(folder / "report.md", pages.markdown(page))
    for finding in page.findings:
        typer.echo(f"{finding.claim.name:>4}  {finding.verdict:<15} {finding.numbers}")
    typer.echo(f"{folder / 'report.html'}")


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _command(name: str, plan: Plan, usual: Plan, flags: list[str]) -> str:
    """What to type to get this again."""
    options = {"sizes": "sizes", "speeds_mps": "speeds", "seeds": "seeds", "protocols": "protocols"}
    options |= {"workload": "workload", "publish_s": "seconds"}
    words = ["godwit lab", name, *flags]
    for field, option in options.items():
        value = getattr(plan, field, None)
        if value != getattr(usual, field, None):
            text = ",".join(_short(one) for one in value) if isinstance(value, tuple) else _short(value)
            words += [f"--{option}", text]
    return " ".join(words)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

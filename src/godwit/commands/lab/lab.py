"""`godwit lab`: options checked, runs swept, pages written. `experiments.py` says what can be typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import typer

from godwit.commands.console import InputError, print_json
from godwit.commands.lab.experiments import (
    AdhocOptions,
    CompareTreesOptions,
    ConvergenceOptions,
    HandoffOptions,
    MftOptions,
    ModelsOptions,
    RacesOptions,
    SparkOptions,
)
from godwit.commands.pipeline.sweeping import INTERRUPTED, Where, opened, swept
from godwit.lab import pages
from godwit.lab.adhoc import plan as adhoc_plan
from godwit.lab.adhoc import report as adhoc_report
from godwit.lab.adhoc import runs as adhoc_runs
from godwit.lab.adhoc.evidence import Evidence as AdhocEvidence
from godwit.lab.convergence import table as convergence_table
from godwit.lab.deployed import evaluation
from godwit.lab.handoff import grid as handoff_grid
from godwit.lab.handoff import racetable
from godwit.lab.handoff import report as handoff_report
from godwit.lab.handoff import runs as handoff_runs
from godwit.lab.handoff.races import Outcome
from godwit.lab.handoff.results import Results as HandoffResults
from godwit.lab.mft import report, trees
from godwit.lab.mft.grid import PROTOCOLS, QUICK, Grid
from godwit.lab.mft.results import Results
from godwit.lab.mft.runs import SIDES_M, Configuration, run
from godwit.lab.models import report as models_report
from godwit.lab.results import Results as AnyResults

Number = TypeVar("Number", int, float)
Plan = TypeVar("Plan", bound=msgspec.Struct)
C = TypeVar("C", bound=msgspec.Struct)
R = TypeVar("R", bound=msgspec.Struct)
K = TypeVar("K", bound=AnyResults[Any, Any])

Said = dict[str, Any]
"""Options by name, None where nothing was said."""

MFT_FIELDS = {"speeds": "speeds_mps", "seconds": "publish_s"}
MEASURE_FIELDS = {"seconds": "measure_s", "only": "experiments"}


def mft(options: MftOptions) -> int:
    if options.workload not in ("unicast", "multicast"):
        raise InputError(f"--workload {options.workload}: unicast or multicast")
    said = _mft_said(options) | {
        "protocols": _names("--protocols", options.protocols, PROTOCOLS),
        "workload": options.workload if options.workload != Grid().workload else None,
    }
    grid = _planned(QUICK if options.quick else Grid(), said, MFT_FIELDS)

    def reported(results: Results) -> tuple[pages.Page, Mapping[str, bytes]]:
        from godwit.lab.mft.figures import drawn

        page = report.page(grid, results, _command("mft", options.quick, said))
        return page, drawn(report.evidence_of(grid, results))

    sweep = _sweeping(grid.all(), run, options.where.where, _mft_cost, _mft_name)
    return _judged(options, Results, grid.cells(), sweep, reported)


def compare_trees(options: CompareTreesOptions) -> int:
    said = _mft_said(options)
    comparison = _planned(trees.Comparison(), said, MFT_FIELDS)
    sweep = _sweeping(comparison.all(), run, options.where.where, _mft_cost, _mft_name)
    return _tabled(
        options, "trees", Results, sweep, lambda done: trees.page(comparison, done, _command("trees", False, said))
    )


def convergence(options: ConvergenceOptions) -> int:
    seeds = options.seeds
    wanted = convergence_table.batches(seeds)
    sweep = _sweeping(
        wanted, convergence_table.count, options.where.where, named=lambda one: f"{one.protocol}, {one.mix}"
    )

    def kept(path: Path) -> AnyResults[convergence_table.Batch, convergence_table.Counted]:
        return AnyResults(path, convergence_table.Batch, convergence_table.Counted)

    return _tabled(
        options, "convergence", kept, sweep, lambda done: convergence_table.page(seeds, _results(done, wanted))
    )


def races(options: RacesOptions) -> int:
    seeds = options.seeds
    wanted = racetable.batches(seeds)
    sweep = _sweeping(wanted, racetable.count, options.where.where, named=lambda one: f"{one.variant}, {one.column}")

    def kept(path: Path) -> AnyResults[racetable.Batch, Outcome]:
        return AnyResults(path, racetable.Batch, Outcome)

    return _tabled(options, "races", kept, sweep, lambda done: racetable.page(seeds, _results(done, wanted)))


def handoff(options: HandoffOptions) -> int:
    if options.deployed:
        return _deployed(options)
    said: Said = {
        "only": _names("--only", ",".join(options.only or ()) or None, handoff_grid.EXPERIMENTS),
        "subscribers": _numbers("--subscribers", options.subscribers, int, lambda k: 0 < k <= 1000, "1 to 1000"),
        "base": options.base,
        "seeds": options.seeds,
        "schemes": _names("--schemes", options.schemes, handoff_runs.SCHEMES),
        "seconds": options.seconds,
    }
    grid = _planned(handoff_grid.QUICK if options.quick else handoff_grid.Grid(), said, MEASURE_FIELDS)

    def reported(results: HandoffResults) -> tuple[pages.Page, Mapping[str, bytes]]:
        from godwit.lab.handoff.figures import drawn

        page = handoff_report.page(grid, results, _command("handoff", options.quick, said))
        return page, drawn(handoff_report.evidence_of(grid, results))

    where = options.where.where
    sweep = _sweeping(
        grid.cells(), handoff_runs.run, where, _handoff_cost, lambda one: f"K={one.subscribers} {one.scheme}"
    )
    return _judged(options, HandoffResults, grid.cells(), sweep, reported)


def _deployed(options: HandoffOptions) -> int:
    """X2 and X10 with broker processes. They need the processors for themselves, so one run follows the other."""
    if options.base is not None:
        told = "nothing but the number of subscribers varies in X2 and X10; leave it out"
        raise InputError(f"--base {options.base}: {told}")
    if options.only is not None:
        raise InputError(f"--only {' '.join(options.only)}: X2 and X10 are deployed, always both; leave it out")
    said: Said = {
        "subscribers": _numbers("--subscribers", options.subscribers, int, lambda k: 0 < k <= 200, "1 to 200"),
        "seeds": options.seeds,
        "schemes": _names("--schemes", options.schemes, evaluation.SCHEMES),
        "seconds": options.seconds,
    }
    grid = _planned(evaluation.QUICK if options.quick else evaluation.Grid(), said, MEASURE_FIELDS)
    sweep = _sweeping(
        [] if options.report_only else grid.cells(),
        evaluation.run,
        Where(spark=False),
        named=lambda one: f"K={one.subscribers} {one.scheme} {one.pattern}",
    )

    def paged(results: AnyResults[evaluation.Configuration, evaluation.Result]) -> pages.Page:
        if not results.of(grid.cells()):
            raise InputError(f"{options.out}: no run of this plan is there")
        return evaluation.page(grid, results, _command("handoff --deployed", options.quick, said))

    return _tabled(options, "deployed", evaluation.results, sweep, paged)


def adhoc(options: AdhocOptions) -> int:
    said: Said = {"seeds": options.seeds, "seconds": options.seconds}
    plan = _planned(adhoc_plan.QUICK if options.quick else adhoc_plan.Plan(), said, MEASURE_FIELDS)
    wanted = plan.runs()

    def kept(path: Path) -> AnyResults[adhoc_runs.Configuration, adhoc_runs.Result]:
        return AnyResults(path, adhoc_runs.Configuration, adhoc_runs.Result)

    def reported(
        results: AnyResults[adhoc_runs.Configuration, adhoc_runs.Result],
    ) -> tuple[pages.Page, Mapping[str, bytes]]:
        from godwit.lab.adhoc.figures import drawn

        rows = results.of(wanted)
        evidence = AdhocEvidence(plan, rows)
        return adhoc_report.page(evidence, len(rows), _command("adhoc", options.quick, said)), drawn(evidence)

    where = options.where.where
    sweep = _sweeping(wanted, adhoc_runs.run, where, _adhoc_cost, lambda one: f"{one.nodes} nodes, {one.protocol}")
    return _judged(options, kept, wanted, sweep, reported)


def models(options: ModelsOptions) -> int:
    tell(models_report.page(), options.as_json)
    return 0


def tell(page: pages.Page, as_json: bool) -> None:
    """The page on stdout, for people or for programs."""
    if as_json:
        print_json(page)
    else:
        typer.echo(pages.markdown(page))


def _sweeping(
    wanted: Sequence[C],
    work: Callable[[C], R],
    where: Where,
    cost: Callable[[C], float] = lambda one: 1.0,
    named: Callable[[C], str] = str,
) -> Callable[[AnyResults[C, R]], int]:
    return lambda results: swept(wanted, results, work, where, cost=cost, named=named)


class JudgedOptions(Protocol):
    """What all experiments with claims are told."""

    @property
    def out(self) -> str: ...
    @property
    def report_only(self) -> bool: ...
    @property
    def where(self) -> SparkOptions: ...


def _judged(
    options: JudgedOptions,
    kept: Callable[[Path], K],
    wanted: Sequence[Any],
    sweep: Callable[[K], int],
    reported: Callable[[K], tuple[pages.Page, Mapping[str, bytes]]],
) -> int:
    """An experiment with claims: run what is missing, unless only a report is wanted, and report on what is there."""
    out, report_only = options.out, options.report_only
    if find_spec("matplotlib") is None:
        raise InputError("the report's figures need matplotlib: pip install 'godwit[lab]'")
    with opened(out, kept, report_only=report_only) as results:
        status = 0 if report_only else sweep(results)
        if status == INTERRUPTED:
            return status
        if not results.of(wanted):
            raise InputError(f"{out}: no run of this plan is there")
        page, figures = reported(results)
    folder = Path(out)
    _write_text(folder / "report.html", pages.html(page, figures))
    _write_text(folder / "report.md", pages.markdown(page))
    if options.where.as_json:
        print_json({"report": str(folder / "report.html"), "findings": page.findings})
        return status
    for finding in page.findings:
        typer.echo(f"{finding.claim.name:>4}  {finding.verdict:<15} {finding.numbers}")
    typer.echo(f"{folder / 'report.html'}")
    return status


class TabledOptions(Protocol):
    """What all experiments without claims are told."""

    @property
    def out(self) -> str: ...
    @property
    def where(self) -> SparkOptions: ...


def _tabled(
    options: TabledOptions,
    name: str,
    kept: Callable[[Path], K],
    sweep: Callable[[K], int],
    paged: Callable[[K], pages.Page],
) -> int:
    """An experiment that ends in a table, which is written when all runs are there."""
    with opened(options.out, kept) as results:
        status = sweep(results)
        if status:
            return status
        page = paged(results)
    _write_text(Path(options.out, f"{name}.md"), pages.markdown(page))
    tell(page, options.where.as_json)
    return 0


def _results(kept: AnyResults[C, R], wanted: Sequence[C]) -> dict[C, R]:
    return {row.configuration: row.result for row in kept.of(wanted)}


def _mft_cost(one: Configuration) -> float:
    """Time goes about with the square of the size."""
    return one.size**2 * (one.publish_s + one.drain_s)


def _mft_name(one: Configuration) -> str:
    return f"C{one.size} {one.protocol}"


def _handoff_cost(one: handoff_runs.Configuration) -> float:
    return one.subscribers * (one.warmup_s + one.measure_s)


def _adhoc_cost(one: adhoc_runs.Configuration) -> float:
    """Receptions, about: who hears a frame, how many send it, how often."""
    heard = one.nodes * 1e6 / one.side_m**2
    return one.nodes * heard * one.publishers * one.rate_per_s * (one.probability if one.protocol == "gossip" else 0.3)


def _mft_said(options: MftOptions | CompareTreesOptions) -> Said:
    return {
        "sizes": _numbers("--sizes", options.sizes, int, lambda size: size in SIDES_M, f"one of {_listed(SIDES_M)}"),
        "speeds": _numbers(
            "--speeds", options.speeds, float, lambda speed: 0 < speed <= 100, "more than 0, up to 100 m/s"
        ),
        "seeds": options.seeds,
        "seconds": options.seconds,
    }


def _planned(plan: Plan, said: Said, fields: Mapping[str, str]) -> Plan:
    """The plan with what was said; `fields` are those that are not called like their option."""
    told = {fields.get(option, option): value for option, value in said.items() if value is not None}
    return msgspec.structs.replace(plan, **told)


def _command(name: str, quick: bool, said: Said) -> str:
    """What to type to get this again."""
    words = ["godwit lab", name, *["--quick"] * quick]
    for option, value in said.items():
        if option == "only":
            words += [f"--only {one}" for one in value or ()]
        elif value is not None:
            text = ",".join(map(_short, value)) if isinstance(value, tuple) else _short(value)
            words += [f"--{option}", text]
    return " ".join(words)


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


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

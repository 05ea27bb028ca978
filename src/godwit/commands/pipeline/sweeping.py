"""The runs of an experiment as a user sees them: what is missing is run, watched and kept, and what fails is told."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec
import pyarrow.parquet as pq
import typer

from godwit.commands.console import Bar, InputError, Reports, print_json, shortened
from godwit.commands.pipeline.session import SparkOptions, parts_told, started
from godwit.lab import gridfile, runner
from godwit.lab.provenance import Provenance
from godwit.lab.results import Results, ResultsError
from godwit.lab.runner import Failure, RunsFailedError
from godwit.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

K = TypeVar("K", bound=Results[Any, Any])
One = TypeVar("One", bound=msgspec.Struct)
Done = TypeVar("Done")
Given = TypeVar("Given", contravariant=True)

RESULTS, SUMMARY, FAILED = "results.parquet", "summary.parquet", "failed.jsonl"
FAILED_STATUS, INTERRUPTED = 1, 130
LOCAL = "local[*]"
TOLD_MAX = 5
"""Failed runs that are told one by one; all are in the file."""
START_S = 10.0
"""What the start of Spark and its workers takes, about."""
SHARE = 0.85
"""Of a core that a run finds beside others: on two, a sweep is 1.7 times as fast as one run after the other."""
SHORT_S = 1.0
"""The first run in a process loads what others find there; where it is over so soon, a second tells more."""
LINES = 20
"""Without a terminal, so many lines tell how far it is."""
SEED = "seed"


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs: Spark, which must be there then, or this process.

    Where neither is asked for it is Spark, if it is there, unless all will be over before it would have started.
    """

    spark: bool | None = None
    master: str | None = None
    settings: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.spark is None and not self.master and not self.settings

    def check(self) -> None:
        if self.spark is False and (self.master or self.settings):
            raise InputError("--no-spark: nothing runs on Spark then, so --master and --conf say nothing")


class Kept(Protocol[One, Given]):
    """Where results are kept; what was added before is not missing."""

    path: Path

    def missing(self, wanted: Iterable[One]) -> list[One]: ...

    def add(self, one: One, done: Given, /) -> None: ...

    def settle(self) -> None: ...


def sweep(grid: str, out: str, where: Where, *, as_json: bool = False) -> int:
    """`godwit pipeline sweep`: a grid that a file describes."""
    try:
        read = gridfile.read(Path(grid))
    except gridfile.GridError as error:
        raise InputError(str(error)) from None
    began_s = time.monotonic()
    with opened(out, lambda path: Results(path, read.configuration, read.result)) as results:
        status = swept(read.runs, results, read.work, where, named=short)
        there, wanted = len(results.of(read.runs)), len(read.runs)
    seconds = time.monotonic() - began_s
    if as_json:
        print_json({"runs": there, "wanted": wanted, "results": str(results.path), "seconds": seconds})
    else:
        typer.echo(f"sweep: {there} of {wanted} runs are in {results.path}, {seconds:.1f} s")
    return status


@contextmanager
def opened(out: str, kept: Callable[[Path], K], *, report_only: bool = False) -> Iterator[K]:
    """The results in this folder, which is made, and ours alone unless they are only reported on."""
    path = Path(out, RESULTS)
    if report_only and not path.exists():
        raise InputError(f"{path}: no such file; run without --report-only first")
    try:
        with nullcontext() if report_only else alone_in(path.parent):
            results = kept(path)
            if report_only and results.foreign:
                results.any_code = True
                Reports().say(f"{len(results.foreign)} rows of {path} are of other code; the report says which")
            yield results
    except ResultsError as error:
        raise InputError(str(error)) from None


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Two runs in one folder would overwrite each other's rows. The lock goes with the process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise InputError(f"{folder}: cannot be made a folder for results: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another run is at work there; wait for it or name another --out") from None
        yield


def in_order(missing: Sequence[One], cost: Callable[[One], float], where: Where) -> list[One]:
    """On Spark the costliest first, so that none is left running alone at the end. Without it as they were wanted, so
    that an interrupted run has the first part of its plan."""
    return list(missing) if where.spark is False else sorted(missing, key=cost, reverse=True)


def swept(
    wanted: Sequence[One],
    kept: Kept[One, Done],
    work: Callable[[One], Done],
    where: Where,
    *,
    cost: Callable[[One], float] = lambda one: 1.0,
    named: Callable[[One], str] = str,
) -> int:
    """Run what is missing and return the exit status: 1 where runs failed for good, 130 after Ctrl-C.

    The bar goes by what they cost.
    """
    where.check()
    reports = Reports()
    wanted = list(dict.fromkeys(wanted))
    missing = in_order(kept.missing(wanted), cost, where)
    before = len(wanted) - len(missing)
    reports.say(f"{len(wanted)} runs" + (f", {before} finished before" if before else ""))
    if isinstance(kept, Results) and kept.foreign and not kept.any_code:
        reports.say(f"{len(kept.foreign)} rows of other code are in {kept.path}; they stay there and are not used")
    if not missing:
        return 0
    try:
        return _run(missing, kept, work, where, Steps(reports, missing, cost, named))
    except KeyboardInterrupt:
        folder = kept.path.parent
        reports.say(f"interrupted; what has finished is kept in {folder}, and the same command goes on from there")
        return INTERRUPTED
    except PipelineError as error:
        raise InputError(f"{error}; what has finished is kept in {kept.path.parent}") from None
    except OSError as error:
        raise InputError(
            f"{kept.path.parent}: {error.strerror or error}; what was kept before is still there"
        ) from None


def _run(
    missing: Sequence[One], kept: Kept[One, Done], work: Callable[[One], Done], where: Where, steps: Steps[One]
) -> int:
    folder = kept.path.parent
    (folder / FAILED).unlink(missing_ok=True)

    def keep(one: One, done: Done) -> None:
        kept.add(one, done)
        steps.forward(one)

    def run(runs: Sequence[One], by: runner.Workers = runner.one_by_one) -> Sequence[Failure[One]]:
        try:
            runner.each(work, runs, keep, by=by)
        except RunsFailedError as failed:
            return failed.failures
        finally:
            kept.settle()
        return ()

    with steps:
        if where.is_open:
            missing, left_s = _tasted(missing, run, steps)
            where = Where(spark=None if is_worth_spark(left_s, os.cpu_count() or 1) else False)
        with _session(where, steps.reports) as spark:
            failures = run(missing, _workers(spark))
            _summarise(kept, spark)
    if failures:
        _tell(failures, folder, steps.reports)
    return FAILED_STATUS if failures else 0


def _tasted(
    missing: Sequence[One], run: Callable[[Sequence[One]], Sequence[Failure[One]]], steps: Steps[One]
) -> tuple[Sequence[One], float]:
    """Run the cheapest, or two where they are short: what is missing then, and the seconds that it would take here."""
    left_s = 0.0
    for _ in range(2):
        began_s = time.monotonic()
        *others, cheapest = missing
        # One that fails here is tried again with the others.
        if run([cheapest]):
            return missing, (time.monotonic() - began_s) * steps.times(cheapest, missing)
        took_s = time.monotonic() - began_s
        missing, left_s = others, took_s * steps.times(cheapest, others)
        if not missing or took_s * steps.times(cheapest, missing[-1:]) > SHORT_S:
            break
    return missing, left_s


def is_worth_spark(left_s: float, cores: int) -> bool:
    """Whether cores save more than the start of Spark costs; a single one is judged as if there were two."""
    return left_s - left_s / (SHARE * max(cores, 2)) > START_S


class Steps(Generic[One]):
    """How far it is: a bar on a terminal, by what runs cost; elsewhere now and then a line."""

    def __init__(
        self, reports: Reports, runs: Sequence[One], cost: Callable[[One], float], named: Callable[[One], str]
    ) -> None:
        self.reports = reports
        self._bar = Bar(reports.console, "runs")
        self._cost, self._named = cost, named
        self._total, self._all = sum(map(cost, runs)), len(runs)
        self._paid, self._done = 0.0, 0

    def __enter__(self) -> None:
        self._bar.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def times(self, one: One, others: Sequence[One]) -> float:
        """How many times as much as one of them the others cost."""
        return sum(map(self._cost, others)) / self._cost(one)

    def forward(self, one: One) -> None:
        self._done += 1
        self._paid += self._cost(one)
        self._bar.update(self._paid / self._total, self._named(one))
        if (
            not self.reports.console.is_terminal
            and self._done * LINES // self._all > (self._done - 1) * LINES // self._all
        ):
            self.reports.say(f"{self._done} of {self._all} runs")


def _workers(spark: SparkSession | None) -> runner.Workers:
    if spark is None:
        return runner.one_by_one
    from godwit.pipeline.sweep.runs import outcomes

    return partial(outcomes, spark)


@contextmanager
def _session(where: Where, reports: Reports) -> Iterator[SparkSession | None]:
    """A session, or None where runs go one after the other in this process."""
    if where.spark is False:
        yield None
        return
    try:
        with parts_told():
            from godwit.pipeline.sweep.runs import SETTINGS, retrying
        settings = [*(f"{name}={value}" for name, value in SETTINGS.items()), *where.settings]
        session = started("sweep", SparkOptions(master=retrying(where.master or LOCAL), memory="1g", conf=settings))
    except InputError as error:
        if not where.is_open:
            raise
        reports.say(f"{error}; without Spark, runs go one after the other")
        yield None
        return
    try:
        yield session
    finally:
        session.stop()


def _tell(failures: Sequence[Failure[Any]], folder: Path, reports: Reports) -> None:
    """What failed goes to a file with its traceback; the next run of the command tries it again."""
    path = folder / FAILED
    reports.say(f"{len(failures)} runs failed for good, {path} says how:")
    for failure in failures[:TOLD_MAX]:
        reports.say(f"  {short(failure.task)}: {shortened(failure.reason, 200)}")
    if len(failures) > TOLD_MAX:
        reports.say(f"  and {len(failures) - TOLD_MAX} more")
    lines = [msgspec.json.encode({"configuration": one.task, "error": one.error}) + b"\n" for one in failures]
    path.write_bytes(b"".join(lines))


def short(configuration: msgspec.Struct) -> str:
    """What differs from the defaults."""
    fields = msgspec.structs.fields(configuration)
    said = {field.name: getattr(configuration, field.name) for field in fields}
    usual = {field.name: field.default for field in fields if not field.required}
    return " ".join(f"{name}={value}" for name, value in said.items() if usual.get(name, msgspec.NODEFAULT) != value)


def _summarise(kept: Kept[Any, Any], spark: SparkSession | None) -> None:
    """Write what the runs of each cell agree on beside them; an older summary must not outlive its runs."""
    if not isinstance(kept, Results) or SEED not in kept.configuration.__struct_fields__:
        return
    path = kept.path.with_name(SUMMARY)
    path.unlink(missing_ok=True)
    if spark is not None:
        from godwit.pipeline.sweep.intervals import summary

        cell = [name for name in kept.configuration.__struct_fields__ if name != SEED]
        table = summary(spark, kept.table(), [*cell, *Provenance.__struct_fields__], {SEED})
        unfinished = path.with_name(path.name + ".part")
        pq.write_table(table, unfinished)
        unfinished.replace(path)

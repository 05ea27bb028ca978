"""`godwit lab all`: every study run or gone on with, and one site of all claims written."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from godwit.commands.console import InputError, Reports, print_json
from godwit.commands.lab.experiments import EverythingOptions
from godwit.commands.pipeline.sweeping import INTERRUPTED, RESULTS, alone_in, swept
from godwit.lab import site, vouchers
from godwit.lab.catalogue import AWAITED, STUDIES
from godwit.lab.results import ResultsError
from godwit.lab.site import Told
from godwit.lab.structures.rows import StoreError
from godwit.lab.studies import SIZES, Kept, Study, duration, up_to


def everything(options: EverythingOptions) -> int:
    studies = [STUDIES[name] for name in _chosen(options.only)]
    size, report_only = options.size, options.report_only
    if size not in SIZES:
        raise InputError(f"--size {size}: one of {', '.join(SIZES)}")
    folder, reports = Path(options.out), Reports()
    try:
        if not report_only:
            _announce(studies, size, folder, reports, options)
        if options.plan:
            return 0
        _check_libraries()
        status = _vouched(studies, size, folder, options) if report_only else _run(studies, size, folder, options)
        if status == INTERRUPTED:
            return status
        any_code = report_only or options.any_code
        every = [told for one in STUDIES.values() if (told := _told(one, size, folder, reports, any_code)) is not None]
    except (ResultsError, StoreError) as error:
        raise InputError(str(error)) from None
    if not every:
        raise InputError(f"{folder}: no run of size {size} or smaller is there; run without --report-only first")
    _write(folder, every, options, reports)
    return status


def _check_libraries() -> None:
    """Before anything runs for minutes whose report could not be written."""
    for library in ("scipy", "matplotlib"):
        if find_spec(library) is None:
            raise InputError(f"lab all needs {library}, which comes with godwit[lab]")


def _chosen(only: list[str] | None) -> list[str]:
    for name in only or ():
        if name not in STUDIES:
            raise InputError(f"--only {name}: there is no such study; there are {', '.join(STUDIES)}")
    return list(dict.fromkeys(only or STUDIES))


def _announce(studies: Sequence[Study], size: str, folder: Path, reports: Reports, options: EverythingOptions) -> None:
    """What is missing and how much processor time it will take, before any of it is spent."""
    total_s = 0.0
    for one in studies:
        wanted = one.runs(size)
        kept = _kept(one, folder, options.any_code)
        if options.vouch:
            total_s += _announce_samples(one, kept, up_to(one, size), reports)
        missing = kept.missing(wanted)
        cost_s = sum(map(one.cost_s, missing))
        total_s += cost_s
        reports.say(f"{one.name}: {len(missing)} of {len(wanted)} runs are missing, about {duration(cost_s)} of a core")
    reports.say(f"all: about {duration(total_s)} of a core; the same command goes on where it was interrupted")


def _announce_samples(one: Study, kept: Kept, wanted: Sequence[Any], reports: Reports) -> float:
    """What would be run again, and its cost; `kept` then is as it will be if all comes out equal."""
    samples = vouchers.samples(one, kept, wanted)
    again = [run for own in samples.values() for run in own]
    cost_s = sum(map(one.cost_s, again))
    for (code, strand), own in samples.items():
        of_strand = f" of {strand}" if strand else ""
        reports.say(f"{one.name}: {len(own)} runs{of_strand} of code {code} will be run again")
    if again:
        reports.say(f"{one.name}: that is about {duration(cost_s)} of a core; if all are equal,")
    kept.vouched |= samples.keys()
    return cost_s


def _kept(one: Study, folder: Path, any_code: bool) -> Kept:
    kept = one.kept_at(folder / one.name / RESULTS)
    kept.any_code = any_code
    vouchers.admit(kept, vouchers.read(folder / one.name))
    return kept


def _run(studies: Sequence[Study], size: str, folder: Path, options: EverythingOptions) -> int:
    worst = 0
    for one in studies:
        with alone_in(folder / one.name):
            kept = _kept(one, folder, options.any_code)
            if options.vouch:
                _vouch(one, kept, size)
            status = swept(one.runs(size), kept, one.work, options.where.where, cost=one.cost_s, named=one.named)
        if status == INTERRUPTED:
            return status
        worst = max(worst, status)
    return worst


def _vouched(studies: Sequence[Study], size: str, folder: Path, options: EverythingOptions) -> int:
    """Only a report is asked for; with --vouch rows of other code are looked at first."""
    for one in studies if options.vouch else ():
        if (folder / one.name / RESULTS).exists():
            with alone_in(folder / one.name):
                _vouch(one, _kept(one, folder, any_code=False), size)
    return 0


def _vouch(one: Study, kept: Kept, size: str) -> None:
    for voucher in vouchers.vouch(one, kept, up_to(one, size)):
        Reports().say(f"{one.name}: {voucher}")


def _told(one: Study, size: str, folder: Path, reports: Reports, any_code: bool) -> Told | None:
    """Of every study that has rows there, so that the index is of all of them, whichever was run last."""
    if not (folder / one.name / RESULTS).exists():
        return None
    kept = _kept(one, folder, any_code)
    if any_code:
        reports.say(f"{one.name}: reported on as they are, whatever code made the rows; the page says which")
    return site.told(one, kept, size)


def _write(folder: Path, every: Sequence[Told], options: EverythingOptions, reports: Reports) -> None:
    try:
        written = site.write(folder, every, AWAITED)
        if options.documents is not None:
            target = Path(options.documents)
            target.mkdir(parents=True, exist_ok=True)
            for name, text in site.documents(every, AWAITED).items():
                (target / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
    if options.where.as_json:
        print_json({one.study.name: one.counts for one in every})
        return
    for one in every:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in one.counts.items())
        typer.echo(f"{one.study.name}: {counts}")
    reports.say(f"written: {written[0]}")

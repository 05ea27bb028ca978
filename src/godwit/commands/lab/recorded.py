"""`godwit lab recorded`: handoff schemes on the movement that `godwit pipeline mobility` found."""

from __future__ import annotations

from pathlib import Path

from godwit.commands.console import InputError
from godwit.commands.lab.experiments import RecordedOptions
from godwit.commands.lab.lab import tell
from godwit.commands.pipeline.sweeping import opened, swept
from godwit.lab import pages
from godwit.lab.recorded import report
from godwit.lab.recorded.moves import RecordedError, read, span_s
from godwit.lab.recorded.runs import Configuration, Result, run
from godwit.lab.results import Results

HOUR_S = 3600.0


def recorded(options: RecordedOptions) -> int:
    moves, learn, skip, hours = options.moves, options.learn, options.skip, options.hours
    base = _configured(moves, learn * HOUR_S, skip * HOUR_S, hours * HOUR_S)
    wanted = report.plan(base)
    with opened(options.out, lambda path: Results(path, Configuration, Result)) as results:
        status = swept(wanted, results, run, options.where.where, named=report.name_of)
        if status:
            return status
        command = f"godwit lab recorded {moves} --learn {learn:g} --skip {skip:g} --hours {hours:g}"
        page = report.page(results.of(wanted), command)
    Path(options.out, "recorded.md").write_text(pages.markdown(page), encoding="utf-8")
    tell(page, options.where.as_json)
    return 0


def _configured(moves: str, learn_s: float, skip_s: float, measure_s: float) -> Configuration:
    """Checked before anything runs."""
    folder = Path(moves).resolve()
    try:
        first_s, _ = span_s(folder)
        begin_s = first_s + learn_s
        read(str(folder), (first_s, begin_s), (begin_s + skip_s, begin_s + skip_s + measure_s))
    except RecordedError as error:
        raise InputError(str(error)) from None
    return Configuration(
        recording=str(folder),
        learn_from_s=first_s,
        begin_s=begin_s,
        skip_s=skip_s,
        measure_s=measure_s,
        scheme="reactive",
    )

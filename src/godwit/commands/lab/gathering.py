"""`godwit lab gathering`: the published evaluation of the ring, its defects, its growth, and recorded movement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from godwit.commands.console import InputError, Reports
from godwit.commands.lab.experiments import GatheringOptions
from godwit.commands.lab.lab import _command, _judged, _numbers, _sweeping, _tabled, _write_text, tell
from godwit.lab import pages, provenance
from godwit.lab.gathering import report
from godwit.lab.gathering.beyond import churn, growth, recorded, scale, tree_drive
from godwit.lab.gathering.evidence import Evidence
from godwit.lab.gathering.plan import QUICK, Plan, cost, named
from godwit.lab.gathering.runs import Configuration, Result, run
from godwit.lab.results import Results

Kept = Results[Configuration, Result]

RACES = 6
"""Races for each seed: sixty where there are ten maps."""


def gathering(options: GatheringOptions) -> int:
    quick, defects = options.quick, options.defects
    if defects + options.scale + (options.data is not None) > 1:
        raise InputError("--defects, --scale and --data are three experiments: give one of them")
    if options.scale:
        return _scale(options)
    if options.data is not None:
        return _recorded(options, options.data)
    said = {
        "sizes": _numbers("--sizes", options.sizes, int, lambda size: 2 <= size <= 256, "2 to 256 brokers"),
        "seeds": options.seeds,
    }
    plan = _planned(QUICK if quick else Plan(), said, defects=defects)
    command = _command("gathering", quick, said) + " --defects" * defects
    wanted = plan.runs()
    sweep = _sweeping(wanted, run, options.where.where, cost, named)

    def kept(path: Path) -> Kept:
        return Results(path, Configuration, Result)

    def paged(results: Kept) -> pages.Page:
        rows = results.of(wanted)
        return report.page(Evidence(plan, rows), len(rows), command)

    def reported(results: Kept) -> tuple[pages.Page, Mapping[str, bytes]]:
        from godwit.lab.gathering.figures import drawn

        return paged(results), drawn(Evidence(plan, results.of(wanted)))

    if defects:
        return _tabled(options, "defects", kept, sweep, paged)
    return _judged(options, kept, wanted, sweep, reported)


def _planned(plan: Plan, said: Mapping[str, object], *, defects: bool) -> Plan:
    changes = {name: value for name, value in said.items() if value is not None}
    seeds = said["seeds"]
    if isinstance(seeds, int):
        changes |= {"maps": seeds, "joins": seeds, "races": seeds if defects else RACES * seeds}
    return msgspec.structs.replace(plan, defects=defects, evaluation=not defects, **changes)


def _scale(options: GatheringOptions) -> int:
    """Growth in arrays up to 10,000 brokers, and churn of a thousand real ones."""
    quick = options.quick
    say, made = _progress(), provenance.of(growth.__name__)
    sizes = scale.SIZES[:3] if quick else scale.SIZES
    clients = 20_000 if quick else scale.CLIENTS
    found = [scale.grown(brokers, clients if brokers == sizes[-1] else clients // 10, told=say) for brokers in sizes]
    world = churn.Churn(brokers=200, joins=20, crashes=6, phones=40, handoffs=200) if quick else churn.Churn()
    scaled = growth.Scaled(
        command=f"godwit lab gathering --scale{' --quick' * quick}",
        made=made,
        sizes=found,
        survived=churn.survived(world, say),
    )
    figures = {"How the ring grows": growth.drawn(found)}
    return _written(options, "ring-scale", scaled, growth.scale_page(scaled), figures)


def _recorded(options: GatheringOptions, data: str) -> int:
    folder, minutes = Path(data), options.minutes
    for name in (recorded.TAXIS, recorded.CELLS, recorded.STATIONS, recorded.READINGS):
        if not (folder / name).is_file():
            raise InputError(f"--data {data}: there is no {name} in it")
    say, made = _progress(), provenance.of(tree_drive.__name__)
    whole = recorded.Recording(folder=data, minutes=minutes)
    part = recorded.Recording(folder=data, minutes=min(minutes, tree_drive.MINUTES), brokers=tree_drive.BROKERS)
    runs = {
        "ring, all brokers": recorded.Drive(whole, say).run(recorded.RingNet),
        f"ring, {part.minutes:g} minutes": recorded.Drive(part, say).run(recorded.RingNet),
        f"tree, {part.minutes:g} minutes": recorded.Drive(part, say).run(tree_drive.TreeNet),
    }
    drives = growth.Drives(
        command=f"godwit lab gathering --data DIR --minutes {minutes:g}",
        made=made,
        runs=runs,
    )
    return _written(options, "ring-recorded", drives, growth.recorded_page(drives), {})


def _progress() -> Callable[[str], None]:
    console = Reports().console
    return lambda text: console.print(text, style="dim", highlight=False)


def _written(
    options: GatheringOptions, name: str, found: msgspec.Struct, page: pages.Page, figures: Mapping[str, bytes]
) -> int:
    """What was measured as JSON, and the page that follows from it."""
    folder = Path(options.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {options.out}: cannot be made: {error.strerror}") from None
    _write_text(folder / f"{name}.json", msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    _write_text(folder / f"{name}.md", pages.markdown(page))
    _write_text(folder / f"{name}.html", pages.html(page, figures))
    tell(page, options.where.as_json)
    return 0

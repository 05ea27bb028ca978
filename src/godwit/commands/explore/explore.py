"""`godwit explore`: random worlds of deployed brokers in which things go wrong, and whether promises were kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from godwit.commands.command import Json
from godwit.commands.console import InputError

KEPT, BROKEN, INTERRUPTED = 0, 1, 130
SEEDS = 100


class ExploreOptions(msgspec.Struct, frozen=True, kw_only=True):
    seeds: Annotated[int | None, typer.Option(min=1, metavar="N", help="How many seeds.", show_default="100")] = None
    minutes: Annotated[float | None, typer.Option(min=0, metavar="M", help="Seeds for so long.")] = None
    first: Annotated[int, typer.Option(min=0, metavar="SEED", help="The first seed.")] = 0
    fabric: Annotated[
        str, typer.Option(help="What joins the brokers: tree, dht, adhoc, sites, sites-two, sites-dht.")
    ] = "tree"
    worlds: Annotated[
        str,
        typer.Option(
            help="any: as seeds have them; lasting: all with questions, replays and rates; apart: one client among "
            "brokers that are cut off."
        ),
    ] = "any"
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Results and failures; what is there is not tried again.")
    ] = Path("explored")
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: one a core.")] = 0
    shrink: Annotated[bool, typer.Option(help="Look for the smallest schedule that still fails.")] = True
    as_json: Json = False
    replay: Annotated[
        str | None, typer.Option(metavar="FILE|SEED", help="Carry out one plan and show what was said.")
    ] = None


def explore(options: ExploreOptions) -> int:
    """Run deployed brokers in the simulator while brokers crash, disks fail, links break and clients roam.

    A seed decides brokers, clients, filters, load and faults. Judges outside say whether anything acknowledged was
    lost, came twice or out of order, and whether all ends well once nothing is wrong. A failure is shrunk to the
    smallest schedule that still fails, and is written as JSON, as text and as a picture.

    Examples:

        godwit explore --seeds 200

        godwit explore --minutes 30 --first 5000 --out night

        godwit explore --replay explored/failures/seed-41.small.json

        godwit explore --replay 41

        godwit explore --worlds lasting --seeds 200

    Exit status: 0 where all promises were kept, 1 where some were not, 2 for bad input, 130 after Ctrl-C.
    """
    from godwit.commands.explore.sweep import FABRICS, WORLDS, Land, Sweep, replayed

    if options.fabric not in FABRICS:
        raise InputError(f"--fabric {options.fabric}: one of {', '.join(FABRICS)}")
    if options.worlds not in WORLDS:
        raise InputError(f"--worlds {options.worlds}: one of {', '.join(WORLDS)}")
    land = Land(options.fabric, options.worlds)
    if options.replay is not None:
        return BROKEN if replayed(options.replay, land, options.out, shrink=options.shrink) else KEPT
    if options.seeds is not None and options.minutes is not None:
        raise InputError("--seeds and --minutes: give one of them")
    sweep = Sweep(options.out, land, workers=options.workers, shrink=options.shrink, as_json=options.as_json)
    try:
        sweep.run(options.first, _count(options), options.minutes)
    except KeyboardInterrupt:
        sweep.conclude(interrupted=True)
        return INTERRUPTED
    return BROKEN if sweep.conclude() else KEPT


def _count(options: ExploreOptions) -> int | None:
    return None if options.minutes is not None else options.seeds or SEEDS

"""`godwit demo`: subscribers roam between three real brokers, and one of the brokers is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from godwit.commands.command import Json
from godwit.commands.console import InputError, print_json

FINISHED, WRONG, INTERRUPTED = 0, 1, 130
NAMES = ["harbour", "market", "station"]
PLACES = ["38.7055,-9.1365", "38.7139,-9.1394", "38.7436,-9.1302"]


class DemoOptions(msgspec.Struct, frozen=True, kw_only=True):
    seconds: Annotated[float, typer.Option(min=2, metavar="S", help="How long taxis report.")] = 20.0
    walkers: Annotated[int, typer.Option(min=1, metavar="N", help="How many people walk from broker to broker.")] = 20
    seed: Annotated[int, typer.Option(metavar="SEED", help="Another seed, another town.")] = 1
    fabric: Annotated[
        Literal["tree", "dht"],
        typer.Option(help="A tree of brokers, or a ring in which each owns a cell."),
    ] = "tree"
    as_json: Json = False


def demo(options: DemoOptions) -> int:
    """Watch subscribers roam between three real brokers, one of which is killed, and see whether anything is lost.

    Taxis report where they are; people walk from broker to broker without a word and want some of it, by content and by
    place. The account at the end is drawn up from what was published, what each wanted and what each got.

    Examples:

        godwit demo

        godwit demo --walkers 100 --seconds 40 --seed 7

        godwit demo --fabric dht

    Exit status: 0 where nothing was lost, came twice or out of order; 1 where something was, with what was seen of it;
    2 where the brokers did not start.
    """
    import asyncio
    import shutil
    import tempfile
    from functools import partial

    from rich.console import Console

    from godwit.commands.demo.findings import findings, slow
    from godwit.commands.demo.play import Plan, performed
    from godwit.commands.demo.view import concluded, watched
    from godwit.errors import GodwitError
    from godwit.net.processes import BrokerError, cluster, ring

    plan = Plan(seconds=options.seconds, walkers=options.walkers, seed=options.seed)
    console = Console(highlight=False, stderr=options.as_json)
    console.print(
        f"Three brokers, {plan.taxis} taxis that report {plan.events_per_s:.0f} times a second, {plan.walkers} people"
        f" who walk from broker to broker\nwithout a word and want some of it, by content and by place. One broker will"
        f" be killed. About {plan.seconds + 8:.0f} s.\n"
    )
    folder = Path(tempfile.mkdtemp(prefix="godwit-demo-"))
    kept = False
    try:
        brokers = cluster(NAMES, folder) if options.fabric == "tree" else ring(NAMES, PLACES, folder)
        play = asyncio.run(performed(plan, brokers, partial(watched, console=console), findings))
        verdict = play.verdict()
        kept = not verdict.is_clean
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokerError, GodwitError, ExceptionGroup) as error:
        kept = True
        raise InputError(f"demo: {_first(error)}; the brokers' logs are in {folder}/*/log") from None
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    console.print()
    concluded(console, verdict)
    for line in slow(play.handoffs, play.outage, play.late_s):
        console.print(line, markup=False)
    if options.as_json:
        print_json(verdict)
    if kept:
        console.print("\nWhat was seen:", *play.findings, f"the brokers' logs are in {folder}/*/log", sep="\n  ")
    return FINISHED if verdict.is_clean else WRONG


def _first(error: Exception) -> Exception:
    """What went wrong first, where several things did at once."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error

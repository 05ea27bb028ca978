"""`godwit sim`: what can be typed. The work is in `godwit.commands.sim.sim`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from godwit.commands.command import Json


class SimOptions(msgspec.Struct, frozen=True, kw_only=True):
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A .toml file; see examples/scenarios.")]
    seed: Annotated[int, typer.Option(min=0, metavar="SEED", help="Decides everything that chance decides.")] = 1
    until_s: Annotated[float | None, typer.Option("--until", metavar="S", help="Stop at this simulated second.")] = None
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every recorded fact as Parquet.")] = None
    watch: Annotated[bool, typer.Option("--watch", help="Draw nodes, tree and messages as they move.")] = False
    inspect: Annotated[
        str | None, typer.Option(metavar="NODE", help="Show this broker's tables R and T and queues Q.")
    ] = None
    animation: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an .html animation that needs nothing but a browser.")
    ] = None
    as_json: Json = False


def sim(options: SimOptions) -> int:
    """Play a scenario in virtual time; the same seed always gives the same digest.

    Examples:

        godwit sim examples/scenarios/partition.toml --seed 7

        godwit sim examples/scenarios/walking.toml --watch --inspect b3

        godwit sim examples/scenarios/c8.toml --trace c8.parquet --animation c8.html

        godwit sim examples/ring.toml --watch --animation ring.html

    Exit status: 0; 2 where the scenario or an option is wrong; 130 after Ctrl-C, with the trace up to then.
    """
    from godwit.commands.sim.sim import run

    return run(options)

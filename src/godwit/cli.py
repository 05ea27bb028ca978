"""What can be typed: `godwit` and its commands. Each is declared beside its work, in `godwit.commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from godwit import __version__
from godwit.commands.city.city import city
from godwit.commands.command import command
from godwit.commands.demo.demo import demo
from godwit.commands.explain import filters
from godwit.commands.explore.explore import explore
from godwit.commands.lab.experiments import lab
from godwit.commands.match.match import match
from godwit.commands.neighbors import neighbors
from godwit.commands.pipeline.jobs import jobs
from godwit.commands.pubsub import pub, sub
from godwit.commands.serve import password, serve
from godwit.commands.top import top

app = typer.Typer(
    name="godwit",
    help="Content-based publish/subscribe for things that move.",
    epilog="Begin with: godwit demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(filters, name="filter")
app.add_typer(lab, name="lab")
app.add_typer(jobs, name="pipeline")
app.add_typer(neighbors, name="neighbors")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"godwit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None: ...


command(app)(match)
command(app)(city)
command(app)(demo)
command(app)(explore)
command(app)(pub)
command(app)(sub)
command(app)(top)
app.command()(password)
command(app)(serve)


@app.command()
def sim(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A .toml file; see examples/scenarios.")],
    seed: Annotated[int, typer.Option(min=0, help="Decides everything that chance decides.")] = 1,
    until: Annotated[float | None, typer.Option(metavar="S", help="Stop at this simulated second.")] = None,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every recorded fact as Parquet.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Draw nodes, tree and messages as they move.")] = False,
    inspect: Annotated[
        str | None, typer.Option(metavar="NODE", help="Show this broker's tables R and T and queues Q.")
    ] = None,
    animation: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an .html animation that needs nothing but a browser.")
    ] = None,
) -> None:
    """Play a scenario in virtual time; the same seed always gives the same digest.

    Examples:

        godwit sim examples/scenarios/partition.toml --seed 7

        godwit sim examples/scenarios/walking.toml --watch --inspect b3

        godwit sim examples/scenarios/c8.toml --trace c8.parquet --animation c8.html

        godwit sim examples/ring.toml --watch --animation ring.html

    Exit status: 0; 2 where the scenario or an option is wrong; 130 after Ctrl-C, with the trace up to then.
    """
    from godwit.commands.console import errors_told
    from godwit.commands.sim.sim import Options, run

    with errors_told():
        status = run(
            Options(
                scenario=scenario,
                seed=seed,
                until_s=until,
                trace=trace,
                watch=watch,
                inspect=inspect,
                animation=animation,
            )
        )
    raise typer.Exit(status)


def main() -> None:
    """The console script."""
    app()

"""What can be typed: `godwit` and its commands. Each is declared beside its work, in `godwit.commands`."""

from __future__ import annotations

from typing import Annotated

import typer

from godwit import __version__
from godwit.commands.backup import backup, restore
from godwit.commands.city.city import city
from godwit.commands.command import command, pasteable
from godwit.commands.demo.demo import demo
from godwit.commands.explain import filters
from godwit.commands.explore.explore import explore
from godwit.commands.help import Tasks
from godwit.commands.lab.experiments import lab
from godwit.commands.lasting.collect import collect
from godwit.commands.lasting.query import get, query
from godwit.commands.match.match import match
from godwit.commands.neighbors import neighbors
from godwit.commands.operators.admin import admin
from godwit.commands.operators.console import console
from godwit.commands.pipeline.jobs import jobs
from godwit.commands.pubsub import pub, sub
from godwit.commands.serve import password, serve
from godwit.commands.sim.options import sim
from godwit.commands.token import token
from godwit.commands.top import top
from godwit.commands.upkeep.prepare import prepare
from godwit.commands.upkeep.ready import ready

app = typer.Typer(
    name="godwit",
    help="Content-based publish/subscribe for things that move.",
    epilog="Begin with: godwit demo, or godwit serve in one terminal and godwit top in another",
    cls=Tasks,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(admin, name="admin")
app.add_typer(filters, name="filter")
app.add_typer(lab, name="lab")
app.add_typer(jobs, name="pipeline")
app.add_typer(neighbors, name="neighbors")
app.add_typer(token, name="token")


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


command(app)(backup)
command(app)(restore)
command(app)(match)
command(app)(city)
command(app)(console)
command(app)(demo)
command(app)(explore)
command(app)(prepare)
command(app)(ready)
command(app)(pub)
command(app)(sub)
command(app)(query)
command(app)(get)
command(app, extra="collection")(collect)
command(app)(top)
app.command(help=pasteable(password.__doc__ or ""))(password)
command(app)(serve)
command(app)(sim)


def main() -> None:
    """The console script."""
    app(prog_name="godwit")

"""`godwit filter explain`: what can be typed. The work is in `godwit.commands.explanation`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from godwit.commands import hints
from godwit.commands.command import Json, command
from godwit.commands.console import Reports, print_json, printable

FINISHED = 0

filters = typer.Typer(help="Look into filters.", no_args_is_help=True)


class ExplainOptions(msgspec.Struct, frozen=True, kw_only=True):
    text: Annotated[str, typer.Argument(metavar="FILTER", help="A condition, as in `kind = 'taxi' AND speed > 50`.")]
    against: Annotated[
        str | None, typer.Option(metavar="FILTER", help="Another filter: which covers which, and do they overlap?")
    ] = None
    event: Annotated[
        str | None, typer.Option(metavar="JSON", help="An event as a flat JSON object: does it match, and if not, why?")
    ] = None
    as_json: Json = False


@command(filters)
def explain(options: ExplainOptions) -> int:
    """Say what a filter means: its canonical form, how it relates to another, and its Spark SQL condition.

    Examples:

        godwit filter explain "pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)"

        godwit filter explain "speed > 50" --against "speed BETWEEN 60 AND 90"

        godwit filter explain "kind IN ('bus', 'tram') OR delay > 300" --event '{"kind": "taxi", "delay": 20}'

    Exit status: 0, or 2 where a filter or the event is not well formed.
    """
    from godwit.commands.explanation import explained, told

    explanation = explained(options.text, options.against, options.event)
    for hint in hints.of_condition(options.text):
        Reports().say(f"godwit: {hint}")
    if options.as_json:
        print_json(explanation)
    else:
        typer.echo("\n".join(printable(line) for line in told(explanation)))
    return FINISHED

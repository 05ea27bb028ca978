"""`godwit city`: a city's worth of subscriptions matched live.

Libraries that take their time to load are imported behind what is printed before them: a user who waits should read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.command import Json
from godwit.commands.console import print_json

if TYPE_CHECKING:
    from rich.console import Console

    from godwit.commands.city.screen import Watch

FINISHED, WRONG, INTERRUPTED = 0, 1, 130


class CityOptions(msgspec.Struct, frozen=True, kw_only=True):
    seconds: Annotated[float, typer.Option(min=0.1, metavar="S", help="How long events stream.")] = 20.0
    subscriptions: Annotated[int, typer.Option(min=1, metavar="N", help="How many people subscribe.")] = 100_000
    seed: Annotated[int, typer.Option(metavar="SEED", help="Another seed, another city.")] = 1
    as_json: Json = False


def city(options: CityOptions) -> int:
    """Watch a city's worth of subscriptions being matched, live.

    Taxis drive, sensors measure and people write; each event goes to whoever asked for its content and place. The speed
    is measured as you watch, and a random sample of events is checked against a matcher too simple to be wrong.

    Examples:

        godwit city

        godwit city --seconds 5 --subscriptions 1000000
    """
    from rich.console import Console

    people = options.subscriptions
    console = Console(highlight=False, stderr=options.as_json)
    console.print(f"{people:,} people say what they want to hear of, not where it comes from:\n")
    _introduce(console, people)

    import numpy as np

    from godwit.commands.city.screen import Watch
    from godwit.commands.city.show import Show, prepared

    random = np.random.default_rng(options.seed)
    show = Show(*prepared(console, people, random), random)
    watch = Watch(np.zeros(people, np.int64), options.seconds)
    status = FINISHED
    try:
        show.run(console, watch)
    except KeyboardInterrupt:
        status = INTERRUPTED
    _conclude(console, watch)
    if options.as_json:
        print_json(_account(watch))
    return WRONG if watch.differences else status


def _account(watch: Watch) -> dict[str, float]:
    return {
        "people": len(watch.wanted),
        "people_who_heard": int((watch.wanted > 0).sum()),
        "events": watch.events,
        "deliveries": watch.deliveries,
        "matching_s": watch.matching_s,
        "events_per_s": watch.events_per_s,
        "deliveries_per_s": watch.deliveries_per_s,
        "verified": watch.verified,
        "differences": watch.differences,
    }


def _introduce(console: Console, people: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from godwit.commands.city.wishes import WISHES

    asked = Table.grid(padding=(0, 2))
    asked.add_column(justify="right")
    asked.add_column(style="cyan")
    for wish in WISHES:
        asked.add_row(f"{wish.per_mille * people // 1000:,}", Text(wish.text))
    console.print(asked)
    console.print("\neach with constants of their own: places, limits, words.\n")


def _conclude(console: Console, watch: Watch) -> None:
    people, hearing = len(watch.wanted), int((watch.wanted > 0).sum())
    console.print(
        f"\n{watch.events:,} events brought {watch.deliveries:,} deliveries to {hearing:,} of {people:,} people.\n"
        f"The matcher took {watch.matching_s:.1f} s of one core for it: {watch.events_per_s:,.0f} events/s,"
        f" {watch.deliveries_per_s:,.0f} deliveries/s.\n"
        f"{watch.verdict().capitalize()} to trying each subscription by itself."
    )

"""`godwit city`: a city's worth of subscriptions matched live.

Libraries that take their time to load are imported behind what is printed before them: a user who waits should read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from godwit.commands.city.screen import Watch

FINISHED, WRONG, INTERRUPTED = 0, 1, 130


def run(seconds: float, people: int, seed: int) -> int:
    """Show it; the exit status."""
    console = Console(highlight=False)
    console.print(f"{people:,} people say what they want to hear of, not where it comes from:\n")
    _introduce(console, people)

    import numpy as np

    from godwit.commands.city.screen import Watch
    from godwit.commands.city.show import Show, prepared

    random = np.random.default_rng(seed)
    show = Show(*prepared(console, people, random), random)
    watch = Watch(np.zeros(people, np.int64), seconds)
    status = FINISHED
    try:
        show.run(console, watch)
    except KeyboardInterrupt:
        status = INTERRUPTED
    _conclude(console, watch)
    return WRONG if watch.differences else status


def _introduce(console: Console, people: int) -> None:
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

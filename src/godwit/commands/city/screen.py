"""What the demo shows: a city map, figures, deliveries; on a terminal of 80 x 24, or as plain lines."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from godwit.commands.city import world

MAP_ROWS, MAP_COLUMNS = 11, 40
WIDTH_MIN, HEIGHT_MIN = 76, 23
HEARD_MAX = 4
SPEEDS_MAX = 30
BUSIEST = 3
FADE = 0.7
"""How much of the map's heat is left at the next picture."""

SPARKS = "▁▂▃▄▅▆▇█"
SHADES = (("·", "dim"), ("░", "yellow"), ("▒", "yellow"), ("▓", "dark_orange"), ("█", "red"))


@dataclass(slots=True)
class Watch:
    """What has happened so far. `matching_s` is the time in the matcher; making events and showing take the rest."""

    wanted: NDArray[np.int64]
    seconds: float
    events: int = 0
    deliveries: int = 0
    matching_s: float = 0.0
    verified: int = 0
    differences: int = 0
    cloud: tuple[float, float] = (0.0, 0.0)
    started: float = field(default_factory=time.monotonic)
    heat: NDArray[np.float64] = field(default_factory=lambda: np.zeros(MAP_ROWS * MAP_COLUMNS))
    heard: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=HEARD_MAX))
    speeds: deque[float] = field(default_factory=lambda: deque(maxlen=SPEEDS_MAX))
    _marked: tuple[int, float] = (0, 0.0)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    @property
    def events_per_s(self) -> float:
        return self.events / max(self.matching_s, 1e-9)

    @property
    def deliveries_per_s(self) -> float:
        return self.deliveries / max(self.matching_s, 1e-9)

    def count(self, batch: pa.RecordBatch, counts: NDArray[np.int64], ids: NDArray[np.int64], took_s: float) -> None:
        self.events += len(counts)
        self.deliveries += len(ids)
        self.matching_s += took_s
        self.wanted += np.bincount(ids, minlength=len(self.wanted))
        east, north = world.metres_at(batch.column("lat").to_numpy(), batch.column("lon").to_numpy())
        self.heat += np.bincount(_cells(east, north), weights=counts, minlength=len(self.heat))

    def mark(self) -> None:
        """Note the speed since the last mark."""
        events, matching_s = self._marked
        if self.matching_s > matching_s:
            self.speeds.append((self.events - events) / (self.matching_s - matching_s))
        self._marked = (self.events, self.matching_s)

    def busiest(self) -> list[int]:
        """The numbers of the subscriptions that heard most so far."""
        top = np.argpartition(-self.wanted, min(BUSIEST, len(self.wanted) - 1))[:BUSIEST]
        return sorted(top.tolist(), key=lambda at: -int(self.wanted[at]))

    def verdict(self) -> str:
        return f"verified {self.verified:,} events, {self.differences:,} differences"


def _cells(east_m: world.Floats, north_m: world.Floats) -> world.Ints:
    column = np.clip(east_m / world.WIDTH_M * MAP_COLUMNS, 0, MAP_COLUMNS - 1).astype(np.int64)
    row = np.clip((1 - north_m / world.HEIGHT_M) * MAP_ROWS, 0, MAP_ROWS - 1).astype(np.int64)
    cells: world.Ints = row * MAP_COLUMNS + column
    return cells


def display_for(console: Console, watch: Watch) -> Plain | Picture:
    """A picture where there is room for one."""
    roomy = console.is_terminal and console.width >= WIDTH_MIN and console.height >= HEIGHT_MIN
    return Picture(console, watch) if roomy else Plain(console, watch)


class Plain:
    """For pipes and logs: a line every two seconds."""

    every_s = 2.0

    def __init__(self, console: Console, watch: Watch) -> None:
        self.console = console
        self.watch = watch

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, busiest: Sequence[tuple[int, str]]) -> None:
        watch = self.watch
        news = "; ".join(f"{who} hears: {what}" for who, what in list(watch.heard)[-1:])
        self.console.print(
            f"{watch.elapsed_s:5.1f} s  {watch.events:,} events at {watch.events_per_s:,.0f}/s, {watch.deliveries:,}"
            f" deliveries at {watch.deliveries_per_s:,.0f}/s; {watch.verdict()}; {news}",
            soft_wrap=True,
            markup=False,
        )


class Picture:
    """For terminals: one picture that changes four times a second."""

    every_s = 0.25

    def __init__(self, console: Console, watch: Watch) -> None:
        self.watch = watch
        self.live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Picture:
        self.live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def show(self, busiest: Sequence[tuple[int, str]]) -> None:
        self.watch.mark()
        self.live.update(self.picture(busiest), refresh=True)
        self.watch.heat *= FADE

    def picture(self, busiest: Sequence[tuple[int, str]]) -> RenderableType:
        watch = self.watch
        upper = Table.grid(expand=True)
        upper.add_column(width=MAP_COLUMNS + 4)
        upper.add_column(ratio=1)
        upper.add_row(
            Panel(city_map(watch), title=f"{world.NAME}: where events find people", padding=(0, 1)),
            Panel(_figures(watch), title="matching", height=MAP_ROWS + 2, padding=(0, 1)),
        )
        heard = [*watch.heard, *[("", "")] * (HEARD_MAX - len(watch.heard))]
        lower = Table.grid(expand=True, padding=(0, 1, 0, 0))
        lower.add_column(justify="right", style="cyan", no_wrap=True, min_width=13)
        lower.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        lower.add_row("", Text("some of those who hear something", "dim"))
        for who, what in heard:
            lower.add_row(who, Text(what))
        lower.add_row("", Text("the busiest subscriptions", "dim"))
        for count, text in busiest:
            lower.add_row(f"{count:,}", Text(text))
        left_s = max(watch.seconds - watch.elapsed_s, 0.0)
        verdict = Text(watch.verdict(), "bold red" if watch.differences else "green")
        lower.add_row("", verdict.append(f"   {left_s:.0f} s to go" if left_s else "", "not bold white"))
        return Group(upper, lower)


def city_map(watch: Watch) -> Text:
    """Each character is a piece of the city; the denser it is, the more deliveries came from there just now."""
    drawn = Text()
    heat = np.sqrt(watch.heat / max(float(watch.heat.max()), 1e-9))
    levels = np.ceil(heat * (len(SHADES) - 1)).astype(int).reshape(MAP_ROWS, MAP_COLUMNS)
    cloud = int(_cells(np.array([watch.cloud[0]]), np.array([watch.cloud[1]]))[0])
    for row in range(MAP_ROWS):
        for column in range(MAP_COLUMNS):
            if row * MAP_COLUMNS + column == cloud:
                drawn.append("@", "bold magenta")
            elif levels[row, column]:
                drawn.append(*SHADES[levels[row, column]])
            else:
                drawn.append(*_ground(row, column))
        drawn.append("\n")
    drawn.rstrip()
    return drawn


@cache
def _ground(row: int, column: int) -> tuple[str, str]:
    north = np.array([(1 - (row + 0.5) / MAP_ROWS) * world.HEIGHT_M])
    east = (column + 0.5) / MAP_COLUMNS * world.WIDTH_M
    if east < world.coast_m(north)[0]:
        return "~", "blue"
    river = abs(east - world.river_m(north)[0]) < world.WIDTH_M / MAP_COLUMNS / 2
    return ("≈", "blue") if river else SHADES[0]


def _figures(watch: Watch) -> RenderableType:
    figures = Table.grid(padding=(0, 1))
    figures.add_column(justify="right", style="bold")
    figures.add_column()
    figures.add_row(f"{len(watch.wanted):,}", "people subscribe")
    figures.add_row(Text(f"{watch.events_per_s:,.0f}", "green"), Text("events/s", "green"))
    figures.add_row(Text(f"{watch.deliveries_per_s:,.0f}", "green"), Text("deliveries/s", "green"))
    figures.add_row(f"{watch.deliveries / max(watch.events, 1):.1f}", "hear of each event")
    figures.add_row("", "")
    figures.add_row(f"{watch.events:,}", "events")
    figures.add_row(f"{watch.deliveries:,}", "deliveries")
    return Group(figures, Text(_sparks(watch.speeds), "cyan"), Text("\n@ bad air  ~ bay  ≈ river", "dim"))


def _sparks(speeds: Sequence[float]) -> str:
    most = max(speeds, default=1.0)
    return "".join(SPARKS[min(int(speed / most * len(SPARKS)), len(SPARKS) - 1)] for speed in speeds)

"""A run as it happens, in the terminal: a map in characters, the tree, messages that flash, and a broker's tables."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from godwit.commands.console import shortened
from godwit.commands.sim.animation import BEACONS
from godwit.protocols.host import NodeId
from godwit.sim.brokers.production import Production
from godwit.sim.sight import Seen, Sight, Tables, frame_of
from godwit.sim.stage import Arrival, Stage

MAP_ROWS, MAP_COLUMNS = 20, 56
LOG_MAX = 8
TABLE_ROWS_MAX = 8
FLASHES_MAX = 12
EVERY_S = 0.1
"""Between two pictures, of the watcher's time."""

WATCHED_S = 60.0
"""A long scenario is shown faster than life, so that it takes about this long."""

STYLES = {"brokers": "cyan", "subscribers": "green", "publishers": "yellow"}

Cell = tuple[int, int]
Canvas = dict[Cell, tuple[str, str]]


class Theatre:
    """Shows every sight it is given, no faster than the pace: a picture on a terminal, else a line now and then."""

    def __init__(self, console: Console, stage: Stage | Production) -> None:
        self.console = console
        self.stage = stage
        self.log: deque[Arrival] = deque(maxlen=LOG_MAX)
        self.heard: Counter[str] = Counter()
        self.live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._due = time.monotonic()
        self._said_s = -math.inf

    def __enter__(self) -> Theatre:
        if self.live is not None:
            self.live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, sight: Sight) -> None:
        self.heard.update(arrival.kind for arrival in sight.arrivals)
        self.log.extend(arrival for arrival in sight.arrivals if arrival.kind not in BEACONS)
        if self.live is not None:
            self.live.update(self.picture(sight), refresh=True)
            self._due = max(self._due + EVERY_S, time.monotonic() - EVERY_S)
            time.sleep(max(0.0, self._due - time.monotonic()))
        elif sight.time_s >= self._said_s + self.stage.scenario.duration_s / 20:
            self._said_s = sight.time_s
            self.console.print(line(sight, self.heard), markup=False, soft_wrap=True)
            self.heard.clear()

    def picture(self, sight: Sight) -> RenderableType:
        upper = Table.grid(padding=(0, 1))
        upper.add_row(
            Panel(drawn(sight, frame_of(self.stage, [sight])), title=f"{sight.time_s:.1f} s", padding=0),
            Group(*(tables_shown(sight.tables) if sight.tables is not None else [figures(sight)])),
        )
        told = Text("\n".join(_told(arrival) for arrival in self.log), "dim")
        return Group(upper, told, Text("* leader  x down  · to the parent or broker  ● message  (n) waiting", "dim"))


def step_s(duration_s: float) -> float:
    """Simulated time between two pictures."""
    return EVERY_S * max(1.0, duration_s / WATCHED_S)


def line(sight: Sight, heard: Counter[str]) -> str:
    leaders = ", ".join(node.name for node in sight.nodes if node.leads) or "nobody"
    kinds = ", ".join(f"{count} {kind}" for kind, count in heard.most_common(4))
    waiting = sum(node.queued for node in sight.nodes)
    return f"{sight.time_s:8.1f} s  {leaders} leading; {waiting} waiting; heard since: {kinds or 'nothing'}"


def drawn(sight: Sight, frame: tuple[float, float, float, float]) -> Text:
    """The map: links first, messages over them, nodes over all."""
    cells = {node.name: _cell(node, frame) for node in sight.nodes if not math.isnan(node.x_m)}
    canvas: Canvas = {}
    for node in sight.nodes:
        _draw_line(canvas, cells, node.name, node.up, ("·", "dim"))
    for here, there in sight.cuts:
        _draw_line(canvas, cells, here, there, ("-", "red"))
    flashes = [arrival for arrival in sight.arrivals if arrival.kind not in BEACONS][-FLASHES_MAX:]
    for arrival in flashes:
        _draw_line(canvas, cells, arrival.sender, arrival.to, ("●", "bold magenta"))
    for node in sight.nodes:
        if node.name in cells:
            _draw_label(canvas, cells[node.name], node)
    text = Text()
    for row in range(MAP_ROWS):
        for column in range(MAP_COLUMNS):
            text.append(*canvas.get((row, column), (" ", "")))
        text.append("\n" if row < MAP_ROWS - 1 else "")
    return text


def _cell(node: Seen, frame: tuple[float, float, float, float]) -> Cell:
    left, top, right, bottom = frame
    row = round((node.y_m - top) / (bottom - top) * (MAP_ROWS - 1))
    column = round((node.x_m - left) / (right - left) * (MAP_COLUMNS - 5))
    return min(max(row, 0), MAP_ROWS - 1), min(max(column, 0), MAP_COLUMNS - 5)


def _draw_line(
    canvas: Canvas, cells: dict[NodeId, Cell], here: NodeId, there: NodeId | None, mark: tuple[str, str]
) -> None:
    if there is None or here not in cells or there not in cells:
        return
    (row, column), (end_row, end_column) = cells[here], cells[there]
    steps = max(abs(end_row - row), abs(end_column - column), 1)
    for step in range(1, steps):
        share = step / steps
        canvas[round(row + (end_row - row) * share), round(column + (end_column - column) * share)] = mark


def _draw_label(canvas: Canvas, cell: Cell, node: Seen) -> None:
    label = node.name + ("*" if node.leads else "") + ("" if node.alive else "x")
    label += f"({node.queued})" if node.queued else ""
    style = STYLES[node.role] if node.alive else "red"
    for offset, letter in enumerate(label):
        canvas[cell[0], cell[1] + offset] = (letter, f"bold {style}" if node.leads else style)


def figures(sight: Sight) -> RenderableType:
    heard = Counter(arrival.kind for arrival in sight.arrivals)
    table = Table(title="just heard", box=None, show_header=False)
    for kind, count in heard.most_common(MAP_ROWS - 2):
        table.add_row(str(count), kind)
    return table


def tables_shown(tables: Tables) -> list[RenderableType]:
    """R, T and Q of the inspected broker."""
    columns: dict[str, tuple[tuple[str, ...], Sequence[tuple[object, ...]]]] = {
        f"R of {tables.broker}": (("filter", "hop", "subscriber"), tables.routes),
        f"T of {tables.broker}": (("subscriber", "t", "h"), tables.known),
        f"Q of {tables.broker}": (("subscriber", "events"), tables.queues),
    }
    shown: list[RenderableType] = []
    for title, (heads, rows) in columns.items():
        table = Table(*heads, title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
        for row in rows[:TABLE_ROWS_MAX]:
            table.add_row(*(Text(shortened(str(value), 34)) for value in row))
        if len(rows) > TABLE_ROWS_MAX:
            table.add_row(Text(f"... and {len(rows) - TABLE_ROWS_MAX} more", "dim"))
        shown.append(table)
    return shown


def _told(arrival: Arrival) -> str:
    return f"{arrival.time_s:9.3f}  {arrival.sender} -> {arrival.to}  {arrival.kind}"

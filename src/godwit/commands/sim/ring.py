"""`godwit sim` for a ring: the partition with its names, message paths and relocations, live and as a page."""

from __future__ import annotations

import time
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from godwit.commands.console import Bar, InputError, Reports, print_json
from godwit.sim.ring.ring_stage import SIDE, RingSight, RingStage, load_ring
from godwit.sim.scenario import ScenarioError

ROWS, COLUMNS = 30, 76
EVERY_S = 0.12
PICTURES_MAX = 480
STEP_S = 0.25
ARROWS_MAX = 60
LOG_MAX = 9
FLASHES_MAX = 10
COLOURS = {"Sub": "green", "Unsub": "green", "Pub": "yellow", "Matched": "magenta", "Forward": "red", "Handover": "red"}

Cell = tuple[int, int]
Canvas = dict[Cell, tuple[str, str]]


class RingRun(msgspec.Struct, frozen=True, kw_only=True):
    scenario: Path
    seed: int
    until_s: float | None = None
    trace: Path | None = None
    watch: bool = False
    animation: Path | None = None
    as_json: bool = False


def run(options: RingRun) -> int:
    """Play it; the exit status."""
    try:
        scenario = load_ring(options.scenario)
    except ScenarioError as error:
        raise InputError(str(error)) from None
    if options.animation is not None and options.animation.suffix != ".html":
        raise InputError(f"--animation {options.animation}: name a file that ends in .html")
    console = Console(highlight=False, stderr=options.as_json)
    stage = RingStage(scenario, options.seed)
    end_s = scenario.duration_s if options.until_s is None else options.until_s
    console.print(
        f"{scenario.title}\nscenario {options.scenario}  seed {options.seed}  until {end_s:g} s", markup=False
    )
    sights: list[RingSight] = []
    status = 0
    try:
        with Bar(Reports().console, "simulating") as bar, ExitStack() as stack:
            live = stack.enter_context(Live(console=console)) if options.watch and console.is_terminal else None
            _play(stage, end_s, sights, live, bar, watched=options.watch, console=console)
    except KeyboardInterrupt:
        status = 130
    _conclude(console, options, stage, sights)
    if options.as_json:
        print_json(stage.summary() | {"digest": stage.telling.trace.digest})
    return status


def _play(
    stage: RingStage,
    end_s: float,
    sights: list[RingSight],
    live: Live | None,
    bar: Bar,
    *,
    watched: bool,
    console: Console,
) -> None:
    step_s = max(STEP_S, end_s / PICTURES_MAX)
    log: list[str] = []
    for number in range(1, round(end_s / step_s) + 1):
        stage.run(min(number * step_s, end_s))
        sight = stage.look()
        sights.append(sight)
        log += sight.told
        bar.update(number * step_s / end_s, f"{sight.time_s:,.0f} of {end_s:,.0f} s")
        if live is not None:
            live.update(picture(sight, log[-LOG_MAX:]))
            time.sleep(EVERY_S)
        elif watched:
            for line in sight.told:
                console.print(line, markup=False, soft_wrap=True)


def _conclude(console: Console, options: RingRun, stage: RingStage, sights: list[RingSight]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    for name, value in stage.summary().items():
        table.add_row(name, f"{value:,}")
    console.print(table)
    console.print(f"digest {stage.telling.trace.digest}")
    if options.trace is not None:
        stage.telling.trace.write(options.trace)
        console.print(
            f"trace: {len(stage.telling.trace.rows):,} records in {options.trace}", markup=False, soft_wrap=True
        )
    if options.animation is not None and sights:
        write(options.animation, stage, sights)
        console.print(f"animation: {len(sights)} pictures in {options.animation}", markup=False, soft_wrap=True)


def picture(sight: RingSight, log: list[str]) -> RenderableType:
    """The map in characters: cells with their names, phones where they are, the last messages as dots."""
    shown = Panel(drawn(sight), title=f"{sight.time_s:.1f} s", padding=0)
    legend = "# broker and the name of its cell  o phone (n waiting)  s sensor  · last messages"
    return Group(shown, Text("\n".join(log), "dim"), Text(legend, "dim"))


def drawn(sight: RingSight) -> Text:
    canvas: Canvas = {}
    for cell in sight.cells:
        _draw_box(canvas, cell.box)
    where = {cell.name: cell.at for cell in sight.cells} | {phone.name: phone.at for phone in sight.phones}
    for arrow in sight.arrows[-FLASHES_MAX:]:
        if arrow.sender in where and arrow.to in where:
            _draw_path(canvas, where[arrow.sender], where[arrow.to], COLOURS.get(arrow.kind, "blue"))
    for cell in sight.cells:
        taken = "+" + ",".join(cell.taken) if cell.taken else ""
        _draw_text(canvas, cell.at, f"#{cell.prefix}{taken}", "bold cyan")
    for phone in sight.phones:
        mark = "s" if phone.name == "sensor" else "o"
        waiting = f"({phone.waiting})" if phone.waiting else ""
        _draw_text(canvas, phone.at, mark + waiting, "bold green" if phone.broker else "bold red")
    text = Text()
    for row in range(ROWS):
        for column in range(COLUMNS):
            text.append(*canvas.get((row, column), (" ", "")))
        text.append("\n" if row < ROWS - 1 else "")
    return text


def _at(place: tuple[float, ...]) -> Cell:
    """North is up."""
    row = round((1 - place[1] / SIDE) * (ROWS - 1))
    return min(max(row, 0), ROWS - 1), min(max(round(place[0] / SIDE * (COLUMNS - 1)), 0), COLUMNS - 1)


def _draw_box(canvas: Canvas, box: tuple[tuple[float, float], ...]) -> None:
    (west, east), (south, north) = box
    top, left = _at((west, north))
    bottom, right = _at((east, south))
    for column in range(left, right + 1):
        canvas[top, column] = canvas[bottom, column] = ("─", "dim")
    for row in range(top, bottom + 1):
        canvas[row, left] = canvas[row, right] = ("│", "dim")


def _draw_path(canvas: Canvas, here: tuple[float, ...], there: tuple[float, ...], colour: str) -> None:
    (row, column), (end_row, end_column) = _at(here), _at(there)
    steps = max(abs(end_row - row), abs(end_column - column), 1)
    for step in range(1, steps):
        share = step / steps
        at = round(row + (end_row - row) * share), round(column + (end_column - column) * share)
        canvas[at] = ("·", f"bold {colour}")


def _draw_text(canvas: Canvas, place: tuple[float, ...], text: str, style: str) -> None:
    row, column = _at(place)
    for offset, letter in enumerate(text):
        canvas[row, min(column, COLUMNS - len(text)) + offset] = (letter, style)


def write(path: Path, stage: RingStage, sights: list[RingSight]) -> None:
    """One page that needs nothing else; under its name only once it is whole."""
    page = files("godwit.commands").joinpath("ring.html").read_text(encoding="utf-8")
    data = {"title": stage.scenario.title, "side": SIDE, "sights": [_seen(sight) for sight in sights]}
    # What stands in the scenario must not end the script that holds it.
    encoded = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(page.replace("DATA", encoded, 1), encoding="utf-8")
    unfinished.replace(path)


def _seen(sight: RingSight) -> dict[str, Any]:
    return {
        "time": round(sight.time_s, 2),
        "cells": sight.cells,
        "phones": [(one.name, [round(at, 2) for at in one.at], one.broker, one.waiting) for one in sight.phones],
        "arrows": sight.arrows[-ARROWS_MAX:],
        "told": sight.told,
    }

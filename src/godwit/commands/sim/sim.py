"""`godwit sim`: plays a scenario, shows it if asked to, and says what came of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
from rich.console import Console
from rich.table import Table

from godwit.commands.console import Bar, InputError, Reports, print_json
from godwit.commands.sim import animation, ring, theatre
from godwit.commands.sim.options import SimOptions
from godwit.sim.brokers.production import Production
from godwit.sim.ring.ring_stage import is_ring
from godwit.sim.scenario import Loaded, Scenario, ScenarioError, load
from godwit.sim.sight import Sight, look, tables_of
from godwit.sim.stage import Stage, Summary

FINISHED, INTERRUPTED = 0, 130
STEPS = 200
"""Pieces of a run that nobody watches: how often the progress bar moves and Ctrl-C is heeded between events."""

PICTURES_MAX = 400
PICTURE_S = 0.25


class Show:
    """One run: pieces of time, each followed by whatever wants to look."""

    def __init__(self, options: SimOptions, loaded: Loaded, console: Console) -> None:
        self.options = options
        self.end_s = options.until_s if options.until_s is not None else loaded.scenario.duration_s
        play = Production if loaded.scenario.is_product else Stage
        self.stage = play(loaded, options.seed, watched=options.watch or options.animation is not None)
        self.console = console
        self.sights: list[Sight] = []

    def run(self, bar: Bar) -> None:
        with ExitStack() as stack:
            theatre_ = stack.enter_context(theatre.Theatre(self.console, self.stage)) if self.options.watch else None
            for time_s in self._times():
                self.stage.run(time_s)
                if self.options.watch or self.options.animation is not None:
                    self._look(theatre_)
                bar.update(time_s / self.end_s, f"{time_s:,.0f} of {self.end_s:,.0f} s")

    def _look(self, shown: theatre.Theatre | None) -> None:
        sight = look(self.stage, self.options.inspect)
        if self.options.animation is not None:
            self.sights.append(sight)
        if shown is not None:
            shown.show(sight)

    def _times(self) -> Iterator[float]:
        step = self.end_s / STEPS
        if self.options.animation is not None:
            step = max(PICTURE_S, self.end_s / PICTURES_MAX)
        if self.options.watch:
            step = theatre.step_s(self.end_s)
        pieces = max(1, math.ceil(self.end_s / step))
        yield from (min(piece * step, self.end_s) for piece in range(1, pieces + 1))


def run(options: SimOptions) -> int:
    """Play it; the exit status. What is wrong with the scenario or the files to write is said before anything runs."""
    if is_ring(options.scenario):
        return _ring(options)
    loaded = _checked(options)
    console = Console(highlight=False, stderr=options.as_json)
    show = Show(options, loaded, console)
    _introduce(console, options, show)
    status = FINISHED
    try:
        with Bar(Reports().console, "simulating") as bar:
            show.run(bar)
    except KeyboardInterrupt:
        status = INTERRUPTED
    _conclude(console, options, show, interrupted=status == INTERRUPTED)
    if options.as_json:
        print_json(show.stage.summary())
    return status


def _ring(options: SimOptions) -> int:
    if options.inspect is not None:
        raise InputError(f"--inspect {options.inspect}: brokers of a ring have no tables R, T and Q; leave it out")
    told = {name: getattr(options, name) for name in ring.RingRun.__struct_fields__}
    return ring.run(ring.RingRun(**told))


def _checked(options: SimOptions) -> Loaded:
    try:
        loaded = load(options.scenario)
    except ScenarioError as error:
        raise InputError(str(error)) from None
    if options.until_s is not None and not 0 < options.until_s < math.inf:
        raise InputError(f"--until {options.until_s:g}: give a time above 0")
    if options.inspect is not None and options.inspect not in loaded.names:
        brokers = ", ".join(name for name, (role, _) in loaded.names.items() if role == "brokers")
        raise InputError(f"--inspect {options.inspect}: there is no such node; the brokers are {brokers}")
    if options.animation is not None and options.animation.suffix != ".html":
        raise InputError(f"--animation {options.animation}: name a file that ends in .html")
    for option, path in (("--trace", options.trace), ("--animation", options.animation)):
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise InputError(f"{option} {path}: no file can be written there")
    return loaded


def _introduce(console: Console, options: SimOptions, show: Show) -> None:
    scenario = show.stage.scenario
    roles = [role for role, _ in show.stage.loaded.names.values()]
    nodes = ", ".join(f"{roles.count(role)} {role}" for role in dict.fromkeys(roles))
    for line in (
        scenario.title,
        f"scenario {options.scenario}  seed {options.seed}  until {show.end_s:g} s",
        f"{nodes}; {_described(scenario.medium)}; {_played(scenario)}; {len(scenario.faults)} faults",
    ):
        console.print(line, markup=False, soft_wrap=True)


def _played(scenario: Scenario) -> str:
    if not scenario.is_product:
        return _described(scenario.protocol)
    group = scenario.brokers[0]
    return f"product handoff={group.handoff} session_wait_s={group.session_wait_s:g}"


def _described(part: msgspec.Struct) -> str:
    """A table of the scenario on one line, defaults included: what a run was made with must be readable afterwards."""
    values = {key: value for key, value in msgspec.to_builtins(part).items() if key not in ("kind", "links")}
    return " ".join([str(part.__struct_config__.tag), *(f"{key}={value}" for key, value in values.items())])


def _conclude(console: Console, options: SimOptions, show: Show, *, interrupted: bool) -> None:
    summary = show.stage.summary()
    if interrupted:
        console.print(f"interrupted at {summary.time_s:.1f} s; what follows is up to then")
    console.print(_table(summary))
    console.print(f"digest {summary.digest}")
    if options.inspect is not None:
        for table in theatre.tables_shown(tables_of(show.stage, options.inspect)):
            console.print(table)
    if options.trace is not None:
        show.stage.trace.write(options.trace)
        console.print(f"trace: {len(show.stage.trace.rows):,} records in {options.trace}", markup=False, soft_wrap=True)
    if options.animation is not None and show.sights:
        animation.write(options.animation, show.stage, show.sights)
        console.print(f"animation: {len(show.sights)} pictures in {options.animation}", markup=False, soft_wrap=True)


def _table(summary: Summary) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    rate = f"{summary.delivered / summary.routed:.1%} of routed, " if summary.routed else ""
    honest = f"{summary.delivered / summary.matched:.1%} of matched" if summary.matched else ""
    for name, value, note in (
        ("events published", summary.published, ""),
        ("matched", summary.matched, "event and subscriber, by its filters"),
        ("routed", summary.routed, "of these, known to a broker when the event came"),
        ("delivered", summary.delivered, rate + honest),
        ("  of them replayed", summary.replayed, ""),
        ("duplicates", summary.duplicates, "recognised and not delivered again"),
        ("queued", summary.queued, "waiting in brokers at the end"),
        ("dropped", summary.dropped, ""),
        ("migrations", summary.migrations, "brokers"),
        ("attachments", summary.attachments, "clients"),
        ("messages sent", sum(summary.sent.values()), f"{summary.sent_b:,} bytes"),
        *((f"  {kind}", count, "") for kind, count in summary.sent.items()),
        ("receptions", summary.received, ""),
        ("full radio queues", summary.overflowed, "messages that did not fit"),
    ):
        table.add_row(name, f"{value:,}", note)
    return table

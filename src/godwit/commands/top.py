"""`godwit top`: look into a running broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.command import Json
from godwit.commands.console import InputError, Reports, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from godwit.net.ops.report import Report

FINISHED, INTERRUPTED = 0, 130
ANSWER_S = 5.0


class TopOptions(msgspec.Struct, frozen=True, kw_only=True):
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Where a broker was told to answer with --status.")
    ] = "127.0.0.1:9883"
    every_s: Annotated[float, typer.Option("--every", min=0.1, metavar="S", help="How often to look.")] = 1.0
    once: Annotated[bool, typer.Option("--once", help="Look once, and leave.")] = False
    as_json: Json = False
    wait_s: Annotated[
        float | None,
        typer.Option(
            "--wait", min=0, metavar="S", help="How long to try while no broker answers.", show_default="for ever"
        ),
    ] = None


def top(options: TopOptions) -> int:
    """Look into a running broker: clients, interest, tree or ring, rates.

    On a terminal: q quits, s sorts clients by something else, arrows and page keys scroll.

    Examples:

        godwit top

        godwit top 127.0.0.1:9884

        godwit top --json

    Exit status: 0; 2 where no broker answers: at once with --once, --json or without a terminal, else after --wait
    seconds.
    """
    from rich.console import Console

    from godwit.commands.keys import keyboard
    from godwit.commands.status_page import page

    url = f"http://{options.address}/status"
    console = Console(highlight=False)
    watches = console.is_terminal and not options.once and not options.as_json
    try:
        report = _found(url, options) if watches else fetched(url)
    except KeyboardInterrupt:
        return INTERRUPTED
    if options.as_json:
        print_json(report)
        return FINISHED
    if not watches:
        console.print(page(report, None, 0.0, rows=50))
        return FINISHED
    try:
        with keyboard() as pressed:
            return _watched(console, url, report, options, pressed)
    except KeyboardInterrupt:
        return INTERRUPTED


def _found(url: str, options: TopOptions) -> Report:
    """What the broker says, as soon as it says something; meanwhile it is told why there is nothing to see."""
    began_s, told = time.monotonic(), ""
    while True:
        try:
            return fetched(url)
        except InputError as error:
            if str(error) != told:
                told = str(error)
                Reports().say(f"godwit: {told}; trying again")
            if options.wait_s is not None and time.monotonic() - began_s >= options.wait_s:
                raise
        time.sleep(options.every_s)


def _watched(
    console: Console, url: str, report: Report, options: TopOptions, pressed: Callable[[float], str] | None
) -> int:
    """Until q. A broker that does not answer any more is told on the page, and asked again."""
    from rich.live import Live

    from godwit.commands.keys import QUIT, View
    from godwit.commands.status_page import ORDERS, page

    view, before, lost, lost_s = View(ORDERS), report, "", 0.0
    looked_s = time.monotonic()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            rows = max(3, console.height - 17)
            live.update(page(report, before, options.every_s, rows=rows, view=view, lost=lost), refresh=True)
            left_s = max(0.0, looked_s + options.every_s - time.monotonic())
            if pressed is None:
                time.sleep(left_s)
            elif key := pressed(left_s):
                if key == QUIT:
                    return FINISHED
                view = view.pressed(key, len(report.clients), rows)
                continue
            looked_s = time.monotonic()
            try:
                before, report, lost = report, fetched(url), ""
            except InputError as error:
                lost_s = lost_s if lost else looked_s
                lost = str(error)
                if options.wait_s is not None and looked_s - lost_s >= options.wait_s:
                    raise


def fetched(url: str) -> Report:
    """The report of the broker that answers there, or an `InputError` that says why there is none."""
    import urllib.error
    import urllib.request

    from godwit.net.ops.report import Report

    try:
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
            return msgspec.json.decode(answer.read(), type=Report)
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"{url}: {reason}; is a broker with `--status` listening there?") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{url}: this is no broker of this version: {error}") from None

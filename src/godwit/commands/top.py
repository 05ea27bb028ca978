"""`godwit top`: look into a running broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.console import InputError

if TYPE_CHECKING:
    from godwit.net.ops.report import Report

FINISHED, INTERRUPTED = 0, 130
ANSWER_S = 5.0


class TopOptions(msgspec.Struct, frozen=True, kw_only=True):
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Where a broker was told to answer with --status.")
    ] = "127.0.0.1:9883"
    every_s: Annotated[float, typer.Option("--every", min=0.1, metavar="S", help="How often to look.")] = 1.0
    once: Annotated[bool, typer.Option(help="Look once, and leave.")] = False


def top(options: TopOptions) -> int:
    """Look into a running broker: clients, interest, tree, rates.

    Examples:

        godwit top 127.0.0.1:9883
    """
    from rich.console import Console
    from rich.live import Live

    from godwit.commands.status_page import page

    console = Console(highlight=False)
    url = f"http://{options.address}/status"
    before = after = fetched(url)
    if options.once or not console.is_terminal:
        console.print(page(after, None, 0.0, rows=50))
        return FINISHED
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(page(after, before, options.every_s, rows=console.height - 16), refresh=True)
                time.sleep(options.every_s)
                before, after = after, fetched(url)
    except KeyboardInterrupt:
        return INTERRUPTED


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

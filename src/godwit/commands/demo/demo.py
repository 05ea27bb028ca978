"""`godwit demo`: see `godwit.commands.roaming`."""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console

from godwit.commands.console import InputError
from godwit.commands.demo.play import Plan, performed
from godwit.commands.demo.view import concluded, watched
from godwit.net.processes import BrokerError, cluster

FINISHED, WRONG, INTERRUPTED = 0, 1, 130
NAMES = ["harbour", "market", "station"]


def run(plan: Plan) -> int:
    console = Console(highlight=False)
    console.print(
        f"Three brokers, {plan.taxis} taxis that report {plan.events_per_s:.0f} times a second, {plan.walkers} people"
        f" who walk from broker to broker\nwithout a word and want some of it, by content and by place. One broker will"
        f" be killed. About {plan.seconds + 8:.0f} s.\n"
    )
    with tempfile.TemporaryDirectory(prefix="godwit-demo-") as folder:
        try:
            play = asyncio.run(performed(plan, cluster(NAMES, Path(folder)), partial(watched, console=console)))
        except KeyboardInterrupt:
            return INTERRUPTED
        except BrokerError as error:
            raise InputError(f"demo: {error}") from None
    verdict = play.verdict()
    console.print()
    concluded(console, verdict)
    return FINISHED if verdict.is_clean else WRONG

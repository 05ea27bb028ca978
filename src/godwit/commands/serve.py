"""`godwit serve`: run a broker until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from godwit import __version__
from godwit.commands.console import InputError
from godwit.net.access import SecurityError
from godwit.net.config import Config, ConfigError, load
from godwit.net.ops import services
from godwit.net.server import ServeError, Server, check
from godwit.net.store.sqlite import StoreError, Sync

FINISHED, FORCED = 0, 130

ACCESS = "anybody on this machine, nobody else; --users FILE names more"
SAFETY = {
    Sync.PROCESS: "what is acknowledged survives a crash of the broker",
    Sync.POWER: "what is acknowledged survives a power failure",
}


def run(path: Path | None, flags: Mapping[str, Any], *, check_only: bool, verbose: bool) -> int:
    """Serve; the exit status. `flags` are named like keys of the file, and win over it."""
    try:
        config = load(path, flags)
        if check_only:
            check(config)
            Console(highlight=False, soft_wrap=True).print(f"{path or 'this'}: a broker can be started with it")
            return FINISHED
        logging.basicConfig(
            level=logging.DEBUG if verbose else logging.INFO,
            format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
            stream=sys.stderr,
        )
        logging.getLogger("asyncio").setLevel(logging.WARNING)
        _runner()(serve(config))
    except (ConfigError, SecurityError, ServeError, StoreError) as error:
        raise InputError(str(error)) from None
    return FINISHED


def _runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


async def serve(config: Config) -> None:
    server = Server(config, services.ALL)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _asked_to_stop(server))
    loop.add_signal_handler(signal.SIGHUP, server.reload)
    await server.start()
    introduce(Console(highlight=False, soft_wrap=True), server)
    await server.asked()
    logging.getLogger("godwit.server").info("stopping")
    await server.stop()


def _asked_to_stop(server: Server) -> Callable[[], None]:
    """Once to stop in order, once more to stop at once."""
    asked = False

    def ask() -> None:
        nonlocal asked
        if asked:
            # Whatever hangs must not hang this too; nothing is lost that a crash would not lose.
            os._exit(FORCED)
        asked = True
        server.ask_to_stop()

    return ask


def introduce(console: Console, server: Server) -> None:
    """Where it listens and what it keeps, in one block: the first thing that anybody looks for."""
    assert server.parts is not None
    config = server.config
    rows = server.addresses()
    if config.peers.connect:
        rows.append(("dials", ", ".join(config.peers.connect)))
    rows.append(("data", f"{config.folder}: {SAFETY[config.sync]}"))
    rows.append(("access", str(config.access.users) if config.access.users is not None else ACCESS))
    console.print(f"godwit {__version__}, broker {server.parts.identity.name}", markup=False)
    for what, where in rows:
        console.print(f"  {what:<7} {where}", markup=False)
    sys.stdout.flush()

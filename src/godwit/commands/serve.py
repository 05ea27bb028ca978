"""`godwit serve`: run a broker until it is told to stop. And `godwit password`, for its users file."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from msgspec.structs import fields

from godwit import __version__
from godwit.commands.console import InputError

if TYPE_CHECKING:
    from godwit.net.config import Config
    from godwit.net.ops.systemd import Manager
    from godwit.net.server import MakeService, Server

FINISHED, FORCED = 0, 130

COLLECTIONS = 5_000, 10, 100
"""When Python looks for garbage (`gc.set_threshold`). To look through all that a broker keeps takes a quarter of a
second where much is retained, and everybody waits. It hardly finds any: brokers make few circles."""

KEPT_B = 4 * 1024 * 1024
"""What the C library has given back once in one piece, it keeps from then on, and twice as much at the end of its heap.
Else it asks the system for the memory of large reads anew each time, wherever the heap happens to end with them."""

ACCESS = "anybody on this machine, nobody else; --users FILE names more"


class Sets(msgspec.Struct, frozen=True):
    """The key of the configuration file that an option stands for, with dots."""

    key: str


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Flags win over the file; those that are not typed say nothing."""

    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", envvar="GODWIT_CONFIG", help="A .toml file; flags win over it."),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(help="Of this broker.", show_default="made up at the first start, and kept"),
        Sets("name"),
    ] = None
    listen: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="MQTT over TCP. May be repeated.", show_default="127.0.0.1:1883"),
        Sets("listen.mqtt"),
    ] = None
    mqtts: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="MQTT over TLS. May be repeated."),
        Sets("listen.mqtts"),
    ] = None
    ws: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="MQTT over WebSocket. May be repeated."),
        Sets("listen.ws"),
    ] = None
    wss: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="MQTT over WebSocket and TLS. May be repeated."),
        Sets("listen.wss"),
    ] = None
    peers_listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Other brokers connect here."), Sets("peers.listen")
    ] = None
    peer: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="Another broker; it tells of all others. May be repeated."),
        Sets("peers.connect"),
    ] = None
    mdns: Annotated[bool, typer.Option("--mdns", help="Find brokers on the local network."), Sets("peers.mdns")] = False
    secret_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What all brokers of the cluster know and nobody else."),
        Sets("peers.secret_file"),
    ] = None
    fabric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="tree|dht|adhoc",
            help="tree: links; dht: links, and each broker owns a part of the globe; adhoc: UDP broadcast. tree and "
            "adhoc: a bridge. May be repeated.",
            show_default="tree",
        ),
        Sets("fabric"),
    ] = None
    place: Annotated[
        str | None,
        typer.Option(metavar="LAT,LON", help="dht: where this broker stands, in degrees."),
        Sets("ring.place"),
    ] = None
    found: Annotated[
        bool,
        typer.Option("--found", help="dht: begin a ring though others are configured; only when there is none."),
        Sets("ring.found"),
    ] = False
    located: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPICS", help="dht: topics that are matched where they happened. May be repeated."),
        Sets("ring.located"),
    ] = None
    interface: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="adhoc: where to broadcast, as wlan0. May be repeated."),
        Sets("adhoc.interfaces"),
    ] = None
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="adhoc: what all nodes in the air know and nobody else."),
        Sets("adhoc.key_file"),
    ] = None
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="adhoc: without a key; anybody in range may speak."),
        Sets("adhoc.insecure"),
    ] = False
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where this broker, and no other, remembers.", show_default="~/.local/state/godwit/NAME"
        ),
        Sets("data"),
    ] = None
    sync: Annotated[
        str | None,
        typer.Option(
            metavar="process|power",
            help="process: survive a crash of the broker; power: of the machine too.",
            show_default="process",
        ),
        Sets("sync"),
    ] = None
    handoff: Annotated[
        str | None,
        typer.Option(
            metavar="durable|reactive|proactive",
            help="How sessions follow clients that move.",
            show_default="proactive",
        ),
        Sets("handoff"),
    ] = None
    users: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who may connect, and may do what."), Sets("access.users")
    ] = None
    status: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Metrics, health and status, by HTTP.",
            show_default="127.0.0.1:9883, or another port where that is taken",
        ),
        Sets("listen.status"),
    ] = None
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Operators log in here.",
            show_default="127.0.0.1:9885, or another port where that is taken",
        ),
        Sets("listen.http"),
    ] = None
    console: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="A web page for this broker and those it has heard of."),
        Sets("listen.console"),
    ] = None
    archive: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep what is published as Parquet."), Sets("archive.folder")
    ] = None
    archive_listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Data jobs elsewhere follow the archive here."),
        Sets("archive.listen"),
    ] = None
    check: Annotated[bool, typer.Option("--check", help="Say whether a broker could start like this, and leave.")] = (
        False
    )
    log_form: Annotated[
        str | None,
        typer.Option("--log", metavar="text|json", help="How the log on stderr is written.", show_default="text"),
        Sets("log.format"),
    ] = None
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False


def serve(options: ServeOptions) -> int:
    """Run a broker.

    Examples:

        godwit serve

        godwit serve --name south --listen 127.0.0.1:1884 --peers-listen 127.0.0.1:7002 --peer 127.0.0.1:7001

        godwit serve --config /etc/godwit.toml --check

        godwit serve --fabric dht --place 38.72,-9.14 --peers-listen 127.0.0.1:7001

        godwit serve --fabric adhoc --interface wlan0 --key-file air.key

    SIGTERM or Ctrl-C stops it in order, twice at once; SIGHUP reads users, grants, certificates and limits again.

    Exit status: 0 where it was asked to stop; 2 where it cannot start as it is told to.
    """
    from godwit.net.access import SecurityError
    from godwit.net.config import ConfigError, load
    from godwit.net.ops.journal import Level, begin
    from godwit.net.server import ServeError, check
    from godwit.net.store.sqlite import StoreError

    try:
        config = load(options.config, flags_of(options))
        if options.check:
            check(config)
            typer.echo(f"{options.config or 'this'}: a broker can be started with it")
            return FINISHED
        begin(config.log.format, Level.DEBUG if options.verbose else config.log.level)
        _runner()(served(config, lambda: load(options.config, flags_of(options))))
    except (ConfigError, SecurityError, ServeError, StoreError) as error:
        raise InputError(str(error)) from None
    return FINISHED


def flags_of(options: ServeOptions) -> dict[str, Any]:
    """What was typed, named like the keys of the file."""
    found = {}
    for field in fields(options):
        value = getattr(options, field.name)
        for said in getattr(field.type, "__metadata__", ()):
            if isinstance(said, Sets) and value not in (None, False, []):
                found[said.key] = value
    return found


def _runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.run
    return uvloop.run


async def served(config: Config, again: Callable[[], Config]) -> None:
    """Serve until a signal says that it is enough; `again` reads the configuration when SIGHUP asks for it."""
    import asyncio

    from godwit.net.ops import services
    from godwit.net.ops.systemd import READY, STOPPING, Manager
    from godwit.net.server import Server

    server = Server(config, (*services.ALL, *_console(config)), again)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _asked_to_stop(server))
    manager = Manager()
    loop.add_signal_handler(signal.SIGHUP, _reloaded(server, manager))
    await server.start()
    gc.set_threshold(*COLLECTIONS)
    bytes(KEPT_B)
    introduce(server)
    manager.tell(READY)
    alive = asyncio.create_task(manager.keep_alive())
    await server.asked()
    logging.getLogger("godwit.server").info("stopping")
    manager.tell(STOPPING)
    await server.stop()
    alive.cancel()
    if server.parts is not None and server.parts.asks.restart:
        sys.stdout.flush()
        # The same process, as its manager knows it, with whatever code and configuration is there now.
        os.execv(sys.executable, [sys.executable, "-m", "godwit", *sys.argv[1:]])


def _console(config: Config) -> tuple[MakeService, ...]:
    if not config.listen.console:
        return ()
    try:
        from godwit.console.serving import ConsoleService
    except ImportError:
        raise InputError("the console needs starlette and uvicorn: pip install 'godwit[console]'") from None
    from godwit.net.config import address

    where = address(config.listen.console, "listen.console")
    return (lambda parts: ConsoleService(parts, where),)


def _reloaded(server: Server, manager: Manager) -> Callable[[], None]:
    from godwit.net.ops.systemd import READY

    def reload() -> None:
        manager.reloading()
        server.reload()
        manager.tell(READY)

    return reload


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


def introduce(server: Server) -> None:
    """Where it listens and what it keeps, in one block: the first thing that anybody looks for."""
    from godwit.net.store.sqlite import Sync

    safety = {
        Sync.PROCESS: "what is acknowledged survives a crash of the broker",
        Sync.POWER: "what is acknowledged survives a power failure",
    }
    assert server.parts is not None
    config = server.config
    rows = server.addresses()
    if config.peers.connect:
        rows.append(("dials", ", ".join(config.peers.connect)))
    if server.parts.ring is not None:
        cells = ", ".join(one.prefix or "all of the globe" for one in server.parts.ring.regions)
        rows.append(("ring", f"at {config.ring.place}; cell: {cells or 'none yet'}"))
    rows.append(("data", f"{config.folder}: {safety[config.sync]}"))
    rows.append(("access", str(config.access.users) if config.access.users is not None else ACCESS))
    typer.echo(f"godwit {__version__}, broker {server.parts.identity.name}")
    for what, where in rows:
        typer.echo(f"  {what:<7} {where}")
    sys.stdout.flush()


def password(
    drawn: Annotated[
        bool,
        typer.Option(
            "--drawn", help="It was drawn at random, so that nobody can guess it: a hash that takes 5 ms, not 0.2 s."
        ),
    ] = False,
) -> None:
    """Turn a password into what the users file of a broker wants; it is asked for, or read from a pipe.

    Examples:

        godwit password

        openssl rand -hex 16 | tee van-7.secret | godwit password --drawn
    """
    from godwit.net.access import hashed

    text = typer.prompt("Password", hide_input=True, confirmation_prompt=True) if sys.stdin.isatty() else input()
    typer.echo(hashed(text, "low" if drawn else "high"))

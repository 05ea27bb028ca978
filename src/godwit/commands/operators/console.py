"""`godwit console`: one web page for all brokers."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from godwit.commands.console import InputError

FINISHED = 0


class ConsoleOptions(msgspec.Struct, frozen=True, kw_only=True):
    brokers: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT,...",
            help="Where brokers answer with --status, or URLs of --http. One is enough: it tells of the others.",
        ),
    ] = "127.0.0.1:9883"
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the page is; beyond this machine it wants a login.")
    ] = "127.0.0.1:9880"
    authority: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Who has signed the certificates of brokers.", show_default="those this machine trusts"
        ),
    ] = None
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve the page over HTTPS, with this one.")
    ] = None
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Of the certificate.")] = None


def console(options: ConsoleOptions) -> int:
    """Show all brokers on one web page: health, clients, a map, problems, and what operators do about them.

    Examples:

        godwit console

        godwit console --brokers north.example:9883,south.example:9883 --listen 127.0.0.1:8000

        godwit console --listen 0.0.0.0:9880 --certificate console.pem --key console.key

    SIGTERM or Ctrl-C stops it; SIGHUP reads the certificate again.

    Exit status: 0 where it was asked to stop; 2 where it cannot start as it is told to.
    """
    import asyncio

    from godwit.net.address import Address, AddressError

    if (options.certificate is None) != (options.key is None):
        raise InputError("--certificate and --key go together")
    seeds = [one.strip() for one in options.brokers.split(",") if one.strip()]
    if not seeds:
        raise InputError("--brokers: right would be 127.0.0.1:9883")
    try:
        where = Address.parse(options.listen, port=9880)
    except AddressError as error:
        raise InputError(f"--listen: {error}") from None
    asyncio.run(_served(seeds, where, options))
    return FINISHED


def _renewed(pair: tuple[Path, Path] | None) -> None:
    from godwit.net.config import ConfigError
    from godwit.net.tls import read_again

    try:
        read_again([pair] if pair is not None else [])
    except ConfigError as error:
        typer.echo(f"godwit: the certificate stays as it was: {error}", err=True)


async def _served(seeds: list[str], where: object, options: ConsoleOptions) -> None:
    import asyncio

    from godwit.net.address import Address
    from godwit.net.config import ConfigError
    from godwit.net.server import reason_of
    from godwit.net.tls import for_pages

    try:
        from godwit.console.fleet import Fleet
        from godwit.console.serving import Hosted
    except ImportError:
        raise InputError("the console needs starlette and uvicorn: pip install 'godwit[console]'") from None
    assert isinstance(where, Address)
    fleet = Fleet(seeds, authority=str(options.authority) if options.authority else None)
    pair = (options.certificate, options.key) if options.certificate and options.key else None
    try:
        pages = for_pages(*pair, "--certificate") if pair is not None else None
    except ConfigError as error:
        raise InputError(str(error)) from None
    hosted = Hosted(fleet, where, pages)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    loop.add_signal_handler(signal.SIGHUP, _renewed, pair)
    try:
        await hosted.start()
    except OSError as error:
        raise InputError(f"--listen: {where}: {reason_of(error, where)}") from None
    typer.echo(f"godwit console at {hosted.url}; Ctrl-C ends it")
    await fleet.refresh()
    for member in fleet.members.values():
        typer.echo(f"  {member.name:<12} {member.url or member.problem}")
    await asked.wait()
    await hosted.stop()

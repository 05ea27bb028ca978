"""`godwit admin ...`: what operators do to brokers, from a terminal. The same as the console does, and as audited."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from godwit.commands.command import Json, command
from godwit.commands.console import InputError
from godwit.commands.pubsub import PASSWORD, PortalAt, PortalAuthority

if TYPE_CHECKING:
    from godwit.net.admin.client import Operator

FINISHED, FAILED = 0, 1

admin = typer.Typer(
    help="Act on running brokers: disconnect clients, drain, restart. Each action is in the audit log.",
    no_args_is_help=True,
)


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What all of these commands take."""

    broker: PortalAt = "127.0.0.1:9883"
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"With the role operator; the password is taken from {PASSWORD}, or asked for.",
            show_default="anonymous",
        ),
    ] = None
    authority: PortalAuthority = None
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking again.")] = False
    as_json: Json = False


class OfClient(Asking, frozen=True, kw_only=True):
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="Its name, as user/client where it has a user.")]


class Lasting(Asking, frozen=True, kw_only=True):
    seconds: Annotated[float, typer.Option(min=0, metavar="S", help="How long at most.")] = 30.0


def _operator(options: Asking) -> Operator:
    from godwit.net.admin.client import NOBODY, AskError, Login, Operator, portal_of

    login = NOBODY
    if options.user:
        told = os.environ.get(PASSWORD)
        login = Login(options.user, typer.prompt("Password", hide_input=True, err=True) if told is None else told)
    try:
        _, url = portal_of(options.broker)
    except AskError as error:
        raise InputError(str(error)) from None
    return Operator(url, login, str(options.authority) if options.authority is not None else None)


def _done(options: Asking, action: str, question: str, body: dict[str, Any]) -> int:
    from godwit.net.admin.client import AskError

    operator = _operator(options)
    if question and not options.yes and not typer.confirm(question, err=True):
        return FAILED
    try:
        done = operator.post(f"actions/{action}", {**body, "confirm": True})
    except AskError as error:
        raise InputError(str(error)) from None
    typer.echo(msgspec.json.encode(done).decode() if options.as_json else done["result"])
    return FINISHED


@command(admin)
def disconnect(options: OfClient) -> int:
    """Hang up on a client. Its session stays, and it may come back.

    Examples:

        godwit admin disconnect van-7

    Exit status: 0; 1 where it was not confirmed; 2 where it could not be done.
    """
    return _done(options, "disconnect", f"Hang up on {options.client}?", {"client": options.client})


@command(admin)
def end(options: OfClient) -> int:
    """End a client's session, with its subscriptions and all that waits for it.

    Examples:

        godwit admin end van-7 --yes

    Exit status: 0; 1 where it was not confirmed; 2 where it could not be done.
    """
    return _done(options, "end", f"End the session of {options.client}, with what waits?", {"client": options.client})


@command(admin)
def purge(options: OfClient) -> int:
    """Drop what waits for a client. Its subscriptions stay.

    Examples:

        godwit admin purge van-7

    Exit status: 0; 1 where it was not confirmed; 2 where it could not be done.
    """
    return _done(options, "purge", f"Drop what waits for {options.client}?", {"client": options.client})


@command(admin)
def cordon(options: Asking) -> int:
    """Send new clients to other brokers. Those that are here stay.

    Examples:

        godwit admin cordon --broker north.example:9883

    Exit status: 0; 1 where it was not confirmed; 2 where it could not be done.
    """
    return _done(options, "cordon", "Send new clients elsewhere?", {})


@command(admin)
def uncordon(options: Asking) -> int:
    """Let new clients in again.

    Examples:

        godwit admin uncordon

    Exit status: 0; 2 where it could not be done.
    """
    return _done(options, "uncordon", "", {})


@command(admin)
def drain(options: Lasting) -> int:
    """Send all clients to other brokers, with their sessions; `uncordon` undoes it.

    Examples:

        godwit admin drain --seconds 60

    Exit status: 0; 1 where it was not confirmed; 2 where it could not be done.
    """
    return _done(options, "drain", "Send all clients elsewhere?", {"seconds": options.seconds})


@command(admin)
def leave(options: Asking) -> int:
    """Let a broker of a ring leave it for good: its neighbors get what it owns. Drain and stop it afterwards. It
    stays outside when it is started again, unless its data folder is empty.

    Examples:

        godwit admin leave --broker 127.0.0.1:9883

    Exit status: 0; 1 where it was not confirmed; 2 where it could not be done.
    """
    return _done(options, "leave", "Give all cells of this broker to its neighbors, for good?", {})


@command(admin)
def reload(options: Asking) -> int:
    """Read users and grants again, as SIGHUP does.

    Examples:

        godwit admin reload

    Exit status: 0; 2 where it could not be done, for instance because the file is wrong.
    """
    return _done(options, "reload", "", {})


@command(admin)
def record(options: Lasting) -> int:
    """Record publications and deliveries for a while, to ask later why a client did not get something.

    Examples:

        godwit admin record --seconds 600

    Exit status: 0; 2 where it could not be done.
    """
    return _done(options, "record", "", {"seconds": options.seconds})


@command(admin)
def restart(options: Asking) -> int:
    """Stop a broker in order, and start it again in its place.

    Examples:

        godwit admin restart --broker 127.0.0.1:9883

    Exit status: 0; 1 where it was not confirmed; 2 where it could not be done.
    """
    return _done(options, "restart", "Restart this broker?", {})


@command(admin)
def rolling(options: Asking) -> int:
    """Restart all brokers that this one knows, one after the other, each only when the last one is well again.

    Examples:

        godwit admin rolling --yes

    Exit status: 0; 1 where it was not confirmed or a broker did not come back; 2 where it could not begin.
    """
    import asyncio

    operator = _operator(options)
    if not options.yes and not typer.confirm("Restart all brokers, one after the other?", err=True):
        return FAILED
    return asyncio.run(_rolled(options, operator))


async def _rolled(options: Asking, operator: Operator) -> int:
    import asyncio

    from godwit.console.fleet import Fleet
    from godwit.console.rolling import Rolling

    seeds = (options.broker,)
    fleet = Fleet(seeds, authority=operator.authority)
    await fleet.refresh(now=True)
    names = sorted(name for name, one in fleet.members.items() if one.url)
    if not names:
        raise InputError(next((one.problem for one in fleet.members.values()), "no broker is known"))
    roll, told = Rolling(fleet), ""
    roll.begin(names, operator.login)
    while roll.under_way:
        await asyncio.sleep(0.2)
        now = next((f"{one.broker}: {one.state} {one.text}" for one in roll.stages if one.state == "restarting"), "")
        if now != told and now:
            typer.echo(now, err=True)
            told = now
    if options.as_json:
        typer.echo(msgspec.json.encode(roll.stages).decode())
    else:
        for stage in roll.stages:
            typer.echo(f"{stage.broker:<12} {stage.state:<8} {stage.text}")
    return FINISHED if all(one.state == "done" for one in roll.stages) else FAILED

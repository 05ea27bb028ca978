"""`godwit token`: keys that sign, and tokens for devices, which log in with them instead of passwords."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from godwit.commands.command import command
from godwit.commands.console import InputError

DAY_S = 24 * 3600.0
AUDIENCE = "godwit"

token = typer.Typer(help="Signed tokens, with which fleets log in.", no_args_is_help=True, rich_markup_mode=None)


class KeysOptions(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, typer.Argument(metavar="NAME", help="NAME.key and NAME.pem are written.")]


class SignOptions(msgspec.Struct, frozen=True, kw_only=True):
    user: Annotated[
        list[str], typer.Argument(metavar="USER...", help="Whom a token names; `-` reads names from a pipe.")
    ]
    key: Annotated[Path, typer.Option(metavar="FILE", help="The private key, as `godwit token keys` has made it.")]
    days: Annotated[float, typer.Option(metavar="N", help="How long it holds.")] = 90.0
    audience: Annotated[str, typer.Option(metavar="WHO", help="For whom, as in the users file of the brokers.")] = (
        AUDIENCE
    )
    issuer: Annotated[str, typer.Option(metavar="WHO", help="By whom, where the users file asks for that.")] = ""


@command(token, "keys")
def make(options: KeysOptions) -> int:
    """Make a pair of keys: the private one signs tokens and stays with you, the public one goes to the brokers.

    Examples:

        godwit token keys fleet

    Exit status: 0; 2 where there is such a file already.
    """
    from godwit.net.tokens import TokenError, make_keys

    private, public = Path(f"{options.name}.key"), Path(f"{options.name}.pem")
    try:
        make_keys(private, public)
    except TokenError as error:
        raise InputError(str(error)) from None
    table = re.sub(r"\W", "-", private.stem)
    typer.echo(f"{private}: signs tokens; keep it where they are made, not at brokers")
    typer.echo(f"{public}: for the users file of each broker:\n")
    typer.echo(f'[tokens.{table}]\nkeys = ["{public.name}"]\naudience = "{AUDIENCE}"')
    typer.echo('publish = ["fleet/{user}/#"]\nsubscribe = ["fleet/{user}/#"]')
    return 0


@command(token)
def sign(options: SignOptions) -> int:
    """Sign tokens, one a line; a device shows its own as its password, with the name that it is for.

    Examples:

        godwit token sign --key fleet.key van-7

        GODWIT_PASSWORD=$(godwit token sign --key fleet.key van-7) godwit sub 'fleet/van-7/#' --user van-7

    Exit status: 0; 2 where the key or a name is none.
    """
    from godwit.net.tokens import TokenError, signed

    if not options.days > 0:
        raise InputError(f"--days {options.days:g}: right would be more than 0")
    now = time.time()
    try:
        for user in _names(options.user):
            typer.echo(
                signed(
                    options.key,
                    user,
                    audience=options.audience,
                    issued_s=now,
                    until_s=now + options.days * DAY_S,
                    issuer=options.issuer,
                )
            )
    except TokenError as error:
        raise InputError(str(error)) from None
    return 0


def _names(users: list[str]) -> list[str]:
    return users if users != ["-"] else [line.strip() for line in sys.stdin if line.strip()]

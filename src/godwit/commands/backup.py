"""`godwit backup` and `godwit restore`: a copy of a broker's disk, and a broker from a copy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer


class BackupOptions(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[Path, typer.Argument(metavar="DIR", help="The data directory of a broker, which may be running.")]
    copy: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write; a copy that is there already is replaced.")
    ]


class RestoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    copy: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `godwit backup` has written.")]
    data: Annotated[Path, typer.Argument(metavar="DIR", help="The data directory to fill; it must have no disk yet.")]


def backup(options: BackupOptions) -> int:
    """Copy the disk of a broker into one file, while it runs or not.

    Examples:

        godwit backup /var/lib/godwit/north north.copy
    """
    from godwit.commands.console import Bar, InputError, Reports
    from godwit.net.store.copies import back_up
    from godwit.net.store.sqlite import StoreError

    try:
        with Bar(Reports().console, "copying") as bar:
            back_up(options.data, options.copy, lambda done, total: bar.update(done / max(total, 1)))
    except StoreError as error:
        raise InputError(str(error)) from None
    typer.echo(f"{options.copy}: {options.copy.stat().st_size:,} bytes")
    return 0


def restore(options: RestoreOptions) -> int:
    """Put a copy back as the disk of a broker. What the broker took after the copy was made is lost, and nothing else.

    Start the broker from this directory only: two brokers from one copy are two brokers of one name.

    Examples:

        godwit restore north.copy /var/lib/godwit/north
    """
    from godwit.commands.console import InputError
    from godwit.net.store.copies import restore as restored
    from godwit.net.store.sqlite import StoreError

    try:
        name = restored(options.copy, options.data)
    except StoreError as error:
        raise InputError(str(error)) from None
    typer.echo(f"{options.data}: the disk of the broker {name!r}; start it with: godwit serve --data {options.data}")
    return 0

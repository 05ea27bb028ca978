"""`godwit collect`: a folder in step with all that a filter gathers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.console import InputError
from godwit.commands.pubsub import FINISHED, Reaching, client, completed

if TYPE_CHECKING:
    from godwit.collection.folder import Report
    from godwit.events import Value


class CollectOptions(msgspec.Struct, frozen=True, kw_only=True):
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Its files are published; those of others come here.")
    ]
    condition: Annotated[str, typer.Argument(metavar="FILTER", help="What to gather, as in type = 'photo'.")]
    owner: Annotated[str, typer.Option("--owner", "-o", metavar="NAME", help="Whose the files of this folder are.")]
    attributes: Annotated[
        str, typer.Option(metavar="JSON", help="""What is said of each file, as in '{"type": "photo"}'.""")
    ] = "{}"
    profile: Annotated[str, typer.Option(metavar="FILTER", help="The subspace in which they are of interest.")] = ""
    once: Annotated[bool, typer.Option("--once", help="Synchronise once, and leave.")] = False
    every_s: Annotated[float, typer.Option("--every", min=0.1, metavar="S", help="How often to look.")] = 2.0
    reaching: Reaching = Reaching()


def collect(options: CollectOptions) -> int:
    """Keep a folder in step with a collection: publish what is in it, fetch and merge what others have.

    Examples:

        godwit collect ~/photos "type = 'photo' AND location = 'Helsinki'" --owner ann --attributes '{"type": "photo"}'

    Exit status: 0 after --once; 2 where something was refused, or no broker could be reached; 130 after Ctrl-C.
    """
    return completed(_collected(options))


async def _collected(options: CollectOptions) -> int:
    import asyncio

    from godwit.collection.folder import Folder
    from godwit.collection.library import Library

    attributes = _attributes(options.attributes)
    if not options.folder.is_dir():
        raise InputError(f"{options.folder}: no folder")
    async with client(options.reaching) as connected:
        library = Library(connected, options.owner)
        folder = Folder(library, options.folder, lambda path: (attributes, options.profile))
        collection = await library.collection(options.condition)
        while True:
            _tell(await folder.sync(collection))
            if options.once:
                return FINISHED
            await asyncio.sleep(options.every_s)


def _attributes(text: str) -> dict[str, Value]:
    try:
        return msgspec.json.decode(text, type=dict[str, bool | int | float | str])
    except msgspec.DecodeError as error:
        raise InputError(f'--attributes: {error}; right would be \'{{"type": "photo"}}\'') from None


def _tell(report: Report) -> None:
    for what in report.__struct_fields__:
        for name in getattr(report, what):
            typer.echo(f"{what}\t{name}")

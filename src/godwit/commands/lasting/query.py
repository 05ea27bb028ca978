"""`godwit query` and `godwit get`: what matches now, and then what changes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands import hints
from godwit.commands.command import JsonLines
from godwit.commands.console import InputError, Reports
from godwit.commands.pubsub import (
    FINISHED,
    PASSWORD,
    PortalAt,
    PortalAuthority,
    Reaching,
    User,
    client,
    completed,
    readable,
)

if TYPE_CHECKING:
    from godwit.client.client import Client
    from godwit.client.query import Change, Query


ANSWER_S = ONCE_S = 30.0
NOT_ALL = 2


class QueryOptions(msgspec.Struct, frozen=True, kw_only=True):
    condition: Annotated[
        str, typer.Argument(metavar="FILTER", help="A condition on the content; near('TOPIC', 200m) roams. None: all.")
    ] = ""
    topic: Annotated[str, typer.Option("--topic", "-t", help="Topic filter.")] = "#"
    once: Annotated[bool, typer.Option("--once", help="Print what matches now, and leave.")] = False
    qos: Annotated[int, typer.Option(min=0, max=2, help="0 at most once, 1 at least once, 2 exactly once.")] = 2
    cover: Annotated[bool, typer.Option("--cover", help="Of subspaces only those that match as a whole.")] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Only what comes and goes, not what changes and still matches.")
    ] = False
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="Leave after so many changes.")] = None
    keep_s: Annotated[
        float,
        typer.Option("--keep", min=0, metavar="S", help="With --client: how long it may be away and be told the rest."),
    ] = 0.0
    resume: Annotated[
        bool, typer.Option("--resume", help="With --client: only the difference to what it was told before.")
    ] = False
    as_json: JsonLines = False
    reaching: Reaching = Reaching()


def query(options: QueryOptions) -> int:
    """Print what matches now of all that is retained, then what appears (+), changes (~) and goes (-), numbered.

    Examples:

        godwit query "within(lat, lon, 52.0, 4.0, 5km)" --topic 'vans/#'

        godwit query "free = TRUE" --topic 'rooms/+' --once --json

        godwit query "near('vans/7', 200m)" --topic 'people/+' --quiet

    Exit status: 0 after --once or --count; 2 where something was refused, no broker could be reached, or --once has not
    had all after --wait seconds (30); 130 after Ctrl-C.
    """
    return completed(_asked(options))


class GetOptions(msgspec.Struct, frozen=True, kw_only=True):
    condition: Annotated[str, typer.Argument(metavar="FILTER", help="A condition on the content; none: all.")] = ""
    topic: Annotated[str, typer.Option("--topic", "-t", help="Topic filter.")] = "#"
    limit: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="At most so many, the oldest.")] = 1_000
    as_json: JsonLines = False
    broker: PortalAt = "127.0.0.1:9883"
    user: User = None
    authority: PortalAuthority = None


def get(options: GetOptions) -> int:
    """Print the last values that match, over HTTP and without subscribing.

    Examples:

        godwit get "within(lat, lon, 52.0, 4.0, 5km)" --topic 'vans/#'

        godwit get "battery < 20" --json --broker http://127.0.0.1:9885

    Exit status: 0; 2 where something was refused, or no broker answers.
    """
    for row in _fetched(options):
        text = msgspec.json.encode(row).decode() if options.as_json else f"{row['topic']}\t{row.get('payload', '')}"
        sys.stdout.write(text + "\n")
    return FINISHED


def _fetched(options: GetOptions) -> list[dict[str, object]]:
    import urllib.parse

    from godwit.net.admin.client import AskError, Login, fetched, portal_of

    asked = urllib.parse.urlencode({"filter": options.condition, "topics": options.topic, "limit": options.limit})
    login = Login(options.user or "", os.environ.get(PASSWORD, ""))
    authority = str(options.authority) if options.authority is not None else None
    try:
        _, url = portal_of(options.broker)
        said = fetched(url, f"/events?{asked}", headers=login.headers(), answer_s=ANSWER_S, authority=authority)
        return msgspec.json.decode(said, type=list[dict[str, object]])
    except AskError as error:
        raise InputError(f"{options.broker}: {error}" if error.status else str(error)) from None
    except msgspec.DecodeError:
        raise InputError(f"{options.broker}: the answer is no list of events; is this a broker?") from None


async def _asked(options: QueryOptions) -> int:
    if (options.keep_s or options.resume) and not options.reaching.client:
        raise InputError("--keep and --resume need --client NAME: a session is found again by its name")
    for hint in hints.of_condition(options.condition):
        Reports().say(f"godwit: {hint}")
    if options.once:
        return await _asked_once(options)
    left = options.count
    async with client(options.reaching, _keep_s(options)) as asking:
        changes = await _question(asking, options)
        async for change in changes:
            _print(change, options.as_json)
            if left is not None:
                left -= 1
                if not left:
                    break
    return FINISHED


async def _asked_once(options: QueryOptions) -> int:
    """Never for ever: something may expire, or be cleared, between the question and the last of the answer."""
    import asyncio

    wait_s = ONCE_S if options.reaching.wait_s is None else options.reaching.wait_s
    reaching, is_all = msgspec.structs.replace(options.reaching, wait_s=wait_s), True
    async with client(reaching, _keep_s(options)) as asking:
        try:
            async with asyncio.timeout(wait_s):
                changes = await _question(asking, options)
        except TimeoutError:
            raise InputError(
                f"{asking.broker}: no answer to the question in {wait_s:g} s; --wait S for longer"
            ) from None
        try:
            async with asyncio.timeout(wait_s):
                await changes.now()
        except TimeoutError:
            is_all = False
        for _, change in sorted(changes.known.items()):
            _print(change, options.as_json)
    if not is_all:
        Reports().say(f"godwit: after {wait_s:g} s the broker has not said that this is all; --wait S for longer")
    return FINISHED if is_all else NOT_ALL


def _keep_s(options: QueryOptions) -> float | None:
    return options.keep_s if options.reaching.client else None


async def _question(asking: Client, options: QueryOptions) -> Query:
    return await asking.query(
        options.condition,
        topics=options.topic,
        qos=options.qos,
        cover=options.cover,
        quiet=options.quiet,
        resume=options.resume,
    )


def _print(change: Change, as_json: bool) -> None:
    sys.stdout.write((_object(change) if as_json else _line(change)) + "\n")
    sys.stdout.flush()


def _line(change: Change) -> str:
    said = f"({change.because})" if change.because else readable(change.payload)
    return f"{change.number}\t{change.sign}\t{change.topic}\t{said}"


def _object(change: Change) -> str:
    told = {
        "change": change.sign,
        "number": change.number,
        "view": change.view,
        "topic": change.topic,
        "attributes": change.attributes,
        "payload": readable(change.payload),
    }
    if change.because:
        told["because"] = change.because
    return msgspec.json.encode(told).decode()

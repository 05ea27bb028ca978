"""`godwit pub` and `godwit sub`: clients for the command line, how they reach a broker, and how they end."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Coroutine, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.console import InputError, Reports

if TYPE_CHECKING:
    import ssl

    from godwit.client.client import Client
    from godwit.client.received import Received

FINISHED, INTERRUPTED = 0, 130
PASSWORD = "GODWIT_PASSWORD"

UNDER_WAY = 500
"""How many are on their way to the broker at once."""


class Reaching(msgspec.Struct, frozen=True, kw_only=True):
    """How a broker is reached, as every command that is a client may be told."""

    broker: Annotated[
        list[str] | None,
        typer.Option("--broker", "-b", metavar="HOST:PORT", help="Where to connect; tried in their order."),
    ] = None
    client: Annotated[
        str, typer.Option("--client", "-i", metavar="NAME", help="Client id; the same name finds its session anywhere.")
    ] = ""
    user: Annotated[str | None, typer.Option(metavar="NAME", help="The password is taken from GODWIT_PASSWORD.")] = None
    ca: Annotated[Path | None, typer.Option("--ca", metavar="FILE", help="TLS, trusting this authority.")] = None
    cert: Annotated[Path | None, typer.Option("--cert", metavar="FILE", help="Certificate of this client.")] = None
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, if it is not in the same file.")] = None


class PublishOptions(msgspec.Struct, frozen=True, kw_only=True):
    topic: Annotated[str, typer.Argument(help="Where to publish, as in air/beijing.")]
    payload: Annotated[
        str | None, typer.Argument(help="What; a JSON object can be asked about by content. - reads stdin.")
    ] = None
    lines: Annotated[
        str | None, typer.Option(metavar="FILE", help="Publish every line of a file (may be .gz; - for stdin).")
    ] = None
    qos: Annotated[int, typer.Option(min=0, max=2, help="0 at most once, 1 at least once, 2 exactly once.")] = 2
    retain: Annotated[bool, typer.Option(help="Keep the last one for those who subscribe later.")] = False
    reaching: Reaching = Reaching()


class SubscribeOptions(msgspec.Struct, frozen=True, kw_only=True):
    condition: Annotated[str, typer.Argument(metavar="FILTER", help="A condition on the content; none: all.")] = ""
    topic: Annotated[str, typer.Option("--topic", "-t", help="Topic filter.")] = "#"
    qos: Annotated[int, typer.Option(min=0, max=2, help="0 at most once, 1 at least once, 2 exactly once.")] = 2
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="Leave after so many.")] = None
    keep_s: Annotated[
        float,
        typer.Option("--keep", min=0, metavar="S", help="With --client: how long it may be away and miss nothing."),
    ] = 0.0
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False
    reaching: Reaching = Reaching()


def pub(options: PublishOptions) -> int:
    """Publish; ends when a broker has it safely.

    Examples:

        godwit pub air/beijing '{"station": "Dongsi", "pm25": 163.5}'

        godwit pub fleet/van-7 --lines positions.jsonl.gz --broker 127.0.0.1:1884
    """
    return completed(_publish(options))


def sub(options: SubscribeOptions) -> int:
    """Print every event that matches, as it comes.

    Examples:

        godwit sub "pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)" --topic 'air/#'

        godwit sub "speed > 50" --client desk --keep 3600 --broker 127.0.0.1:1883 --broker 127.0.0.1:1884
    """
    return completed(_listen(options))


def completed(work: Coroutine[None, None, int]) -> int:
    """Run it to its exit status; Ctrl-C ends it quietly."""
    import asyncio

    from godwit.client.errors import ClientError

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ClientError as error:
        raise InputError(str(error)) from None


def client(reaching: Reaching, keep_s: float = 0.0) -> Client:
    """A client that is not connected yet. Raises `InputError` where an address or a file of TLS is wrong."""
    from godwit.client.client import connect
    from godwit.net.address import AddressError

    try:
        return connect(
            *(reaching.broker or ()),
            client=reaching.client,
            user=reaching.user,
            password=os.environ.get(PASSWORD),
            tls=_context(reaching),
            keep_s=keep_s,
        )
    except AddressError as error:
        raise InputError(str(error)) from None


def _context(reaching: Reaching) -> ssl.SSLContext | None:
    if reaching.ca is None and reaching.cert is None:
        return None
    import ssl

    try:
        context = ssl.create_default_context(cafile=None if reaching.ca is None else str(reaching.ca))
        if reaching.cert is not None:
            context.load_cert_chain(reaching.cert, reaching.key)
    except (OSError, ssl.SSLError) as error:
        where = error.filename or reaching.cert or reaching.ca
        raise InputError(f"{where}: cannot be used for TLS: {error.strerror or error}") from None
    return context


async def _publish(options: PublishOptions) -> int:
    import asyncio

    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    room = asyncio.Semaphore(UNDER_WAY)
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.completed:,} published"), TimeElapsedColumn(), console=console, transient=True
    )
    shown = progress if console.is_terminal else nullcontext()
    async with client(options.reaching) as publisher, asyncio.TaskGroup() as under_way:
        with shown:
            task = progress.add_task("", total=None)

            async def publish(payload: bytes) -> None:
                try:
                    await publisher.publish(
                        topic=options.topic, payload=payload, qos=options.qos, retain=options.retain
                    )
                finally:
                    room.release()
                progress.advance(task)

            for payload in _payloads(options.payload, options.lines):
                await room.acquire()
                under_way.create_task(publish(payload))
    return FINISHED


def _payloads(payload: str | None, lines: str | None) -> Iterator[bytes]:
    from godwit.commands.match.lines import STDIN, TextFile

    if lines is None:
        yield (payload or "").encode() if payload != STDIN else sys.stdin.buffer.read()
        return
    reports = Reports()
    for _, line in TextFile(lines, reports):
        yield line


async def _listen(options: SubscribeOptions) -> int:
    left = options.count
    async with client(options.reaching, options.keep_s) as subscriber:
        wanted = await subscriber.subscribe(options.condition, topics=options.topic, qos=options.qos)
        _told(subscriber, options.condition, options.topic)
        async for event in wanted:
            _print(event, options.as_json)
            if left is not None:
                left -= 1
                if not left:
                    event.ack()
                    break
    return FINISHED


def _told(subscriber: Client, condition: str, topics: str) -> None:
    if sys.stderr.isatty():
        from rich.console import Console

        wanted = f"{topics}{f' where {condition}' if condition else ''}"
        Console(stderr=True, highlight=False).print(f"listening at {subscriber.broker} for {wanted}", style="dim")


def _print(event: Received, as_json: bool) -> None:
    sys.stdout.write((_object(event) if as_json else f"{event.topic}\t{_readable(event.payload)}") + "\n")
    sys.stdout.flush()


def _readable(payload: bytes) -> str:
    try:
        return payload.decode().replace("\n", "\\n")
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(payload).decode()}"


def _object(event: Received) -> str:
    told = {"topic": event.topic, "attributes": event.attributes, "payload": _readable(event.payload)}
    return msgspec.json.encode(told).decode()

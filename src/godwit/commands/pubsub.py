"""`godwit pub` and `godwit sub`: clients for the command line, how they reach a broker, and how they end."""

from __future__ import annotations

import base64
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

from godwit.commands import hints
from godwit.commands.command import JsonLines
from godwit.commands.console import InputError, Reports

if TYPE_CHECKING:
    import asyncio
    import ssl

    from godwit.client.client import Client
    from godwit.client.received import Received

T = TypeVar("T")

FINISHED, INTERRUPTED = 0, 130
PASSWORD = "GODWIT_PASSWORD"

User = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"The password is taken from {PASSWORD}.", show_default="anonymous"),
]
Authority = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TLS, with a certificate that this one has signed.", show_default="no TLS"),
]

PortalAt = Annotated[
    str,
    typer.Option(
        "--broker", "-b", metavar="HOST:PORT", help="Where a broker answers with --status, or the URL of its --http."
    ),
]
PortalAuthority = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Who has signed the broker's certificate.", show_default="those this machine trusts"
    ),
]

UNDER_WAY = 500
"""How many are on their way to the broker at once."""
QUIET_S = 2.0
"""Whoever waits longer is told what for."""


class Reaching(msgspec.Struct, frozen=True, kw_only=True):
    """How a broker is reached, as every command that is a client may be told."""

    broker: Annotated[
        list[str] | None,
        typer.Option(
            "--broker",
            "-b",
            metavar="HOST:PORT",
            help="Where to connect. May be repeated.",
            show_default="127.0.0.1:1883",
        ),
    ] = None
    client: Annotated[
        str, typer.Option("--client", "-i", metavar="NAME", help="Client id; the same name finds its session anywhere.")
    ] = ""
    user: User = None
    authority: Authority = None
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Of this client, for TLS.")] = None
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of the certificate, if it is not in the same file.")
    ] = None
    wait_s: Annotated[
        float | None,
        typer.Option(
            "--wait",
            min=0,
            metavar="S",
            help="How long to try while no broker can be reached.",
            show_default="for ever",
        ),
    ] = None


class PublishOptions(msgspec.Struct, frozen=True, kw_only=True):
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where to publish, as in air/beijing.")]
    payload: Annotated[
        str | None,
        typer.Argument(metavar="MESSAGE", help="What; a JSON object can be asked about by content. - reads stdin."),
    ] = None
    lines: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Publish every line of a file (may be .gz; - for stdin), each as it comes."),
    ] = None
    qos: Annotated[int, typer.Option(min=0, max=2, help="0 at most once, 1 at least once, 2 exactly once.")] = 2
    retain: Annotated[bool, typer.Option("--retain", help="Keep the last one for those who subscribe later.")] = False
    expiry_s: Annotated[
        int | None,
        typer.Option("--expiry", min=1, metavar="S", help="It counts for so many seconds.", show_default="for ever"),
    ] = None
    profile: Annotated[
        str, typer.Option(metavar="FILTER", help="With --retain: the subspace in which this is, for godwit query.")
    ] = ""
    reaching: Reaching = Reaching()


class SubscribeOptions(msgspec.Struct, frozen=True, kw_only=True):
    condition: Annotated[str, typer.Argument(metavar="FILTER", help="A condition on the content; none: all.")] = ""
    topic: Annotated[str, typer.Option("--topic", "-t", help="Topic filter.")] = "#"
    qos: Annotated[int, typer.Option(min=0, max=2, help="0 at most once, 1 at least once, 2 exactly once.")] = 2
    since: Annotated[
        str,
        typer.Option(metavar="TIME", help="First what was published since then: -2h, or 2026-11-17T08:00:00Z."),
    ] = ""
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="Leave after so many.")] = None
    keep_s: Annotated[
        float,
        typer.Option("--keep", min=0, metavar="S", help="With --client: how long it may be away and miss nothing."),
    ] = 0.0
    as_json: JsonLines = False
    reaching: Reaching = Reaching()


def pub(options: PublishOptions) -> int:
    """Publish; ends when a broker has it safely.

    Examples:

        godwit pub air/beijing '{"station": "Dongsi", "pm25": 163.5}'

        tail -f /var/log/syslog | godwit pub logs/here --lines -

        godwit pub fleet/van-7 --lines positions.jsonl.gz --broker 127.0.0.1:1884

    Exit status: 0; 2 where something was refused, or no broker could be reached.
    """
    return completed(_publish(options))


def sub(options: SubscribeOptions) -> int:
    """Print every event that matches, as it comes.

    Examples:

        godwit sub "pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)" --topic 'air/#'

        godwit sub "speed > 50" --since -2h

        godwit sub "speed > 50" --client desk --keep 3600 --broker 127.0.0.1:1883 --broker 127.0.0.1:1884

    Exit status: 0 after --count; 2 where something was refused, or no broker could be reached; 130 after Ctrl-C.
    """
    return completed(_listen(options))


def completed(work: Coroutine[None, None, int]) -> int:
    """Run it to its exit status; Ctrl-C ends it quietly."""
    import asyncio

    from godwit.errors import GodwitError

    _tell_troubles()
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        return INTERRUPTED
    except GodwitError as error:
        raise InputError(str(error)) from None


class _Teller(logging.Handler):
    """What the client has to tell, on stderr as it is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        Reports().say(f"godwit: {record.getMessage()}")


def _tell_troubles() -> None:
    """Whoever waits at a terminal, or reads the log of a script, wants to know why."""
    log = logging.getLogger("godwit.client")
    if not any(isinstance(one, _Teller) for one in log.handlers):
        log.addHandler(_Teller())
        log.setLevel(logging.INFO)
        log.propagate = False


def client(reaching: Reaching, keep_s: float | None = 0.0) -> Client:
    """A client that is not connected yet. `GodwitError` or `InputError` where an address or a file of TLS is wrong."""
    from godwit.client.client import connect

    return connect(
        *(reaching.broker or ()),
        client=reaching.client,
        user=reaching.user,
        password=os.environ.get(PASSWORD),
        tls=_context(reaching),
        keep_s=keep_s,
        wait_s=reaching.wait_s,
    )


def _context(reaching: Reaching) -> ssl.SSLContext | None:
    if reaching.authority is None and reaching.certificate is None:
        return None
    import ssl

    try:
        context = ssl.create_default_context(cafile=None if reaching.authority is None else str(reaching.authority))
        if reaching.certificate is not None:
            context.load_cert_chain(reaching.certificate, reaching.key)
    except (OSError, ssl.SSLError) as error:
        where = error.filename or reaching.certificate or reaching.authority
        raise InputError(f"{where}: cannot be used for TLS: {error.strerror or error}") from None
    return context


async def _publish(options: PublishOptions) -> int:
    import asyncio

    from godwit.client.payload import check_topic

    check_topic(options.topic)
    payloads = _payloads(options)
    failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    under_way: set[asyncio.Task[None]] = set()

    def finished(task: asyncio.Task[None]) -> None:
        under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not failure.done():
            failure.set_exception(error)

    async with client(options.reaching) as publisher:
        with _progress() as advance:
            while (payload := await _unless(failure, anext(payloads, None))) is not None:
                published = publisher.publish(
                    topic=options.topic,
                    payload=payload,
                    qos=options.qos,
                    retain=options.retain,
                    expiry_s=options.expiry_s,
                    profile=options.profile,
                )
                task = asyncio.create_task(published)
                under_way.add(task)
                task.add_done_callback(finished)
                advance()
                if len(under_way) >= UNDER_WAY:
                    await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.gather(*under_way)
    return FINISHED


async def _unless(failure: asyncio.Future[None], work: Awaitable[T]) -> T:
    """The result of the work; where something fails meanwhile, that."""
    import asyncio

    task = asyncio.ensure_future(work)
    await asyncio.wait((task, failure), return_when=asyncio.FIRST_COMPLETED)
    if failure.done():
        task.cancel()
        failure.result()
    return await task


async def _patiently(work: Awaitable[T], told: str) -> T:
    """Its result. What it waits for is told where that takes long."""
    import asyncio

    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=QUIET_S)
        if not task.done():
            Reports().say(f"godwit: {told}")
        return await task
    finally:
        task.cancel()


@contextmanager
def _progress() -> Iterator[Callable[[], None]]:
    """How many were published, on a terminal."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    columns = TextColumn("{task.completed:,} published"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda: progress.advance(task)


async def _payloads(options: PublishOptions) -> AsyncIterator[bytes]:
    """What is to be published, each as soon as it is there. Files are read by a thread: who is slow to say something
    must not keep the client from answering its broker."""
    import asyncio

    from godwit.commands.match.lines import STDIN, TextFile

    if options.lines is None:
        said = options.payload
        payload = await asyncio.to_thread(sys.stdin.buffer.read) if said == STDIN else (said or "").encode()
        _tell(hints.of_message(options.topic, payload, said=said is not None or options.retain))
        yield payload
        return
    lines = iter(TextFile(options.lines, Reports()))
    while (line := await in_thread(lambda: next(lines, None))) is not None:
        yield line[1]


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Like `asyncio.to_thread`, in a thread that does not keep the program from ending: it may wait for somebody who
    never types another line."""
    import asyncio
    import threading

    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True).start()
    return future


async def _listen(options: SubscribeOptions) -> int:
    left = options.count
    if options.keep_s and not options.reaching.client:
        raise InputError("--keep needs --client NAME: a session is found again by its name")
    _tell(hints.of_condition(options.condition))
    keep_s = options.keep_s if options.reaching.client else None
    async with client(options.reaching, keep_s) as subscriber:
        asked = subscriber.subscribe(options.condition, topics=options.topic, qos=options.qos, since=options.since)
        wanted = await _patiently(asked, "not subscribed yet: waiting for the brokers that may match this")
        _told(subscriber, options.condition, options.topic)
        async for event in wanted:
            _print(event, options.as_json)
            if left is not None:
                left -= 1
                if not left:
                    break
    return FINISHED


def _tell(hints: list[str]) -> None:
    for hint in hints:
        Reports().say(f"godwit: {hint}")


def _told(subscriber: Client, condition: str, topics: str) -> None:
    if sys.stderr.isatty():
        from rich.console import Console

        wanted = f"{topics}{f' where {condition}' if condition else ''}"
        Console(stderr=True, highlight=False).print(f"listening at {subscriber.broker} for {wanted}", style="dim")


def _print(event: Received, as_json: bool) -> None:
    sys.stdout.write((_object(event) if as_json else f"{event.topic}\t{readable(event.payload)}") + "\n")
    sys.stdout.flush()


def readable(payload: bytes) -> str:
    try:
        return payload.decode().replace("\n", "\\n")
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(payload).decode()}"


def _object(event: Received) -> str:
    told = {"topic": event.topic, "attributes": event.attributes, "payload": readable(event.payload)}
    return msgspec.json.encode(told).decode()

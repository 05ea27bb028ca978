"""What `godwit pub` and `godwit sub` share: how they reach a broker, and how they end."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import sys
from collections.abc import Coroutine, Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from godwit.client.client import Client, ClientError, connect
from godwit.client.received import Received
from godwit.commands.console import InputError, Reports
from godwit.commands.match.lines import STDIN, TextFile
from godwit.net.address import AddressError

FINISHED, INTERRUPTED = 0, 130
PASSWORD = "GODWIT_PASSWORD"


class Reaching(msgspec.Struct, frozen=True, kw_only=True):
    """As typed."""

    brokers: list[str]
    client: str = ""
    user: str | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    keep_s: float = 0.0


def client(reaching: Reaching) -> Client:
    try:
        return connect(
            *reaching.brokers,
            client=reaching.client,
            user=reaching.user,
            password=os.environ.get(PASSWORD),
            tls=_context(reaching),
            keep_s=reaching.keep_s,
        )
    except AddressError as error:
        raise InputError(str(error)) from None


def _context(reaching: Reaching) -> ssl.SSLContext | None:
    if reaching.ca is None and reaching.certificate is None:
        return None
    try:
        context = ssl.create_default_context(cafile=None if reaching.ca is None else str(reaching.ca))
        if reaching.certificate is not None:
            context.load_cert_chain(reaching.certificate, reaching.key)
    except (OSError, ssl.SSLError) as error:
        where = error.filename or reaching.certificate or reaching.ca
        raise InputError(f"{where}: cannot be used for TLS: {error.strerror or error}") from None
    return context


def completed(work: Coroutine[None, None, int]) -> int:
    """Run it to its exit status; Ctrl-C ends it quietly."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ClientError as error:
        raise InputError(str(error)) from None


# `godwit pub`: publish one event, or one for each line.

UNDER_WAY = 500
"""How many are on their way to the broker at once."""


def publish(reaching: Reaching, topic: str, payload: str | None, lines: str | None, qos: int, retain: bool) -> int:
    return completed(_publish(reaching, topic, _payloads(payload, lines), qos, retain))


def _payloads(payload: str | None, lines: str | None) -> Iterator[bytes]:
    if lines is None:
        yield (payload or "").encode() if payload != STDIN else sys.stdin.buffer.read()
        return
    reports = Reports()
    for _, line in TextFile(lines, reports):
        yield line


async def _publish(reaching: Reaching, topic: str, payloads: Iterator[bytes], qos: int, retain: bool) -> int:
    room = asyncio.Semaphore(UNDER_WAY)
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.completed:,} published"), TimeElapsedColumn(), console=console, transient=True
    )
    shown = progress if console.is_terminal else nullcontext()
    async with client(reaching) as publisher, asyncio.TaskGroup() as under_way:
        with shown:
            task = progress.add_task("", total=None)

            async def publish(payload: bytes) -> None:
                try:
                    await publisher.publish(topic=topic, payload=payload, qos=qos, retain=retain)
                finally:
                    room.release()
                progress.advance(task)

            for payload in payloads:
                await room.acquire()
                under_way.create_task(publish(payload))
    return FINISHED


# `godwit sub`: print every event that matches, as it comes.


def listen(reaching: Reaching, condition: str, topics: str, qos: int, count: int | None, as_json: bool) -> int:
    return completed(_listen(reaching, condition, topics, qos, count, as_json))


async def _listen(reaching: Reaching, condition: str, topics: str, qos: int, count: int | None, as_json: bool) -> int:
    left = count
    async with client(reaching) as subscriber:
        wanted = await subscriber.subscribe(condition, topics=topics, qos=qos)
        _told(subscriber, condition, topics)
        async for event in wanted:
            _print(event, as_json)
            if left is not None:
                left -= 1
                if not left:
                    event.ack()
                    break
    return FINISHED


def _told(subscriber: Client, condition: str, topics: str) -> None:
    if sys.stderr.isatty():
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

"""`godwit pub`: publish one event, or one for each line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import nullcontext

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from godwit.commands.broking import FINISHED, Reaching, client, completed
from godwit.commands.lines import STDIN, TextFile
from godwit.commands.reports import Reports

UNDER_WAY = 500
"""How many are on their way to the broker at once."""


def run(reaching: Reaching, topic: str, payload: str | None, lines: str | None, qos: int, retain: bool) -> int:
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

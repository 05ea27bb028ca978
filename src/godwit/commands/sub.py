"""`godwit sub`: print every event that matches, as it comes."""

from __future__ import annotations

import base64
import sys

import msgspec
from rich.console import Console

from godwit.commands.broking import FINISHED, Reaching, client, completed
from godwit.net.client import Client
from godwit.net.received import Received


def run(reaching: Reaching, condition: str, topics: str, qos: int, count: int | None, as_json: bool) -> int:
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

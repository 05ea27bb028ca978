"""Whole brokers in the test's own loop, on free ports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import aiomqtt
from tests.net.stations import until

from godwit.net.config import load
from godwit.net.server import MakeService, Parts, Server
from godwit.protocols.broker.fabric.base import ANYTHING


def scene(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is played in a loop of its own, for three minutes at most."""

    @wraps(test)
    def play(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), 180))

    return play


def server(folder: Path, name: str, *, extras: tuple[MakeService, ...] = (), **flags: Any) -> Server:
    """Not started yet; flags are keys with `__` for a dot."""
    keys = {key.replace("__", "."): value for key, value in flags.items()}
    told = {"listen.mqtt": ["127.0.0.1:0"], "name": name, "data": folder / name, **keys}
    return Server(load(None, told, {}), extras)


@asynccontextmanager
async def serving(folder: Path, name: str, **flags: Any) -> AsyncIterator[Server]:
    one = server(folder, name, **flags)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


@asynccontextmanager
async def cluster(folder: Path, *names: str, **flags: Any) -> AsyncIterator[list[Server]]:
    """Brokers that all know the first one, and have found one another."""
    servers: list[Server] = []
    try:
        for name in names:
            seed = [peers_at(servers[0])] if servers else []
            one = server(folder, name, peers__listen="127.0.0.1:0", peers__connect=seed, **flags)
            await one.start()
            servers.append(one)
        await until(lambda: all(len(parts(one).fabric.sources(ANYTHING)) == len(names) - 1 for one in servers))
        yield servers
    finally:
        for one in servers:
            await one.stop()


def parts(one: Server) -> Parts:
    assert one.parts is not None
    return one.parts


def peers_at(one: Server) -> str:
    return dict(one.addresses())["peers"]


def port(one: Server, kind: str = "mqtt") -> int:
    return int(dict(one.addresses())[kind].rpartition(":")[2])


def client(one: Server, identifier: str, **more: Any) -> aiomqtt.Client:
    """A client of version 3.1.1 whose session stays, and who waits for a minute on a busy machine."""
    told = {"timeout": 60, **more}
    return aiomqtt.Client("127.0.0.1", port(one), identifier=identifier, clean_session=False, **told)


async def wanted_by(one: Server, others: list[Server]) -> None:
    """Wait until the others know that this broker wants something."""
    name = parts(one).identity.name
    await until(lambda: all(parts(other).fabric.interests.get(name) for other in others))


async def taken(client: aiomqtt.Client, count: int) -> list[tuple[str, bytes]]:
    """The next so many messages."""
    found: list[tuple[str, bytes]] = []
    async for message in client.messages:
        found.append((str(message.topic), bytes(message.payload)))
        if len(found) == count:
            break
    return found

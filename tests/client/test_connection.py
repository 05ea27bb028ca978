"""A client's connection, on whichever loop its program runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.net.servers import port, serving

from godwit.client.client import connect
from godwit.client.connection import Wire
from godwit.net.address import Address


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_client_works_on_any_loop(tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(f"127.0.0.1:{port(a)}") as client:
            subscription = await client.subscribe("n = 7")
            await client.publish({"n": 7})
            event = await asyncio.wait_for(subscription.next(), 20)
            assert event is not None
            assert event.attributes["n"] == 7

    run(scene())


def test_silence_ends_a_connection_only_when_the_broker_has_let_the_client_in() -> None:
    """Before that it may be waiting for the client's session."""

    async def scene() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            wire = await Wire.dial(Address("127.0.0.1", server.sockets[0].getsockname()[1]), None, 0.02)
            await asyncio.sleep(0.2)
            assert not wire.closed.is_set()
            wire.keep_alive()
            await asyncio.wait_for(wire.closed.wait(), 60)

    asyncio.run(scene())

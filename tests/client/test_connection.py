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

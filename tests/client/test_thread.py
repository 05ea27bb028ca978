"""`with godwit.connect(...)`: the client of programs without asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.net.servers import parts, port, serving
from tests.net.stations import played, until

import godwit


def used(broker: str) -> list[object]:
    """A program without asyncio, twice; what its second run finds."""
    seen: list[object] = []
    for last in (1, 3):
        with godwit.connect(broker, client="van") as van:
            numbers = van.subscribe("n >= 0", topics="air/#")
            for number in range(last - 1, last + 1):
                van.publish({"n": number}, topic="air/x")
            seen = []
            for event in numbers:
                seen.append(event.attributes["n"])
                if event.attributes["n"] == last:
                    break
    return seen


def refused(broker: str) -> None:
    with godwit.connect(broker) as client:
        with pytest.raises(godwit.RefusedError, match="filter"):
            client.subscribe("pm25 >")
        with pytest.raises(godwit.ClientError, match="wildcard"):
            client.publish({}, topic="#")
        waiting = client.subscribe(topics="one")
        with pytest.raises(TimeoutError):
            waiting.next(timeout_s=0.01)
        client.publish({"n": 1}, topic="one")
        event = waiting.next(timeout_s=20)
        assert event is not None
        event.ack()
        waiting.stop()
    with pytest.raises(godwit.ClientError, match="closed"):
        client.publish({})


def test_a_program_without_asyncio_gets_everything_once_and_in_order(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            broker = f"127.0.0.1:{port(a)}"
            assert await asyncio.to_thread(used, broker) == [2, 3]
            await asyncio.to_thread(refused, broker)
            await until(lambda: list(parts(a).broker.sessions) == ["van"])

    played(scene)


def test_a_program_without_asyncio_hears_that_nobody_is_there() -> None:
    with (
        pytest.raises(godwit.UnreachableError, match=r"given up after 0\.1 s"),
        godwit.connect("127.0.0.1:1", wait_s=0.1),
    ):
        pass

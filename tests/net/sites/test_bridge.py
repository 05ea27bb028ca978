"""A mosquitto that nobody has changed on the other side: both ways, at least once, and nothing goes in circles."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from tests.net.servers import client, parts, scene, serving, taken
from tests.net.stations import until

from godwit.net.config import BridgeRoute
from godwit.net.ops.services import bridges
from godwit.net.processes import hold_port
from godwit.net.sites.bridge import mapped

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason="there is no mosquitto; `apt-get install mosquitto`")


class Mosquitto:
    """A broker of others, on a port of its own, whose memory outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held = hold_port()
        self.port = int(self._held.getsockname()[1])
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        assert MOSQUITTO is not None
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "mosquitto.conf"
        lines = ["allow_anonymous true", f"listener {self.port} 127.0.0.1", "persistence true"]
        lines += [f"persistence_location {self.folder}/", "autosave_interval 1", "autosave_on_changes true"]
        config.write_text("\n".join([*lines, "user root", ""]))
        self.process = await asyncio.create_subprocess_exec(
            MOSQUITTO, "-c", str(config), stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
        )
        while self.process.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.1)
        raise AssertionError("mosquitto has ended")

    async def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            await self.process.wait()
            self.process = None

    def close(self) -> None:
        """Give its port back."""
        self._held.close()

    def client(self, name: str, **more: Any) -> aiomqtt.Client:
        told = {"timeout": 60, **more}
        return aiomqtt.Client("127.0.0.1", self.port, identifier=name, clean_session=False, **told)


@asynccontextmanager
async def mosquitto(folder: Path) -> AsyncIterator[Mosquitto]:
    made = Mosquitto(folder / "mosquitto")
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
        made.close()


def bridge(to: Mosquitto, version: int, send: list[dict[str, str]], receive: list[dict[str, str]]) -> dict[str, Any]:
    table = {"connect": f"mqtt://127.0.0.1:{to.port}", "version": version, "send": send, "receive": receive}
    return {"sites__bridges": {"mosq": table}, "extras": (bridges,)}


async def up(one: Any) -> None:
    await until(lambda: any(row.up for service in parts(one).services for row in service.bridges()))


@needs_mosquitto
@pytest.mark.parametrize("version", [3, 5])
@scene
async def test_events_cross_both_ways_with_topics_mapped_and_filters_applied_here(tmp_path: Path, version: int) -> None:
    send = [{"topics": "line/#", "condition": "c > 50", "prefix": "godwit/"}]
    receive = [{"topics": "office/#", "condition": "urgent = TRUE", "strip": "office/", "prefix": "from-office/"}]
    async with mosquitto(tmp_path) as other, serving(tmp_path, "one", **bridge(other, version, send, receive)) as one:
        await up(one)
        async with other.client("far") as far, client(one, "near") as near:
            await far.subscribe("godwit/#", qos=1)
            await near.subscribe("from-office/#", qos=1)
            await asyncio.sleep(0.3)
            for c in (10, 60, 20, 70):
                await near.publish("line/temp", b'{"c": %d}' % c, qos=1)
            assert await taken(far, 2) == [("godwit/line/temp", b'{"c": 60}'), ("godwit/line/temp", b'{"c": 70}')]
            await far.publish("office/desk", b'{"urgent": false}', qos=1)
            await far.publish("office/desk", b'{"urgent": true}', qos=1)
            assert await taken(near, 1) == [("from-office/desk", b'{"urgent": true}')]


@needs_mosquitto
@scene
async def test_nothing_goes_in_circles_where_both_ways_have_the_same_topics(tmp_path: Path) -> None:
    both = [{"topics": "t/#"}]
    async with (
        mosquitto(tmp_path) as other,
        serving(tmp_path, "one", **bridge(other, 5, both, both)) as one,
    ):
        await up(one)
        async with other.client("far") as far, client(one, "near") as near:
            await far.subscribe("t/#", qos=1)
            await near.subscribe("t/#", qos=1)
            await asyncio.sleep(0.3)
            await near.publish("t/near", b"1", qos=1)
            await far.publish("t/far", b"2", qos=1)
            assert sorted(await taken(far, 2)) == [("t/far", b"2"), ("t/near", b"1")]
            assert sorted(await taken(near, 2)) == [("t/far", b"2"), ("t/near", b"1")]
            await asyncio.sleep(1.0)
            row = next(row for service in parts(one).services for row in service.bridges())
            assert (row.events_out, row.events_in) == (1, 1)


@needs_mosquitto
@scene
async def test_what_was_said_while_either_side_was_away_arrives(tmp_path: Path) -> None:
    flags: dict[str, Any] = {}
    async with mosquitto(tmp_path) as other:
        flags = bridge(other, 5, [{"topics": "up/#"}], [{"topics": "down/#"}])
        async with serving(tmp_path, "one", **flags) as one, client(one, "near") as near:
            await up(one)
            await near.subscribe("down/#", qos=1)
            async with other.client("far") as far:
                await far.subscribe("up/#", qos=1)
            await other.stop()
            for number in range(10):
                await near.publish("up/x", b"%d" % number, qos=1)
            await other.start()
            async with other.client("far") as far:
                assert [payload for _, payload in await taken(far, 10)] == [b"%d" % number for number in range(10)]
        async with other.client("far") as far:
            for number in range(10):
                await far.publish("down/x", b"%d" % number, qos=1)
        async with serving(tmp_path, "one", **flags) as one, client(one, "near") as near:
            assert [payload for _, payload in await taken(near, 10)] == [b"%d" % number for number in range(10)]


def test_topics_lose_one_front_and_get_another() -> None:
    assert mapped("plant/line/1", BridgeRoute(topics="plant/#", strip="plant/", prefix="eu/")) == "eu/line/1"
    assert mapped("plant", BridgeRoute(topics="plant/#", strip="plant/")) is None
    assert mapped("plant/x", BridgeRoute(topics="plant/#")) == "plant/x"

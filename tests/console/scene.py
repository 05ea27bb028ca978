"""A small cluster with clients that move, and a console, in a loop of a thread: for a browser in the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from math import cos, sin
from pathlib import Path
from typing import Any, TypeVar

from tests.net.servers import cluster, parts, port
from tests.net.stations import until

import godwit
from godwit.console.fleet import Fleet
from godwit.console.serving import Hosted
from godwit.net.access import hashed
from godwit.net.address import Address
from godwit.net.ops import services
from godwit.net.server import Server

T = TypeVar("T")

EVIL = '<img src=x onerror="window.hacked=1">'
USERS = """
[anonymous]
from = "loopback"
role = "{role}"

[users.ann]
password = "{secret}"
role = "operator"

[users.bob]
password = "{secret}"
role = "viewer"
subscribe = ["air/# WHERE pm25 > 100"]
"""


class Scene:
    """Brokers north, east and south. `call` runs something in their loop and waits for it."""

    def __init__(self, folder: Path, role: str = "operator", **flags: Any) -> None:
        self.folder = folder
        self._flags = flags
        logging.getLogger("godwit").setLevel(logging.INFO)  # as `godwit serve` has it
        self.loop = asyncio.new_event_loop()
        self.servers: list[Server] = []
        self.url = ""
        self.background: asyncio.Task[None] | None = None
        self._stack = AsyncExitStack()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        (folder / "users.toml").write_text(USERS.format(role=role, secret=hashed("pass", "low")))
        self.call(self._start())

    def call(self, work: Coroutine[Any, Any, T], within_s: float = 60) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(within_s)

    async def _start(self) -> None:
        (self.folder / "places.csv").write_text(
            "broker,lat,lon\nnorth,39.99,116.38\neast,39.92,116.50\nsouth,39.85,116.36\n"
        )
        flags: dict[str, Any] = {
            "listen__ws": ["127.0.0.1:0"],
            "listen__status": "127.0.0.1:0",
            "listen__http": "127.0.0.1:0",
            "access__users": self.folder / "users.toml",
            "copies__places": self.folder / "places.csv",
            "extras": services.ALL,
            **self._flags,
        }
        self.servers = await self._stack.enter_async_context(cluster(self.folder, "north", "east", "south", **flags))
        seed = f"127.0.0.1:{port(self.servers[0], 'status')}"
        await until(lambda: len(parts(self.servers[0]).balance.loads) == 2)
        await until(lambda: all(load.address_http for load in parts(self.servers[0]).balance.loads.values()))
        hosted = Hosted(Fleet([seed]), Address("127.0.0.1", 0))
        await hosted.start()
        self._stack.push_async_callback(hosted.stop)
        self.url = hosted.url

    async def enter(self, client: godwit.Client) -> godwit.Client:
        """A client that stays until the scene is over."""
        return await self._stack.enter_async_context(client)

    def at(self, name: str) -> str:
        return f"127.0.0.1:{port(self.server(name))}"

    def server(self, name: str) -> Server:
        return next(one for one in self.servers if parts(one).identity.name == name)

    async def populate(self) -> None:
        """Vans with filters, one of whom roams; one that sleeps with a backlog; and names that are no names."""
        connect = self._stack.enter_async_context
        for number in range(6):
            van = await connect(godwit.connect(self.at(("north", "east", "south")[number % 3]), client=f"van-{number}"))
            await van.subscribe(f"pm25 > {100 + 20 * number} AND within(lat, lon, 39.9, 116.4, {number + 2}km)")
        roamer = await connect(godwit.connect(self.at("north"), self.at("south"), client="roamer"))
        await roamer.subscribe("pm25 > 150", topics="air/#")
        for name in ("south", "north", "south"):
            await roamer.roam(self.at(name), away_s=0.05)
        evil = await connect(godwit.connect(self.at("east"), client=EVIL))
        await evil.subscribe("note = '<script>window.hacked=1</script>'", topics="air/#")
        async with godwit.connect(self.at("east"), client="sleeper") as sleeper:
            await sleeper.subscribe("pm25 > 0", topics="air/#")
        hub = await connect(godwit.connect(self.at("north"), client="hub"))
        async with godwit.connect(self.at("north"), client="hub"):
            await asyncio.sleep(0.1)
        with contextlib.suppress(godwit.ClientError):
            await hub.subscribe("pm25 >", topics="air/#")
        for number in range(5):
            await hub.publish({"pm25": 90 + 20 * number, "note": EVIL}, topic=f"air/{EVIL}")

    async def drive(self, things: int, rounds: int, every_s: float) -> None:
        """Things that move around, at all brokers."""
        hubs = [
            await self._stack.enter_async_context(godwit.connect(self.at(one))) for one in ("north", "east", "south")
        ]
        centres = ((39.99, 116.38), (39.92, 116.50), (39.85, 116.36))
        for turn in range(rounds):
            for number in range(things):
                lat, lon = centres[number % 3]
                angle = number * 2.399 + turn * 0.05
                reach = 0.005 + 0.06 * (number % 97) / 97
                event: dict[str, Any] = {
                    "id": f"taxi-{number}",
                    "lat": lat + reach * cos(angle) * 0.75,
                    "lon": lon + reach * sin(angle),
                    "pm25": 50 + number % 150,
                    "kind": "taxi" if number % 4 else "bus",
                }
                await hubs[number % 3].publish(event, topic=f"fleet/{number % 10}", qos=0)
            await asyncio.sleep(every_s)

    def stop(self) -> None:
        if self.background is not None:
            self.loop.call_soon_threadsafe(self.background.cancel)
        try:
            self.call(self._stack.aclose())
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(10)

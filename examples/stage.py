"""What the scripted scenes share: three brokers of their own, clients of others, and steps that must come true."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import godwit
from godwit.net.processes import BrokerProcess, agreed, cluster

STEP_S = 90.0
SETTINGS = {"handoff_wait_s": 2.0}
"""Whoever knocks while its broker is dead gets a new session after two seconds, and the old one's rest later."""

_began_s = time.monotonic()


def tell(text: str) -> None:
    print(f"{time.monotonic() - _began_s:6.1f} s  {text}", flush=True)


async def until(true: Callable[[], bool | Awaitable[bool]], what: str) -> None:
    """Go on when it is so, and say it; a scene in which it does not come to that has failed."""
    end_s = time.monotonic() + STEP_S
    while True:
        found = true()
        if await found if isinstance(found, Awaitable) else found:
            break
        if time.monotonic() > end_s:
            sys.exit(f"this did not come true in {STEP_S:.0f} s: {what}")
        await asyncio.sleep(0.05)
    tell(what)


@asynccontextmanager
async def brokers(*names: str) -> AsyncIterator[tuple[list[BrokerProcess], Path]]:
    """Real broker processes that know each other, and a folder; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
        started = cluster(list(names), Path(folder), SETTINGS)
        try:
            tell(f"starting {', '.join(names)}")
            await asyncio.gather(*(one.start() for one in started))
            await agreed(started)
            tell("they know each other")
            yield started, Path(folder)
        finally:
            await asyncio.gather(*(one.kill() for one in started))


class Stranger:
    """A client of somebody else's library (paho), which knows MQTT and nothing of Godwit."""

    def __init__(self, broker: BrokerProcess, name: str, *, old: bool = False) -> None:
        try:
            from paho.mqtt import client as paho
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            sys.exit("this scene has guests that speak MQTT with another library: pip install paho-mqtt")
        self.heard: list[tuple[str, bytes]] = []
        """Topic and payload, in order."""
        version = paho.MQTTv311 if old else paho.MQTTv5
        self._client = paho.Client(CallbackAPIVersion.VERSION2, name, protocol=version)
        self._client.on_message = lambda _, __, said: self.heard.append((said.topic, bytes(said.payload)))
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()

    async def publish(self, topic: str, payload: bytes, *, retain: bool = False, profile: str = "") -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        said = None
        if profile:
            said = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            said.UserProperty = [("profile", profile)]
        sent = self._client.publish(topic, payload, qos=1, retain=retain, properties=said)
        await asyncio.to_thread(sent.wait_for_publish, STEP_S)

    def subscribe(self, pattern: str) -> None:
        self._client.subscribe(pattern, qos=1)

    def leave(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


async def arrived(client: godwit.Client, broker: BrokerProcess) -> None:
    """Until it is let in there; it may have tried elsewhere meanwhile."""
    while True:
        try:
            await client.roam(broker.address)
            return
        except godwit.UnreachableError:
            await asyncio.sleep(0.1)

"""Brokers killed with SIGKILL at random moments under load: what was acknowledged is there, once, in order."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import defaultdict
from pathlib import Path

from tests.brokers import FREE, Process, running
from tests.net.stations import until

from godwit.net.client import Client, connect

NAMES = "abc"
KILLS = 4
WINDOW = 50
PATIENCE_S = 120


class Storm:
    """Three brokers, a publisher and a subscriber at each; whatever is published is for all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.brokers: list[Process] = []
        for name in NAMES:
            seed = ["--peer", self.brokers[0].at("peers")] if self.brokers else []
            self.brokers.append(Process(folder, name, *FREE, *seed))
        self.acknowledged: dict[str, int] = {}
        self.got: dict[str, dict[str, list[int]]] = {}
        self.over = False

    async def kill(self, dice: random.Random) -> None:
        """And start again, where it was."""
        at = dice.randrange(len(self.brokers))
        old = self.brokers[at]
        old.end(signal.SIGKILL)
        same = ["--listen", old.at("mqtt"), "--peers-listen", old.at("peers")]
        self.brokers[at] = await asyncio.to_thread(Process, self.folder, old.name, *same)

    async def listen(self, at: int, ready: asyncio.Event) -> None:
        heard: dict[str, list[int]] = defaultdict(list)
        self.got[f"subscriber {at}"] = heard
        async with connect(self.brokers[at].at("mqtt"), client=f"s{at}", keep_s=600) as client:
            subscription = await client.subscribe("n >= 0", topics="storm", qos=2)
            ready.set()
            async for event in subscription:
                heard[str(event.attributes["p"])].append(int(event.attributes["n"]))

    async def publish(self, at: int) -> None:
        name, n = f"p{at}", 0
        async with connect(self.brokers[at].at("mqtt"), client=name, keep_s=600) as client:
            while not self.over:
                await asyncio.gather(*(self._say(client, name, n + more) for more in range(WINDOW)))
                n += WINDOW
                self.acknowledged[name] = n
                await asyncio.sleep(0.02)

    async def _say(self, client: Client, name: str, n: int) -> None:
        await client.publish({"p": name, "n": n}, topic="storm", qos=2)

    def is_complete(self) -> bool:
        return all(
            len(heard[name]) >= count for heard in self.got.values() for name, count in self.acknowledged.items()
        )

    async def rage(self, dice: random.Random) -> None:
        numbers = range(len(NAMES))
        await until(lambda: all(one.log.read_text().count("linked with") >= 2 for one in self.brokers), PATIENCE_S)
        ready = [asyncio.Event() for _ in numbers]
        listening = [asyncio.create_task(self.listen(at, ready[at])) for at in numbers]
        await asyncio.gather(*(one.wait() for one in ready))
        # Interest travels: what is published before all brokers know it is owed to nobody.
        await asyncio.sleep(3)
        publishing = [asyncio.create_task(self.publish(at)) for at in numbers]
        for _ in range(KILLS):
            await asyncio.sleep(dice.uniform(0.1, 1.5))
            await self.kill(dice)
        self.over = True
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*publishing)
        try:
            await until(self.is_complete, PATIENCE_S)
        finally:
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)


def test_nothing_acknowledged_is_lost_nothing_comes_twice_and_all_keeps_its_order(tmp_path: Path) -> None:
    storm = Storm(tmp_path)
    with running(*storm.brokers):
        try:
            asyncio.run(storm.rage(random.Random(7)))
        finally:
            for one in storm.brokers:
                if one.process.poll() is None:
                    one.end(signal.SIGKILL)
    assert sorted(storm.acknowledged) == ["p0", "p1", "p2"]
    for subscriber, heard in storm.got.items():
        for name, count in storm.acknowledged.items():
            assert heard[name] == sorted(heard[name]), f"{subscriber} heard {name} out of order"
            assert heard[name] == list(range(count)), f"{subscriber} and {name}"

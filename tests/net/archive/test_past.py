"""An archive is replayed as it was published, whatever is on the disk and whatever is not yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from godwit.client.client import Client, connect
from godwit.client.errors import RefusedError
from godwit.client.received import Subscription
from godwit.filters.filters import FilterSet
from godwit.net.archive import past, writer
from godwit.net.archive.past import PastReader
from godwit.net.archive.writer import ArchiveOptions
from godwit.net.processes import SETTINGS, BrokerProcess, agreed, cluster
from godwit.protocols.broker.lasting.past import BEGINNING, Stretch
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.broker.session.parse import condition_of

WAIT_S = 90.0
GOOD = condition_of("t/#", "kind = 'good'")


def publication(number: int, kind: str, time_s: float) -> Publication:
    return Publication("p", number, "t/x", b'{"n": %d, "kind": "%s"}' % (number, kind.encode()), 1, time=time_s)


async def whole(reader: PastReader, since: float, wanted: FilterSet) -> list[Publication]:
    """As a subscriber would: on and on, then all that is left."""
    found: list[Publication] = []
    position, final = BEGINNING, False
    while True:
        stretch = await asked(reader, since, position, wanted, final)
        found += [one for _, one in stretch.rows]
        if stretch.is_all:
            return found
        assert not stretch.lost
        position, final = stretch.position, stretch.until > 0


async def asked(reader: PastReader, since: float, position: tuple[str, int], wanted: FilterSet, final: bool) -> Stretch:
    answer: asyncio.Future[Stretch] = asyncio.get_running_loop().create_future()
    reader.read(since, position, wanted, final, answer.set_result)
    async with asyncio.timeout(WAIT_S):
        return await answer


def test_all_that_is_wanted_comes_from_files_streams_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a few rows, small stretches, and writers that are slower or quicker than the reader."""
    monkeypatch.setattr(past, "LOOKED_AT_MAX", 11)
    monkeypatch.setattr(past, "SHARE", 1.0)
    for seed in range(6):
        dice, folder = Random(seed), tmp_path / str(seed)
        options = ArchiveOptions(file_bytes=dice.choice((600, 20_000)), batch_s=dice.choice((0.001, 0.02, 5.0)))
        rows = [publication(n, dice.choice(("good", "bad")), 1_700_000_000.0 + n) for n in range(300)]

        async def scene(
            folder: Path = folder,
            options: ArchiveOptions = options,
            rows: list[Publication] = rows,
            dice: Random = dice,
        ) -> None:
            roll = writer.events(folder, "north", options)
            reader = PastReader(folder, roll, lambda: 1_800_000_000.0)
            reader.start()
            try:
                for one in rows[:250]:
                    roll.add(one)
                    if dice.random() < 0.1:
                        await asyncio.sleep(0.002)
                reading = asyncio.create_task(whole(reader, 1_700_000_040.0, GOOD))
                for one in rows[250:]:
                    roll.add(one)
                    await asyncio.sleep(0)
                found = await reading
            finally:
                await reader.stop()
                roll.stop()
            expected = [one for one in rows if one.time >= 1_700_000_040.0 and b"good" in one.payload]
            # What was added after the last answer is not in it.
            assert found == expected[: len(found)]
            assert len(found) >= len([one for one in expected if one.sequence < 250])

        asyncio.run(scene())


def test_what_filters_saw_of_properties_is_seen_again(tmp_path: Path) -> None:
    said = Properties(user=(("unit", "ug"),), content_type="text/plain")
    made = Publication("p", 7, "t/x", b"hello", 1, time=1_700_000_000.5, properties=said)

    async def scene() -> list[Publication]:
        roll = writer.events(tmp_path, "north", ArchiveOptions(batch_s=0.001))
        roll.add(made)
        roll.stop()
        roll = writer.events(tmp_path, "north")
        reader = PastReader(tmp_path, roll, lambda: 1_800_000_000.0)
        reader.start()
        try:
            return await whole(reader, 0.0, condition_of("t/+", "unit = 'ug'"))
        finally:
            await reader.stop()
            roll.stop()

    (found,) = asyncio.run(scene())
    assert found.values() == made.values()
    assert (found.id, found.payload, found.qos, found.time) == (made.id, b"hello", 1, 1_700_000_000.5)


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    async def scene() -> Stretch:
        for first in (0, 10, 20):
            roll = writer.events(tmp_path, "north", ArchiveOptions(batch_s=0.001))
            for number in range(first, first + 10):
                roll.add(publication(number, "good", 1_700_000_000.0))
            roll.stop()
        one, two, _ = sorted(tmp_path.glob("*.parquet"))
        two.unlink()
        roll = writer.events(tmp_path, "north")
        reader = PastReader(tmp_path, roll, lambda: 1_800_000_000.0)
        reader.start()
        try:
            return await asked(reader, 0.0, (one.stem, 10), GOOD, False)
        finally:
            await reader.stop()
            roll.stop()

    stretch = asyncio.run(scene())
    assert "are gone" in stretch.lost
    assert [one.sequence for _, one in stretch.rows] == list(range(20, 30))


# Real brokers.


def archiving(names: list[str], folder: Path) -> list[BrokerProcess]:
    brokers = cluster(names, folder)
    for broker in brokers:
        broker.settings = {
            **SETTINGS,
            "archive.folder": str(folder / f"archive-{broker.name}"),
            "archive.replay_per_s": 150.0,
        }
    return brokers


async def took(subscription: Subscription, seen: list[int], enough: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not enough():
            event = await subscription.next()
            assert event is not None
            seen.append(int(event.attributes["n"]))
            event.ack()


async def say(publishers: list[Client], numbers: range) -> None:
    async with asyncio.TaskGroup() as saying:
        for number in numbers:
            saying.create_task(publishers[number % 2].publish({"n": number, "kind": "good"}, topic="t/x"))
            saying.create_task(publishers[number % 2].publish({"n": number, "kind": "bad"}, topic="t/x"))


def test_a_replay_goes_on_at_another_broker_and_after_a_kill(tmp_path: Path) -> None:
    """Two brokers with archives. The reader moves in the middle, its broker is killed with kill -9 and comes back."""
    seen: list[int] = []

    async def scene() -> None:
        north, south = brokers = archiving(["north", "south"], tmp_path)
        try:
            await asyncio.gather(*(broker.start() for broker in brokers))
            await agreed(brokers)
            async with (
                connect(north.address, client="p0") as one,
                connect(south.address, client="p1") as other,
                connect(north.address, south.address, client="reader") as reader,
            ):
                await say([one, other], range(400))
                await asyncio.sleep(1.0)
                subscription = await reader.subscribe("kind = 'good'", topics="t/#", since="-1h")
                await took(subscription, seen, lambda: len(seen) >= 60)
                await reader.roam(south.address)
                await took(subscription, seen, lambda: len(seen) >= 150)
                await south.kill()
                await south.start()
                await say([one, other], range(400, 440))
                await took(subscription, seen, lambda: len(set(seen)) >= 440)
                await asyncio.sleep(0.5)
        finally:
            for broker in brokers:
                await broker.kill()

    asyncio.run(scene())
    assert sorted(seen) == list(range(440))
    assert [n for n in seen if n % 2] == list(range(1, 440, 2))
    assert [n for n in seen if not n % 2] == list(range(0, 440, 2))


def test_others_clients_ask_for_the_past_in_either_version_and_are_told_where_there_is_none(tmp_path: Path) -> None:
    heard: dict[str, list[bytes]] = {"five": [], "three": []}

    def listens(name: str, broker: BrokerProcess, version: int) -> paho.Client:
        session = {} if version == paho.MQTTv5 else {"clean_session": True}
        client = paho.Client(CallbackAPIVersion.VERSION2, name, protocol=version, **session)  # type: ignore[arg-type]
        client.on_message = lambda _, __, message: heard[name].append(bytes(message.payload))
        client.connect("127.0.0.1", broker.port)
        client.loop_start()
        return client

    async def scene() -> None:
        (broker,) = archiving(["north"], tmp_path)
        bare = BrokerProcess("bare", tmp_path / "bare")
        clients: list[paho.Client] = []
        try:
            await asyncio.gather(broker.start(), bare.start())
            async with connect(broker.address) as publisher:
                await publisher.publish({"kind": "good"}, topic="t/x", payload=b"old")
                await publisher.publish({"kind": "bad"}, topic="t/x", payload=b"other")
                wanted = PahoProperties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]
                wanted.UserProperty = [("since", "-2h"), ("filter", "kind = 'good'")]
                clients = [listens("five", broker, paho.MQTTv5), listens("three", broker, paho.MQTTv311)]
                clients[0].subscribe("t/#", qos=1, properties=wanted)
                clients[1].subscribe("$since/-2h/$filter/kind%20%3D%20%27good%27/t/#", qos=1)
                async with asyncio.timeout(WAIT_S):
                    while not all(heard.values()):
                        await asyncio.sleep(0.02)
                await publisher.publish({"kind": "good"}, topic="t/x", payload=b"new")
                async with asyncio.timeout(WAIT_S):
                    while any(len(one) < 2 for one in heard.values()):
                        await asyncio.sleep(0.02)
            async with connect(bare.address) as client:
                with pytest.raises(RefusedError, match="this broker keeps no archive; start it with --archive DIR"):
                    await client.subscribe(since="-2h")
                with pytest.raises(RefusedError, match="'soon' is no time; right would be"):
                    await client.subscribe(since="soon")
        finally:
            for one in clients:
                one.disconnect()
                one.loop_stop()
            await asyncio.gather(broker.kill(), bare.kill())

    asyncio.run(scene())
    assert heard == {"five": [b"old", b"new"], "three": [b"old", b"new"]}

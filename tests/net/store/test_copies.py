"""A broker's disk is copied while it runs, and a broker goes on from a copy."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from pathlib import Path

import mqtt5
import pytest
from tests.net.mqtt import saying
from tests.net.mqtt.serving import Raw

from godwit.net.processes import BrokerProcess, agreed, cluster
from godwit.net.store.copies import back_up, restore
from godwit.net.store.sqlite import FILE, SqliteStore, StoreError


async def filled(folder: Path) -> SqliteStore:
    store = SqliteStore(folder)
    store.put("meta", "name", 0, b"north")
    store.put("meta", "numbers", 0, b"7")
    store.put("spilled", "", 1, b"x")
    await store.flushed()
    return store


def test_a_copy_is_made_while_the_store_is_written_and_is_the_disk_of_one_moment(tmp_path: Path) -> None:
    async def run() -> None:
        store = await filled(tmp_path / "data")
        for number in range(2_000):
            store.put("retained", "a", number, bytes(2_000))
            store.put("retained", "b", number, bytes(2_000))  # in the same turn: together or not at all
        await store.flushed()
        copying = asyncio.ensure_future(asyncio.to_thread(back_up, tmp_path / "data", tmp_path / "copy"))
        while not copying.done():
            for number in range(2_000, 2_050):
                store.put("retained", "a", number, bytes(2_000))
                store.put("retained", "b", number, bytes(2_000))
            await store.flushed()
        await copying
        await store.close()

    asyncio.run(run())
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    assert restore(tmp_path / "copy", tmp_path / "other") == "north"
    with contextlib.closing(sqlite3.connect(tmp_path / "other" / FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        counts = dict(connection.execute('SELECT owner, count(*) FROM "rows" WHERE kind = 6 GROUP BY owner').fetchall())
    assert counts["a"] == counts["b"]


def test_the_numbers_of_a_restored_disk_leap_and_rows_of_one_start_are_gone(tmp_path: Path) -> None:
    async def run() -> None:
        await (await filled(tmp_path / "data")).close()
        back_up(tmp_path / "data", tmp_path / "copy")
        restore(tmp_path / "copy", tmp_path / "other")
        store = SqliteStore(tmp_path / "other")
        assert int(store.get("meta", "numbers", 0) or 0) > 2**48
        assert list(store.load("spilled")) == []
        await store.close()

    asyncio.run(run())


def test_what_cannot_be_is_said_and_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        store = await filled(tmp_path / "data")
        with pytest.raises(StoreError, match="no such file"):
            back_up(tmp_path / "nowhere", tmp_path / "copy")
        (tmp_path / "letter").write_text("dear")
        with pytest.raises(StoreError, match="no copy of a broker's disk"):
            back_up(tmp_path / "data", tmp_path / "letter")
        assert (tmp_path / "letter").read_text() == "dear"
        with pytest.raises(StoreError, match="no copy of a broker's disk"):
            restore(tmp_path / "letter", tmp_path / "other")
        back_up(tmp_path / "data", tmp_path / "copy")
        with pytest.raises(StoreError, match="a broker runs there"):
            restore(tmp_path / "copy", tmp_path / "data")
        await store.close()
        with pytest.raises(StoreError, match="move it away first"):
            restore(tmp_path / "copy", tmp_path / "data")
        with pytest.raises(StoreError, match="name a file that can be written"):
            back_up(tmp_path / "data", tmp_path / "no" / "such" / "copy")

    asyncio.run(run())


def publish(broker: BrokerProcess, first: int, count: int) -> None:
    """Each is acknowledged when this returns."""
    with Raw(broker.port) as client:
        client.connect(f"publisher-{first}")
        for number in range(first, first + count):
            client.send(saying.publish("t", str(number).encode(), 1, 1))
            assert isinstance(client.packet(), mqtt5.PubAckPacket)


def subscribe(broker: BrokerProcess, name: str) -> None:
    with Raw(broker.port) as client:
        client.connect(name, clean_start=False, session_expiry_interval=3600)
        client.send(saying.subscribe("t", options=1))
        assert saying.codes(client) == [1]


def received(broker: BrokerProcess, name: str, last: int) -> list[int]:
    """What waits for a client, up to this one."""
    got: list[int] = []
    with Raw(broker.port) as client:
        client.connect(name, clean_start=False, session_expiry_interval=3600)
        while last not in got:
            packet = saying.heard(client)
            got.append(int(packet.payload))
            client.send(mqtt5.PubAckPacket(packet.packet_id or 0).write())
        client.send(b"\xe0\0")
        assert client.is_closed()
    return got


@pytest.mark.parametrize("properly", [True, False], ids=["godwit restore", "a plain copy of the files"])
def test_a_broker_that_goes_on_from_a_copy_is_not_cut_off(tmp_path: Path, properly: bool) -> None:
    """Under load, with real processes: what others had stays, what the copy has is delivered, what is new arrives."""

    async def run() -> None:
        brokers = cluster(["north", "south"], tmp_path)
        north, south = brokers
        await asyncio.gather(*(broker.start() for broker in brokers))
        try:
            await agreed(brokers)
            await asyncio.to_thread(subscribe, north, "here")
            await asyncio.to_thread(subscribe, south, "there")
            await agreed(brokers)
            load = asyncio.ensure_future(asyncio.to_thread(publish, north, 0, 300))
            await asyncio.sleep(0.05)
            await asyncio.to_thread(back_up, north.folder / "data", tmp_path / "copy")
            await load
            await north.stop()
            await north.start()  # so that it has used numbers of which the copy knows nothing
            await asyncio.to_thread(publish, north, 300, 50)
            await asyncio.to_thread(received, south, "there", 349)
            await north.kill()
            shutil.rmtree(north.folder / "data")
            if properly:
                restore(tmp_path / "copy", north.folder / "data")
            else:
                (north.folder / "data").mkdir()
                shutil.copy(tmp_path / "copy", north.folder / "data" / FILE)
            await north.start()
            await asyncio.to_thread(publish, north, 1_000, 100)
            assert await asyncio.to_thread(received, south, "there", 1_099) == list(range(1_000, 1_100)), (
                "all that is new, once"
            )
            here = await asyncio.to_thread(received, north, "here", 1_099)
            assert here == sorted(set(here))
            assert [one for one in here if one >= 1_000] == list(range(1_000, 1_100))
            old = [one for one in here if one < 1_000]
            assert old == list(range(len(old))), "what the copy has, without a hole"
            if not properly:
                assert "the disk is a copy of an earlier one" in (north.folder / "log").read_text()
        finally:
            await asyncio.gather(*(broker.stop() for broker in brokers))

    asyncio.run(run())

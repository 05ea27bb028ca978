"""The archive of a running broker, read from elsewhere by those who may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow.parquet as pq
import pytest
from tests.net.servers import port, serving

import godwit
from godwit.net.access import hashed
from godwit.net.address import Address
from godwit.net.archive.client import RemoteArchive
from godwit.net.archive.log import ArchiveError, Piece, Position, latest, pieces
from godwit.net.ops import services
from godwit.net.server import Fronts, Parts, Service

Found = TypeVar("Found")


def with_broker(folder: Path, use: Callable[[Address], Found], **flags: Any) -> Found:
    """Publish ten readings, and let something else than the broker's loop use its archive."""

    async def main() -> Found:
        told = {"archive__folder": folder / "archive", "archive__listen": "127.0.0.1:0", "archive__batch_s": 0.01}
        async with serving(folder, "north", extras=services.ALL, **told, **flags) as one:
            async with godwit.connect(f"127.0.0.1:{port(one)}", client="van-7") as client:
                for number in range(10):
                    await client.publish({"pm25": number}, topic=f"air/{number % 2}")
            where = Address.parse(dict(one.addresses())["archive"].removeprefix("godwit://"))
            await asyncio.to_thread(wait_for_rows, RemoteArchive(where, user="all", password="right"), 10)
            return await asyncio.to_thread(use, where)

    return asyncio.run(main())


def wait_for_rows(archive: RemoteArchive, rows: int) -> None:
    while sum(file.rows for file in archive.files()) < rows:
        pass


def readings(archive: RemoteArchive, condition: str = "", topic_filter: str = "") -> list[int]:
    files = archive.files()
    found = pieces(files, Position(), latest(files, Position()))
    batches = [batch for piece in found for batch in archive.read(piece, condition, topic_filter)]
    texts = [text for batch in batches for text in batch.column("attributes").to_pylist()]
    return [int(text.split('"pm25":')[1].split(",")[0]) for text in texts]


USERS = """
[anonymous]
from = "loopback"
subscribe = false

[users.all]
password = "{all}"

[users.some]
password = "{some}"
subscribe = ["air/# WHERE pm25 > 6"]
"""


def test_whoever_may_subscribe_reads_what_was_published_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "users.toml").write_text(USERS.format(all=hashed("right"), some=hashed("good")))

    def use(where: Address) -> tuple[list[int], ...]:
        everything = RemoteArchive(where, user="all", password="right")
        some, anonymous = RemoteArchive(where, user="some", password="good"), RemoteArchive(where)
        with pytest.raises(ArchiveError, match="wrong user name or password"):
            RemoteArchive(where, user="all", password="wrong").files()
        (file,) = everything.files()
        for bad, what in (("pm25 >", "column"), ("", "at most")):
            with pytest.raises(ArchiveError, match=what):
                list(everything.read(Piece(file.name, 0, 10 if bad else 10**9), bad))
        with pytest.raises(ArchiveError, match="may subscribe to everything"):
            list(RemoteArchive(where, "traces", user="some", password="good").read(Piece("traces-1", 0, 1)))
        return (
            readings(everything),
            readings(everything, "pm25 BETWEEN 3 AND 6", "air/1"),
            readings(some, topic_filter="air/1"),
            readings(anonymous),
        )

    assert with_broker(tmp_path, use, access__users=tmp_path / "users.toml") == (list(range(10)), [3, 5], [7, 9], [])


class EarlyAndLate(Service):
    """Publishes as soon as clients can, and as long as they can."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    async def start(self) -> None:
        await self._publish(1)

    async def stop(self) -> None:
        await self._publish(2)

    async def _publish(self, number: int) -> None:
        fronts = next(one for one in self.parts.services if isinstance(one, Fronts))
        async with godwit.connect(dict(fronts.addresses())["mqtt"], client="van-7") as client:
            await client.publish({"pm25": number}, qos=1)


def test_what_the_first_and_the_last_client_publish_is_in_the_archive(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(
            tmp_path, "north", extras=(EarlyAndLate, *services.ALL), archive__folder=tmp_path / "archive"
        ):
            pass

    asyncio.run(main())
    rows = pq.read_table(tmp_path / "archive").column("attributes").to_pylist()
    assert [msgspec.json.decode(row)["pm25"] for row in rows] == [1, 2]


def test_an_archive_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.net.archive.client.STRANGER_S", 0.0)
    with pytest.raises(ArchiveError, match=r"127.0.0.1:1: .* is archive.listen of a broker there\?"):
        RemoteArchive(Address("127.0.0.1", 1)).files()


def test_a_broker_that_was_heard_of_is_waited_for_while_it_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.net.archive.client.STRANGER_S", 0.0)
    monkeypatch.setattr("godwit.net.archive.client.RETRY_S", 0.001)
    answers: Iterator[bytes | OSError] = iter([b"[]", ConnectionRefusedError(), ConnectionResetError(), b"[]"])

    def once(archive: RemoteArchive, path: str) -> bytes:
        answer = next(answers)
        if isinstance(answer, bytes):
            return answer
        raise answer

    monkeypatch.setattr(RemoteArchive, "_once", once)
    archive = RemoteArchive(Address("127.0.0.1", 1))
    assert archive.files() == archive.files() == []
    assert next(answers, None) is None

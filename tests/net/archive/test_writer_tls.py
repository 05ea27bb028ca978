"""The archive of a broker that serves with TLS, read over TLS and not otherwise."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from tests.net.certificates import Authority
from tests.net.servers import port, serving
from tests.net.stations import played

import godwit
from godwit.net.address import Address
from godwit.net.archive import client as archive_client
from godwit.net.archive.client import RemoteArchive
from godwit.net.archive.log import ArchiveError, Position, latest, pieces
from godwit.net.ops import services


def texts(archive: RemoteArchive) -> list[str]:
    files = archive.files()
    found = pieces(files, Position(), latest(files, Position()))
    batches = [batch for piece in found for batch in archive.read(piece)]
    return [text for batch in batches for text in batch.column("attributes").to_pylist()]


def test_the_archive_is_served_over_tls_to_who_trusts_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_client, "STRANGER_S", 0.0)
    authority, other = Authority(tmp_path / "tls"), Authority(tmp_path / "other")
    certificate, key = authority.files("broker")
    told = {
        "tls__certificate": certificate,
        "tls__key": key,
        "archive__folder": tmp_path / "archive",
        "archive__listen": "127.0.0.1:0",
        "archive__batch_s": 0.01,
    }

    async def scene() -> None:
        async with serving(tmp_path, "north", extras=services.ALL, **told) as one:
            async with godwit.connect(f"127.0.0.1:{port(one)}", client="van-7") as client:
                await client.publish({"pm25": 163.5}, topic="air")
            said = dict(one.addresses())["archive"]
            assert said.startswith("godwits://")
            where = Address.parse(said.removeprefix("godwits://"))
            trusting = RemoteArchive(where, tls=ssl.create_default_context(cafile=str(authority.ca)))
            await asyncio.to_thread(until_rows, trusting)
            assert ["163.5" in text for text in await asyncio.to_thread(texts, trusting)] == [True]
            for wary in (None, ssl.create_default_context(cafile=str(other.ca))):
                with pytest.raises(ArchiveError):
                    await asyncio.to_thread(RemoteArchive(where, tls=wary).files)

    played(scene)


def until_rows(archive: RemoteArchive) -> None:
    while not sum(file.rows for file in archive.files()):
        pass

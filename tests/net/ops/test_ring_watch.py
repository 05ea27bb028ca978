"""What a broker says while it has no cell of a ring, and of brokers that are in another one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.net.servers import parts, scene, serving
from tests.net.stations import until

from godwit.net.ops import ring_watch
from godwit.net.ops.services import Teller
from godwit.net.server import Server

RING = {"fabric": "dht", "peers__listen": "127.0.0.1:0"}


def peers(one: Server) -> list[str]:
    return [dict(one.addresses())["peers"]]


@scene
async def test_who_finds_no_ring_says_so_once_and_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_watch, "LOOK_S", 0.1)
    async with serving(tmp_path, "a", ring__place="10,0", peers__connect=["127.0.0.1:9"], **RING) as a:
        told = "no broker of a ring has answered yet (127.0.0.1:9); --found begins a ring where there is none"
        await until(lambda: told in caplog.text)
        assert caplog.text.count("has no cell yet") == 1
        assert parts(a).troubles() == ["ring: this broker has no cell yet: no broker of a ring has answered yet"]


@scene
async def test_who_stands_where_another_does_says_why_it_gets_no_cell(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_watch, "LOOK_S", 0.1)
    async with (
        serving(tmp_path, "a", ring__place="10,0", **RING) as a,
        serving(tmp_path, "b", ring__place="10,0", peers__connect=peers(a), **RING),
    ):
        await until(lambda: "they need two different places" in caplog.text)
        assert "--found" not in caplog.text.rpartition("has no cell yet")[2]


@scene
async def test_two_rings_that_are_linked_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody forgot --peer at the first start, and adds it at the next."""
    monkeypatch.setattr(ring_watch, "LOOK_S", 0.1)
    async with serving(tmp_path, "a", ring__place="10,0", **RING) as a:
        async with serving(tmp_path, "b", ring__place="20,0", **RING) as b:
            await until(lambda: not parts(a).troubles() and not parts(b).troubles())
        async with serving(tmp_path, "b", ring__place="20,0", peers__connect=peers(a), **RING) as b:
            await until(lambda: "b is in another ring" in caplog.text and "a is in another ring" in caplog.text)
            assert "a is in another ring" in Teller(parts(b)).report().ring.problem  # type: ignore[union-attr]
            assert caplog.text.count("b is in another ring") == 1


@scene
async def test_brokers_that_join_and_come_back_are_of_one_ring(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_watch, "LOOK_S", 0.1)
    async with serving(tmp_path, "a", ring__place="10,0", **RING) as a:
        joining = {"peers__connect": peers(a), **RING}
        for _ in range(2):
            async with (
                serving(tmp_path, "b", ring__place="20,0", **joining) as b,
                serving(tmp_path, "c", ring__place="30,0", **joining) as c,
            ):
                await until(lambda: not any(parts(one).troubles() for one in (a, b, c)))
                await asyncio.sleep(1.0)
    assert "another ring" not in caplog.text

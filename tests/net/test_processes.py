"""Broker processes on this machine: their ports are theirs, and they are up when they say so."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path

import pytest

from godwit.net.processes import BrokerError, BrokerProcess, agreed, cluster, hold_port


def test_nobody_is_given_a_port_that_is_held() -> None:
    with hold_port() as held, socket.socket() as other:
        with pytest.raises(OSError) as refused:
            other.bind(held.getsockname())
        assert refused.value.errno == errno.EADDRINUSE


def test_whoever_knows_a_held_port_can_listen_there() -> None:
    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        writer.close()

    async def listen_and_call() -> bytes:
        with hold_port() as held:
            host, port = held.getsockname()
            server = await asyncio.start_server(greet, host, port)
            async with server:
                reader, writer = await asyncio.open_connection(host, port)
                heard = await reader.read()
                writer.close()
                return heard

    assert asyncio.run(listen_and_call()) == b"here"


def test_a_broker_that_has_started_tells_of_itself_also_after_a_power_cut(tmp_path: Path) -> None:
    async def twice() -> list[str]:
        [broker] = cluster(["alone"], tmp_path)
        names = []
        try:
            for _ in range(2):
                await broker.start()
                names.append((await broker.report()).name)
                await broker.kill()
        finally:
            await broker.kill()
        return names

    assert asyncio.run(twice()) == ["alone", "alone"]


def test_a_broker_that_cannot_start_is_reported_with_its_last_words(tmp_path: Path) -> None:
    broker = BrokerProcess("wrong", tmp_path / "wrong", {"handoff": "by pigeon"})
    with pytest.raises(BrokerError, match=r"broker wrong has ended: .*handoff"):
        asyncio.run(broker.start())


def test_whoever_waits_for_a_broker_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match="broker gone does not answer"):
        asyncio.run(agreed(cluster(["gone"], tmp_path)))

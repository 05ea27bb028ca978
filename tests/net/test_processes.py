"""Broker processes on this machine: their ports are theirs, and they are up when they say so."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path

import pytest

from godwit.client.client import connect
from godwit.net.processes import BrokerError, BrokerProcess, agreed, cluster, hold_port, ring


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


@pytest.mark.usefixtures("started_truly")
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


@pytest.mark.feature("data-gathering F8")
def test_brokers_of_a_ring_come_in_and_serve(tmp_path: Path) -> None:
    async def played() -> tuple[list[str], str]:
        brokers = ring(["lisbon", "porto", "madrid"], ["38.72,-9.14", "41.15,-8.61", "40.42,-3.70"], tmp_path)
        try:
            for broker in brokers:
                await broker.start()
            await agreed(brokers)
            reports = [await broker.report() for broker in brokers]
            cells = [one.prefix for report in reports if report.ring is not None for one in report.ring.cells]
            async with connect(brokers[1].address) as listener, connect(brokers[2].address) as speaker:
                subscription = await listener.subscribe("n > 1", topics="t/#")
                await speaker.publish({"n": 1}, topic="t/x")
                await speaker.publish({"n": 2}, topic="t/x")
                event = await anext(aiter(subscription))
            return cells, str(event.attributes["n"])
        finally:
            await asyncio.gather(*(broker.kill() for broker in brokers))

    cells, got = asyncio.run(played())
    assert sum(2.0 ** -len(prefix) for prefix in cells) == 1.0
    assert len(cells) == 3
    assert got == "2"

"""Operators get their figures, and nobody else gets anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from godwit.net.ops.histogram import Histogram
from godwit.net.ops.status import Facts, StatusServer

TROUBLES: list[str] = []
TOOK = Histogram()
for took_s in (0.001, 0.1, 100.0):
    TOOK.add(took_s)


def facts() -> Facts:
    return Facts(
        counts=lambda: {"published": {"qos 0": 5, "qos 1": 2}, "forwarded": 1},
        timings=lambda: {"commit": TOOK},
        levels=lambda: {"connected": 3},
        troubles=lambda: TROUBLES,
        status=lambda: {"name": "north", "clients": ["van-7"]},
    )


async def asked(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def serving(ask: Callable[[int], Awaitable[bytes]]) -> bytes:
    async def main() -> bytes:
        server = StatusServer(facts(), "127.0.0.1", 0)
        await server.start()
        try:
            return await ask(server.port)
        finally:
            await server.stop()

    return asyncio.run(main())


def get(path: str) -> tuple[bytes, bytes]:
    head, _, body = serving(lambda port: asked(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())).partition(
        b"\r\n\r\n"
    )
    return head.split(b"\r\n")[0], body


def test_prometheus_can_read_the_metrics() -> None:
    status, body = get("/metrics")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }
    assert status == b"HTTP/1.1 200 OK"
    assert found["godwit_published_total", "1"] == 2
    assert found["godwit_forwarded_total",] == 1
    assert found["godwit_connected",] == 3
    assert found["godwit_commit_seconds_count",] == 3
    assert [found["godwit_commit_seconds_bucket", bound] for bound in ("0.001", "0.25", "+Inf")] == [1, 2, 3]
    assert found["godwit_commit_seconds_sum",] == pytest.approx(100.101)
    assert found["process_resident_memory_bytes",] > 1e6


def test_a_healthy_broker_says_so_and_a_sick_one_says_why() -> None:
    assert get("/health") == (b"HTTP/1.1 200 OK", b"ok\n")
    TROUBLES.append("store: the disk is full")
    try:
        assert get("/health") == (b"HTTP/1.1 503 Service Unavailable", b"store: the disk is full\n")
    finally:
        TROUBLES.clear()


def test_people_get_json() -> None:
    assert get("/status") == (b"HTTP/1.1 200 OK", b'{"name":"north","clients":["van-7"]}')


def test_anything_else_is_refused_politely() -> None:
    assert get("/nothing")[0] == b"HTTP/1.1 404 Not Found"
    refused = serving(lambda port: asked(port, b"POST /status HTTP/1.1\r\n\r\n"))
    assert refused.startswith(b"HTTP/1.1 405")


def test_a_flood_instead_of_a_request_ends_the_connection() -> None:
    assert serving(lambda port: asked(port, b"x" * 100_000)) == b""


def test_a_broker_in_trouble_is_alive_and_not_ready() -> None:
    TROUBLES.append("store: the disk is full")
    try:
        assert get("/live") == (b"HTTP/1.1 200 OK", b"ok\n")
        for path in ("/ready", "/health"):
            status, body = get(path)
            assert status == b"HTTP/1.1 503 Service Unavailable"
            assert body == b"store: the disk is full\n"
    finally:
        TROUBLES.clear()
    assert get("/ready") == (b"HTTP/1.1 200 OK", b"ok\n")

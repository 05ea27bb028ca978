"""Last values, publishing and server-sent events over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from tests.net.admin.asking import answered, asked
from tests.net.servers import parts, port, serving
from tests.net.stations import played, until

from godwit.net.access import hashed
from godwit.net.ops import services
from godwit.net.server import Server

HTTP: dict[str, Any] = {"listen__http": "127.0.0.1:0", "listen__status": "", "extras": services.ALL}


def users(tmp_path: Path) -> Path:
    file = tmp_path / "users.toml"
    secret = hashed("pass", "low")
    file.write_text(
        '[anonymous]\nfrom = "nowhere"\n'
        f'[users.all]\npassword = "{secret}"\n'
        f'[users.van]\npassword = "{secret}"\npublish = ["vans/#"]\nsubscribe = ["vans/# WHERE x > 1"]\n'
    )
    return file


async def events(one: Server, query: str, count: int) -> list[dict[str, Any]]:
    """The first so many of a stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port(one, "http"))
    writer.write(f"GET /events/stream?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(60):
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"text/event-stream" in head
        while len(found) < count:
            block = await reader.readuntil(b"\n\n")
            data = [line for line in block.split(b"\n") if line.startswith(b"data: ")]
            found += [msgspec.json.decode(line[6:]) for line in data]
    writer.close()
    return found


def test_what_was_posted_is_found_by_content_without_subscribing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a:
            for number in range(3):
                post = {"topic": f"vans/{number}", "attributes": {"x": number}, "retain": True}
                assert await asked(a, "/events", post) == {"taken": True}
            found = await asked(a, f"/events?topics=vans/%23&filter={quote('x > 0')}")
            assert [(row["topic"], row["attributes"]["x"]) for row in found] == [("vans/1", 1), ("vans/2", 2)]
            assert len(await asked(a, "/events?limit=1")) == 1
            for path in ("/events?filter=x%20%3E", "/events?topics=a%23", "/events?limit=0"):
                assert (await answered(a, path))[0] == 400
            assert (await answered(a, "/events", {"topic": "#", "attributes": {}}))[0] == 400
            assert (await answered(a, "/events", {"other": 1}))[0] == 400

    played(scene)


def test_grants_bound_what_is_seen_and_said(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", access__users=users(tmp_path), **HTTP) as a:
            for topic, x in (("vans/1", 1), ("vans/2", 2), ("cars/3", 3)):
                post = {"topic": topic, "attributes": {"x": x}, "retain": True}
                assert (await answered(a, "/events", post, login="all:pass"))[0] == 200
                status = 200 if topic.startswith("vans") else 403
                assert (await answered(a, "/events", post, login="van:pass"))[0] == status
            assert [row["topic"] for row in await asked(a, "/events", login="van:pass")] == ["vans/2"]
            assert len(await asked(a, "/events", login="all:pass")) == 3
            assert (await answered(a, "/events"))[0] == 401
            assert (await answered(a, "/events/stream?topics=cars/%23", login="van:pass"))[0] == 403

    played(scene)


def test_a_browser_is_told_what_is_and_what_changes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a:
            await asked(a, "/events", {"topic": "vans/1", "attributes": {"x": 5}, "retain": True})
            lasting = asyncio.create_task(events(a, f"topics=vans/%23&lasting=&filter={quote('x > 3')}", 2))
            plain = asyncio.create_task(events(a, "topics=news", 1))
            await until(lambda: len(parts(a).broker.sessions) == 2)
            await until(lambda: sum(len(one.subscriptions) for one in parts(a).broker.sessions.values()) == 2)
            await asked(a, "/events", {"topic": "vans/1", "attributes": {"x": 1}, "retain": True})
            await asked(a, "/events", {"topic": "news", "payload": "hello"})
            told = await lasting
            assert [(row["change"], row["number"], row["topic"]) for row in told] == [
                ("+", 1, "vans/1"),
                ("-", 2, "vans/1"),
            ]
            assert told[1]["because"] == "left"
            assert [row["payload"] for row in await plain] == ["hello"]

    played(scene)


def test_a_posted_subspace_is_found_and_what_is_posted_to_expire_leaves(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a:
            room = {"topic": "rooms/7", "attributes": {"kind": "room"}, "retain": True}
            wanted = quote("kind = 'room' AND start >= 10 AND start < 12")
            lasting = asyncio.create_task(events(a, f"topics=rooms/%23&lasting=&filter={wanted}", 2))
            await until(lambda: any(one.subscriptions for one in parts(a).broker.sessions.values()))
            await asked(a, "/events", {**room, "profile": "start >= 9 AND start < 11", "expiry_s": 2})
            told = await lasting
            assert [(row["change"], row.get("because")) for row in told] == [("+", None), ("-", "expired")]
            assert (await answered(a, "/events", {**room, "profile": "start >"}))[0] == 400

    played(scene)


def test_a_browser_gets_the_past_and_then_what_comes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", archive__folder=tmp_path / "archive", **HTTP) as a:
            for x in (1, 5):
                await asked(a, "/events", {"topic": "vans/1", "attributes": {"x": x}})
            past = asyncio.create_task(events(a, f"topics=vans/%23&since=-1h&filter={quote('x > 3')}", 2))
            await until(lambda: any(one.subscriptions for one in parts(a).broker.sessions.values()))
            await asked(a, "/events", {"topic": "vans/1", "attributes": {"x": 7}})
            assert [row["attributes"]["x"] for row in await past] == [5, 7]

    played(scene)

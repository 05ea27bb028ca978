"""The console beside a broker, and what it says to strangers."""

from __future__ import annotations

import asyncio
import http.client
import json
from pathlib import Path
from typing import Any

from tests.net.servers import parts, server
from tests.net.stations import played

from godwit.console.serving import ConsoleService
from godwit.net.address import Address
from godwit.net.ops import services
from godwit.net.server import Parts, Service

HTTP: dict[str, Any] = {"listen__http": "127.0.0.1:0", "listen__status": "", "listen__ws": ["127.0.0.1:0"]}


def asked(where: str, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(where, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, b"{}" if method == "POST" else None, named)
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def console(parts: Parts) -> Service:
    return ConsoleService(parts, Address("127.0.0.1", 0))


def test_a_broker_serves_its_console_and_strange_pages_get_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        one = server(tmp_path, "north", extras=(*services.ALL, console), **HTTP)
        await one.start()
        try:
            where = dict(one.addresses())["console"].removeprefix("http://")
            ask = asyncio.to_thread
            status, headers, body = await ask(asked, where, "/")
            assert (status, b"<script>" in body) == (200, False)
            assert (
                f"ws://127.0.0.1:{dict(one.addresses())['ws'].rpartition(':')[2]}" in headers["content-security-policy"]
            )
            me = json.loads((await ask(asked, where, "/api/me"))[2])
            assert (me["role"], [broker["name"] for broker in me["brokers"]]) == ("operator", ["north"])
            told = json.loads((await ask(asked, where, "/api/all/broker"))[2])
            assert told["north"]["body"]["name"] == "north"
            assert (await ask(asked, where, "/api/me", Origin="http://evil.example"))[0] == 403
            # A name that a page made point here is not this machine's trust.
            rebound = json.loads((await ask(asked, where, "/api/me", Host="evil.example"))[2])
            assert (rebound["role"], rebound["brokers"]) == ("", [])
            assert (await ask(asked, where, "/api/one/north/actions/reload", "POST", Content_Type="text/plain"))[
                0
            ] == 403
            posted = await ask(asked, where, "/api/one/north/actions/reload", "POST", Content_Type="application/json")
            assert posted[0] == 200
            assert (await ask(asked, where, "/api/all/actions/restart", "POST", Content_Type="application/json"))[
                0
            ] == 400
            assert (await ask(asked, where, "/static/../page.py"))[0] == 404
            assert parts(one).asks.restart is False
        finally:
            await one.stop()

    played(scene)

"""Which brokers the console finds, and what it says of those that do not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.net.servers import cluster, parts, port
from tests.net.stations import played, until

from godwit.console.fleet import Fleet
from godwit.net.admin.client import NOBODY
from godwit.net.ops import services

HTTP: dict[str, Any] = {"listen__http": "127.0.0.1:0", "listen__status": "127.0.0.1:0", "extras": services.ALL}


def test_one_broker_tells_of_the_others_and_who_is_away_is_named_with_the_reason(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **HTTP) as (a, b):
            await until(lambda: "b" in parts(a).balance.loads and bool(parts(a).balance.loads["b"].address_http), 20)
            fleet = Fleet([f"127.0.0.1:{port(a, 'status')}", "127.0.0.1:1"])
            answers = await fleet.all(NOBODY, "me")
            good = {name: told.body["broker"] for name, told in answers.items() if told.ok}
            assert good == {"a": "a", "b": "b"}
            assert "no answer" in answers["127.0.0.1:1"].text
            assert (await fleet.admit(NOBODY))["role"] == "operator"
            by_url = Fleet([f"http://127.0.0.1:{port(b, 'http')}"])
            await by_url.refresh()
            assert list(by_url.members) == ["b"]
            told = await by_url.one("nobody", NOBODY, "me", {})
            assert (told.ok, told.status) == (False, 404)

    played(scene)


def test_a_broker_that_was_named_and_dies_is_shown_once_under_its_name(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **HTTP) as (a, b):
            fleet = Fleet([f"127.0.0.1:{port(one, 'status')}" for one in (a, b)])
            assert [told.ok for told in (await fleet.all(NOBODY, "me")).values()] == [True, True]
            await b.stop()
            await fleet.refresh(now=True)
            answers = await fleet.all(NOBODY, "me")
            assert {name: told.ok for name, told in answers.items()} == {"a": True, "b": False}
            assert "no answer" in answers["b"].text

    played(scene)


def test_nobody_guesses_the_host_of_a_broker_that_listens_everywhere(tmp_path: Path) -> None:
    everywhere = {**HTTP, "listen__http": "0.0.0.0:0"}

    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **everywhere) as (a, _):
            await until(lambda: "b" in parts(a).balance.loads and bool(parts(a).balance.loads["b"].address_http), 20)
            fleet = Fleet([f"127.0.0.1:{port(a, 'status')}"])
            answers = await fleet.all(NOBODY, "me")
            assert answers["a"].ok
            assert "listen.advertise_http" in answers["b"].text

    played(scene)


def test_a_console_without_brokers_says_so() -> None:
    async def scene() -> None:
        fleet = Fleet(["127.0.0.1:1"])
        answers = await fleet.all(NOBODY, "me")
        assert [told.ok for told in answers.values()] == [False]

    asyncio.run(scene())

"""Two sites as whole brokers with real sockets: events cross, links come back, and what they cost is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.net.servers import client, parts, peers_at, port, scene, server, serving, taken
from tests.net.stations import until

from godwit.net.sites.uplinks import Uplinks


def plant(**more: Any) -> dict[str, Any]:
    return {"sites__site": "plant", "sites__listen": "127.0.0.1:0", "sites__uplinks": {"hq": {}}, **more}


def hq(at: int, **more: Any) -> dict[str, Any]:
    uplink = {"connect": [f"127.0.0.1:{at}"], **more.pop("uplink", {})}
    return {"sites__site": "hq", "sites__uplinks": {"plant": uplink}, **more}


def uplinks(one: Any) -> Uplinks:
    found = parts(one).uplinks
    assert found is not None
    return found


async def wanted(one: Any, peer: str) -> None:
    await until(lambda: bool(parts(one).fabric.interests.get(peer)))


@scene
async def test_an_event_crosses_packed_and_each_side_counts_the_same_bytes(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one", **plant()) as first,
        serving(
            # Brokers of two sites may have the same name.
            tmp_path / "hq",
            "one",
            **hq(port(first, "sites")),
        ) as second,
        client(second, "s") as hearer,
        client(first, "p") as speaker,
    ):
        await hearer.subscribe("line/#", qos=1)
        await wanted(first, "hq/one")
        said = [(f"line/{number % 3}", json.dumps({"c": number, "unit": "celsius"}).encode()) for number in range(100)]
        for topic, payload in said:
            await speaker.publish(topic, payload, qos=1)
        assert await taken(hearer, 100) == said
        out, into = uplinks(first).rows()[0], uplinks(second).rows()[0]
        assert (out.peer, into.peer) == ("hq/one", "plant/one")
        assert (out.events_out, into.events_in) == (100, 100)
        await until(lambda: uplinks(first).rows()[0].wire_out == uplinks(second).rows()[0].wire_in)
        assert into.plain_in > 1.5 * into.wire_in
        assert uplinks(first).counts()["uplink_wire_out_bytes"]["hq/one"] == uplinks(second).rows()[0].wire_in


@scene
async def test_where_one_side_does_not_compress_nothing_is_compressed(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one", **plant()) as first,
        serving(tmp_path, "two", **hq(port(first, "sites"), uplink={"compress": False})) as second,
        client(second, "s") as hearer,
        client(first, "p") as speaker,
    ):
        await hearer.subscribe("line/#", qos=1)
        await wanted(first, "hq/two")
        await speaker.publish("line/x", b"y" * 1_000, qos=1)
        assert len(await taken(hearer, 1)) == 1
        assert uplinks(second).rows()[0].wire_in > 1_000


@scene
async def test_what_waits_for_a_site_that_is_away_survives_a_restart_and_keeps_its_order(tmp_path: Path) -> None:
    async with serving(tmp_path, "one", **plant()) as first:
        at = port(first, "sites")
        second = server(tmp_path, "two", **hq(at))
        await second.start()
        async with client(second, "s") as hearer:
            await hearer.subscribe("line/#", qos=1)
            await wanted(first, "hq/two")
        await second.stop()
        async with client(first, "p") as speaker:
            for number in range(10):
                await speaker.publish("line/x", b"%d" % number, qos=1)
        assert uplinks(first).rows()[0].waiting >= 10
        assert not uplinks(first).rows()[0].up
    again = {**plant(), "sites__listen": f"127.0.0.1:{at}"}
    async with serving(tmp_path, "one", **again) as first:
        assert uplinks(first).rows()[0].waiting >= 10
        async with serving(tmp_path, "two", **hq(at)) as second, client(second, "s") as hearer:
            assert [payload for _, payload in await taken(hearer, 10)] == [b"%d" % number for number in range(10)]


@scene
async def test_a_site_may_be_a_ring_and_events_cross_to_and_from_each_broker_of_it(tmp_path: Path) -> None:
    ring = {"fabric": "dht", "peers__listen": "127.0.0.1:0"}
    async with (
        serving(tmp_path, "one", **ring, ring__place="38.7,-9.1", **plant()) as first,
        serving(tmp_path, "three", **ring, ring__place="52.5,13.4", peers__connect=[peers_at(first)]) as third,
        serving(tmp_path, "two", **hq(port(first, "sites"))) as second,
    ):
        inside = parts(third).ring
        assert inside is not None
        await until(lambda: inside.is_member and set(inside.statements.gateways) == {"one"})
        async with client(third, "s") as worker, client(second, "o") as office:
            await worker.subscribe("orders/#", qos=1)
            await office.subscribe("line/#", qos=1)
            await wanted(second, "plant/one")
            await wanted(first, "hq/two")
            # Whichever of the two brokers of the ring matches a topic, by its first level.
            for number in range(20):
                await worker.publish(f"line/{number}", b"up", qos=1)
                await office.publish(f"orders/{number}", b"down", qos=1)
            assert await taken(office, 20) == [(f"line/{number}", b"up") for number in range(20)]
            assert await taken(worker, 20) == [(f"orders/{number}", b"down") for number in range(20)]


@scene
async def test_a_rate_bounds_what_is_sent(tmp_path: Path) -> None:
    slow = {"hq": {"bytes_per_s": 20_000, "compress": False}}
    async with (
        serving(tmp_path, "one", **plant(sites__uplinks=slow)) as first,
        serving(tmp_path, "two", **hq(port(first, "sites"))) as second,
        client(second, "s") as hearer,
        client(first, "p") as speaker,
    ):
        await hearer.subscribe("line/#", qos=1)
        await wanted(first, "hq/two")
        begun_s = asyncio.get_running_loop().time()
        for _ in range(40):
            await speaker.publish("line/x", b"z" * 1_000, qos=1)
        assert len(await taken(hearer, 40)) == 40
        assert asyncio.get_running_loop().time() - begun_s > 1.5


@scene
async def test_a_site_that_is_not_configured_is_refused_with_what_would_be_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        serving(tmp_path, "one", **plant(sites__uplinks={"ship": {}})) as first,
        serving(tmp_path, "two", **hq(port(first, "sites"))),
    ):
        await until(
            lambda: "site 'plant' has no uplink to 'hq'; [sites.uplinks.hq] there would make one" in caplog.text
        )


@scene
async def test_of_a_cycle_one_uplink_carries_nothing_and_log_and_status_say_its_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def site(name: str, *others: str, **dials: int) -> dict[str, Any]:
        told = {one: {"connect": [f"127.0.0.1:{dials[one]}"]} if one in dials else {} for one in others}
        return {"sites__site": name, "sites__listen": "127.0.0.1:0", "sites__uplinks": told}

    async with (
        serving(tmp_path, "one", **site("a", "b", "c")) as first,
        serving(tmp_path, "two", **site("b", "a", "c", a=port(first, "sites"))) as second,
        serving(tmp_path, "three", **site("c", "a", "b", a=port(first, "sites"), b=port(second, "sites"))) as third,
        client(third, "s") as hearer,
        client(second, "p") as speaker,
    ):

        def cycles(one: Any) -> dict[str, str]:
            return {row.peer: row.cycle for row in uplinks(one).rows() if row.cycle}

        await until(lambda: bool(cycles(second) and cycles(third)))
        assert cycles(first) == {}
        assert (cycles(second), cycles(third)) == ({"c/three": "b - c - a - b"}, {"b/two": "c - b - a - c"})
        assert "the uplink to c carries nothing: it closes a cycle, b - c - a - b" in caplog.text
        await hearer.subscribe("line/#", qos=1)
        await wanted(second, "a/one")
        await speaker.publish("line/1", b"round", qos=1)
        assert await taken(hearer, 1) == [("line/1", b"round")]
        rows = {row.peer: row.events_in for row in uplinks(third).rows()}
        assert rows == {"a/one": 1, "b/two": 0}


@scene
async def test_what_users_may_publish_is_what_a_site_offers(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text('[anonymous]\npublish = ["line/#"]\n')
    async with (
        serving(tmp_path, "one", access__users=users, **plant()) as first,
        serving(tmp_path, "two", **hq(port(first, "sites"))) as second,
        client(second, "s") as hearer,
    ):
        await hearer.subscribe("line/1", qos=1)
        await hearer.subscribe("office/1", qos=1)
        await wanted(first, "hq/two")
        await asyncio.sleep(0.2)
        assert [one.stated for one in uplinks(second).rows()] == [1]
        users.write_text('[anonymous]\npublish = ["line/#", "office/#"]\n')
        first.reload()
        await until(lambda: any("office" in repr(one) for one in parts(first).fabric.interests["hq/two"]))

"""What operators see and do over HTTP: every endpoint of a real broker."""

from __future__ import annotations

import asyncio
import stat
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.net import certificates
from tests.net.admin.asking import answered, asked
from tests.net.servers import client, cluster, parts, peers_at, port, serving, wanted_by
from tests.net.stations import played, until

import godwit
from godwit.net.admin.api import ACTIONS, ENDPOINTS, HARMLESS
from godwit.net.ops import services
from godwit.net.server import Server

HTTP: dict[str, Any] = {"listen__http": "127.0.0.1:0", "listen__status": "", "extras": services.ALL}

PAYLOAD = "%7B%22pm25%22:20%7D"


def at(one: Server) -> str:
    return f"127.0.0.1:{port(one)}"


def test_every_view_answers_on_a_broker_that_has_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a:
            for one in ENDPOINTS:
                if one.body is None and one.path != "client":
                    answer = await asked(a, f"/v1/{one.path}?act=publish&topic=t")
                    msgspec.convert(answer, one.answer)
            assert (await answered(a, "/v1/client?name=nobody"))[0] == 404
            assert (await answered(a, "/v1/nothing"))[0] == 404
            assert (await answered(a, "/"))[0] == 200

    played(scene)


def test_brokers_in_a_ring_tell_their_cells_and_where_they_stand(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", fabric="dht", ring__place="38.72,-9.14", **HTTP) as a:
            await until(lambda: parts(a).ring is not None and parts(a).ring.is_member, 20)  # type: ignore[union-attr]
            for one in ENDPOINTS:
                if one.body is None and one.path not in ("client", "may"):
                    msgspec.convert(await asked(a, f"/v1/{one.path}"), one.answer)
            told = await asked(a, "/v1/broker")
            assert told["place"] == [38.72, -9.14]
            assert told["ring"]["cells"]
            assert (await asked(a, "/v1/why?client=x&topic=t"))["wanted_by"] is None

    played(scene)


def test_a_broker_leaves_the_ring_when_an_operator_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            serving(tmp_path, "a", fabric="dht", ring__place="38.72,-9.14", peers__listen="127.0.0.1:0", **HTTP) as a,
            serving(
                tmp_path,
                "b",
                fabric="dht",
                ring__place="48.86,2.35",
                peers__listen="127.0.0.1:0",
                peers__connect=[peers_at(a)],
                **HTTP,
            ) as b,
        ):
            rings = [parts(one).ring for one in (a, b)]
            await until(lambda: all(ring is not None and len(ring.regions) == 1 for ring in rings), 40)
            assert "neighbors'" in (await asked(b, "/v1/actions/leave", {"confirm": True}))["result"]
            first, second = rings
            assert first is not None
            assert second is not None
            await until(lambda: not second.regions and len(first.regions) == 2, 40)
            status, told = await answered(a, "/v1/actions/leave", {"confirm": True})
            assert (status, "knows nobody who could have its cell" in str(told)) == (400, True)
            assert parts(b).troubles() == ["ring: this broker has left the ring: drain it, and stop it"]
            status, told = await answered(b, "/v1/actions/leave", {"confirm": True})
            assert (status, "this broker has left the ring" in str(told)) == (400, True)

    played(scene)


def test_a_client_is_found_with_its_filters_its_address_and_its_last_moves(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **HTTP) as (a, b), godwit.connect(at(a), at(b), client="van-7") as van:
            await van.subscribe("pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)", topics="air/#")
            listed = await asked(a, "/v1/clients?search=VAN&state=connected")
            assert (listed["total"], listed["rows"][0]["address"]) == (1, "127.0.0.1")
            assert (await asked(b, "/v1/clients?search=van"))["total"] == 0
            await van.roam(at(b))
            found = await asked(b, "/v1/client?name=van-7")
            (sub,) = found["subscriptions"]
            assert (sub["topics"], "pm25 > 150" in sub["condition"]) == ("air/#", True)
            assert [round(one, 2) for one in found["areas"][0]["circle"]] == [39.92, 116.42, 5000.0]
            (move,) = found["moves"]
            assert (move["source"], move["client"]) == ("a", "van-7")
            assert 0 < move["seconds"] < 60
            handoffs = await asked(b, "/v1/handoffs")
            assert len(handoffs["seconds"]) == 1
            flows = (await asked(a, "/v1/handoffs"))["flows"]
            assert [(flow["to"], flow["uses"]) for flow in flows] == [("b", 1)]

    played(scene)


def test_an_operator_hangs_up_on_a_client_whose_session_stays_purges_it_and_ends_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a, client(a, "hub") as hub:
            async with godwit.connect(at(a), client="van") as van:
                await van.subscribe("n > 0", topics="t")
                assert (await answered(a, "/v1/actions/disconnect", {"client": "van"}))[0] == 400  # not confirmed
                done = await asked(a, "/v1/actions/disconnect", {"client": "van", "confirm": True})
                assert done["result"] == "disconnected; its session stays"
                await until(lambda: parts(a).broker.counts.connected == 2)  # it is back by itself
            for number in range(3):
                await hub.publish("t", f'{{"n": {number + 1}}}', qos=1)
            backlog = await asked(a, "/v1/backlogs")
            assert [(row["client"], row["waiting"]) for row in backlog["rows"]] == [("van", 3)]
            detail = await asked(a, "/v1/client?name=van")
            assert [row["topic"] for row in detail["queue"]] == ["t"] * 3
            done = await asked(a, "/v1/actions/purge", {"client": "van", "confirm": True})
            assert done["result"] == "3 deliveries that waited were dropped"
            assert parts(a).broker.counts.dropped["purged"] == 3
            await asked(a, "/v1/actions/end", {"client": "van", "confirm": True})
            assert "van" not in parts(a).broker.sessions
            assert (await answered(a, "/v1/actions/end", {"client": "van", "confirm": True}))[0] == 400
            rows = (await asked(a, "/v1/audit"))["rows"]
            assert [(row["action"], row["target"]) for row in rows[:2]] == [("end", "van")] * 2
            assert rows[0]["result"].startswith("not done")
        file = tmp_path / "a" / "audit.jsonl"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert len(file.read_text().splitlines()) == len(rows)

    played(scene)


def test_a_cordoned_broker_takes_no_new_clients_and_a_drained_one_has_none_until_it_is_opened(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **HTTP) as (a, b), godwit.connect(at(a), at(b), client="van") as van:
            await van.subscribe("n > 0")
            await until(lambda: "b" in parts(a).balance.loads and parts(a).balance.loads["b"].address != "")
            await asked(a, "/v1/actions/cordon", {"confirm": True})
            assert (await asked(a, "/v1/broker"))["cordoned"]
            async with godwit.connect(at(a), at(b), client="new") as new:
                assert str(new.broker) == at(b)
            assert str(van.broker) == at(a)
            await asked(a, "/v1/actions/drain", {"confirm": True, "seconds": 20})
            await until(lambda: str(van.broker) == at(b))
            await asked(a, "/v1/actions/uncordon", {})
            assert parts(a).troubles() == []
            async with godwit.connect(at(a), client="later") as later:
                assert str(later.broker) == at(a)

    played(scene)


def test_things_attributes_and_last_values_are_seen_while_somebody_watches_and_cost_nothing_after(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a, client(a, "hub") as hub:
            assert parts(a).broker.on_published is None
            await asked(a, "/v1/things")
            await hub.publish("fleet/1", '{"id": "van-1", "lat": 39.9, "lon": 116.4, "pm25": 20}', qos=1)
            await hub.publish("fleet/1", '{"id": "van-1", "lat": 39.95, "lon": 116.4, "pm25": 170}', qos=1)
            await hub.publish("kept", "text", qos=1, retain=True)
            found = await asked(a, "/v1/things?since=0")
            assert [(row[0], row[1]) for row in found["things"]] == [("van-1", 39.95)]
            assert (await asked(a, f"/v1/things?since={found['serial']}"))["things"] == []
            attributes = {row["name"]: row for row in (await asked(a, "/v1/attributes"))["attributes"]}
            assert (attributes["pm25"]["low"], attributes["pm25"]["high"]) == (20, 170)
            assert attributes["id"]["common"] == [["van-1", 2]]
            last = await asked(a, "/v1/last?filter=pm25%20%3E%20150")
            assert [row["values"]["pm25"] for row in last["events"]] == [170]
            retained = [row["topic"] for row in (await asked(a, "/v1/last"))["events"] if row["retained"]]
            assert retained == ["kept"]
            assert (await answered(a, "/v1/last?filter=pm25%20%3E"))[0] == 400
            for service in parts(a).services:
                if isinstance(service, services.ArchiveService):
                    raise AssertionError("no archive was asked for")

    played(scene)


def test_why_a_client_did_not_get_an_event_is_answered_from_what_was_recorded(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", **HTTP) as (a, b),
            client(a, "hub") as hub,
            godwit.connect(at(b), client="van-7") as van,
        ):
            await van.subscribe("pm25 > 150", topics="air/#")
            await wanted_by(b, [a])
            for one in (a, b):
                await asked(one, "/v1/actions/record", {"seconds": 60})
            await hub.publish("air/x", '{"pm25": 20}', qos=1)
            await hub.publish("air/x", '{"pm25": 170}', qos=1)
            await until(lambda: sum(parts(b).broker.counts.delivered) == 1)
            missed, got = reversed((await asked(a, "/v1/events"))["events"])
            there = await asked(b, f"/v1/why?client=van-7&event={missed['event']}&topic=air/x&payload={PAYLOAD}")
            assert there["state"] == "connected"
            (tried,) = there["subscriptions"]
            assert (tried["topic_fits"], tried["fits"]) == (True, False)
            assert tried["because"] == "fails at pm25 > 150: pm25 is 20"
            here = await asked(a, f"/v1/why?client=van-7&event={missed['event']}")
            assert here["wanted_by"] == {"b": False}
            assert [row["kind"] for row in here["trace"]] == ["published"]
            here = await asked(a, f"/v1/why?client=van-7&event={got['event']}")
            assert here["wanted_by"] == {"b": True}
            there = await asked(b, f"/v1/why?client=van-7&event={got['event']}")
            assert [row["kind"] for row in there["trace"]] == ["delivered"]
            takers = await asked(b, "/v1/wanting", {"topic": "air/y", "payload": '{"pm25": 200}'})
            assert [(row["client"], row["key"]) for row in takers["takers"]] == [("van-7", takers["takers"][0]["key"])]
            takers = await asked(a, "/v1/wanting", {"topic": "air/y", "payload": '{"pm25": 200}'})
            assert (takers["total"], takers["brokers"]) == (0, ["b"])
            await asked(b, "/v1/actions/record", {"seconds": 0})
            assert not parts(b).broker.is_traced

    played(scene)


def test_problems_are_told_with_who_had_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with (
            serving(tmp_path, "a", **HTTP) as a,
            godwit.connect(at(a), client="twin"),
            godwit.connect(at(a), client="twin"),
        ):
            await until(lambda: parts(a).broker.counts.taken_over >= 1)
            found = await asked(a, "/v1/problems")
            notice = next(one for one in found["notices"] if one["kind"] == "taken over")
            assert notice["client"] == "twin"
            newer = await asked(a, f"/v1/problems?since={found['serial']}")
            assert all(one["serial"] > found["serial"] for one in newer["notices"])

    with caplog.at_level("INFO", "godwit"):
        played(scene)


def test_a_certificate_that_expires_soon_is_told_and_one_that_does_not_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = certificates.Authority(tmp_path / "late")
    monkeypatch.setattr(certificates, "END", datetime.now() + timedelta(days=5))
    certificate, key = authority.files("north")

    async def scene() -> None:
        told = {"tls__certificate": certificate, "tls__key": key, "tls__client_authority": authority.ca}
        async with serving(tmp_path, "a", **HTTP, **told) as a:
            (soon,) = (await asked(a, "/v1/problems"))["certificates"]
            assert soon["key"] == "tls.certificate"
            assert 4 < (soon["expires"] - time.time()) / 86400 < 6
            assert len((await asked(a, "/v1/broker"))["certificates"]) == 2

    played(scene)


def test_the_archive_tells_its_size_and_who_follows(tmp_path: Path) -> None:
    async def scene() -> None:
        flags = {"archive__folder": tmp_path / "kept", "archive__listen": "127.0.0.1:0", "archive__batch_s": 0.02}
        async with serving(tmp_path, "a", **HTTP, **flags) as a, client(a, "hub") as hub:
            for number in range(4):
                await hub.publish("t", str(number), qos=1)
            found: Any = {"rows": 0}
            async with asyncio.timeout(60):
                while found["rows"] < 4:
                    found = await asked(a, "/v1/archive")
                    await asyncio.sleep(0.05)
            name = found["files"][0]["name"]
            reader, writer = await asyncio.open_connection("127.0.0.1", port(a, "archive"))
            writer.write(f"GET /archive/events/{name}?start=0&end=3 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await reader.read()
            writer.close()
            (follower,) = (await asked(a, "/v1/archive"))["followers"]
            assert (follower["row"], follower["behind"]) == (3, 1)
            assert found["bytes"] > 0

    played(scene)


@pytest.mark.parametrize("action", [name for name in ACTIONS if name not in HARMLESS])
def test_what_cannot_be_undone_wants_a_confirmation(tmp_path: Path, action: str) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a:
            status, text = await answered(a, f"/v1/actions/{action}", {"client": "x"})
            assert (status, b"confirmed" in text) == (400, True)
            assert (await asked(a, "/v1/audit"))["rows"] == []

    played(scene)

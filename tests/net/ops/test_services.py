"""What operators see of a running broker, and what stays of it in the archive."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.net.servers import client, cluster, parts, port, server, serving, wanted_by
from tests.net.stations import played, until

from godwit.net.ops import services
from godwit.net.ops.report import Report
from godwit.net.server import ServeError, Server
from godwit.net.store import sqlite as store_module


async def got(one: Server, path: str) -> tuple[str, bytes]:
    """Status line and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port(one, "status"))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return head.split(b"\r\n")[0].decode(), body


def samples(metrics: bytes) -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(metrics.decode())
    return {(one.name, "".join(one.labels.values())): one.value for family in families for one in family.samples}


STATUS = {"listen__status": "127.0.0.1:0", "extras": services.ALL}


def test_operators_see_the_brokers_the_clients_and_what_was_carried(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **STATUS) as (a, b), client(b, "van") as van, client(a, "hub") as hub:
            await van.subscribe("t/#", qos=1)
            await wanted_by(b, [a])
            for _ in range(3):
                await hub.publish("t/1", "x", qos=1)
            await until(lambda: parts(b).broker.counts.delivered[1] == 3)
            report = msgspec.json.decode((await got(b, "/status"))[1], type=Report)
            assert (report.name, report.leader, report.connected, report.subscriptions) == ("b", "a", 1, 1)
            assert [(peer.name, peer.linked, peer.role) for peer in report.peers] == [("a", True, "parent")]
            assert [row.client for row in report.clients] == ["van"]
            assert (report.interest_size, report.interest) == (1, ["topic_1 = 't' AND topic_levels >= 1"])
            above = msgspec.json.decode((await got(a, "/status"))[1], type=Report)
            assert [(peer.name, peer.role) for peer in above.peers] == [("b", "child")]
            assert (above.hops, report.hops) == (0, 1)
            found = samples((await got(a, "/metrics"))[1])
            assert found["godwit_published_total", "1"] == 3
            assert found["godwit_forwarded_total", ""] == 3
            assert found["godwit_links", ""] == 1
            assert (await got(a, "/health")) == ("HTTP/1.1 200 OK", b"ok\n")

    played(scene)


@pytest.mark.feature("proactive-handoff F10")
def test_operators_see_where_clients_go_and_whether_that_was_foreseen(tmp_path: Path) -> None:
    async def walk(name: str, a: Server, b: Server) -> None:
        async with client(a, name) as walker:
            await walker.subscribe("#", qos=1)
        if parts(a).neighbors.likely():
            await until(lambda: parts(b).broker.counts.copies == 1)
        async with client(b, name):
            pass

    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", **STATUS) as (a, b):
            for name in ("first", "second"):
                await walk(name, a, b)
            left = msgspec.json.decode((await got(a, "/status"))[1], type=Report)
            assert [(row.peer, row.uses, row.copied) for row in left.neighbors] == [("b", 2, True)]
            assert (left.handoff.scheme, left.handoff.handoffs, left.handoff.hit_rate) == ("proactive", 2, 0.5)
            assert (left.handoff.copies_made, left.handoff.false_negatives) == (1, 0.5)
            came = msgspec.json.decode((await got(b, "/status"))[1], type=Report)
            assert (came.handoff.copies_used, came.handoff.copies_held, came.handoff.copies_refused) == (1, 0, 0)
            found = samples((await got(a, "/metrics"))[1])
            assert found["godwit_neighbors", "b"] == 1
            assert found["godwit_handoff_hit_rate", ""] == found["godwit_neighbors_false_negatives", ""] == 0.5
            assert found["godwit_neighbors_false_positives", ""] == 0
            assert found["godwit_handoffs_total", "hit"] == found["godwit_handoffs_total", "missed"] == 1
            assert found["godwit_copies_total", "made"] == 1
            assert samples((await got(b, "/metrics"))[1])["godwit_copies_total", "used"] == 1

    played(scene)


def test_what_the_bound_of_a_backlog_drops_is_counted_shown_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", backlog__messages_max=3, **STATUS) as a, client(a, "hub") as hub:
            async with client(a, "sleeper") as sleeper:
                await sleeper.subscribe("#", qos=1)
            for number in range(10):
                await hub.publish("t", str(number), qos=1)
            report = msgspec.json.decode((await got(a, "/status"))[1], type=Report)
            row = next(row for row in report.clients if row.client == "sleeper")
            assert (row.waiting, row.dropped) == (3, 7)
            assert samples((await got(a, "/metrics"))[1])["godwit_dropped_total", "queue"] == 7

    played(scene)
    told = [record.getMessage() for record in caplog.records if "the oldest is dropped" in record.getMessage()]
    assert told == [
        "for client 'sleeper' waits more than 3 messages or 67108864 bytes; the oldest is dropped ([backlog])"
    ]


def test_a_backlog_is_bounded_after_a_restart_too(tmp_path: Path) -> None:
    async def scene() -> None:
        for number in range(2):
            async with serving(tmp_path, "a", backlog__messages_max=3) as a, client(a, "hub") as hub:
                if not number:
                    async with client(a, "sleeper") as sleeper:
                        await sleeper.subscribe("#", qos=1)
                for _ in range(3):
                    await hub.publish("t", str(number), qos=1)
                assert len(parts(a).broker.sessions["sleeper"].queue.waiting) == 3

    played(scene)


def test_a_broker_whose_disk_is_full_is_not_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "REPEATED_S", 0.02)

    async def scene() -> None:
        async with serving(tmp_path, "a", **STATUS) as a:
            connection = parts(a).store._connection
            connection.execute("PRAGMA max_page_count = 1")
            parts(a).store.put("bodies", "", 1, bytes(100_000))
            await until(a.troubles)
            line, body = await got(a, "/health")
            assert line == "HTTP/1.1 503 Service Unavailable"
            assert b"the disk is full" in body
            connection.execute("PRAGMA max_page_count = 1000000")
            await until(lambda: not a.troubles())

    played(scene)


def test_the_archive_has_what_was_published(tmp_path: Path) -> None:
    async def scene() -> None:
        told = {"archive__folder": tmp_path / "archive", "archive__traces": True, "extras": services.ALL}
        async with serving(tmp_path, "a", **told) as a, client(a, "hub") as hub:
            for number in range(5):
                await hub.publish("air/1", msgspec.json.encode({"pm25": number}), qos=number % 3)

    played(scene)
    (events,) = (tmp_path / "archive").glob("events-*.parquet")
    rows = pq.read_table(events).to_pylist()
    assert [msgspec.json.decode(row["attributes"])["pm25"] for row in rows] == list(range(5))
    assert {row["broker"] for row in rows} == {"a"}
    (traces,) = (tmp_path / "archive").glob("traces-*.parquet")
    kinds = [row["kind"] for row in pq.read_table(traces).to_pylist()]
    assert kinds.count("published") == 5


@pytest.mark.parametrize("key", ["listen__status", "archive__folder"])
def test_where_nothing_can_be_served_or_kept_is_named(tmp_path: Path, key: str) -> None:
    async def scene() -> None:
        (tmp_path / "file").touch()
        with socket.create_server(("127.0.0.1", 0)) as other:
            where = f"127.0.0.1:{other.getsockname()[1]}"
            wrong = {"listen__status": where, "archive__folder": tmp_path / "file" / "archive"}[key]
            with pytest.raises(ServeError, match=key.replace("__", r"\.")):
                await server(tmp_path, "a", extras=services.ALL, **{key: wrong}).start()
        async with serving(tmp_path, "a"):
            pass

    played(scene)

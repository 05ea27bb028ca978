"""Whole brokers with real sockets, disks and third-party clients, in one process."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import aiomqtt
import mqtt5
import pytest
from tests.net.certificates import Authority
from tests.net.servers import client, cluster, parts, port, server, serving, taken, wanted_by
from tests.net.stations import played, until

from godwit.net.access import hashed
from godwit.net.config import load
from godwit.net.server import ServeError, Server, Service
from godwit.net.store import sqlite as store_module
from godwit.net.store.sqlite import StoreError


def test_a_message_finds_its_way_between_brokers_and_clients_of_others(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", "c") as (a, b, c),
            client(c, "listener") as listener,
            client(b, "speaker") as speaker,
        ):
            await listener.subscribe("air/#", qos=1)
            await wanted_by(c, [a, b])
            for number in range(50):
                await speaker.publish("air/1", str(number), qos=1)
            async with asyncio.timeout(60):
                assert await taken(listener, 50) == [("air/1", str(number).encode()) for number in range(50)]

    played(scene)


def test_a_client_gets_its_session_wherever_it_appears(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b", "c") as (a, b, c):
            async with client(c, "roamer") as roamer:
                await roamer.subscribe("air/#", qos=1)
                await wanted_by(c, [a, b])
            async with client(b, "speaker") as speaker:
                for number in range(20):
                    await speaker.publish("air/1", str(number), qos=1)
                async with client(a, "roamer") as roamer:
                    for number in range(20, 40):
                        await speaker.publish("air/1", str(number), qos=1)
                    async with asyncio.timeout(60):
                        assert await taken(roamer, 40) == [("air/1", str(number).encode()) for number in range(40)]

    played(scene)


def test_what_waits_for_a_client_survives_a_restart_of_its_broker(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            async with client(a, "sleeper") as sleeper:
                await sleeper.subscribe("#", qos=1)
            async with client(a, "speaker") as speaker:
                for number in range(10):
                    await speaker.publish("t", str(number), qos=1)
        async with serving(tmp_path, "a") as a, client(a, "sleeper") as sleeper, asyncio.timeout(60):
            assert await taken(sleeper, 10) == [("t", str(number).encode()) for number in range(10)]

    played(scene)


def test_brokers_that_were_stopped_find_each_other_again_and_bring_what_waited(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b") as (a, b):
            async with client(b, "sleeper") as sleeper:
                await sleeper.subscribe("#", qos=1)
            await wanted_by(b, [a])
            await b.stop()
            async with client(a, "speaker") as speaker:
                await speaker.publish("t", "while you were away", qos=1)
            async with (
                serving(tmp_path, "b", peers__listen="127.0.0.1:0") as again,
                client(again, "sleeper") as sleeper,
            ):
                async with asyncio.timeout(60):
                    assert await taken(sleeper, 1) == [("t", b"while you were away")]

    played(scene)


CONNECT = mqtt5.ConnectPacket(client_id="x").write()


async def connected(one: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client of version 5 that is let in."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port(one))
    writer.write(CONNECT)
    head = await reader.readexactly(2)
    await reader.readexactly(head[1])
    assert head[0] == 0x20
    return reader, writer


def test_clients_are_told_that_the_broker_stops_and_nobody_new_gets_in(tmp_path: Path) -> None:
    async def scene() -> None:
        one = server(tmp_path, "a")
        await one.start()
        where = port(one)
        reader, writer = await connected(one)
        await one.stop()
        async with asyncio.timeout(60):
            goodbye = await reader.read()
        assert goodbye[0] == 0xE0
        assert goodbye[2] == 0x8B
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", where)
        writer.close()

    played(scene)


@pytest.mark.parametrize("key", ["listen__mqtt", "listen__ws", "peers__listen"])
def test_a_port_in_use_is_named_and_nothing_is_left_running(tmp_path: Path, key: str) -> None:
    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            where = f"127.0.0.1:{other.getsockname()[1]}"
            told: dict[str, Any] = {key: where if key == "peers__listen" else [where]}
            one = server(tmp_path, "a", **told)
            with pytest.raises(ServeError, match=rf"{key.replace('__', '.')}: {where}: something else listens there"):
                await one.start()
        async with serving(tmp_path, "a"):
            pass

    played(scene)


def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    async def scene() -> None:
        with pytest.raises(ServeError, match=r"listen\.mqtt: 192\.0\.2\.1:1883: this machine has no such address"):
            await server(tmp_path, "a", listen__mqtt=["192.0.2.1:1883"]).start()

    played(scene)


def test_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a"):
            with pytest.raises(StoreError, match="in use by process"):
                await server(tmp_path, "a").start()

    played(scene)


def test_while_the_disk_is_full_nothing_is_acknowledged_and_the_broker_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "REPEATED_S", 0.02)

    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            async with client(a, "sleeper") as sleeper:
                await sleeper.subscribe("#", qos=1)
            connection = parts(a).store._connection
            async with client(a, "speaker", timeout=60) as speaker:
                connection.execute("PRAGMA max_page_count = 1")
                publishing = asyncio.create_task(speaker.publish("t", bytes(200_000), qos=1))
                await until(a.troubles)
                assert "the disk is full" in a.troubles()[0]
                assert not publishing.done()
                connection.execute("PRAGMA max_page_count = 1000000")
                async with asyncio.timeout(60):
                    await publishing
                assert a.troubles() == []

    played(scene)


def test_grants_are_read_again_and_a_wrong_file_changes_nothing(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"

    async def gets_in(a: Server, user: str) -> bool:
        try:
            async with aiomqtt.Client("127.0.0.1", port(a), username=user, password="pw"):
                return True
        except aiomqtt.MqttError:
            return False

    async def scene() -> None:
        users.write_text(f'[users.ann]\npassword = "{hashed("pw")}"\n')
        async with serving(tmp_path, "a", access__users=users) as a:
            assert await gets_in(a, "ann")
            assert not await gets_in(a, "bob")
            users.write_text(f'[users.bob]\npassword = "{hashed("pw")}"\n')
            a.reload()
            assert await gets_in(a, "bob")
            assert not await gets_in(a, "ann")
            users.write_text("nonsense")
            a.reload()
            assert await gets_in(a, "bob")

    played(scene)


def test_tls_for_clients_and_between_brokers(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")

    def told(name: str) -> dict[str, object]:
        certificate, key = authority.files(name)
        return {
            "listen__mqtts": ["127.0.0.1:0"],
            "tls__certificate": certificate,
            "tls__key": key,
            "peers__tls__certificate": certificate,
            "peers__tls__key": key,
            "peers__tls__authority": authority.ca,
            "peers__secret": "correct horse",
        }

    async def scene() -> None:
        context = ssl.create_default_context(cafile=str(authority.ca))
        async with cluster(tmp_path, "a", "b", **told("broker")) as (a, b):
            for one in (a, b):
                async with aiomqtt.Client("localhost", port(one, "mqtts"), tls_context=context) as secure:
                    await secure.publish("t", "x", qos=1)

    played(scene)


def test_certificates_are_read_again_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.files("broker")
    renewed = authority.files("renewed")
    context = ssl.create_default_context(cafile=str(authority.ca))

    async def shown(a: Server) -> object:
        _, writer = await asyncio.open_connection("127.0.0.1", port(a, "mqtts"), ssl=context)
        subject = writer.get_extra_info("peercert")["subject"]
        writer.close()
        return subject[0][0][1]

    async def scene() -> None:
        told = {"listen__mqtts": ["127.0.0.1:0"], "tls__certificate": certificate, "tls__key": key}
        async with serving(tmp_path, "a", **told) as a:
            assert await shown(a) == "broker"
            certificate.write_bytes(renewed[0].read_bytes())
            assert "must be a certificate and its key" in a.reload()
            assert await shown(a) == "broker"
            key.write_bytes(renewed[1].read_bytes())
            assert a.reload() == ""
            assert await shown(a) == "renewed"

    played(scene)


def test_limits_are_read_again_and_hold_for_those_who_come_after(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"

    async def scene() -> None:
        one = server(tmp_path, "a")
        one.again = lambda: load(file, {}, {})
        await one.start()
        try:
            async with client(one, "before") as before:
                file.write_text(
                    "[limits]\npacket_bytes_max = 2000\n[capacity]\nretained_max = 0\n[backlog]\nmessages_max = 7\n"
                )
                assert one.reload() == ""
                await before.publish("t", bytes(3_000), qos=1)
            broker = parts(one).broker
            assert (broker.capacity.retained_max, parts(one).access.limits.queue_max) == (0, 7)
            async with client(one, "after") as after:
                with pytest.raises(aiomqtt.MqttError):
                    await after.publish("t", bytes(3_000), qos=1)
            file.write_text("[limits]\npacket_bytes_max = -1\n")
            assert "packet_bytes_max" in one.reload()
            assert parts(one).front.options.packet_bytes_max == 2_000
        finally:
            await one.stop()

    played(scene)


def test_services_may_be_added_and_stop_first(tmp_path: Path) -> None:
    happened: list[str] = []

    class Extra(Service):
        async def start(self) -> None:
            happened.append("started")

        async def stop(self) -> None:
            happened.append("stopped")
            raise RuntimeError("on the way out")

    def make(_: object) -> Service:
        return Extra()

    async def scene() -> None:
        one = server(tmp_path, "a", extras=(make, lambda _: None))
        await one.start()
        where = port(one)
        await one.stop()
        assert happened == ["started", "stopped"]
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", where)

    played(scene)


def test_a_broker_without_a_name_makes_one_up_and_keeps_it(tmp_path: Path) -> None:
    async def scene() -> None:
        names = []
        for _ in range(2):
            async with serving(tmp_path, "", data=tmp_path / "store") as one:
                names.append(parts(one).identity.name)
        assert names[0] == names[1] != ""

    played(scene)

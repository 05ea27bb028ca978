"""Whose session it is, at whole brokers: those of other users, at other brokers too, and after rights were taken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import mqtt5
from tests.net.mqtt.saying import codes, heard, pings, publish, subscribe
from tests.net.mqtt.serving import Raw
from tests.net.servers import cluster, parts, port, serving
from tests.net.stations import played, until

from godwit.net.access import hashed
from godwit.net.ops import services
from godwit.net.server import Server

KEPT = {"clean_start": False, "session_expiry_interval": 3_600}
HASH = hashed("pw", "low")
ANN, BOB, CAROL = (f'[users.{name}]\npassword = "{HASH}"\n' for name in ("ann", "bob", "carol"))
JUNK = 'subscribe = ["junk/#"]\n'


def entered(one: Server, name: str, user: str, **said: object) -> tuple[Raw, bool]:
    raw = Raw(port(one))
    answer = raw.connect(name, username=user, password=b"pw", **said)  # type: ignore[arg-type]
    assert answer.reason_code == mqtt5.ConnAckReasonCode.SUCCESS
    return raw, answer.session_present


def leave(one: Server, name: str, user: str) -> None:
    """A session that is there for what it has asked for, and nobody with it."""
    raw, _ = entered(one, name, user, **KEPT)
    with raw:
        raw.send(subscribe("fleet/#"))
        assert codes(raw) == [2]


def say(one: Server, *topics: str) -> None:
    raw, _ = entered(one, "speaker", "ann")
    with raw:
        for topic in topics:
            raw.send(publish(topic, b"x", qos=1, number=1))
            assert isinstance(raw.packet(), mqtt5.PubAckPacket)


def test_a_session_is_its_owners_at_every_broker_and_copies_are_too(tmp_path: Path) -> None:
    """Copies lie at the other brokers before the thief comes, and it comes to each of them."""
    users, ways = tmp_path / "users.toml", tmp_path / "ways.csv"
    users.write_text(ANN + BOB + JUNK)

    def steal(one: Server, number: int) -> None:
        raw, is_present = entered(one, "van-7", "bob", **KEPT)
        with raw:
            assert is_present == (number > 0), "its own of before, if any"
            raw.send(subscribe("junk/#", number=1), subscribe("fleet/#", number=2))
            assert codes(raw) == [2]
            assert codes(raw) == [135]
            say(one, "fleet/secret", f"junk/{number}")
            found = heard(raw)
            assert found.topic == f"junk/{number}"
            assert found.packet_id is not None
            raw.send(mqtt5.PubAckPacket(found.packet_id).write())
            assert pings(raw)

    def regain(one: Server) -> list[str]:
        raw, is_present = entered(one, "van-7", "ann", **KEPT)
        with raw:
            assert is_present
            return [heard(raw).topic for _ in range(5)]

    async def scene() -> None:
        pairs = ("a,b", "a,c", "b,a", "c,a")
        ways.write_text("from,to,count,last_used\n" + "".join(f"{pair},1,1211958000\n" for pair in pairs))
        told = {"access__users": users, "handoff": "proactive", "copies__neighbors": ways, "extras": services.ALL}
        async with cluster(tmp_path, "a", "b", "c", **told) as servers:
            a, b, c = servers
            await asyncio.to_thread(leave, a, "van-7", "ann")
            await until(lambda: all(parts(one).broker.knows("ann/van-7") for one in (b, c)))
            await asyncio.to_thread(say, a, "fleet/1", "fleet/2")
            for number, one in enumerate((b, c, a)):
                await asyncio.to_thread(steal, one, number)
            assert await asyncio.to_thread(regain, c) == ["fleet/1", "fleet/2", *["fleet/secret"] * 3]

    played(scene)


def test_rights_end_at_sighup_for_who_is_connected_and_who_is_away(tmp_path: Path) -> None:
    """Ann is removed, connected and away; carol keeps her session, but not what she may no longer hear; bob stays."""
    users = tmp_path / "users.toml"
    users.write_text(ANN + BOB + CAROL)

    async def scene() -> None:
        async with serving(tmp_path, "a", access__users=users) as a:
            await asyncio.to_thread(leave, a, "away", "ann")
            ann, bob, carol = [
                (await asyncio.to_thread(entered, a, "here", user, **KEPT))[0] for user in ("ann", "bob", "carol")
            ]
            await asyncio.to_thread(carol.send, subscribe("fleet/#", "junk/#"))
            assert await asyncio.to_thread(codes, carol) == [2, 2]
            users.write_text(BOB + CAROL + JUNK)
            assert a.reload() == ""
            goodbye = await asyncio.to_thread(ann.packet)
            assert isinstance(goodbye, mqtt5.DisconnectPacket)
            assert int(goodbye.reason_code) == 0x87
            assert set(parts(a).broker.sessions) == {"bob/here", "carol/here"}
            assert set(parts(a).broker.sessions["carol/here"].subscriptions) == {"junk/#"}
            for raw in (bob, carol):
                assert await asyncio.to_thread(pings, raw)
                raw.socket.close()

    played(scene)

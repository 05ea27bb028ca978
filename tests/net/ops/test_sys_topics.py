"""A broker's figures as topics: for its own clients that have a name, and said by nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiomqtt
import mqtt5
import pytest
from tests.net.servers import cluster, parts, port
from tests.net.stations import played

from godwit import __version__
from godwit.net.access import hashed
from godwit.net.ops.sys_topics import SysTopics

USERS = """
[anonymous]
from = "loopback"

[users.ann]
password = "{password}"
"""


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users.toml"
    file.write_text(USERS.format(password=hashed("pw", "low")))
    return file


def test_clients_with_a_name_hear_of_their_own_broker_and_of_no_other(tmp_path: Path, users: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", access__users=users) as (a, b),
            aiomqtt.Client("127.0.0.1", port(a), username="ann", password="pw") as ann,
        ):
            here, there = SysTopics(parts(a)), SysTopics(parts(b))
            assert not parts(a).broker.audience("$SYS/broker/version").is_somebody
            await ann.subscribe("$SYS/#", qos=1)
            published = list(parts(a).broker.counts.published)
            there.tell()
            here.tell()
            parts(a).front.flush()
            heard = {}
            async with asyncio.timeout(60):
                async for message in ann.messages:
                    assert str(message.topic) not in heard
                    heard[str(message.topic)] = message.payload
                    if len(heard) == len(here.figures()):
                        break
            assert heard["$SYS/broker/version"] == f"godwit {__version__}".encode()
            assert heard["$SYS/broker/clients/connected"] == b"1"
            assert parts(a).broker.counts.published == published
            assert parts(b).broker.counts.forwarded == 0

    played(scene)


def test_anonymous_clients_are_refused_and_nobody_else_speaks_there(tmp_path: Path, users: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", access__users=users) as (a,):
            version = aiomqtt.ProtocolVersion.V5
            async with aiomqtt.Client("127.0.0.1", port(a), protocol=version) as nobody:
                for topics in ("$SYS/#", "$share/g/$SYS/broker/version"):
                    (code,) = await nobody.subscribe(topics)
                    assert code.value == mqtt5.SubAckReasonCode.NOT_AUTHORIZED  # type: ignore[union-attr]
                await nobody.subscribe("#")
            async with aiomqtt.Client("127.0.0.1", port(a), username="ann", password="pw", protocol=version) as ann:
                await ann.subscribe("$SYS/#", qos=1)
                await ann.publish("$SYS/broker/version", "forged", qos=0)
                await ann.publish("end", "", qos=1)
            assert parts(a).broker.counts.delivered == [0, 0, 0]
            assert parts(a).broker.counts.refused == {"topic_name_invalid": 1}

    played(scene)

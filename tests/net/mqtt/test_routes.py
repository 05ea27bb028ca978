"""What is passed on as it came reaches whom it would reach if the broker had looked at each publication."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import mqtt5
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.net.mqtt.serving import lone_broker

from godwit.net.mqtt import codec3
from godwit.net.mqtt.connection import Connection, State
from godwit.net.mqtt.front import Front

TOPICS = ("a", "a/b", "c")
PATTERNS = ("#", "a/#", "a", "+", "c")
CONDITIONS = ("", "n > 3", "n BETWEEN 2 AND 6", "k = 'x'", "n < 5 AND k = 'x'", "topic_1 = 'a'")
QOS = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE)


class Wanted(NamedTuple):
    client: int
    pattern: str = "#"
    condition: str = ""
    identifier: int | None = None
    no_local: bool = False
    group: bool = False

    @property
    def text(self) -> str:
        shared = "$share/g/" if self.group else ""
        return shared + (f"$filter/{quote(self.condition, safe='')}/" if self.condition else "") + self.pattern


class Said(NamedTuple):
    topic: str
    n: int
    k: str = "x"
    rich: bool = False


wanted = st.builds(
    Wanted,
    st.integers(0, 3),
    st.sampled_from(PATTERNS),
    st.sampled_from(CONDITIONS),
    st.sampled_from([None, None, None, 7]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([False, False, False, True]),
)
said = st.builds(Said, st.sampled_from(TOPICS), st.integers(0, 9), st.sampled_from("xy"), st.sampled_from([False, False, True]))


class Wire:
    """Takes what a connection writes."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return lambda *given: None


async def _client(front: Front, name: str, version: int) -> Connection:
    connection = Connection(front)
    connection.connection_made(cast(Any, Wire()))
    packet = mqtt5.ConnectPacket(name, clean_start=True)
    connection.data_received(packet.write() if version == 5 else codec3.write(packet))
    while connection.state is not State.OPEN:
        await asyncio.sleep(0)
    return connection


def _subscribing(one: Wanted, version: int) -> bytes:
    if version == 5:
        topics = mqtt5.TopicFilter(one.text, max_qos=QOS[0], no_local=one.no_local and not one.group)
        return mqtt5.SubscribePacket(1, [topics], subscription_id=one.identifier).write()
    field = len(one.text.encode()).to_bytes(2, "big") + one.text.encode()
    return b"\x82" + bytes((len(field) + 3,)) + b"\0\1" + field + b"\0"


def _publishing(one: Said, version: int) -> bytes:
    payload = f'{{"n": {one.n}, "k": "{one.k}"}}'.encode()
    if version == 5:
        return mqtt5.PublishPacket(one.topic, payload, content_type="json" if one.rich else None).write()
    return codec3.write(mqtt5.PublishPacket(one.topic, payload))


async def _heard(wanted: list[Wanted], said: list[Said], version: int, sizes: list[int], *, seen: bool) -> list[bytes]:
    """What each client got. Clients 0 and 1 speak version 5, the others 3.1.1; client 0 publishes if it can."""
    front = Front(lone_broker())
    front.begin()
    versions = (5, 5, 4, 4)
    clients = [await _client(front, f"c{at}", one) for at, one in enumerate(versions)]
    for one in wanted:
        clients[one.client].data_received(_subscribing(one, versions[one.client]))
        await asyncio.sleep(0)
    if seen:
        front.broker.on_published = lambda publication: None
    publisher = clients[0 if version == 5 else 2]
    data, at = b"".join(_publishing(one, version) for one in said), 0
    for size in [*sizes, len(data)]:
        publisher.data_received(data[at : at + size])
        at += size
        while not publisher.is_read or publisher._unread is not None:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (front.counts.publishes_in, front.broker.counts.published[0]) == (len(said), len(said))
    heard = [cast(Any, client.transport).written for client in clients]
    front.end()
    return heard


@settings(max_examples=60)
@given(
    st.lists(wanted, max_size=8),
    st.lists(said, min_size=1, max_size=20),
    st.sampled_from([5, 4]),
    st.lists(st.integers(1, 60), max_size=4),
)
@example([Wanted(1, condition="n > 3"), Wanted(1, identifier=7)], [Said("a", 9), Said("c", 1)], 5, [])
@example([Wanted(2, condition="n > 3"), Wanted(1)], [Said("a", 9)] * 300, 5, [])
@example([Wanted(at, condition="n > 3") for at in range(4)], [Said("a", n % 10) for n in range(700)], 4, [3])
@example([Wanted(0, condition="n > 3", group=True), Wanted(1, condition="n > 3", group=True)], [Said("a", 9)] * 9, 5, [])
def test_everybody_hears_the_same_whether_the_broker_looks_at_each_publication_or_not(
    wanted: list[Wanted], said: list[Said], version: int, sizes: list[int]
) -> None:
    seen = asyncio.run(_heard(wanted, said, version, sizes, seen=True))
    assert asyncio.run(_heard(wanted, said, version, sizes, seen=False)) == seen


def test_most_of_it_is_not_looked_at() -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        subscriber, publisher = await _client(front, "s", 5), await _client(front, "p", 5)
        subscriber.data_received(_subscribing(Wanted(0, condition="n > 3"), 5))
        subscriber.data_received(_subscribing(Wanted(0, "c"), 5))
        await asyncio.sleep(0)
        front.publish = cast(Any, lambda session, offered: 1 / 0)  # type: ignore[method-assign]
        publisher.data_received(b"".join(_publishing(Said(TOPICS[n % 3], n % 10), 5) for n in range(100)))
        while publisher._unread is not None:
            await asyncio.sleep(0)
        assert front.broker.counts.published[0] == 100
        assert front.broker.counts.delivered[0] == sum(n % 10 > 3 or n % 3 == 2 for n in range(100))
        front.end()

    asyncio.run(scene())

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
from godwit.net.mqtt.connection import RUN_MIN, Connection, State
from godwit.net.mqtt.framing import packets
from godwit.net.mqtt.front import Front
from godwit.net.mqtt.options import Options

TOPICS = ("a", "a/b", "c")
PATTERNS = ("#", "a/#", "a", "+", "c")
CONDITIONS = ("", "n > 3", "n BETWEEN 2 AND 6", "k = 'x'", "n < 5 AND k = 'x'", "topic_1 = 'a'")
QOS = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE)
VERSIONS = (5, 5, 4, 4)


class Wanted(NamedTuple):
    client: int
    pattern: str = "#"
    condition: str = ""
    identifier: int | None = None
    no_local: bool = False
    group: bool = False
    qos: int = 0

    @property
    def text(self) -> str:
        shared = "$share/g/" if self.group else ""
        return shared + (f"$filter/{quote(self.condition, safe='')}/" if self.condition else "") + self.pattern


class Said(NamedTuple):
    topic: str
    n: int
    k: str = "x"
    rich: bool = False
    qos: int = 0


wanted = st.builds(
    Wanted,
    st.integers(0, 3),
    st.sampled_from(PATTERNS),
    st.sampled_from(CONDITIONS),
    st.sampled_from([None, None, None, 7]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([1, 1, 1, 0, 2]),
)
said = st.builds(
    Said,
    st.sampled_from(TOPICS),
    st.integers(0, 9),
    st.sampled_from("xy"),
    st.sampled_from([False, False, True]),
    st.sampled_from([0, 1, 1, 1]),
)


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


async def _client(front: Front, name: str, version: int, *, keeps: bool = False) -> Connection:
    connection = Connection(front)
    connection.connection_made(cast(Any, Wire()))
    packet = mqtt5.ConnectPacket(name, clean_start=not keeps, session_expiry_interval=3600 if keeps else 0)
    connection.data_received(packet.write() if version == 5 else codec3.write(packet))
    while connection.state is not State.OPEN:
        await asyncio.sleep(0)
    return connection


def _subscribing(one: Wanted, version: int) -> bytes:
    if version == 5:
        topics = mqtt5.TopicFilter(one.text, max_qos=QOS[one.qos], no_local=one.no_local and not one.group)
        return mqtt5.SubscribePacket(1, [topics], subscription_id=one.identifier).write()
    field = len(one.text.encode()).to_bytes(2, "big") + one.text.encode()
    return b"\x82" + bytes((len(field) + 3,)) + b"\0\1" + field + bytes((one.qos,))


def _publishing(one: Said, version: int, number: int) -> bytes:
    payload = f'{{"n": {one.n}, "k": "{one.k}", "qos": {one.qos}}}'.encode()
    kind = "json" if one.rich and version == 5 else None
    packet = mqtt5.PublishPacket(
        one.topic, payload, content_type=kind, qos=QOS[one.qos], packet_id=number if one.qos else None
    )
    return packet.write() if version == 5 else codec3.write(packet)


class Scene:
    """Four clients, all of whom acknowledge what they get. The first two speak version 5, the others 3.1.1. Sessions of
    the second and the fourth are kept."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.clients: list[Connection] = []
        self.heard: list[dict[str, list[bytes]]] = [{} for _ in VERSIONS]
        """What each client was told: publications by the QoS at which they were said, since only those of one QoS are
        sure to keep their order, and whatever else."""
        self.read = [0] * len(VERSIONS)

    async def begin(self, wanted: list[Wanted]) -> None:
        for at in range(len(VERSIONS)):
            self.clients.append(await self._come(at))
        for one in wanted:
            self.clients[one.client].data_received(_subscribing(one, VERSIONS[one.client]))
            await self.rest()

    async def _come(self, at: int) -> Connection:
        return await _client(self.front, f"c{at}", VERSIONS[at], keeps=bool(at % 2))

    async def say(self, at: int, data: bytes) -> None:
        publisher = self.clients[at]
        publisher.data_received(data)
        while publisher._unread is not None or not publisher.is_read:
            await self.rest()

    def leave(self, at: int) -> None:
        self.clients[at].connection_lost(None)

    async def come_back(self, at: int) -> None:
        self.clients[at], self.read[at] = await self._come(at), 0

    async def rest(self) -> None:
        """Until nothing more comes, however much is acknowledged."""
        still = 0
        while still < 6:
            await asyncio.sleep(0)
            still = 0 if sum(self._answer(at) for at in range(len(self.clients))) else still + 1

    def _answer(self, at: int) -> bool:
        client, before = self.clients[at], self.read[at]
        if client.transport is None:
            return False
        data: bytes = cast(Any, client.transport).written[before:]
        for start, body, end in packets(data):
            if data[start] >> 4 == 2:
                continue  # a CONNACK tells when it was said
            kind = f"publication {data[end - 2 : end]!r}" if data[start] >> 4 == 3 else "other"
            self.heard[at].setdefault(kind, []).append(data[start:end])
            if data[start] & 0xF6 == 0x32:
                place = body + 2 + (data[body] << 8 | data[body + 1])
                client.data_received(b"\x40\x02" + data[place : place + 2])
        self.read[at] += len(data)
        return bool(data)


async def _heard(wanted: list[Wanted], said: list[Said], version: int, sizes: list[int] | None, *, seen: bool) -> Any:
    """What each client got, and what the broker counted. The fourth is away while things are said. Without sizes each
    publication comes by itself."""
    front = Front(lone_broker())
    front.begin()
    scene = Scene(front)
    await scene.begin(wanted)
    scene.leave(3)
    if seen:
        front.broker.on_published = lambda publication: None
    packets = [_publishing(one, version, number) for number, one in enumerate(said, 1)]
    data, at = b"".join(packets), 0
    for size in map(len, packets) if sizes is None else [*sizes, len(data)]:
        await scene.say(0 if version == 5 else 2, data[at : at + size])
        at += size
    await scene.rest()
    await scene.come_back(3)
    await scene.rest()
    assert front.counts.publishes_in == len(said)
    broker = front.broker
    counts = (broker.counts.published, broker.counts.delivered, broker.counts.waiting)
    under_way = [(len(one.queue.flying), one.queue.window, one.queue.window_b) for one in broker.sessions.values()]
    front.end()
    return scene.heard, counts, under_way


@settings(max_examples=60, deadline=None)
@given(
    st.lists(wanted, max_size=8),
    st.lists(said, min_size=1, max_size=20),
    st.sampled_from([5, 4]),
    st.none() | st.lists(st.integers(1, 60), max_size=4),
)
@example([Wanted(at) for at in (0, 1)], [Said("a", n % 10, qos=n % 5 // 4) for n in range(40)], 5, None)
@example([Wanted(2), Wanted(2, qos=1)], [Said("a", n % 10, qos=n % 5 // 4) for n in range(40)], 4, None)
@example([Wanted(1, condition="n > 3"), Wanted(1, identifier=7)], [Said("a", 9), Said("c", 1)], 5, [])
@example([Wanted(2, condition="n > 3"), Wanted(1)], [Said("a", 9)] * 300, 5, [])
@example([Wanted(at, condition="n > 3") for at in range(4)], [Said("a", n % 10) for n in range(700)], 4, [3])
@example([Wanted(at, condition="n > 3", group=True) for at in range(2)], [Said("a", 9)] * 9, 5, [])
@example([Wanted(at, qos=1) for at in range(4)], [Said(TOPICS[n % 3], n % 10, qos=1) for n in range(600)], 5, [])
@example([Wanted(at, qos=1) for at in (2, 3)], [Said(TOPICS[n % 3], n % 10, qos=1) for n in range(600)], 4, [7])
@example(
    [Wanted(0), Wanted(0, "a/#", group=True, qos=1)],
    [Said("a", 1), Said("a", 2, qos=1), Said("a", 3), Said("c", 4)],
    5,
    [],
)
def test_everybody_hears_the_same_whether_the_broker_looks_at_each_publication_or_not(
    wanted: list[Wanted], said: list[Said], version: int, sizes: list[int] | None
) -> None:
    seen = asyncio.run(_heard(wanted, said, version, sizes, seen=True))
    assert asyncio.run(_heard(wanted, said, version, sizes, seen=False)) == seen


def test_most_of_it_is_not_looked_at() -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        subscriber, publisher = await _client(front, "s", 5), await _client(front, "p", 5)
        for one in (Wanted(0, "a/#", "n > 3"), Wanted(0, "c", qos=1)):
            subscriber.data_received(_subscribing(one, 5))
            await asyncio.sleep(0)
        front.publish = cast(Any, lambda session, offered: 1 / 0)  # type: ignore[method-assign]
        said = [Said(TOPICS[n // RUN_MIN % 3], n % 10, qos=n // RUN_MIN % 3 // 2) for n in range(24 * RUN_MIN)]
        publisher.data_received(b"".join(_publishing(one, 5, 1 + at) for at, one in enumerate(said)))
        while publisher._unread is not None:
            await asyncio.sleep(0)
        counts = front.broker.counts
        assert counts.published[:2] == [16 * RUN_MIN, 8 * RUN_MIN]
        assert counts.delivered[:2] == [sum(one.n > 3 for one in said if not one.qos), 8 * RUN_MIN]
        front.end()

    asyncio.run(scene())


def test_what_comes_alone_keeps_its_place_behind_what_waits_for_the_same_client() -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        subscriber, publisher = await _client(front, "s", 5), await _client(front, "p", 5)
        subscriber.data_received(_subscribing(Wanted(0, "a"), 5))
        await asyncio.sleep(0)
        said = [_publishing(Said("a", n), 5, 0) for n in range(4)]
        wire = cast(Any, subscriber.transport)
        publisher.data_received(said[0])
        subscriber.pass_on(said[1], 1)
        publisher.data_received(said[2])
        subscriber.pause_writing()
        publisher.data_received(said[3])
        assert wire.written.endswith(b"".join(said[:3])), "nothing leaves while the client does not read"
        subscriber.resume_writing()
        assert wire.written.endswith(b"".join(said))
        assert front.broker.counts.delivered[0] == front.counts.publishes_in == 3
        front.end()

    asyncio.run(scene())


def test_what_comes_alone_still_counts_against_the_rate_of_its_client() -> None:
    async def scene() -> None:
        front = Front(lone_broker(), Options(packets_per_s=2.0, burst_s=1.0))
        front.begin()
        publisher = await _client(front, "p", 5)
        for n in range(4):
            publisher.data_received(_publishing(Said("a", n), 5, 0))
        assert publisher.state is State.GONE
        front.end()

    asyncio.run(scene())

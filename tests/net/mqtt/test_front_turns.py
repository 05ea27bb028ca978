"""Nobody waits for a client that says much: work in a turn of the loop is shared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Container, Mapping, Sequence
from socket import socketpair
from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.net.mqtt.saying import codes, connected, publish, subscribe, text
from tests.net.mqtt.serving import lone_broker, served

from godwit.events import Value
from godwit.net.mqtt.connection import (
    GATHERED_MIN,
    GATHERED_S,
    SHARE_FIRST,
    SHARE_MAX,
    TURN_BYTES_MAX,
    Connection,
    share_after,
)
from godwit.net.mqtt.front import SHARE_S, Front
from godwit.net.mqtt.options import Options
from godwit.net.mqtt.routes import Carriage
from godwit.protocols.broker.api import Outlet
from godwit.protocols.broker.interest.conditions import FEW
from godwit.protocols.broker.interest.subscribers import Asking, Parted, Wanting

PING, PONG = b"\xc0\0", b"\xd0\0"
MANY = 5_000


class Wire(asyncio.Transport):
    """Remembers what was written, and whether anybody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reading = True
        self.unread, self._socket = socketpair()
        self._socket.setblocking(False)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return False

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None: ...
    def abort(self) -> None: ...
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def get_extra_info(self, name: str, default: object = None) -> object:
        return {"peername": ("127.0.0.1", 1), "socket": self._socket}.get(name, default)


class Work:
    """How long work takes, as a test wants it: each look at the clock is so much later than the one before."""

    def __init__(self) -> None:
        self.look_s = 0.0
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += self.look_s
        return self._now_s


@pytest.fixture(autouse=True)
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    clock = Work()
    for name in ("connection.perf_counter", "connection.thread_time", "subscribe.perf_counter"):
        monkeypatch.setattr(f"godwit.net.mqtt.{name}", clock)
    for name in ("perf_counter", "thread_time"):
        monkeypatch.setattr(f"godwit.net.host.{name}", clock)
    return clock


async def let_in(front: Front, name: str, **more: Any) -> tuple[Connection, Wire]:
    connection, wire = Connection(front), Wire()
    connection.connection_made(wire)
    connection.data_received(mqtt5.ConnectPacket(name, **more).write())
    await until(lambda: bool(wire.written))
    await asyncio.sleep(0)
    wire.written = b""
    return connection, wire


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


def test_who_says_much_at_once_waits_and_nobody_else_does() -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, flood = await let_in(front, "flooder")
        other, calm = await let_in(front, "other")
        flooder.data_received(PING * MANY)
        assert flood.written == PONG * SHARE_FIRST
        assert not flood.reading
        other.data_received(PING)
        assert calm.written == PONG
        await until(lambda: flood.reading)
        assert flood.written == PONG * MANY
        front.end()

    asyncio.run(scene())


def test_what_comes_while_a_client_waits_for_its_turn_keeps_its_place() -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, flood = await let_in(front, "flooder")
        listener, heard = await let_in(front, "listener")
        listener.data_received(subscribe("t"))
        heard.written = b""
        said = [mqtt5.PublishPacket("t", str(i).encode()).write() for i in range(MANY)]
        stream = b"".join(one + PING for one in said)  # a PINGREQ between two, so that no run is passed on unseen
        for start in range(0, len(stream), 999):
            flooder.data_received(stream[start : start + 999])
        await until(lambda: flood.written.count(PONG) == MANY)
        assert heard.written == b"".join(said)
        front.end()

    asyncio.run(scene())


def test_topics_that_nobody_has_named_before_go_as_one_run_and_count_as_packets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To find out who wants a topic costs as much as to look at a packet."""
    runs: list[int] = []
    carry = Carriage.carry

    def counted(self: Carriage, run: bytes, version: int, count: int) -> int:
        runs.append(count)
        return carry(self, run, version, count)

    monkeypatch.setattr(Carriage, "carry", counted)

    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, flood = await let_in(front, "flooder")
        listener, heard = await let_in(front, "listener")
        listener.data_received(subscribe("t/#"))
        heard.written = b""
        said = [mqtt5.PublishPacket(f"t/{i:04}", b"x").write() for i in range(MANY)]
        flooder.data_received(b"".join(said))
        assert runs == [1 + SHARE_FIRST]  # the first is a packet, whatever its topic
        await until(lambda: flood.reading)
        assert heard.written == b"".join(said)
        runs.clear()
        flooder.data_received(b"".join(said[:100]))
        assert runs == [100]
        front.end()

    asyncio.run(scene())


def test_who_says_something_long_is_not_read_to_its_end_in_one_turn() -> None:
    """However fast it comes: others have their turn after half a megabyte, and nothing is lost."""

    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, flood = await let_in(front, "flooder")
        listener, heard = await let_in(front, "listener")
        listener.data_received(subscribe("t"))
        heard.written = b""
        said = mqtt5.PublishPacket("t", bytes(1_000_000)).write() * 3
        turns, at, piece = 0, 0, 64 * 1024
        while at < len(said):
            read = 0
            while flood.reading and at < len(said):
                flooder.data_received(said[at : at + piece])
                at, read = at + piece, read + piece
            assert read <= TURN_BYTES_MAX
            turns += 1
            await until(lambda: flood.reading)
        assert turns >= len(said) // TURN_BYTES_MAX
        assert heard.written == said
        front.end()

    asyncio.run(scene())


def test_what_is_looked_into_together_is_little_whoever_asks_for_its_content() -> None:
    """Eight objects of 5,000 names are 600 kB, and were looked into in one go: everybody else waited for 30 ms."""

    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, flood = await let_in(front, "flooder")
        asking, heard = await let_in(front, "asking")
        other, calm = await let_in(front, "other")
        asking.data_received(subscribe("$filter/k7%3E%3D1/t"))
        heard.written = b""
        large = json.dumps({f"k{i}": i for i in range(5_000)}).encode()
        said = mqtt5.PublishPacket("t", large).write() * 8
        looked_into = watch_batches(front)
        flooder.data_received(said)
        assert len(looked_into) <= SHARE_FIRST
        other.data_received(PING)
        assert calm.written == PONG
        await until(lambda: flood.reading)
        assert looked_into == [1] * 8
        assert heard.written == said
        front.end()

    asyncio.run(scene())


def test_who_publishes_what_is_dear_to_look_into_is_looked_into_one_by_one(work: Work) -> None:
    """Small packets, and conditions that take long: how long a batch took decides about the size of the next."""

    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, flood = await let_in(front, "flooder")
        asking, heard = await let_in(front, "asking")
        asking.data_received(subscribe("$filter/speed%3E1/t"))
        heard.written = b""
        said = mqtt5.PublishPacket("t", b'{"speed": 7}').write() * 100
        looked_into = watch_batches(front)
        work.look_s = 2 * SHARE_S
        flooder.data_received(said)
        await until(lambda: flood.reading)
        assert looked_into[:4] == [SHARE_FIRST, SHARE_FIRST // 2, SHARE_FIRST // 4, SHARE_FIRST // 8]
        assert set(looked_into[4:]) == {1}
        assert heard.written == said
        front.end()

    asyncio.run(scene())


def test_what_is_looked_into_for_very_many_conditions_is_looked_into_together(work: Work) -> None:
    """The compiled index takes as long for four as for 32: one by one, everybody would wait longer."""

    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, flood = await let_in(front, "flooder")
        asking, heard = await let_in(front, "asking")
        for number in range(FEW + 1):
            asking.data_received(subscribe(f"$filter/speed%3E{number}%20AND%20speed%3C{number + 2}/t"))
        other, calm = await let_in(front, "other")
        flooder.data_received(mqtt5.PublishPacket("t", b'{"speed": 0}').write())  # the index is made when it is asked
        await until(lambda: flood.reading)
        heard.written = b""
        said = [mqtt5.PublishPacket("t", b'{"speed": %d}' % (number % 40)).write() for number in range(300)]
        looked_into = watch_batches(front)
        work.look_s = 2 * GATHERED_S
        flooder.data_received(b"".join(said))
        other.data_received(PING)
        assert calm.written == PONG
        await until(lambda: flood.reading)
        assert min(looked_into[:-1]) >= GATHERED_MIN
        assert heard.written == b"".join(one for number, one in enumerate(said) if number % 40)
        front.end()

    asyncio.run(scene())


async def six_asking(front: Front) -> tuple[Connection, Wire, list[Wire]]:
    """A publisher, and more receivers than are written to at once, who together have many conditions."""
    flooder, flood = await let_in(front, "flooder")
    wires = []
    for number in range(6):
        asking, wire = await let_in(front, f"asking-{number}")
        for most in range(FEW // 6 + 1):
            asking.data_received(subscribe(f"$filter/speed%3E%3D0%20AND%20speed%3C{100 * number + most + 9}/t"))
        wires.append(wire)
    flooder.data_received(mqtt5.PublishPacket("t", b'{"speed": 0}').write())
    await until(lambda: flood.reading and not front.is_holding)
    await until(lambda: all(wire.written.endswith(b'{"speed": 0}') for wire in wires))
    for wire in wires:
        wire.written = b""
    return flooder, flood, wires


SAID = [mqtt5.PublishPacket("t", b'{"speed": %d}' % (number % 9)).write() for number in range(300)]


def test_what_many_want_waits_for_more_of_its_publisher_and_nobody_else_waits_for_that() -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, flood, wires = await six_asking(front)
        other, calm = await let_in(front, "other")
        flooder.data_received(b"".join(SAID))
        assert front.is_holding
        assert not any(wire.written for wire in wires)
        other.data_received(PING)
        await asyncio.sleep(0)
        assert calm.written == PONG
        for wire in wires:
            assert wire.written.startswith(b"".join(SAID[:GATHERED_MIN]))
        await until(lambda: flood.reading and all(wire.written == b"".join(SAID) for wire in wires))
        front.end()

    asyncio.run(scene())


def test_what_waited_for_more_leaves_though_its_publisher_is_gone() -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        flooder, _, wires = await six_asking(front)
        flooder.data_received(b"".join(SAID))
        assert front.is_holding
        flooder.connection_lost(None)
        await until(lambda: all(wire.written == b"".join(SAID) for wire in wires))
        front.end()

    asyncio.run(scene())


def test_what_a_client_said_counts_though_its_connection_breaks_before_its_turn() -> None:
    """Else whoever takes its last delivery, says so and closes at once would get it again elsewhere."""

    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        walker, heard = await let_in(front, "walker", session_expiry_interval=60)
        publisher, _ = await let_in(front, "publisher")
        walker.data_received(subscribe("t"))
        heard.written = b""
        many = 3 * SHARE_FIRST
        for number in range(1, many + 1):
            publisher.data_received(publish("t", qos=1, number=number))
        await until(lambda: heard.written.count(b"t") >= many)
        session = front.broker.sessions["walker"]
        assert len(session.queue.flying) == many
        answers = [mqtt5.PubAckPacket(number).write() for number in session.queue.flying]
        walker.data_received(b"".join(answers[:-2]))
        assert len(session.queue.flying) > 2
        heard.unread.sendall(b"".join(answers[-2:]))  # reading rests, and then a write fails
        walker.connection_lost(ConnectionResetError())
        assert not session.queue.flying
        assert session.outlet is None
        front.end()

    asyncio.run(scene())


@given(st.integers(1, SHARE_MAX), st.floats(0, 1), st.sampled_from([SHARE_S, GATHERED_S]))
def test_a_share_grows_to_no_more_than_its_time_where_each_packet_costs_the_same(
    share: int, took_s: float, most_s: float
) -> None:
    after = share_after(share, took_s, most_s)
    assert max(1, share // 2) <= after <= min(SHARE_MAX, max(2 * share, share + 1))
    if took_s > most_s:
        assert after < share or share == 1
    elif after > share + 1:
        assert after * took_s / share <= most_s


def watch_batches(front: Front) -> list[int]:
    """How many publications are looked into together, each time."""
    sizes, outlets = [], front.broker.outlets

    def counted(
        asking: Sequence[Asking], events: Sequence[Mapping[str, Value]], taking: Container[Outlet]
    ) -> list[Wanting] | Parted:
        sizes.append(len(events))
        return outlets(asking, events, taking)

    front.broker.outlets = counted  # type: ignore[method-assign]
    return sizes


def test_two_who_flood_have_the_same_share() -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        wires = []
        for name in ("one", "two"):
            connection, wire = await let_in(front, name)
            connection.data_received(PING * MANY)
            wires.append(wire)
        await until(lambda: any(wire.reading for wire in wires))
        assert min(len(wire.written) for wire in wires) > MANY // 2
        front.end()

    asyncio.run(scene())


def test_a_subscribe_that_asks_for_much_is_answered_over_several_turns(work: Work) -> None:
    async def scene() -> None:
        front = Front(lone_broker())
        front.begin()
        greedy, wire = await let_in(front, "greedy")
        other, calm = await let_in(front, "other")
        work.look_s = SHARE_S
        greedy.data_received(subscribe(*(f"t/{i}" for i in range(200)), properties=said))
        had = front.broker.sessions["greedy"].subscriptions
        assert 0 < len(had) < 200
        other.data_received(PING)
        assert calm.written == PONG
        assert len(had) < 200
        work.look_s = 0.0
        await until(lambda: len(had) == 200 and bool(wire.written))
        answer, _ = mqtt5.read(memoryview(wire.written))
        assert isinstance(answer, mqtt5.SubAckPacket)
        assert len(answer.reason_codes) == 200
        front.end()

    condition = " OR ".join(f"(a{i} > {i} AND b{i} < {i})" for i in range(3))
    said = b"\x26" + text("filter") + text(condition)
    asyncio.run(scene())


def test_more_topic_filters_than_a_packet_may_have_are_refused_one_by_one() -> None:
    with served(Options(filters_per_packet_max=3)) as broker:
        client = connected(broker, "greedy")
        client.send(subscribe("a", "b", "c", "d"))
        assert codes(client) == [2, 2, 2, 0x97]
        client.send(PING)
        assert isinstance(client.packet(), mqtt5.PingRespPacket)

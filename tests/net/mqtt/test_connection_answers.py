"""PUBACK, PUBREC, PUBREL and PUBCOMP mean the same, however many of them are read at once."""

from __future__ import annotations

import asyncio
from typing import Any

import mqtt5
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.net.mqtt.serving import lone_broker
from tests.net.mqtt.test_front_turns import Wire, let_in, until

from godwit.net.mqtt.connection import Connection, State
from godwit.net.mqtt.front import Front

QOS = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE)
ACK, RECEIVED, RELEASE, COMPLETE = 0x40, 0x50, 0x62, 0x70

answers = st.lists(st.tuples(st.sampled_from([ACK, RECEIVED, RELEASE, COMPLETE]), st.integers(0, 5)), max_size=12)


def said(answer: tuple[int, int]) -> bytes:
    return bytes((answer[0], 2, 0, answer[1]))


async def entered(front: Front, name: str, expiry_s: int) -> tuple[Connection, Wire]:
    connection, wire = Connection(front), Wire()
    connection.connection_made(wire)
    connection.data_received(mqtt5.ConnectPacket(name, session_expiry_interval=expiry_s).write())
    await until(lambda: bool(wire.written))
    await asyncio.sleep(0)
    return connection, wire


async def quiet() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def outcome(parts: list[bytes], expiry_s: int) -> Any:
    """What a client has been told that has deliveries 1 to 4 under way and publications 1 and 2 not released, and what
    is known of these afterwards."""
    front = Front(lone_broker())
    front.begin()
    client, wire = await entered(front, "client", expiry_s)
    other, _ = await let_in(front, "other")
    client.data_received(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a", max_qos=QOS[2])]).write())
    for number, qos in enumerate((1, 2, 2, 2), 1):
        other.data_received(mqtt5.PublishPacket("a", b"x", qos=QOS[qos], packet_id=number).write())
    for number in (1, 2):
        client.data_received(mqtt5.PublishPacket("b", b"y", qos=QOS[2], packet_id=number).write())
    await quiet()
    wire.written = b""
    for part in parts:
        client.data_received(part)
    await quiet()
    session = front.broker.sessions.get("client")
    queue = session.queue if session is not None else None
    under_way = {n: (one.qos, one.received) for n, one in queue.flying.items()} if queue is not None else None
    incoming = sorted(queue.incoming) if queue is not None else None
    found = sorted(mqtt5_packets(wire.written)), under_way, incoming, client.state, front.broker.counts.waiting
    front.end()
    return found


def mqtt5_packets(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        found.append(data[at : at + 2 + data[at + 1]])
        at += 2 + data[at + 1]
    return found


@given(answers, st.sampled_from([0, 600]))
@example([(RECEIVED, 2), (RECEIVED, 3), (COMPLETE, 2), (COMPLETE, 3)], 0)
@example([(RELEASE, 1), (RELEASE, 2), (RELEASE, 5)], 600)
@example([(RECEIVED, 2), (RECEIVED, 1)], 0)
@settings(max_examples=60, deadline=None)
def test_answers_that_are_read_at_once_do_what_they_do_one_by_one(given: list[tuple[int, int]], expiry_s: int) -> None:
    together = asyncio.run(outcome([b"".join(map(said, given))], expiry_s))
    one_by_one = asyncio.run(outcome(list(map(said, given)), expiry_s))
    assert together == one_by_one


@pytest.mark.parametrize("wrong", [(RECEIVED, 1), (ACK, 2), (COMPLETE, 2)])
@pytest.mark.parametrize("before", [[], [(RECEIVED, 3)], [(ACK, 1)], [(RECEIVED, 3), (COMPLETE, 3)]])
def test_a_step_that_is_not_due_ends_the_connection_wherever_it_stands(
    before: list[tuple[int, int]], wrong: tuple[int, int]
) -> None:
    wrong = (RELEASE, 0) if (ACK, 1) in before and wrong[1] == 1 else wrong
    _, under_way, _, state, _ = asyncio.run(outcome([b"".join(map(said, [*before, wrong]))], 600))
    assert state is State.GONE
    done = {number for kind, number in before if kind in (ACK, COMPLETE)}
    assert under_way.keys() == {1, 2, 3, 4} - done

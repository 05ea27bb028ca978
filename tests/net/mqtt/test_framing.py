"""Packets are found in what sockets give, and runs of them change their version together."""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.net.mqtt.packetstrategies import topics

from godwit.net.mqtt import codec3 as packets3
from godwit.net.mqtt.codec import PacketError, length_field
from godwit.net.mqtt.framing import length_at, packets, run_end, with_properties, without_properties

payloads = st.lists(st.binary(max_size=3) | st.integers(100, 140).map(bytes) | st.integers(16370, 16390).map(bytes))


@given(st.integers(0, 268_435_455))
def test_a_length_is_read_as_written(size: int) -> None:
    field = length_field(size)
    assert length_at(b"xx0" + field + b"yy", 2, len(field) + 5) == (3 + len(field), size)


@given(st.integers(0, 268_435_455), st.data())
def test_a_length_that_has_not_come_is_waited_for(size: int, data: st.DataObject) -> None:
    field = length_field(size)
    assert length_at(b"0" + field, 0, data.draw(st.integers(0, len(field)))) == (0, 0)


def test_a_length_of_five_bytes_is_refused() -> None:
    with pytest.raises(PacketError):
        length_at(b"0\x80\x80\x80\x80\x01", 0, 6)


@given(topics, payloads)
@example("t", [bytes(123), bytes(124), bytes(125)])
def test_a_run_says_the_same_in_both_versions(topic: str, payloads: list[bytes]) -> None:
    said = [mqtt5.PublishPacket(topic, payload) for payload in payloads]
    old, new = b"".join(map(packets3.write, said)), b"".join(packet.write() for packet in said)
    assert with_properties(old) == new
    assert without_properties(new) == old
    assert [old[start:end] for start, _, end in packets(old)] == list(map(packets3.write, said))


@given(topics, payloads, topics, st.data())
def test_a_run_ends_with_the_last_whole_packet_of_its_topic(
    topic: str, payloads: list[bytes], other: str, data: st.DataObject
) -> None:
    said = [mqtt5.PublishPacket(topic, payload).write() for payload in payloads]
    following = mqtt5.PublishPacket(other, b"x").write()
    sent = b"".join(said) + following
    arrived = sent[: data.draw(st.integers(0, len(sent)))]
    whole, position = 0, 0
    for packet in [*said, *([following] if other == topic else [])]:
        if position + len(packet) <= len(arrived):
            position += len(packet)
            whole += 1
        else:
            break
    name = len(topic.encode()).to_bytes(2, "big") + topic.encode() + b"\0"
    assert run_end(arrived, 0, name, len(arrived), 1 << 20) == (position, whole)


def test_a_run_ends_before_a_packet_that_is_too_large_for_somebody() -> None:
    small, large = mqtt5.PublishPacket("a", b"x").write(), mqtt5.PublishPacket("a", bytes(50)).write()
    data = small + small + large + small
    assert run_end(data, 0, b"\0\1a\0", len(data), 20) == (2 * len(small), 2)

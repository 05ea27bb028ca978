"""Packets are found in what sockets give, and runs of them change their version together."""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.net.mqtt.packetstrategies import topics

from godwit.net.mqtt import packets3
from godwit.net.mqtt.fields import PacketError, length_field
from godwit.net.mqtt.reading import length_at, packets, run_end, with_properties, without_properties

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


@given(st.integers(0, 5), st.integers(0, 30))
def test_a_run_ends_with_the_last_whole_packet_of_its_kind(count: int, more: int) -> None:
    packet, head = b"0\x0b\x00\x03a/b\x00hello", b"0\x0b\x00\x03a/b\x00"
    following = (packet + b"0\x0a\x00\x03a/b\x00hell")[:more]
    data = packet * count + following
    whole = count + (more >= len(packet))
    assert run_end(data, 0, head, len(packet), len(data)) == whole * len(packet)

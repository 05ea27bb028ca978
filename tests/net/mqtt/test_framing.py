"""Packets are found in what sockets give, and runs of them change their version together."""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.net.mqtt.packetstrategies import topics

from godwit.net.mqtt import codec3 as packets3
from godwit.net.mqtt.codec import PacketError, length_field
from godwit.net.mqtt.framing import (
    NUMBERED,
    answers,
    answers_run,
    length_at,
    numbered_at,
    numbered_run,
    packets,
    piece_at,
    pieces,
    renumbered,
    run_end,
    with_properties,
    without_properties,
)

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


def prefix_of(topic: str, version: int) -> bytes:
    return len(topic.encode()).to_bytes(2, "big") + topic.encode() + (b"\0" if version == 5 else b"")


def written(packet: mqtt5.PublishPacket, version: int) -> bytes:
    return packet.write() if version == 5 else packets3.write(packet)


def run_of(
    data: bytes, version: int, known: dict[bytes, object], packet_max: int = 1 << 20, most: int = 1 << 20
) -> Any:
    """Where the run ends that the first packet begins, and how many packets it has; nothing where that is not whole."""
    first = piece_at(data, 0, len(data), 1 if version == 5 else 0) if data else None
    if first is None:
        return 0, 0
    return run_end(data, first, len(data), known.get, known[data[first[1] : first[3]]], packet_max, most)


@given(
    st.lists(topics, min_size=1, max_size=3, unique=True),
    st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=2) | st.integers(100, 140).map(bytes)), min_size=1),
    st.sampled_from([4, 5]),
    st.data(),
)
def test_a_run_ends_with_the_last_whole_packet_that_goes_the_same_way(
    names: list[str], said: list[tuple[int, bytes]], version: int, data: st.DataObject
) -> None:
    ways = [data.draw(st.sampled_from("ab")) for _ in names]
    known: dict[bytes, object] = {prefix_of(name, version): way for name, way in zip(names, ways, strict=True)}
    sent = [(at % len(names), payload) for at, payload in said]
    packets_sent = [written(mqtt5.PublishPacket(names[at], payload), version) for at, payload in sent]
    arrived = b"".join(packets_sent)
    arrived = arrived[: data.draw(st.integers(0, len(arrived)))]
    most = data.draw(st.integers(1, len(sent)))
    whole, position = 0, 0
    for (at, _), packet in zip(sent, packets_sent, strict=True):
        if whole == most or position + len(packet) > len(arrived) or ways[at] != ways[sent[0][0]]:
            break
        position += len(packet)
        whole += 1
    assert run_of(arrived, version, known, most=most) == (position, whole)


def test_a_run_ends_before_a_packet_that_is_too_large_for_somebody() -> None:
    small, large = mqtt5.PublishPacket("a", b"x").write(), mqtt5.PublishPacket("a", bytes(50)).write()
    data = small + small + large + small
    assert run_of(data, 5, {b"\0\1a\0": "way"}, packet_max=20) == (2 * len(small), 2)


def test_a_run_ends_before_a_packet_with_properties_or_a_topic_that_is_longer_than_it() -> None:
    plain, rich = mqtt5.PublishPacket("a", b"x").write(), mqtt5.PublishPacket("a", b"x", content_type="t").write()
    known: dict[bytes, object] = {b"\0\1a\0": "way"}
    assert run_of(plain + rich, 5, known) == (len(plain), 1)
    assert run_of(plain + b"\x30\x03\0\x01a" + b"\0", 5, known) == (len(plain), 1)


def test_packets_that_begin_as_the_first_go_with_it_though_their_topic_is_not_remembered() -> None:
    plain = mqtt5.PublishPacket("a", b"x").write()
    first = piece_at(plain, 0, len(plain), 1)
    assert first is not None
    assert run_end(plain * 3, first, 3 * len(plain), dict[bytes, str]().get, "way", 1 << 20, 10) == (3 * len(plain), 3)


@given(topics, payloads, st.sampled_from([4, 5]))
def test_the_pieces_of_a_run_are_its_topics_and_payloads(topic: str, payloads: list[bytes], version: int) -> None:
    run = b"".join(written(mqtt5.PublishPacket(topic, payload), version) for payload in payloads)
    found = pieces(run, 0, len(run), 1 if version == 5 else 0)
    assert [run[body + 2 : end].decode() for _, body, end, _, _ in found] == [topic] * len(payloads)
    assert [run[begin:end] for _, _, _, begin, end in found] == payloads


@given(
    st.lists(
        st.tuples(st.sampled_from(["a/b", "a/c", "b/b", "aa/bb"]), st.integers(0, 3), st.integers(0, 2)),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
    st.integers(1, 12),
)
def test_a_run_at_qos_1_ends_where_one_packet_after_the_other_would_end_it(
    said: list[tuple[str, int, int]], five: bool, most: int
) -> None:
    extra = 1 if five else 0
    wire = []
    for topic, number, size in said:
        body = len(topic).to_bytes(2, "big") + topic.encode() + number.to_bytes(2, "big") + b"\0" * extra + b"x" * size
        wire.append(bytes([NUMBERED, len(body)]) + body)
    data = b"".join(wire)
    known = {b"\0\3a/b": 1, b"\0\3a/c": 1, b"\0\3b/b": 2, b"\0\5aa/bb": 1}
    first = numbered_at(data, 0, len(data), extra)
    if first is None:
        return
    route = known[data[first[1] : first[2]]]
    expected, position = [], 0
    for packet in wire[:most]:
        one = numbered_at(data, position, len(data), extra)
        if one is None or known[data[one[1] : one[2]]] != route:
            break
        expected.append(one)
        position += len(packet)
    run, alike = numbered_run(data, first, len(data), known.get, route, 1 << 20, most)
    assert run == expected
    shapes = [(stop - start, end - start) for start, _, end, _, stop, _ in run]
    assert shapes[:alike] == [shapes[0]] * alike
    for count in range(1, len(run) + 1):
        numbers = [60_000 + 7 * at for at in range(count)]
        pairs = [(one, number.to_bytes(2, "big")) for one, number in zip(run, numbers, strict=False)]
        told = [data[one[0] : one[2]] + number + data[one[2] + 2 : one[4]] for one, number in pairs]
        assert renumbered(data, run, alike, numbers) == b"".join(told)


@given(
    st.sampled_from([0x40, 0x50, 0x62, 0x70]),
    st.lists(st.integers(1, 65_535), min_size=1, max_size=600),
    st.sampled_from([b"", b"\x40\2\0\0", b"\x50\2\0\1", b"\x40\3\0\1\0", b"\xc0\0", b"\x40\2\1"]),
)
def test_answers_are_read_up_to_what_is_no_answer_of_their_kind(kind: int, numbers: list[int], after: bytes) -> None:
    data = answers(kind, numbers)
    assert data == b"".join(bytes((kind, 2)) + number.to_bytes(2, "big") for number in numbers)
    told = [*numbers, 1] if after == bytes((kind, 2, 0, 1)) else numbers
    assert answers_run(data + after, 0, len(data) + len(after)) == told

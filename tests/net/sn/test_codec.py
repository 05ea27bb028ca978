"""Packets by the bytes of the standard."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.sn.codec import (
    Code,
    Connect,
    Disconnect,
    Flags,
    Kind,
    Publish,
    SnError,
    TopicKind,
    acknowledged,
    flags_of,
    published,
    read,
    registered,
    subscribed,
    written,
)


def test_a_connect_as_the_standard_writes_it() -> None:
    assert read(b"\x08\x04\x04\x01\x00\x3cab") == Connect(Flags(clean=True), 60, "ab")


def test_a_publication_without_a_connection_has_both_bits_of_its_qos() -> None:
    packet = read(b"\x09\x0c\x61\x00\x02\x00\x00hi")
    assert packet == Publish(Flags(qos=-1, topic=TopicKind.PREDEFINED), b"\x00\x02", 0, b"hi")


def test_a_long_packet_has_its_length_in_three_bytes() -> None:
    data = published(Flags(qos=1), b"\x00\x01", 5, bytes(300))
    assert data[:4] == bytes((1, 0x01, 0x35, 0x0C))
    assert len(data) == 0x135
    packet = read(data)
    assert isinstance(packet, Publish)
    assert packet.payload == bytes(300)


def test_what_the_broker_says_by_its_bytes() -> None:
    assert acknowledged(Kind.PUBACK, 1, 2, Code.INVALID_TOPIC) == bytes((7, 0x0D, 0, 1, 0, 2, 2))
    assert registered(3, 4, "a") == bytes((7, 0x0A, 0, 3, 0, 4)) + b"a"
    assert subscribed(1, 3, 4, Code.ACCEPTED) == bytes((8, 0x13, 0x20, 0, 3, 0, 4, 0))
    assert written(Kind.PINGRESP) == b"\x02\x17"


def test_who_leaves_says_no_time_and_who_sleeps_does() -> None:
    assert read(b"\x02\x18") == Disconnect(None)
    assert read(b"\x04\x18\x00\x0a") == Disconnect(10)


@given(st.binary(max_size=40))
def test_any_datagram_is_a_packet_or_the_one_error(data: bytes) -> None:
    with suppress(SnError):
        assert read(data) is not None


@given(st.integers(0, 255).filter(lambda byte: byte & 3 != 3))
def test_flags_come_back_as_they_were(byte: int) -> None:
    assert flags_of(byte).byte() == byte


@pytest.mark.parametrize("client", ["", "x" * 24])
def test_a_client_identifier_has_one_to_twenty_three_characters(client: str) -> None:
    with pytest.raises(SnError):
        read(written(Kind.CONNECT, bytes((4, 1, 0, 9)) + client.encode()))

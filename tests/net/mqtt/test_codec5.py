"""Version 5: what the package leaves to its caller is refused with its reason code; nonsense raises nothing else."""

from __future__ import annotations

import contextlib

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.mqtt import codec5 as packets5
from godwit.net.mqtt.codec import (
    MALFORMED,
    PROTOCOL_ERROR,
    Packet,
    PacketError,
    Subscribe,
    Unsubscribe,
    Wish,
    length_field,
)

RICH: list[Packet] = [
    mqtt5.ConnectPacket(
        "mé",
        username="ü",
        password=b"\xff",
        will=mqtt5.Will("a/ä", payload=b"\xff", content_type="ç", user_properties=[("k", "ö")], will_delay_interval=3),
        keep_alive=10,
        session_expiry_interval=20,
        receive_max=30,
        topic_alias_max=40,
        max_packet_size=50,
        user_properties=[("previous", "é")],
    ),
    mqtt5.PublishPacket(
        "a/é",
        b"\xff\xfe",
        qos=mqtt5.QoS.EXACTLY_ONCE,
        packet_id=7,
        content_type="ä",
        response_topic="b/ö",
        correlation_data=b"\xff",
        message_expiry_interval=200,
        topic_alias=3,
        user_properties=[("k", "ü"), ("k", "é")],
    ),
    mqtt5.PubAckPacket(1, reason_code=mqtt5.PubAckReasonCode.NOT_AUTHORIZED, reason_str="né"),
    mqtt5.PubRecPacket(200),
    mqtt5.PubRelPacket(1, reason_code=mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND),
    mqtt5.PubCompPacket(1, user_properties=[("é", "ü")]),
    mqtt5.PingReqPacket(),
    mqtt5.DisconnectPacket(session_expiry_interval=200, reason_str="bÿe"),
]


def packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + length_field(len(body)) + body


@pytest.mark.parametrize("rich", RICH, ids=lambda rich: type(rich).__name__)
def test_what_the_package_writes_is_read(rich: mqtt5.ConnectPacket) -> None:
    assert packets5.read(rich.write()) == rich


def test_subscriptions_are_read_as_the_package_writes_them() -> None:
    written = mqtt5.SubscribePacket(
        3,
        [
            mqtt5.TopicFilter("a/é", max_qos=mqtt5.QoS.AT_LEAST_ONCE, no_local=True, retain_as_published=False),
            mqtt5.TopicFilter("b/#", retain_handling=mqtt5.RetainHandling.SEND_NEVER),
        ],
        subscription_id=268435455,
        user_properties=[("filter", "x > 1")],
    ).write()
    wishes = (Wish("a/é", 1, True, False, 0), Wish("b/#", 2, False, True, 2))
    assert packets5.read(written) == Subscribe(3, wishes, 268435455, (("filter", "x > 1"),))
    assert packets5.read(mqtt5.UnsubscribePacket(4, ["a/é", "b"]).write()) == Unsubscribe(4, ("a/é", "b"))


def test_a_bad_topic_filter_does_not_spoil_the_packet() -> None:
    assert packets5.read(packet(0x82, b"\0\1\0\0\3a#b\1\0\1c\2")) == Subscribe(1, (Wish("a#b", 1), Wish("c", 2)))
    assert packets5.read(packet(0xA2, b"\0\1\0\0\3a#b\0\1c")) == Unsubscribe(1, ("a#b", "c"))


@given(st.sampled_from(RICH), st.data())
def test_a_damaged_packet_is_a_packet_or_refused(rich: mqtt5.ConnectPacket, data: st.DataObject) -> None:
    written = bytearray(rich.write())
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(PacketError):
        packets5.read(bytes(written))


@given(st.sampled_from(range(16)), st.integers(0, 15), st.binary(max_size=40))
def test_garbage_is_a_packet_or_refused(kind: int, flags: int, body: bytes) -> None:
    with contextlib.suppress(PacketError):
        packets5.read(packet(kind << 4 | flags, body))


CONNECT = b"\x00\x04MQTT\x05"


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (packet(0x10, CONNECT + b"\x03\0\0\0\0\0"), MALFORMED, "reserved flag"),
        (packet(0x10, CONNECT + b"\x0a\0\0\0\0\0"), MALFORMED, "without a will"),
        (packet(0x10, CONNECT + b"\x02\0\0\x04\x16\0\1x\0\0"), PROTOCOL_ERROR, "without an authentication method"),
        (packet(0x10, CONNECT + b"\x02\0\0\x03\x21\0\0\0\0"), PROTOCOL_ERROR, "receive maximum"),
        (packet(0x10, CONNECT + b"\x02\0\0\x05\x27\0\0\0\0\0\0"), PROTOCOL_ERROR, "maximum packet size"),
        (packet(0x10, CONNECT + b"\x02\0\0\x02\x17\2\0\0"), PROTOCOL_ERROR, "neither 0 nor 1"),
        (packet(0x10, CONNECT + b"\x02\0\0\x00\0\1\xff"), MALFORMED, "not UTF-8"),
        (packet(0x10, CONNECT + b"\x02\0\0\x00\0\1\0"), MALFORMED, "U+0000"),
        (packet(0x30, b"\0\1#\0"), MALFORMED, "wildcard"),
        (packet(0x30, b"\0\0\0"), PROTOCOL_ERROR, "topic is empty"),
        (packet(0x30, b"\0\1a\x03\x23\0\0"), PROTOCOL_ERROR, "topic alias"),
        (packet(0x30, b"\0\1a\x02\x0b\1"), PROTOCOL_ERROR, "subscription identifier from a client"),
        (packet(0x30, b"\0\1a\x02\x01\2"), PROTOCOL_ERROR, "neither 0 nor 1"),
        (packet(0x30, b"\0\1a\x04\x01\1\x01\1"), PROTOCOL_ERROR, "duplicate value"),
        (packet(0x30, b"\0\1a\x02\x24\1"), MALFORMED, "property type"),
        (packet(0x30, b"\0\1a\x02\x7f\1"), MALFORMED, "not known: 0x7f"),
        (packet(0x30, b"\0\1a\x09\x01\1"), MALFORMED, "more are announced"),
        (packet(0x30, b"\0\1a\x07\x26\0\1\xff\0\1b"), MALFORMED, "not UTF-8"),
        (packet(0x32, b"\0\1a\0\0\0"), PROTOCOL_ERROR, "identifier is 0"),
        (packet(0x38, b"\0\1a\0"), MALFORMED, "duplicate at QoS 0"),
        (packet(0x40, b"\0\1\x11"), MALFORMED, "PubAckReasonCode"),
        (packet(0x40, b"\0\0"), PROTOCOL_ERROR, "identifier is 0"),
        (packet(0x82, b"\0\1\0\0\1a\xc0"), MALFORMED, "reserved bits"),
        (packet(0x82, b"\0\1\0\0\1a\x30"), PROTOCOL_ERROR, "retain handling"),
        (packet(0x82, b"\0\1\0"), PROTOCOL_ERROR, "no topic filter"),
        (packet(0x82, b"\0\1\2\x0b\0\0\1a\0"), PROTOCOL_ERROR, "subscription identifiers [0]"),
        (packet(0x82, b"\0\1\4\x0b\1\x0b\1\0\1a\0"), PROTOCOL_ERROR, "subscription identifiers [1, 1]"),
        (packet(0x82, b"\0\1\2\x01\1\0\1a\0"), MALFORMED, "do not belong there: 0x01"),
        (packet(0x20, b"\0\0\0"), PROTOCOL_ERROR, "CONNACK: not for a client"),
        (packet(0xF0, b""), PROTOCOL_ERROR, "AUTH: not for a client"),
        (packet(0xE0, b"\x33"), MALFORMED, "DisconnectReasonCode"),
    ],
)
def test_what_the_standard_forbids_is_named(data: bytes, code: int, text: str) -> None:
    with pytest.raises(PacketError) as refused:
        packets5.read(data)
    assert refused.value.code == code
    assert text in refused.value.text

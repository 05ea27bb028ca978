"""MQTT 5.0, chapters 1, 2 and 6: how packets are written, and how they travel over WebSocket."""

from __future__ import annotations

from collections.abc import Iterator

import mqtt5
import pytest
from tests.net.mqtt.saying import (
    MALFORMED,
    PROTOCOL_ERROR,
    codes,
    connected,
    goodbye,
    heard,
    listening,
    packet,
    publish,
    subscribe,
    text,
)
from tests.net.mqtt.serving import Raw, Served, served
from websockets.sync.client import connect as connect_websocket

from godwit.net.mqtt.options import Options


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(Options(connect_wait_s=5.0)) as running:
        yield running


@pytest.fixture
def client(broker: Served) -> Iterator[Raw]:
    with connected(broker, "format") as raw:
        yield raw


@pytest.mark.mqtt("MQTT-1.5.4-1", "MQTT-3.3.2-1")
@pytest.mark.parametrize("topic", [b"a\xed\xa0\x80", b"a\xed\xbf\xbf", b"a\xff", b"\xc0\x80", b"a\xe2\x82"])
def test_text_that_is_no_utf_8_is_malformed(client: Raw, topic: bytes) -> None:
    client.send(packet(0x30, text(topic) + b"\0"))
    assert goodbye(client) == MALFORMED


@pytest.mark.mqtt("MQTT-1.5.4-2", "MQTT-4.7.3-2")
def test_text_with_nul_is_malformed(client: Raw) -> None:
    client.send(packet(0x30, text("a\0b") + b"\0"))
    assert goodbye(client) == MALFORMED


@pytest.mark.mqtt("MQTT-1.5.4-3", "MQTT-4.7.3-4")
def test_text_is_passed_on_as_it_is(broker: Served, client: Raw) -> None:
    """Neither a byte order mark nor a letter that could be written in another way is touched."""
    topic = "\ufeffm/e\u0301/A"
    with listening(broker, "as-it-is", "\ufeffm/#") as listener:
        client.send(publish("m/e\u0301/A", b"other"), publish("\ufeffm/\u00e9/A", b"1"), publish(topic, b"2"))
        assert heard(listener).topic == "\ufeffm/\u00e9/A"
        assert heard(listener).topic == topic


@pytest.mark.mqtt("MQTT-1.5.7-1")
@pytest.mark.parametrize("pair", [(b"a\xff", b"b"), (b"a", b"b\0c")])
def test_both_texts_of_a_user_property_must_be_text(client: Raw, pair: tuple[bytes, bytes]) -> None:
    properties = b"\x26" + text(pair[0]) + text(pair[1])
    client.send(packet(0x30, text("a") + bytes((len(properties),)) + properties))
    assert goodbye(client) == MALFORMED


@pytest.mark.mqtt("MQTT-1.5.5-1")
@pytest.mark.parametrize("size", [0, 100, 127, 128, 16_383, 16_384])
def test_lengths_are_written_as_short_as_can_be(broker: Served, client: Raw, size: int) -> None:
    with listening(broker, "lengths", "l", options=0) as listener:
        client.send(publish("l", bytes(size)))
        raw = listener.raw()
        assert raw == packet(0x30, text("l") + b"\0" + bytes(size))


@pytest.mark.mqtt("MQTT-2.1.3-1", "MQTT-3.6.1-1", "MQTT-3.8.1-1", "MQTT-3.10.1-1", "MQTT-3.14.1-1")
@pytest.mark.parametrize(
    "said",
    [
        packet(0x60, b"\0\1"),
        packet(0x61, b"\0\1"),
        packet(0x80, b"\0\1\0" + text("a") + b"\0"),
        packet(0x83, b"\0\1\0" + text("a") + b"\0"),
        packet(0xA0, b"\0\1\0" + text("a")),
        packet(0xC8, b""),
        packet(0xE1, b""),
        packet(0x41, b"\0\1"),
    ],
)
def test_reserved_bits_of_the_first_byte_are_malformed(client: Raw, said: bytes) -> None:
    client.send(said)
    assert goodbye(client) == MALFORMED


@pytest.mark.mqtt("MQTT-2.2.1-2", "MQTT-4.3.1-1", "MQTT-3.3.1-2")
def test_qos_0_has_no_packet_identifier_and_is_no_repetition(broker: Served, client: Raw) -> None:
    with listening(broker, "qos0", "q0", options=0) as listener:
        client.send(publish("q0", b"x", 1, 5))
        assert listener.raw() == packet(0x30, text("q0") + b"\0x")


@pytest.mark.mqtt("MQTT-2.2.1-4", "MQTT-4.3.2-1", "MQTT-4.3.3-1")
def test_packet_identifiers_of_deliveries_are_not_in_use(broker: Served, client: Raw) -> None:
    with listening(broker, "numbers", "n", options=2) as listener:
        for number in range(1, 21):
            client.send(publish("n", b"x", 1 + number % 2, number))
            client.packet()
            if number % 2:
                client.send(mqtt5.PubRelPacket(number).write())
                client.packet()
        numbers = [heard(listener).packet_id for _ in range(20)]
        assert None not in numbers
        assert 0 not in numbers
        assert len(set(numbers)) == 20


@pytest.mark.mqtt("MQTT-2.2.1-4", "MQTT-4.3.2-1", "MQTT-4.3.3-1")
def test_numbers_that_begin_anew_leave_out_those_in_use(broker: Served, client: Raw) -> None:
    with listening(broker, "wraps", "w", options=2) as listener:
        for _ in range(2):
            broker.ask(lambda: setattr(broker.broker.sessions["wraps"].queue, "number", 65_533))
            for number in range(1, 6):
                client.send(publish("w", b"x", 1 + number % 2, number))
                client.packet()
                if number % 2:
                    client.send(mqtt5.PubRelPacket(number).write())
                    client.packet()
        numbers = [heard(listener).packet_id for _ in range(10)]
        assert numbers == [65_534, 65_535, 1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.mqtt("MQTT-2.2.1-5")
def test_answers_to_publications_carry_their_identifier(client: Raw) -> None:
    client.send(publish("a", b"x", 1, 4711))
    assert client.packet() == mqtt5.PubAckPacket(4711)
    client.send(publish("a", b"x", 2, 4712))
    assert client.packet() == mqtt5.PubRecPacket(4712)
    client.send(mqtt5.PubRelPacket(4712).write())
    assert client.packet() == mqtt5.PubCompPacket(4712)


@pytest.mark.mqtt("MQTT-2.2.1-6", "MQTT-3.8.4-2", "MQTT-3.10.4-5")
def test_answers_to_subscriptions_carry_their_identifier(client: Raw) -> None:
    client.send(subscribe("a", number=513))
    assert client.raw()[2:4] == b"\2\1"
    client.send(packet(0xA2, b"\2\2\0" + text("never")))
    assert client.raw()[2:4] == b"\2\2"


@pytest.mark.mqtt("MQTT-2.2.2-1")
def test_where_there_are_no_properties_their_length_is_zero(broker: Served, client: Raw) -> None:
    client.send(subscribe("plain"))
    assert client.raw() == packet(0x90, b"\0\1\0\2")
    client.send(publish("plain", b"x"))
    assert client.raw() == packet(0x30, text("plain") + b"\0x")


def prop(identifier: int, value: bytes) -> bytes:
    """A field of properties that holds this one."""
    return bytes((1 + len(value), identifier)) + value


def twice(identifier: int, value: bytes) -> bytes:
    return bytes((2 + 2 * len(value),)) + (bytes((identifier,)) + value) * 2


ERRORS = [
    # Malformed: what cannot be read as the text says.
    (packet(0x30, b""), MALFORMED),
    (packet(0x30, text("a") + b"\x81\0"), MALFORMED),
    (packet(0x30, text("a") + prop(0x7F, b"\0")), MALFORMED),
    (packet(0x30, text("a") + prop(0x11, b"\0\0\0\1")), MALFORMED),
    (packet(0x30, text("a/+") + b"\0"), MALFORMED),
    (packet(0x40, b"\0\1\x55"), MALFORMED),
    (packet(0x82, b"\0\1\0" + text("a")), MALFORMED),
    (packet(0x82, b"\0\1" + prop(0x23, b"\0\1") + text("a") + b"\0"), MALFORMED),
    (packet(0xC0, b"\0"), MALFORMED),
    (packet(0xE0, b"\x55"), MALFORMED),
    # Protocol errors that the text names, each with its section.
    (packet(0x30, text("a") + prop(0x01, b"\2")), PROTOCOL_ERROR),  # 3.3.2.3.2
    (packet(0x30, text("a") + twice(0x01, b"\1")), PROTOCOL_ERROR),
    (packet(0x30, text("a") + twice(0x02, b"\0\0\0\1")), PROTOCOL_ERROR),  # 3.3.2.3.3
    (packet(0x30, text("a") + twice(0x23, b"\0\1")), PROTOCOL_ERROR),  # 3.3.2.3.4
    (packet(0x30, text("") + b"\0"), PROTOCOL_ERROR),
    (packet(0x30, text("a") + twice(0x08, text("b"))), PROTOCOL_ERROR),  # 3.3.2.3.5
    (packet(0x30, text("a") + prop(0x08, text(""))), PROTOCOL_ERROR),
    (packet(0x30, text("a") + twice(0x09, text("b"))), PROTOCOL_ERROR),  # 3.3.2.3.6
    (packet(0x30, text("a") + twice(0x03, text("b"))), PROTOCOL_ERROR),  # 3.3.2.3.9
    (packet(0x30, text("a") + prop(0x0B, b"\1")), PROTOCOL_ERROR),  # 3.3.4
    (packet(0x40, b"\0\1\0" + twice(0x1F, text("b"))), PROTOCOL_ERROR),  # 3.4.2.2.2
    (packet(0x82, b"\0\1" + prop(0x0B, b"\0") + text("a") + b"\0"), PROTOCOL_ERROR),  # 3.8.2.1.2
    (packet(0x82, b"\0\1" + twice(0x0B, b"\1") + text("a") + b"\0"), PROTOCOL_ERROR),
    (packet(0x82, b"\0\1\0" + text("a") + b"\x30"), PROTOCOL_ERROR),  # 3.8.3.1
    (packet(0xE0, b"\0" + twice(0x11, b"\0\0\0\0")), PROTOCOL_ERROR),  # 3.14.2.2.2
    (packet(0xF0, b""), PROTOCOL_ERROR),  # 4.12
    # Ours: a condition that says nothing is a mistake, not a wish for everything.
    (packet(0x82, b"\0\1" + prop(0x26, text("filter") + text("")) + text("a") + b"\0"), PROTOCOL_ERROR),
]


@pytest.mark.mqtt("MQTT-4.13.1-1")
@pytest.mark.parametrize(("said", "reason"), ERRORS)
def test_an_error_closes_the_connection_with_the_reason_that_the_text_names(
    client: Raw, said: bytes, reason: int
) -> None:
    client.send(said)
    assert goodbye(client) == reason


def hello(properties: bytes = b"\0", flags: int = 2, will: bytes = b"") -> bytes:
    return packet(0x10, text("MQTT") + b"\5" + bytes((flags, 0, 0)) + properties + text("c") + will)


CONNECT_ERRORS = [
    (hello(flags=3), MALFORMED),
    (hello(prop(0x7F, b"\0")), MALFORMED),
    (hello(b"\1"), MALFORMED),
    (hello(flags=6, will=b"\0" + text("a/#") + text("")), MALFORMED),
    (hello(twice(0x11, b"\0\0\0\1")), PROTOCOL_ERROR),  # 3.1.2.11.2
    (hello(prop(0x21, b"\0\0")), PROTOCOL_ERROR),  # 3.1.2.11.3
    (hello(prop(0x27, b"\0\0\0\0")), PROTOCOL_ERROR),  # 3.1.2.11.4
    (hello(prop(0x19, b"\2")), PROTOCOL_ERROR),  # 3.1.2.11.6
    (hello(prop(0x17, b"\2")), PROTOCOL_ERROR),  # 3.1.2.11.7
    (hello(prop(0x16, text("x"))), PROTOCOL_ERROR),  # 3.1.2.11.10
    (hello(flags=6, will=twice(0x18, b"\0\0\0\1") + text("a") + text("")), PROTOCOL_ERROR),  # 3.1.3.2.2
    (hello(flags=6, will=prop(0x01, b"\2") + text("a") + text("")), PROTOCOL_ERROR),  # 3.1.3.2.3
    (hello(flags=6, will=prop(0x08, text("")) + text("a") + text("")), PROTOCOL_ERROR),  # 3.1.3.2.6
    (hello(flags=6, will=b"\0" + text("") + text("")), PROTOCOL_ERROR),
]


@pytest.mark.mqtt("MQTT-4.13.1-1")
@pytest.mark.parametrize(("said", "reason"), CONNECT_ERRORS)
def test_an_error_in_connect_is_answered_with_the_reason_that_the_text_names(
    broker: Served, said: bytes, reason: int
) -> None:
    with Raw(broker.port) as raw:
        raw.send(said)
        answer = raw.raw()
        assert (answer[0], answer[3]) == (0x20, reason)
        assert raw.is_closed()


@pytest.mark.mqtt("MQTT-6.0.0-1")
def test_text_frames_close_a_websocket(broker: Served) -> None:
    with connect_websocket(f"ws://127.0.0.1:{broker.websocket_port}/mqtt", subprotocols=["mqtt"]) as socket:  # type: ignore[list-item]
        socket.send("CONNECT")
        with pytest.raises(Exception, match=r"1003|close"):
            socket.recv(timeout=60)


@pytest.mark.mqtt("MQTT-6.0.0-2", "MQTT-6.0.0-4")
def test_packets_fall_anywhere_in_websocket_frames(broker: Served) -> None:
    said = mqtt5.ConnectPacket("frames", clean_start=True).write() + subscribe("f") + publish("f", b"x" * 50)
    with connect_websocket(f"ws://127.0.0.1:{broker.websocket_port}/mqtt", subprotocols=["mqtt"]) as socket:  # type: ignore[list-item]
        assert socket.subprotocol == "mqtt"
        for at in range(0, len(said), 3):
            socket.send(said[at : at + 3])
        back = b""
        while b"x" * 50 not in back:
            part = socket.recv(timeout=60)
            assert isinstance(part, bytes)
            back += part


def test_helpers_agree_with_the_package(client: Raw) -> None:
    client.send(subscribe("a/+", "b/#", options=1))
    assert codes(client) == [1, 1]

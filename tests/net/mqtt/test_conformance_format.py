"""MQTT 5.0, chapters 1, 2 and 6: how packets are written, and how they travel over WebSocket."""

from __future__ import annotations

from collections.abc import Iterator

import mqtt5
import pytest
from tests.net.mqtt.saying import (
    MALFORMED,
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


@pytest.mark.mqtt("MQTT-1.5.4-1", "MQTT-3.3.2-1", "MQTT-4.13.1-1")
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

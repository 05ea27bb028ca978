"""3.1.1 on the wire: what is written is read back, paho's bytes are understood, nonsense is only refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from socket import socket

import mqtt5
import paho.mqtt.client as paho
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from tests.net.mqtt.packetstrategies import packets3 as any_packet

from godwit.net.mqtt import codec3 as packets3
from godwit.net.mqtt.codec import Packet, PacketError, Subscribe, Unsubscribe, Wish, check_protocol, protocol_of


@given(any_packet)
def test_what_is_written_is_read_back(packet: Packet) -> None:
    assert packets3.read(packets3.write(packet)) == packet


@given(any_packet, st.data())
def test_part_of_a_packet_is_refused(packet: Packet, data: st.DataObject) -> None:
    written = packets3.write(packet)
    size = data.draw(st.integers(1, len(written) - 1))
    with pytest.raises(PacketError):
        packets3.read(written[:size])


@given(st.binary(min_size=1, max_size=60))
@example(b"\xf0\x00")
@example(b"\x00\x00")
def test_garbage_is_a_packet_or_refused(garbage: bytes) -> None:
    with contextlib.suppress(PacketError):
        packets3.read(garbage)


@given(any_packet, st.data())
def test_a_damaged_packet_is_a_packet_or_refused(packet: Packet, data: st.DataObject) -> None:
    written = bytearray(packets3.write(packet))
    written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(PacketError):
        packets3.read(bytes(written))


def sent_by_paho(speak: Callable[[paho.Client], object]) -> Packet:
    """The packet that paho makes of this."""
    client = paho.Client(CallbackAPIVersion.VERSION2, "me", protocol=paho.MQTTv311, clean_session=False)
    sent = bytearray()

    def queue(command: int, packet: bytes, *more: object) -> MQTTErrorCode:
        sent.extend(packet)
        return paho.MQTT_ERR_SUCCESS

    client._packet_queue = queue  # type: ignore[method-assign, assignment]
    client._sock = socket()
    speak(client)
    client._sock.close()
    return packets3.read(bytes(sent))


def test_paho_connects() -> None:
    def speak(client: paho.Client) -> None:
        client.username_pw_set("user", "secret")
        client.will_set("gone", b"me", qos=1, retain=True)
        client._send_connect(77)

    assert sent_by_paho(speak) == mqtt5.ConnectPacket(
        "me",
        username="user",
        password=b"secret",
        will=mqtt5.Will("gone", payload=b"me", qos=mqtt5.QoS.AT_LEAST_ONCE, retain=True),
        keep_alive=77,
        session_expiry_interval=packets3.FOREVER,
    )


def test_paho_subscribes_and_unsubscribes() -> None:
    wanted = sent_by_paho(lambda client: client._send_subscribe(False, [(b"a/+", 1), (b"b/#", 2)]))
    assert wanted == Subscribe(1, (Wish("a/+", 1), Wish("b/#", 2)))
    assert sent_by_paho(lambda client: client._send_unsubscribe(False, [b"a/+"])) == Unsubscribe(1, ("a/+",))


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_paho_publishes(qos: int) -> None:
    published = sent_by_paho(lambda client: client._send_publish(9, b"t/\xc3\xa4", b"x" * 300, qos, True))
    assert published == mqtt5.PublishPacket(
        "t/ä", b"x" * 300, qos=mqtt5.QoS(qos), retain=True, packet_id=9 if qos else None
    )


CONNECT = b"\x00\x04MQTT\x04"


@pytest.mark.parametrize(
    ("packet", "text"),
    [
        (b"\x10\x0c" + CONNECT + b"\x03\x00\x00\x00\x00", "reserved flag"),
        (b"\x10\x0c" + CONNECT + b"\x1e\x00\x00\x00\x00", "QoS is 3"),
        (b"\x10\x0c" + CONNECT + b"\x22\x00\x00\x00\x00", "without a will"),
        (b"\x10\x0e" + CONNECT + b"\x42\x00\x00\x00\x00\x00\x00", "without a user name"),
        (b"\x10\x0d" + CONNECT + b"\x02\x00\x00\x00\x00x", "1 bytes follow"),
        (b"\x30\x05\x00\x03a/#", "wildcard"),
        (b"\x30\x05\x00\x03a\x00b", "U+0000"),
        (b"\x30\x05\x00\x03a\xffb", "not UTF-8"),
        (b"\x30\x02\x00\x00", "empty topic"),
        (b"\x36\x05\x00\x01a\x00\x01", "QoS is 3"),
        (b"\x38\x03\x00\x01a", "duplicate at QoS 0"),
        (b"\x32\x05\x00\x01a\x00\x00", "identifier is 0"),
        (b"\x82\x06\x00\x00\x00\x01a\x00", "identifier is 0"),
        (b"\x82\x02\x00\x01", "no topic filter"),
        (b"\x80\x06\x00\x01\x00\x01a\x00", "flags of the fixed header are 0, not 2"),
        (b"\x82\x06\x00\x01\x00\x01a\x04", "reserved bits"),
        (b"\x82\x06\x00\x01\x00\x01a\x03", "QoS is 3"),
        (b"\xa2\x02\x00\x01", "no topic filter"),
        (b"\x60\x02\x00\x01", "flags"),
        (b"\xc0\x01\x00", "1 bytes follow"),
        (b"\xf0\x00", "does not have"),
        (b"\x30\x80\x80\x80\x80\x01", "more than four bytes"),
        (b"\xc0\x80\x00", "more bytes than it needs"),
    ],
)
def test_what_the_standard_forbids_is_named(packet: bytes, text: str) -> None:
    with pytest.raises(PacketError) as refused:
        packets3.read(packet)
    assert text in refused.value.text


def test_protocols_are_told_apart_by_name_and_version() -> None:
    assert protocol_of(packets3.write(mqtt5.ConnectPacket("me"))) == ("MQTT", 4)
    assert protocol_of(mqtt5.ConnectPacket("me").write()) == ("MQTT", 5)
    assert protocol_of(b"\x10\x0f\x00\x06MQIsdp\x03\x02\x00\x00\x00\x01a") == ("MQIsdp", 3)
    with pytest.raises(PacketError, match="'MQTT' version 6"):
        check_protocol("MQTT", 6)


def test_reasons_of_version_5_are_told_to_old_clients_as_nearly_as_may_be() -> None:
    assert [packets3.return_code(reason) for reason in (0, 132, 133, 136, 134, 135)] == list(range(6))
    assert packets3.return_code(int(mqtt5.ConnAckReasonCode.BANNED)) == 5
    assert packets3.return_code(int(mqtt5.ConnAckReasonCode.SERVER_BUSY)) == 3

"""What a client of version 5 may say, as bytes, and what it hears."""

from __future__ import annotations

import mqtt5
from tests.net.mqtt.serving import Raw, Served

from godwit.net.mqtt.codec import length_field

QOS = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE)
MALFORMED, PROTOCOL_ERROR = 0x81, 0x82


def packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + length_field(len(body)) + body


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(2, "big") + data


def subscribe(*patterns: str, number: int = 1, options: int = 2, properties: bytes = b"") -> bytes:
    """`options` is the byte that follows each topic filter."""
    wishes = b"".join(text(pattern) + bytes((options,)) for pattern in patterns)
    return packet(0x82, number.to_bytes(2, "big") + length_field(len(properties)) + properties + wishes)


def unsubscribe(*patterns: str, number: int = 1) -> bytes:
    return packet(0xA2, number.to_bytes(2, "big") + b"\0" + b"".join(map(text, patterns)))


def publish(topic: str, payload: bytes = b"", qos: int = 0, number: int | None = None, **said: object) -> bytes:
    return mqtt5.PublishPacket(topic, payload, qos=QOS[qos], packet_id=number, **said).write()  # type: ignore[arg-type]


def connected(broker: Served, name: str, **said: object) -> Raw:
    client = Raw(broker.port)
    client.connect(name, **said)  # type: ignore[arg-type]
    return client


def listening(broker: Served, name: str, *patterns: str, options: int = 2, **said: object) -> Raw:
    """A client that has subscribed."""
    client = connected(broker, name, **said)
    client.send(subscribe(*patterns, options=options))
    codes(client)
    return client


def codes(client: Raw) -> list[int]:
    """The reason codes of the SUBACK or UNSUBACK that comes next."""
    answer = client.packet()
    assert isinstance(answer, mqtt5.SubAckPacket | mqtt5.UnsubAckPacket), answer
    return [int(code) for code in answer.reason_codes]


def heard(client: Raw) -> mqtt5.PublishPacket:
    found = client.packet()
    assert isinstance(found, mqtt5.PublishPacket), found
    return found


def goodbye(client: Raw) -> int:
    """The reason of the DISCONNECT with which the broker closes the connection, and after which nothing comes."""
    said = client.packet()
    assert isinstance(said, mqtt5.DisconnectPacket), said
    assert client.is_closed()
    return int(said.reason_code)


def pings(client: Raw) -> bool:
    client.send(b"\xc0\0")
    return client.raw() == b"\xd0\0"


def drop(broker: Served, client: Raw, name: str) -> None:
    """End a connection without a word; returns when the broker has noticed."""
    client.socket.close()
    broker.until(lambda: all(session.outlet is None for session in [broker.broker.sessions.get(name)] if session))

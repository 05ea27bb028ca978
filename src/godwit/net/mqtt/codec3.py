"""MQTT 3.1.1 (and 3.1, which differs in the protocol's name): bytes to the packets of version 5, and back.

What version 3.1.1 cannot say is left out when written: properties, and reasons beyond its few return codes.

The package's enums are none of Python's: they know `int()` and `==`, no arithmetic, and even QoS 0 is true.
"""

from __future__ import annotations

from collections.abc import Callable

import mqtt5
from mqtt5 import ConnAckReasonCode, QoS, SubAckReasonCode

from godwit.net.mqtt.codec import (
    FLAGS,
    PROTOCOL_ERROR,
    Fields,
    Kind,
    Packet,
    PacketError,
    Subscribe,
    Unsubscribe,
    Wish,
    binary_field,
    body_of,
    check_count,
    checked_flags,
    length_field,
    text_field,
    topic_of,
    wish_of,
)

FOREVER = 0xFFFFFFFF
"""The session expiry interval that means: until the client comes back."""

RETURN_CODES = (0, 132, 133, 136, 134, 135)
"""Reasons by the return code of a CONNACK (table 3.1)."""

GRANTED = (0, 1, 2, 0x80)


def read(data: bytes) -> Packet:
    """One whole packet; `PacketError` where it is none."""
    fields = body_of(data)
    if data[0] >> 4 == Kind.PUBLISH:
        return _read_publish(fields, data[0])
    reader = _READERS.get(data[0] >> 4)
    if reader is None:
        raise PacketError(f"a packet of type {data[0] >> 4}, which 3.1.1 does not have")
    packet = reader(fields)
    fields.finish()
    return packet


def _read_connect(fields: Fields) -> Packet:
    fields.text(), fields.byte()
    flags = checked_flags(fields, fields.byte())
    keep_alive, client_id = fields.number16(), fields.text()
    will = _read_will(fields, flags) if flags & 4 else None
    if flags & 0x40 and not flags & 0x80:
        raise PacketError("CONNECT: a password without a user name")
    return mqtt5.ConnectPacket(
        client_id,
        username=fields.text() if flags & 0x80 else None,
        password=fields.binary() if flags & 0x40 else None,
        clean_start=bool(flags & 2),
        will=will,
        keep_alive=keep_alive,
        session_expiry_interval=0 if flags & 2 else FOREVER,
    )


def _read_will(fields: Fields, flags: int) -> mqtt5.Will:
    topic = topic_of(fields.binary(), "CONNECT, will")
    return mqtt5.Will(topic, payload=fields.binary(), qos=QoS(flags >> 3 & 3), retain=bool(flags & 0x20))


def _read_connack(fields: Fields) -> Packet:
    present, code = fields.byte(), fields.byte()
    if present > 1 or code >= len(RETURN_CODES):
        raise PacketError(f"CONNACK: flags {present}, return code {code}")
    return mqtt5.ConnAckPacket(session_present=bool(present), reason_code=ConnAckReasonCode(RETURN_CODES[code]))


def _read_publish(fields: Fields, first: int) -> Packet:
    qos = checked_publish_flags(first)
    topic = topic_of(fields.binary(), "PUBLISH")
    return mqtt5.PublishPacket(
        topic,
        packet_id=fields.packet_id() if qos else None,
        payload=fields.rest(),
        qos=QoS(qos),
        retain=bool(first & 1),
        duplicate=bool(first & 8),
    )


def checked_publish_flags(first: int) -> int:
    """The QoS of a PUBLISH with this first byte (MQTT-3.3.1-2, MQTT-3.3.1-4)."""
    qos = first >> 1 & 3
    if qos == 3:
        raise PacketError("PUBLISH: the QoS is 3")
    if first & 8 and not qos:
        raise PacketError("PUBLISH: a duplicate at QoS 0")
    return qos


def _read_subscribe(fields: Fields) -> Packet:
    packet_id, wishes = fields.packet_id(), list[Wish]()
    while fields.position < fields.end:
        check_count(len(wishes) + 1, "SUBSCRIBE")
        wishes.append(wish_of(fields.text(), fields.byte(), reserved=0xFC))
    if not wishes:
        raise PacketError("SUBSCRIBE: no topic filter", PROTOCOL_ERROR)
    return Subscribe(packet_id, tuple(wishes))


def _read_suback(fields: Fields) -> Packet:
    packet_id, codes = fields.packet_id(), fields.rest()
    if any(code not in GRANTED for code in codes):
        raise PacketError("SUBACK: a return code that is none of 0, 1, 2 and 128")
    return mqtt5.SubAckPacket(packet_id, [SubAckReasonCode(code) for code in codes])


def _read_unsubscribe(fields: Fields) -> Packet:
    packet_id, patterns = fields.packet_id(), list[str]()
    while fields.position < fields.end:
        check_count(len(patterns) + 1, "UNSUBSCRIBE")
        patterns.append(fields.text())
    if not patterns:
        raise PacketError("UNSUBSCRIBE: no topic filter", PROTOCOL_ERROR)
    return Unsubscribe(packet_id, tuple(patterns))


_READERS: dict[int, Callable[[Fields], Packet]] = {
    Kind.CONNECT: _read_connect,
    Kind.CONNACK: _read_connack,
    Kind.PUBACK: lambda fields: mqtt5.PubAckPacket(fields.packet_id()),
    Kind.PUBREC: lambda fields: mqtt5.PubRecPacket(fields.packet_id()),
    Kind.PUBREL: lambda fields: mqtt5.PubRelPacket(fields.packet_id()),
    Kind.PUBCOMP: lambda fields: mqtt5.PubCompPacket(fields.packet_id()),
    Kind.SUBSCRIBE: _read_subscribe,
    Kind.SUBACK: _read_suback,
    Kind.UNSUBSCRIBE: _read_unsubscribe,
    Kind.UNSUBACK: lambda fields: mqtt5.UnsubAckPacket(fields.packet_id(), []),
    Kind.PINGREQ: lambda fields: mqtt5.PingReqPacket(),
    Kind.PINGRESP: lambda fields: mqtt5.PingRespPacket(),
    Kind.DISCONNECT: lambda fields: mqtt5.DisconnectPacket(),
}


def write(packet: Packet) -> bytes:
    """One whole packet; ValueError where 3.1.1 has no such packet, or a field is too long for it."""
    match packet:
        case mqtt5.PublishPacket():
            first, body = _publish(packet)
        case mqtt5.AuthPacket():
            raise ValueError("3.1.1 has no AUTH")
        case _:
            kind, body = _written(packet)
            first = kind << 4 | FLAGS.get(kind, 0)
    return bytes((first,)) + length_field(len(body)) + body


def _publish(packet: mqtt5.PublishPacket) -> tuple[int, bytes]:
    first = Kind.PUBLISH << 4 | packet.duplicate << 3 | int(packet.qos) << 1 | packet.retain
    number = packet.packet_id.to_bytes(2, "big") if packet.packet_id is not None else b""
    return first, text_field(packet.topic) + number + packet.payload


def _written(packet: Packet) -> tuple[int, bytes]:
    match packet:
        case mqtt5.ConnectPacket():
            return Kind.CONNECT, _connect(packet)
        case mqtt5.ConnAckPacket():
            return Kind.CONNACK, bytes((packet.session_present, return_code(int(packet.reason_code))))
        case Subscribe():
            filters = (text_field(wish.pattern) + bytes((wish.qos,)) for wish in packet.wishes)
            return Kind.SUBSCRIBE, _number(packet.packet_id) + b"".join(filters)
        case mqtt5.SubAckPacket():
            return Kind.SUBACK, _number(packet.packet_id) + bytes(min(int(code), 0x80) for code in packet.reason_codes)
        case Unsubscribe():
            return Kind.UNSUBSCRIBE, _number(packet.packet_id) + b"".join(map(text_field, packet.patterns))
        case mqtt5.PingReqPacket():
            return Kind.PINGREQ, b""
        case mqtt5.PingRespPacket():
            return Kind.PINGRESP, b""
        case mqtt5.DisconnectPacket():
            return Kind.DISCONNECT, b""
        case mqtt5.PublishPacket() | mqtt5.AuthPacket():
            raise ValueError("AUTH and PUBLISH are not written here")
        case _:
            return _NUMBERED[type(packet)], _number(packet.packet_id)


_NUMBERED = {
    mqtt5.PubAckPacket: Kind.PUBACK,
    mqtt5.PubRecPacket: Kind.PUBREC,
    mqtt5.PubRelPacket: Kind.PUBREL,
    mqtt5.PubCompPacket: Kind.PUBCOMP,
    mqtt5.UnsubAckPacket: Kind.UNSUBACK,
}
"""Packets that say their packet identifier and nothing else."""


def _connect(packet: mqtt5.ConnectPacket) -> bytes:
    will, user, password = packet.will, packet.username, packet.password
    flags = packet.clean_start << 1 | (user is not None) << 7 | (password is not None) << 6
    parts = [text_field(packet.client_id)]
    if will is not None:
        flags |= 4 | int(will.qos) << 3 | will.retain << 5
        parts += text_field(will.topic), binary_field(will.payload or b"")
    if user is not None:
        parts.append(text_field(user))
    if password is not None:
        parts.append(binary_field(password))
    return b"\0\4MQTT\4" + bytes((flags,)) + _number(packet.keep_alive) + b"".join(parts)


def return_code(reason: int) -> int:
    """The return code of 3.1.1 that says most nearly the same."""
    if reason in RETURN_CODES:
        return RETURN_CODES.index(reason)
    return _NEAREST.get(reason, 3)


_NEAREST = {0x81: 1, 0x82: 1, 0x8A: 5, 0x8C: 4}
"""Malformed, protocol error, banned, bad authentication method; anything else is: unavailable."""


def _number(number: int) -> bytes:
    return number.to_bytes(2, "big")

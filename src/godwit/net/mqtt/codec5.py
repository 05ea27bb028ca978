"""MQTT 5: bytes to packets, through package mqtt5 and the checks that it leaves to its caller.

The package panics on text that is not UTF-8, takes U+0000, reserved bits, packet identifier 0 and a duplicate at QoS 0,
and refuses a whole SUBSCRIBE for one bad topic filter. So every packet is walked through here first, all but those
PUBLISH packets without properties that connections read themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import mqtt5

from godwit.net.mqtt.codec import (
    MALFORMED,
    PROTOCOL_ERROR,
    Fields,
    Kind,
    Packet,
    PacketError,
    Subscribe,
    Unsubscribe,
    Wish,
    body_of,
    check_count,
    checked_flags,
    topic_of,
    wish_of,
)
from godwit.net.mqtt.codec3 import checked_publish_flags

RESPONSE_TOPIC = 0x08
SUBSCRIPTION_IDENTIFIER = 0x0B
USER_PROPERTY = 0x26

PAYLOAD_FORMAT = 0x01
PACKET_SIZE_MAX = 0x27

PROPERTIES: dict[int, Callable[[Fields], object]] = {
    PAYLOAD_FORMAT: Fields.byte,
    0x02: Fields.number32,  # message expiry interval
    0x03: Fields.text,  # content type
    RESPONSE_TOPIC: Fields.text,
    0x09: Fields.binary,  # correlation data
    SUBSCRIPTION_IDENTIFIER: Fields.variable,
    0x11: Fields.number32,  # session expiry interval
    0x12: Fields.text,  # assigned client identifier
    0x13: Fields.number16,  # server keep alive
    0x15: Fields.text,  # authentication method
    0x16: Fields.binary,  # authentication data
    0x17: Fields.byte,  # request problem information
    0x18: Fields.number32,  # will delay interval
    0x19: Fields.byte,  # request response information
    0x1A: Fields.text,  # response information
    0x1C: Fields.text,  # server reference
    0x1F: Fields.text,  # reason string
    0x21: Fields.number16,  # receive maximum
    0x22: Fields.number16,  # topic alias maximum
    0x23: Fields.number16,  # topic alias
    0x24: Fields.byte,  # maximum QoS
    0x25: Fields.byte,  # retain available
    USER_PROPERTY: Fields.pair,
    PACKET_SIZE_MAX: Fields.number32,
    0x28: Fields.byte,  # wildcard subscription available
    0x29: Fields.byte,  # subscription identifiers available
    0x2A: Fields.byte,  # shared subscription available
}
"""How the value of each property is read (section 2.2.2.2)."""

BOOLEANS = (PAYLOAD_FORMAT, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A)
"""Properties that are one byte, 0 or 1."""


def read(data: bytes) -> Packet:
    """One whole packet from a client; `PacketError` with the reason code of section 4.13 where it is none."""
    fields = body_of(data)
    kind = data[0] >> 4
    if kind == Kind.SUBSCRIBE:
        return _read_subscribe(fields)
    if kind == Kind.UNSUBSCRIBE:
        return _read_unsubscribe(fields)
    walk = _WALKS.get(kind)
    if walk is None:
        raise PacketError(f"{fields.what}: not for a client to send", PROTOCOL_ERROR)
    walk(fields)
    return _read(data)


def _read(data: bytes) -> Packet:
    try:
        packet, _ = mqtt5.read(memoryview(data))
    except (ValueError, IndexError, OverflowError) as error:
        raise _named(str(error)) from None
    except BaseException as error:
        # The walk is meant to leave it nothing to panic at; should it ever, that is the client's end, not the broker's.
        if type(error).__name__ != "PanicException":
            raise
        raise PacketError("text that is not UTF-8") from None
    assert not isinstance(packet, mqtt5.SubscribePacket | mqtt5.UnsubscribePacket)
    return packet


def _named(text: str) -> PacketError:
    """What the package says, with the reason code that fits."""
    if text == "Invalid topic":
        return PacketError("a topic name with a wildcard in it")
    against_rules = text.startswith("Duplicate value") or text.endswith(("must be != 0", "if topic is empty"))
    return PacketError(text[:1].lower() + text[1:], PROTOCOL_ERROR if against_rules else MALFORMED)


def properties(fields: Fields) -> list[tuple[int, object]]:
    """The properties at this place in their order."""
    size = fields.variable()
    start = fields.skip(size)
    inner = Fields(fields.data, start, start + size, fields.what)
    found: list[tuple[int, object]] = []
    while inner.position < inner.end:
        name = inner.byte()
        value = PROPERTIES.get(name, _unknown)(inner)
        if name in BOOLEANS and value not in (0, 1):
            raise PacketError(f"{fields.what}: property {name:#04x} is {value}, neither 0 nor 1", PROTOCOL_ERROR)
        if name == RESPONSE_TOPIC and isinstance(value, str) and (not value or "#" in value or "+" in value):
            raise PacketError(f"{fields.what}: a response topic that is empty or has a wildcard", PROTOCOL_ERROR)
        found.append((name, value))
    return found


def _unknown(fields: Fields) -> object:
    raise PacketError(f"{fields.what}: a property that is not known: {fields.data[fields.position - 1]:#04x}")


def payload_is_text(data: bytes) -> bool | None:
    """The payload format indicator of a PUBLISH, or of the will in a CONNECT, both as they were read; None where it is
    not said, which the package does not tell from 0."""
    fields = body_of(data)
    if data[0] >> 4 == Kind.PUBLISH:
        fields.binary()
        fields.skip(2 if data[0] & 6 else 0)
    else:
        _skip_to_payload(fields)
        fields.binary()
    return next((bool(value) for name, value in properties(fields) if name == PAYLOAD_FORMAT), None)


def packet_max_of(data: bytes) -> int | None:
    """The largest packet that a client takes, as far as its CONNECT can be read; None where it does not say."""
    try:
        found = _skip_to_payload(body_of(data))
    except PacketError:
        return None
    return next((int(str(value)) for name, value in found if name == PACKET_SIZE_MAX), None)


def _skip_to_payload(fields: Fields) -> list[tuple[int, object]]:
    """The properties of a CONNECT; what follows is its payload."""
    fields.binary()
    fields.skip(4)
    return properties(fields)


def _walk_connect(fields: Fields) -> None:
    fields.text(), fields.byte()
    flags = checked_flags(fields, fields.byte())
    fields.number16()
    names = {name for name, _ in properties(fields)}
    if 0x16 in names and 0x15 not in names:
        raise PacketError("CONNECT: authentication data without an authentication method", PROTOCOL_ERROR)
    fields.text()
    if flags & 4:
        properties(fields)
        topic_of(fields.binary(), "CONNECT, will")
        fields.binary()
    if flags & 0x80:
        fields.text()


def _walk_publish(fields: Fields) -> None:
    qos = checked_publish_flags(fields.data[0])
    topic = fields.binary()
    if qos:
        fields.packet_id()
    names = {name for name, _ in properties(fields)}
    if SUBSCRIPTION_IDENTIFIER in names:
        raise PacketError("PUBLISH: a subscription identifier from a client", PROTOCOL_ERROR)
    if topic:
        topic_of(topic, "PUBLISH")


def _walk_acknowledgement(fields: Fields) -> None:
    fields.packet_id()
    _walk_reason(fields)


def _walk_reason(fields: Fields) -> None:
    if fields.position < fields.end:
        fields.byte()
    if fields.position < fields.end:
        properties(fields)


_WALKS: dict[int, Callable[[Fields], None]] = {
    Kind.CONNECT: _walk_connect,
    Kind.PUBLISH: _walk_publish,
    Kind.PUBACK: _walk_acknowledgement,
    Kind.PUBREC: _walk_acknowledgement,
    Kind.PUBREL: _walk_acknowledgement,
    Kind.PUBCOMP: _walk_acknowledgement,
    Kind.DISCONNECT: _walk_reason,
    Kind.PINGREQ: Fields.finish,
}
"""What clients may send; AUTH only where a server asked for it, and this one never does."""


def _read_subscribe(fields: Fields) -> Packet:
    packet_id, found, wishes = fields.packet_id(), properties(fields), list[Wish]()
    while fields.position < fields.end:
        check_count(len(wishes) + 1, "SUBSCRIBE")
        wishes.append(wish_of(fields.text(), fields.byte(), reserved=0xC0))
    if not wishes:
        raise PacketError("SUBSCRIBE: no topic filter", PROTOCOL_ERROR)
    return Subscribe(packet_id, tuple(wishes), _identifier(found), _user(found, "SUBSCRIBE"))


def _read_unsubscribe(fields: Fields) -> Packet:
    packet_id, patterns = fields.packet_id(), list[str]()
    _user(properties(fields), "UNSUBSCRIBE")
    while fields.position < fields.end:
        check_count(len(patterns) + 1, "UNSUBSCRIBE")
        patterns.append(fields.text())
    if not patterns:
        raise PacketError("UNSUBSCRIBE: no topic filter", PROTOCOL_ERROR)
    return Unsubscribe(packet_id, tuple(patterns))


def _identifier(found: list[tuple[int, object]]) -> int:
    """Takes the subscription identifier out of the properties found; 0 where there is none."""
    numbers = [value for name, value in found if name == SUBSCRIPTION_IDENTIFIER]
    if len(numbers) > 1 or 0 in numbers:
        raise PacketError(
            f"SUBSCRIBE: subscription identifiers {numbers}; one that is not 0 is allowed", PROTOCOL_ERROR
        )
    found[:] = [item for item in found if item[0] != SUBSCRIPTION_IDENTIFIER]
    return int(str(numbers[0])) if numbers else 0


def _user(found: list[tuple[int, object]], what: str) -> tuple[tuple[str, str], ...]:
    """The user properties, where nothing else is allowed."""
    others = [f"{name:#04x}" for name, _ in found if name != USER_PROPERTY]
    if others:
        raise PacketError(f"{what}: properties that do not belong there: {', '.join(others)}")
    return tuple(value for _, value in found if isinstance(value, tuple))

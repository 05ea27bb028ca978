"""The packets of MQTT-SN 1.2 that sensors need, as bytes and back. A number of bytes in the text is one of the
standard's section 5."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import msgspec

LONG = 0x01
"""A first byte that says: the length follows in two more."""
PROTOCOL = 0x01


class Kind(IntEnum):
    SEARCHGW = 0x01
    GWINFO = 0x02
    CONNECT = 0x04
    CONNACK = 0x05
    REGISTER = 0x0A
    REGACK = 0x0B
    PUBLISH = 0x0C
    PUBACK = 0x0D
    SUBSCRIBE = 0x12
    SUBACK = 0x13
    UNSUBSCRIBE = 0x14
    UNSUBACK = 0x15
    PINGREQ = 0x16
    PINGRESP = 0x17
    DISCONNECT = 0x18


class Code(IntEnum):
    ACCEPTED = 0
    CONGESTION = 1
    INVALID_TOPIC = 2
    NOT_SUPPORTED = 3


class TopicKind(IntEnum):
    NORMAL = 0
    """An identifier that was registered, or in SUBSCRIBE a name."""
    PREDEFINED = 1
    SHORT = 2
    """Two characters, which are the name."""


class SnError(ValueError):
    """A datagram that is no packet of a client; the text says why."""


class Flags(msgspec.Struct, frozen=True):
    again: bool = False
    qos: int = 0
    """-1, 0, 1 or 2; -1 is said by somebody who is not connected."""
    retain: bool = False
    will: bool = False
    clean: bool = False
    topic: TopicKind = TopicKind.NORMAL

    def byte(self) -> int:
        bits = self.again << 7 | (self.qos & 3) << 5 | self.retain << 4 | self.will << 3 | self.clean << 2
        return bits | self.topic


def flags_of(byte: int) -> Flags:
    qos = byte >> 5 & 3
    kind = byte & 3
    if kind == 3:
        raise SnError("the topic is of a kind that is reserved")
    return Flags(
        bool(byte & 0x80), -1 if qos == 3 else qos, bool(byte & 0x10), bool(byte & 8), bool(byte & 4), TopicKind(kind)
    )


class Connect(msgspec.Struct, frozen=True):
    flags: Flags
    duration_s: int
    client: str


class Register(msgspec.Struct, frozen=True):
    topic_id: int
    number: int
    topic: str


class Publish(msgspec.Struct, frozen=True):
    flags: Flags
    topic_id: bytes
    """Two bytes: a number, or a short name."""
    number: int
    payload: bytes


class Ack(msgspec.Struct, frozen=True):
    """REGACK or PUBACK."""

    kind: Kind
    topic_id: int
    number: int
    code: int


class Subscribe(msgspec.Struct, frozen=True):
    """SUBSCRIBE, or UNSUBSCRIBE where it is not `on`."""

    on: bool
    flags: Flags
    number: int
    topic: bytes


class Ping(msgspec.Struct, frozen=True):
    client: str


class Disconnect(msgspec.Struct, frozen=True):
    sleep_s: int | None
    """How long the client sleeps; None: it leaves."""


class Search(msgspec.Struct, frozen=True):
    """Somebody looks for a gateway."""


Packet = Connect | Register | Publish | Ack | Subscribe | Ping | Disconnect | Search


def read(data: bytes) -> Packet:
    """`SnError` where it is none of these."""
    kind, body = _opened(data)
    reader = _READERS.get(kind)
    if reader is None:
        raise SnError(f"a packet of type {kind:#04x}, which no client says here")
    least, make = reader
    if len(body) < least:
        raise SnError(f"{Kind(kind).name} of {len(body)} bytes, at least {least} are right")
    return make(body)


def _opened(data: bytes) -> tuple[int, bytes]:
    """The type and what follows."""
    if not data:
        raise SnError("a datagram without a byte")
    head = 3 if data[0] == LONG else 1
    length = int.from_bytes(data[1:3]) if head == 3 else data[0]
    if length != len(data) or len(data) <= head:
        raise SnError(f"a length of {length} in a datagram of {len(data)} bytes")
    return data[head], data[head + 1 :]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SnError("a name that is no UTF-8") from None


def _connect(body: bytes) -> Connect:
    if body[1] != PROTOCOL:
        raise SnError(f"CONNECT of protocol {body[1]}, not {PROTOCOL}")
    client = _text(body[4:])
    if not 1 <= len(client) <= 23:
        raise SnError(f"CONNECT with a client identifier of {len(client)} characters, 1 to 23 are right")
    return Connect(flags_of(body[0]), int.from_bytes(body[2:4]), client)


def _register(body: bytes) -> Register:
    return Register(int.from_bytes(body[:2]), int.from_bytes(body[2:4]), _text(body[4:]))


def _publish(body: bytes) -> Publish:
    return Publish(flags_of(body[0]), body[1:3], int.from_bytes(body[3:5]), body[5:])


def _regack(body: bytes) -> Ack:
    return Ack(Kind.REGACK, int.from_bytes(body[:2]), int.from_bytes(body[2:4]), body[4])


def _puback(body: bytes) -> Ack:
    return Ack(Kind.PUBACK, int.from_bytes(body[:2]), int.from_bytes(body[2:4]), body[4])


def _subscribe(body: bytes) -> Subscribe:
    return Subscribe(True, flags_of(body[0]), int.from_bytes(body[1:3]), body[3:])


def _unsubscribe(body: bytes) -> Subscribe:
    return Subscribe(False, flags_of(body[0]), int.from_bytes(body[1:3]), body[3:])


def _disconnect(body: bytes) -> Disconnect:
    return Disconnect(int.from_bytes(body[:2]) if len(body) >= 2 else None)


_READERS: dict[int, tuple[int, Callable[[bytes], Packet]]] = {
    Kind.SEARCHGW: (1, lambda body: Search()),
    Kind.CONNECT: (5, _connect),
    Kind.REGISTER: (5, _register),
    Kind.REGACK: (5, _regack),
    Kind.PUBLISH: (5, _publish),
    Kind.PUBACK: (5, _puback),
    Kind.SUBSCRIBE: (4, _subscribe),
    Kind.UNSUBSCRIBE: (4, _unsubscribe),
    Kind.PINGREQ: (0, lambda body: Ping(_text(body))),
    Kind.DISCONNECT: (0, _disconnect),
}


def written(kind: Kind, body: bytes = b"") -> bytes:
    length = len(body) + 2
    head = bytes((length,)) if length < 256 else bytes((LONG,)) + (length + 2).to_bytes(2)
    return head + bytes((kind,)) + body


def acknowledged(kind: Kind, topic_id: int, number: int, code: Code) -> bytes:
    """REGACK or PUBACK."""
    return written(kind, topic_id.to_bytes(2) + number.to_bytes(2) + bytes((code,)))


def registered(topic_id: int, number: int, topic: str) -> bytes:
    return written(Kind.REGISTER, topic_id.to_bytes(2) + number.to_bytes(2) + topic.encode())


def published(flags: Flags, topic_id: bytes, number: int, payload: bytes) -> bytes:
    return written(Kind.PUBLISH, bytes((flags.byte(),)) + topic_id + number.to_bytes(2) + payload)


def subscribed(qos: int, topic_id: int, number: int, code: Code) -> bytes:
    return written(
        Kind.SUBACK, bytes((Flags(qos=qos).byte(),)) + topic_id.to_bytes(2) + number.to_bytes(2) + bytes((code,))
    )

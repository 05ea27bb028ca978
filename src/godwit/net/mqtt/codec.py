"""Packets of every version, as connections see them: those of package mqtt5, and two of ours."""

from __future__ import annotations

from enum import IntEnum

import mqtt5
import msgspec


class Kind(IntEnum):
    """The upper half of a packet's first byte."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


FLAGS: dict[int, int] = {Kind.PUBREL: 2, Kind.SUBSCRIBE: 2, Kind.UNSUBSCRIBE: 2}
"""What the lower half of the first byte must be, where it is not 0; PUBLISH has its own."""


class Wish(msgspec.Struct, frozen=True):
    """One topic filter of a SUBSCRIBE with its options; not yet looked at."""

    pattern: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(msgspec.Struct, frozen=True):
    """The package's own would refuse the whole packet for one bad topic filter."""

    packet_id: int
    wishes: tuple[Wish, ...]
    subscription_id: int = 0
    user_properties: tuple[tuple[str, str], ...] = ()


class Unsubscribe(msgspec.Struct, frozen=True):
    packet_id: int
    patterns: tuple[str, ...]


Packet = (
    mqtt5.ConnectPacket
    | mqtt5.ConnAckPacket
    | mqtt5.PublishPacket
    | mqtt5.PubAckPacket
    | mqtt5.PubRecPacket
    | mqtt5.PubRelPacket
    | mqtt5.PubCompPacket
    | Subscribe
    | mqtt5.SubAckPacket
    | Unsubscribe
    | mqtt5.UnsubAckPacket
    | mqtt5.PingReqPacket
    | mqtt5.PingRespPacket
    | mqtt5.DisconnectPacket
    | mqtt5.AuthPacket
)


def body_of(data: bytes) -> Fields:
    """What follows the fixed header of one whole packet, once its flags are what they must be (MQTT-2.1.3-1)."""
    if data[0] < 0x10:
        raise PacketError("a packet of the reserved type 0")
    kind = Kind(data[0] >> 4)
    if kind != Kind.PUBLISH and data[0] & 0x0F != FLAGS.get(kind, 0):
        raise PacketError(f"{kind.name}: the flags of the fixed header are {data[0] & 0x0F}, not {FLAGS.get(kind, 0)}")
    fields = Fields(data, 1, len(data), kind.name)
    if fields.variable() != len(data) - fields.position:
        raise PacketError(f"{kind.name}: the remaining length is not that of the packet")
    return fields


SPOKEN = (("MQTT", 5), ("MQTT", 4), ("MQIsdp", 3))
"""Names and versions: 5, 3.1.1 and 3.1."""


def protocol_of(data: bytes) -> tuple[str, int]:
    """The name and version in a CONNECT, whatever they are."""
    fields = body_of(data)
    return fields.text(), fields.byte()


def check_protocol(name: str, version: int) -> None:
    if (name, version) not in SPOKEN:
        known = ", ".join(f"{name} {version}" for name, version in SPOKEN)
        raise PacketError(f"CONNECT: protocol {name[:20]!r} version {version}, not {known}", UNSUPPORTED_VERSION)


def checked_flags(fields: Fields, flags: int) -> int:
    """The flags of a CONNECT, as far as they contradict themselves (MQTT-3.1.2-3, 3.1.2-11 to 3.1.2-13)."""
    if flags & 1:
        raise PacketError("CONNECT: the reserved flag is set")
    if flags & 0x18 == 0x18:
        raise PacketError("CONNECT: the will's QoS is 3")
    if not flags & 4 and flags & 0x38:
        raise PacketError("CONNECT: a will's QoS or retain without a will")
    return flags


def check_count(count: int, what: str) -> None:
    """Of the topic filters that were read so far."""
    if count > TOPIC_FILTERS_MAX:
        raise PacketError(f"{what}: more than {TOPIC_FILTERS_MAX} topic filters", QUOTA_EXCEEDED)


def wish_of(pattern: str, options: int, *, reserved: int) -> Wish:
    if options & reserved:
        raise PacketError(f"SUBSCRIBE: reserved bits of the options are set: {options:#04x}")
    if options & 3 == 3:
        raise PacketError("SUBSCRIBE: the QoS is 3")
    if options & 0x30 == 0x30:
        raise PacketError("SUBSCRIBE: the retain handling is 3", 0x82)
    return Wish(pattern, options & 3, bool(options & 4), bool(options & 8), options >> 4 & 3)


# The fields that MQTT packets are made of (section 1.5 of both texts), and what may be wrong with them.

MALFORMED = 0x81
PROTOCOL_ERROR = 0x82
UNSUPPORTED_VERSION = 0x84
TOPIC_NAME_INVALID = 0x90
PACKET_TOO_LARGE = 0x95
QUOTA_EXCEEDED = 0x97

TOPIC_FILTERS_MAX = 4_096
"""In one packet: reading more would keep everybody else waiting."""

LENGTH_MAX = 268_435_455
"""The largest remaining length that four bytes can say."""


class PacketError(Exception):
    """The client sent what it must not: the connection ends with this reason code."""

    def __init__(self, text: str, code: int = MALFORMED) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class Fields:
    """Reads one packet's body from front to back; whatever is not there or not allowed is a `PacketError`."""

    __slots__ = ("data", "end", "position", "what")

    def __init__(self, data: bytes, position: int, end: int, what: str) -> None:
        self.data = data
        self.position = position
        self.end = end
        self.what = what

    def skip(self, size: int) -> int:
        """Where `size` bytes begin that are now behind us."""
        start = self.position
        if start + size > self.end:
            raise PacketError(f"{self.what}: byte {self.end} is the last, {start + size - self.end} more are announced")
        self.position = start + size
        return start

    def byte(self) -> int:
        return self.data[self.skip(1)]

    def number16(self) -> int:
        start = self.skip(2)
        return self.data[start] << 8 | self.data[start + 1]

    def number32(self) -> int:
        start = self.skip(4)
        return int.from_bytes(self.data[start : start + 4], "big")

    def variable(self) -> int:
        """A variable byte integer, in as few bytes as it needs."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 21:
                raise PacketError(f"{self.what}: a variable byte integer has more than four bytes")
        if byte == 0 and shift:
            raise PacketError(f"{self.what}: a variable byte integer has more bytes than it needs")
        return value

    def binary(self) -> bytes:
        size = self.number16()
        start = self.skip(size)
        return self.data[start : start + size]

    def text(self) -> str:
        return text_of(self.binary(), self.what)

    def pair(self) -> tuple[str, str]:
        return self.text(), self.text()

    def packet_id(self) -> int:
        number = self.number16()
        if number == 0:
            raise PacketError(f"{self.what}: the packet identifier is 0", PROTOCOL_ERROR)
        return number

    def rest(self) -> bytes:
        start, self.position = self.position, self.end
        return self.data[start : self.end]

    def finish(self) -> None:
        if self.position != self.end:
            raise PacketError(f"{self.what}: {self.end - self.position} bytes follow its end")


def text_of(data: bytes, what: str) -> str:
    """UTF-8 without U+0000 (MQTT-1.5.4-1, MQTT-1.5.4-2)."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PacketError(f"{what}: text that is not UTF-8: {error.reason} at byte {error.start}") from None
    if "\0" in text:
        raise PacketError(f"{what}: text with U+0000 in it")
    return text


def topic_of(data: bytes, what: str) -> str:
    """The name of a topic: some text without wildcards."""
    if not data:
        raise PacketError(f"{what}: an empty topic name", PROTOCOL_ERROR)
    if b"#" in data or b"+" in data:
        raise PacketError(f"{what}: a topic name with a wildcard in it")
    return text_of(data, what)


def length_field(size: int) -> bytes:
    """A variable byte integer."""
    if size < 0x80:
        return bytes((size,))
    found = bytearray()
    while size >= 0x80:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found)


def text_field(text: str) -> bytes:
    return binary_field(text.encode())


def binary_field(data: bytes) -> bytes:
    """At most 65,535 bytes; more is the caller's mistake (ValueError)."""
    if len(data) > 0xFFFF:
        raise ValueError(f"a field of {len(data)} bytes; at most 65535 fit")
    return len(data).to_bytes(2, "big") + data

"""Packets of every version, as connections see them: those of package mqtt5, and two of ours."""

from __future__ import annotations

from enum import IntEnum

import mqtt5
import msgspec

from godwit.net.mqtt.fields import UNSUPPORTED_VERSION, Fields, PacketError


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


def wish_of(pattern: str, options: int, *, reserved: int) -> Wish:
    if options & reserved:
        raise PacketError(f"SUBSCRIBE: reserved bits of the options are set: {options:#04x}")
    if options & 3 == 3:
        raise PacketError("SUBSCRIBE: the QoS is 3")
    if options & 0x30 == 0x30:
        raise PacketError("SUBSCRIBE: the retain handling is 3", 0x82)
    return Wish(pattern, options & 3, bool(options & 4), bool(options & 8), options >> 4 & 3)

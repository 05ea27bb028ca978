"""Deliveries to bytes. One encoding serves all clients that get the same form of a publication."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import mqtt5

from godwit.net.mqtt import codec3
from godwit.net.mqtt.codec import PACKET_TOO_LARGE, PacketError, binary_field, length_field, text_field
from godwit.net.mqtt.connect import USE_ANOTHER_SERVER, shortened
from godwit.net.mqtt.framing import PACKET_ANY
from godwit.protocols.broker.api import Delivery, Reason
from godwit.protocols.broker.broker import Granted
from godwit.protocols.broker.lasting.words import APPEARED, CHANGE, CHANGED, GONE, NUMBER, VIEW
from godwit.protocols.broker.publication import PLAIN, Properties, Publication

Form = tuple[bytes, bytes]
"""What comes before the packet identifier and what comes after it; at QoS 0 all is before."""


class Forms:
    """The forms of the publication that was delivered last."""

    __slots__ = ("_clock", "_forms", "_publication")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._publication: Publication | None = None
        self._forms: dict[object, Form] = {}

    def forget(self) -> None:
        """The time has passed for which they were made: an expiry interval counts down."""
        self._publication = None

    def packet(self, delivery: Delivery, version: int, alias: int = 0, known: bool = False) -> bytes:
        """The PUBLISH for this delivery. `alias` is the topic's, `known` where the client knows it already."""
        if delivery.publication is not self._publication:
            self._publication = delivery.publication
            self._forms.clear()
        key = (version == 5, delivery.qos, delivery.retain, delivery.identifiers, delivery.view, alias, known)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._form(delivery, version, alias, known)
        if not delivery.qos:
            return form[0]
        packet = b"".join((form[0], delivery.number.to_bytes(2, "big"), form[1]))
        return bytes((packet[0] | 8,)) + packet[1:] if delivery.again else packet

    def _form(self, delivery: Delivery, version: int, alias: int, known: bool) -> Form:
        publication = delivery.publication
        is_old = version < 5 and bool(delivery.view)
        topic = text_field("" if known else _lasting_topic(publication) if is_old else publication.topic)
        properties = self._properties(delivery, alias) if version == 5 else b""
        first = 0x30 | delivery.qos << 1 | delivery.retain
        size = len(topic) + (2 if delivery.qos else 0) + len(properties) + len(publication.payload)
        head = bytes((first,)) + length_field(size) + topic
        tail = properties + publication.payload
        return (head, tail) if delivery.qos else (head + tail, b"")

    def _properties(self, delivery: Delivery, alias: int) -> bytes:
        publication = delivery.publication
        if publication.properties is PLAIN and publication.expires is None and not delivery.identifiers and not alias:
            return b"\0"
        parts = [b"\x0b" + length_field(identifier) for identifier in delivery.identifiers]
        if alias:
            parts.append(b"\x23" + alias.to_bytes(2, "big"))
        if publication.expires is not None:
            left_s = min(max(1, round(publication.expires - self._clock())), 0xFFFFFFFF)
            parts.append(b"\x02" + left_s.to_bytes(4, "big"))
        parts += _properties(publication.properties)
        data = b"".join(parts)
        return length_field(len(data)) + data


CHANGES = {APPEARED: "in", CHANGED: "on", GONE: "out"}
"""What changed, for clients whose version knows no user properties."""


def _lasting_topic(publication: Publication) -> str:
    """`$lasting/<in, on or out>/<number>/<view>/<topic>`."""
    told = dict(reversed(publication.properties.user))
    return f"$lasting/{CHANGES[told[CHANGE]]}/{told[NUMBER]}/{told[VIEW]}/{publication.topic}"


def _properties(properties: Properties) -> list[bytes]:
    parts = []
    if properties.payload_is_text is not None:
        parts.append(bytes((1, properties.payload_is_text)))
    if properties.content_type is not None:
        parts.append(b"\x03" + text_field(properties.content_type))
    if properties.response_topic is not None:
        parts.append(b"\x08" + text_field(properties.response_topic))
    if properties.correlation_data is not None:
        parts.append(b"\x09" + binary_field(properties.correlation_data))
    parts += [b"\x26" + text_field(name) + text_field(value) for name, value in properties.user]
    return parts


# What a client is told: acknowledgements and goodbyes, in its version, no larger than it takes.

UNSPECIFIED = 0x80

PUBLISH_REASONS = {0, 16, 128, 131, 135, 144, 145, 151, 153}
SUBSCRIBE_REASONS = {0, 1, 2, 128, 131, 135, 143, 145, 151, 158, 161, 162}
UNSUBSCRIBE_REASONS = {0, 17, 128, 131, 135, 143, 145}

PINGRESP = b"\xd0\x00"


class Teller:
    """How to talk to one client."""

    __slots__ = ("packet_max", "problems", "version")

    def __init__(self, version: int, packet_max: int, problems: bool) -> None:
        self.version = version
        self.packet_max = packet_max
        self.problems = problems
        """Whether it wants reasons in words (request problem information)."""

    def accepted(self, number: int, qos: int, reason: int) -> bytes:
        """PUBACK or PUBREC. To 3.1.1 a refusal cannot be told: it gets what ends the matter (section 3.3.5.2 there)."""
        first = 0x40 if qos == 1 else 0x50
        if reason == 0 or self.version < 5:
            return bytes((first, 2, number >> 8, number & 0xFF))
        code = reason if reason in PUBLISH_REASONS else UNSPECIFIED
        text = shortened(in_words(reason)) if code >= UNSPECIFIED and self.problems else None
        if qos == 1:
            said = mqtt5.PubAckPacket(number, reason_code=mqtt5.PubAckReasonCode(code), reason_str=text).write()
        else:
            said = mqtt5.PubRecPacket(number, reason_code=mqtt5.PubRecReasonCode(code), reason_str=text).write()
        return said if len(said) <= self.packet_max else bytes((first, 3, number >> 8, number & 0xFF, code))

    def release(self, number: int, *, known: bool = True) -> bytes:
        return self._step(0x62, number, known)

    def completed(self, number: int, *, known: bool = True) -> bytes:
        return self._step(0x70, number, known)

    def _step(self, first: int, number: int, known: bool) -> bytes:
        if known or self.version < 5:
            return bytes((first, 2, number >> 8, number & 0xFF))
        return bytes((first, 3, number >> 8, number & 0xFF, Reason.PACKET_ID_NOT_FOUND))

    def subscribed(self, number: int, granted: Sequence[Granted]) -> bytes:
        codes = [one.qos if one.reason == Reason.OK else int(one.reason) for one in granted]
        codes = [code if code in SUBSCRIBE_REASONS else UNSPECIFIED for code in codes]
        if self.version < 5:
            return codec3.write(mqtt5.SubAckPacket(number, [mqtt5.SubAckReasonCode(min(c, 128)) for c in codes]))
        reasons = [mqtt5.SubAckReasonCode(code) for code in codes]
        text = "; ".join(one.text for one in granted if one.reason != Reason.OK and one.text)
        told = [one for each in granted for one in each.properties]
        if not self.problems:
            return mqtt5.SubAckPacket(number, reasons).write()
        said = mqtt5.SubAckPacket(number, reasons, reason_str=shortened(text), user_properties=told).write()
        return said if len(said) <= self.packet_max else mqtt5.SubAckPacket(number, reasons).write()

    def check_answer(self, what: str, count: int) -> None:
        """That the client takes an answer to so many topic filters (MQTT-3.1.2-24)."""
        size = 3 + count
        if self.version == 5 and 1 + len(length_field(size)) + size > self.packet_max:
            text = f"{what}: the answer to {count} topic filters would be larger than the {self.packet_max} bytes taken"
            raise PacketError(text, PACKET_TOO_LARGE)

    def unsubscribed(self, number: int, reasons: Sequence[Reason]) -> bytes:
        if self.version < 5:
            return bytes((0xB0, 2, number >> 8, number & 0xFF))
        codes = [int(reason) if int(reason) in UNSUBSCRIBE_REASONS else UNSPECIFIED for reason in reasons]
        return mqtt5.UnsubAckPacket(number, [mqtt5.UnsubAckReasonCode(code) for code in codes]).write()

    def goodbye(self, code: int, text: str) -> bytes:
        """DISCONNECT, or nothing where the version knows none from servers."""
        if self.version < 5:
            return b""
        try:
            reason = mqtt5.DisconnectReasonCode(code)
        except ValueError:
            reason = mqtt5.DisconnectReasonCode.UNSPECIFIED_ERROR
        reference = text if code == USE_ANOTHER_SERVER else None
        said = mqtt5.DisconnectPacket(
            reason_code=reason, reason_str=shortened(text), server_reference=reference
        ).write()
        return said if len(said) <= self.packet_max else bytes((0xE0, 1, int(reason)))


@lru_cache(256)
def teller_of(version: int, packet_max: int, problems: bool) -> Teller:
    """One for all who are talked to alike."""
    return Teller(version, packet_max, problems)


NOBODYS = Teller(0, PACKET_ANY, True)
"""For clients that have not said yet who they are."""


def in_words(reason: int) -> str:
    """A reason without anything particular to say."""
    try:
        return Reason(reason).name.replace("_", " ").lower()
    except ValueError:
        return f"reason {reason}"

"""Deliveries to bytes. One encoding serves all clients that get the same form of a publication."""

from __future__ import annotations

from collections.abc import Callable

from godwit.net.mqtt.fields import binary_field, length_field, text_field
from godwit.protocols.broker.outlet import Delivery
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
        key = (version == 5, delivery.qos, delivery.retain, delivery.identifiers, alias, known)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._form(delivery, version, alias, known)
        if not delivery.qos:
            return form[0]
        packet = b"".join((form[0], delivery.number.to_bytes(2, "big"), form[1]))
        return bytes((packet[0] | 8,)) + packet[1:] if delivery.again else packet

    def _form(self, delivery: Delivery, version: int, alias: int, known: bool) -> Form:
        publication = delivery.publication
        topic = text_field("" if known else publication.topic)
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


def _properties(properties: Properties) -> list[bytes]:
    parts = []
    if properties.payload_is_text:
        parts.append(b"\x01\x01")
    if properties.content_type is not None:
        parts.append(b"\x03" + text_field(properties.content_type))
    if properties.response_topic is not None:
        parts.append(b"\x08" + text_field(properties.response_topic))
    if properties.correlation_data is not None:
        parts.append(b"\x09" + binary_field(properties.correlation_data))
    parts += [b"\x26" + text_field(name) + text_field(value) for name, value in properties.user]
    return parts

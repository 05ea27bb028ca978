"""What a client is told: acknowledgements and goodbyes, in its version, no larger than it takes."""

from __future__ import annotations

from collections.abc import Sequence

import mqtt5

from godwit.net.mqtt import packets3
from godwit.net.mqtt.connecting import USE_ANOTHER_SERVER, shortened
from godwit.protocols.broker.broker import Granted
from godwit.protocols.broker.outlet import Reason

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
            return packets3.write(mqtt5.SubAckPacket(number, [mqtt5.SubAckReasonCode(min(c, 128)) for c in codes]))
        reasons = [mqtt5.SubAckReasonCode(code) for code in codes]
        text = "; ".join(one.text for one in granted if one.reason != Reason.OK and one.text)
        said = mqtt5.SubAckPacket(number, reasons, reason_str=shortened(text) if self.problems else None).write()
        return said if len(said) <= self.packet_max else mqtt5.SubAckPacket(number, reasons).write()

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


def in_words(reason: int) -> str:
    """A reason without anything particular to say."""
    try:
        return Reason(reason).name.replace("_", " ").lower()
    except ValueError:
        return f"reason {reason}"

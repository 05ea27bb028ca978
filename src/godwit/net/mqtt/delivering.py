"""What the broker has a client told: deliveries, and the answers to what it published."""

from __future__ import annotations

from godwit.net.mqtt.answers import Teller
from godwit.net.mqtt.front import Front
from godwit.net.mqtt.output import Output
from godwit.protocols.broker.outlet import Delivery, Reason
from godwit.protocols.broker.sessions import Session

PACKET_ANY = 1 << 30


class Delivering(Output):
    """The part of a connection that the broker calls."""

    __slots__ = (
        "_aliases_out",
        "_aliases_out_max",
        "_incoming",
        "_reading",
        "_session",
        "_teller",
        "_unknown",
        "packet_max",
        "version",
    )

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self.version = 0
        self.packet_max = PACKET_ANY
        """The largest packet that the client takes."""
        self._session: Session | None = None
        self._teller = Teller(0, PACKET_ANY, True)
        self._reading = True
        self._incoming: set[int] = set()
        """Packet ids of publications not yet acknowledged."""
        self._unknown: set[int] = set()
        """Packet ids that it released and nobody knew."""
        self._aliases_out: dict[str, int] | None = None
        self._aliases_out_max = 0

    def deliver(self, delivery: Delivery) -> None:
        if self.ended:
            return
        counts = self.front.counts
        if not delivery.qos and self.held_bytes > self.front.options.output_bytes_max:
            counts.drop("client does not read")
            return
        alias, known = self._alias(delivery.publication.topic) if self._aliases_out_max else (0, False)
        packet = self.front.forms.packet(delivery, self.version, alias, known)
        if len(packet) > self.packet_max:
            counts.drop("larger than the client takes")
            if delivery.qos:
                self.front.later(self._skip, delivery.number)
            return
        if alias and not known:
            assert self._aliases_out is not None
            self._aliases_out[delivery.publication.topic] = alias
        counts.publishes_out += 1
        self.send(packet)

    def _alias(self, topic: str) -> tuple[int, bool]:
        """The alias to send with this topic, 0 for none, and whether the client knows it."""
        known = self._aliases_out
        if known is None:
            known = self._aliases_out = {}
        alias = known.get(topic)
        if alias is not None:
            return alias, True
        return (len(known) + 1, False) if len(known) < self._aliases_out_max else (0, False)

    def _skip(self, number: int) -> None:
        """What is too large for the client counts as delivered (MQTT-3.1.2-25)."""
        if self._session is not None:
            self.front.broker.acknowledged(self._session, number)

    def release(self, number: int) -> None:
        self.send(self._teller.release(number))

    def accepted(self, number: int, qos: int, reason: Reason) -> None:
        # Version 5 counts a publication at QoS 2 until PUBCOMP (section 4.9). A client of 3.1.1 that is not read for it
        # could not even say PUBREL.
        if qos == 1 or self.version != 5 or reason >= Reason.UNSPECIFIED:
            self._acknowledged(number)
        self.send(self._teller.accepted(number, qos, int(reason)))

    def completed(self, number: int) -> None:
        self._acknowledged(number)
        known = number not in self._unknown
        self._unknown.discard(number)
        self.send(self._teller.completed(number, known=known))

    def _acknowledged(self, number: int) -> None:
        self._incoming.discard(number)
        if not self._reading and len(self._incoming) <= self.front.options.inflight_max // 2:
            self.go_on_reading()

    def stop_reading(self) -> None:
        if self._reading and self.transport is not None and not self.transport.is_closing():
            self._reading = False
            self.transport.pause_reading()

    def go_on_reading(self) -> None:
        if not self._reading and self.transport is not None and not self.transport.is_closing():
            self._reading = True
            self.transport.resume_reading()

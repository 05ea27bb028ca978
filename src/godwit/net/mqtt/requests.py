"""What a client that is in may ask for: publish, acknowledge, subscribe, unsubscribe."""

from __future__ import annotations

from functools import partial

import mqtt5

from godwit.net.mqtt import packets3, packets5
from godwit.net.mqtt.answers import PINGRESP
from godwit.net.mqtt.connecting import properties_of
from godwit.net.mqtt.delivering import Delivering
from godwit.net.mqtt.fields import PROTOCOL_ERROR, PacketError
from godwit.net.mqtt.front import Front
from godwit.net.mqtt.packets import Kind, Packet, Subscribe, Unsubscribe
from godwit.net.mqtt.packets3 import checked_publish_flags
from godwit.net.mqtt.subscribing import conditions_of, subscription_of
from godwit.protocols.broker.broker import Granted
from godwit.protocols.broker.outlet import Reason, RefusedError, Subscription
from godwit.protocols.broker.publication import PLAIN as NO_PROPERTIES
from godwit.protocols.broker.publication import Publication

RECEIVE_MAX_EXCEEDED = 0x93
TOPIC_ALIAS_INVALID = 0x94


class Requests(Delivering):
    """The part of a connection that calls the broker, once for all publications that came together."""

    __slots__ = ("_aliases_in", "_client", "_offered")

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self._client = ""
        self._offered: list[tuple[Publication, int]] = []
        self._aliases_in: dict[int, str] | None = None

    def _publish(self, data: bytes, position: int, body: int, stop: int) -> None:
        first = data[position]
        qos = checked_publish_flags(first)
        name_end = body + 2 + (data[body] << 8 | data[body + 1]) if stop > body + 1 else stop + 1
        payload = name_end + (2 if qos else 0)
        plain = payload <= stop and (self.version != 5 or (payload < stop and data[payload] == 0))
        if not plain or name_end == body + 2:
            self._publish_rich(data[position:stop])
            return
        number = data[name_end] << 8 | data[name_end + 1] if qos else 0
        if qos and not number:
            raise PacketError("PUBLISH: the packet identifier is 0", PROTOCOL_ERROR)
        topic = self.front.route(data[body + 2 : name_end], "PUBLISH").topic
        self._add(topic, data[payload + (self.version == 5) : stop], qos, first, number)

    def _publish_rich(self, data: bytes) -> None:
        """With properties, or not well-formed."""
        packet = packets5.read(data) if self.version == 5 else packets3.read(data)
        assert isinstance(packet, mqtt5.PublishPacket)
        self._add(self._topic(packet), packet.payload, int(packet.qos), data[0], packet.packet_id or 0, packet)

    def _topic(self, packet: mqtt5.PublishPacket) -> str:
        alias = packet.topic_alias
        if alias is None:
            return packet.topic
        if alias > self.front.options.topic_alias_max:
            text = f"PUBLISH: topic alias {alias}, at most {self.front.options.topic_alias_max} was announced"
            raise PacketError(text, TOPIC_ALIAS_INVALID)
        known = self._aliases_in
        if known is None:
            known = self._aliases_in = {}
        if packet.topic:
            known[alias] = packet.topic
        elif alias not in known:
            raise PacketError(
                f"PUBLISH: topic alias {alias} without a topic, and none was given before", PROTOCOL_ERROR
            )
        return known[alias]

    def _add(
        self, topic: str, payload: bytes, qos: int, first: int, number: int, rich: mqtt5.PublishPacket | None = None
    ) -> None:
        """To what is offered to the broker when all that was read is looked through."""
        assert self._session is not None
        self.front.counts.publishes_in += 1
        now, interval_s = self.front.broker.clock(), rich.message_expiry_interval if rich is not None else None
        publication = Publication(
            self._client,
            self._session.next_sequence(),
            topic,
            payload,
            qos,
            bool(first & 1),
            now,
            None if interval_s is None else now + interval_s,
            NO_PROPERTIES if rich is None else properties_of(rich),
        )
        if qos:
            self._expect(number)
        self._offered.append((publication, number))

    def _expect(self, number: int) -> None:
        """An acknowledgement is due. A client of 5 was told how many may be; one of 3.1.1 is not read meanwhile."""
        self._incoming.add(number)
        if len(self._incoming) > self.front.options.inflight_max:
            if self.version == 5:
                text = f"more than {self.front.options.inflight_max} publications unacknowledged"
                raise PacketError(text, RECEIVE_MAX_EXCEEDED)
            self.stop_reading()

    def _offer(self) -> None:
        if self._offered and self._session is not None:
            offered, self._offered = self._offered, []
            self.front.broker.publish(self._session, offered)

    def _acknowledge(self, kind: int, number: int, code: int) -> None:
        """PUBACK, PUBREC, PUBREL or PUBCOMP."""
        if not number:
            raise PacketError(f"{Kind(kind).name}: the packet identifier is 0", PROTOCOL_ERROR)
        broker, session = self.front.broker, self._session
        assert session is not None
        if kind == Kind.PUBREL:
            self._offer()
            if number not in session.incoming:
                self._unknown.add(number)
            broker.released(session, number)
        elif kind == Kind.PUBREC and code < Reason.UNSPECIFIED:
            if not broker.received(session, number):
                self.send(self._teller.release(number, known=False))
        else:
            broker.acknowledged(session, number)

    def _other(self, packet: Packet) -> None:
        match packet:
            case mqtt5.PubAckPacket():
                self._acknowledge(Kind.PUBACK, packet.packet_id, int(packet.reason_code))
            case mqtt5.PubRecPacket():
                self._acknowledge(Kind.PUBREC, packet.packet_id, int(packet.reason_code))
            case mqtt5.PubRelPacket():
                self._acknowledge(Kind.PUBREL, packet.packet_id, int(packet.reason_code))
            case mqtt5.PubCompPacket():
                self._acknowledge(Kind.PUBCOMP, packet.packet_id, int(packet.reason_code))
            case Subscribe():
                self._subscribe(packet)
            case Unsubscribe():
                self._offer()
                assert self._session is not None
                reasons = self.front.broker.unsubscribe(self._session, packet.patterns)
                self._once_safe(self._teller.unsubscribed(packet.packet_id, reasons))
            case mqtt5.PingReqPacket():
                self.send(PINGRESP)

    def _subscribe(self, packet: Subscribe) -> None:
        assert self._session is not None
        self._offer()
        answers: list[Granted | None] = []
        wanted: list[Subscription] = []
        conditions = conditions_of(packet)
        for wish in packet.wishes:
            try:
                wanted.append(subscription_of(wish, conditions, packet.subscription_id))
                answers.append(None)
            except RefusedError as error:
                answers.append(Granted(error.reason, 0, error.text))
        place = len(self._pieces)
        granted = iter(self.front.broker.subscribe(self._session, wanted) if wanted else ())
        said = self._teller.subscribed(packet.packet_id, [answer or next(granted) for answer in answers])
        if self._session.durable:
            self._once_safe(said)
        elif not self.ended:
            # Retained publications may have come already; a client likes to have the answer before them.
            self.send(said)
            self._pieces.insert(place, self._pieces.pop())

    def _once_safe(self, said: bytes) -> None:
        """Say it when the disk has what it says, where the session is one that a disk has."""
        assert self._session is not None
        if self._session.durable:
            self.front.broker.store.settled(partial(self._say, said))
        else:
            self._say(said)

    def _say(self, said: bytes) -> None:
        if not self.ended:
            self.send(said)

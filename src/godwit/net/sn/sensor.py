"""One client of MQTT-SN: its state, the names of its topics, and what the broker has it told.

    ENTERING   whoever knows the users is asked, and the broker prepares its session
    ACTIVE     everything
    ASLEEP     what comes waits for it, in its session or, at QoS 0, here
    AWAKE      it has asked for what waits; then it sleeps on
    GONE

One publication is under way to it at a time, and is said again until it is acknowledged (the standard's 6.13).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from godwit.net.sn.codec import (
    Ack,
    Code,
    Connect,
    Disconnect,
    Flags,
    Kind,
    Packet,
    Ping,
    Publish,
    Register,
    Subscribe,
    TopicKind,
    acknowledged,
    published,
    registered,
    subscribed,
    written,
)
from godwit.protocols.broker.api import Delivery, Opening, Reason, Subscription
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.state import Session
from godwit.protocols.broker.topics import problem_of_name

if TYPE_CHECKING:
    from asyncio import TimerHandle

WAITING_MAX = 64
"""Deliveries at QoS 0 that wait for a client which sleeps; beyond it the oldest goes."""
TOPICS_MAX = 1_000
WILDCARDS = frozenset("#+")


class State(StrEnum):
    ENTERING = "entering"
    ACTIVE = "active"
    ASLEEP = "asleep"
    AWAKE = "awake"
    GONE = "gone"


class Topics:
    """The identifiers of one client, and those that all clients know beforehand."""

    def __init__(self, predefined: Mapping[int, str]) -> None:
        self.predefined = predefined
        self.names: dict[int, str] = {}
        self.numbers: dict[str, int] = {}

    def add(self, topic: str) -> int:
        """0 where there is no room."""
        if topic not in self.numbers:
            if len(self.numbers) >= TOPICS_MAX:
                return 0
            number = len(self.numbers) + 1
            self.names[number], self.numbers[topic] = topic, number
        return self.numbers[topic]

    def name(self, kind: TopicKind, raw: bytes) -> str:
        """Empty where it is not known."""
        if kind is TopicKind.SHORT:
            return raw.decode("utf-8", "replace").rstrip("\0")
        number = int.from_bytes(raw)
        return (self.predefined if kind is TopicKind.PREDEFINED else self.names).get(number, "")

    def known(self, topic: str) -> tuple[TopicKind, bytes] | None:
        """How to say it to the client, if it knows it."""
        if len(topic.encode()) == 2:
            return TopicKind.SHORT, topic.encode()
        for number, name in self.predefined.items():
            if name == topic:
                return TopicKind.PREDEFINED, number.to_bytes(2)
        number = self.numbers.get(topic, 0)
        return (TopicKind.NORMAL, number.to_bytes(2)) if number else None


class Sensor:
    """An `Outlet`. `send` puts a datagram on its way; `on_gone` is called once, when nothing more is to come."""

    def __init__(
        self,
        broker: Broker,
        send: Callable[[bytes], None],
        on_gone: Callable[[Sensor], None],
        predefined: Mapping[int, str],
        retry_s: float,
        tries: int,
    ) -> None:
        self.broker = broker
        self.send = send
        self.on_gone = on_gone
        self.topics = Topics(predefined)
        self.retry_s, self.tries = retry_s, tries
        self.state = State.ENTERING
        self.client = ""
        self.session: Session | None = None
        self.duration_s = 0
        self._topic_ids: dict[int, int] = {}
        """By packet identifier: PUBACK names the topic, too."""
        self._waiting: deque[Delivery] = deque()
        self._under_way: Delivery | None = None
        self._number = 0
        self._due = ""
        """What must be acknowledged before anything else is said: REGISTER or PUBLISH."""
        self._again: TimerHandle | None = None
        self._patience: TimerHandle | None = None

    # What the client says

    def enter(self, opening: Opening, asked: Connect) -> None:
        self.client = opening.client
        self.duration_s = asked.duration_s
        self.broker.open(opening, self)

    def take(self, packet: Packet) -> None:
        if self.session is None or self.state is State.GONE:
            return
        self._be_patient(self.duration_s)
        match packet:
            case Register():
                topic_id = 0 if problem_of_name(packet.topic) else self.topics.add(packet.topic)
                code = Code.ACCEPTED if topic_id else Code.INVALID_TOPIC
                self.send(acknowledged(Kind.REGACK, topic_id, packet.number, code))
            case Publish():
                self._publish(self.session, packet)
            case Subscribe():
                self._subscribe(self.session, packet)
            case Ack():
                self._acknowledged(packet)
            case Ping():
                self._ping(packet)
            case Disconnect():
                self._disconnect(packet)

    def _publish(self, session: Session, packet: Publish) -> None:
        topic, qos = self.topics.name(packet.flags.topic, packet.topic_id), packet.flags.qos
        topic_id = int.from_bytes(packet.topic_id)
        if not topic or problem_of_name(topic):
            self.send(acknowledged(Kind.PUBACK, topic_id, packet.number, Code.INVALID_TOPIC))
        elif qos not in (0, 1):
            self.send(acknowledged(Kind.PUBACK, topic_id, packet.number, Code.NOT_SUPPORTED))
        else:
            made = Publication(
                session.client,
                session.next_sequence(),
                topic,
                packet.payload,
                qos,
                packet.flags.retain,
                self.broker.clock(),
            )
            if qos:
                self._topic_ids[packet.number] = topic_id
            self.broker.publish(session, [(made, packet.number if qos else 0)])

    def _subscribe(self, session: Session, packet: Subscribe) -> None:
        kind = packet.flags.topic
        pattern = packet.topic.decode("utf-8", "replace") if kind is TopicKind.NORMAL else ""
        pattern = pattern or self.topics.name(kind, packet.topic)
        if not packet.on:
            self.broker.unsubscribe(session, [pattern])
            self.send(written(Kind.UNSUBACK, packet.number.to_bytes(2)))
            return
        wanted = Subscription(pattern, pattern, qos=min(max(packet.flags.qos, 0), 1))
        (granted,) = self.broker.subscribe(session, (wanted,)) if pattern else (None,)
        if granted is None or granted.reason >= Reason.UNSPECIFIED:
            self.send(subscribed(0, 0, packet.number, Code.INVALID_TOPIC))
        else:
            self.broker.in_place(session, (pattern,), partial(self._subscribed, session, pattern, packet))

    def _subscribed(self, session: Session, pattern: str, packet: Subscribe, in_place: bool) -> None:
        qos = min(max(packet.flags.qos, 0), 1)
        if not in_place and self.broker.withdraw_unplaced(session, (pattern,)):
            answer = subscribed(0, 0, packet.number, Code.CONGESTION)
        elif packet.flags.topic is TopicKind.NORMAL and not WILDCARDS & set(pattern):
            answer = subscribed(qos, self.topics.add(pattern), packet.number, Code.ACCEPTED)
        else:
            answer = subscribed(qos, 0, packet.number, Code.ACCEPTED)
        self.broker.store.settled(partial(self.send, answer))

    def _acknowledged(self, ack: Ack) -> None:
        delivery = self._under_way
        if delivery is None or ack.number != self._number or ack.kind.name != self._due:
            return
        self._stop_repeating()
        if ack.kind is Kind.REGACK and ack.code == Code.ACCEPTED:
            self._say_publication(delivery)
            return
        self._done(delivery)

    def _ping(self, ping: Ping) -> None:
        if self.state is State.ASLEEP and ping.client:
            self.state = State.AWAKE
            self._go_on()
        elif self.state is State.ACTIVE:
            self.send(written(Kind.PINGRESP))

    def _disconnect(self, packet: Disconnect) -> None:
        self.send(written(Kind.DISCONNECT))
        if not packet.sleep_s:  # some clients write a duration of 0 where they mean none
            self.leave(will=False)
        else:
            self.state = State.ASLEEP
            self._be_patient(packet.sleep_s)
            self.duration_s = packet.sleep_s

    def _be_patient(self, for_s: float) -> None:
        """Half as long again as it said it would be silent, and it is lost."""
        if self._patience is not None:
            self._patience.cancel()
        if for_s:
            self._patience = asyncio.get_running_loop().call_later(1.5 * for_s, self._lose)

    def _lose(self) -> None:
        self.leave(will=True)

    def leave(self, *, will: bool) -> None:
        """Its session stays as long as its profile says."""
        if self.state is State.GONE:
            return
        self.state = State.GONE
        self._stop_repeating()
        if self._patience is not None:
            self._patience.cancel()
        session, self.session = self.session, None
        if session is not None:
            self.broker.close(session, self, will=will)
        self.on_gone(self)

    # What the broker says

    def opened(self, session: Session, present: bool) -> None:
        if self.state is State.GONE:
            self.broker.close(session, self, will=False)
            return
        self.session, self.state = session, State.ACTIVE
        self._be_patient(self.duration_s)
        self.send(written(Kind.CONNACK, bytes((Code.ACCEPTED,))))

    def refused(self, reason: Reason, text: str) -> None:
        code = Code.CONGESTION if reason in (Reason.SERVER_BUSY, Reason.QUOTA_EXCEEDED) else Code.NOT_SUPPORTED
        self.send(written(Kind.CONNACK, bytes((code,))))
        self.leave(will=False)

    def takes_more(self) -> bool:
        return self.state in (State.ACTIVE, State.AWAKE) and self._under_way is None and not self._waiting

    def deliver(self, delivery: Delivery) -> None:
        if delivery.number == 0 and len(self._waiting) >= WAITING_MAX:
            oldest = next((one for one in self._waiting if one.number == 0), None)
            if oldest is None:
                return
            self._waiting.remove(oldest)
        self._waiting.append(delivery)
        asyncio.get_running_loop().call_soon(self._go_on)

    def release(self, number: int) -> None:
        """Nothing goes out at QoS 2."""

    def accepted(self, number: int, qos: int, reason: Reason) -> None:
        code = Code.ACCEPTED if reason < Reason.UNSPECIFIED else Code.NOT_SUPPORTED
        self.send(acknowledged(Kind.PUBACK, self._topic_ids.pop(number, 0), number, code))

    def completed(self, number: int) -> None:
        """Nothing comes in at QoS 2."""

    def closed(self, reason: Reason, text: str) -> None:
        self.send(written(Kind.DISCONNECT))
        self.session = None
        self.leave(will=False)

    # One after the other

    def _go_on(self) -> None:
        """Say the next that waits. Who is awake sleeps again when nothing is left."""
        if self.state not in (State.ACTIVE, State.AWAKE) or self._under_way is not None or self.session is None:
            return
        if not self._waiting:
            self.broker.go_on(self.session, self)
        if self._waiting:
            delivery = self._under_way = self._waiting.popleft()
            self._number = self._number % 0xFFFF + 1
            self._say(delivery)
        elif self.state is State.AWAKE:
            self.state = State.ASLEEP
            self.send(written(Kind.PINGRESP))

    def _say(self, delivery: Delivery) -> None:
        """Of a topic that it does not know it is told the identifier first."""
        topic = delivery.publication.topic
        if self.topics.known(topic) is not None:
            self._say_publication(delivery)
        elif topic_id := self.topics.add(topic):
            self._due = Kind.REGACK.name
            self._repeat(lambda again: registered(topic_id, self._number, topic), self.tries)
        else:
            self._done(delivery)

    def _say_publication(self, delivery: Delivery) -> None:
        if delivery.number:
            self._due = Kind.PUBACK.name
            self._repeat(partial(self._publication, delivery), self.tries)
        else:
            self.send(self._publication(delivery, again=False))
            self._done(delivery)

    def _publication(self, delivery: Delivery, again: bool) -> bytes:
        known = self.topics.known(delivery.publication.topic)
        assert known is not None
        kind, raw = known
        flags = Flags(again=again or delivery.again, qos=min(delivery.qos, 1), retain=delivery.retain, topic=kind)
        return published(flags, raw, self._number if delivery.number else 0, delivery.publication.payload)

    def _done(self, delivery: Delivery) -> None:
        self._under_way, self._due = None, ""
        if delivery.number and self.session is not None:
            self.broker.acknowledged(self.session, delivery.number)
        asyncio.get_running_loop().call_soon(self._go_on)

    def _repeat(self, data: Callable[[bool], bytes], tries: int) -> None:
        """Whoever does not answer to so many is gone; what was under way stays in its session."""
        if not tries:
            self.leave(will=True)
            return
        self.send(data(tries < self.tries))
        self._again = asyncio.get_running_loop().call_later(self.retry_s, self._repeat, data, tries - 1)

    def _stop_repeating(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None

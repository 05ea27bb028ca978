"""Any MQTT broker as an uplink: a client of it on the one side, a session of this broker on the other (docs/sites.md).

At least once, both ways. What leaves stays in the session, on the disk, until the other broker has acknowledged it.
What comes is acknowledged there when it is on the disk here.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from functools import partial
from math import inf
from urllib.parse import urlsplit

import mqtt5

from godwit.filters.filters import FilterSet
from godwit.net.config import BridgeRoute, BridgeTable
from godwit.net.ops.report import BridgeRow
from godwit.net.server import BRIDGE, Parts, Service
from godwit.net.sites.remote import Remote
from godwit.protocols.broker.api import Delivery, Opening, Reason, Subscription
from godwit.protocols.broker.publication import PLAIN, Properties, Publication
from godwit.protocols.broker.session.state import Session
from godwit.protocols.broker.topics import matches, problem_of_name

log = logging.getLogger("godwit.bridge")

VIA = "godwit-bridge"
"""The user property that tells which bridges something has passed, so that it does not come back by another way."""
AGAIN_S, AGAIN_MAX_S = 1.0, 60.0


class Crossing:
    """A connection to the other broker, and the outlet of the session here. It is made anew for each connection."""

    def __init__(self, bridge: MqttBridge, remote: Remote) -> None:
        self.bridge = bridge
        self.remote = remote
        self.session: Session | None = None
        self.is_over = asyncio.Event()
        self._early: list[mqtt5.PublishPacket] = []
        remote.on_packet = self._take
        remote.on_ready = self._go_on
        remote.on_lost = self._lost

    # What the broker here calls.

    def opened(self, session: Session, present: bool) -> None:
        self.session = session
        self.bridge.parts.host.run(partial(self.bridge.subscribe, session))
        self.remote.subscribe([route.topics for route in self.bridge.table.receive])
        early, self._early = self._early, []
        for packet in early:
            self._publish(packet)

    def refused(self, reason: Reason, text: str) -> None:
        log.error("bridge %s has no session here: %s", self.bridge.name, text)
        self.remote.close()

    def takes_more(self) -> bool:
        return self.remote.takes_more

    def deliver(self, delivery: Delivery) -> None:
        publication = delivery.publication
        topic = self.bridge.topic_there(publication.topic, delivery.identifiers)
        if topic is None or self.bridge.has_passed(publication):
            self.bridge.refused += 1
            self._done(delivery.number)
            return
        self.bridge.sent += 1
        properties = [*publication.properties.user, (VIA, self.bridge.here)]
        self.remote.publish(delivery, topic, properties)

    def _done(self, number: int) -> None:
        """Not at once: the broker is in the middle of it."""
        if number:
            asyncio.get_running_loop().call_soon(self._acknowledge, number)

    def _acknowledge(self, number: int) -> None:
        session, parts = self.session, self.bridge.parts

        def acknowledge() -> None:
            if session is not None:
                parts.broker.acknowledged(session, number)

        parts.host.run(acknowledge)

    def release(self, number: int) -> None: ...

    def accepted(self, number: int, qos: int, reason: Reason) -> None:
        self.remote.acknowledge(number)

    def completed(self, number: int) -> None: ...

    def closed(self, reason: Reason, text: str) -> None:
        self.session = None
        self.remote.close()

    # What the other broker says.

    def _take(self, packet: object) -> None:
        match packet:
            case mqtt5.PublishPacket() if self.session is None:
                self._early.append(packet)
            case mqtt5.PublishPacket():
                self._publish(packet)
            case mqtt5.PubAckPacket():
                self._acknowledge(packet.packet_id)
            case mqtt5.SubAckPacket():
                if any(int(code) >= 0x80 for code in packet.reason_codes):
                    log.error("bridge %s: the other broker refuses a subscription", self.bridge.name)
        self.bridge.parts.front.flush()

    def _publish(self, packet: mqtt5.PublishPacket) -> None:
        assert self.session is not None
        number = packet.packet_id or 0
        made = self.bridge.publication_of(packet, self.session)
        if made is None:
            self.bridge.refused += 1
            if number:
                self.remote.acknowledge(number)
            return
        self.bridge.received += 1
        self.bridge.parts.host.run(partial(self.bridge.parts.broker.publish, self.session, [(made, number)]))

    def _go_on(self) -> None:
        if self.session is not None:
            self.bridge.parts.host.run(partial(self.bridge.parts.broker.go_on, self.session, self))

    def _lost(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            self.bridge.parts.host.run(partial(self.bridge.parts.broker.close, session, self, will=False))
        self.is_over.set()


class MqttBridge:
    """One of them, for as long as the broker runs."""

    def __init__(self, parts: Parts, name: str, table: BridgeTable) -> None:
        self.parts = parts
        self.name = name
        self.table = table
        self.here = parts.config.sites.site or parts.identity.name
        self.sent = self.received = self.refused = 0
        self.crossing: Crossing | None = None
        self._told = ""
        self._conditions = [_parsed(route.condition) for route in table.receive]

    @property
    def client(self) -> str:
        return f"{BRIDGE}{self.name}"

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                await self._cross()
                failures = 0
            except (OSError, ssl.SSLError, ConnectionError, ValueError) as error:
                failures += 1
                self._tell(str(error) or type(error).__name__)
            await asyncio.sleep(min(AGAIN_S * 2.0 ** min(failures, 16), AGAIN_MAX_S))

    async def _cross(self) -> None:
        url, table = urlsplit(self.table.connect), self.table
        context = None
        if url.scheme == "mqtts":
            context = ssl.create_default_context(cafile=str(table.authority) if table.authority else None)
        port = url.port or (8883 if context else 1883)
        password = table.password_file.read_bytes().strip() if table.password_file else None
        client = table.client_id or f"godwit-{self.parts.identity.name}-{self.name}"
        remote = await Remote.dial(url.hostname or "", port, context, table.version, table.keep_alive_s)
        crossing = Crossing(self, remote)
        try:
            await remote.connect(client, table.user or None, password, table.inflight_max)
            self.crossing, self._told = crossing, ""
            log.info("bridge %s is up: %s", self.name, self.table.connect)
            opening = Opening(client=self.client, clean=False, expiry_s=inf, inflight_max=table.inflight_max)
            self.parts.host.run(partial(self.parts.broker.open, opening, crossing))
            self.parts.front.flush()
            await crossing.is_over.wait()
            log.info("bridge %s is down", self.name)
        finally:
            self.crossing = None
            remote.close()

    def subscribe(self, session: Session) -> None:
        """To what crosses, and to nothing else any more."""
        wanted = {str(number): route for number, route in enumerate(self.table.send, 1)}
        self.parts.broker.unsubscribe(session, [key for key in session.subscriptions if key not in wanted])
        subscriptions = [
            Subscription(
                key,
                route.topics,
                route.condition,
                qos=1,
                no_local=True,
                retain_as_published=True,
                identifier=int(key),
            )
            for key, route in wanted.items()
        ]
        for granted in self.parts.broker.subscribe(session, subscriptions):
            if granted.reason is not Reason.OK:
                log.error("bridge %s: %s", self.name, granted.text)

    def topic_there(self, topic: str, identifiers: tuple[int, ...]) -> str | None:
        """By the first route that it came by."""
        for number in sorted(identifiers):
            if number <= len(self.table.send):
                return mapped(topic, self.table.send[number - 1])
        return None

    def has_passed(self, publication: Publication) -> bool:
        """Whether it has come over a bridge of this site."""
        return (VIA, self.here) in publication.properties.user

    def publication_of(self, packet: mqtt5.PublishPacket, session: Session) -> Publication | None:
        """As it enters here; None where it does not: no route is for it, it came from here, or its topic is none."""
        user = tuple((str(name), str(value)) for name, value in packet.user_properties or ())
        if (VIA, self.here) in user:
            return None
        broker, expiry_s = self.parts.broker, packet.message_expiry_interval
        for route, condition in zip(self.table.receive, self._conditions, strict=True):
            topic = mapped(packet.topic, route)
            if not matches(route.topics, packet.topic) or topic is None or problem_of_name(topic):
                continue
            properties = Properties(
                user,
                packet.content_type,
                packet.response_topic,
                packet.correlation_data,
                bool(packet.payload_format_indicator),
            )
            made = Publication(
                session.client,
                session.next_sequence(),
                topic,
                packet.payload or b"",
                1 if packet.packet_id else 0,
                packet.retain,
                broker.clock(),
                None if expiry_s is None else broker.steady() + expiry_s,
                PLAIN if properties == PLAIN else properties,
            )
            if condition is None or condition.matches(made.values()):
                return made
        return None

    def row(self) -> BridgeRow:
        session = self.parts.broker.sessions.get(self.client)
        waiting = len(session.queue.waiting) + len(session.queue.flying) if session is not None else 0
        return BridgeRow(
            name=self.name,
            address=self.table.connect,
            up=self.crossing is not None,
            waiting=waiting,
            events_out=self.sent,
            events_in=self.received,
            refused=self.refused,
        )

    def _tell(self, reason: str) -> None:
        if reason != self._told:
            self._told = reason
            log.warning("bridge %s: %s: %s", self.name, self.table.connect, reason)


def mapped(topic: str, route: BridgeRoute) -> str | None:
    """The topic where it goes to; None where the route takes away more than there is."""
    if not topic.startswith(route.strip):
        return None
    return f"{route.prefix}{topic[len(route.strip) :]}" or None


def _parsed(condition: str) -> FilterSet | None:
    if not condition:
        return None
    from godwit.filters.text import parse

    return parse(condition)


class BridgeService(Service):
    """All bridges of a broker."""

    def __init__(self, parts: Parts) -> None:
        self.made = [MqttBridge(parts, name, table) for name, table in parts.config.sites.bridges.items()]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(one.run(), name=f"bridge {one.name}") for one in self.made]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def bridges(self) -> list[BridgeRow]:
        return [one.row() for one in self.made]

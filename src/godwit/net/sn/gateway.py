"""The socket that sensors speak to: one datagram after the other, each to the client at that address."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec

from godwit.net.access import Admitted, Credentials, session_name
from godwit.net.mqtt.options import Authenticate
from godwit.net.sn.codec import Code, Connect, Kind, Packet, Publish, Search, SnError, TopicKind, read, written
from godwit.net.sn.sensor import Sensor, Topics
from godwit.protocols.broker.api import Opening, RefusedError
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.topics import problem_of_name

log = logging.getLogger("godwit.sn")

Where = tuple[Any, ...]
"""An address as the loop gives it."""


class Profile(msgspec.Struct, frozen=True):
    """How long a session of such clients outlives them."""

    prefix: str
    expiry_s: float


class Counts(msgspec.Struct):
    connections: int = 0
    datagrams: int = 0
    refused: int = 0
    """Datagrams that are no packets, or of nobody who is connected."""
    unconnected: int = 0
    """Publications at QoS -1."""


class Gateway(asyncio.DatagramProtocol):
    """Give it to a datagram endpoint. `topics` are those that all clients know by number; a client whose identifier
    begins like that of a profile has its session kept so long, the others as long as the last of them says."""

    def __init__(
        self,
        broker: Broker,
        authenticate: Authenticate,
        topics: Mapping[int, str],
        profiles: tuple[Profile, ...] = (Profile("", 86_400.0),),
        retry_s: float = 10.0,
        tries: int = 4,
        clients_max: int = 10_000,
        gateway_id: int = 1,
    ) -> None:
        self.broker = broker
        self.authenticate = authenticate
        self.topics = topics
        self.profiles = profiles
        self.retry_s, self.tries, self.clients_max, self.gateway_id = retry_s, tries, clients_max, gateway_id
        self.counts = Counts()
        self.sensors: dict[Where, Sensor] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sequence = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def close(self) -> None:
        """Say goodbye to all clients; their sessions stay."""
        for sensor in list(self.sensors.values()):
            sensor.send(written(Kind.DISCONNECT))
            sensor.leave(will=False)
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: Where) -> None:
        self.counts.datagrams += 1
        try:
            self._take(read(data), addr)
        except SnError as error:
            self.counts.refused += 1
            log.debug("from %s: %s", addr, error)

    def _take(self, packet: Packet, where: Where) -> None:
        match packet:
            case Search():
                self._say(where, written(Kind.GWINFO, bytes((self.gateway_id,))))
            case Connect():
                self._run(self._connect(packet, where))
            case Publish() if packet.flags.qos == -1:
                self._run(self._publish(packet, where))
            case _ if where in self.sensors:
                self.sensors[where].take(packet)
            case _:
                # It believes to be connected, and is not: it connects again when it hears this.
                self.counts.refused += 1
                self._say(where, written(Kind.DISCONNECT))

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _admitted(self, client: str, where: Where) -> Admitted:
        answer = self.authenticate(Credentials(client=client, peer=str(where[0])))
        return await answer if inspect.isawaitable(answer) else answer

    async def _connect(self, packet: Connect, where: Where) -> None:
        if packet.flags.will or (where not in self.sensors and len(self.sensors) >= self.clients_max):
            code = Code.NOT_SUPPORTED if packet.flags.will else Code.CONGESTION
            self._say(where, written(Kind.CONNACK, bytes((code,))))
            return
        try:
            admitted = await self._admitted(packet.client, where)
        except RefusedError as error:
            log.warning("client %r at %s is not let in: %s", packet.client, where[0], error.text)
            self._say(where, written(Kind.CONNACK, bytes((Code.NOT_SUPPORTED,))))
            return
        if where in self.sensors:
            self.sensors[where].leave(will=False)
        sensor = self._sensor(where)
        self.sensors[where] = sensor
        self.counts.connections += 1
        opening = Opening(
            client=session_name(admitted.user, packet.client),
            clean=packet.flags.clean,
            expiry_s=0.0 if packet.flags.clean else self.expiry_s(packet.client),
            inflight_max=1,
            grant=admitted.grant,
            limits=admitted.limits,
        )
        sensor.enter(opening, packet)

    def _sensor(self, where: Where) -> Sensor:
        send: Callable[[bytes], None] = lambda data: self._say(where, data)  # noqa: E731
        return Sensor(self.broker, send, self._gone, self.topics, self.retry_s, self.tries)

    def _gone(self, sensor: Sensor) -> None:
        self.sensors = {where: one for where, one in self.sensors.items() if one is not sensor}

    def expiry_s(self, client: str) -> float:
        return next((one.expiry_s for one in self.profiles if client.startswith(one.prefix)), 0.0)

    async def _publish(self, packet: Publish, where: Where) -> None:
        """By somebody who is not connected: only topics whose names all know, and no answer."""
        topic = Topics(self.topics).name(packet.flags.topic, packet.topic_id)
        if packet.flags.topic is TopicKind.NORMAL or not topic or problem_of_name(topic):
            self.counts.refused += 1
            return
        try:
            admitted = await self._admitted("", where)
        except RefusedError:
            self.counts.refused += 1
            return
        now = self.broker.clock()
        self._sequence = max(self._sequence + 1, int(now * 1e6))
        self.counts.unconnected += 1
        who = session_name(admitted.user, f"sn {where[0]}")
        made = Publication(who, self._sequence, topic, packet.payload, 0, packet.flags.retain, now)
        self.broker.say(made, admitted.grant)

    def _say(self, where: Where, data: bytes) -> None:
        if self._transport is not None:
            self._transport.sendto(data, where)

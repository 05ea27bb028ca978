"""`godwit.connect()`: publish and subscribe by content, from asyncio, over whichever broker can be reached.

    async with godwit.connect("north:1883", "south:1883", client="van-7") as client:
        await client.publish({"kind": "reading", "pm25": 163.5}, topic="air/beijing")
        async for event in await client.subscribe("kind = 'reading' AND pm25 > 150"):
            print(event.attributes)

It speaks MQTT 5. A lost broker is replaced by the next one of the list, and the session follows: what is awaited goes
on as if nothing had happened. An event counts as taken when the loop asks for the next one, or when `ack()` is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import mqtt5
import msgspec

from godwit.client.connection import Wire
from godwit.client.received import Received, Subscription
from godwit.events import EventError, Place, Value, check_attribute, check_place
from godwit.net.address import Address, AddressError
from godwit.protocols.broker.api import TOKEN, UNSURE
from godwit.protocols.broker.publication import ATTRIBUTES

FATAL = (
    mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD,
    mqtt5.ConnAckReasonCode.NOT_AUTHORIZED,
    mqtt5.ConnAckReasonCode.CLIENT_ID_NOT_VALID,
    mqtt5.ConnAckReasonCode.BANNED,
    mqtt5.ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
)
"""Refusals that no other try will change."""

REDIRECTIONS_MAX = 3
"""So often in a row a client goes where it is sent; then it tries its own brokers again."""

ELSEWHERE = (mqtt5.ConnAckReasonCode.USE_ANOTHER_SERVER, mqtt5.ConnAckReasonCode.SERVER_MOVED)

NUMBERS = 65_535
DUPLICATE = 0b1000
"""The bit of the first byte of a PUBLISH that says: this may have come before."""
REFUSED = 128


class ClientError(Exception):
    """What was asked for is refused, or cannot be."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    client: str = ""
    user: str | None = None
    password: str | None = None
    tls: ssl.SSLContext | None = None
    keep_s: float = 3600.0
    """How long brokers keep the session of a client that is away."""
    keep_alive_s: int = 20
    connect_s: float = 5.0
    """How long one broker is given to answer."""
    retry_s: float = 0.1
    retry_max_s: float = 5.0
    inflight_max: int = 1000
    """How many events come, or go, without being acknowledged."""


class _Outgoing(msgspec.Struct):
    """A publication that its broker has not taken yet."""

    packet: bytes
    done: asyncio.Future[None]
    received: bool = False


class Client:
    """Made by `connect`; use it as an async context manager."""

    def __init__(self, brokers: list[Address], options: Options) -> None:
        self.options = options
        self.brokers = brokers
        self.broker: Address | None = None
        """Where it is connected."""
        self._next = 0
        self._redirections = 0
        self._name = ""
        """The broker where we were let in last, as it calls itself."""
        self._token = ""
        """What we were given where we were let in last, to be shown at the next broker."""
        self._wire: Wire | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._failed: ClientError | None = None
        self._away_s = 0.0
        self._life = 0
        self._number = 0
        self._limit = options.inflight_max
        self._outgoing: dict[int, _Outgoing] = {}
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._room = asyncio.Event()
        self._turn = asyncio.Lock()
        """Who came first publishes first, also where there is no room for all."""
        self._subscriptions: dict[int, list[Subscription]] = {}
        self._early: dict[int, list[Received]] = {}
        self._open: set[int] = set()
        self._unreleased: set[int] = set()

    async def __aenter__(self) -> Self:
        self._keeper = asyncio.create_task(self._keep())
        try:
            await self._until_connected()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def publish(
        self,
        attributes: Mapping[str, Value] | None = None,
        *,
        topic: str = "events",
        payload: bytes | str | None = None,
        place: Place | None = None,
        qos: int = 2,
        retain: bool = False,
        expiry_s: int | None = None,
    ) -> None:
        """Returns when a broker has it safely; at QoS 0 when it has left.

        Without a payload the attributes travel as a JSON object, which any MQTT client can read.
        """
        body, properties = _encoded(dict(attributes or {}), payload, place)

        def packet(number: int | None) -> mqtt5.PublishPacket:
            return mqtt5.PublishPacket(
                topic,
                body,
                qos=mqtt5.QoS(qos),
                retain=retain,
                packet_id=number,
                message_expiry_interval=expiry_s,
                user_properties=properties,
            )

        if qos == 0:
            (await self._until_connected()).write(packet(None).write())
            return
        async with self._turn:
            while len(self._outgoing) >= self._limit:
                self._room.clear()
                await self._room.wait()
            number = self._new_number()
            outgoing = self._outgoing[number] = _Outgoing(
                packet(number).write(), asyncio.get_running_loop().create_future()
            )
            if self._wire is not None and self._connected.is_set():
                self._wire.write(outgoing.packet)
        await outgoing.done

    async def subscribe(self, condition: str = "", *, topics: str = "#", qos: int = 2) -> Subscription:
        """Events of these topics whose content meets the condition; `ClientError` where a broker refuses it."""
        subscription = Subscription(condition, topics, qos, self._unsubscribe)
        alike = self._subscriptions.setdefault(subscription.identifier, [])
        alike.append(subscription)
        for event in self._early.pop(subscription.identifier, ()):
            subscription.add(event)
        try:
            while True:
                wire = await self._until_connected()
                with contextlib.suppress(ConnectionError):
                    await self._subscribe(wire, subscription)
                    return subscription
        except BaseException:
            alike.remove(subscription)
            raise

    async def roam(self, broker: str, *, away_s: float = 0.0) -> None:
        """Leave without a word, as a moving device does, be out of reach for a while, and go on at that broker."""
        self._aim(Address.parse(broker))
        self._connected.clear()
        self._away_s = away_s
        if self._wire is not None:
            self._wire.abort()
        await self._until_connected()

    async def close(self) -> None:
        """Say goodbye; the session is kept for `keep_s`."""
        if self._wire is not None and self._connected.is_set():
            self._wire.write(mqtt5.DisconnectPacket().write())
            self._wire.close()
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        self._fail(ClientError("the client is closed"))

    async def _until_connected(self) -> Wire:
        while not self._connected.is_set() and self._failed is None:
            await self._connected.wait()
        if self._failed is not None:
            raise self._failed
        assert self._wire is not None
        return self._wire

    async def _keep(self) -> None:
        try:
            await self._keep_connected()
        except ClientError as error:
            self._fail(error)
        except Exception as error:
            self._fail(ClientError(f"internal error: {error!r}"))
            raise

    async def _keep_connected(self) -> None:
        retry_s = self.options.retry_s
        while True:
            target = self.brokers[self._next % len(self.brokers)]
            try:
                wire = await self._connect(target)
            except (OSError, TimeoutError, ValueError):
                self._next += 1
                if self._next % len(self.brokers) == 0:
                    await asyncio.sleep(retry_s)
                    retry_s = min(retry_s * 2, self.options.retry_max_s)
                continue
            if wire is None:
                continue
            retry_s = self.options.retry_s
            await wire.closed.wait()
            self._lost()
            away_s, self._away_s = self._away_s, 0.0
            await asyncio.sleep(away_s)

    async def _connect(self, target: Address) -> Wire | None:
        """In, and all that was under way repeated; None where the broker names another one."""
        loop, options = asyncio.get_running_loop(), self.options
        acknowledged: asyncio.Future[mqtt5.ConnAckPacket] = loop.create_future()

        def first(packet: mqtt5.Packet) -> None:
            if isinstance(packet, mqtt5.ConnAckPacket) and not acknowledged.done():
                if int(packet.reason_code) < REFUSED:
                    self._welcome(wire, packet)
                acknowledged.set_result(packet)

        async with asyncio.timeout(options.connect_s):
            wire = await Wire.dial(target, options.tls, options.keep_alive_s)
            wire.on_packet = first
            try:
                wire.write(self._hello().write())
                # Without an answer nobody knows whether the broker has let us in.
                shown, self._token = self._token, self._token and UNSURE + self._token.removeprefix(UNSURE)
                answer = await wire.unless_closed(acknowledged)
            except BaseException:
                wire.abort()
                raise
        if int(answer.reason_code) >= REFUSED:
            self._token = shown
        if answer.reason_code in ELSEWHERE and self._redirect(target, answer.server_reference):
            wire.close()
            return None
        if answer.reason_code in FATAL:
            wire.close()
            raise ClientError(f"{target} refuses us: {answer.reason_str or _words(answer.reason_code)}")
        if int(answer.reason_code) >= REFUSED:
            wire.close()
            raise ConnectionRefusedError(answer.reason_str or _words(answer.reason_code))
        self.broker = target
        self._redirections = 0
        await self._resume(wire, known=answer.session_present)
        return wire

    def _redirect(self, target: Address, reference: str | None) -> bool:
        """Try next where this broker sends us; False where that is no address, or it has been too often."""
        words = (reference or "").split()
        if not words or self._redirections >= REDIRECTIONS_MAX:
            return False
        try:
            elsewhere = Address.parse(words[0])
        except AddressError:
            return False
        self._redirections += 1
        self._aim(Address(elsewhere.host, elsewhere.port, elsewhere.tls or target.tls))
        return True

    def _aim(self, target: Address) -> None:
        if target not in self.brokers:
            self.brokers.append(target)
        self._next = self.brokers.index(target)

    def _hello(self) -> mqtt5.ConnectPacket:
        options = self.options
        return mqtt5.ConnectPacket(
            client_id=options.client,
            username=options.user,
            password=None if options.password is None else options.password.encode(),
            clean_start=self._life == 0 and not options.keep_s,
            session_expiry_interval=min(int(options.keep_s), 0xFFFFFFFF),
            keep_alive=options.keep_alive_s,
            receive_max=options.inflight_max,
            user_properties=[
                *([("previous", self._name)] if self._name else []),
                *([(TOKEN, self._token)] if self._token else []),
            ],
        )

    def _welcome(self, wire: Wire, answer: mqtt5.ConnAckPacket) -> None:
        """At once: deliveries may stand right behind this packet."""
        self._wire = wire
        self._limit = min(self.options.inflight_max, answer.receive_max)
        wire.on_packet = self._receive
        self._name = next((value for name, value in answer.user_properties if name == "broker"), "")
        self._token = next((value for name, value in answer.user_properties if name == TOKEN), "")
        if not answer.session_present:
            self._life += 1
            self._open.clear()
            self._unreleased.clear()

    async def _resume(self, wire: Wire, *, known: bool) -> None:
        """Say again what the broker does not know, then all that it may have missed."""
        if not known:
            for alike in list(self._subscriptions.values()):
                for subscription in alike[-1:]:
                    await self._subscribe(wire, subscription)
        for number, outgoing in list(self._outgoing.items()):
            self._repeat(wire, number, outgoing, known=known)
        self._connected.set()

    def _repeat(self, wire: Wire, number: int, outgoing: _Outgoing, *, known: bool) -> None:
        if outgoing.received and known:
            wire.write(mqtt5.PubRelPacket(number).write())
            return
        outgoing.received = False
        first = outgoing.packet[0] | (DUPLICATE if known else 0)
        wire.write(bytes([first]) + outgoing.packet[1:])

    def _lost(self) -> None:
        self._connected.clear()
        self._wire = None
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError("the broker is gone"))
        self._answers.clear()

    def _fail(self, error: ClientError) -> None:
        self._failed = self._failed or error
        for future in (*self._answers.values(), *(outgoing.done for outgoing in self._outgoing.values())):
            if not future.done():
                future.set_exception(error)
                future.exception()
        for alike in self._subscriptions.values():
            for subscription in alike:
                subscription.end()
        self._connected.set()
        self._room.set()

    async def _subscribe(self, wire: Wire, subscription: Subscription) -> None:
        number = self._new_number()
        wanted = mqtt5.TopicFilter(subscription.pattern, max_qos=mqtt5.QoS(subscription.qos))
        packet = mqtt5.SubscribePacket(number, [wanted], subscription_id=subscription.identifier)
        answer = await self._ask(wire, number, packet.write())
        code = answer.reason_codes[0]
        if int(code) >= REFUSED:
            raise ClientError(answer.reason_str or _words(code))

    async def _unsubscribe(self, subscription: Subscription) -> None:
        alike = self._subscriptions.get(subscription.identifier, [])
        if subscription in alike:
            alike.remove(subscription)
        if not alike:
            wire, number = await self._until_connected(), self._new_number()
            await self._ask(wire, number, mqtt5.UnsubscribePacket(number, [subscription.pattern]).write())

    async def _ask(self, wire: Wire, number: int, packet: bytes) -> Any:
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            wire.write(packet)
            return await wire.unless_closed(answer)
        finally:
            self._answers.pop(number, None)

    def _new_number(self) -> int:
        while True:
            self._number = self._number % NUMBERS + 1
            if self._number not in self._outgoing and self._number not in self._answers:
                return self._number

    def _receive(self, packet: mqtt5.Packet) -> None:
        match packet:
            case mqtt5.PublishPacket():
                self._take(packet)
            case mqtt5.PubAckPacket():
                self._taken(packet.packet_id, int(packet.reason_code), packet.reason_str)
            case mqtt5.PubRecPacket():
                self._noted(packet)
            case mqtt5.PubCompPacket():
                self._taken(packet.packet_id, 0, None)
            case mqtt5.PubRelPacket():
                self._unreleased.discard(packet.packet_id)
                self._write(mqtt5.PubCompPacket(packet.packet_id).write())
            case mqtt5.SubAckPacket() | mqtt5.UnsubAckPacket():
                answer = self._answers.get(packet.packet_id)
                if answer is not None and not answer.done():
                    answer.set_result(packet)
            case mqtt5.DisconnectPacket() if self._wire is not None:
                if self.broker is not None:
                    self._redirect(self.broker, packet.server_reference)
                self._wire.close()

    def _write(self, data: bytes) -> None:
        if self._wire is not None:
            self._wire.write(data)

    def _noted(self, packet: mqtt5.PubRecPacket) -> None:
        if int(packet.reason_code) >= REFUSED:
            self._taken(packet.packet_id, int(packet.reason_code), packet.reason_str)
            return
        if packet.packet_id in self._outgoing:
            self._outgoing[packet.packet_id].received = True
        self._write(mqtt5.PubRelPacket(packet.packet_id).write())

    def _taken(self, number: int, reason: int, text: str | None) -> None:
        outgoing = self._outgoing.pop(number, None)
        self._room.set()
        if outgoing is None or outgoing.done.done():
            return
        if reason >= REFUSED:
            outgoing.done.set_exception(ClientError(text or f"refused with reason {reason}"))
        else:
            outgoing.done.set_result(None)

    def _take(self, packet: mqtt5.PublishPacket) -> None:
        number = packet.packet_id
        if number is not None:
            if number in self._unreleased:
                self._write(mqtt5.PubRecPacket(number).write())
                return
            if number in self._open:
                return
            self._open.add(number)
        life = self._life

        def ack() -> None:
            if number is not None and life == self._life:
                self._open.discard(number)
                self._answer(number, int(packet.qos))

        self._hand_out(packet, ack)

    def _hand_out(self, packet: mqtt5.PublishPacket, ack: Callable[[], None]) -> None:
        """To whoever wants it; where nobody does yet it waits: a program that has started anew has yet to say so."""
        wanting = [one for identifier in packet.subscription_ids for one in self._subscriptions.get(identifier, ())]
        event = Received(packet, ack, max(1, len(wanting)))
        for subscription in wanting:
            subscription.add(event)
        if not wanting and packet.subscription_ids:
            self._early.setdefault(packet.subscription_ids[0], []).append(event)
        elif not wanting:
            event.ack()

    def _answer(self, number: int, qos: int) -> None:
        if qos == 1:
            self._write(mqtt5.PubAckPacket(number).write())
        else:
            self._unreleased.add(number)
            self._write(mqtt5.PubRecPacket(number).write())


def connect(
    *brokers: str,
    client: str = "",
    user: str | None = None,
    password: str | None = None,
    tls: ssl.SSLContext | None = None,
    keep_s: float = 3600.0,
    **more: Any,
) -> Client:
    """A client of these brokers, `host:port` each, tried in their order; see `Options` for the rest.

    `client` names it to brokers: give the same name again, from anywhere, and the session is there.
    """
    name = client or f"godwit-{uuid.uuid4().hex[:12]}"
    options = Options(client=name, user=user, password=password, tls=tls, keep_s=keep_s, **more)
    return Client([Address.parse(broker) for broker in brokers or ("127.0.0.1:1883",)], options)


def _words(code: object) -> str:
    return str(code).rpartition(".")[2].lower().replace("_", " ")


def _encoded(
    attributes: dict[str, Value], payload: bytes | str | None, place: Place | None
) -> tuple[bytes, list[tuple[str, str]]]:
    """Payload and user properties; `EventError` where the attributes cannot be."""
    for name, value in attributes.items():
        check_attribute(name, value)
    if place is not None:
        check_place(place)
        attributes |= {"lat": place.lat, "lon": place.lon}
    if payload is None:
        return _object(attributes), []
    body = payload.encode() if isinstance(payload, str) else payload
    return body, [(ATTRIBUTES, _object(attributes).decode())] if attributes else []


def _object(attributes: dict[str, Value]) -> bytes:
    for name, value in attributes.items():
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            raise EventError(f"event: attribute {name!r} is {value}, which JSON cannot say")
    return msgspec.json.encode(attributes)

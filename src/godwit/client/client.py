"""`godwit.connect()`: publish and subscribe by content, over whichever broker can be reached.

    async with godwit.connect("north:1883", "south:1883", client="van-7") as client:
        await client.publish({"kind": "reading", "pm25": 163.5}, topic="air/beijing")
        async for event in await client.subscribe("kind = 'reading' AND pm25 > 150"):
            print(event.attributes)

It speaks MQTT 5. A lost broker is replaced by the next one of the list, and the session follows: what is awaited goes
on as if nothing had happened. While no broker can be reached that is told, by the logger `godwit.client` and to
`on_trouble`. An event counts as taken when the loop asks for the next one, when `ack()` is called, or when the `with`
block is left without an exception. One that was not taken comes again to the next program of this name.

Programs without asyncio write `with` instead of `async with`: `godwit.client.thread`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import ssl
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import mqtt5
import msgspec

from godwit.client.connection import Wire
from godwit.client.errors import BusyError, ClientError, RefusedError, TakenOverError, UnreachableError
from godwit.client.options import KEEP_S, KEEP_UNNAMED_S, Options, Trouble
from godwit.client.payload import Content, check_qos, check_topic, check_topics, encoded, since_text
from godwit.client.query import Query
from godwit.client.received import Received, Subscription
from godwit.client.search import Search
from godwit.events import Place
from godwit.net.address import Address, AddressError
from godwit.protocols.broker.api import HANDOFF_WAIT, TOKEN, UNSURE

if TYPE_CHECKING:
    from godwit.client.thread import SyncClient

log = logging.getLogger("godwit.client")

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

HOPELESS = (
    mqtt5.DisconnectReasonCode.MALFORMED_PACKET,
    mqtt5.DisconnectReasonCode.PROTOCOL_ERROR,
    mqtt5.DisconnectReasonCode.NOT_AUTHORIZED,
    mqtt5.DisconnectReasonCode.TOPIC_FILTER_INVALID,
    mqtt5.DisconnectReasonCode.TOPIC_NAME_INVALID,
    mqtt5.DisconnectReasonCode.PACKET_TOO_LARGE,
)
"""Why a broker may hang up that would be so again: whatever caused it would be repeated."""

STEADY_S = 10.0
"""A connection that lasted so long was a good one."""

EARLY_S = 30.0
"""So long events wait for a subscription that a program started anew has yet to make."""

STAY_AWAY_MAX_S = 60.0
GOODBYE_S = 1.0

ELSEWHERE = (mqtt5.ConnAckReasonCode.USE_ANOTHER_SERVER, mqtt5.ConnAckReasonCode.SERVER_MOVED)

NUMBERS = 65_535
DUPLICATE, ONCE = 0b1000, 0b100
"""The bits of the first byte of a PUBLISH that say: this may have come before; this is at QoS 2."""
REFUSED = 128
NOT_YET = 131
"""In a ring brokers that must know of a subscription may be away: it is refused, and may be granted later."""
RESUME_TRIES = 12
"""A broker takes up to ten seconds for each."""


class _Outgoing(msgspec.Struct):
    """A publication that its broker has not taken yet."""

    packet: bytes
    done: asyncio.Future[None]
    received: bool = False
    sent: bool = False
    """A broker may have it."""

    @property
    def is_once(self) -> bool:
        """It must not be said to another broker as well, unless that one knows what became of it."""
        return self.sent and bool(self.packet[0] & ONCE)


class Client:
    """Made by `connect`; use it as a context manager: `async with`, or `with` in programs without asyncio."""

    def __init__(self, brokers: list[Address], options: Options) -> None:
        self.options = options
        self.brokers = brokers
        self.broker: Address | None = None
        """Where it is connected, or was last."""
        self.renewed = 0
        """How often a broker has given us a new session instead of ours, which it could not have in time. What was
        subscribed to is subscribed to again; what was in the old session may come twice, and behind newer events."""
        self.taken_over = 0
        """How often in a row another program has taken its session over."""
        self._next = 0
        self._redirections = 0
        self._name = ""
        """The broker where we were let in last, as it calls itself."""
        self._token = ""
        """What we were given where we were let in last, to be shown at the next broker."""
        self._wire: Wire | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._thread: SyncClient | None = None
        self._connected = asyncio.Event()
        self._connected_s = 0.0
        self._failed: ClientError | None = None
        self._hopeless: ClientError | None = None
        self._away_s = 0.0
        self._stay_away_s = 0.0
        self._short = 0
        """Connections in a row that broke at once."""
        self._hurry = asyncio.Event()
        self._roaming: tuple[Address, asyncio.Future[None]] | None = None
        self._gone = False
        """The broker where the session is cannot be reached."""
        self._inherited = False
        """An earlier program of our name has left the session, with nobody knows what in it."""
        self._said_s = -inf
        """When a broker last took something at QoS 1 or 2 in this session: such things have an order."""
        self._handoff_wait_s = inf
        """So long brokers keep that order: what one of them has not passed on by then may come after what is newer."""
        self._life = 0
        self._clean = False
        """We have asked for a new session ourselves."""
        self._anew = False
        """The session is new, and does not have all our subscriptions yet."""
        self._number = 0
        self._limit = options.inflight_max
        self._packet_max = 0
        self._outgoing: dict[int, _Outgoing] = {}
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._room = asyncio.Event()
        self._turn = asyncio.Lock()
        """Who came first publishes first, also where there is no room for all."""
        self._subscriptions: dict[int, list[Subscription]] = {}
        self._early: dict[int, list[Received]] = {}
        self._unasked: set[int] = set()
        """Subscriptions of its session that another program has made, and this one has not."""
        self._open: set[int] = set()
        self._unreleased: set[int] = set()

    async def __aenter__(self) -> Self:
        if self._keeper is not None:
            raise ClientError("the client is in use, or closed; make another one with connect()")
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
        if kind is None:
            self.take_in_hand()
        await self.close()

    def __enter__(self) -> SyncClient:
        """The same client for a program without asyncio, in a thread of its own."""
        from godwit.client.thread import SyncClient

        self._thread = SyncClient(self)
        self._thread.open()
        return self._thread

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        self._thread.close(taken=kind is None)

    def take_in_hand(self) -> None:
        """Loops are done with the events that they were given last."""
        for alike in self._subscriptions.values():
            for subscription in alike:
                subscription.take_in_hand()

    async def publish(
        self,
        attributes: Mapping[str, Content] | None = None,
        *,
        topic: str = "events",
        payload: bytes | str | None = None,
        place: Place | None = None,
        qos: int = 2,
        retain: bool = False,
        expiry_s: int | None = None,
        profile: str = "",
    ) -> None:
        """Returns when a broker has it safely; at QoS 0 when it has left.

        Without a payload the attributes travel as a JSON object, which any MQTT client can read. With `retain`, a
        `profile` says in which subspace the thing is, as a condition: lasting questions meet it there. `EventError` or
        `ClientError` where it cannot be, or a broker refuses it.
        """
        self._check_open()
        check_topic(topic)
        check_qos(qos)
        body, properties = encoded(attributes or {}, payload, place)
        if profile:
            properties = [*properties, ("profile", profile)]

        def packet(number: int | None) -> bytes:
            return mqtt5.PublishPacket(
                topic,
                body,
                qos=mqtt5.QoS(qos),
                retain=retain,
                packet_id=number,
                message_expiry_interval=expiry_s,
                user_properties=properties,
            ).write()

        if qos == 0:
            (await self._until_connected()).write(self._fitting(packet(None)))
            return
        async with self._turn:
            while len(self._outgoing) >= self._limit:
                self._room.clear()
                await self._room.wait()
                self._check_open()
            number = self._new_number()
            outgoing = self._outgoing[number] = _Outgoing(
                self._fitting(packet(number)), asyncio.get_running_loop().create_future()
            )
            if self._wire is not None and self._connected.is_set():
                self._wire.write(outgoing.packet)
                outgoing.sent = True
        await outgoing.done

    def _fitting(self, packet: bytes) -> bytes:
        """A broker would end the connection for a larger one, and we would try again for ever."""
        if self._packet_max and len(packet) > self._packet_max:
            raise ClientError(f"publish: {len(packet):,} bytes; {self.broker} takes {self._packet_max:,} at most")
        return packet

    async def subscribe(
        self, condition: str = "", *, topics: str = "#", qos: int = 2, since: str | datetime = ""
    ) -> Subscription:
        """Events of these topics whose content meets the condition; `ClientError` where a broker refuses it.

        With `since`, as "-2h" or a datetime, first those that were published since then, from the brokers' archives.
        """
        self._check_open()
        check_topics(topics)
        check_qos(qos)
        subscription = Subscription(condition, topics, qos, self._unsubscribe, since_text(since))
        await self._begin(subscription)
        return subscription

    async def query(
        self,
        condition: str = "",
        *,
        topics: str = "#",
        qos: int = 2,
        cover: bool = False,
        quiet: bool = False,
        resume: bool = False,
    ) -> Query:
        """What matches now of all that is retained, then what appears, changes and goes; see `godwit.client.query`.

        A thing that is a subspace matches where it has something in common with the condition; with `cover`, where all
        of it meets that. `quiet` leaves out what changes and still matches. With `resume` a program of the same name
        goes on where the last one was: what that was told is not told again.
        """
        self._check_open()
        check_topics(topics)
        check_qos(qos)
        words = " ".join(word for word, is_said in (("cover", cover), ("quiet", quiet)) if is_said)
        query = Query(condition, topics, qos, self._unsubscribe, words, resume=resume)
        await self._begin(query)
        return query

    async def _begin(self, subscription: Subscription) -> None:
        alike = self._subscriptions.setdefault(subscription.identifier, [])
        alike.append(subscription)
        self._unasked.discard(subscription.identifier)
        for event in self._early.pop(subscription.identifier, ()):
            subscription.add(event)
        try:
            while True:
                wire = await self._until_connected()
                with contextlib.suppress(ConnectionError):
                    await self._subscribe(wire, subscription)
                    return
        except BaseException:
            alike.remove(subscription)
            raise

    async def roam(self, broker: str, *, away_s: float = 0.0) -> None:
        """Leave without a word, as a moving device does, be out of reach for a while, and go on at that broker.

        `UnreachableError` where that one does not let us in: the client then goes on by itself at another of its
        brokers, and `connected` says when it is there.
        """
        self._check_open()
        target = Address.parse(broker)
        stranger, landing = target not in self.brokers, asyncio.get_running_loop().create_future()
        self._aim(target)
        self._roaming = target, landing
        self._connected.clear()
        self._away_s = away_s
        if self._wire is not None:
            self._wire.abort()
        self._hurry.set()
        try:
            await landing
        except UnreachableError:
            if stranger and target in self.brokers and len(self.brokers) > 1:
                self.brokers.remove(target)
            raise

    async def connected(self) -> Address:
        """Wait until a broker has let the client in; where that is. `ClientError` where it has failed or is closed."""
        self._check_open()
        await self._until_connected()
        assert self.broker is not None
        return self.broker

    async def close(self) -> None:
        """Say goodbye. The session is kept for `keep_s`, unless the client has no name to come back under."""
        wire = self._wire if self._connected.is_set() else None
        if wire is not None and self._failed is None:
            ends = 0 if not self.options.named and self.options.keep_s else None
            wire.write(mqtt5.DisconnectPacket(session_expiry_interval=ends).write())
            wire.close()
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        if wire is not None:
            with contextlib.suppress(TimeoutError):
                # What was said last must have left before the program ends.
                await asyncio.wait_for(wire.closed.wait(), GOODBYE_S)
        self._fail(ClientError("the client is closed"), ends_quietly=True)

    def _check_open(self) -> None:
        if self._keeper is None:
            raise ClientError("not connected: use the client inside of `async with godwit.connect(...) as client:`")
        if self._failed is not None:
            raise self._failed

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
        while True:
            wire = await self._found()
            self._connected_s = asyncio.get_running_loop().time()
            await wire.closed.wait()
            self._lost()
            await asyncio.sleep(self._away())
            stay_away_s, self._stay_away_s = self._stay_away_s, 0.0
            await self._pause(stay_away_s)

    def _away(self) -> float:
        """The connection is over: how long a device that moves is out of reach. `ClientError` where it is no use to
        come back."""
        if self._hopeless is not None:
            raise self._hopeless
        lasted_s = asyncio.get_running_loop().time() - self._connected_s
        if lasted_s > STAY_AWAY_MAX_S:
            self.taken_over = 0
        self._short = 0 if lasted_s > STEADY_S or self._roaming is not None else self._short + 1
        if self._short > 1 and not self._stay_away_s:
            # A broker that lets us in and hangs up, again and again.
            self._stay_away_s = min(self.options.retry_s * 2.0 ** min(self._short, 32), self.options.retry_max_s)
        away_s, self._away_s = self._away_s, 0.0
        return away_s

    async def _pause(self, pause_s: float) -> None:
        """By chance shorter, so that not all come back at once; over where the program wants to be elsewhere."""
        if not pause_s:
            return
        self._hurry.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), pause_s * random.uniform(0.75, 1.0))

    async def _found(self) -> Wire:
        """In at some broker. `ClientError` where that is of no use, or has taken longer than `wait_s`."""
        search = Search(self.options.connect_s, first=self.broker is None)
        try:
            async with asyncio.timeout(self.options.wait_s):
                return await self._search(search)
        except TimeoutError:
            given_up = f"given up after {self.options.wait_s:g} s"
            raise UnreachableError(f"{search.words(self.brokers)}; {given_up}") from None

    async def _search(self, search: Search) -> Wire:
        pause_s, self._gone = self.options.retry_s, False
        while True:
            target = self.brokers[self._next % len(self.brokers)]
            try:
                wire = await self._connect(target)
            except (OSError, TimeoutError, ValueError) as error:
                self._next += 1
                self._gone |= not isinstance(error, BusyError) and target == self.broker
                self._landed(target, UnreachableError(f"{target}: {search.failed(target, error)}"))
                if search.is_round(self.brokers):
                    self._trouble(search.tell(self.brokers, asyncio.get_running_loop().time()))
                    await self._pause(pause_s)
                    pause_s = min(pause_s * 2, self.options.retry_max_s)
                continue
            if wire is not None:
                search.found(target)
                return wire

    def _landed(self, at: Address, error: ClientError | None = None) -> None:
        """Tell whoever called `roam` that the client is in, or not where it was to go."""
        if self._roaming is None or (error is not None and at != self._roaming[0]):
            return
        (_, landing), self._roaming = self._roaming, None
        if landing.done():
            return
        if error is None:
            landing.set_result(None)
        else:
            landing.set_exception(error)
            if self.broker in self.brokers:
                self._next = self.brokers.index(self.broker)

    def _trouble(self, error: ClientError | None) -> None:
        if error is None or self.options.on_trouble is None:
            return
        try:
            self.options.on_trouble(error)
        except ClientError:
            raise
        except Exception as raised:
            raise ClientError(f"on_trouble has failed: {raised!r}") from raised

    async def _connect(self, target: Address) -> Wire | None:
        """In, and all that was under way repeated; None where the broker names another one."""
        loop, options = asyncio.get_running_loop(), self.options
        acknowledged: asyncio.Future[mqtt5.ConnAckPacket] = loop.create_future()

        def first(packet: mqtt5.Packet) -> None:
            if isinstance(packet, mqtt5.ConnAckPacket) and not acknowledged.done():
                if int(packet.reason_code) < REFUSED:
                    self.broker = target  # a goodbye may stand right behind it
                    self._welcome(wire, packet)
                acknowledged.set_result(packet)

        async with asyncio.timeout(options.connect_s):
            wire = await Wire.dial(target, options.tls, options.keep_alive_s)
        wire.on_packet = first
        hello, answer_s = self._hello(), self._answer_s()
        try:
            async with asyncio.timeout(answer_s):
                wire.write(hello.write())
                # Without an answer nobody knows whether the broker has let us in.
                shown, self._token = self._token, self._token and UNSURE + self._token.removeprefix(UNSURE)
                answer = await wire.unless_closed(acknowledged)
        except TimeoutError:
            wire.abort()
            raise TimeoutError(f"no answer within {answer_s:g} s") from None
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
            said = answer.reason_str or _words(answer.reason_code)
            raise RefusedError(f"{target} refuses us: {said}", int(answer.reason_code))
        if int(answer.reason_code) >= REFUSED:
            wire.close()
            raise BusyError(answer.reason_str or _words(answer.reason_code))
        self._redirections = 0
        await self._resume(wire, known=answer.session_present)
        return wire

    def _answer_s(self) -> float:
        """Whoever goes on to the next broker sooner than they wait for a session begins to wait anew there, and is let
        in nowhere as long as that session cannot come."""
        wait_s = self._handoff_wait_s if self._token else 0.0
        return self.options.connect_s + (0.0 if wait_s == inf else wait_s)

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
        options, self._clean = self.options, self._starts_anew()
        return mqtt5.ConnectPacket(
            client_id=options.client,
            username=options.user,
            password=None if options.password is None else options.password.encode(),
            clean_start=self._clean,
            session_expiry_interval=min(int(options.keep_s), 0xFFFFFFFF),
            keep_alive=options.keep_alive_s,
            receive_max=options.inflight_max,
            user_properties=[
                *([("previous", self._name)] if self._name else []),
                *([(TOKEN, self._token)] if self._token else []),
            ],
        )

    def _starts_anew(self) -> bool:
        """Nothing of the session is worth waiting for: it ended with its connection; or its broker is gone, and neither
        subscriptions nor something that must not come twice nor an order are in it."""
        if not self.options.keep_s:
            return True
        if not self._gone or any(self._subscriptions.values()):
            return False
        if any(outgoing.is_once for outgoing in self._outgoing.values()):
            return False
        return not self.options.named or not (self._inherited or self._is_in_order())

    def _is_in_order(self) -> bool:
        """The broker that is gone may have something of ours that it should still pass on before what we say next."""
        return asyncio.get_running_loop().time() - self._said_s < self._handoff_wait_s

    def _welcome(self, wire: Wire, answer: mqtt5.ConnAckPacket) -> None:
        """At once: deliveries may stand right behind this packet."""
        self._wire = wire
        wire.keep_alive()
        self._limit = min(self.options.inflight_max, answer.receive_max)
        self._packet_max = answer.max_packet_size or 0
        wire.on_packet = self._receive
        self._name = next((value for name, value in answer.user_properties if name == "broker"), "")
        self._token = next((value for name, value in answer.user_properties if name == TOKEN), "")
        self._handoff_wait_s = _seconds(answer.user_properties)
        if not self._life and answer.session_present:
            self._inherited = True
        if not answer.session_present:
            self.renewed += not self._clean and bool(self._life or self._inherited)
            self._let_go_of_noted()
            self._inherited, self._said_s = False, -inf
            self._life += 1
            self._anew = True
            self._open.clear()
            self._unreleased.clear()

    def _let_go_of_noted(self) -> None:
        """What a broker has noted in a session that is no more is that broker's (MQTT 5, 4.3.3): in a new session it
        would be another publication, and come twice."""
        for number in [number for number, outgoing in self._outgoing.items() if outgoing.received]:
            self._taken(number, 0, None)

    async def _resume(self, wire: Wire, *, known: bool) -> None:
        """Say again what the broker does not know, then all that it may have missed."""
        has_all = known and not self._anew
        for alike in list(self._subscriptions.values()):
            for subscription in alike[-1:]:
                # A question that lasts asks whether it is told of the same as before.
                if not has_all or subscription.lasting is not None:
                    await self._subscribe_again(wire, subscription, resume=known)
        self._anew = False
        for number, outgoing in list(self._outgoing.items()):
            self._repeat(wire, number, outgoing, known=known)
        self._connected.set()
        assert self.broker is not None
        self._landed(self.broker)

    async def _subscribe_again(self, wire: Wire, subscription: Subscription, *, resume: bool) -> None:
        """It was granted before, so a refusal may be for now only."""
        for tries in range(1, RESUME_TRIES + 1):
            try:
                await self._subscribe(wire, subscription, resume=resume)
                return
            except RefusedError as error:
                if error.reason != NOT_YET or tries == RESUME_TRIES:
                    raise
                log.warning("%s: %s", self.broker, error)
            await asyncio.sleep(self.options.retry_s)

    def _repeat(self, wire: Wire, number: int, outgoing: _Outgoing, *, known: bool) -> None:
        if outgoing.received:
            wire.write(mqtt5.PubRelPacket(number).write())
            return
        first = outgoing.packet[0] | (DUPLICATE if known and outgoing.sent else 0)
        outgoing.sent = True
        wire.write(bytes([first]) + outgoing.packet[1:])

    def _lost(self) -> None:
        self._connected.clear()
        self._wire = None
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError("the broker is gone"))
        self._answers.clear()

    def _fail(self, error: ClientError, *, ends_quietly: bool = False) -> None:
        self._failed = self._failed or error
        if self._roaming is not None:
            self._landed(self._roaming[0], error)
        for future in (*self._answers.values(), *(outgoing.done for outgoing in self._outgoing.values())):
            if not future.done():
                future.set_exception(error)
                future.exception()
        for alike in self._subscriptions.values():
            for subscription in alike:
                subscription.end(None if ends_quietly else error)
        self._connected.set()
        self._room.set()

    async def _subscribe(self, wire: Wire, subscription: Subscription, *, resume: bool = False) -> None:
        number = self._new_number()
        handling = mqtt5.RetainHandling(int(subscription.resume or resume))
        wanted = mqtt5.TopicFilter(subscription.pattern, max_qos=mqtt5.QoS(subscription.qos), retain_handling=handling)
        said = [] if subscription.lasting is None else [("lasting", subscription.lasting)]
        packet = mqtt5.SubscribePacket(number, [wanted], subscription_id=subscription.identifier, user_properties=said)
        answer = await self._ask(wire, number, packet.write())
        code = answer.reason_codes[0]
        if int(code) >= REFUSED:
            raise RefusedError(answer.reason_str or _words(code), int(code))
        subscription.answered(answer.user_properties)

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
                self._dismissed(packet)
                self._wire.close()

    def _dismissed(self, packet: mqtt5.DisconnectPacket) -> None:
        """The broker hangs up, and says why."""
        assert self.broker is not None
        code, said = packet.reason_code, packet.reason_str or _words(packet.reason_code)
        if code == mqtt5.DisconnectReasonCode.SESSION_TAKEN_OVER:
            self._give_way()
        elif code in HOPELESS:
            self._hopeless = RefusedError(f"{self.broker} has ended the connection: {said}", int(code))
        else:
            self._redirect(self.broker, packet.server_reference)

    def _give_way(self) -> None:
        """Another program of this name is in. Coming back at once would throw it out, and so on for ever."""
        self.taken_over += 1
        self._stay_away_s = min(self.options.taken_over_s * 2.0 ** min(self.taken_over - 1, 32), STAY_AWAY_MAX_S)
        error = TakenOverError(
            f"another program has connected as {self.options.client!r}; trying again in {self._stay_away_s:g} s"
        )
        log.warning("%s: %s", self.broker, error)
        try:
            self._trouble(error)
        except ClientError as raised:
            self._hopeless = raised

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
        self._said_s = asyncio.get_running_loop().time()
        if outgoing is None or outgoing.done.done():
            return
        if reason >= REFUSED:
            outgoing.done.set_exception(RefusedError(text or _reason(reason), reason))
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
        identifier = packet.subscription_ids[0] if packet.subscription_ids else 0
        if wanting:
            return
        if not identifier or identifier in self._unasked:
            event.ack()
            return
        waiting = self._early.setdefault(identifier, [])
        if not waiting:
            asyncio.get_running_loop().call_later(EARLY_S, self._stop_waiting, identifier)
        waiting.append(event)

    def _stop_waiting(self, identifier: int) -> None:
        """What nobody takes must not fill the window, or nothing else would come any more."""
        events = self._early.pop(identifier, [])
        if events:
            self._unasked.add(identifier)
            log.warning(
                "%d events of a subscription that this program has not made are let go of; "
                "the session of %r has it from an earlier one",
                len(events),
                self.options.client,
            )
        for event in events:
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
    keep_s: float | None = None,
    wait_s: float | None = None,
    on_trouble: Trouble | None = None,
    keep_alive_s: int = 20,
    connect_s: float = 5.0,
    retry_s: float = 0.1,
    retry_max_s: float = 5.0,
    taken_over_s: float = 1.0,
    inflight_max: int = 1000,
) -> Client:
    """A client of these brokers, `host:port` each, tried in their order; `Options` tells what the rest means.

    `client` names it to brokers: give the same name again, from anywhere, and the session is there. Without a name
    nobody can come back, and nothing is left behind. `keep_s` is an hour with a name, and a minute without.
    """
    default_s = KEEP_S if client else KEEP_UNNAMED_S
    options = Options(
        client=client or f"godwit-{uuid.uuid4().hex[:12]}",
        named=bool(client),
        user=user,
        password=password,
        tls=tls,
        keep_s=default_s if keep_s is None else keep_s,
        wait_s=wait_s,
        on_trouble=on_trouble,
        keep_alive_s=keep_alive_s,
        connect_s=connect_s,
        retry_s=retry_s,
        retry_max_s=retry_max_s,
        taken_over_s=taken_over_s,
        inflight_max=inflight_max,
    )
    return Client([Address.parse(broker) for broker in brokers or ("127.0.0.1:1883",)], options)


def _seconds(properties: list[tuple[str, str]]) -> float:
    """How long brokers wait for each other, as one of them says; for ever where it does not."""
    said = next((value for name, value in properties if name == HANDOFF_WAIT), "")
    try:
        return float(said or inf)
    except ValueError:
        return inf


def _words(code: object) -> str:
    return str(code).rpartition(".")[2].lower().replace("_", " ")


def _reason(code: int) -> str:
    """What a broker means that gives a number and no words."""
    try:
        return f"the broker refuses it: {_words(mqtt5.PubAckReasonCode(code))}"
    except ValueError:
        return f"the broker refuses it with reason {code}"

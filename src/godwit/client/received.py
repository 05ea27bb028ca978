"""What a client has got: events, and the subscriptions that they came for."""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

import mqtt5

from godwit.events import Value
from godwit.protocols.broker.lasting.words import REPLAYED
from godwit.protocols.broker.publication import Properties, Publication

IDENTIFIERS = 268_435_455


class Received:
    """An event that matched."""

    __slots__ = ("_ack", "_owed", "_values", "packet")

    def __init__(self, packet: mqtt5.PublishPacket, ack: Callable[[], None], owed: int) -> None:
        self.packet = packet
        self._ack = ack
        self._owed = owed
        self._values: dict[str, Value] | None = None

    @property
    def topic(self) -> str:
        return self.packet.topic

    @property
    def payload(self) -> bytes:
        return self.packet.payload

    @property
    def replayed(self) -> datetime | None:
        """When it was published, of what comes from an archive; None of what comes as it is published."""
        said = next((value for name, value in self.packet.user_properties if name == REPLAYED), None)
        return None if said is None else datetime.fromisoformat(said)

    @property
    def attributes(self) -> Mapping[str, Value]:
        """What a filter sees of it."""
        if self._values is None:
            properties = Properties(user=tuple(one for one in self.packet.user_properties if one[0] != REPLAYED))
            self._values = Publication("", 0, self.topic, self.payload, properties=properties).values()
        return self._values

    def ack(self) -> None:
        """Taken: it will not come again. Called by itself when the loop asks for the next one, and when the client's
        `with` block is left without an exception."""
        owed, self._owed = self._owed, 0
        if owed:
            self._ack()

    def one_has_it(self) -> None:
        """It may be wanted by several subscriptions of this client, and counts as taken when all have it."""
        if self._owed:
            self._owed -= 1
            if not self._owed:
                self._ack()

    def called_by(self, call: Callable[[Callable[[], None]], None]) -> Received:
        """The same for another thread: what must happen in the client's own is handed to `call`."""
        told = self._ack
        self._ack = lambda: call(told)
        return self

    def __repr__(self) -> str:
        return f"Received({self.topic!r}, {dict(self.attributes)!r})"


class Subscription:
    """What matched, in order; `async for` it. Ends when the client is closed, with its error where it has failed."""

    def __init__(
        self,
        condition: str,
        topics: str,
        qos: int,
        unsubscribe: Callable[[Subscription], Awaitable[None]],
        since: str = "",
    ) -> None:
        self._unsubscribe = unsubscribe
        self.condition = condition
        self.topics = topics
        self.qos = qos
        self.since = since
        """What was published since then comes first, in the broker's words."""
        self.resume = False
        """Nothing retained is wanted of what was subscribed to before."""
        self._waiting: deque[Received] = deque()
        self._came = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None
        self._in_hand: Received | None = None
        """What the loop has been given and is not done with."""

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Received:
        self.take_in_hand()
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        self._in_hand = event
        return event

    def take_in_hand(self) -> None:
        """The loop is done with the event that it was given last."""
        event, self._in_hand = self._in_hand, None
        if event is not None:
            event.one_has_it()

    async def next(self) -> Received | None:
        """The next event, which you acknowledge yourself; None when there will be no more."""
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._ended:
                return None
            self._came.clear()
            await self._came.wait()
        return self._waiting.popleft()

    async def stop(self) -> None:
        """Want it no more; what has come already can still be read."""
        await self._unsubscribe(self)
        self.end()

    def add(self, event: Received) -> None:
        self._waiting.append(event)
        self._came.set()

    def end(self, error: Exception | None = None) -> None:
        self._ended = True
        self._error = self._error or error
        self._came.set()

    @property
    def lasting(self) -> str | None:
        """How it lasts; None where it does not."""
        return None

    def answered(self, properties: Sequence[tuple[str, str]]) -> None:
        """The broker has granted it, and said this beside."""

    @property
    def pattern(self) -> str:
        """MQTT tells subscriptions of one session apart by this, so the condition is part of it."""
        plain = f"$filter/{quote(self.condition, safe='')}/{self.topics}" if self.condition else self.topics
        return f"$since/{quote(self.since, safe='')}/{plain}" if self.since else plain

    @property
    def identifier(self) -> int:
        """The same for the same wish in another life of this client: what waited for it meanwhile finds it again."""
        return zlib.crc32(self.pattern.encode()) % IDENTIFIERS + 1

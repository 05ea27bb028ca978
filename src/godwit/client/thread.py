"""`with godwit.connect(...) as client`: the same client for programs without asyncio, run by a thread of its own.

    with godwit.connect("north:1883", client="van-7") as client:
        client.publish({"kind": "reading", "pm25": 163.5}, topic="air/beijing")
        for event in client.subscribe("pm25 > 150"):
            print(event.attributes)

Several threads of the program may use it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from godwit.client.errors import ClientError
from godwit.client.payload import Content
from godwit.client.query import Change, Query
from godwit.client.received import Received, Subscription
from godwit.events import Place
from godwit.net.address import Address

if TYPE_CHECKING:
    from godwit.client.client import Client

T = TypeVar("T")


class SyncSubscription:
    """What matched, in order; loop over it. Ends when the client is closed, with its error where it has failed."""

    def __init__(self, subscription: Subscription, client: SyncClient) -> None:
        self.subscription = subscription
        self._client = client

    def __iter__(self) -> Iterator[Received]:
        return self

    def __next__(self) -> Received:
        event = self._client.done(self._asked())
        if event is None:
            raise StopIteration
        return event

    async def _asked(self) -> Received | None:
        event = await anext(self.subscription, None)
        return None if event is None else event.called_by(self._client.call)

    def next(self, timeout_s: float | None = None) -> Received | None:
        """The next event, which you acknowledge yourself; None when there will be no more. `TimeoutError` where
        nothing has come for so long; nothing is lost by that."""
        return self._client.done(self._one(timeout_s))

    async def _one(self, timeout_s: float | None) -> Received | None:
        async with asyncio.timeout(timeout_s):
            event = await self.subscription.next()
        return None if event is None else event.called_by(self._client.call)

    def stop(self) -> None:
        """Want it no more; what has come already can still be read."""
        self._client.done(self.subscription.stop())


class SyncQuery(SyncSubscription):
    """Changes, in order; loop over it."""

    def __init__(self, query: Query, client: SyncClient) -> None:
        super().__init__(query, client)
        self.query = query

    def now(self) -> dict[str, Change]:
        """What matches now, by topic."""
        return self._client.done(self.query.now())

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        return cast("Change", super().__next__())


class SyncClient:
    """Made by `with connect(...)`. Every call waits until it is done."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="godwit", daemon=True)

    @property
    def broker(self) -> Address | None:
        """Where it is connected, or was last."""
        return self._client.broker

    def publish(
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
        """Returns when a broker has it safely; at QoS 0 when it has left. As `Client.publish`."""
        self.done(
            self._client.publish(
                attributes,
                topic=topic,
                payload=payload,
                place=place,
                qos=qos,
                retain=retain,
                expiry_s=expiry_s,
                profile=profile,
            )
        )

    def subscribe(
        self, condition: str = "", *, topics: str = "#", qos: int = 2, since: str | datetime = ""
    ) -> SyncSubscription:
        """Events of these topics whose content meets the condition. As `Client.subscribe`."""
        asked = self._client.subscribe(condition, topics=topics, qos=qos, since=since)
        return SyncSubscription(self.done(asked), self)

    def query(
        self,
        condition: str = "",
        *,
        topics: str = "#",
        qos: int = 2,
        cover: bool = False,
        quiet: bool = False,
        resume: bool = False,
    ) -> SyncQuery:
        """What matches now of all that is retained, then what changes. As `Client.query`."""
        asked = self._client.query(condition, topics=topics, qos=qos, cover=cover, quiet=quiet, resume=resume)
        return SyncQuery(self.done(asked), self)

    def roam(self, broker: str, *, away_s: float = 0.0) -> None:
        """Leave without a word and go on at that broker. As `Client.roam`."""
        self.done(self._client.roam(broker, away_s=away_s))

    def connected(self) -> Address:
        """Wait until a broker has let the client in; where that is."""
        return self.done(self._client.connected())

    def open(self) -> None:
        """Called by `with`."""
        self._thread.start()
        try:
            self.done(self._client.__aenter__())
        except BaseException:
            self._end()
            raise

    def close(self, *, taken: bool = False) -> None:
        """Called when `with` is left. With `taken`, loops are done with the events that they were given last."""
        if self._loop.is_closed():
            return
        try:
            self.done(self._closed(taken))
        finally:
            self._end()

    async def _closed(self, taken: bool) -> None:
        if taken:
            self._client.take_in_hand()
        await self._client.close()

    def done(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of what the other thread does; Ctrl-C here ends it there."""
        if self._loop.is_closed():
            work.close()
            raise ClientError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, work: Callable[[], None]) -> None:
        """In the client's thread: now where this is it, else soon."""
        if threading.current_thread() is self._thread:
            work()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

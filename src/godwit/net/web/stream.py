"""A subscription as server-sent events: a connection of the broker that a browser reads.

What was written counts as acknowledged. A reader that is slow is waited for: deliveries wait in its session meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from godwit.net.web.rows import change_row
from godwit.protocols.broker.api import Delivery, Opening, Reason, RefusedError, Subscription
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.session.state import Session

UNDER_WAY = 64
"""Events that are written and not yet taken by the network."""
SILENCE_S = 15.0
"""After so long something is said in any case, so that whoever stands between does not hang up."""
OPEN_S = 20.0


class Reader:
    """An `Outlet`: what is delivered waits in `_came` until `lines` is asked for it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.session: Session | None = None
        self._came: asyncio.Queue[Delivery | None] = asyncio.Queue()
        self._opened: asyncio.Future[Session] = asyncio.get_running_loop().create_future()

    async def open(self, opening: Opening, wanted: Subscription) -> None:
        """`RefusedError` where the broker does not let it in, or not have that."""
        self.broker.open(msgspec.structs.replace(opening, inflight_max=UNDER_WAY), self)
        try:
            async with asyncio.timeout(OPEN_S):
                self.session = await self._opened
        except TimeoutError:
            raise RefusedError(Reason.SERVER_BUSY, "the broker is busy") from None
        (granted,) = self.broker.subscribe(self.session, (wanted,))
        if granted.reason is not Reason.OK:
            self.close()
            raise RefusedError(granted.reason, granted.text)

    async def lines(self) -> AsyncIterator[bytes]:
        """Until the broker ends it; close it when nobody reads any longer."""
        try:
            yield b": here it begins\n\n"
            while True:
                try:
                    async with asyncio.timeout(SILENCE_S):
                        delivery = await self._came.get()
                except TimeoutError:
                    yield b": nothing new\n\n"
                    continue
                if delivery is None:
                    return
                yield _event(delivery)
                if self.session is not None and delivery.number:
                    self.broker.acknowledged(self.session, delivery.number)
        finally:
            self.close()

    def close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            self.broker.close(session, self, will=False)

    # What the broker says.

    def opened(self, session: Session, present: bool) -> None:
        if not self._opened.done():
            self._opened.set_result(session)

    def refused(self, reason: Reason, text: str) -> None:
        if not self._opened.done():
            self._opened.set_exception(RefusedError(reason, text))

    def takes_more(self) -> bool:
        return True

    def deliver(self, delivery: Delivery) -> None:
        self._came.put_nowait(delivery)

    def release(self, number: int) -> None: ...

    def accepted(self, number: int, qos: int, reason: Reason) -> None: ...

    def completed(self, number: int) -> None: ...

    def closed(self, reason: Reason, text: str) -> None:
        self.session = None
        self._came.put_nowait(None)


def _event(delivery: Delivery) -> bytes:
    row = change_row(delivery.publication)
    kind = f"event: {row.change}\nid: {row.number}\n" if row.change else ""
    return kind.encode() + b"data: " + msgspec.json.encode(row) + b"\n\n"

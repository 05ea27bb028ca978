"""A question that lasts: what matches now, and from then on what changes.

    async for change in await client.query("within(lat, lon, 52.0, 4.0, 5km)", topics="vans/#"):
        print(change.sign, change.topic, change.attributes)

Brokers tell the difference to what this program knows, wherever it is connected. Should they have lost the session,
they begin anew, and the difference is made here: the program is never told twice that something has come.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import mqtt5

from godwit.client.received import Received, Subscription
from godwit.events import Value
from godwit.protocols.broker.lasting.words import (
    APPEARED,
    BECAUSE,
    CHANGE,
    CHANGED,
    GONE,
    MATCHES,
    NUMBER,
    OURS,
    PENDING,
    VIEW,
)

LOST = "lost"
"""Why something has left that the brokers no longer knew of when they began anew."""


class Change(Received):
    """Something has come (`+`), has changed (`~`) or is gone (`-`)."""

    __slots__ = ("_told", "sign")

    def __init__(self, packet: mqtt5.PublishPacket, ack: Callable[[], None], owed: int, sign: str = "") -> None:
        super().__init__(packet, ack, owed)
        self._told = dict(reversed(packet.user_properties))
        self.sign = sign or self._told.get(CHANGE, APPEARED)

    @property
    def number(self) -> int:
        """Of the broker's telling; each is used once in a `view`."""
        return int(self._told.get(NUMBER, 0))

    @property
    def view(self) -> str:
        return self._told.get(VIEW, "")

    @property
    def pending(self) -> int:
        """How much was still to be told after this; 0: this was all for now."""
        return int(self._told.get(PENDING, 0))

    @property
    def because(self) -> str:
        """Why it is gone: `left`, `expired`, `cleared`, `unknown` or `lost`; else empty."""
        return self._told.get(BECAUSE, "")

    @property
    def attributes(self) -> Mapping[str, Value]:
        """What a filter sees of it; nothing of what is gone."""
        if self.sign == GONE:
            return {}
        return {name: value for name, value in super().attributes.items() if name not in OURS}

    def __repr__(self) -> str:
        return f"Change({self.sign!r}, {self.topic!r}, {dict(self.attributes)!r})"


class Query(Subscription):
    """Changes, in order; `async for` it. `known` is what matches, as far as has come."""

    def __init__(
        self,
        condition: str,
        topics: str,
        qos: int,
        unsubscribe: Callable[[Subscription], Awaitable[None]],
        words: str = "",
        *,
        resume: bool = False,
    ) -> None:
        super().__init__(condition, topics, qos, unsubscribe)
        self.words = words
        self.resume = resume
        self.known: dict[str, Change] = {}
        self.is_in_step = False
        """All that was to be told at some moment has come, though perhaps not been asked for."""
        self._view = ""
        self._number = 0
        self._left: set[str] = set()
        self._stale: set[str] = set()
        """What was known when brokers began anew, and has not been told of since."""

    @property
    def pattern(self) -> str:
        return f"$lasting/{super().pattern}"

    @property
    def lasting(self) -> str | None:
        return self.words

    def answered(self, properties: Sequence[tuple[str, str]]) -> None:
        """The broker begins, or goes on, to tell."""
        told = dict(properties)
        if told.get(VIEW, self._view) != self._view:
            self._begin(told[VIEW])
        if told.get(MATCHES) == "0":
            self._settle()
            self.is_in_step = True
            self._came.set()

    def add(self, event: Received) -> None:
        change = Change(event.packet, event.one_has_it, 1)
        if change.view in self._left or (change.view == self._view and change.number <= self._number):
            change.one_has_it()
            return
        if change.view != self._view:
            self._begin(change.view)
        self._number = change.number
        self._stale.discard(change.topic)
        sign = self._net(change)
        if sign:
            change.sign = sign
            self._tell(change)
        else:
            change.one_has_it()
        if not change.pending:
            self._settle()
            self.is_in_step = True

    def __aiter__(self) -> Query:
        return self

    async def __anext__(self) -> Change:
        change = await super().__anext__()
        assert isinstance(change, Change)
        return change

    @property
    def is_waiting(self) -> bool:
        """Something has come that was not asked for yet."""
        return bool(self._waiting)

    async def now(self) -> dict[str, Change]:
        """What matches now, by topic; what changes later can be read afterwards."""
        while True:
            while self._waiting:
                await anext(self)
            self.take_in_hand()
            if self._error is not None:
                raise self._error
            if self.is_in_step or self._ended:
                break
            self._came.clear()
            await self._came.wait()
        return dict(self.known)

    def _begin(self, view: str) -> None:
        self._left.add(self._view)
        self._view, self._number = view, 0
        self._stale = set(self.known)

    def _net(self, change: Change) -> str:
        """What it is to whoever knows all that was told before; nothing where it is no news."""
        before = self.known.get(change.topic)
        if change.sign == GONE:
            return GONE if before is not None else ""
        if before is None:
            return APPEARED
        is_same = (
            change.sign == APPEARED and before.payload == change.payload and before.attributes == change.attributes
        )
        return "" if is_same else CHANGED

    def _settle(self) -> None:
        """All is told: what was not is not there any longer."""
        for topic in sorted(self._stale):
            packet = mqtt5.PublishPacket(topic, b"", user_properties=[(CHANGE, GONE), (BECAUSE, LOST)])
            self._tell(Change(packet, lambda: None, 1))
        self._stale.clear()

    def _tell(self, change: Change) -> None:
        if change.sign == GONE:
            self.known.pop(change.topic, None)
        else:
            self.known[change.topic] = change
        super().add(change)

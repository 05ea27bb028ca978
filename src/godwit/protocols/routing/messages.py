"""The messages of the four routing protocols, and what each weighs on the air (spec mft-pubsub 2.10).

Bytes: type 1, process id 2, sequence number 4, hop count 1, filter 4, event id 6, and the payload.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import Message, NodeId

STAMP_B = 8

Whole = Annotated[int, msgspec.Meta(ge=0)]
"""Checked where a message is decoded: a peer that counts below zero is refused at the door."""


class Sub(Message, frozen=True):
    """`subscriber` wants `wanted`. `t` and `h` are MFT's: sequence number and hops travelled."""

    wanted: Filter
    subscriber: NodeId = ""
    t: Whole = 0
    h: Whole = 0

    @property
    def size_b(self) -> int:
        return 5 + (2 if self.subscriber else 0) + (5 if self.t else 0)


class Uns(Message, frozen=True):
    wanted: Filter
    subscriber: NodeId = ""
    t: Whole = 0
    h: Whole = 0

    @property
    def size_b(self) -> int:
        return 5 + (2 if self.subscriber else 0) + (5 if self.t else 0)


class Pub(Message, frozen=True):
    """An event on its way. `hops` counts transmissions for the evaluation; `stamp` is Phoenix's local time.

    `to` is rule H11's: the subscribers for whom the neighbor answers from now on.
    """

    event: Event
    hops: Whole = 0
    stamp: float | None = None
    to: tuple[NodeId, ...] = ()

    @property
    def size_b(self) -> int:
        return 7 + len(self.event.payload) + (0 if self.stamp is None else STAMP_B) + 2 * len(self.to)


class Rep(Message, frozen=True):
    """Stored events replayed towards one subscriber."""

    events: tuple[Event, ...]
    subscriber: NodeId
    hops: Whole = 0
    stamp: float | None = None

    @property
    def size_b(self) -> int:
        return 3 + sum(6 + len(e.payload) for e in self.events) + (0 if self.stamp is None else STAMP_B)


class Mig(Message, frozen=True):
    """The subscriber has attached elsewhere; `previous` is where it was, `last` Phoenix's newest stamp."""

    subscriber: NodeId
    previous: NodeId | None
    t: Whole = 0
    h: Whole = 0
    last: float | None = None

    @property
    def size_b(self) -> int:
        return 5 + (5 if self.t else 0) + (0 if self.last is None else STAMP_B)


class Filters(Message, frozen=True):
    """What this partition believes the subscriber wants."""

    filters: tuple[Filter, ...]

    @property
    def size_b(self) -> int:
        return 2 + 4 * len(self.filters)


class Rbmig(Message, frozen=True):
    """Recursive approach: `broker` has moved, with these subscribers attached to it."""

    clients: tuple[NodeId, ...]
    broker: NodeId

    @property
    def size_b(self) -> int:
        return 3 + 2 * len(self.clients)


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One line of a routing table: the filter, where its events go next, and for whom."""

    wanted: Filter
    hop: NodeId
    subscriber: NodeId = ""


class Btab(Message, frozen=True):
    """Recursive approach: the whole table of the new parent."""

    rows: tuple[Row, ...]

    @property
    def size_b(self) -> int:
        return 1 + 8 * len(self.rows)


class Fmig(Message, frozen=True):
    """Recursive approach: migrate to me now."""

    @property
    def size_b(self) -> int:
        return 1


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """What a broker knows of a subscriber: newest sequence number, and hops from that broker to it."""

    subscriber: NodeId
    t: Whole
    h: Whole


class Bmig(Message, frozen=True):
    """MFT: a broker has moved; `below` lie behind it, `beyond` on the other side; `h` hops travelled."""

    below: tuple[Claim, ...]
    beyond: tuple[Claim, ...] = ()
    h: Whole = 0

    @property
    def size_b(self) -> int:
        return 4 + 7 * (len(self.below) + len(self.beyond))


class Bquery(Message, frozen=True):
    """MFT: send me what you know of this subscriber; I have (t, h)."""

    subscriber: NodeId
    t: Whole
    h: Whole

    @property
    def size_b(self) -> int:
        return 8


class Bsub(Message, frozen=True):
    """MFT: all filters of a subscriber, as its originator knows them at (t, hs); `h` hops travelled.

    `origin` and `serial` are hardened rule H7's: they name this flood, so that a cycle cannot keep it alive.
    """

    subscriber: NodeId
    filters: tuple[Filter, ...]
    t: Whole
    hs: Whole
    h: Whole = 0
    origin: NodeId = ""
    serial: Whole = 0

    @property
    def size_b(self) -> int:
        return 10 + 4 * len(self.filters) + (6 if self.origin else 0)


class Doubt(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber of whom something may have been missed, and the number it had then."""

    subscriber: NodeId
    t: Whole


class Bask(Message, frozen=True):
    """MFT, rule H10: whoever has one of these attached, let it speak again unless it has since."""

    doubts: tuple[Doubt, ...]

    @property
    def size_b(self) -> int:
        return 2 + 6 * len(self.doubts)


class Ack(Message, frozen=True):
    """The neighbor has the message with this number of ours."""

    serial: Whole

    @property
    def size_b(self) -> int:
        return 7

"""The one interface between a protocol and its world.

A protocol core is a plain class given a `Host`. It never reads a clock, opens a socket, logs or rolls its own dice; the
world calls `receive(sender, message)` and the timers it asked for, one at a time and each to completion. Two kinds of
error leave a core, and no other exception is expected: `LocalError`, our caller is wrong and nothing has changed;
`RemoteError`, the peer is wrong and the world drops it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

import msgspec

NodeId = str


class LocalError(Exception):
    """The caller asked for something that cannot be; the core is as it was."""


class RemoteError(Exception):
    """The peer broke the protocol; the core is as it was, and the peer must be dropped."""


class Message(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """What travels: frozen and tagged by its class name, so that the definition is the wire format.

    Where the world sets the maximum transfer unit, `size_b` is what the sender pays; a protocol that models a
    published message layout overrides it, everything else is measured by its encoding.
    """

    @property
    def size_b(self) -> int:
        return len(msgspec.msgpack.encode(self))


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One structured fact of a trace, in one schema for every protocol and both worlds.

    `kind` says what happened: published, matched, delivered, queued, replayed, dropped, sent, received, attached,
    migrated, ... The world adds the time and the node. Fields that do not apply stay empty.
    """

    kind: str
    event: tuple[str, int] | None = None
    client: str = ""
    peer: str = ""
    message: str = ""
    size_b: int = 0
    hops: int = 0
    note: str = ""


class Timer(Protocol):
    def cancel(self) -> None:
        """Never fires after this; cancelling twice or too late does nothing."""


class Core(Protocol):
    """What the world needs of a protocol."""

    def receive(self, sender: NodeId, message: Message, /) -> None: ...


class Host(Protocol):
    """What a protocol may ask of the world."""

    @property
    def name(self) -> NodeId: ...

    @property
    def random(self) -> Random:
        """A stream of its own, derived by name from the root seed: nobody else's dice shift it."""

    def now(self) -> float:
        """Seconds, of this node's own clock: never backwards, no relation to anybody else's."""

    def send(self, to: NodeId, message: Message) -> None:
        """Over the link to a neighbor: in order, but the link may break and take along what is in flight."""

    def broadcast(self, message: Message) -> None:
        """To whoever hears it, one hop, unacknowledged."""

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer: ...

    def trace(self, record: Record) -> None: ...

"""What a handover may cost at most and at least: brokers updated, source and destination not counted (spec 2.11.8).

Withdrawals and the transfer of what was kept are not counted either.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from godwit.protocols.host import LocalError


class Protocol(StrEnum):
    GENERIC = "generic"
    GENERIC_RENDEZVOUS = "generic, rendezvous"
    ACYCLIC_SUBSCRIBER = "acyclic, subscriber"
    ACYCLIC_PUBLISHER = "acyclic, publisher"
    CYCLIC_RENDEZVOUS_SUBSCRIBER = "cyclic rendezvous, subscriber"
    CYCLIC_RENDEZVOUS_PUBLISHER = "cyclic rendezvous, publisher"
    ACYCLIC_RENDEZVOUS_SUBSCRIBER = "acyclic rendezvous, subscriber"
    ACYCLIC_RENDEZVOUS_PUBLISHER = "acyclic rendezvous, publisher"


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """`path` counts the brokers on the way between source and destination, `longest` those on the longest way to a
    rendezvous point, `points` the points to be told; `pings` are repeated."""

    brokers: int
    path: int
    longest: int = 0
    points: int = 1
    pings: int = 0

    def __post_init__(self) -> None:
        if self.brokers < 2 or not 0 <= self.path <= self.others or min(self.longest, self.points, self.pings) < 0:
            raise LocalError(f"{self}: at least two brokers, a path within them, and nothing below zero")
        if self.longest > self.others:
            raise LocalError(f"longest {self.longest}: a way has at most {self.others} brokers between its ends")

    @property
    def others(self) -> int:
        """All brokers but source and destination."""
        return self.brokers - 2

    @property
    def up(self) -> int:
        """To tell all rendezvous points once."""
        return self.points * self.longest


class Bounds(msgspec.Struct, frozen=True):
    """With everything complete beforehand, and without."""

    upper: int
    lower: int
    incomplete_upper: int
    incomplete_lower: int


def _generic(o: Overlay) -> Bounds:
    upper, lower = (4 + o.pings + 2) * o.others, 2 * o.others + 4 * o.path
    return Bounds(upper, lower, upper, lower)


def _generic_rendezvous(o: Overlay) -> Bounds:
    upper, lower = 2 * o.longest + (o.pings + 4) * o.others, 2 * o.longest + 4 * o.path
    return Bounds(upper, lower, upper, lower)


BOUNDS: dict[Protocol, Callable[[Overlay], Bounds]] = {
    Protocol.GENERIC: _generic,
    Protocol.GENERIC_RENDEZVOUS: _generic_rendezvous,
    Protocol.ACYCLIC_SUBSCRIBER: lambda o: Bounds(o.others, 0, (o.pings + 1) * o.others, o.path),
    Protocol.ACYCLIC_PUBLISHER: lambda o: Bounds(2 * o.others, 0, 2 * o.others, 2 * o.path),
    Protocol.CYCLIC_RENDEZVOUS_SUBSCRIBER: lambda o: Bounds(o.up, 0, 2 * o.up, 0),
    Protocol.CYCLIC_RENDEZVOUS_PUBLISHER: lambda o: Bounds(2 * o.up, 0, 3 * o.up, 0),
    Protocol.ACYCLIC_RENDEZVOUS_SUBSCRIBER: lambda o: Bounds(min(o.up, o.others), 0, min(2 * o.up, 2 * o.others), 0),
    Protocol.ACYCLIC_RENDEZVOUS_PUBLISHER: lambda o: Bounds(
        min(2 * o.up, 2 * o.others), 0, min(3 * o.up, 3 * o.others), 0
    ),
}


def bounds(protocol: Protocol, overlay: Overlay) -> Bounds:
    return BOUNDS[protocol](overlay)

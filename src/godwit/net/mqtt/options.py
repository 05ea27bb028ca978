"""What a front is told by its operator, what it asks of whoever knows the users, and what it counts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from enum import IntFlag
from math import inf

import msgspec

from godwit.net.access import Admitted, Credentials
from godwit.protocols.broker.api import ALL, DEFAULT

log = logging.getLogger("godwit.mqtt")

KIB = 1024
MIB = 1024 * KIB


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What one connection may cost. What a client must know of it is announced in the CONNACK."""

    packet_bytes_max: int = MIB
    inflight_max: int = 1_024
    """Publications above QoS 0 of one client that may wait for their acknowledgement: the receive maximum."""
    inflight_out_max: int = 256
    """Deliveries above QoS 0 under way to one client, if it takes as many."""
    topic_alias_max: int = 64
    """Topic aliases kept for one client, in each direction."""
    keep_alive_max_s: int = 0xFFFF
    """A client that asks for more, or for none, is told this; 65535: as the client likes."""
    session_expiry_max_s: float = inf
    handoff_wait_s: float = 10.0
    """How long a client waits for its session, and what it says for what it has said elsewhere, at most."""
    client_id_bytes_max: int = 512
    connect_wait_s: float = 10.0
    """How long a connection may be open before it has said CONNECT; a WebSocket so long twice."""
    filters_per_packet_max: int = 256
    """Topic filters in one SUBSCRIBE; those beyond are refused, one by one."""
    origins: tuple[str, ...] = ()
    """Web pages that may connect, as `https://fleet.example`, beside those of the broker's own address; `*`: all."""
    packets_per_s: float = inf
    bytes_per_s: float = inf
    burst_s: float = 2.0
    """How many seconds' worth of packets and bytes may come at once."""
    output_bytes_max: int = 8 * MIB
    """What may wait for a client that does not read; QoS 0 beyond it is dropped."""
    backlog_bytes_max: int = 256 * MIB
    """What may wait for all clients together. Where it would be more, each of those that do not read gets an equal
    share of it, and loses QoS 0 beyond that."""
    stall_s: float = 60.0
    """How long a client may take nothing at all of what waits for it."""


Authenticate = Callable[[Credentials], Admitted | Awaitable[Admitted]]
"""Whoever knows the users: lets a client in with its rights, or raises `RefusedError`; at once or later."""


def admit_all(who: Credentials) -> Admitted:
    return Admitted(who.user or "", ALL, DEFAULT)


class Counts(msgspec.Struct):
    """Since the front began; others read it."""

    connections: int = 0
    """Open at this moment."""
    connected: int = 0
    """Clients let in."""
    refused: int = 0
    """Clients not let in."""
    packets_in: int = 0
    packets_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    publishes_in: int = 0
    malformed: int = 0
    """Connections that ended for what their client sent."""
    handshakes_failed: int = 0
    """Connections with which there was no TLS."""
    dropped: dict[str, int] = {}
    """Publications not delivered, by reason."""

    def drop(self, reason: str, count: int = 1) -> None:
        """Counted each time, and told when there are ten times as many: a flood must not cost a line each."""
        before = self.dropped.get(reason, 0)
        after = self.dropped[reason] = before + count
        if not before or len(str(after)) > len(str(before)):
            log.warning("dropped %d so far: %s", after, reason, extra={"dropped": after, "why": reason})


class Hold(IntFlag):
    """Why a client is not read at the moment; it is read again when no reason is left."""

    NONE = 0
    OPENING = 1
    """It is not in yet, and has said much already."""
    INFLIGHT = 2
    """It waits for too many acknowledgements."""
    OUTPUT = 4
    """It does not read what it is answered."""
    TURN = 8
    """It has said more than fits into its share of a turn."""


class Bucket:
    """Holds what comes in `burst_s` seconds; full at first."""

    __slots__ = ("_left", "_most", "_rate_per_s", "_time")

    def __init__(self, rate_per_s: float, burst_s: float, now: float) -> None:
        self._rate_per_s = rate_per_s
        self._most = self._left = rate_per_s * burst_s
        self._time = now

    def take(self, amount: float, now: float) -> bool:
        """False where there was not enough."""
        left = min(self._left + (now - self._time) * self._rate_per_s, self._most) - amount
        self._left, self._time = left, now
        return left >= 0

"""What happened to each publication, recorded while an operator wants it: who published, who got it, what was dropped.

The last `RECORDS_MAX` facts stay in memory. A broker whose archive keeps traces records always; one that does not is
asked to for a while, since every delivery then costs a record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from godwit.net.admin.rows import TraceRow
from godwit.net.host import AsyncHost
from godwit.protocols.broker.broker import Broker
from godwit.protocols.host import NodeId, Record

RECORDS_MAX = 50_000
RECORD_S_MAX = 3600.0
ABOUT_CLIENT = ("attached", "detached", "moved", "copied")
SHOWN_MAX = 50


class Trail:
    """`now` is the calendar; `later(seconds, call)` is the loop's."""

    def __init__(
        self,
        broker: Broker,
        host: AsyncHost,
        now: Callable[[], float],
        later: Callable[[float, Callable[[], None]], Any],
    ) -> None:
        self._broker = broker
        self._host = host
        self._now = now
        self._later = later
        self._always = broker.is_traced
        self._kept: deque[tuple[float, Record]] = deque(maxlen=RECORDS_MAX)
        self._on = False
        self.since = self.until = 0.0
        if self._always:
            self._begin()
            self.until = float("inf")

    def record(self, seconds: float) -> None:
        """From now on for so long; 0 ends it."""
        if self._always:
            return
        if not seconds:
            self._end()
            return
        self.until = self._now() + min(seconds, RECORD_S_MAX)
        if not self._on:
            self._kept.clear()
            self._begin()
            self._broker.trace(True)
        self._later(min(seconds, RECORD_S_MAX), self._review)

    def _begin(self) -> None:
        self._on, self.since = True, self._now()
        self._host.sinks.append(self._take)

    def _end(self) -> None:
        """What was recorded stays."""
        if self._on:
            self._on, self.until = False, 0.0
            self._host.sinks.remove(self._take)
            if not self._always:
                self._broker.trace(False)

    def stop(self) -> None:
        self._end()

    def _review(self) -> None:
        if self._on and self._now() >= self.until - 0.01:
            self._end()

    def _take(self, time_s: float, node: NodeId, record: Record) -> None:
        self._kept.append((time_s, record))

    def about(self, client: str, event: tuple[str, int]) -> list[TraceRow]:
        """What is known of the event and the client together, and of the client's comings and goings."""
        found = [
            _row(time_s, record)
            for time_s, record in self._kept
            if (record.event == event and record.client in (client, event[0]))
            or (record.client == client and record.kind in ABOUT_CLIENT)
        ]
        return found[-SHOWN_MAX:]


def _row(time_s: float, record: Record) -> TraceRow:
    return TraceRow(time=time_s, kind=record.kind, client=record.client, peer=record.peer, note=record.note)

"""Who has gone without a word: pings, and what their absence means (spec proactive-handoff 1.3 A5, 2.1)."""

from __future__ import annotations

from collections.abc import Callable

from godwit.protocols.handoff_schemes.messages import Ping, Pong
from godwit.protocols.host import Host, NodeId, Timer


class SubscriberMonitor:
    """Calls `on_lost(subscriber)` once so many pings in a row have found no answer."""

    def __init__(self, host: Host, on_lost: Callable[[NodeId], None], *, ping_s: float = 0.1, misses: int = 2) -> None:
        self.host = host
        self.on_lost = on_lost
        self.ping_s = ping_s
        self.misses = misses
        self._unanswered: dict[NodeId, int] = {}
        self._timers: dict[NodeId, Timer] = {}

    def watch(self, subscriber: NodeId) -> None:
        self.forget(subscriber)
        self._unanswered[subscriber] = 0
        self._ping(subscriber)

    def forget(self, subscriber: NodeId) -> None:
        self._unanswered.pop(subscriber, None)
        if timer := self._timers.pop(subscriber, None):
            timer.cancel()

    def heard(self, message: Pong) -> None:
        if message.subscriber in self._unanswered:
            self._unanswered[message.subscriber] = 0

    def closed(self, subscriber: NodeId) -> None:
        """Its connection has broken, which says as much as all missing answers."""
        if subscriber in self._unanswered:
            self.forget(subscriber)
            self.on_lost(subscriber)

    def _ping(self, subscriber: NodeId) -> None:
        if self._unanswered[subscriber] >= self.misses:
            self.closed(subscriber)
            return
        self._unanswered[subscriber] += 1
        self.host.send(subscriber, Ping(subscriber))
        self._timers[subscriber] = self.host.after(self.ping_s, lambda: self._ping(subscriber))

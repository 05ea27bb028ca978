"""`rate(0.1)` in a subscription: of each topic at most one delivery in ten seconds, and then the newest.

What is too early is kept until its time has come, on the disk where the session is; the next of the topic takes its
place. While a client is away all that it wants waits, and when it is back only the newest of each topic is left.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from godwit.protocols.broker.interest.subscribers import Apart
from godwit.protocols.broker.session.queue import Deliveries
from godwit.protocols.broker.session.rows import Ledger
from godwit.protocols.broker.session.state import Item, Session, Sub
from godwit.protocols.host import Host, Timer

TIMER_MIN_S = 0.001
TIMER_MAX_S = 3_600.0


class Turn:
    """When the next of one topic may be delivered to one session, and what waits for that."""

    __slots__ = ("item", "not_before")

    def __init__(self, not_before: float) -> None:
        self.not_before = not_before
        self.item: Item | None = None


Key = tuple[str, str]
"""A subscription, and a topic."""


class Paces:
    """`wake` when a client is connected and `sleep` when it is not; between them `take` all that is its."""

    def __init__(self, host: Host, flows: Deliveries, ledger: Ledger, steady: Callable[[], float]) -> None:
        self.host = host
        self.flows = flows
        self.ledger = ledger
        self.steady = steady
        self.subs = Apart()
        self._turns: dict[Session, dict[Key, Turn]] = {}
        self._due: list[tuple[float, int, Session, Key]] = []
        self._dues = 0
        self._timer: tuple[float, Timer] | None = None

    def end(self, sub: Sub) -> None:
        """What is kept of it goes."""
        turns = self._turns.get(sub.session, {})
        for key in [key for key in turns if key[0] == sub.wanted.key]:
            item = turns.pop(key).item
            if item is not None:
                self.ledger.delete_item(sub.session, item)
        if not turns:
            self._turns.pop(sub.session, None)

    def take(self, session: Session, item: Item) -> None:
        """It is the session's: now, or when its time has come."""
        sub, key = session.subscriptions.get(item.pace), (item.pace, item.label.topic)
        if session.outlet is None or sub is None or not sub.interval_s:
            self._give(session, item)
            return
        turns, now = self._turns.setdefault(session, {}), self.steady()
        turn = turns.get(key)
        if turn is None or (turn.not_before <= now and turn.item is None):
            turns[key] = Turn(now + sub.interval_s)
            self._look_again(now + sub.interval_s, session, key)
            self._give(session, item)
            return
        if turn.item is not None:
            self.ledger.delete_item(session, turn.item)
        turn.item = item
        if session.durable and item.qos:
            self.ledger.put_item(session, item)

    def _give(self, session: Session, item: Item) -> None:
        if item.qos:
            self.flows.take(session, item)
        else:
            self.flows.pass_on(session, item.label, item.retain, item.identifiers)

    def wake(self, session: Session) -> None:
        """Of what waits for its client only the newest of each topic is left; the next must wait its time."""
        self.flows.keep_newest(session)
        now = self.steady()
        for item in session.queue.waiting:
            sub = session.subscriptions.get(item.pace)
            if sub is not None and sub.interval_s:
                key = (item.pace, item.label.topic)
                self._turns.setdefault(session, {})[key] = Turn(now + sub.interval_s)
                self._look_again(now + sub.interval_s, session, key)

    def sleep(self, session: Session) -> None:
        """What was too early waits like anything else, and goes along with the session."""
        for turn in self._turns.pop(session, {}).values():
            if turn.item is not None and turn.item.qos:
                self.flows.take(session, turn.item)

    def _look_again(self, at: float, session: Session, key: Key) -> None:
        self._dues += 1
        heappush(self._due, (at, self._dues, session, key))
        self._set_timer()

    def _set_timer(self) -> None:
        if not self._due or (self._timer is not None and self._timer[0] <= self._due[0][0]):
            return
        if self._timer is not None:
            self._timer[1].cancel()
        first = self._due[0][0]
        delay_s = min(max(first - self.steady(), TIMER_MIN_S), TIMER_MAX_S)
        self._timer = first, self.host.after(delay_s, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        now = self.steady()
        while self._due and self._due[0][0] <= now:
            _, _, session, key = heappop(self._due)
            turn = self._turns.get(session, {}).get(key)
            if turn is None or turn.not_before > now:
                continue
            del self._turns[session][key]
            if turn.item is not None:
                self.take(session, turn.item)
        self._set_timer()

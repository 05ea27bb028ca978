"""`rate(0.1)` in a subscription: of each topic at most one delivery in ten seconds, and then the newest.

What is too early is kept until its time has come, on the disk where the session is; the next of the topic takes its
place. An interval begins when a delivery leaves: it may have waited for the disk, or for a slow client. While a client
is away all that it wants waits, and when it is back only the newest of each topic is left. What is at QoS 0 may be lost
at any moment, so it takes no other's place: it follows after what is surer.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf

from godwit.protocols.broker.interest.subscribers import Apart
from godwit.protocols.broker.session.queue import Deliveries
from godwit.protocols.broker.session.rows import Ledger
from godwit.protocols.broker.session.state import Item, Session, Sub
from godwit.protocols.host import Host, Timer

TIMER_MIN_S = 0.001
TIMER_MAX_S = 3_600.0


class Turn:
    """When the next of one topic may be delivered to one session, and what waits for that."""

    __slots__ = ("given", "item", "not_before", "unsure")

    def __init__(self, given: Item | None) -> None:
        self.given = given
        """What has not left yet."""
        self.not_before = inf
        """Until it leaves, nobody knows."""
        self.item: Item | None = None
        self.unsure: Item | None = None
        """Newer than what waits, and at QoS 0 where that is not."""

    def replaces(self, item: Item) -> bool:
        """Whether what waits is newer than this one, and as sure."""
        return self.item is not None and (self.item.qos > 0 or not item.qos)


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
        flows.pacing = self

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
        turn = self._turns.setdefault(session, {}).get(key)
        if turn is None or (turn.not_before <= self.steady() and turn.item is None):
            self._begin(session, key, item, sub.interval_s)
            self._give(session, item)
            return
        if turn.item is not None and turn.item.qos and not item.qos:
            turn.unsure = item
            return
        if turn.item is not None:
            self.ledger.delete_item(session, turn.item)
        turn.item, turn.unsure = item, None
        if session.durable and item.qos:
            self.ledger.put_item(session, item)

    def _begin(self, session: Session, key: Key, item: Item, interval_s: float) -> None:
        """It is to leave; look whether it has."""
        self._turns.setdefault(session, {})[key] = Turn(item)
        self._look_again(self.steady() + interval_s, session, key)

    def _give(self, session: Session, item: Item) -> None:
        if item.qos:
            self.flows.take(session, item)
        else:
            label = item.label
            repeats = label.qos > 0 or label.retain or label.passage is not None
            self.flows.pass_on_once(session, label, item.retain, item.identifiers, repeats, item.pace)

    def left(self, session: Session, pace: str, topic: str) -> None:
        """It is on its way to the client: the next must wait its time."""
        sub, key = session.subscriptions.get(pace), (pace, topic)
        if sub is None or not sub.interval_s or session.outlet is None:
            return
        turn = self._turns.setdefault(session, {}).setdefault(key, Turn(None))
        turn.given, turn.not_before = None, self.steady() + sub.interval_s
        self._look_again(turn.not_before, session, key)

    def is_replaced(self, session: Session, item: Item) -> bool:
        """Whether it may not leave any more, since a newer one is here."""
        turn = self._turns.get(session, {}).get((item.pace, item.label.topic))
        return turn is not None and turn.given is item and turn.replaces(item)

    def dropped(self, session: Session, item: Item) -> None:
        """It will not leave, and the next takes its place."""
        turns, key = self._turns.get(session, {}), (item.pace, item.label.topic)
        turn = turns.get(key)
        if turn is not None and turn.given is item:
            del turns[key]
            self._take_next(session, turn)

    def _take_next(self, session: Session, turn: Turn) -> None:
        for item in (turn.item, turn.unsure):
            if item is not None:
                self.take(session, item)

    def wake(self, session: Session) -> None:
        """Of what waits for its client only the newest of each topic is left; the next must wait its time."""
        self.flows.keep_newest(session)
        for item in session.queue.waiting:
            sub = session.subscriptions.get(item.pace)
            if sub is not None and sub.interval_s:
                self._begin(session, (item.pace, item.label.topic), item, sub.interval_s)

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
            turn, sub = self._turns.get(session, {}).get(key), session.subscriptions.get(key[0])
            if turn is None or sub is None or now < turn.not_before < inf:
                continue
            if turn.given is not None and self.flows.is_to_leave(session, turn.given):
                self._look_again(now + sub.interval_s, session, key)
                continue
            del self._turns[session][key]
            self._take_next(session, turn)
        self._set_timer()

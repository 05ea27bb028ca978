"""How deliveries reach clients: windows, packet identifiers, the two handshakes of MQTT, and what must wait for the
disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from godwit.filters.filters import FilterSet
from godwit.protocols.broker.api import Delivery, Outlet
from godwit.protocols.broker.messages import Name, Stamp
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.counts import Counts
from godwit.protocols.broker.session.memory import note
from godwit.protocols.broker.session.rows import DONE_WITH, Ledger
from godwit.protocols.broker.session.state import NUMBER_MAX, Item, Queue, Session, name_of
from godwit.protocols.broker.vacant import own
from godwit.protocols.host import Host, Record

BOUNDS = ("queue", "age")
"""Why something is dropped though client and publisher would have it: too much waits, or too long."""


WINDOW_B_MAX = 8 * 1024 * 1024
"""What is under way to one client and not acknowledged; one delivery may always be, whatever its size."""

LAUNCHING_MAX = 32
"""So many of one session wait for the disk at once: the first of a backlog need not wait until all have numbers."""


class Passing(NamedTuple):
    """A delivery at QoS 0 that waits for the disk."""

    session: Session
    outlet: Outlet
    publication: Publication
    retain: bool
    identifiers: tuple[int, ...]
    pace: str


class Pacing(Protocol):
    """Follows what has a pace."""

    def left(self, session: Session, pace: str, topic: str) -> None:
        """One of this topic is on its way to the client."""

    def is_replaced(self, session: Session, item: Item) -> bool:
        """Whether a newer one is to leave in its place."""

    def dropped(self, session: Session, item: Item) -> None:
        """It will not leave."""


class Deliveries:
    """What needs no disk never waits for one: QoS 1, what was published at QoS 0, and everything above that to sessions
    that end with the connection.

    Whatever else goes to one client above QoS 0 keeps its order: what could leave waits behind what cannot yet.
    `on_bound(session, reason)` is called when a bound drops the first of a session for that reason.
    """

    def __init__(self, host: Host, ledger: Ledger, counts: Counts, clock: Callable[[], float], tracing: bool) -> None:
        self.host = host
        self.ledger = ledger
        self.counts = counts
        self.clock = clock
        self.tracing = tracing
        self.on_bound: Callable[[Session, str], None] = lambda session, reason: None
        self.on_room: Callable[[Session], None] = lambda session: None
        """Called when nothing waits for the client of a session with views or replays."""
        self.pacing: Pacing | None = None
        self._steps: list[tuple[Session, Outlet, Item]] = []
        self._completed: list[tuple[Session, Outlet, int]] = []
        self._passing: list[Passing] = []
        self._behind: dict[Session, deque[Publication]] = {}
        """What is to be delivered to a session at QoS 0 and waits for the disk, in its order."""

    @property
    def is_behind(self) -> bool:
        """Whether deliveries at QoS 0 wait for the disk."""
        return bool(self._behind)

    def names(self, session: Session, qos: int) -> set[Name]:
        """Of all that waits for the client, as far as who asks at this QoS need not get it again. What waits for the
        disk at QoS 0 is lost where the connection is, so that it counts only where QoS 0 is all that is asked for."""
        behind = self._behind.get(session, ())
        return {*session.queue.names(), *(name_of(one) for one in behind if not min(one.qos, qos))}

    def pass_on(
        self,
        session: Session,
        publication: Publication,
        retain: bool,
        identifiers: tuple[int, ...],
        view: str = "",
        pace: str = "",
    ) -> None:
        """QoS 0: now or never."""
        outlet = session.outlet
        if outlet is None:
            self._drop(session, publication, "offline")
        elif publication.expires is not None and publication.expires <= self.clock():
            self._drop(session, publication, "expired")
        else:
            outlet.deliver(Delivery(publication, 0, retain, identifiers, view=view))
            self._delivered(session, publication, 0)
            if pace and self.pacing is not None:
                self.pacing.left(session, pace, publication.topic)

    def pass_on_once(
        self,
        session: Session,
        publication: Publication,
        retain: bool,
        identifiers: tuple[int, ...],
        is_repeated: bool,
        pace: str = "",
    ) -> None:
        """QoS 0 of what whoever has sent it may repeat after a crash: when the disk knows that it has come, or never.
        So it comes at most once. What is not repeated does not overtake that."""
        if session.outlet is None or not (is_repeated or session in self._behind):
            self.pass_on(session, publication, retain, identifiers, pace=pace)
        else:
            self._later()
            self._passing.append(Passing(session, session.outlet, publication, retain, identifiers, pace))
            self._behind.setdefault(session, deque()).append(publication)

    def take(self, session: Session, item: Item) -> None:
        """Above QoS 0: it is the session's from now on."""
        outlet, queue = session.outlet, session.queue
        if outlet is None or queue.waiting or queue.unsent or not _has_room(session, outlet):
            self._wait_all(session, (item,))
            return
        self.counts.waiting += 1
        if self._is_expired(item.label):
            self._dropped(session, item, "expired")
        else:
            self._give_number(session, item)
            if session.durable:
                self.ledger.put_item(session, item)
            self._send(session, outlet, item)

    def is_to_leave(self, session: Session, item: Item) -> bool:
        """Whether it has been taken, and waits for the disk or for the client."""
        if not item.qos:
            return session in self._behind
        return not item.sent and (session.queue.flying.get(item.number) is item or item in session.queue.waiting)

    def take_all(self, session: Session, items: Sequence[Item]) -> list[int]:
        """At QoS 1, and nothing of it expires: as `take` for each. The first of them leave at once, as far as the
        window allows: their packet identifiers. Who calls this sends them."""
        outlet, queue, numbers = session.outlet, session.queue, list[int]()
        if outlet is not None and not self._must_queue(queue) and outlet.takes_more():
            numbers = self._numbered(session, items[: max(0, session.inflight_max - queue.window)])
            self.counts.waiting += len(numbers)
            self.counts.delivered[1] += len(numbers)
        left = items[len(numbers) :]
        if outlet is None or queue.waiting or queue.unsent or (left and not _has_room(session, outlet)):
            self._wait_all(session, left)
        else:
            for item in left:
                self.take(session, item)
        return numbers

    @staticmethod
    def _must_queue(queue: Queue) -> bool:
        """Whether what comes cannot simply be numbered and leave."""
        return bool(queue.waiting or queue.unsent or queue.launching or queue.doubted)

    @staticmethod
    def must_wait(session: Session) -> bool:
        """Whether it is durable, and others wait or nobody is there."""
        queue = session.queue
        return session.durable and (session.outlet is None or bool(queue.waiting or queue.unsent))

    def wait_together(
        self, session: Session, publications: Sequence[Publication], stamp: Stamp | None, since: float
    ) -> None:
        """At QoS 1 for a session of which all that comes `must_wait`, and nothing of it expires: as `take_all`, for
        half the cost. What it says is on the disk only, until it is about to leave."""
        self.counts.waiting += len(publications)
        for chunk in self.ledger.put_together(session, publications, stamp, since):
            session.queue.wait_together(chunk)
        self._bound(session)

    def _wait_all(self, session: Session, items: Sequence[Item]) -> None:
        """They wait for the client, as far as its bounds allow."""
        queue, ledger, memory_max = session.queue, self.ledger, session.limits.queue_memory_max
        self.counts.waiting += len(items)
        if session.durable:
            for item in items:
                ledger.put_item(session, item)
        queue.wait(items)
        for item in items:
            queue.waiting_b += item.size_b
            if queue.waiting_b > memory_max:
                ledger.spill(session, item)
        self._bound(session)

    def _numbered(self, session: Session, items: Sequence[Item]) -> list[int]:
        """Those that are under way from now on."""
        queue, durable, numbers = session.queue, session.durable, list[int]()
        flying = queue.flying = own(queue.flying)
        number, window_b = queue.number, queue.window_b
        for item in items:
            if window_b >= WINDOW_B_MAX:
                break
            number = number % NUMBER_MAX + 1
            while number in flying:
                number = number % NUMBER_MAX + 1
            item.number, item.out, item.sent = number, True, True
            flying[number] = item
            window_b += item.size_b
            numbers.append(number)
            if durable:
                self.ledger.put_item(session, item)
        queue.number, queue.window_b, queue.window = number, window_b, queue.window + len(numbers)
        return numbers

    def acknowledged_all(self, session: Session, numbers: Sequence[int]) -> None:
        """As `acknowledged` for each of them."""
        queue = session.queue
        if queue.doubted:
            for number in numbers:
                self._trust(session, number)
        flying, count, window, window_b = queue.flying, 0, 0, 0
        for number in numbers:
            item = flying.pop(number, None)
            if item is not None:
                count += 1
                if item.out:
                    window += 1
                    window_b += item.size_b
                if item.position or item.away is not None:
                    self.ledger.delete_item(session, item)
        if count:
            queue.window -= window
            queue.window_b -= window_b
            self.counts.waiting -= count
            self._answered(session)
            self.pump(session)

    def acknowledged(self, session: Session, number: int) -> bool:
        self._trust(session, number)
        item = session.queue.flying.pop(number, None)
        if item is None:
            return False
        self._answered(session)
        session.queue.window -= item.out
        session.queue.window_b -= item.size_b if item.out else 0
        self.counts.waiting -= 1
        self.ledger.delete_item(session, item)
        self.pump(session)
        return True

    def received(self, session: Session, number: int) -> bool:
        found = self.received_all(session, (number,))
        if found and session.outlet is not None and found[0][1]:
            session.outlet.release(number)
        return not found or found[0][1]

    def received_all(self, session: Session, numbers: Sequence[int]) -> list[tuple[int, bool]]:
        """QoS 2, second step. Of what needs no disk the caller says the next one: those numbers, and whether there is
        such a delivery. Of all others `outlet.release` follows."""
        queue, outlet, found = session.queue, session.outlet, list[tuple[int, bool]]()
        must_wait = session.durable or queue.launching > 0
        for number in numbers:
            if queue.doubted:
                self._trust(session, number)
            item = queue.flying.get(number)
            if item is None or item.qos != 2:
                found.append((number, False))
                continue
            if not item.received:
                self._answered(session)
                self._finish(session, item)
            if outlet is None:
                continue  # the session is somebody else's by now
            if must_wait:
                self._step(session, outlet, item)
            else:
                found.append((number, True))
        return found

    def _trust(self, session: Session, number: int) -> None:
        """The client acknowledges what may have been in doubt: it has had it here, so that it must not come again."""
        item, memory = session.queue.doubted.get(number), session.carried.memory
        if item is None:
            return
        if memory is not None and item.name is not None:
            note(memory, (item.name,))
            self.ledger.put_session(session)
        self._restore(session, item)

    def is_under_way(self, session: Session, item: Item) -> bool:
        """Whether what another session still had is what was in doubt here. Then that is the client's, and goes on as
        it has begun."""
        queue = session.queue
        old = next((one for one in queue.doubted.values() if one.name == item.name), None)
        if old is None:
            return False
        self._restore(session, old)
        if session.outlet is not None and not old.out:
            queue.unsent = deque((*queue.unsent, old))
            self.pump(session)
        return True

    def _restore(self, session: Session, item: Item) -> None:
        del session.queue.doubted[item.number]
        session.queue.fly(item)
        self.counts.waiting += 1
        if session.durable:
            self.ledger.put_item(session, item)

    def _finish(self, session: Session, item: Item) -> None:
        """The client has it: only its number is left."""
        item.received, item.safe = True, False
        if item.away is not None:
            item.discard()
        item.label = DONE_WITH
        if item.position:
            self.ledger.let_go(item)
            self.ledger.put_item(session, item)

    def _answered(self, session: Session) -> None:
        """Only of a session that others may go into does anybody ask this. There it becomes durable with the
        acknowledgement: after a crash the one must not be known without the other."""
        if session.carried.strange or not session.standing.answered:
            asked_for = session.carried.strange or session.carried.memory is not None
            session.standing.answered, session.carried.strange = True, False
            if asked_for:
                self.ledger.put_session(session)

    def released(self, session: Session, number: int) -> bool:
        known, outlet = number in session.queue.incoming, session.outlet
        if self.released_all(session, (number,)) and outlet is not None:
            outlet.completed(number)
        return known

    def released_all(self, session: Session, numbers: Sequence[int]) -> list[int]:
        """QoS 2, third step of publications. Of what needs no disk the caller says the last one: those numbers. Of all
        others `outlet.completed` follows."""
        incoming, outlet = session.queue.incoming, session.outlet
        if not session.durable:
            for number in numbers:
                incoming.pop(number, None)
            return list(numbers) if outlet is not None else []
        for number in numbers:
            if number in incoming:
                del incoming[number]
                self.ledger.delete_incoming(session, number)
            if outlet is not None:
                # Though it be unknown: it may have been released over another connection, and the disk not know it.
                self._later()
                self._completed.append((session, outlet, number))
        return []

    def number_first(self, session: Session) -> None:
        """The client is about to come: what it will get first has its number from now on. Whoever calls this writes the
        session afterwards, numbers and all, so that nobody needs to wait for the disk a second time."""
        self.keep_newest(session)
        for _ in range(min(LAUNCHING_MAX, len(session.queue.waiting))):
            item = self._next(session)
            if reason := self._staleness(session, item):
                self._dropped(session, item, reason)
            else:
                self._give_number(session, item)

    def attached(self, session: Session) -> None:
        """All that is under way goes again, at once and in order; then what waits."""
        if session.carried.memory is None:
            session.queue.doubted.clear()  # no other session can show any more that it is the client's
        if session.queue.flying:
            session.queue.unsent = deque((*session.queue.unsent, *session.queue.flying.values()))
        self.pump(session)

    def detached(self, session: Session) -> None:
        session.queue.unsent.clear()
        session.queue.window = session.queue.window_b = 0
        for item in (*session.queue.flying.values(), *session.queue.doubted.values()):
            item.out = False

    def pump(self, session: Session) -> None:
        """Send whatever the window allows."""
        outlet, queue = session.outlet, session.queue
        while outlet is not None and queue.launching < LAUNCHING_MAX and (queue.unsent or queue.waiting):
            if not _has_room(session, outlet):
                break
            if queue.unsent:
                item = queue.unsent.popleft()
                if queue.flying.get(item.number) is item:
                    self._send_again(session, outlet, item)
            else:
                self._launch(session, outlet, self._next(session))
        if (session.carried.views or session.carried.replays) and not queue.unsent and not queue.waiting:
            self.on_room(session)

    def takes_more(self, session: Session) -> bool:
        """Whether another delivery would leave at once, or as soon as the disk has it."""
        outlet, queue = session.outlet, session.queue
        if outlet is None or queue.waiting or queue.unsent or queue.launching >= LAUNCHING_MAX:
            return False
        return _has_room(session, outlet)

    def _send_again(self, session: Session, outlet: Outlet, item: Item) -> None:
        """What has a number; though it may have got that for a client that was not let in then, and be stale by now."""
        if item.received and item.qos == 1:
            self._forget(session, item)
        elif not item.sent and (reason := self._staleness(session, item)):
            del session.queue.flying[item.number]
            self._dropped(session, item, reason)
        else:
            self._send(session, outlet, item)

    def _launch(self, session: Session, outlet: Outlet, item: Item) -> None:
        if reason := self._staleness(session, item):
            self._dropped(session, item, reason)
            return
        self._give_number(session, item)
        if session.durable and item.qos == 2:
            self.ledger.put_item(session, item)
        self._send(session, outlet, item)

    def _give_number(self, session: Session, item: Item) -> None:
        if item.away is not None:
            item.bring_back()
        item.number = next_number(session.queue)
        session.queue.fly(item)

    def _send(self, session: Session, outlet: Outlet, item: Item) -> None:
        session.queue.window += 1
        session.queue.window_b += item.size_b
        item.out = True
        self._step(session, outlet, item)

    def _step(self, session: Session, outlet: Outlet, item: Item) -> None:
        """Take the next step now, or when what it rests on is on the disk."""
        # The numbers of changes must be on the disk before anybody sees them, like packet identifiers of QoS 2.
        if session.queue.launching or ((item.qos == 2 or item.view) and not item.safe and session.durable):
            session.queue.launching += 1
            self._later()
            self._steps.append((session, outlet, item))
        else:
            self._emit(session, outlet, item)

    def _emit(self, session: Session, outlet: Outlet, item: Item) -> None:
        if item.received:
            outlet.release(item.number)
            return
        publication, again = item.publication if item.away is not None else item.label, item.sent
        item.sent = True
        outlet.deliver(Delivery(publication, item.qos, item.retain, item.identifiers, item.number, again, item.view))
        if again:
            self.counts.repeated += 1
        else:
            self._delivered(session, publication, item.qos)
        if item.pace and self.pacing is not None:
            self.pacing.left(session, item.pace, publication.topic)

    def _later(self) -> None:
        """Ask for the disk once for all that a turn needs it for."""
        if not self._steps and not self._completed and not self._passing:
            self.host.after(0.0, self._ask)

    def _ask(self) -> None:
        steps, self._steps = self._steps, []
        completed, self._completed = self._completed, []
        passing, self._passing = self._passing, []
        self.ledger.store.settled(partial(self._settled, steps, completed, passing))

    def _settled(
        self,
        steps: list[tuple[Session, Outlet, Item]],
        completed: list[tuple[Session, Outlet, int]],
        passing: list[Passing],
    ) -> None:
        for one in passing:
            self._behind[one.session].popleft()
            if not self._behind[one.session]:
                del self._behind[one.session]
            if one.session.outlet is one.outlet:
                self.pass_on(one.session, one.publication, one.retain, one.identifiers, pace=one.pace)
            else:
                self._drop(one.session, one.publication, "offline")
        for session, outlet, item in steps:
            session.queue.launching -= 1
            item.safe = True
            if session.queue.doubted.get(item.number) is item:
                self._call_back(session.queue, item)
            elif session.outlet is outlet and session.queue.flying.get(item.number) is item:
                self._emit(session, outlet, item)
        for session in dict.fromkeys(session for session, _, _ in steps):
            self.pump(session)
        for session, outlet, number in completed:
            if session.outlet is outlet:
                outlet.completed(number)

    @staticmethod
    def _call_back(queue: Queue, item: Item) -> None:
        """It was in doubt before it has left, and so it does not."""
        del queue.doubted[item.number]
        queue.window -= item.out
        queue.window_b -= item.size_b if item.out else 0

    def _next(self, session: Session) -> Item:
        item = session.queue.waiting.popleft()
        session.queue.waiting_b -= item.size_b
        return item

    def _bound(self, session: Session) -> None:
        limits, now = session.limits, self.clock()
        while session.queue.waiting:
            if len(session.queue.waiting) > limits.queue_max or session.queue.waiting_b > limits.queue_bytes_max:
                reason = "queue"
            elif now - session.queue.waiting[0].since > limits.queue_age_max_s:
                reason = "age"
            else:
                break
            self._dropped(session, self._next(session), reason)

    def take_back(self, session: Session, had: Container[Name | None]) -> None:
        """The client has had these elsewhere: what still waits for it here goes. What has a number here counts as had,
        too. Its number stays in use until the client has released it, or does not know it over another connection."""
        queue = session.queue
        for item in [item for item in queue.waiting if item.name in had]:
            queue.waiting.remove(item)
            queue.waiting_b -= item.size_b
            self.counts.waiting -= 1
            self.counts.late_duplicates += 1
            self.ledger.delete_item(session, item)
        for item in [item for item in queue.flying.values() if item.name is not None and item.name in had]:
            self.counts.late_duplicates += 1
            self._finish(session, item)

    def end_views(self, session: Session) -> None:
        """Its client begins with other views: what is under way of those before is not for it, since it may have been
        told something else under the same numbers. Packet identifiers stay in use until the client has released them.
        Changes of views are under way or nowhere: none of them waits."""
        for item in [item for item in session.queue.flying.values() if item.view and not item.received]:
            self.counts.drop("ended")
            self._finish(session, item)

    def _forget(self, session: Session, item: Item) -> None:
        del session.queue.flying[item.number]
        self.counts.waiting -= 1
        self.ledger.delete_item(session, item)

    def keep_newest(self, session: Session) -> None:
        """Where a subscription has a rate, only the last of each topic is left of what waits for it."""
        if any(sub.interval_s for sub in session.subscriptions.values()):
            newest = {(item.pace, item.label.topic): item for item in session.queue.waiting if item.pace}

            def is_old(item: Item) -> bool:
                return not item.number and newest.get((item.pace, item.label.topic), item) is not item

            self._drop_all(session, "rate", is_old)

    def empty(self, session: Session) -> None:
        """Nothing of it is for the client, as far as it is known here. What is under way over the present connection is
        in doubt."""
        queue = session.queue
        items = [*queue.flying.values(), *queue.waiting]
        doubted = {item.number: item for item in items if item.out and item.name is not None}
        lost = [item for item in items if item.out and item.name is None]
        queue.window -= len(lost)
        queue.window_b -= sum(item.size_b for item in lost)
        queue.clear()
        queue.doubted = {**queue.doubted, **doubted}
        self.counts.waiting -= len(items)
        self.counts.late_duplicates += len(items)
        for item in items:
            if item.out:
                item.bring_back()
            self.ledger.delete_item(session, item)

    def withdraw(self, session: Session, granted: FilterSet) -> None:
        """The client may see no more than this from now on. What has left already cannot be called back."""
        views = {view.name for view in session.carried.views.values()}

        def is_hidden(item: Item) -> bool:
            return item.view not in views if item.view else not granted.matches(item.publication.values())

        self._drop_all(session, "not_authorized", is_hidden)

    def purge(self, session: Session) -> int:
        """Drop what waits for the client, and what is not under way over the present connection; how much it was.
        Changes of views stay: the broker would think that the client knows of them."""
        return self._drop_all(session, "purged", lambda item: not item.view)

    def _drop_all(self, session: Session, reason: str, chosen: Callable[[Item], bool]) -> int:
        queue, before = session.queue, self.counts.waiting
        waiting, flying = list(queue.waiting), list(queue.flying.items())
        kept = [item for item in waiting if not chosen(item)]
        if len(kept) < len(waiting):
            keeps = set(map(id, kept))
            queue.waiting.clear()
            queue.wait(kept)
            for item in waiting:
                if id(item) not in keeps:
                    queue.waiting_b -= item.size_b
                    self._dropped(session, item, reason)
        for number, item in flying:
            if not item.out and not item.received and chosen(item):
                del queue.flying[number]
                if item in queue.unsent:
                    queue.unsent.remove(item)
                self._dropped(session, item, reason)
        return before - self.counts.waiting

    def _staleness(self, session: Session, item: Item) -> str:
        if item.view:
            return ""  # the client would be told less than its view says
        if self._is_expired(item.label):
            return "expired"
        if self.clock() - item.since > session.limits.queue_age_max_s:
            return "age"
        if item.pace and self.pacing is not None and self.pacing.is_replaced(session, item):
            return "rate"
        return ""

    def _is_expired(self, publication: Publication) -> bool:
        return publication.expires is not None and publication.expires <= self.clock()

    def _dropped(self, session: Session, item: Item, reason: str) -> None:
        self.counts.waiting -= 1
        self.ledger.delete_item(session, item)
        self._drop(session, item.label, reason)
        if item.pace and self.pacing is not None:
            self.pacing.dropped(session, item)

    def _drop(self, session: Session, publication: Publication, reason: str) -> None:
        self.counts.drop(reason)
        if reason in BOUNDS:
            session.queue.dropped = own(session.queue.dropped)
            session.queue.dropped[reason] = session.queue.dropped.get(reason, 0) + 1
            if session.queue.dropped[reason] == 1:
                self.on_bound(session, reason)
        if self.tracing:
            self.host.trace(Record("dropped", event=publication.id, client=session.client, note=reason))

    def _delivered(self, session: Session, publication: Publication, qos: int) -> None:
        self.counts.delivered[qos] += 1
        if self.tracing:
            self.host.trace(Record("delivered", event=publication.id, client=session.client))


def _has_room(session: Session, outlet: Outlet) -> bool:
    """Whether another delivery may leave. What cannot waits here, where a bound counts it, and not with the outlet."""
    queue = session.queue
    return queue.window < session.inflight_max and queue.window_b < WINDOW_B_MAX and outlet.takes_more()


def next_number(queue: Queue) -> int:
    """A packet identifier that is free."""
    while True:
        queue.number = queue.number % NUMBER_MAX + 1
        if queue.number not in queue.flying and queue.number not in queue.doubted:
            return queue.number

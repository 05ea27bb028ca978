"""Subscriptions that want what was published before them: the archives first, then what comes (docs/lasting.md).

Each broker has an archive of what its own clients published. They are read at the pace of the client, and given in the
order of time; what a broker sends meanwhile is left out, since it is in its archive too. When all has been read a
broker sends the rest, and says in its stream that this was all: what comes behind that is the session's. How far a
subscription has come goes along with its session, on the disk and to other brokers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import msgspec

from godwit.protocols.broker.api import RetainHandling, Subscription
from godwit.protocols.broker.fabric.base import ANYTHING, Fabric
from godwit.protocols.broker.fabric.passages import entrance
from godwit.protocols.broker.interest.subscribers import Apart
from godwit.protocols.broker.lasting.past import BEGINNING, Recollection
from godwit.protocols.broker.lasting.words import REPLAYED
from godwit.protocols.broker.messages import Line, Recall, Recalled, Replay
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.counts import Counts
from godwit.protocols.broker.session.memory import born_of_session, wants
from godwit.protocols.broker.session.parse import filters_of
from godwit.protocols.broker.session.queue import Deliveries
from godwit.protocols.broker.session.rows import Ledger
from godwit.protocols.broker.session.state import Item, Session, Sub, name_of
from godwit.protocols.broker.vacant import own
from godwit.protocols.host import Host, NodeId, Timer

SILENT_S = 5.0
"""Who has not answered for so long is not waited for: what it has comes when it answers, after what others had."""
SILENT_MAX_S = 60.0
AGAIN_S = 0.2
"""How often one that had nothing more is asked again."""
PER_S = 2_000.0
"""So many rows all clients of a broker together get of the past."""
PACE_S = 0.05
"""How often it is dealt out what they may have."""
AHEAD_MAX = 256
"""So many names are remembered of what was read while the same may still be passed on. They are in the session's row,
which is written with each of them."""


class Switching(Protocol):
    """What replays need of the switch."""

    def take(self, session: Session, item: Item, origin: NodeId = "") -> None:
        """It is the session's."""

    def restate(self) -> int:
        """The number of the statement in which all is that clients want."""

    def is_taken(self, session: Session, origin: NodeId, key: str) -> bool:
        """Whether what that broker sends from now on, and the subscription wants, is the session's at this place."""

    def caught_up(self, sub: Sub) -> None:
        """It is a subscription like any other from now on."""


class Head:
    """What is next of one broker's archive."""

    __slots__ = ("answered_s", "asked_s", "final_s", "patience_s", "position", "rows", "serial", "until")

    def __init__(self) -> None:
        self.rows: deque[tuple[int, Publication]] = deque()
        self.position = BEGINNING
        """Up to where has been read."""
        self.until = 0.0
        """Nothing else was there up to then; 0: there is more, or nobody has said."""
        self.serial = 0
        """Of the question that is open; 0: none is."""
        self.asked_s = 0.0
        self.answered_s = 0.0
        self.patience_s = SILENT_S
        self.final_s = -AGAIN_S
        """When it was last asked for all that is left."""

    def is_silent(self, now_s: float) -> bool:
        return self.serial > 0 and (self.patience_s > SILENT_S or now_s - self.asked_s >= self.patience_s)


class Reading:
    """A subscription with a replay whose client is connected here."""

    __slots__ = ("allowed", "heads", "is_placed", "replay", "sub")

    def __init__(self, sub: Sub, replay: Replay) -> None:
        self.sub = sub
        self.replay = replay
        self.heads: dict[NodeId, Head] = {}
        self.allowed = 0.0
        """Rows that it may be given at once."""
        self.is_placed: bool | None = None
        """Whether all who match know what it wants; None: nobody has asked."""

    @property
    def session(self) -> Session:
        return self.sub.session


class Replays:
    """`wake` when a client is connected and `sleep` when it is not; `tell` when it has room."""

    def __init__(
        self,
        host: Host,
        fabric: Fabric,
        flows: Deliveries,
        ledger: Ledger,
        counts: Counts,
        steady: Callable[[], float],
        recollection: Recollection,
        switch: Switching,
    ) -> None:
        self.host = host
        self.name = host.name
        self.fabric = fabric
        self.flows = flows
        self.ledger = ledger
        self.counts = counts
        self.steady = steady
        self.recollection = recollection
        self.switch = switch
        self.per_s = PER_S
        self.place: Callable[[Sub, Callable[[bool], None]], None] | None = None
        """In a ring: see to it that all who match know of a subscription, and that all of them are known here."""
        self.subs = Apart()
        """Those that have not had all of the past: of sessions here, of shadows and of copies."""
        self._readings: dict[tuple[str, str], Reading] = {}
        """By client and subscription."""
        self._of: dict[Session, dict[Reading, None]] = {}
        self._serial = 0
        self._held_back: dict[Reading, None] = {}
        """Those that have had their share."""
        self._dealt_s = 0.0
        self._timer: tuple[float, Timer] | None = None
        self._waiting: dict[Reading, None] = {}
        """To be looked at when the timer fires."""

    # Who wants what is past.

    def begin(self, session: Session, wanted: Subscription, old: Sub | None) -> None:
        """It is about to be subscribed to. A client that wants nothing again goes on as it is."""
        goes_on = old is not None and is_alike(old.wanted, wanted) and wanted.retain_handling is RetainHandling.IF_NEW
        replays = session.carried.replays
        if wanted.since is not None and not goes_on:
            replay = Replay(wanted.since, born=born_of_session(session.carried))
            # Of older sessions' that are kept back nothing is given that can be read (`brings`).
            kept_back = (some for origin, some in session.inflow.held.items() if origin in session.inflow.gates)
            held = (item.name for some in kept_back for item in some)
            replay.had = self.flows.names(session, wanted.qos) | {name for name in held if name is not None}
            replay.early = any(way.main for way in session.inflow.upstreams)
            session.carried.replays = own(replays)
            session.carried.replays[wanted.key] = replay
            self._keep(session)  # with the subscription: after a crash there are both, or none
        elif wanted.since is None and replays.pop(wanted.key, None) is not None:
            self._keep(session)

    def start(self, sub: Sub) -> None:
        """Its client is connected; nothing happens where the subscription has had all."""
        session, key = sub.session, sub.wanted.key
        replay = session.carried.replays.get(key)
        if replay is None or sub not in self.subs or session.outlet is None:
            return
        self.stop(sub)
        reading = self._readings[session.client, key] = Reading(sub, replay)
        self._of.setdefault(session, {})[reading] = None
        self._look_again(reading, 0.0)

    def end(self, sub: Sub) -> None:
        """It is not subscribed to any longer."""
        if sub.session.carried.replays.pop(sub.wanted.key, None) is not None:
            self._keep(sub.session)

    def wake(self, session: Session) -> None:
        for key in list(session.carried.replays):
            sub = session.subscriptions.get(key)
            if sub is not None:
                self.start(sub)

    def sleep(self, session: Session) -> None:
        """What was read and not given is read again."""
        for reading in list(self._of.get(session, ())):
            self.stop(reading.sub)

    def stop(self, sub: Sub) -> None:
        """Nothing happens where nothing is read for it."""
        reading = self._readings.get((sub.session.client, sub.wanted.key))
        if reading is not None and reading.sub is sub:
            del self._readings[sub.session.client, sub.wanted.key]
            self._waiting.pop(reading, None)
            readings = self._of[sub.session]
            del readings[reading]
            if not readings:
                del self._of[sub.session]

    # What comes meanwhile.

    def wanting(self, origin: NodeId, publication: Publication) -> list[Sub]:
        """Those for whom it is as it comes: they have had all of its broker's archive, or it is not in there."""
        subs = self.subs.wanting(publication)
        passage = publication.passage
        if passage is not None and entrance(passage) != origin:
            return subs
        return [sub for sub in subs if _is_live(sub, origin)]

    def brings(self, session: Session, born: Line, item: Item) -> bool:
        """Whether the session reads this in an archive. Its client was told that it has none, and asked for the past
        again, since the session that kept it began."""
        if item.stamp is None:
            return False
        origin, publication = item.stamp[0], item.publication
        for key, replay in session.carried.replays.items():
            sub = session.subscriptions.get(key)
            is_ahead = born < replay.born and origin not in replay.live and publication.time >= replay.since
            if is_ahead and sub is not None and wants(sub, publication):
                return True
        return False

    def admits(self, session: Session, item: Item) -> bool:
        """Whether what is passed on from where the session was is news to it. If so it is not read any more: whoever
        asks must give it to the session."""
        origin, number = item.stamp or ("", 0)
        if not number:
            return True  # it was read there, or nobody can read it
        for key, replay in session.carried.replays.items():
            sub = session.subscriptions.get(key)
            if not replay.early or origin in replay.live or sub is None or not wants(sub, item.publication):
                continue
            name = name_of(item.publication)
            if name in replay.ahead:
                return False
            replay.had.add(name)
            self._keep(session)
        return True

    # What is past.

    def tell(self, session: Session) -> None:
        """As much as its client takes now."""
        for reading in list(self._of.get(session, ())):
            self._work(reading)

    def _work(self, reading: Reading) -> None:
        replay, heads, now_s = reading.replay, reading.heads, self.host.now()
        origins = sorted({self.name, *self.fabric.sources(ANYTHING)} - replay.live)
        if not origins:
            self._finish(reading)
            return
        for gone in heads.keys() - set(origins):
            del heads[gone]
        for origin in origins:
            if origin not in heads:
                heads[origin] = Head()
                self._ask(reading, origin)
        while self._step(reading, now_s):
            pass

    def _step(self, reading: Reading, now_s: float) -> bool:
        """Give the next row, or ask for more; False where something has to be waited for."""
        self._ask_silent(reading, now_s)
        heads = {origin: head for origin, head in reading.heads.items() if not head.is_silent(now_s)}
        if not heads or any(head.serial for head in heads.values()):
            self._look_again(reading, 1.0)
            return False
        full = {origin: head for origin, head in heads.items() if head.rows}
        if not full:
            return self._ask_rest(reading, heads, now_s)
        origin = min(full, key=lambda one: (full[one].rows[0][1].time, one))
        first = full[origin]
        behind = [one for one, head in heads.items() if not head.rows and _may_precede(head, first)]
        for one in behind:
            self._ask(reading, one)
        if behind:
            return False
        return self._give_next(reading, origin, first)

    def _ask_silent(self, reading: Reading, now_s: float) -> None:
        for origin, head in list(reading.heads.items()):
            if head.serial and now_s - head.asked_s >= head.patience_s:
                patience_s = min(2 * head.patience_s, SILENT_MAX_S)
                self._ask(reading, origin)
                head.patience_s = patience_s

    def _ask_rest(self, reading: Reading, heads: dict[NodeId, Head], now_s: float) -> bool:
        """All that were asked have said that there is no more."""
        if self.place is not None and not reading.is_placed:
            if reading.is_placed is None:
                reading.is_placed = False
                self.place(reading.sub, partial(self._placed, reading))
            return False
        for origin, head in heads.items():
            if not head.until:
                self._ask(reading, origin)
            elif now_s - head.final_s >= AGAIN_S and self._is_taken(reading, origin):
                head.final_s = now_s
                self._ask(reading, origin, final=True)
        self._look_again(reading, AGAIN_S)
        return False

    def _placed(self, reading: Reading, is_placed: bool) -> None:
        reading.is_placed = is_placed or None
        if self._is_current(reading):
            self._look_again(reading, 0.0)

    def _is_taken(self, reading: Reading, origin: NodeId) -> bool:
        sub = reading.sub
        if _may_be_passed_on(reading, origin):
            return False
        if self.place is not None and origin not in self.fabric.sources(filters_of((sub,), lasting=True)):
            return True  # it matches nothing of it, and whoever gives it a cell gives it the wish too
        return self.switch.is_taken(reading.session, origin, sub.wanted.key)

    def _give_next(self, reading: Reading, origin: NodeId, head: Head) -> bool:
        session = reading.session
        if not self._has_room(session):
            return False  # it is told when there is
        if reading.allowed < 1:
            self._hold_back(reading)
            return False
        reading.allowed -= 1
        row, publication = head.rows.popleft()
        self._give(reading, origin, publication)
        reading.replay.at[origin] = head.position if not head.rows else (head.position[0], row)
        if session.durable:
            self.ledger.put_session(session)
        if not head.rows and not head.until:
            self._ask(reading, origin)
        return True

    def _has_room(self, session: Session) -> bool:
        return session.outlet is not None and self.flows.takes_more(session)

    def _hold_back(self, reading: Reading) -> None:
        if not self._held_back:
            self.host.after(PACE_S, self._deal)
        self._held_back[reading] = None

    def _deal(self) -> None:
        """All who have had their share get the same."""
        now_s, held_back = self.host.now(), self._held_back
        self._held_back = {}
        passed_s, self._dealt_s = min(now_s - self._dealt_s, 2 * PACE_S), now_s
        for reading in held_back:
            reading.allowed += self.per_s * passed_s / len(held_back)
            if self._is_current(reading):
                self._work(reading)

    def _is_current(self, reading: Reading) -> bool:
        return self._readings.get((reading.session.client, reading.sub.wanted.key)) is reading

    def _give(self, reading: Reading, origin: NodeId, publication: Publication) -> None:
        session, wanted = reading.session, reading.sub.wanted
        if wanted.no_local and publication.publisher == session.client:
            return
        said = _replayed(publication)
        qos = min(publication.qos, wanted.qos)
        identifiers = (wanted.identifier,) if wanted.identifier else ()
        # The name of what is read is that of what has come: whoever had it elsewhere does not get it twice.
        name, replay = name_of(publication), reading.replay
        if name in replay.had:
            return
        if _may_be_passed_on(reading, origin):
            replay.ahead[name] = None
            if len(replay.ahead) > AHEAD_MAX:
                del replay.ahead[next(iter(replay.ahead))]
        if qos:
            item = Item(said, qos, False, identifiers, stamp=(origin, 0), since=self.steady())
            self.switch.take(session, item, origin)
        else:
            # Once the disk knows that it was read: else a crash would bring it again.
            self.flows.pass_on_once(session, said, False, identifiers, session.durable)

    # Asking.

    def _ask(self, reading: Reading, origin: NodeId, *, final: bool = False) -> None:
        wanted, replay, head = reading.sub.wanted, reading.replay, reading.heads[origin]
        self._serial += 1
        head.serial, head.asked_s, head.patience_s = self._serial, self.host.now(), SILENT_S
        asked = Recall(
            reading.session.client,
            wanted.key,
            self._serial,
            replay.since,
            replay.at.get(origin, BEGINNING),
            wanted.topics,
            wanted.condition,
            self.switch.restate(),
            final,
        )
        if origin == self.name:
            self.host.after(0.0, partial(self._ask_here, asked))
        else:
            self.fabric.send((origin,), asked, durable=False)
        self._look_again(reading, SILENT_S)

    def _ask_here(self, asked: Recall) -> None:
        self.recollection.recall(self.name, asked, partial(self.on_recalled, self.name))

    def on_recalled(self, origin: NodeId, told: Recalled) -> None:
        reading = self._readings.get((told.client, told.key))
        head = reading.heads.get(origin) if reading is not None else None
        if reading is None or head is None or head.serial != told.serial or reading.session.outlet is None:
            return  # asked by an earlier place, or before the client left
        session, replay = reading.session, reading.replay
        head.serial, head.answered_s = 0, self.host.now()
        if told.lost:
            self.counts.drop("archive")
        if told.live and not self._is_taken(reading, origin):
            head.until = 0.0
        elif told.live:
            for _, publication in told.rows:
                self._give(reading, origin, publication)
            replay.live.add(origin)
            replay.at.pop(origin, None)
            self._keep(session)
        else:
            head.rows.extend(told.rows)
            head.position, head.until = told.position, told.until
            if not told.rows:
                replay.at[origin] = told.position
        self._work(reading)

    def _finish(self, reading: Reading) -> None:
        """It has had all of every broker that is known."""
        sub, session = reading.sub, reading.session
        del session.carried.replays[sub.wanted.key]
        self._keep(session)
        self.stop(sub)
        self.switch.caught_up(sub)

    def _keep(self, session: Session) -> None:
        if session.durable:
            self.ledger.put_session(session)

    # Time.

    def _look_again(self, reading: Reading, delay_s: float) -> None:
        self._waiting[reading] = None
        at_s = self.host.now() + delay_s
        if self._timer is not None:
            if self._timer[0] <= at_s:
                return
            self._timer[1].cancel()
        self._timer = at_s, self.host.after(delay_s, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        for reading in waiting:
            if self._is_current(reading):
                self._work(reading)


def _may_precede(empty: Head, first: Head) -> bool:
    """Whether one that had nothing more may have something since that was published before the other's next row.
    Calendars may differ: what is published after both were asked is later than what the other was asked for."""
    return not empty.until or (empty.until < first.rows[0][1].time and empty.answered_s < first.answered_s)


def _may_be_passed_on(reading: Reading, origin: NodeId) -> bool:
    """Whether the broker where the session was may have something of this one for it. Only who has asked since it came
    can also read that: nothing comes by itself to who still reads."""
    ways = reading.session.inflow.upstreams if reading.replay.early else ()
    return any(way.main and (way.copy or origin in way.origins) for way in ways)


def is_alike(old: Subscription, new: Subscription) -> bool:
    """Whether the one takes the other's place unnoticed, as far as what is past goes."""
    return old.since is not None and (old.topics, old.condition) == (new.topics, new.condition)


def _is_live(sub: Sub, origin: NodeId) -> bool:
    replay = sub.session.carried.replays.get(sub.wanted.key)
    return replay is None or origin in replay.live


def _replayed(publication: Publication) -> Publication:
    when = datetime.fromtimestamp(publication.time, UTC).isoformat().replace("+00:00", "Z")
    user = (*publication.properties.user, (REPLAYED, when))
    properties = msgspec.structs.replace(publication.properties, user=user)
    return msgspec.structs.replace(publication, retain=False, expires=None, passage=None, properties=properties)

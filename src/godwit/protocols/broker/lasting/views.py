"""Lasting subscriptions: a client is told what is, and from then on what changes (docs/lasting.md).

A view is what one client has been told. It is compared with what is retained here, and the difference is told when the
client has room for it: who was away or is slow gets the difference, not the history. A view goes along with its
session, on the disk and to other brokers, so that its numbers go on wherever the client is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from math import inf
from types import MappingProxyType
from typing import TypeVar
from zlib import crc32

import msgspec

from godwit.filters.filters import FilterSet
from godwit.protocols.broker.api import RetainHandling
from godwit.protocols.broker.interest.subscribers import Audiences
from godwit.protocols.broker.lasting.profiles import text_of
from godwit.protocols.broker.lasting.things import Things
from godwit.protocols.broker.lasting.words import (
    APPEARED,
    BECAUSE,
    CHANGE,
    CHANGED,
    GONE,
    NUMBER,
    OURS,
    PENDING,
    VIEW,
)
from godwit.protocols.broker.messages import Stand, View
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.broker.session.counts import Counts
from godwit.protocols.broker.session.near import anchors_of, place_in, placed
from godwit.protocols.broker.session.parse import condition_of
from godwit.protocols.broker.session.queue import Deliveries
from godwit.protocols.broker.session.retained import Last, Retained, is_good
from godwit.protocols.broker.session.rows import Ledger
from godwit.protocols.broker.session.state import Item, Session, Sub
from godwit.protocols.broker.vacant import own
from godwit.protocols.host import Host, Timer

K = TypeVar("K")

UNKNOWN_S = 30.0
"""How long a thing that the client knows may be unknown here before it counts as gone: a session may come to a broker
sooner than what is retained."""
TIMER_MIN_S = 0.01
UNSURE: Stand = (0.0, "", 0)
"""No publication is this one: whether the last answers has to be found out."""


class Watch:
    """A lasting subscription whose client is connected here."""

    __slots__ = (
        "anchors",
        "asked",
        "held",
        "identifiers",
        "not_before",
        "overflow",
        "pending",
        "sub",
        "unknown",
        "view",
    )

    def __init__(self, sub: Sub, view: View, asked: Sub) -> None:
        self.sub = sub
        self.view = view
        self.asked = asked
        """The same with its question as it is at this moment, where that depends on where something is."""
        self.anchors = anchors_of(sub.wanted.condition)
        self.pending: dict[str, Stand | None] = {}
        """Topics of which something may be to be told, and which publication of them answers the question, apart from
        its age; None: the last does not. Another one may be the last by the time that it is told."""
        self.overflow: dict[str, None] = {}
        """Those that match and for which the view has no room."""
        self.not_before: dict[str, float] = {}
        """By topic, where its rate is bounded: when the next may be told."""
        self.held: dict[str, Stand | None] = {}
        """What must wait for that, in the same words."""
        self.unknown: dict[str, float] = {}
        """Since when things that the client knows are not known here."""
        self.identifiers = (sub.wanted.identifier,) if sub.wanted.identifier else ()

    @property
    def session(self) -> Session:
        return self.sub.session


class Change(msgspec.Struct, frozen=True):
    """What is to be told of one topic."""

    sign: str
    last: Last | None
    because: str = ""


NOBODY: Mapping[Watch, None] = MappingProxyType({})


class Views:
    """`wake` when a client is connected and `sleep` when it is not; `changed` whenever something else is retained."""

    def __init__(
        self,
        host: Host,
        retained: Retained,
        flows: Deliveries,
        ledger: Ledger,
        clock: Callable[[], float],
        steady: Callable[[], float],
        counts: Counts,
    ) -> None:
        self.host = host
        self.retained = retained
        self.flows = flows
        self.ledger = ledger
        self.clock = clock
        self.steady = steady
        self.counts = counts
        self.things = Things(retained)
        self._watches: dict[Sub, Watch] = {}
        self._asking = Audiences()
        """Who asks for a topic, and for which content of it."""
        self._asked: dict[Sub, Watch] = {}
        self._of: dict[Session, dict[Watch, None]] = {}
        self._knowing: dict[str, dict[Watch, None]] = {}
        """By topic: those whose clients know the thing."""
        self._anchored: dict[str, dict[Watch, None]] = {}
        """By topic: those who ask for what is near it."""
        self._changed: dict[str, None] = {}
        self._stirred: dict[Session, None] = {}
        self._telling: dict[Session, dict[Watch, None]] = {}
        """Those of a session of which something may be to be told: it may have very many others."""
        self._working: Timer | None = None
        self._due: list[tuple[float, int, str, Watch | None]] = []
        """When something may be to be told of a topic though nothing is published; a heap."""
        self._dues = 0
        self._timer: tuple[float, Timer] | None = None
        self._last_name = 0
        flows.on_room = self.tell
        retained.on_change = self.changed

    def __len__(self) -> int:
        return len(self._watches)

    @property
    def watches(self) -> Iterable[Watch]:
        """Lasting subscriptions whose clients are connected here; to look at."""
        return self._watches.values()

    def prepare_with(self, prepared: Callable[[], bool]) -> None:
        self._asking.prepare_with(prepared)
        self.things.prepared = prepared

    # Who asks.

    def begin(self, sub: Sub, old: Sub | None) -> int:
        """It is subscribed to, now; how many match. A client that wants nothing retained again goes on as it is."""
        session, key = sub.session, sub.wanted.key
        goes_on = old is not None and is_alike(old, sub) and sub.wanted.retain_handling is not RetainHandling.ALWAYS
        if not goes_on:
            session.carried.views.pop(key, None)
        if old is not None and old in self._watches:
            self._stop(self._watches[old])
        is_new = key not in session.carried.views
        watch = self._start(sub)
        matches = self._to_tell(watch)
        if is_new and sub.wanted.retain_handling is RetainHandling.NEVER:
            watch.view.told = {topic: last.stamp for topic, last in self._found(watch).items()}
            for topic in watch.view.told:
                self._knows(watch, topic)
            watch.pending.clear()
        self._keep(session)
        self._stir(session)
        return matches

    def told_by_now(self, sub: Sub) -> int:
        """How much its client was told of it, or will be at once."""
        watch = self._watches.get(sub)
        return 0 if watch is None else watch.view.number + self._to_tell(watch)

    def _to_tell(self, watch: Watch) -> int:
        """Who asks once waits for so many."""
        return sum(self._change(watch, topic, answer) is not None for topic, answer in watch.pending.items())

    def end(self, sub: Sub) -> None:
        """It is not subscribed to any longer."""
        self.stop(sub)
        if sub.session.carried.views.pop(sub.wanted.key, None) is not None:
            self._keep(sub.session)

    def wake(self, session: Session, *, anew: bool) -> None:
        """Its client is connected; `anew` where it was told that it has no session, or has been somewhere else since
        this session was with it: nobody knows what it was told there."""
        if anew:
            session.carried.views.clear()
            self.flows.end_views(session)
        for sub in session.subscriptions.values():
            if sub.wanted.lasting and sub not in self._watches:
                if not sub.wanted.qos:
                    # Nobody knows what of the last connection has arrived.
                    session.carried.views.pop(sub.wanted.key, None)
                self._start(sub)
                self._stir(session)

    def sleep(self, session: Session) -> None:
        for watch in list(self._of.get(session, ())):
            self._stop(watch)

    def stop(self, sub: Sub) -> None:
        """Nothing happens where its client is not connected."""
        if sub in self._watches:
            self._stop(self._watches[sub])

    def _start(self, sub: Sub) -> Watch:
        view = sub.session.carried.views.get(sub.wanted.key)
        if view is None:
            views = sub.session.carried.views = own(sub.session.carried.views)
            view = views[sub.wanted.key] = View(self._name())
        watch = self._watches[sub] = Watch(sub, view, sub)
        self._of.setdefault(sub.session, {})[watch] = None
        for anchor in watch.anchors:
            self._anchored.setdefault(anchor, {})[watch] = None
        for topic in view.told:
            self._knows(watch, topic)
        self._ask(watch)
        return watch

    def _stop(self, watch: Watch) -> None:
        self._ask_no_more(watch)
        del self._watches[watch.sub]
        _leave(self._of, watch.session, watch)
        _leave(self._telling, watch.session, watch)
        for anchor in watch.anchors:
            _leave(self._anchored, anchor, watch)
        for topic in watch.view.told:
            _leave(self._knowing, topic, watch)

    def _ask(self, watch: Watch) -> None:
        """Its question as it is now, and all that has to be told for that."""
        sub = watch.sub
        if watch.anchors:
            watch.asked = Sub(sub.session, sub.wanted, self._question(watch), sub.row)
            for anchor in watch.anchors:
                self._await_end(anchor)
        self._asked[watch.asked] = watch
        self._asking.add(watch.asked)
        self.things.ask(watch.asked)
        found = self._found(watch)
        told = watch.view.told
        for topic in watch.held:
            watch.held[topic] = found[topic].stamp if topic in found else None
        for topic, last in found.items():
            if told.get(topic) != last.stamp:
                watch.pending[topic] = last.stamp
        for topic in (*told, *watch.pending):
            if topic not in found:
                watch.pending[topic] = None
        if watch.pending:
            self._await(watch)

    def _await_end(self, anchor: str) -> None:
        """Look again when the thing falls silent. One that already has would be looked at without end."""
        last, now = self.retained.last(anchor), self.steady()
        if last is not None and last.publication.expires is not None and is_good(last.publication, now):
            self._look_again(last.publication.expires, anchor)

    def _ask_no_more(self, watch: Watch) -> None:
        del self._asked[watch.asked]
        self._asking.remove(watch.asked)
        self.things.withdraw(watch.asked)

    def _question(self, watch: Watch) -> FilterSet:
        text = placed(watch.sub.wanted.condition, lambda topic: self._place(watch.session, topic))
        return condition_of(watch.sub.wanted.topics, text)

    def _place(self, session: Session, topic: str) -> tuple[float, float] | None:
        """Where a thing is, for one who may see it."""
        last, grant = self.retained.last(topic), session.grant.subscribe
        if last is None or not is_good(last.publication, self.steady()):
            return None
        values = last.publication.values()
        return place_in(values) if grant is None or grant.matches(values) else None

    def _found(self, watch: Watch) -> dict[str, Last]:
        return self.things.find(watch.asked, self.steady())

    def _name(self) -> str:
        self._last_name = max(self._last_name + 1, int(self.clock() * 1e6))
        return f"{self._last_name:x}{crc32(self.host.name.encode()) & 0xFFFF:04x}"

    # What changes.

    def changed(self, last: Last) -> None:
        """Another publication is the last of its topic."""
        now = self.steady()
        self.things.changed(last, now)
        if self._watches:
            self._look_at(last.publication.topic)

    def _look_at(self, topic: str) -> None:
        self._changed[topic] = None
        if self._working is None:
            self._working = self.host.after(0.0, self._work)

    def _stir(self, session: Session) -> None:
        self._stirred[session] = None
        if self._working is None:
            self._working = self.host.after(0.0, self._work)

    def _work(self) -> None:
        """Once for all that a turn has brought."""
        self._working = None
        topics, self._changed = self._changed, {}
        # First, lest what has changed in the same turn be compared with where something was.
        for watch in dict.fromkeys(one for topic in topics for one in self._anchored.get(topic, ())):
            self._ask_again(watch)
        now, lasts = self.steady(), [self.retained.last(topic) for topic in topics]
        good = [last.publication for last in lasts if last is not None and is_good(last.publication, now)]
        wanted = dict(zip((one.topic for one in good), self._matching(good), strict=True))
        for topic, last in zip(topics, lasts, strict=True):
            if last is not None and last.publication.expires is not None and topic in self._knowing:
                self._look_again(last.publication.expires, topic)
            self._compare(topic, last, wanted.get(topic, []))
        stirred, self._stirred = self._stirred, {}
        for session in stirred:
            self.tell(session)

    def _compare(self, topic: str, last: Last | None, matching: list[Watch]) -> None:
        """Whose questions its last publication answers, with who knows it."""
        knowing, staying = self._knowing.get(topic, NOBODY), 0
        for watch in matching:
            if watch in knowing:
                staying += 1
                # Most of what moves stays where it was: for those who only want to hear who comes and goes that is no
                # change, and it must cost nothing.
                if watch.sub.wanted.quiet and topic not in watch.pending and topic not in watch.held:
                    continue
            self._mark(watch, topic, last.stamp if last is not None else None)
        if staying < len(knowing):
            here = set(matching)
            for watch in [one for one in knowing if one not in here]:
                self._mark(watch, topic, None)

    def _ask_again(self, watch: Watch) -> None:
        """What it asks for depends on where something is, and that has changed."""
        self._ask_no_more(watch)
        self._ask(watch)
        self._stir(watch.session)

    def _matching(self, publications: list[Publication]) -> list[list[Watch]]:
        """For each, whose question it answers, each once."""
        found: list[list[Watch]] = []
        contingent, watches = [], self._asked
        for at, one in enumerate(publications):
            if one.properties.user and text_of(one) is not None:
                found.append([watches[sub] for sub in self.things.profiles.asking(one.topic)])
                continue
            audience = self._asking.audience(one.topic)
            found.append([watches[sub] for sub in audience.subs])
            if audience.asking:
                contingent.append(at)
        if contingent:
            wanting = self._asking.askers([publications[at] for at in contingent])
            for at, subs in zip(contingent, wanting, strict=True):
                found[at] += [watches[sub] for sub in subs]
        return found

    def _mark(self, watch: Watch, topic: str, answer: Stand | None) -> None:
        if topic in watch.held:
            watch.held[topic] = answer  # the newest
            return
        watch.overflow.pop(topic, None)
        watch.pending[topic] = answer
        self._await(watch)
        self._stirred[watch.session] = None

    def _await(self, watch: Watch) -> None:
        telling = self._telling.get(watch.session)
        if telling is None:
            telling = self._telling[watch.session] = {}
        telling[watch] = None

    # What is told.

    def tell(self, session: Session) -> None:
        """As much as its client takes now."""
        for watch in list(self._telling.get(session, ())):
            while watch.pending and self.flows.takes_more(session):
                topic, change = self._next(watch)
                if change is None:
                    break
                self._say(watch, topic, change)
            if not watch.pending:
                _leave(self._telling, session, watch)

    def _next(self, watch: Watch) -> tuple[str, Change | None]:
        """What is to be told first; it is pending no longer."""
        while watch.pending:
            topic = next(iter(watch.pending))
            answer = watch.pending.pop(topic)
            change = self._change(watch, topic, answer)
            if change is not None and not self._must_wait(watch, topic, answer, change):
                return topic, change
        return "", None

    def _change(self, watch: Watch, topic: str, answer: Stand | None) -> Change | None:
        last, known, now = self.retained.last(topic), watch.view.told.get(topic), self.steady()
        if last is None:
            return self._unknown(watch, topic, now) if known is not None else None
        watch.unknown.pop(topic, None)
        if known is not None and last.stamp < known:
            return None  # the client has been told more than is here yet
        good = is_good(last.publication, now)
        if good and answer is not None and self._answers(watch, last, answer):
            if known is None:
                return Change(APPEARED, last)
            return Change(CHANGED, last) if last.stamp != known and not watch.sub.wanted.quiet else None
        if known is None:
            return None
        because = "left" if good else "expired" if last.publication.payload else "cleared"
        return Change(GONE, last, because)

    def _answers(self, watch: Watch, last: Last, answer: Stand) -> bool:
        """What has come since it answered may not, and must not be told then: a client sees what it asked for."""
        return last.stamp == answer or self.things.answers(watch.asked, last.publication)

    def _unknown(self, watch: Watch, topic: str, now: float) -> Change | None:
        since = watch.unknown.setdefault(topic, now)
        if now - since < UNKNOWN_S:
            self._look_again(since + UNKNOWN_S, topic)
            return None
        del watch.unknown[topic]
        return Change(GONE, None, "unknown")

    def _must_wait(self, watch: Watch, topic: str, answer: Stand | None, change: Change) -> bool:
        if change.sign == APPEARED and len(watch.view.told) >= watch.session.limits.view_max:
            if not watch.overflow:
                self.counts.refuse("view_full")
            watch.overflow[topic] = None
            return True
        begin = watch.not_before.get(topic, 0.0)
        if self.steady() < begin:
            watch.held[topic] = answer
            self._look_again(begin, topic, watch)
            return True
        return False

    def _say(self, watch: Watch, topic: str, change: Change) -> None:
        """Told from now on, under the next number."""
        session, view, wanted = watch.session, watch.view, watch.sub.wanted
        self._note(watch, topic, change)
        view.number += 1
        publication = self._publication(watch, topic, change)
        self._keep(session)
        if not wanted.qos:
            self.flows.pass_on(session, publication, False, watch.identifiers, view.name)
            return
        item = Item(publication, wanted.qos, False, watch.identifiers, since=self.steady(), view=view.name)
        self.flows.take(session, item)

    def _note(self, watch: Watch, topic: str, change: Change) -> None:
        told = watch.view.told
        if watch.sub.interval_s:
            watch.not_before[topic] = self.steady() + watch.sub.interval_s
        if change.sign == GONE:
            del told[topic]
            if watch.sub.interval_s:
                self._look_again(watch.not_before[topic], topic, watch)
            _leave(self._knowing, topic, watch)
            if watch.overflow:
                watch.pending.update(dict.fromkeys(watch.overflow, UNSURE))
                self._await(watch)
                watch.overflow.clear()
            return
        assert change.last is not None
        told[topic] = change.last.stamp
        self._knows(watch, topic)

    def _knows(self, watch: Watch, topic: str) -> None:
        self._knowing.setdefault(topic, {})[watch] = None
        last = self.retained.last(topic)
        if last is not None and last.publication.expires is not None:
            self._look_again(last.publication.expires, topic)

    def _publication(self, watch: Watch, topic: str, change: Change) -> Publication:
        said = change.last.publication if change.last is not None else Publication("", 0, topic, time=self.clock())
        told = [(CHANGE, change.sign), (NUMBER, str(watch.view.number)), (VIEW, watch.view.name)]
        told.append((PENDING, str(self._left(watch))))
        if change.sign == GONE:
            # The client may see what it asked for, and no more: not where the thing is instead.
            payload, properties = b"", Properties(user=(*told, (BECAUSE, change.because)))
        else:
            user = (*told, *(one for one in said.properties.user if one[0] not in OURS))
            payload, properties = said.payload, msgspec.structs.replace(said.properties, user=user)
        qos = watch.sub.wanted.qos
        return msgspec.structs.replace(
            said, payload=payload, qos=qos, retain=False, expires=None, properties=properties, passage=None
        )

    def _left(self, watch: Watch) -> int:
        """How much is to be told after this; 0 only where that is nothing."""
        while watch.pending:
            topic, answer = next(iter(watch.pending.items()))
            if self._change(watch, topic, answer) is not None:
                break
            del watch.pending[topic]
        return len(watch.pending)

    def _keep(self, session: Session) -> None:
        if session.durable:
            self.ledger.put_session(session)

    # What time brings.

    def _look_again(self, at: float, topic: str, watch: Watch | None = None) -> None:
        """For one, or for all who know it."""
        self._dues += 1
        heappush(self._due, (at, self._dues, topic, watch))
        self._set_timer()

    def _set_timer(self) -> None:
        if not self._due:
            return
        first = self._due[0][0]
        if self._timer is not None:
            if self._timer[0] <= first:
                return
            self._timer[1].cancel()
        delay_s = max(first - self.steady(), TIMER_MIN_S)
        self._timer = first, self.host.after(min(delay_s, 3600.0), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        now = self.steady()
        while self._due and self._due[0][0] <= now:
            _, _, topic, watch = heappop(self._due)
            if watch is not None:
                self._release(watch, topic, now)
                continue
            last = self.retained.last(topic)
            if last is not None and not is_good(last.publication, now):
                self.things.changed(last, now)
                for roaming in list(self._anchored.get(topic, ())):
                    self._ask_again(roaming)
            for knowing in list(self._knowing.get(topic, ())):
                knowing.pending.setdefault(topic, knowing.view.told[topic])
                self._await(knowing)
                self._stir(knowing.session)
        self._set_timer()

    def _release(self, watch: Watch, topic: str, now: float) -> None:
        """The time of this thing has come, where its rate is bounded."""
        if watch.not_before.get(topic, inf) <= now:
            del watch.not_before[topic]
        if topic not in watch.held:
            return
        answer = watch.held.pop(topic)
        if self._watches.get(watch.sub) is watch:
            watch.pending[topic] = answer
            self._await(watch)
            self._stir(watch.session)


def is_alike(old: Sub, new: Sub) -> bool:
    """Whether the one takes the other's place unnoticed, as far as its view goes."""
    a, b = old.wanted, new.wanted
    return (a.topics, a.condition, a.lasting, a.quiet) == (b.topics, b.condition, b.lasting, b.quiet)


def _leave(sets: dict[K, dict[Watch, None]], key: K, one: Watch) -> None:
    members = sets.get(key)
    if members is not None:
        members.pop(one, None)
        if not members:
            del sets[key]

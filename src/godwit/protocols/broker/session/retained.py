"""Retained publications: the last of each topic, the same at every broker whatever the order in which it hears them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from godwit.protocols.broker.api import Capacity
from godwit.protocols.broker.messages import Stand
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.topics import Named
from godwit.protocols.host import NodeId

CLEARED_S = 24 * 3600.0
"""How long a cleared topic is remembered, lest an older publication that comes late be taken for a newer one."""

TICK_S = 1e-6


class Last(msgspec.Struct, frozen=True, array_like=True):
    """The last of a topic, and the broker that took it or answers for it since. Without payload there is none."""

    publication: Publication
    origin: NodeId
    since: float = 0.0
    """Since when it is here, by the steady clock."""

    @property
    def stamp(self) -> Stand:
        return stamp_of(self.publication)


class Retained:
    """The newest wins, by the time at which a broker took it; a broker whose clock lags moves on from what it knows."""

    def __init__(self, store: Store, capacity: Capacity = Capacity()) -> None:  # noqa: B008
        self._store = store
        self.capacity = capacity
        self.bytes = 0
        self.on_change: Callable[[Last], None] = lambda last: None
        """Called with each that is the last of its topic from now on."""
        self._lasts: Named[Last] = Named()
        for topic, _, row in store.load("retained"):
            self._put(topic, msgspec.msgpack.decode(row, type=Last))

    def __len__(self) -> int:
        return len(self._lasts)

    def __iter__(self) -> Iterator[Last]:
        return iter(self._lasts)

    def publications(self) -> Iterator[Publication]:
        """The last of each topic, cleared ones too."""
        return (last.publication for last in self._lasts)

    def takes(self, publication: Publication) -> bool:
        """Whether there is room for it. What is cleared is always taken, and what takes no more than the last did."""
        if not publication.payload:
            return True
        known, capacity = self._lasts.get(publication.topic), self.capacity
        if known is None:
            more_b = _size_b(publication)
            return len(self) < capacity.retained_max and self.bytes + more_b <= capacity.retained_bytes_max
        more_b = len(publication.payload) - len(known.publication.payload)
        return more_b <= 0 or (
            len(self) <= capacity.retained_max and self.bytes + more_b <= capacity.retained_bytes_max
        )

    def stamped(self, publication: Publication) -> Publication:
        """The same, newer than what is known of its topic."""
        known = self._lasts.get(publication.topic)
        if known is None or publication.time > known.publication.time:
            return publication
        return msgspec.structs.replace(publication, time=known.publication.time + TICK_S)

    def ordered(self, publication: Publication, now: float) -> Publication:
        """The same, as one that another broker took and this one matches: newer than what is known of its topic. But
        what its publisher has replaced, and only comes later, is older."""
        known = self._lasts.get(publication.topic)
        if known is None or now > CLEARED_S + known.since or not _replaces(known.publication, publication):
            return self.stamped(publication)
        return msgspec.structs.replace(publication, time=min(publication.time, known.publication.time - TICK_S))

    def is_news(self, publication: Publication) -> bool:
        """Whether it comes after what is known of its topic, wherever that was published."""
        known = self._lasts.get(publication.topic)
        return known is None or known.stamp < stamp_of(publication)

    def keep(self, publication: Publication, origin: NodeId, since: float) -> None:
        """Take it unless a newer one is known; without payload the topic has none from now on."""
        topic, last = publication.topic, Last(publication, origin, since)
        if self.is_news(publication):
            self._put(topic, last)
            self._store.put("retained", topic, 0, msgspec.msgpack.encode(last))
            self.on_change(last)

    def answer_for(self, last: Last, name: NodeId) -> None:
        """Whoever took it can no longer tell newcomers of it: this broker does from now on."""
        if last.origin != name:
            told = msgspec.structs.replace(last, origin=name)
            self._lasts.put(last.publication.topic, told)
            self._store.put("retained", last.publication.topic, 0, msgspec.msgpack.encode(told))

    def _put(self, topic: str, last: Last) -> None:
        known = self._lasts.get(topic)
        self.bytes += _size_b(last.publication) - (_size_b(known.publication) if known is not None else 0)
        self._lasts.put(topic, last)

    def get(self, topic: str) -> Publication | None:
        known = self._lasts.get(topic)
        return known.publication if known is not None else None

    def last(self, topic: str) -> Last | None:
        """Good or not."""
        return self._lasts.get(topic)

    def lasts(self, topics: str) -> list[Last]:
        """Those of the topics that the topic filter wants, good or not."""
        return self._lasts.find(topics)

    def find(self, topics: str, now: float) -> list[Publication]:
        """Those that a subscriber of the topic filter gets, oldest first."""
        found = [last.publication for last in self._lasts.find(topics)]
        return sorted((one for one in found if is_good(one, now)), key=lambda one: one.time)

    def clean(self, now: float) -> None:
        """Forget what has expired, and what was cleared long ago."""
        for last in self._lasts:
            one = last.publication
            if not is_good(one, now) and now > CLEARED_S + max(last.since or one.time, one.expires or 0.0):
                self._lasts.remove(one.topic)
                self.bytes -= _size_b(one)
                self._store.delete("retained", one.topic, 0)


def stamp_of(publication: Publication) -> Stand:
    """By which all brokers agree on the last of a topic: the highest."""
    return publication.time, publication.publisher, publication.sequence


def _replaces(known: Publication, late: Publication) -> bool:
    """Whether its publisher said it after the other one, at a later place, without waiting until that was there. Where
    it waited, what is matched later was said later, and nobody looks at epochs."""
    if known.said_under is None or late.said_under is None or known.passage is not None:
        return False
    epoch, is_hasty = known.said_under
    return known.publisher == late.publisher and is_hasty and late.said_under[0] < epoch


def _size_b(publication: Publication) -> int:
    return len(publication.payload) + len(publication.topic) + 64


def is_good(publication: Publication, now: float) -> bool:
    """It says something, and has not expired."""
    return bool(publication.payload) and (publication.expires is None or now < publication.expires)

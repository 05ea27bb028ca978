"""The proximity table (spec manet-cbr 2.2, 2.4): whom this broker has met, what they want, and how long ago.

The time since two brokers heard each other last stands for their distance. It is counted in missed beacons, and beyond
ten of them it means nothing any more, so that the entry goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from godwit.filters.filters import FilterSet
from godwit.filters.predicates import Values
from godwit.protocols.adhoc.messages import FARTHEST, Hint
from godwit.protocols.host import NodeId

SAME_CONTACT = 2.5
"""Beacons that may be missed, and still it was one stay together: two are often lost to collisions."""

STAYS = 10
"""Stays that have ended and count in the mean."""

ROUNDING = 1e-6

USUAL = 10 / 3
"""Periods that a stay is taken to last until something is known."""


class Estimate(StrEnum):
    """How elapsed time becomes proximity."""

    MISSED = "missed"
    """Whole missed beacons, as published."""
    CONTINUOUS = "continuous"
    """Elapsed time itself."""
    RESIDENCE = "residence"
    """Missed beacons count less after a long stay together, which tells of a low relative speed, and more after a short
    one: the published future work."""


@dataclass(slots=True)
class Entry:
    wanted: FilterSet
    time_s: float
    """When it was last heard, by this node's clock; of a hint, when it would have been heard at this distance."""
    period_s: float
    since_s: float
    """When the present or last stay together began."""
    is_met: bool = True
    """Heard by this node itself, and not only told of by another."""


class ProximityTable:
    def __init__(
        self,
        period_s: float,
        *,
        missed_max: int = 10,
        late_s: float = 0.0,
        estimate: Estimate = Estimate.MISSED,
    ) -> None:
        """`late_s` is how late an unsteady beacon may be: a neighbor in range must not seem to have missed one."""
        self.period_s = period_s
        self.missed_max = missed_max
        self.late_s = late_s
        self.estimate = estimate
        self.entries: dict[NodeId, Entry] = {}
        self._stays_s: deque[float] = deque([USUAL * period_s], STAYS)

    def heard(self, broker: NodeId, wanted: FilterSet, now_s: float, period_s: float | None = None) -> bool:
        """A beacon: one entry a broker, and the newest predicate replaces the older one. Whether that is news: a broker
        that was not in range lately, or another predicate."""
        period_s = period_s or self.period_s
        known = self.entries.get(broker)
        if known is not None and known.is_met and _goes_on(known, now_s):
            is_news = wanted != known.wanted
            known.wanted, known.time_s, known.period_s = wanted, now_s, period_s
            return is_news
        if known is not None:
            self._ended(known)
        self.entries[broker] = Entry(wanted, now_s, period_s, since_s=now_s)
        return True

    def told(self, hint: Hint, now_s: float) -> bool:
        """Somebody in range has met this broker: it is one step further than it is from there. Whether that is news."""
        missed = hint.proximity * self.missed_max / FARTHEST
        # A little more than the step: rounding must not make whoever was told as close as who told it.
        time_s = now_s - (missed + 1 + ROUNDING) * hint.period_s - self.late_s
        known = self.entries.get(hint.broker)
        if missed + 1 <= self.missed_max and (known is None or known.time_s < time_s):
            if known is not None:
                self._ended(known)
            self.entries[hint.broker] = Entry(hint.wanted, time_s, hint.period_s, since_s=time_s, is_met=False)
            return known is None or known.wanted != hint.wanted
        return False

    def clean(self, now_s: float) -> None:
        """Drop what has missed more than `missed_max` beacons."""
        stale = [name for name, e in self.entries.items() if now_s - e.time_s > self.missed_max * e.period_s]
        for name in stale:
            self._ended(self.entries.pop(name))

    def stay_s(self, now_s: float) -> float:
        """How long two brokers stay in range of each other, as seen so far.

        A stay that goes on counts with its time and not as one that ended: where nobody ever leaves, none has.
        """
        met = [entry for entry in self.entries.values() if entry.is_met]
        ended = len(self._stays_s) + sum(not _goes_on(entry, now_s) for entry in met)
        return (sum(self._stays_s) + sum(_stayed_s(entry) for entry in met)) / ended

    def proximity(self, broker: NodeId, now_s: float) -> int | None:
        """None where it has not been met, or too long ago: infinitely far."""
        entry = self.entries.get(broker)
        return None if entry is None else self._proximity(entry, now_s)

    def matching(self, values: Values, now_s: float) -> Iterator[tuple[NodeId, int]]:
        """Who wants an event with these values, and how close each is."""
        for broker, entry in self.entries.items():
            if entry.wanted.matches(values):
                yield broker, self._proximity(entry, now_s)

    def hints(
        self, now_s: float, count_max: int, about: Iterable[NodeId] | None = None, *, relayed: bool = False
    ) -> tuple[Hint, ...]:
        """The closest of those met by this node itself, or also of those it was told of; of all or of `about`."""
        names = self.entries if about is None else [name for name in about if name in self.entries]
        entries = [(name, self.entries[name]) for name in names]
        met = [(self._proximity(e, now_s), name, e) for name, e in entries if e.is_met or relayed]
        met.sort(key=lambda one: one[:2])
        return tuple(Hint(name, proximity, e.period_s, e.wanted) for proximity, name, e in met[:count_max])

    def _proximity(self, entry: Entry, now_s: float) -> int:
        missed = max(0.0, now_s - entry.time_s - self.late_s) / entry.period_s
        if self.estimate is Estimate.RESIDENCE and entry.is_met:
            missed *= self._haste(entry)
        if self.estimate is not Estimate.CONTINUOUS:
            missed = int(missed)
        return min(FARTHEST, int(missed * FARTHEST / self.missed_max))

    def _haste(self, entry: Entry) -> float:
        """How fast they part, beside the average pair: 2 after the shortest stay, towards 1/2 after long ones."""
        usual_s, stayed_s = sum(self._stays_s) / len(self._stays_s), _stayed_s(entry)
        return max(0.5, 2 * usual_s / (usual_s + stayed_s))

    def _ended(self, entry: Entry) -> None:
        if entry.is_met:
            self._stays_s.append(_stayed_s(entry))


def _goes_on(entry: Entry, now_s: float) -> bool:
    return now_s - entry.time_s <= SAME_CONTACT * entry.period_s


def _stayed_s(entry: Entry) -> float:
    return entry.time_s - entry.since_s + entry.period_s

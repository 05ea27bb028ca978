"""Rate limits and rate monitoring in a forest (spec 2.9.1). Time is given with each event."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from typing import Generic

from godwit.filters.filters import Filter
from godwit.filters.predicates import Kind, Rate
from godwit.tables.forests.forest import LOCAL, Forest, Rules
from godwit.tables.forests.trees import by_rate
from godwit.tables.nodes import Node
from godwit.tables.partition import event_type
from godwit.tables.table import F, Interface, N


def rate_of(wanted: Filter) -> float | None:
    """The limit that a filter of this package sets, in notifications per second; None where it sets none."""
    limits = [p.per_s for a in wanted if a.kind is Kind.RATE for p in a.clause if isinstance(p, Rate)]
    return min(limits, default=None)


RATED: Rules = replace(LOCAL, order=by_rate(rate_of))
"""A forest for local clients in which a filter goes under the closest limit."""


class Skip(Enum):
    """What is left out when a filter has reached its limit.

    The published rule leaves out all that it covers, since narrower filters have lower limits. That holds only where
    every filter sets a limit and the counters of a filter and of those above it advance together, as when they differ
    in nothing but the limit. Otherwise events that only the upper filter wanted use up what was due to the lower one.
    """

    SPENT = "spent"
    SUBTREE = "subtree"


class RateControl(Generic[F, N]):
    """A forest whose filters deliver at most so many events in each interval, and which knows how busy its roots are.

    All filters that accept an event are visited, or counters would lag behind; none of the shortcuts of plain matching
    is taken. Add and remove filters through this class.
    """

    def __init__(
        self,
        forest: Forest[F, N],
        limit: Callable[[F], float | None],
        *,
        interval_s: float = 1.0,
        intervals_kept: int = 10,
        skip: Skip = Skip.SPENT,
    ) -> None:
        if not interval_s > 0:
            raise ValueError(f"rate control: an interval of {interval_s} s; it must be longer than nothing")
        self.forest = forest
        self.limit = limit
        self.interval_s = interval_s
        self.skip = skip
        self._interval: int | None = None
        self._delivered: Counter[F] = Counter()
        self._accepted: Counter[F] = Counter()
        self._archive: deque[Counter[F]] = deque(maxlen=intervals_kept)
        self._spent: set[Node[F]] = set()

    def add(self, wanted: F, interface: Interface, /) -> bool:
        self._spent.clear()
        return self.forest.add(wanted, interface)

    def remove(self, wanted: F, interface: Interface, /) -> bool:
        self._spent.clear()
        removed = self.forest.remove(wanted, interface)
        if wanted not in self.forest:
            del self._delivered[wanted], self._accepted[wanted]
        return removed

    def match(self, event: N, now_s: float) -> set[Interface]:
        """The interfaces that want the event and may still have it in the interval of `now_s`."""
        self.advance(now_s)
        found: set[Interface] = set()
        for node in self._accepting(event):
            if not self._exhausted(node):
                self._delivered[node.filter] += 1
                found |= node.interfaces
        return found

    def advance(self, now_s: float) -> None:
        """Let time pass: counters of a finished interval are archived, then reset. Time that runs back stands still."""
        interval = math.floor(now_s / self.interval_s)
        if self._interval is None:
            self._interval = interval
        passed = interval - self._interval
        if passed <= 0:
            return
        self._archive.append(self._accepted)
        self._archive.extend(Counter() for _ in range(min(passed - 1, self._archive.maxlen or 0)))
        self._accepted, self._delivered = Counter(), Counter()
        self._spent.clear()
        self._interval = interval

    def accepted(self, wanted: F) -> int:
        """How many events of the current interval the filter has accepted: exact for roots, at least so many below."""
        return self._accepted[wanted]

    def delivered(self, wanted: F) -> int:
        return self._delivered[wanted]

    def average_per_s(self, wanted: F) -> float:
        """The moving average of accepted events over the intervals kept: what a load balancer goes by."""
        if not self._archive:
            return 0.0
        return sum(counts[wanted] for counts in self._archive) / (len(self._archive) * self.interval_s)

    def _accepting(self, event: N) -> Iterator[Node[F]]:
        """The filters that accept the event, parents first. Roots are always tried, so that monitoring sees them."""
        queue = deque(self.forest.tops(event_type(event)))
        while queue:
            node = queue.popleft()
            # Asked before the node takes the event, which may be its last: those below are due the same one.
            left_out = self._left_out(node)
            if left_out and node.parent is not None:
                continue
            if self.forest.language.matches(node.filter, event):
                self._accepted[node.filter] += 1
                yield node
                if not left_out:
                    queue.extend(node.children)

    def _left_out(self, node: Node[F]) -> bool:
        """Whether nothing at or below the node needs to be looked at any more in this interval."""
        if node in self._spent:
            return True
        if not self._exhausted(node):
            return False
        if self.skip is Skip.SUBTREE or all(child in self._spent for child in node.children):
            self._spent.add(node)
            return True
        return False

    def _exhausted(self, node: Node[F]) -> bool:
        limit = self.limit(node.filter)
        return limit is not None and self._delivered[node.filter] >= self._allowance(limit)

    def _allowance(self, per_s: float) -> int:
        """What the current interval may have of a limit; the fractions of intervals add up to whole events in time."""
        begin = self._interval or 0
        by_now, before = ((begin + intervals) * self.interval_s * per_s for intervals in (1, 0))
        return math.floor(by_now) - math.floor(before)

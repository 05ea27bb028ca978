"""Store, carry and forward: a broker keeps events for a while and gives them to whoever says that it lacks them.

A beacon names what its sender has. Whoever holds something else that it wants offers it after a random wait, and is
silent where another was faster. Nobody keeps books on who has what: what an offer did not bring, the next beacon asks
for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from godwit.events import Event
from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.digest import Digest, EventId, digest_of, digest_within
from godwit.protocols.adhoc.messages import Beacon, Data
from godwit.protocols.adhoc.options import Carry
from godwit.protocols.adhoc.seen import Recent
from godwit.protocols.host import NodeId

HAD_MAX = 4096


class Carried:
    """One event, when it came into the world by this node's clock, the destinations known when it came here, and how
    often it was offered to whom."""

    __slots__ = ("born_s", "destinations", "event", "offered", "size_b")

    def __init__(self, event: Event, born_s: float, destinations: Mapping[NodeId, int]) -> None:
        self.event = event
        self.born_s = born_s
        self.destinations = dict(destinations)
        self.offered: Counter[NodeId] = Counter()
        self.size_b = Data(event).size_b


class Carrier:
    def __init__(self, options: Carry) -> None:
        self.options = options
        self.kept: Recent[Carried] = Recent(options.count_max, options.age_max_s)
        self.had: Recent[None] = Recent(HAD_MAX, options.age_max_s)
        """What this broker asked for and got, carried or not."""
        self.bytes = 0
        self._turn = 0

    def keep(self, data: Data, now_s: float, *, is_wanted: bool) -> None:
        """Carry this from now on; the oldest make room. `is_wanted` by what this broker's own beacon says."""
        event = data.event
        if is_wanted:
            self.had.add(event.id, None, now_s)
        carried = Carried(event, now_s - data.age_s, data.destinations)
        for dropped in self.kept.add(event.id, carried, now_s):
            self.bytes -= dropped.size_b
        self.bytes += carried.size_b
        while self.bytes > self.options.bytes_max:
            self.bytes -= self.kept.drop_oldest().size_b

    def digest(self, now_s: float, size_max_b: int | None = None) -> Digest:
        """What this broker has, of what it wants and somebody may still carry."""
        self.had.forget(now_s)
        if size_max_b is None:
            return digest_of(self.had, self.options.publishers_max)
        digest = digest_within(self.had, size_max_b, self._turn)
        self._turn += len(digest.runs)
        return digest

    def offers(
        self,
        to: NodeId,
        beacon: Beacon,
        now_s: float,
        beyond: Sequence[FilterSet] = (),
        besides: Callable[[EventId], bool] = lambda event: False,
    ) -> Iterator[Data]:
        """What that broker lacks and wants, itself or for those `beyond` it, the oldest first, since it is the first to
        be dropped; `besides` is on its way already."""
        if beacon.have is None:
            return
        self._forget(now_s)
        left = self.options.batch_max
        for carried in self._lacking(to, beacon.have, now_s, (beacon.wanted, *beyond)):
            if left == 0:
                return
            if besides(carried.event.id):
                continue
            left -= 1
            carried.offered[to] += 1
            carried.destinations[to] = 0
            yield Data(carried.event, 0, dict(carried.destinations), age_s=now_s - carried.born_s)

    def _lacking(self, to: NodeId, have: Digest, now_s: float, wanted: Sequence[FilterSet]) -> Iterator[Carried]:
        for event in self.kept:
            if have.lacks(event):
                carried = self.kept.get(event)
                assert carried is not None
                if self._may_offer(carried, to, now_s):
                    values = carried.event.values()
                    if any(one.matches(values) for one in wanted):
                        yield carried

    def _may_offer(self, carried: Carried, to: NodeId, now_s: float) -> bool:
        is_young = now_s - carried.born_s <= self.options.age_max_s
        return is_young and carried.offered[to] < self.options.tries

    def _forget(self, now_s: float) -> None:
        for dropped in self.kept.forget(now_s):
            self.bytes -= dropped.size_b

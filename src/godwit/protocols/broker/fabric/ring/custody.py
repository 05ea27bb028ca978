"""Publications for which there is no matching broker at this moment: its name is not known here, or the cell is about
to change hands. What is durable of them is on the disk, and what has one target keeps its order.

And what is passed: where a cell has another owner, whoever sent publications to the old one says `Pass` behind them. It
goes the way that they go, waits wherever they wait, and is answered where they are matched (docs/ring.md, "Order").

And the trail of an owner. A cell that is divided goes when all in its book have had what its owner sent them; an owner
that was away is not asked. When it hears that its cell is another's, some of what it has matched may still be under
way, and what the other matches would overtake it. So nothing for the cell leaves it before that is confirmed: neither
publications, nor a `Pass` by which others ask whether all of theirs is matched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import Content, Dealt, Pass, Region, Routed
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.outbox import Outbox
from godwit.protocols.gathering.areas import Keyed, Spot, meets
from godwit.protocols.host import Host, NodeId
from godwit.protocols.topology.pastry.keys import padded

ROWS, PASSING, SENT, TRAILS = "custody", "passing ", "sent ", "trail "

_decode = msgspec.msgpack.Decoder(Content).decode


class Kept(msgspec.Struct, frozen=True):
    number: int
    content: Routed | Pass
    target: Keyed | Spot
    size_b: int

    @property
    def is_durable(self) -> bool:
        return isinstance(self.content, Pass) or self.content.publication.qos > 0


def way_of(region: Region) -> Keyed:
    """What goes where the publications for a cell go."""
    return Keyed(padded(region.prefix))


def _target(content: Routed | Pass, targets: Targets) -> Keyed | Spot:
    if isinstance(content, Routed):
        return targets.of_publication(content.publication)
    assert content.region is not None, "kept are those that name the cell"
    return way_of(content.region)


FROM_OTHERS, PASSED_ON = 1, 2
"""Hops of what whoever took it has sent here, and of what another has passed on to here."""


class Queue:
    """What waits for one target, or for places in one cell, from the oldest on. Only the oldest leaves."""

    def __init__(self) -> None:
        self._far: tuple[deque[Kept], ...] = deque(), deque(), deque()
        """By hops: what has come at least so far."""

    def __bool__(self) -> bool:
        return bool(self._far[0])

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._far[0])

    @property
    def oldest(self) -> Kept:
        return self._far[0][0]

    def append(self, one: Kept) -> None:
        for some in self._far[: one.content.hops + 1]:
            some.append(one)

    def drop_oldest(self) -> None:
        for some in self._far[: self.oldest.content.hops + 1]:
            some.popleft()

    def after(self, hops: int) -> Iterator[Kept]:
        """What has come at least so far. Where all has the same target the oldest tells all."""
        some = self._far[hops]
        return islice(some, 1) if some and isinstance(some[0].target, Keyed) else iter(some)


class Custody:
    """However much waits, what concerns another target is not slowed down by it, nor dropped for it."""

    def __init__(
        self, store: Store, targets: Targets, cell_of: Callable[[Spot], str] = lambda spot: "", bytes_max: int = 2**28
    ) -> None:
        self.store = store
        self.cell_of = cell_of
        """The prefix of the cell that a place is in; empty where that is not known."""
        self.bytes_max = bytes_max
        self.bytes = 0
        self._queues: dict[Keyed | str, Queue] = {}
        """By target. Publications with a place are kept by the prefix of their cell, as it was when they came."""
        self._passes: dict[int, Kept] = {}
        self._said: dict[str, dict[int, Publication]] = {}
        """By publisher."""
        self._number = 0
        rows = ((number, row) for owner, number, row in store.load(TABLE) if owner == ROWS)
        for number, row in sorted(rows):
            content: Routed | Pass = msgspec.msgpack.decode(row, type=Routed | Pass)
            self._keep(Kept(number, content, _target(content, targets), len(row)))
            self._number = number

    def __iter__(self) -> Iterator[Kept]:
        """From the oldest on."""
        return iter(sorted(chain(self._passes.values(), *self._queues.values()), key=lambda one: one.number))

    def __len__(self) -> int:
        return sum(map(len, self._said.values())) + len(self._passes)

    def add(self, content: Routed | Pass, target: Keyed | Spot) -> int:
        """How much is dropped for it: where more would wait than may, the oldest that waits for the same."""
        self._number += 1
        row = msgspec.msgpack.encode(content)
        kept = Kept(self._number, content, target, len(row))
        if kept.is_durable:
            self.store.put(TABLE, ROWS, self._number, row)
        kind = self._keep(kept)
        dropped = 0
        while self.bytes > self.bytes_max and kind in self._queues:
            self._drop_oldest(kind)
            dropped += 1
        return dropped

    def _keep(self, one: Kept) -> Keyed | str | None:
        """In which queue."""
        if isinstance(one.content, Pass):
            self._passes[one.number] = one
            return None
        kind = one.target if isinstance(one.target, Keyed) else self.cell_of(one.target)
        self._queues.setdefault(kind, Queue()).append(one)
        publication = one.content.publication
        self._said.setdefault(publication.publisher, {})[one.number] = publication
        self.bytes += one.size_b
        return kind

    def _drop_oldest(self, kind: Keyed | str) -> None:
        queue = self._queues[kind]
        self._forget(queue.oldest)
        queue.drop_oldest()
        if not queue:
            del self._queues[kind]

    def _forget(self, one: Kept) -> None:
        if isinstance(one.content, Routed):
            self.bytes -= one.size_b
            publisher = one.content.publication.publisher
            del self._said[publisher][one.number]
            if not self._said[publisher]:
                del self._said[publisher]
        if one.is_durable:
            self.store.delete(TABLE, ROWS, one.number)

    def _before(self, target: Keyed | Spot) -> Iterable[Queue]:
        """Where something may be kept that goes before what comes now for this target."""
        if isinstance(target, Keyed):
            return (self._queues[target],) if target in self._queues else ()
        return self._related(self.cell_of(target)) if self._queues else ()

    def _related(self, cell: str) -> Iterator[Queue]:
        """Cells may have been cut since: queues of which this cell is a part, or that are of a part of it."""
        found = ((kind, queue) for kind, queue in self._queues.items() if isinstance(kind, str))
        return (queue for kind, queue in found if kind.startswith(cell) or cell.startswith(kind))

    def precedes(self, target: Keyed | Spot) -> bool:
        """Whether something is kept that must go before what comes now for this target."""
        return any(self._before(target))

    def has_passed_on(self, target: Keyed | Spot) -> bool:
        """Whether something is kept that others have passed on, and that must go before what comes now."""
        return any(True for queue in self._before(target) for _ in queue.after(PASSED_ON))

    def has_passed_on_for(self, region: Region) -> bool:
        """The same for all that is kept for a cell."""
        return self._has(region, PASSED_ON, self._number + 1)

    def has_for_others(self, region: Region) -> bool:
        """Whether something is kept for the cell that other brokers have sent here."""
        waits = self._has(region, FROM_OTHERS, self._number + 1)
        return waits or any(meets(region.cell, one.target) for one in self._passes.values())

    def _has(self, region: Region, hops: int, number: int) -> bool:
        """Whether something that has come so far, and before this number, is kept for the cell."""
        some = (one for queue in self._queues.values() for one in queue.after(hops))
        return any(one.number < number and meets(region.cell, one.target) for one in some)

    def said_by(self, publisher: str) -> list[Publication]:
        """What is kept of what this one said."""
        return list(self._said.get(publisher, {}).values())

    def targets(self) -> Iterable[Keyed | Spot]:
        """What cannot go before its owner is known, or is there: of each queue the oldest, and all that is passed."""
        waiting = [queue.oldest for queue in self._queues.values()]
        return dict.fromkeys(one.target for one in (*waiting, *self._passes.values()))

    def release(self, may_go: Callable[[Kept], bool]) -> None:
        """`may_go` takes what it can, from the oldest on; what stays keeps back all of its kind, and what is passed
        behind it. A `Pass` says that what others sent here is there. It says nothing of what clients here have said."""
        while sum(self._release(kind, queue, may_go) for kind, queue in list(self._queues.items())):
            pass  # what was older in a cell that has been cut since may have kept something back
        stays: list[Kept] = []
        for one in list(self._passes.values()):
            if not self._is_behind(one, stays) and may_go(one):
                del self._passes[one.number]
                self._forget(one)
            else:
                stays.append(one)

    def _release(self, kind: Keyed | str, queue: Queue, may_go: Callable[[Kept], bool]) -> bool:
        has_gone = False
        while queue and self._is_first(kind, queue.oldest) and may_go(queue.oldest):
            self._drop_oldest(kind)
            has_gone = True
        return has_gone

    def _is_first(self, kind: Keyed | str, one: Kept) -> bool:
        return isinstance(kind, Keyed) or all(other.oldest.number >= one.number for other in self._related(kind))

    def _is_behind(self, one: Kept, stays: Iterable[Kept]) -> bool:
        assert isinstance(one.content, Pass)
        region = one.content.region
        assert region is not None, "kept are those that name the cell"
        return any(meets(region.cell, other.target) for other in stays) or self._has(region, FROM_OTHERS, one.number)


class Passing(msgspec.Struct, frozen=True, array_like=True):
    """The row of a cell with a new owner, to which nothing is sent before all that went to an old one is there."""

    region: Region
    ticket: int
    via: NodeId
    """To whom that went first."""


class Passes:
    """To whom publications were sent, and cells for which this broker waits. All of it is on the disk: a crash changes
    nothing of what is under way."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: dict[str, Passing] = {}
        self.sent: dict[str, NodeId] = {}
        """By prefix of a cell, as it was then: to whom publications for it were sent last."""
        for owner, _, row in store.load(TABLE):
            if owner.startswith(PASSING):
                self.waiting[owner.removeprefix(PASSING)] = msgspec.msgpack.decode(row, type=Passing)
            elif owner.startswith(SENT):
                self.sent[owner.removeprefix(SENT)] = row.decode()

    def sends(self, region: Region) -> None:
        """A publication for this cell is sent to its owner. All that was sent to others for it is there."""
        prefix, owner = region.prefix, region.owner
        if self.sent.get(prefix) != owner:
            for known in [known for known in self.sent if known.startswith(prefix) and known != prefix]:
                del self.sent[known]
                self.store.delete(TABLE, SENT + known, 0)
            self.sent[prefix] = owner
            self.store.put(TABLE, SENT + prefix, 0, owner.encode())

    def closes(self, region: Region) -> bool:
        return any(True for _ in self._sharing(region))

    def way(self, region: Region) -> NodeId:
        """To whom all that others have sent here for this cell went from here, while that is still to be answered:
        there their `Pass` goes too. Empty where that is nobody, or several."""
        found = list(self._sharing(region))
        ways = {one.via for one in found}
        is_whole = all(region.prefix.startswith(one.region.prefix) for one in found)
        return ways.pop() if is_whole and len(ways) == 1 else ""

    def _sharing(self, region: Region) -> Iterable[Passing]:
        prefix = region.prefix
        return (one for at, one in self.waiting.items() if at.startswith(prefix) or prefix.startswith(at))

    def begin(self, region: Region, ticket: int) -> NodeId:
        """A cell has a new owner. To whom to say `Pass`: to whom publications for it were sent last; empty where that
        need not be, or nobody was sent any. While a `Pass` is under way, nobody else was."""
        before = list(self._sharing(region))
        via = before[0].via if before else self._last(region)
        if not via or (via == region.owner and not before):
            return ""
        for one in before:
            if one.region.prefix.startswith(region.prefix):
                self._end(one)
        self.waiting[region.prefix] = passing = Passing(region, ticket, via)
        self.store.put(TABLE, PASSING + region.prefix, 0, msgspec.msgpack.encode(passing))
        return via

    def _last(self, region: Region) -> NodeId:
        """The smallest cell of which this is a part was used last, and else a part of this."""
        prefix = region.prefix
        around = [known for known in self.sent if prefix.startswith(known)]
        within = [known for known in self.sent if known.startswith(prefix)]
        found = max(around, key=len, default="") if around else next(iter(within), None)
        return "" if found is None else self.sent[found]

    def end(self, is_over: Callable[[Passing], bool]) -> None:
        for one in [one for one in self.waiting.values() if is_over(one)]:
            self._end(one)

    def _end(self, one: Passing) -> None:
        del self.waiting[one.region.prefix]
        self.store.delete(TABLE, PASSING + one.region.prefix, 0)


class Trails:
    """What an owner has matched before another stood in for it, and what others have not confirmed of that. Which cells
    those are is on the disk, and so is what is under way."""

    def __init__(self, host: Host, store: Store, outbox: Outbox, targets: Targets, wait_s: float) -> None:
        self.host = host
        self.store = store
        self.outbox = outbox
        self.targets = targets
        self.wait_s = wait_s
        """How long it is waited for; beyond that what comes goes."""
        self.left: dict[str, dict[NodeId, int]] = {}
        """By prefix of the cell: the last publication that each broker has not confirmed."""
        for owner, _, row in store.load(TABLE):
            if owner.startswith(TRAILS):
                region = msgspec.msgpack.decode(row, type=Region)
                self.left[region.prefix] = self._unconfirmed(region)

    def start(self) -> None:
        self.look()
        for prefix, left in self.left.items():
            self.host.after(self.wait_s, partial(self._end, prefix, left))

    def begin(self, region: Region) -> None:
        """This cell was here, and is another's now."""
        left = self._unconfirmed(region)
        if left:
            self.left[region.prefix] = left
            self.store.put(TABLE, TRAILS + region.prefix, 0, msgspec.msgpack.encode(region))
            self.host.after(self.wait_s, partial(self._end, region.prefix, left))

    def closes(self, region: Region) -> bool:
        """Whether nothing is to leave for it."""
        prefix = region.prefix
        return any(at.startswith(prefix) or prefix.startswith(at) for at in self.left)

    def look(self) -> bool:
        """Call it where something was confirmed, or given up. Whether a cell is no longer waited for."""
        done = [prefix for prefix, left in self.left.items() if not any(map(self._waits, left, left.values()))]
        for prefix in done:
            self._end(prefix, self.left[prefix])
        return bool(done)

    def _waits(self, broker: NodeId, number: int) -> bool:
        lane = self.outbox.lanes.get(broker)
        return lane is not None and number in lane.parcels

    def _end(self, prefix: str, left: dict[NodeId, int]) -> None:
        if self.left.get(prefix) is left:
            del self.left[prefix]
            self.store.delete(TABLE, TRAILS + prefix, 0)

    def _unconfirmed(self, region: Region) -> dict[NodeId, int]:
        found = ((name, self.last(name, region)) for name in self.outbox.lanes)
        return {name: number for name, number in found if number}

    def last(self, broker: NodeId, region: Region) -> int:
        """The number of the last publication for the cell that it has not confirmed; 0 where there is none."""
        lane = self.outbox.lanes.get(broker)
        if lane is None:
            return 0
        bodies = ((number, lane.parcels[number].body) for number in reversed(lane.parcels))
        return next((number for number, body in bodies if self._is_of(_decode(body), region)), 0)

    def _is_of(self, content: Content, region: Region) -> bool:
        one = content.publication if isinstance(content, Dealt) else content
        return isinstance(one, Publication) and meets(region.cell, self.targets.of_publication(one))

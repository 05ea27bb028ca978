"""The receiving half of streams: takes each content once and in order, and confirms what is safe.

Why once. What is given to the broker has a number above all before it (`given`). After a crash `given` begins at the
mark, and the mark is written in the same turn of the store as what the broker made of the content: the disk has both or
neither. What comes again and is at or below it was had; what is above it left no trace.

Why in order. Each item names the number that it follows on. It is given when that one was, or when that one will not
come any more because the sender has dropped it and said so by naming an earlier one. Everything else is held back.

Why what is held back is bounded. There is room for `held_max` of it; what is beyond is dropped and not confirmed, so it
comes again. The answer tells the sender of the gap, which asks, and goes back to what is missing.

Costs: one comparison for an item that follows, a push and a pop on a heap for one that does not. One row for the mark,
and one confirmation, for all that comes from an origin in a turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush

import msgspec

from godwit.protocols.broker.messages import Content, retimed
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.frames import Ask, Item, Parcels, Taken, decode_items
from godwit.protocols.broker.streams.sender import Carry, Counts, StreamOptions
from godwit.protocols.host import Host, LocalError, NodeId, RemoteError

TABLE = "marks"
RETIRED_MAX = 16
"""How many former streams of an origin are remembered: one for each disk that it has lost."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """How far a stream has come: the row at (origin, 0)."""

    stream: int
    number: int


class Source:
    """The stream from one origin."""

    __slots__ = ("dirty", "given", "held", "held_order", "mark", "pending", "retired", "safe", "settling", "stream")

    def __init__(self, stream: int, number: int = 0) -> None:
        self.retired: deque[int] = deque(maxlen=RETIRED_MAX)
        self._begin(stream, number)

    def _begin(self, stream: int, number: int) -> None:
        self.stream = stream
        self.given = number
        """The last that was passed to the broker."""
        self.mark = number
        """The last that the broker has done with."""
        self.safe = number
        """The last that may be confirmed."""
        self.pending: deque[tuple[int, bool]] = deque()
        self.held: dict[int, tuple[int, Item]] = {}
        self.held_order: list[int] = []
        self.dirty = False
        """Whether a mark has been written that nobody has asked the disk for yet."""
        self.settling = 0

    def follow(self, stream: int) -> bool:
        """Whether this is the origin's present stream. One never heard of is, as soon as the broker has done with the
        last: the origin has lost its disk and begins again."""
        if stream == self.stream:
            return True
        # A frame of a stream that is over may come late; and as long as the broker works on the last stream, `taken`
        # speaks of its numbers, which begin again in the next.
        if stream in self.retired or self.pending:
            return False
        self.retired.append(self.stream)
        self._begin(stream, 0)
        return True

    def hold(self, previous: int, item: Item) -> None:
        if item.number not in self.held:
            heappush(self.held_order, item.number)
        self.held[item.number] = (previous, item)

    def next_held(self) -> Item | None:
        """What was kept back and follows now."""
        while self.held_order:
            number = self.held_order[0]
            previous, item = self.held[number]
            if number > self.given and previous > self.given:
                return None
            heappop(self.held_order)
            del self.held[number]
            if number > self.given:
                return item
        return None


class Receiver:
    """`on_content` gets everything once and in order, and `taken` says when it is done with. `on_reborn` is called
    before the first from an origin that has lost its disk.

    What was sent to a former life of this broker is not taken: nobody knows whether that life had it. The answer names
    this one, and what is durable comes again.
    """

    def __init__(
        self,
        host: Host,
        store: Store,
        options: StreamOptions,
        counts: Counts,
        carry: Carry,
        on_content: Callable[[NodeId, int, Content], None],
        on_reborn: Callable[[NodeId], None],
        clock: Callable[[], float],
        disk: int = 0,
    ) -> None:
        self.host = host
        self.disk = disk
        """The name of this broker's."""
        self.clock = clock
        self.store = store
        self.options = options
        self.counts = counts
        self.carry = carry
        self.on_content = on_content
        self.on_reborn = on_reborn
        self.on_met: Callable[[NodeId], None] = lambda origin: None
        """Called before the first that ever comes from an origin: its disk is known from now on."""
        self.life = 1 + host.random.getrandbits(60)
        self.sources: dict[NodeId, Source] = {}
        self._owed: dict[NodeId, bool] = {}
        self._announced: set[NodeId] = set()
        self._giving: Source | None = None
        """The one whose items are being given to the broker in this turn."""
        for origin, _, value in store.load(TABLE):
            mark = msgspec.msgpack.decode(value, type=Mark)
            self.sources[origin] = Source(mark.stream, mark.number)

    def asked(self, ask: Ask) -> None:
        """Answer. A stream never heard of has come nowhere; it is followed only when it speaks to this life, since a
        question may be old."""
        source = self.sources.get(ask.origin)
        if source is None or (ask.stream != source.stream and ask.stream not in source.retired):
            source = Source(ask.stream)
        if ask.stream == source.stream:
            self._tell(ask.origin, source, serial=ask.serial)

    def announce(self, origin: NodeId) -> None:
        """A way to this origin has appeared: let it know, once, of this life, so that it sends nothing to the last."""
        if origin in self.sources and origin not in self._announced:
            self._announced.add(origin)
            self._owe(origin)

    def receive(self, parcels: Parcels) -> None:
        """Take what is for this broker. Nothing has changed where `RemoteError` is raised."""
        offset_s = self.clock() - parcels.sent if parcels.sent else 0.0
        runs = [
            (leg.life, leg.previous, _retimed(decode_items(run), offset_s))
            for run in parcels.runs
            for leg in run.legs
            if leg.to == self.host.name
        ]
        for _, previous, items in runs:
            if items and items[0].number <= previous:
                raise RemoteError(f"{parcels.origin} puts {items[0].number} behind {previous}")
        for life, previous, items in runs:
            if life == self.life:
                self._take_run(parcels.origin, parcels.stream, previous, items)
            else:
                self.asked(Ask(parcels.origin, parcels.stream, self.host.name))

    def _meet(self, origin: NodeId, stream: int) -> Source:
        source = self.sources[origin] = Source(stream)
        self.on_met(origin)
        return source

    def _follow(self, origin: NodeId, source: Source, stream: int) -> bool:
        if source.stream == stream:
            return True
        if not source.follow(stream):
            return False
        self.on_reborn(origin)
        return True

    def is_of(self, origin: NodeId, disk: int) -> bool:
        """Whether this is the disk of that broker; one never heard of is from now on, and `on_reborn` is told before
        anything that the new disk has confirmed is believed."""
        if not disk:
            return True
        source = self.sources.get(origin)
        if source is None:
            source = self._meet(origin, disk)
        elif source.stream == disk:
            return True
        elif not self._follow(origin, source, disk):
            return False
        self.store.put(TABLE, origin, 0, msgspec.msgpack.encode(Mark(disk, source.mark)))
        return True

    def taken(self, origin: NodeId, number: int) -> None:
        """The broker has done with everything up to this number, and written what came of it."""
        source = self.sources.get(origin)
        if source is None or number > source.given:
            raise LocalError(f"{number} has not come from {origin}")
        if number <= source.mark:
            return
        pending = source.pending
        while pending and pending[0][0] <= number:
            if pending.popleft()[1]:
                source.dirty = True
        source.mark = number
        if source is not self._giving:
            self._write(origin, source)

    def _take_run(self, origin: NodeId, stream: int, previous: int, items: tuple[Item, ...]) -> None:
        source = self.sources.get(origin)
        if source is None:
            source = self._meet(origin, stream)
        if not self._follow(origin, source, stream):
            return
        self._giving = source
        try:
            self._take_items(origin, source, previous, items)
        finally:
            self._giving = None
            self._write(origin, source)

    def _take_items(self, origin: NodeId, source: Source, previous: int, items: tuple[Item, ...]) -> None:
        for item in items:
            if item.number <= source.given:
                self.counts.repetitions += 1
            elif previous <= source.given:
                self._give(origin, source, item)
            elif len(source.held) < self.options.held_max or item.number in source.held:
                source.hold(previous, item)
            else:
                self.counts.overflowed += 1
            previous = item.number
        while source.held and (held := source.next_held()) is not None:
            self._give(origin, source, held)

    def _write(self, origin: NodeId, source: Source) -> None:
        """Put the mark beside what the broker has written in this turn: once for all that it was given in it."""
        if source.dirty:
            self.store.put(TABLE, origin, 0, msgspec.msgpack.encode(Mark(source.stream, source.mark)))
        self._owe(origin, gap=bool(source.held))

    def _give(self, origin: NodeId, source: Source, item: Item) -> None:
        source.given = item.number
        source.pending.append((item.number, item.durable))
        self.counts.given += 1
        self.on_content(origin, item.number, item.content)

    def _owe(self, origin: NodeId, *, gap: bool = False) -> None:
        """Tell the origin soon how far its stream has come."""
        if not self._owed:
            self.host.after(self.options.confirm_s, self._confirm)
        self._owed[origin] = self._owed.get(origin, False) or gap

    def _confirm(self) -> None:
        """Confirm what needs no disk now, and the rest when the disk has it."""
        owed, self._owed = self._owed, {}
        written: list[tuple[NodeId, Mark]] = []
        for origin, gap in owed.items():
            source = self.sources[origin]
            if source.dirty or source.settling:
                # Confirmed will be what is marked now: what is marked while the disk works is not on it yet.
                source.dirty = False
                source.settling += 1
                written.append((origin, Mark(source.stream, source.mark)))
                if not gap:
                    continue
            else:
                source.safe = source.mark
            self._tell(origin, source, gap=gap and bool(source.held))
        if written:
            self.store.settled(partial(self._on_settled, written))

    def _on_settled(self, written: list[tuple[NodeId, Mark]]) -> None:
        for origin, mark in written:
            source = self.sources[origin]
            if source.stream == mark.stream:
                source.settling -= 1
                source.safe = max(source.safe, mark.number)
                self._tell(origin, source)

    def _tell(self, origin: NodeId, source: Source, *, serial: int = 0, gap: bool = False) -> None:
        name = self.host.name
        self.carry(
            Taken(name, self.life, origin, source.stream, source.safe, source.given, serial, gap, disk=self.disk)
        )


def _retimed(items: tuple[Item, ...], offset_s: float) -> tuple[Item, ...]:
    """With times by this broker's clock. Most say none."""
    found = [retimed(item.content, offset_s) for item in items]
    for one, item in zip(found, items, strict=True):
        if one is not item.content:
            break
    else:
        return items
    return tuple(Item(item.number, item.durable, one) for one, item in zip(found, items, strict=True))

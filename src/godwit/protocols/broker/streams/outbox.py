"""What a broker has said to the others and they have not confirmed.

On the disk a durable parcel is one row however many receivers it has, deleted when the last one has confirmed it. Those
that confirm earlier have a row each that says up to where: written once for a confirmation, not for a parcel. So a
parcel to n receivers costs one row put and deleted, and at most one small row for each confirmation. Should a crash
take the last of these along, parcels are sent again that their receiver knows by their numbers.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable

import msgspec

from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId

TABLE = "outbox"


class Parcel:
    """One content on its way, kept once however many receivers it has."""

    __slots__ = ("body", "durable", "kept_for", "number", "settled", "since_s")

    def __init__(self, number: int, body: bytes, durable: bool, since_s: float, settled: bool = False) -> None:
        self.number = number
        self.body = body
        self.durable = durable
        self.settled = settled or durable
        """It leaves when the disk has all that was written before it."""
        self.since_s = since_s
        self.kept_for = 0


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A durable parcel on the disk, at ("", number)."""

    to: tuple[NodeId, ...]
    body: bytes


_encode = msgspec.msgpack.Encoder().encode


class Lane:
    """The stream to one receiver. Of the parcels, those in `waiting` have not been sent, or must be sent again."""

    __slots__ = (
        "age_max_s",
        "ask_at_s",
        "ask_wait_s",
        "asked_to",
        "asking",
        "bytes",
        "bytes_max",
        "confirmed",
        "dropped",
        "life",
        "parcels",
        "sent_bytes",
        "sent_max",
        "tail",
        "to",
        "waiting",
    )

    def __init__(self, to: NodeId) -> None:
        self.to = to
        self.life = 0
        """The receiver's, once it has said it; nothing is sent before."""
        self.parcels: OrderedDict[int, Parcel] = OrderedDict()
        """By number, and from the oldest on; of a plain dict the first is slow to find where many went before it."""
        self.waiting: deque[int] = deque()
        self.bytes = 0
        self.bytes_max: int | None = None
        """A bound of its own, in place of that for all."""
        self.age_max_s: float | None = None
        self.dropped = 0
        """How much a bound has taken away, since the start."""
        self.sent_bytes = 0
        self.confirmed = 0
        """What the receiver, in this life, has said to be done with."""
        self.tail = 0
        """What the next parcel follows on."""
        self.sent_max = 0
        """The highest number that any life of the receiver may have seen."""
        self.asking = 0
        """The serial of the question that has not been answered; 0: none."""
        self.asked_to = 0
        """The last number sent before that question."""
        self.ask_at_s = 0.0
        self.ask_wait_s = 0.0

    @property
    def under_way(self) -> int:
        return len(self.parcels) - len(self.waiting)

    @property
    def oldest(self) -> Parcel:
        return next(iter(self.parcels.values()))

    def add(self, parcel: Parcel) -> None:
        parcel.kept_for += 1
        self.parcels[parcel.number] = parcel
        self.waiting.append(parcel.number)
        self.bytes += len(parcel.body)

    def next(self, settled: int) -> Parcel | None:
        """The next to be sent, unless it must wait for the disk."""
        if not self.waiting:
            return None
        parcel = self.parcels[self.waiting[0]]
        return None if parcel.settled and parcel.number > settled else parcel

    def sent(self, parcel: Parcel) -> None:
        self.waiting.popleft()
        self.sent_bytes += len(parcel.body)
        self.tail = parcel.number
        if parcel.number > self.sent_max:
            self.sent_max = parcel.number

    def rewind(self, given: int) -> None:
        """Everything after `given`, which has arrived, is to be sent again."""
        self.waiting = deque(number for number in self.parcels if number > given)
        self.sent_bytes = self.bytes - sum(len(self.parcels[number].body) for number in self.waiting)
        self.tail = given
        self.asking = 0

    def reopen(self, life: int, confirmed: int, given: int) -> int:
        """The receiver has begun another life, or its first; how many parcels are given up.

        Those are the ones that were sent and are not durable: a former life may have taken them.
        """
        lost = [n for n, parcel in self.parcels.items() if n <= self.sent_max and not parcel.durable]
        for number in lost:
            self.bytes -= len(self.parcels.pop(number).body)
        self.life, self.confirmed = life, confirmed
        self.rewind(given)
        return len(lost)

    def remove(self, number: int) -> Parcel:
        parcel = self.parcels.pop(number)
        self.bytes -= len(parcel.body)
        if self.waiting and self.waiting[0] == number:
            self.waiting.popleft()
        else:
            self.sent_bytes -= len(parcel.body)
        if self.tail == number > self.confirmed:
            # Nothing that has been sent is kept any more: what comes next follows on what was confirmed.
            self.tail = self.confirmed
        return parcel


class Outbox:
    """All lanes, and on the disk each durable parcel once, with a row per receiver that says up to where it needs none.

    After a crash the durable parcels are there again with the same numbers.
    """

    def __init__(self, store: Store, now_s: float) -> None:
        self.store = store
        self.lanes: dict[NodeId, Lane] = {}
        self._load(now_s)

    def _load(self, now_s: float) -> None:
        rows = list(self.store.load(TABLE))
        done = {owner: int(value) for owner, _, value in rows if owner}
        for owner, number, value in rows:
            if owner:
                continue
            row = msgspec.msgpack.decode(value, type=Row)
            parcel = Parcel(number, row.body, durable=True, since_s=now_s)
            for to in row.to:
                if number > done.get(to, 0):
                    self.lane(to).add(parcel)
            if not parcel.kept_for:
                self.store.delete(TABLE, "", number)

    def lane(self, to: NodeId) -> Lane:
        lane = self.lanes.get(to)
        if lane is None:
            lane = self.lanes[to] = Lane(to)
        return lane

    def add(self, parcel: Parcel, to: tuple[NodeId, ...]) -> None:
        for name in to:
            self.lane(name).add(parcel)
        if parcel.durable:
            self.store.put(TABLE, "", parcel.number, _encode(Row(to, parcel.body)))

    def renumber(self, lane: Lane, parcel: Parcel, number: int, now_s: float) -> None:
        """To this receiver it goes under another number; to others as it is."""
        self._remove(lane, (parcel.number,))
        self.add(Parcel(number, parcel.body, parcel.durable, now_s, parcel.settled), (lane.to,))

    def release(self, lane: Lane, upto: int) -> int:
        """The receiver needs nothing up to this number any more; how many parcels that were."""
        done: list[int] = []
        for number in lane.parcels:
            if number > upto:
                break
            done.append(number)
        if done:
            self._remove(lane, done)
        return len(done)

    def forget(self, lane: Lane) -> int:
        """Give a receiver up with all that is kept for it; how many parcels that were. Should it come back, it may
        still confirm what it was sent."""
        lane.life = 0
        return self.release(lane, max(lane.parcels, default=0))

    def _remove(self, lane: Lane, numbers: Iterable[int]) -> None:
        last = 0
        for number in numbers:
            parcel = lane.remove(number)
            parcel.kept_for -= 1
            if not parcel.durable:
                continue
            if parcel.kept_for:
                last = number
            else:
                self.store.delete(TABLE, "", number)
        if last:
            self.store.put(TABLE, lane.to, 0, str(last).encode())

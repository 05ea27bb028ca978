"""The sending half of streams: numbers, keeps, sends, asks, and forgets what is confirmed.

Why nothing durable is lost. A parcel is on this disk before it leaves, and stays in the outbox until its receiver has
confirmed it; a receiver confirms what is on its own disk. A crash of this broker brings back the same parcels under the
same numbers, so that what arrives again is known by its number and dropped. Only a limit, or giving up the receiver,
takes an unconfirmed parcel away, and then it is counted.

Why the window is no deadlock. Only what is under way counts for it, and `_tick` asks whoever leaves something under way
unanswered: either the answer confirms it, or it says that it is lost, and `rewind` takes it off the window. A question
is asked again in its time, whatever the receiver says meanwhile: while more is sent, it reports a gap all the time, and
the question may be lost, or its answer.

Costs: a parcel is encoded once and kept once for all receivers. A turn sorts the numbers that leave in it, and runs of
them with the same receivers share one frame. A lane with nothing to send costs nothing in a turn (`_busy`), and a look
every half `retry_s`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from godwit.protocols.broker.messages import Content
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.frames import Ask, Leg, Parcels, Run, Taken, encode
from godwit.protocols.broker.streams.outbox import Lane, Outbox, Parcel
from godwit.protocols.broker.streams.sequence import LEAP, Numbers
from godwit.protocols.host import Host, LocalError, NodeId, RemoteError


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    window: int = 8_192
    """How many parcels may be under way to one receiver, unconfirmed."""
    window_b: int = 4 * 1024 * 1024
    held_max: int = 8_192
    """How many that leave a gap a receiver keeps back for each origin; what is beyond comes again."""
    frame_b: int = 64 * 1024
    """About how much travels in one frame."""
    retry_s: float = 1.0
    """How long a receiver may be silent before it is asked; twice as long each time it does not answer."""
    retry_max_s: float = 4.0
    """Shorter than clients wait for their sessions: whoever has them is asked as soon as it is back."""
    confirm_s: float = 0.002
    """How long confirmations gather."""
    outbox_bytes_max: int = 256 * 1024 * 1024
    """What one receiver may leave unconfirmed; beyond it the oldest is dropped and counted."""
    outbox_age_max_s: float = 7 * 24 * 3600.0
    """How long, by this broker's clock and since its start."""


class Counts(msgspec.Struct):
    """Of one broker since its start."""

    sent: int = 0
    """Parcels, once for each receiver."""
    repeated: int = 0
    confirmed: int = 0
    given: int = 0
    """Contents that came in through streams."""
    repetitions: int = 0
    """That came again, and were dropped."""
    overflowed: int = 0
    """That left a gap, and for which there was no room."""
    refused: int = 0
    """Frames that cannot be true, passed on by others than who made them."""
    dropped_full: int = 0
    dropped_old: int = 0
    dropped_gone: int = 0
    """Kept for a receiver that was given up."""
    restored: int = 0
    """Receivers that knew more of this broker's stream than its disk did: that is a copy of an earlier one."""
    dropped_uncertain: int = 0
    """Not durable, and under way to a receiver that has restarted: it may have had them, and none comes twice."""


Carry = Callable[[Parcels | Ask | Taken], None]


class Sender:
    """`carry` takes a frame one step towards whoever it is for, or loses it; `has_way` says whether it is worth trying.

    Durable parcels leave once they are on the disk; until `start` nothing leaves.
    """

    def __init__(
        self,
        host: Host,
        store: Store,
        stream: int,
        options: StreamOptions,
        counts: Counts,
        carry: Carry,
        has_way: Callable[[NodeId], bool],
        clock: Callable[[], float],
    ) -> None:
        self.host = host
        self.clock = clock
        self.store = store
        self.stream = stream
        self.options = options
        self.counts = counts
        self.carry = carry
        self.has_way = has_way
        self.outbox = Outbox(store, host.now())
        self.numbers = Numbers(store, "numbers")
        self._first = self._settled = self.numbers.last
        self._started = self._awake = self._unsettled = False
        self._busy: dict[NodeId, Lane] = {}
        self._serial = host.random.getrandbits(31)
        self.on_restored: Callable[[NodeId, int], None] = lambda receiver, numbers: None
        """Called with a receiver that has had more of this stream than the disk knows, and how many numbers more."""
        self.on_given_up: Callable[[NodeId], None] = lambda receiver: None
        """Called with a receiver that has restarted, where something that is not durable may not have come."""

    def start(self) -> None:
        """The numbers are reserved on the disk: begin."""
        self._started = True
        self._busy = dict(self.outbox.lanes)
        self._wake()
        self.host.after(self.options.retry_s, self._tick)

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True, settled: bool = False) -> None:
        """`settled`: what is not durable itself waits for the disk in its place of the stream, as what is durable."""
        names = tuple(dict.fromkeys(to))
        if self.host.name in names:
            raise LocalError(f"{self.host.name} cannot send to itself")
        if not names:
            return
        parcel = Parcel(self.numbers.next(), encode(content), durable, self.host.now(), settled)
        self.outbox.add(parcel, names)
        self._unsettled = self._unsettled or parcel.settled
        for name in names:
            lane = self._busy[name] = self.outbox.lanes[name]
            bytes_max = self.options.outbox_bytes_max if lane.bytes_max is None else lane.bytes_max
            while lane.bytes > bytes_max:
                self.counts.dropped_full += self._drop_oldest(lane)
        self._wake()

    def again(self, to: NodeId) -> None:
        """A way to this receiver has appeared, or another: what was under way may be lost."""
        if not self._started:
            return
        lane = self.outbox.lane(to)
        if lane.under_way or not lane.life:
            lane.ask_wait_s = 0.0
            self._ask(lane)
        self._push(lane)

    def forget(self, to: NodeId) -> None:
        """Give this receiver up."""
        lane = self.outbox.lanes.get(to)
        if lane is not None:
            self._busy.pop(to, None)
            self.counts.dropped_gone += self.outbox.forget(lane)

    def confirmed(self, taken: Taken) -> None:
        """What a receiver says of the stream to it."""
        lane = self.outbox.lanes.get(taken.by)
        if taken.stream != self.stream:
            return  # It has not heard yet that this broker has lost its disk.
        if taken.number > taken.given:
            raise RemoteError(f"{taken.by} has {taken.given} and confirms {taken.number}")
        # Believed, a number too high would throw away what nobody has, now or when the stream gets there.
        if taken.given > self.numbers.last and not self._is_news(lane, taken):
            raise RemoteError(f"{taken.by} has {taken.given} of {self.numbers.last}")
        # What this broker sent before its last start it does not know: numbers up to `_first` may have been.
        if taken.given > max(lane.sent_max if lane is not None else 0, self._first):
            if not self._is_news(lane, taken):
                raise RemoteError(f"{taken.by} says it has {taken.given}, which was not sent to it")
            self._catch_up(lane, taken)
        if lane is None:
            return
        self._confirm(lane, taken)
        if not lane.asking:
            lane.ask_wait_s = 0.0
            lane.ask_at_s = self.host.now() + self.options.retry_s
        self._push(lane)

    def _is_news(self, lane: Lane | None, taken: Taken) -> bool:
        """Whether this can be what an earlier life has sent of which the disk knows nothing. Every start begins above
        all that its disk has used before, so that disk is a copy."""
        return (lane is None or not lane.sent_max) and taken.given <= self._first + LEAP

    def _catch_up(self, lane: Lane | None, taken: Taken) -> None:
        """The receiver would take what has lower numbers for repetitions."""
        self.counts.restored += 1
        self.numbers.skip_to(taken.given)
        if lane is not None:
            for parcel in [one for n, one in lane.parcels.items() if self._first < n <= taken.given]:
                self.outbox.renumber(lane, parcel, self.numbers.next(), self.host.now())
                self._unsettled = self._unsettled or parcel.settled
        self.on_restored(taken.by, taken.given - self._first)

    def _confirm(self, lane: Lane, taken: Taken) -> None:
        if taken.life != lane.life:
            self.counts.confirmed += self.outbox.release(lane, taken.number)
            lost = lane.reopen(taken.life, taken.number, taken.given)
            self.counts.dropped_uncertain += lost
            if lost:
                self.on_given_up(lane.to)
            return
        lane.confirmed = max(lane.confirmed, taken.number)
        self.counts.confirmed += self.outbox.release(lane, taken.number)
        # Only the answer to the newest question speaks of all that was sent before it. Any other may have been on its
        # way while parcels arrived, and going back to it would send these twice for nothing.
        if taken.serial and taken.serial == lane.asking:
            lane.asking = 0
            if taken.given < lane.asked_to:
                lane.rewind(taken.given)
        elif taken.gap and not lane.asking:
            self._ask(lane)

    def _push(self, lane: Lane) -> None:
        if lane.waiting:
            self._busy[lane.to] = lane
            self._wake()

    def _wake(self) -> None:
        if self._started and not self._awake:
            self._awake = True
            self.host.after(0.0, self._pump)

    def _pump(self) -> None:
        """Once a turn: everything that can leave now leaves, together where it has the same receivers."""
        self._awake = False
        if self._unsettled:
            self._unsettled = False
            self.store.settled(partial(self._on_settled, self.numbers.last))
        found: dict[int, list[tuple[Lane, int]]] = {}
        for lane in list(self._busy.values()):
            self._gather(lane, found)
        if found:
            self._send_runs(found)

    def _on_settled(self, number: int) -> None:
        self._settled = number
        if self._busy and not self._awake:
            self._pump()  # whoever waits for these has waited for the disk, and need not wait for another turn

    def _gather(self, lane: Lane, found: dict[int, list[tuple[Lane, int]]]) -> None:
        """What one receiver may get now. Whoever cannot get anything is left until something changes for it."""
        if lane.waiting and lane.life and lane.next(self._settled) is None:
            return  # the disk must have it first, and then this is called again
        if not self.has_way(lane.to):
            del self._busy[lane.to]
        elif not lane.life:
            del self._busy[lane.to]
            if self.host.now() >= lane.ask_at_s:
                self._ask(lane)
        else:
            self._fill(lane, found)

    def _fill(self, lane: Lane, found: dict[int, list[tuple[Lane, int]]]) -> None:
        under_way = lane.under_way
        if not under_way:
            lane.ask_at_s = self.host.now() + self.options.retry_s
        left, window_b = self.options.window - under_way, self.options.window_b
        while left > 0 and lane.sent_bytes < window_b:
            parcel = lane.next(self._settled)
            if parcel is None:
                break
            if parcel.number <= lane.sent_max:
                self.counts.repeated += 1
            else:
                self.counts.sent += 1
            found.setdefault(parcel.number, []).append((lane, lane.tail))
            lane.sent(parcel)
            left -= 1
        if not lane.waiting or left <= 0 or lane.sent_bytes >= window_b:
            del self._busy[lane.to]

    def _send_runs(self, found: dict[int, list[tuple[Lane, int]]]) -> None:
        frame = partial(Parcels, self.host.name, self.stream, sent=self.clock())
        frames = _Frames(frame, self.options.frame_b, self.carry)
        for number in sorted(found):
            legs = found[number]
            frames.add(legs[0][0].parcels[number], legs)
        frames.close()

    def _ask(self, lane: Lane) -> None:
        lane.ask_wait_s = min(max(2 * lane.ask_wait_s, self.options.retry_s), self.options.retry_max_s)
        lane.ask_at_s = self.host.now() + lane.ask_wait_s * self.host.random.uniform(1.0, 1.25)
        if self.has_way(lane.to):
            self._serial += 1
            lane.asking, lane.asked_to = self._serial, lane.tail
            self.carry(Ask(self.host.name, self.stream, lane.to, self._serial))

    def _tick(self) -> None:
        """Ask whoever has been silent, and drop what has become too old."""
        now = self.host.now()
        for lane in list(self.outbox.lanes.values()):
            oldest = now - (self.options.outbox_age_max_s if lane.age_max_s is None else lane.age_max_s)
            while lane.parcels and lane.oldest.since_s < oldest:
                self.counts.dropped_old += self._drop_oldest(lane)
            if lane.parcels and now >= lane.ask_at_s and (lane.under_way or not lane.life):
                self._ask(lane)
            self._push(lane)
        self.host.after(self.options.retry_s / 2, self._tick)

    def _drop_oldest(self, lane: Lane) -> int:
        """What follows it will say that nothing comes before."""
        lane.dropped += 1
        return self.outbox.release(lane, lane.oldest.number)


class _Frames:
    """Puts parcels into runs and runs into frames, and lets each frame go when it is full."""

    def __init__(self, frame: Callable[[tuple[Run, ...]], Parcels], frame_b: int, carry: Carry) -> None:
        self.frame = frame
        self.frame_b = frame_b
        self.carry = carry
        self._runs: list[Run] = []
        self._lanes: list[Lane] = []
        self._legs: tuple[Leg, ...] = ()
        self._items: list[tuple[int, bool, msgspec.Raw]] = []
        self._bytes = 0

    def add(self, parcel: Parcel, legs: list[tuple[Lane, int]]) -> None:
        if not (self._items and self._follows(legs)):
            self._end_run()
            self._lanes = [lane for lane, _ in legs]
            self._legs = tuple(Leg(lane.to, lane.life, previous) for lane, previous in legs)
        self._items.append((parcel.number, parcel.durable, msgspec.Raw(parcel.body)))
        self._bytes += len(parcel.body)
        if self._bytes >= self.frame_b:
            self.close()

    def _follows(self, legs: list[tuple[Lane, int]]) -> bool:
        last = self._items[-1][0]
        if len(legs) != len(self._lanes):
            return False
        for (lane, previous), mine in zip(legs, self._lanes, strict=True):
            if lane is not mine or previous != last:
                return False
        return True

    def _end_run(self) -> None:
        if self._items:
            self._runs.append(Run(self._legs, msgspec.Raw(encode(self._items))))
            self._items = []

    def close(self) -> None:
        self._end_run()
        if self._runs:
            self.carry(self.frame(tuple(self._runs)))
        self._runs, self._bytes = [], 0

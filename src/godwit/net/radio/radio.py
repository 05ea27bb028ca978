"""The air, for nodes on real networks: one hop of UDP, sealed frames that fit, and no more of them than agreed.

What is to be sent waits in two queues: beacons and greetings go first, since without them nobody knows anybody, then
events in their order. A bucket of bytes lets them out; what finds its queue full is dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial

import msgspec

from godwit.net.radio.antenna import Antenna
from godwit.net.radio.fragments import Assembly, cut
from godwit.net.radio.seal import Kind, Opened, Seals
from godwit.protocols.adhoc.digest import EventId
from godwit.protocols.adhoc.messages import Beacon, Data
from godwit.protocols.broker.fabric import adhoc
from godwit.protocols.host import Message, NodeId, RemoteError

log = logging.getLogger("godwit.radio")

MENDING_S = 5.0
GREETING_S = 0.03
"""Answers wait up to so long, lest all who were asked speak at once."""
BURST_S = 0.25
"""How much of a second's bytes may leave at once."""


ADVICE = {
    "forged": "frames come that are not sealed with our key; is adhoc.key the same at every node?",
    "namesake": "another node has our name, or somebody repeats what we said; each node needs a name of its own",
}
"""What is told once, when it has happened: a mistake made while setting up looks like an attack."""


class RadioOptions(msgspec.Struct, frozen=True, kw_only=True):
    interfaces: tuple[str, ...] = ()
    group: str = "239.255.71.68"
    port: int = 7_885
    frame_b_max: int = 1_400
    message_b_max: int = 80 * 1024
    bytes_per_s: float = 125_000.0
    queue_b_max: int = 512 * 1024
    incomplete_b_max: int = 2 * 1024 * 1024


class Waiting:
    """A message in the queue, in as many parts as it takes."""

    __slots__ = ("begun", "kind", "message", "parts")

    def __init__(self, message: Message, kind: Kind, parts: list[bytes]) -> None:
        self.begun = False
        """Something of it is on the adhoc."""
        self.message = message
        self.kind = kind
        self.parts = deque(parts)


class Radio:
    """What carries an `AsyncHost`'s broadcasts. `on_message(sender, message)` gets what others say."""

    def __init__(self, name: NodeId, key: bytes, options: RadioOptions = RadioOptions()) -> None:  # noqa: B008
        self.options = options
        self.seals = Seals(key, name, boot_time_s, lambda: int.from_bytes(os.urandom(8), "big"))
        self.seals.on_frame = self._on_frame
        self.seals.on_answer = self._answer_soon
        self.dropped = self.seals.dropped
        self.on_message: Callable[[NodeId, Message], None] = lambda sender, message: None
        self.sent: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self.bytes_sent = self.bytes_received = 0
        self.antennas = [
            Antenna(one, options.group, options.port, options.frame_b_max, self._hear)
            for one in options.interfaces or ("",)
        ]
        self._loop = asyncio.get_running_loop()
        self._assembly = Assembly(options.incomplete_b_max, self.dropped)
        self._first: deque[Waiting] = deque()
        self._then: deque[Waiting] = deque()
        self._waiting_b = 0
        self._tokens_b = self._burst_b
        self._filled_s = self._loop.time()
        self._pumping: asyncio.TimerHandle | None = None
        self._greeting: asyncio.TimerHandle | None = None
        self._mending: asyncio.TimerHandle | None = None
        self._events: Counter[EventId] = Counter()
        """Those of which something waits."""
        self._number = 0
        self._told: set[str] = set()

    @property
    def waiting_b(self) -> int:
        """What waits to be sent."""
        return self._waiting_b

    @property
    def room_b(self) -> int:
        """What of a message fits into one frame."""
        return self.options.frame_b_max - self.seals.overhead_b

    @property
    def _burst_b(self) -> float:
        return max(BURST_S * self.options.bytes_per_s, 2.0 * self.options.frame_b_max)

    def start(self) -> None:
        """`AntennaError` where an interface cannot be used."""
        for antenna in self.antennas:
            antenna.open()
        self._mending = self._loop.call_later(MENDING_S, self._mend)

    def stop(self) -> None:
        for handle in (self._pumping, self._greeting, self._mending):
            if handle is not None:
                handle.cancel()
        for antenna in self.antennas:
            antenna.close()

    def troubles(self) -> list[str]:
        failures = [f"radio: {one.where}: {one.failure}" for one in self.antennas if one.failure]
        return failures if len(failures) == len(self.antennas) else []

    def send(self, to: NodeId, message: Message) -> None:
        """Nobody is addressed here."""
        self.dropped["addressed"] += 1

    def broadcast(self, message: Message) -> None:
        assert isinstance(message, Beacon | Data)
        body = adhoc.encode(message)
        if len(body) > self.options.message_b_max:
            self.dropped["too large"] += 1
            return
        if len(body) <= self.room_b:
            waiting = Waiting(message, Kind.WHOLE, [body])
        else:
            self._number += 1
            waiting = Waiting(message, Kind.PART, cut(body, self._number, self.room_b))
        self._queue(waiting, len(body))

    def withdraw(self, message: Message) -> bool:
        """Take back a message of which nothing has left yet; whether there was one."""
        for waiting in self._then:
            if waiting.message is message and not waiting.begun:
                self._then.remove(waiting)
                self._waiting_b -= sum(map(len, waiting.parts))
                self._left(waiting)
                self.sent["withdrawn"] += 1
                return True
        return False

    def is_waiting(self, event: EventId) -> bool:
        """Whether this event is in the queue: then nobody lacks it for want of a sender."""
        return event in self._events

    def drop(self, peer: NodeId, reason: str) -> None:
        """Nobody can be hung up on; it is counted, and told once in a while."""
        self.dropped["refused"] += 1
        log.debug("%s said what cannot be: %s", peer, reason)

    def _queue(self, waiting: Waiting, size_b: int) -> None:
        queue = self._first if isinstance(waiting.message, Beacon) else self._then
        if self._waiting_b + size_b > self.options.queue_b_max and queue is self._then:
            self.dropped["queue full"] += 1
            return
        self._waiting_b += sum(map(len, waiting.parts))
        queue.append(waiting)
        if isinstance(waiting.message, Data):
            self._events[waiting.message.event.id] += 1
        if self._pumping is None:
            self._pump()

    def _pump(self) -> None:
        """Send what the bucket lets out, and come back for the rest."""
        self._pumping = None
        now = self._loop.time()
        self._tokens_b = min(self._burst_b, self._tokens_b + (now - self._filled_s) * self.options.bytes_per_s)
        self._filled_s = now
        while queue := self._first or self._then:
            size_b = len(queue[0].parts[0]) + self.seals.overhead_b
            if self._tokens_b < size_b:
                wait_s = (size_b - self._tokens_b) / self.options.bytes_per_s
                self._pumping = self._loop.call_later(wait_s, self._pump)
                return
            self._tokens_b -= size_b
            self._send_next(queue)

    def _send_next(self, queue: deque[Waiting]) -> None:
        waiting = queue[0]
        part = waiting.parts.popleft()
        self._waiting_b -= len(part)
        if not waiting.parts:
            queue.popleft()
            self._left(waiting)
        waiting.begun = True
        self._emit(waiting.kind, self.seals.seal(waiting.kind, part))

    def _left(self, waiting: Waiting) -> None:
        if isinstance(waiting.message, Data):
            event = waiting.message.event.id
            self._events[event] -= 1
            if not self._events[event]:
                del self._events[event]

    def _emit(self, kind: Kind, frame: bytes) -> None:
        for antenna in self.antennas:
            if antenna.send(frame):
                self.sent[kind.name.lower()] += 1
                self.bytes_sent += len(frame)
            else:
                self.dropped["not sent"] += 1

    def _hear(self, frame: bytes, age_s: float) -> None:
        self.bytes_received += len(frame)
        self.seals.open(frame, age_s)

    def _on_frame(self, opened: Opened) -> None:
        self.received[opened.kind.name.lower()] += 1
        body: bytes | None = opened.body
        if opened.kind is Kind.PART:
            body = self._assembly.add(opened.sender, opened.body, self._loop.time())
        if body is None:
            return
        try:
            message = adhoc.decode(body)
        except RemoteError as error:
            self.dropped["malformed"] += 1
            log.debug("%s: %s", opened.sender, error)
            return
        self.on_message(opened.sender, message)

    def _answer_soon(self) -> None:
        if self._greeting is None:
            wait_s = GREETING_S * int.from_bytes(os.urandom(2), "big") / 65_536
            self._greeting = self._loop.call_later(wait_s, self._greet)

    def _greet(self) -> None:
        self._greeting = None
        frame = self.seals.greeting()
        if frame is not None:
            # Not through the queue: strangers wait for it, and there is at most one of them a moment.
            self._tokens_b -= len(frame)
            self._emit(Kind.GREETING, frame)

    def _mend(self) -> None:
        for antenna in self.antennas:
            antenna.mend()
        for reason, advice in ADVICE.items():
            if self.dropped[reason] and reason not in self._told:
                self._told.add(reason)
                log.warning("radio: %s", advice)
        self._mending = self._loop.call_later(MENDING_S, self._mend)


def boot_time_s() -> float:
    """Runs on while the machine sleeps, as the clocks of all others do."""
    return _clock()


_clock: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)

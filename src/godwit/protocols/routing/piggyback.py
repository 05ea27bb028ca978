"""Heartbeats that carry other messages (spec mft-pubsub F38): who must speak anyway says the rest in the same breath.

A broker repeats every round of heartbeats. `Carrying` stands between its core and its world: what the core sends waits
for the next heartbeat and travels in it, one frame for all neighbors. Together with a radio that is awake only around
the rounds this saves the frames, and the waking, that single messages would cost; the price is up to a period a hop.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from godwit.protocols.host import Core, Host, Message, NodeId, Record, Timer
from godwit.protocols.routing.courier import Carried, Numbered
from godwit.protocols.routing.messages import Ack
from godwit.protocols.topology.election import Heartbeat

Starts = Callable[[Host], Core]

ADDRESS_B = 2
"""Whom a carried message is for."""


class Rider(Message, frozen=True):
    to: NodeId
    message: Carried | Numbered | Ack

    @property
    def size_b(self) -> int:
        return ADDRESS_B + self.message.size_b


class Laden(Message, frozen=True):
    """A heartbeat and what travels in it; everybody hears all of it and takes its own."""

    beat: Heartbeat
    riders: tuple[Rider, ...]

    @property
    def size_b(self) -> int:
        return self.beat.size_b + sum(rider.size_b for rider in self.riders)


class Carrying:
    """The host that a core sees, and the core that the world sees.

    `hold_s` is how long a message waits for a heartbeat at most; 0 holds nothing back, for who never beats: a client.
    What does not fit into `load_max_b` waits for the next one. Acknowledgements take a round each way: a courier must
    wait longer for them.
    """

    def __init__(self, host: Host, start: Starts, *, hold_s: float = 0.0, load_max_b: int = 512) -> None:
        self.host = host
        self.hold_s = hold_s
        self.load_max_b = load_max_b
        self._riders: list[Rider] = []
        self._timer: Timer | None = None
        self.core = start(self)

    @property
    def name(self) -> NodeId:
        return self.host.name

    @property
    def random(self) -> Random:
        return self.host.random

    def now(self) -> float:
        return self.host.now()

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        return self.host.after(delay_s, call)

    def trace(self, record: Record) -> None:
        self.host.trace(record)

    def send(self, to: NodeId, message: Message) -> None:
        if not self.hold_s or isinstance(message, Heartbeat):
            self.host.send(to, message)
            return
        self._riders.append(Rider(to, message))  # type: ignore[arg-type]
        if self._timer is None:
            self._timer = self.host.after(self.hold_s, self._give_up_waiting)

    def broadcast(self, message: Message) -> None:
        if isinstance(message, Heartbeat) and self._riders:
            self.host.broadcast(Laden(message, self._loaded()))
        else:
            self.host.broadcast(message)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if not isinstance(message, Laden):
            self.core.receive(sender, message)
            return
        self.core.receive(sender, message.beat)
        for rider in message.riders:
            if rider.to == self.name:
                self.core.receive(sender, rider.message)

    def _loaded(self) -> tuple[Rider, ...]:
        """As much as fits, at least one, in order."""
        count, size_b = 0, 0
        for rider in self._riders:
            size_b += rider.size_b
            if count and size_b > self.load_max_b:
                break
            count += 1
        loaded, self._riders = tuple(self._riders[:count]), self._riders[count:]
        self._wait_again()
        return loaded

    def _wait_again(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.host.after(self.hold_s, self._give_up_waiting) if self._riders else None

    def _give_up_waiting(self) -> None:
        """No heartbeat came: everything goes by itself."""
        self._timer = None
        riders, self._riders = self._riders, []
        for rider in riders:
            self.host.send(rider.to, rider.message)

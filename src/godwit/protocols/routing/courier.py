"""Hop-by-hop acknowledgement (spec mft-pubsub 2.7): a message is the neighbor's, or its sender still has it.

Each repetition waits twice as long as the one before: on a shared radio it is insisting that keeps the answer away. For
the same reason what is told in order travels together, as much as has come up while the last frame was under way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from godwit.protocols.host import Host, Message, NodeId, Timer
from godwit.protocols.routing.messages import (
    Ack,
    Bask,
    Bmig,
    Bquery,
    Bsub,
    Btab,
    Filters,
    Fmig,
    Mig,
    Pub,
    Rbmig,
    Rep,
    Sub,
    Uns,
)

Carried = Sub | Uns | Pub | Rep | Mig | Filters | Rbmig | Btab | Fmig | Bmig | Bquery | Bsub | Bask

REMEMBERED = 256
"""How many numbers of each neighbor are kept to recognise a repetition."""


BUNDLE_B = 96
"""How much travels together at most, unless told otherwise: with its overhead it fits a frame of 802.15.4."""


class Bundle(Message, frozen=True):
    """Several messages to one neighbor, in their order."""

    messages: tuple[Carried, ...]

    @property
    def size_b(self) -> int:
        return sum(message.size_b for message in self.messages)


class Numbered(Message, frozen=True):
    """A message that its sender wants acknowledged under this number."""

    serial: int
    message: Carried | Bundle

    @property
    def parts(self) -> tuple[Carried, ...]:
        return self.message.messages if isinstance(self.message, Bundle) else (self.message,)

    @property
    def size_b(self) -> int:
        return self.message.size_b


class Courier:
    """Sends with or without acknowledgement. What `failed` is told of was not acknowledged: it may yet have arrived."""

    def __init__(
        self,
        host: Host,
        *,
        timeout_s: float = 0.1,
        tries: int = 3,
        timeout_max_s: float = 3.2,
        bundle_b: int = BUNDLE_B,
    ) -> None:
        self.host = host
        self.timeout_s = timeout_s
        self.timeout_max_s = timeout_max_s
        self.tries = tries
        self.bundle_b = bundle_b
        # Whoever remembers the numbers of this node's last life must not take the first of this one for repetitions.
        self._serial = host.random.getrandbits(40)
        self._waiting: dict[tuple[NodeId, int], Timer] = {}
        self._acknowledged: dict[tuple[NodeId, int], Callable[[], None]] = {}
        self._seen: dict[NodeId, OrderedDict[int, None]] = {}
        self._outboxes: dict[NodeId, list[Carried]] = {}

    def send(self, to: NodeId, message: Message) -> None:
        self.host.send(to, message)

    def hand(
        self,
        to: NodeId,
        message: Carried | Bundle,
        failed: Callable[[], None],
        *,
        keep_on: Callable[[], bool] = lambda: False,
        arrived: Callable[[], None] = lambda: None,
    ) -> None:
        """Send until acknowledged: `tries` times, and further while `keep_on()`; then call `failed`."""
        self._serial += 1
        self._acknowledged[to, self._serial] = arrived
        self._try(to, Numbered(self._serial, message), failed, keep_on, 1)

    def tell(
        self,
        to: NodeId,
        message: Carried,
        failed: Callable[[Carried], None],
        *,
        keep_on: Callable[[], bool] = lambda: False,
        arrived: Callable[[Carried], None] = lambda message: None,
    ) -> None:
        """Hand over in order: what comes while something is under way waits for it, and then travels as one.

        A statement of all filters takes the place of older messages of its subscriber that still wait.
        """
        waiting = self._outboxes.get(to)
        if waiting is not None:
            self._outboxes[to] = [*(old for old in waiting if not _makes_needless(message, old)), message]
        else:
            self._outboxes[to] = []
            self._dispatch(to, [message], failed, keep_on, arrived)

    def _dispatch(
        self,
        to: NodeId,
        batch: list[Carried],
        failed: Callable[[Carried], None],
        keep_on: Callable[[], bool],
        arrived: Callable[[Carried], None],
    ) -> None:
        def taken() -> None:
            following, self._outboxes[to] = _split(self._outboxes[to], self.bundle_b)
            if following:
                self._dispatch(to, following, failed, keep_on, arrived)
            else:
                del self._outboxes[to]
            for message in batch:
                arrived(message)

        def lost() -> None:
            for message in (*batch, *self._outboxes.pop(to)):
                failed(message)

        inner = batch[0] if len(batch) == 1 else Bundle(tuple(batch))
        self.hand(to, inner, lost, keep_on=keep_on, arrived=taken)

    def _try(
        self, to: NodeId, numbered: Numbered, failed: Callable[[], None], keep_on: Callable[[], bool], tries: int
    ) -> None:
        self.host.send(to, numbered)

        def again() -> None:
            if tries < self.tries or keep_on():
                self._try(to, numbered, failed, keep_on, tries + 1)
            else:
                self._forget(to, numbered.serial)
                failed()

        wait = min(self.timeout_s * 2 ** (tries - 1), self.timeout_max_s) * self.host.random.uniform(1.0, 1.25)
        self._waiting[to, numbered.serial] = self.host.after(wait, again)

    def acknowledged(self, sender: NodeId, ack: Ack) -> None:
        arrived = self._acknowledged.get((sender, ack.serial))
        self._forget(sender, ack.serial)
        if arrived is not None:
            arrived()

    def open(self, sender: NodeId, numbered: Numbered) -> tuple[Carried, ...]:
        """Acknowledge, and return what was inside; nothing if it came before."""
        self.host.send(sender, Ack(numbered.serial))
        seen = self._seen.setdefault(sender, OrderedDict())
        if numbered.serial in seen:
            return ()
        seen[numbered.serial] = None
        if len(seen) > REMEMBERED:
            seen.popitem(last=False)
        return numbered.parts

    def _forget(self, to: NodeId, serial: int) -> None:
        self._acknowledged.pop((to, serial), None)
        timer = self._waiting.pop((to, serial), None)
        if timer is not None:
            timer.cancel()


def _split(waiting: list[Carried], bundle_b: int) -> tuple[list[Carried], list[Carried]]:
    """What travels next, at least one message if there is any, and what goes on waiting."""
    size_b, count = 0, 0
    for message in waiting:
        size_b += message.size_b
        if count and size_b > bundle_b:
            break
        count += 1
    return waiting[:count], waiting[count:]


def _makes_needless(new: Carried, old: Carried) -> bool:
    return (
        isinstance(new, Bsub)
        and isinstance(old, Sub | Uns | Mig | Bsub)
        and old.subscriber == new.subscriber
        and old.t < new.t
    )

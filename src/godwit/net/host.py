"""A `Host` on a real clock and real links. What differs from a simulated node is the world and nothing else."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from random import Random, SystemRandom
from time import perf_counter, thread_time
from typing import Protocol

from godwit.protocols.host import Core, LocalError, Message, NodeId, Record, RemoteError, Timer

log = logging.getLogger("godwit.host")

Sink = Callable[[float, NodeId, Record], None]
"""Takes what is traced: seconds since 1970, the node and the fact."""


class Carrier(Protocol):
    """What carries messages to neighbors; `net.links.Links` does."""

    def send(self, to: NodeId, message: Message) -> None: ...
    def broadcast(self, message: Message) -> None: ...
    def drop(self, peer: NodeId, reason: str) -> None:
        """End the link to a peer that broke the protocol."""


def boot_of_machine() -> str:
    """Names the start of this machine, since which `AsyncHost.now` counts for all processes; empty where it is not
    told."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


STRETCHED = 10
"""So much longer than it may cost a turn of the loop may last, where others have the processor."""


class Behind(Protocol):
    """Something that has come over it has not been looked at."""

    def go_on(self) -> None: ...


class LoopTurns:
    """Lets one turn of the loop cost `most_s` of the processor, about: who has said more than fits waits, and says the
    rest later.

    The loop reads from whoever sends fast until nothing is left, megabytes at a time, and lets nothing leave meanwhile;
    nor does it look at clocks. On a busy machine that is long enough to be taken for dead. So there a turn ends when it
    has lasted `STRETCHED` times as long, however little it had of the processor; not sooner, since what is heard at
    once is written and passed on at once.
    """

    def __init__(self, most_s: float) -> None:
        self.most_s = most_s
        self._behind: deque[Behind] = deque()
        self._is_due = False
        self._begun_s: tuple[float, float] | None = None

    def is_over(self) -> bool:
        """Whether this turn has lasted long enough; the first to ask begins it."""
        if self._begun_s is None:
            self._begun_s = perf_counter(), thread_time()
            asyncio.get_running_loop().call_soon(self._end)
            return False
        lasted_s = perf_counter() - self._begun_s[0]
        if lasted_s <= self.most_s:
            return False
        return lasted_s > STRETCHED * self.most_s or thread_time() - self._begun_s[1] > self.most_s

    def wait(self, one: Behind) -> None:
        """Let it go on in a later turn."""
        self._behind.append(one)
        self._next_soon()

    def _end(self) -> None:
        self._begun_s = None

    def _next(self) -> None:
        """Round and round among those who have said much. What came meanwhile from anybody else, clients and brokers,
        was looked at before this, and will be before the next."""
        self._is_due = False
        self._begun_s = perf_counter(), thread_time()
        for _ in range(len(self._behind)):
            self._behind.popleft().go_on()
            if self.is_over():
                break
        self._end()
        if self._behind:
            self._next_soon()

    def _next_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._next)


class AsyncHost:
    """One node in a running loop. Give it its `core`, then let the world call `deliver`.

    A core that fails costs what it was doing and nothing else: the failure is logged and counted in `failures`.
    """

    def __init__(self, name: NodeId, carrier: Carrier, *sinks: Sink) -> None:
        self.name = name
        self.carrier = carrier
        self.sinks = list(sinks)
        self.random: Random = SystemRandom()
        self.core: Core | None = None
        self.failures: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()
        self._stopped = False

    def now(self) -> float:
        return self._loop.time()

    def send(self, to: NodeId, message: Message) -> None:
        self.carrier.send(to, message)

    def broadcast(self, message: Message) -> None:
        self.carrier.broadcast(message)

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_s, self.run, call)

    def trace(self, record: Record) -> None:
        if self.sinks:
            now_s = time.time()
            for sink in self.sinks:
                sink(now_s, self.name, record)

    def deliver(self, sender: NodeId, message: Message) -> None:
        """Hand a message that has arrived to the core; a peer that lies loses its link."""
        if self.core is None or self._stopped:
            return
        try:
            self.core.receive(sender, message)
        except RemoteError as error:
            self.failures["remote"] += 1
            self.trace(Record("refused", peer=sender, message=type(message).__name__, note=str(error)))
            self.carrier.drop(sender, str(error))
        except LocalError as error:
            self._note("local", error)
        except Exception as error:
            self._note("bug", error)

    def run(self, call: Callable[[], None]) -> None:
        """Call into a core: for timers, and for whatever else enters it from outside."""
        if self._stopped:
            return
        try:
            call()
        except LocalError as error:
            self._note("local", error)
        except Exception as error:
            self._note("bug", error)

    def _note(self, kind: str, error: Exception) -> None:
        self.failures[kind] += 1
        if kind == "local":
            log.warning("asked for what cannot be: %s", error)
        else:
            log.error("a failure that nobody expected; the broker goes on", exc_info=error)

    def stop(self) -> None:
        """Nothing enters the core any more; no timer fires."""
        self._stopped = True

"""A `Host` on a real clock and real links. What differs from a simulated node is the world and nothing else."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
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


class AsyncHost:
    """One node in a running loop. Give it its `core`, then let the world call `deliver`.

    A core that fails costs what it was doing and nothing else: the failure is logged and counted in `failures`.
    """

    def __init__(self, name: NodeId, carrier: Carrier, *sinks: Sink) -> None:
        self.name = name
        self.carrier = carrier
        self.sinks = list(sinks)
        self.random = Random()
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

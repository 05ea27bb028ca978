"""What stands between a client that knocks at another broker and its first event there, whatever else runs here.

    python benchmarks/hops.py                        one subscriber, 8 moves, 1,000 events/s: about three minutes
    python benchmarks/hops.py --clients 20 --events 400 --seconds 5     a crowd, each of which gets 20 events/s
    python benchmarks/hops.py --steps                also each step of the last hop

Three brokers with real sockets and disks, and their clients, run in one process. Each of the four has a clock of its
own: it counts the processor time that it took itself, and jumps to the next timer where there is nothing to do. They
share two virtual cores. So other programs do not count as waiting; they still make all of it slower: compare in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import os
import selectors
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from godwit.lab.deployed.account import Outcome, firsts, late, middle
from godwit.lab.deployed.crowd import Crowd, Itinerary, Plan, Step
from godwit.net.config import load
from godwit.net.processes import free_ports
from godwit.net.server import Server
from godwit.net.store.sqlite import SqliteStore

LOAD = "load"
BROKERS = ("a", "b", "c")
STARTED_S = 4.0
"""Until brokers know each other and have loaded what they need; this passes on a real clock."""

whose: ContextVar[str] = ContextVar("whose", default=LOAD)
"""Whatever a broker begins is its own: timers, readers and tasks keep the context in which they were made."""

real_s, processor_s = time.monotonic, time.thread_time


class Ran(NamedTuple):
    begun_s: float
    took_s: float
    owner: str
    what: str


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs one handle at a time: that which would begin first if each owner had a process on one of the cores."""

    def __init__(self, cores: int) -> None:
        self.is_virtual = False
        self.ran: list[Ran] = []
        self.used_s: dict[str, float] = defaultdict(float)
        self._begun_s = real_s()
        self._now_s = 0.0
        self._running: tuple[float, float] | None = None
        self._cores = [0.0] * cores
        self._free: dict[str, float] = defaultdict(float)
        self._due: dict[str, list[tuple[float, int, Any]]] = defaultdict(list)
        self._count = itertools.count()
        self._noticed: set[Any] = set()
        super().__init__()
        self._ready: Any = _Ready(self)

    def time(self) -> float:
        if self._running is None:
            return self._now_s
        begun_s, before_s = self._running
        return begun_s + processor_s() - before_s

    def begin(self) -> None:
        """From now on time is what processors take."""
        self.is_virtual = True
        self.ran.clear()
        self.used_s.clear()

    def due(self, handle: Any, at_s: float) -> None:
        heapq.heappush(self._due[handle._context.get(whose, LOAD)], (at_s, next(self._count), handle))

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self.due(timer, when)
        return timer

    def _timer_handle_cancelled(self, handle: Any) -> None:
        """It is left out when its time comes."""

    def _process_events(self, events: Any) -> None:
        for key, mask in events:
            for kind, handle in zip((selectors.EVENT_READ, selectors.EVENT_WRITE), key.data, strict=True):
                if mask & kind and handle is not None and handle not in self._noticed:
                    self._noticed.add(handle)
                    self.due(handle, self._now_s)

    def _look(self, wait_s: float = 0.0) -> None:
        self._process_events(self._selector.select(wait_s))  # type: ignore[attr-defined]

    def _next(self) -> tuple[float, str] | None:
        found: list[tuple[float, int, str]] = []
        for owner, handles in self._due.items():
            while handles and handles[0][2]._cancelled:
                self._noticed.discard(heapq.heappop(handles)[2])
            if handles:
                found.append((max(handles[0][0], self._free[owner]), handles[0][1], owner))
        if not found:
            return None
        at_s, _, owner = min(found)
        return at_s, owner

    def _run_once(self) -> None:
        self._look()
        found = self._next()
        while not self.is_virtual and (found is None or found[0] > self._real()):
            self._look(0.01)
            self._now_s = self._real()
            found = self._next()
        if found is None:
            self._look(0.01)
            return
        at_s, owner = found
        core = min(range(len(self._cores)), key=self._cores.__getitem__)
        begun_s = max(at_s, self._cores[core], 0.0 if self.is_virtual else self._real())
        handle = heapq.heappop(self._due[owner])[2]
        self._noticed.discard(handle)
        what = _told(handle)
        before_s = processor_s()
        self._running = begun_s, before_s
        handle._run()
        took_s = processor_s() - before_s
        self._running = None
        self.ran.append(Ran(begun_s, took_s, owner, what))
        self.used_s[owner] += took_s
        self._now_s = self._free[owner] = self._cores[core] = begun_s + took_s

    def _real(self) -> float:
        return real_s() - self._begun_s


class _Ready:
    """Stands for the loop's queue of what is to be called soon."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop

    def append(self, handle: Any) -> None:
        self.loop.due(handle, self.loop.time())

    def clear(self) -> None: ...

    def __len__(self) -> int:
        return 0


def _told(handle: Any) -> str:
    """What is called, by name."""
    call, arguments = handle._callback, handle._args or ()
    names = []
    for one in (call, *arguments[:1]):
        while isinstance(one, partial):
            one = one.func
        if callable(one):
            names.append(getattr(one, "__qualname__", type(one).__name__))
    protocol = getattr(getattr(call, "__self__", None), "_protocol", None)
    return " ".join((*names, *([type(protocol).__name__] if protocol is not None else [])))


def rotation(moves: int) -> Itinerary:
    for number in range(1, moves + 1):
        yield Step(1.0, 0.2, number % len(BROKERS))


def hops(number: int) -> Itinerary:
    dice, here = Random(f"hops/{number}"), number % len(BROKERS)
    stay_s = dice.uniform(0.0, 2.0)
    while True:
        here = (here + dice.randint(1, len(BROKERS) - 1)) % len(BROKERS)
        yield Step(stay_s, 0.1, here)
        stay_s = 1.9


def plan_of(given: argparse.Namespace) -> Plan:
    if given.clients == 1:
        seconds = given.moves * 1.2
        return Plan(subscribers=1, seconds=seconds, events_per_s=given.events, values=100, span=100, drain_s=8.0)
    return Plan(
        subscribers=given.clients,
        seconds=given.seconds,
        warmup_s=2.0,
        publishers=len(BROKERS),
        events_per_s=given.events,
        values=given.clients,
        span=1,
        drain_s=60.0,
    )


async def served(folder: Path) -> list[Server]:
    ports, servers = free_ports(len(BROKERS)), list[Server]()

    async def begin(name: str, port: int) -> None:
        whose.set(name)
        others = [f"127.0.0.1:{one}" for one in ports if one != port]
        told = {
            "listen.mqtt": ["127.0.0.1:0"],
            "name": name,
            "data": folder / name,
            "peers.listen": f"127.0.0.1:{port}",
            "peers.connect": others,
            "handoff_wait_s": 60.0,
        }
        server = Server(load(None, told, {}))
        await server.start()
        servers.append(server)

    for name, port in zip(BROKERS, ports, strict=True):
        await asyncio.create_task(begin(name, port))
    return servers


def counted(servers: list[Server]) -> Counter[str]:
    found: Counter[str] = Counter()
    for server in servers:
        assert server.parts is not None
        found["transactions"] += server.parts.store.commits
        found["rows"] += server.parts.store.changes
        found["frames"] += server.parts.links.sent
    return found


async def measured(loop: VirtualLoop, given: argparse.Namespace, folder: Path) -> None:
    servers = await served(folder)
    ports = [int(dict(one.addresses())["mqtt"].rpartition(":")[2]) for one in servers]
    before: Counter[str] = Counter()

    async def settled() -> None:
        await asyncio.sleep(STARTED_S)
        loop.begin()
        before.update(counted(servers))

    itinerary = hops if given.clients > 1 else lambda number: rotation(given.moves)
    crowd = Crowd(plan_of(given), ports, itinerary, settled)
    found = await crowd.run()
    told(found, loop, counted(servers) - before)
    if given.steps:
        steps(crowd, loop)


def told(found: Outcome, loop: VirtualLoop, counts: Counter[str]) -> None:
    def ms(values: Any) -> str:
        return f"{1000 * middle(values):.2f} / {1000 * late(values):.2f} ms"

    brokers_s = sum(used_s for owner, used_s in loop.used_s.items() if owner != LOAD)
    print(f"{found.owed} owed, {found.lost} lost, {found.duplicated} twice, {found.out_of_order} out of order")
    print(f"{found.moves} hops: let in {ms(found.let_in_s)}, first {ms(found.first_s)}, due {ms(found.first_due_s)}")
    print(f"brokers: {1000 * brokers_s / max(found.owed, 1):.3f} CPU ms a delivery, hops included;", dict(counts))
    print("CPU s:", {owner: round(used_s, 2) for owner, used_s in sorted(loop.used_s.items())})
    spent: dict[str, list[float]] = defaultdict(list)
    for one in loop.ran:
        if one.owner != LOAD:
            spent[one.what].append(one.took_s)
    for what, took in sorted(spent.items(), key=lambda pair: -sum(pair[1]))[:12]:
        print(f"{sum(took):8.3f} s {len(took):7} x {1000 * sum(took) / len(took):6.3f} ms  {what}")


def steps(crowd: Crowd, loop: VirtualLoop) -> None:
    move, first = firsts(crowd.members[0].story)[-1]
    for one in loop.ran:
        if move.asked_s <= one.begun_s <= first.time_s:
            print(f"{1000 * (one.begun_s - move.asked_s):8.2f} {1000 * one.took_s:6.2f}  {one.owner:5} {one.what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--moves", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--events", type=float, default=1000.0, help="a second")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--steps", action="store_true")
    given = parser.parse_args()
    loop = VirtualLoop(given.cores)
    # All that tells the time goes by this loop, and what is written is written by it: a thread would be on no clock.
    time.monotonic = time.perf_counter = loop.time
    setattr(SqliteStore, "_is_quick", lambda store, batch: store.failure is None)  # noqa: B010
    asyncio.set_event_loop(loop)
    with tempfile.TemporaryDirectory(prefix="godwit-bench-") as folder:
        loop.run_until_complete(measured(loop, given, Path(folder)))
    sys.stdout.flush()
    os._exit(0)  # threads of brokers wait for work


if __name__ == "__main__":
    main()

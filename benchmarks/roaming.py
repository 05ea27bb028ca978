"""A subscriber that moves among three brokers without a word, on Godwit and on what people would use instead.

    python benchmarks/roaming.py                     about five minutes
    python benchmarks/roaming.py --quick             5 moves instead of 20
    python benchmarks/roaming.py --only ours-mqtt    one system, or several, by commas: nats, zenoh-plain,
                                                     zenoh-advanced, mosquitto-one-way, mosquitto-ping-pong,
                                                     ours-mqtt, ours-ring, ours-native
    python benchmarks/roaming.py --only ours-mqtt,ours-ring   the first event after a hop: a ring beside a tree
    python benchmarks/roaming.py --hopping           100 clients that change brokers every 2 s under 2,000 events/s
    python benchmarks/roaming.py --hopping --clients 300      three times as many

`python benchmarks/speed.py --only hop,crowd-hop` measures the same at three sizes, for docs/results/speed.md.

One subscriber stays for 1 s, is away for 200 ms, and appears at the next broker; one publisher says 1,000 events a
second. All servers are processes of their own on loopback; ours have a content filter that every event meets. What is
needed of NATS and zenoh is installed into a folder of its own below the user's cache; what cannot be had is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from godwit.client.client import Client
from godwit.client.connection import Wire
from godwit.client.options import Options
from godwit.lab.deployed.account import Heard, Move, Outcome, Story, late, middle, outcome
from godwit.lab.deployed.crowd import Crowd, Itinerary, Plan, Step, drained
from godwit.net.address import Address
from godwit.net.processes import BrokerProcess, agreed, cluster, rested, ring
from roamrivals import (
    DRAIN_S,
    EVENTS_PER_S,
    MissingError,
    Walk,
    mosquitto_one_way,
    mosquitto_ping_pong,
    nats,
    one_walker,
    rotation,
    zenoh,
)


class System(NamedTuple):
    name: str
    title: str
    measure: Callable[[Walk], Awaitable[Outcome]]


class Effort:
    """What each broker and the load generator use of processors, from `begin` to `end`."""

    def __init__(self, processes: Sequence[BrokerProcess]) -> None:
        self.processes = processes
        self.brokers_s: list[float] = []
        self.load_s = 0.0
        self.seconds = 0.0
        self._begun: list[float] = []

    def begin(self) -> None:
        self._begun = self._now()

    def end(self) -> None:
        self.seconds, self.load_s, *self.brokers_s = (
            now - before for now, before in zip(self._now(), self._begun, strict=True)
        )

    def _now(self) -> list[float]:
        return [time.monotonic(), time.process_time(), *(one.processor_s() for one in self.processes)]


@asynccontextmanager
async def brokers(
    names: Sequence[str] = ("a", "b", "c"), effort: list[Effort] | None = None, places: Sequence[str] = ()
) -> AsyncIterator[tuple[list[int], Callable[[], Any]]]:
    """Ports, and what to await when all have subscribed; from then on `effort` counts, until nothing more is done. With
    places they are a ring."""
    with tempfile.TemporaryDirectory(prefix="godwit-bench-") as folder:
        where = Path(folder)
        processes = ring(list(names), list(places), where) if places else cluster(list(names), where)

        spent = Effort(processes)

        async def settled() -> None:
            await agreed(processes)
            await rested(processes)
            spent.begin()

        try:
            await asyncio.gather(*(one.start() for one in processes))
            if places:
                await agreed(processes)  # a broker without a cell lets nobody subscribe for ten seconds
            yield [one.port for one in processes], settled
            if effort is not None:
                spent.end()
                effort.append(spent)
        finally:
            await asyncio.gather(*(one.stop() for one in processes))


async def ours_mqtt(walk: Walk) -> Outcome:
    async with brokers() as (ports, settled):
        return await Crowd(one_walker(walk), ports, lambda number: rotation(walk.moves), settled).run()


async def ours_ring(walk: Walk) -> Outcome:
    async with brokers(places=("47.37,8.54", "46.95,7.45", "46.20,6.14")) as (ports, settled):
        return await Crowd(one_walker(walk), ports, lambda number: rotation(walk.moves), settled).run()


class TimedClient(Client):
    """Knows when it last began to connect."""

    asked_s = 0.0

    async def _connect(self, target: Address) -> Wire | None:
        self.asked_s = time.monotonic()
        return await super()._connect(target)


def native(name: str, ports: Sequence[int]) -> TimedClient:
    return TimedClient([Address("127.0.0.1", port) for port in ports], Options(client=name, connect_s=30.0))


async def ours_native(walk: Walk) -> Outcome:
    story, published_s = Story([], [], []), dict[tuple[int, int], float]()
    async with AsyncExitStack() as stack:
        ports, settled = await stack.enter_async_context(brokers())
        walker = await stack.enter_async_context(native("walker", ports))
        talker = await stack.enter_async_context(native("talker", ports[:1]))
        wanted = await walker.subscribe("k BETWEEN 0 AND 99", topics="crowd/#")

        async def listen() -> None:
            async for event in wanted:
                story.heard.append(Heard(time.monotonic(), 0, int(event.attributes["n"])))

        async def publish() -> None:
            begun_s = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for n in range(round(walk.seconds * walk.events_per_s)):
                    early_s = begun_s + n / walk.events_per_s - time.monotonic()
                    if early_s > 0:
                        await asyncio.sleep(early_s)
                    published_s[0, n] = time.monotonic()
                    group.create_task(talker.publish({"n": n, "k": n % 100}, topic="crowd/0"))

        listening = asyncio.create_task(listen())
        await settled()
        publishing = asyncio.create_task(publish())
        for step in rotation(walk.moves):
            await asyncio.sleep(step.stay_s)
            await walker.roam(f"127.0.0.1:{ports[step.to]}", away_s=step.away_s)
            story.moves.append(Move(walker.asked_s, time.monotonic(), True))
        await publishing
        story.wanted = list(published_s)
        await drained([story], DRAIN_S)
        await asyncio.sleep(1)
        listening.cancel()
    return outcome([story], published_s)


SYSTEMS = [
    System("nats", "NATS JetStream, 3 replicas", nats),
    System("zenoh-plain", "zenoh, plain", lambda walk: zenoh(walk, "zenoh-plain")),
    System("zenoh-advanced", "zenoh, advanced", lambda walk: zenoh(walk, "zenoh-advanced")),
    System("mosquitto-ping-pong", "mosquitto bridge, ping-pong", mosquitto_ping_pong),
    System("mosquitto-one-way", "mosquitto bridge, one-way", mosquitto_one_way),
    System("ours-mqtt", "ours, MQTT client, content filter", ours_mqtt),
    System("ours-ring", "ours, a ring, MQTT client, content filter", ours_ring),
    System("ours-native", "ours, own client, content filter", ours_native),
]


def compared(only: set[str] | None, quick: bool, console: Console) -> None:
    moves = 5 if quick else 20
    table = Table(title=f"One subscriber, {moves} moves, {EVENTS_PER_S:,.0f} events/s, in this run")
    headings = ("system", "events", "lost", "twice", "out of order", "first, median ms", "95 %")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "system" else "right")
    rows: list[tuple[str, ...]] = []
    for system in SYSTEMS:
        if only is not None and system.name not in only:
            continue
        console.print(f"{system.title} ... (load {os.getloadavg()[0]:.1f})", style="dim")
        try:
            row = (system.title, *told(walked(system.name, Walk(moves))))
        except MissingError as error:
            console.print(f"left out: {system.title}: {error}", markup=False)
            continue
        rows.append(row)
        table.add_row(*row)
    console.print(table)
    printed(console, headings, rows)


def walked(name: str, walk: Walk) -> Outcome:
    (system,) = (one for one in SYSTEMS if one.name == name)

    async def measure() -> Outcome:
        return await system.measure(walk)

    return uvloop.run(measure())


def told(found: Outcome) -> tuple[str, ...]:
    share = f" ({100 * found.lost / found.owed:.1f} %)" if found.lost else ""
    each = f" ({found.duplicated / found.owed:.2f} each)" if found.duplicated > found.owed / 10 else ""
    return (
        f"{found.owed:,}",
        f"{found.lost:,}{share}",
        f"{found.duplicated:,}{each}",
        f"{found.out_of_order:,}",
        f"{1000 * middle(found.first_s):.1f}",
        f"{1000 * late(found.first_s):.1f}",
    )


def printed(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Once more, to be copied into a page."""
    for line in (headings, ["---"] * len(headings), *rows):
        console.print("| " + " | ".join(line) + " |", highlight=False, soft_wrap=True)
    console.print(f"load of this machine at the end: {os.getloadavg()[0]:.1f}", style="dim")


HOP_S, HOP_AWAY_S = 2.0, 0.1
HOPPING_S, HOPPING_PER_S = 30.0, 2000.0


def hops(number: int, brokers: int = 3) -> Itinerary:
    """Every two seconds to another broker, by chance which; each client at a moment of its own."""
    dice, here = Random(f"hops/{number}"), number % brokers
    stay_s = dice.uniform(0.0, HOP_S)
    while True:
        here = (here + dice.randint(1, brokers - 1)) % brokers
        yield Step(stay_s, HOP_AWAY_S, here)
        stay_s = HOP_S - HOP_AWAY_S


async def hopping(clients: int, seconds: float) -> tuple[Outcome, Effort]:
    """Each client wants one in a hundred events, by content."""
    effort: list[Effort] = []
    async with brokers(effort=effort) as (ports, settled):
        plan = Plan(
            subscribers=clients,
            seconds=seconds,
            warmup_s=HOP_S,
            publishers=3,
            events_per_s=HOPPING_PER_S,
            values=100,
            span=1,
            drain_s=60.0,
        )
        found = await Crowd(plan, ports, hops, settled).run()
    return found, effort[0]


def hopped(clients: int, quick: bool, console: Console) -> None:
    console.print(f"{clients} clients hop every {HOP_S:g} s ... (load {os.getloadavg()[0]:.1f})", style="dim")
    found, effort = uvloop.run(hopping(clients, HOPPING_S / (3 if quick else 1)))
    headings = (
        "deliveries",
        "lost",
        "twice",
        "out of order",
        "hops",
        "let in, median ms",
        "95 %",
        "first, median",
        "95 %",
        "since published, median",
        "95 %",
        "brokers, CPU s",
        "load, CPU s",
    )
    *figures, first, first_95 = told(found)
    let_in = (f"{1000 * middle(found.let_in_s):.1f}", f"{1000 * late(found.let_in_s):.1f}")
    due = (f"{1000 * middle(found.first_due_s):.1f}", f"{1000 * late(found.first_due_s):.1f}")
    spent = " + ".join(f"{one:.1f}" for one in effort.brokers_s), f"{effort.load_s:.1f}"
    row = (*figures, f"{found.moves:,}", *let_in, first, first_95, *due, *spent)
    printed(console, headings, [row])
    console.print(
        f"{1000 * sum(effort.brokers_s) / max(found.moves, 1):.1f} CPU ms of brokers a hop with its deliveries, "
        f"{1000 * sum(effort.brokers_s) / max(found.owed, 1):.2f} CPU s for 1,000 deliveries, "
        f"all in {effort.seconds:.0f} s; the {HOP_S:g} s before anything counts included",
        highlight=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="systems, separated by commas")
    parser.add_argument("--hopping", action="store_true")
    parser.add_argument("--clients", type=int, default=100, help="that hop; 300 are three times the crowd")
    given = parser.parse_args()
    only = set(given.only.split(",")) if given.only else None
    if unknown := (only or set()) - {system.name for system in SYSTEMS}:
        parser.error(f"--only {','.join(sorted(unknown))}: one of {', '.join(system.name for system in SYSTEMS)}")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8_192, most), most))
    console = Console()
    if given.hopping:
        hopped(given.clients, given.quick, console)
    else:
        compared(only, given.quick, console)


if __name__ == "__main__":
    main()

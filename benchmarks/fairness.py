"""How long a well-behaved client waits for its pings while others flood the broker: `python benchmarks/fairness.py`.

One broker process, one client that sends a PINGREQ every few milliseconds, and flooders of several kinds, each a
process that sends packets made before as fast as the broker reads them. The baseline is the same client with nobody
else there, in the same run; the result is the percentiles beside it, and the goal of each row for two idle cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.synchronize import Semaphore
from pathlib import Path

import mqttload
from godwit.net.processes import BrokerProcess

PING = b"\xc0\0"
EVERY_S = 0.005

GOAL_MS, GOAL_CROWD_MS = 50.0, 150.0
"""What 99 of 100 pings may take under one flooder, and under several."""


def pings(client: mqttload.Client, number: int) -> bytes:
    return PING * 50_000


def publications(qos: int) -> Callable[[mqttload.Client, int], bytes]:
    def made(client: mqttload.Client, number: int) -> bytes:
        one = (client.publication(f"flood/{number}/{i % 997}", b"x", qos, i % 900 + 1) for i in range(20_000))
        return b"".join(one)

    return made


def subscriptions(client: mqttload.Client, number: int) -> bytes:
    """One small packet that asks for much: many topic filters, and a long condition for all of them."""
    condition = " OR ".join(f"(a{i} > {i} AND b{i} < {i})" for i in range(120))[:4_000].rsplit(" OR ", 1)[0]
    wishes = b"".join(mqttload.text(f"s/{number}/{i}") + b"\0" for i in range(900))
    said = b"\x26" + mqttload.text("filter") + mqttload.text(condition)
    body = b"\0\1" + mqttload.length(len(said)) + said + wishes
    return b"\x82" + mqttload.length(len(body)) + body


def large(client: mqttload.Client, number: int) -> bytes:
    return client.publication(f"flood/{number}", bytes(1_000_000)) * 4


def contents(client: mqttload.Client, number: int) -> bytes:
    """JSON objects with very many names, and somebody who wants to know what is in them: the flooder itself."""
    topic = f"flood/content/{number}"
    asked = b"\0\1" + mqttload.length(0) + mqttload.text(f"$filter/k7%3E%3D1/{topic}") + b"\0"
    payload = json.dumps({f"k{i}": i for i in range(5_000)}).encode()
    return b"\x82" + mqttload.length(len(asked)) + asked + client.publication(topic, payload) * 40


def retained(client: mqttload.Client, number: int) -> bytes:
    """Each under a topic of its own."""
    made = (client.publication(f"flood/{number}/{i}", b"x" * 100, 1, i % 900 + 1) for i in range(20_000))
    return b"".join(bytes((one[0] | 1,)) + one[1:] for one in made)


def goodbye(client: mqttload.Client, number: int) -> bytes:
    """It is back at once."""
    return b"\xe0\0"


MADE = {
    "pings": pings,
    "publish 0": publications(0),
    "publish 1": publications(1),
    "subscribe": subscriptions,
    "large": large,
    "contents": contents,
    "retained": retained,
    "connects": goodbye,
}


def flood(port: int, kind: str, number: int, seconds: float, begun: Semaphore) -> None:
    """Say it over and over, and throw away the answers; a refused flooder comes back."""
    MADE[kind](mqttload.Client(port, f"flooder-{number}", 5), number)
    begun.release()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError, SystemExit, ConnectionError):
            client = mqttload.Client(port, f"flooder-{number}", 5)
            said = memoryview(MADE[kind](client, number))
            client.socket.setblocking(False)
            _pour(client.socket, said, end)


def _pour(wire: socket.socket, said: memoryview, end: float) -> None:
    at = 0
    while time.monotonic() < end:
        idle = True
        with suppress(BlockingIOError):
            at += wire.send(said[at:])
            at, idle = (0 if at == len(said) else at), False
        with suppress(BlockingIOError):
            if not wire.recv(1 << 20):
                raise ConnectionError
            idle = False
        if idle:
            time.sleep(0.001)


def waits(port: int, seconds: float) -> list[float]:
    """The round trips of a client that pings, in milliseconds."""
    client = mqttload.Client(port, "patient", 5)
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        client.socket.sendall(PING)
        client.packet()
        found.append((time.perf_counter() - began) * 1e3)
        time.sleep(EVERY_S)
    client.socket.close()
    return found


def row(name: str, found: Sequence[float], baseline: float, goal_ms: float | None = None) -> str:
    goal = "" if goal_ms is None else f"{goal_ms:.0f}"
    if len(found) < 2:
        return f"| {name} | {len(found)} | | | {goal} | {max(found, default=0):.1f} | |"
    cuts = statistics.quantiles(found, n=100)
    verdict = "" if goal_ms is None else f"{goal}, {'met' if cuts[98] < goal_ms else 'missed'}"
    return (
        f"| {name} | {len(found)} | {cuts[49]:.2f} | {cuts[98]:.1f} | {verdict} | {max(found):.1f} |"
        f" {cuts[98] / baseline:.0f} |"
    )


async def measure(seconds: float, most: int, floods: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess("fair", Path(folder) / "fair")
        await broker.start()
        try:
            alone = await asyncio.to_thread(waits, broker.port, seconds)
            baseline = statistics.quantiles(alone, n=100)[98]
            print(
                "| flood | pings | median ms | 99 % ms | goal below ms | longest ms | 99 % against nobody |\n"
                "|---|---|---|---|---|---|---|"
            )
            print(row("nobody", alone, baseline), flush=True)
            for kind in floods:
                for count in (1, most):
                    found = await asyncio.to_thread(flooded, broker.port, kind, count, seconds)
                    goal_ms = GOAL_MS if count == 1 else GOAL_CROWD_MS
                    print(row(f"{count} x {kind}", found, baseline, goal_ms), flush=True)
        finally:
            await broker.stop()


def flooded(port: int, kind: str, count: int, seconds: float) -> list[float]:
    context = multiprocessing.get_context("spawn")
    begun = context.Semaphore(0)
    flooders = [context.Process(target=flood, args=(port, kind, i, seconds + 60, begun)) for i in range(count)]
    for one in flooders:
        one.start()
    for _ in flooders:
        begun.acquire()
    time.sleep(1.0)
    try:
        return waits(port, seconds)
    finally:
        for one in flooders:
            one.terminate()
            one.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each row is measured")
    parser.add_argument("--flooders", type=int, default=3, help="how many flood at once in every second row")
    parser.add_argument("--floods", nargs="+", choices=MADE, default=list(MADE), help="only these")
    options = parser.parse_args()
    asyncio.run(measure(options.seconds, options.flooders, options.floods))

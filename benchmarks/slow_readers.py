"""What an unrelated publisher notices of subscribers that hardly read: `python benchmarks/slow_readers.py`.

One broker process. A publisher at QoS 1 waits for each acknowledgement and counts them. The baseline is its rate while
nobody else is there. Then another client pours much in at QoS 1, three times: for nobody, for subscribers that read at
once, and for subscribers that read a little every tenth of a second. The rate is measured during each, and after the
last. The memory of the broker is read at the end.

The goal: who is slow pays, nobody else. So the publisher should notice slow readers no more than those who read at
once, and afterwards nothing of them. On a machine that does other things too the processor time of the broker says
more than the rate; while it is poured in, that has the pouring in it.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import selectors
import socket
import tempfile
import threading
import time
from contextlib import suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import cast

import mqttload
from godwit.net.processes import BrokerProcess

LARGE_B = 90_000
TRICKLE_B, TRICKLE_S = 1_024, 0.1

GOAL = 0.8
"""Of the rate that a row is compared with: what two runs of the same differ by."""


def rate(broker: BrokerProcess, name: str, until: threading.Event | None, seconds: float) -> tuple[float, float]:
    """Acknowledged publications a second, one at a time, for `seconds` or until the event; and what one costs the
    broker, in ms."""
    client, spent_s = mqttload.Client(broker.port, name, 5), broker.processor_s()
    one, count = client.publication(f"other/{name}", b"x" * 100, 1, 1), 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds and not (until is not None and until.is_set()):
        client.socket.sendall(one)
        client.packet()
        count += 1
    client.socket.close()
    return count / (time.perf_counter() - began), (broker.processor_s() - spent_s) / max(count, 1) * 1e3


class Readers:
    """Subscribers in a process of their own, which ends with this object's `stop`."""

    def __init__(self, port: int, count: int, *, clean: bool, slow: bool) -> None:
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        self._process = context.Process(target=read, args=(port, count, clean, slow, ready), daemon=True)
        self._process.start()
        ready.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()


def read(port: int, count: int, clean: bool, slow: bool, ready: Event) -> None:
    """Without end: a little now and then, or all there is at once."""
    name = "slow" if slow else "quick"
    clients = [mqttload.Client(port, f"{name}-{i}", 5, clean=clean, receive_max=65_535) for i in range(count)]
    waiting = selectors.DefaultSelector()
    for client in clients:
        client.subscribe("flow", qos=1)
        client.socket.setblocking(False)
        waiting.register(client.socket, selectors.EVENT_READ)
    ready.set()
    while True:
        if slow:
            time.sleep(TRICKLE_S)
        for key, _ in waiting.select():
            with suppress(BlockingIOError):
                if not cast(socket.socket, key.fileobj).recv(TRICKLE_B if slow else 1 << 20):
                    return


def pour(port: int, size_b: int, done: threading.Event) -> None:
    client = mqttload.Client(port, "pouring", 5)
    for number in range(1, max(2, size_b // LARGE_B)):
        client.socket.sendall(client.publication("flow", bytes(LARGE_B), 1, number % 1_000 + 1))
        client.packet()
    done.set()
    client.socket.close()


async def poured(broker: BrokerProcess, name: str, size_b: int, seconds: float) -> tuple[float, float]:
    """The rate while it is poured in."""
    done = threading.Event()
    threading.Thread(target=pour, args=(broker.port, size_b, done), daemon=True).start()
    return await asyncio.to_thread(rate, broker, name, done, 10 * seconds)


def met(is_met: bool) -> str:
    return "met" if is_met else "missed"


async def measure(seconds: float, slow: int, size_b: int, *, clean: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess("slow", Path(folder) / "slow")
        await broker.start()
        try:
            before = await asyncio.to_thread(rate, broker, "alone", None, seconds)
            first_b = broker.memory_b()
            unwanted = await poured(broker, "unwanted", size_b, seconds)
            quick = await asyncio.to_thread(Readers, broker.port, slow, clean=True, slow=False)
            read_at_once = await poured(broker, "read", size_b, seconds)
            quick.stop()
            trickle = await asyncio.to_thread(Readers, broker.port, slow, clean=clean, slow=True)
            during = await poured(broker, "during", size_b, seconds)
            after = await asyncio.to_thread(rate, broker, "after", None, seconds)
            trickle.stop()
            print(
                "| unrelated publisher | acknowledged/s | goal | against alone | ms of the broker each |\n"
                "|---|---|---|---|---|"
            )
            for what, (per_s, each_ms), against in (
                ("alone", before, None),
                (f"while {size_b / 1e6:.0f} MB are poured for nobody", unwanted, None),
                (f"while they are poured for {slow} readers that read at once", read_at_once, None),
                (f"while they are poured for {slow} slow readers", during, read_at_once[0]),
                ("after that, they still trickle", after, before[0]),
            ):
                goal = "" if against is None else f"{GOAL * against:,.0f}, {met(per_s >= GOAL * against)}"
                print(f"| {what} | {per_s:,.0f} | {goal} | {per_s / before[0]:.2f} | {each_ms:.2f} |")
            print(f"\nmemory of the broker: {first_b / 1e6:.0f} MB before, {broker.memory_b() / 1e6:.0f} MB at the end")
        finally:
            await broker.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each row is measured")
    parser.add_argument("--slow", type=int, default=14, help="subscribers that trickle")
    parser.add_argument("--megabytes", type=float, default=23.0, help="what is published for them")
    parser.add_argument("--lasting", action="store_true", help="their sessions outlive the connection")
    options = parser.parse_args()
    asyncio.run(measure(options.seconds, options.slow, int(options.megabytes * 1e6), clean=not options.lasting))

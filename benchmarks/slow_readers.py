"""What an unrelated publisher notices of subscribers that hardly read: `python benchmarks/slow_readers.py`.

One broker process. A publisher at QoS 1 waits for each acknowledgement and counts them; the baseline is its rate while
nobody else is there, and while another client publishes much that nobody wants. Then subscribers at QoS 1 read a
little every tenth of a second while the same is published for them, and the rate is measured again: while that is
poured in, and after it. The memory of the broker is read
at the end. On a machine that does other things too the processor time of the broker for each publication says more
than the rate; while it is poured in, that has the pouring in it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import mqttload
from godwit.net.processes import BrokerProcess

LARGE_B = 90_000
TRICKLE_B, TRICKLE_S = 1_024, 0.1


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


class Trickle(threading.Thread):
    """Subscribers that read a little now and then, all in one thread."""

    def __init__(self, port: int, count: int, *, clean: bool) -> None:
        super().__init__(daemon=True)
        self.clients = [
            mqttload.Client(port, f"slow-{number}", 5, clean=clean, receive_max=65_535) for number in range(count)
        ]
        self.over = threading.Event()
        for client in self.clients:
            client.subscribe("flow", 1)
            client.socket.setblocking(False)

    def run(self) -> None:
        while not self.over.wait(TRICKLE_S):
            for client in self.clients:
                with suppress(BlockingIOError, OSError):
                    client.socket.recv(TRICKLE_B)


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


async def measure(seconds: float, slow: int, size_b: int, *, clean: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess("slow", Path(folder) / "slow")
        await broker.start()
        try:
            before = await asyncio.to_thread(rate, broker, "alone", None, seconds)
            first_b = broker.memory_b()
            unwanted = await poured(broker, "unwanted", size_b, seconds)
            trickle = Trickle(broker.port, slow, clean=clean)
            trickle.start()
            during = await poured(broker, "during", size_b, seconds)
            after = await asyncio.to_thread(rate, broker, "after", None, seconds)
            trickle.over.set()
            print("| unrelated publisher | acknowledged/s | against alone | ms of the broker each |\n|---|---|---|---|")
            for what, (per_s, each_ms) in (
                ("alone", before),
                (f"while {size_b / 1e6:.0f} MB are poured for nobody", unwanted),
                (f"while {size_b / 1e6:.0f} MB are poured for {slow} slow readers", during),
                ("after that, they still trickle", after),
            ):
                print(f"| {what} | {per_s:,.0f} | {per_s / before[0]:.2f} | {each_ms:.2f} |")
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

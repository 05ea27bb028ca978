"""A broker of a ring is away, and what it is to match waits: what does everything else lose by that?

    python benchmarks/ring_away.py                       # 5 brokers, 10,000 and 100,000 publications wait
    python benchmarks/ring_away.py --waiting 1000        # tries it

One client publishes at QoS 1 at one broker of five. First it is measured what that takes under a first topic level of
another broker (the baseline). Then the broker that matches `away` is killed with kill -9, publications for it are taken
until so many wait in custody, and the other level is measured again, beside them. Last the broker comes back, and it is
told how long it takes until all that waited is with a subscriber, once. The ratio is that of the rates with and without
what waits. Measure when nothing else runs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import mqtt5

from godwit.net.processes import BrokerProcess, agreed, ring
from godwit.protocols.broker.fabric.ring.targets import of_level
from godwit.protocols.topology.pastry.keys import bits_of
from mqttload import ANSWER_S, CONNECT_FIVE, PAYLOAD_B, Client, pumped

PLACES = ["52,4", "48,2", "41,12", "55,12", "40,-3"]
WINDOW = 1_000
COUNT = 5_000
SETTINGS = {"handoff_wait_s": 20.0}
BACK_S = 120.0


async def owners(brokers: list[BrokerProcess]) -> dict[str, str]:
    """By prefix of a cell the broker that has it."""
    reports = [await broker.report() for broker in brokers]
    return {cell.prefix: report.name for report in reports if report.ring for cell in report.ring.cells}


def owner_of(level: str, cells: dict[str, str]) -> str:
    bits = bits_of(of_level(level).key)
    return next(name for prefix, name in cells.items() if bits.startswith(prefix))


def level_of(broker: str, cells: dict[str, str]) -> str:
    return next(level for level in (f"t{n}" for n in range(10_000)) if owner_of(level, cells) == broker)


def published(client: Client, topic: str, count: int) -> float:
    """A second's acknowledged publications."""
    packets = [client.publication(topic, bytes(PAYLOAD_B), 1, 1 + n) for n in range(min(count, 60_000))]
    out = b"".join(packets[n % len(packets)] for n in range(count))
    answer_b = len(mqtt5.PubAckPacket(1).write())
    taken_s, got = pumped(client.socket, out, [client.socket], answer_b * count, WINDOW * len(packets[0]))
    client.socket.setblocking(True)
    if got < answer_b * count:
        raise SystemExit(f"only {got // answer_b} of {count} were acknowledged")
    return float(count / taken_s)


async def measured(told: argparse.Namespace, folder: Path) -> None:
    brokers = ring([f"b{n}" for n in range(1, 6)], PLACES, folder, SETTINGS)
    try:
        for broker in brokers:
            await broker.start()
        await agreed(brokers)
        cells = await owners(brokers)
        here, other, away = brokers[0], brokers[1], brokers[2]
        busy, lost = level_of(other.name, cells), level_of(away.name, cells)
        for waiting in told.waiting:
            await away_for(here, away, (busy, lost), waiting)
    finally:
        await asyncio.gather(*(broker.kill() for broker in brokers))


async def away_for(here: BrokerProcess, away: BrokerProcess, levels: tuple[str, str], waiting: int) -> None:
    busy, lost = levels
    subscriber = Client(here.port, f"s{waiting}", CONNECT_FIVE, receive_max=60_000)
    subscriber.subscribe(f"{lost}/#", qos=0)
    publisher = Client(here.port, f"p{waiting}", CONNECT_FIVE)
    published(publisher, f"{busy}/x", COUNT)
    before = max(published(publisher, f"{busy}/x", COUNT) for _ in range(3))
    await away.kill()
    await asyncio.sleep(1.0)
    filled = published(publisher, f"{lost}/x", waiting)
    beside = max(published(publisher, f"{busy}/x", COUNT) for _ in range(3))
    report = await here.report()
    memory_mb = here.memory_b() / 2**20
    kept = report.ring.custody if report.ring else 0
    await away.start()
    begun_s = time.monotonic()
    one_b = len(publisher.publication(f"{lost}/x", bytes(PAYLOAD_B)))
    got, subscriber_socket = 0, subscriber.socket
    subscriber_socket.settimeout(ANSWER_S)
    while got < one_b * waiting and time.monotonic() - begun_s < BACK_S:
        got += len(subscriber_socket.recv(1 << 20))
    print(
        f"{waiting:,} wait ({kept:,} in custody, {memory_mb:.0f} MB): the other level {before:,.0f} a second before, "
        f"{beside:,.0f} beside, ratio {beside / before:.2f}; taken into custody {filled:,.0f} a second; "
        f"{got // one_b:,} came within {time.monotonic() - begun_s:.1f} s of its return",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--waiting", type=int, nargs="+", default=[10_000, 100_000])
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="godwit-away-") as folder:
        asyncio.run(measured(told, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

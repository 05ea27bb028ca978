"""How soon a fleet is back after a restart, and what guessers cost it: `python benchmarks/logins.py`.

One broker process on one core. Every device has a user of its own, with a costly password, and all come at once:

- without any password, the baseline: what connecting costs by itself;
- with passwords that the broker has seen before, then after a restart, as after a failure of the machine;
- with tokens, which the broker has never seen.

Then some devices log in one after the other, alone, and again while others try wrong passwords as fast as they are
answered, from another address and from the same one. `--cold N` also lets N devices come whose passwords were never
seen: there the hash costs what it costs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import mqtt5

from godwit.net.access import hashed
from godwit.net.logins import Remembered, key_in
from godwit.net.processes import BrokerProcess
from godwit.net.store.sqlite import SqliteStore, Sync
from godwit.net.tokens import make_keys, signed

PASSWORD = "correct horse battery staple"
GOAL_S = 60.0
"""In which 5,000 devices should be back on one core."""
HEAD = "| who comes | devices | let in | seconds | goal s | against no password | broker's CPU s | memory MB |"
GUESSERS = 50
WAIT_S = 900.0


def connect(user: str, password: str) -> bytes:
    return mqtt5.ConnectPacket(user, clean_start=True, username=user, password=password.encode()).write()


async def log_in(port: int, said: bytes, host: str = "127.0.0.1") -> tuple[int, asyncio.StreamWriter]:
    """The reason code of the answer; -1 where there is none. The connection stays open."""
    local = (host, 0) if host != "127.0.0.1" else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=local)
    writer.write(said)
    try:
        async with asyncio.timeout(WAIT_S):
            answer = await reader.readexactly(4)
    except (asyncio.IncompleteReadError, OSError, TimeoutError):
        return -1, writer
    return answer[3], writer


async def fleet(port: int, said: Sequence[bytes]) -> tuple[float, int]:
    """All at once; how long until the last is in, and how many are."""
    began = time.perf_counter()
    answers = await asyncio.gather(*(log_in(port, one) for one in said))
    took_s = time.perf_counter() - began
    for _, writer in answers:
        writer.close()
    return took_s, sum(code == 0 for code, _ in answers)


async def one_by_one(port: int, said: Sequence[bytes]) -> list[float]:
    found = []
    for one in said:
        began = time.perf_counter()
        code, writer = await log_in(port, one)
        found.append((time.perf_counter() - began) * 1e3)
        writer.close()
        if code:
            raise SystemExit(f"a device was not let in (reason {code})")
        await asyncio.sleep(0.01)
    return found


async def guess(port: int, host: str, number: int, counted: list[int]) -> None:
    """Wrong passwords of users that there are, without end."""
    at = 0
    while True:
        at += 1
        try:
            _, writer = await log_in(port, connect(f"van-{number}", f"guess {at}"), host)
            writer.close()
            counted[0] += 1
        except OSError:
            await asyncio.sleep(0.01)


async def guessed_at(port: int, host: str, said: Sequence[bytes]) -> tuple[list[float], int]:
    counted = [0]
    guessers = [asyncio.create_task(guess(port, host, i, counted)) for i in range(GUESSERS)]
    await asyncio.sleep(2)
    try:
        return await one_by_one(port, said), counted[0]
    finally:
        for one in guessers:
            one.cancel()
        await asyncio.gather(*guessers, return_exceptions=True)


def prepared(folder: Path, count: int, cost: str) -> None:
    """The users, and a disk on which their logins are remembered, as after a day on which all were there."""
    known = hashed(PASSWORD, cost)
    make_keys(folder / "fleet.key", folder / "fleet.pem")
    tables = [f'[users.van-{i}]\npassword = "{known}"\n' for i in range(count)]
    others = '[anonymous]\nfrom = "loopback"\n[tokens.fleet]\nkeys = ["fleet.pem"]\naudience = "godwit"\n'
    (folder / "users.toml").write_text(others + "".join(tables))
    data = folder / "logins" / "data"
    data.mkdir(parents=True)

    async def remember() -> None:
        store = SqliteStore(data, Sync.PROCESS)
        remembered = Remembered(key_in(data), store)
        for i in range(count):
            remembered.note(f"van-{i}", remembered.digest(f"van-{i}", known, PASSWORD.encode()))
        await store.flushed()
        await store.close()

    asyncio.run(remember())


async def started(broker: BrokerProcess) -> None:
    await broker.start()
    broker.pin({min(os.sched_getaffinity(0))})


async def measure(folder: Path, count: int, cold: int, logins: int, cost: str) -> None:
    broker = BrokerProcess("logins", folder / "logins", {"access.users": str(folder / "users.toml")})
    said = [connect(f"van-{i}", PASSWORD) for i in range(count)]
    nameless = [mqtt5.ConnectPacket(f"van-{i}", clean_start=True).write() for i in range(count)]
    now = time.time()
    tokens = [
        connect(
            f"bus-{i}", signed(folder / "fleet.key", f"bus-{i}", audience="godwit", issued_s=now, until_s=now + 9e5)
        )
        for i in range(count)
    ]
    print(f"{HEAD}\n|---|---|---|---|---|---|---|---|", flush=True)
    baseline_s = 0.0
    try:
        for name, fleet_said in (
            ("without a password", nameless),
            ("known before", said),
            ("known before, restarted", said),
            ("tokens", tokens),
        ):
            if broker.running:
                await broker.kill()
            await started(broker)
            before_s = broker.processor_s()
            took_s, let_in = await fleet(broker.port, fleet_said)
            cpu_s = broker.processor_s() - before_s
            baseline_s = baseline_s or took_s
            memory = broker.memory_b() / 1e6
            goal = f"{GOAL_S * count / 5_000:.0f}, {verdict(took_s, let_in, count)}"
            print(
                f"| {name} | {count} | {let_in} | {took_s:.1f} | {goal} | {took_s / baseline_s:.1f} | {cpu_s:.1f} |"
                f" {memory:.0f} |",
                flush=True,
            )
        if cold:
            await never_seen(broker, folder, cold, cost, baseline_s / count)
        print(
            "\n| while | logins | median ms | 99 % ms | longest ms | 99 % against nobody else | guesses answered |\n"
            "|---|---|---|---|---|---|---|"
        )
        few = said[:logins]
        rows = [("nobody else", await one_by_one(broker.port, few), 0)]
        for name, host in (("guessers elsewhere", "127.0.0.2"), ("guessers at the same address", "127.0.0.1")):
            rows.append((name, *await guessed_at(broker.port, host, few)))
        alone = statistics.quantiles(rows[0][1], n=100)[98]
        for name, found, guesses in rows:
            cuts = statistics.quantiles(found, n=100)
            print(
                f"| {name} | {len(found)} | {cuts[49]:.1f} | {cuts[98]:.1f} | {max(found):.1f} |"
                f" {cuts[98] / alone:.1f} | {guesses} |"
            )
    finally:
        await broker.stop()


def verdict(took_s: float, let_in: int, count: int) -> str:
    return "met" if let_in == count and took_s < GOAL_S * count / 5_000 else "missed"


async def never_seen(broker: BrokerProcess, folder: Path, count: int, cost: str, each_s: float) -> None:
    """Another users file: nobody in it is remembered."""
    await broker.stop()
    known = hashed(PASSWORD + "!", cost)
    text = "".join(f'[users.van-{i}]\npassword = "{known}"\n' for i in range(count))
    (folder / "cold.toml").write_text(text)
    cold = BrokerProcess("cold", folder / "cold", {"access.users": str(folder / "cold.toml")})
    await started(cold)
    try:
        before_s = cold.processor_s()
        took_s, let_in = await fleet(cold.port, [connect(f"van-{i}", PASSWORD + "!") for i in range(count)])
        cpu_s = cold.processor_s() - before_s
        print(
            f"| never seen | {count} | {let_in} | {took_s:.1f} | | {took_s / count / each_s:.1f} | {cpu_s:.1f} |"
            f" {cold.memory_b() / 1e6:.0f} |",
            flush=True,
        )
    finally:
        await cold.stop()
    await started(broker)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=5_000)
    parser.add_argument(
        "--cost", choices=("high", "low"), default="high", help="of the passwords, as `godwit password`"
    )
    parser.add_argument("--cold", type=int, default=0, help="devices that come with passwords that were never seen")
    parser.add_argument("--logins", type=int, default=300, help="logins one after the other, in each row below")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        prepared(Path(made), options.devices, options.cost)
        asyncio.run(measure(Path(made), options.devices, options.cold, options.logins, options.cost))

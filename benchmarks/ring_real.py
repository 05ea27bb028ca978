"""A ring of real broker processes on this machine: clients roam, brokers are killed with kill -9, others join.

    python benchmarks/ring_real.py --brokers 64 --walkers 500 --kill 10 --add 10 --seconds 60
    python benchmarks/ring_real.py --brokers 5 --walkers 20 --kill 1 --add 1 --seconds 10     # tries it

The account is that of `godwit demo`: what was published, owed, delivered, lost, twice and out of order. Beside it stand
links, memory and idle processor time of the brokers. Each step is told as it happens. Exit status 1 where the account
is not clean, or where it took more than `--minutes` (then it says what it was waiting for).

All brokers share the cores of this machine, so `--hops` and `--events` say how much happens in a second, however many
clients there are. Two cores carry the default; with twice as much they are full, and whoever goes to the broker that
matches waits for up to a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from godwit.client.errors import ClientError
from godwit.commands.demo.findings import findings, renewed
from godwit.commands.demo.play import Plan, Play
from godwit.net.processes import BrokerProcess, rested, ring

IDLE_S = 10.0
AT_ONCE = 4
"""So many processes start at the same time: a machine has few cores."""


class Steps:
    """What happens, with the time since the start; the last one is what everybody waits for."""

    def __init__(self) -> None:
        self.begun_s = time.monotonic()
        self.last = ""

    def tell(self, text: str) -> None:
        self.last = text
        print(f"{time.monotonic() - self.begun_s:7.1f} s  {text}", flush=True)


class RingPlay(Play):
    """Several brokers die, and new ones join, while everybody walks."""

    steps: Steps

    def say(self, text: str) -> None:
        super().say(text)
        self.steps.tell(text)

    def __init__(self, plan: Plan, brokers: list[BrokerProcess], newcomers: list[BrokerProcess], kill: int) -> None:
        super().__init__(plan, brokers)
        self.newcomers = newcomers
        self.kill = kill

    async def _break_one(self) -> None:
        await asyncio.sleep(self.plan.seconds * 0.2)
        await started(self.newcomers)
        self.say(f"{len(self.newcomers)} brokers have started beside the others")
        victims = self.random.sample(self.brokers, self.kill)
        await asyncio.gather(*(victim.kill() for victim in victims))
        self.say(f"{', '.join(victim.name for victim in victims)} are killed (kill -9)")
        await asyncio.sleep(self.plan.down_s)
        await started(victims)
        self.say("they are back")


async def joined(brokers: list[BrokerProcess], steps: Steps) -> None:
    """Wait until each of them has a cell. They are asked one by one, so that asking costs little."""
    waiting = list(brokers)
    while waiting:
        reports = [await broker.report() for broker in waiting]
        left = [one for one, report in zip(waiting, reports, strict=True) if not (report.ring and report.ring.cells)]
        if len(left) != len(waiting):
            names = ", ".join(one.name for one in left[:8])
            steps.tell(
                f"{len(brokers) - len(left)} of {len(brokers)} brokers have a cell" + f"; not {names}" * bool(left)
            )
        waiting = left
        await asyncio.sleep(1.0)


async def started(brokers: list[BrokerProcess]) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def start(broker: BrokerProcess) -> None:
        async with limit:
            await broker.start()

    await asyncio.gather(*(start(broker) for broker in brokers))


def spread_over_the_map(count: int, dice: Random) -> list[str]:
    return [f"{dice.uniform(36, 60):.4f},{dice.uniform(-10, 30):.4f}" for _ in range(count)]


async def idle(brokers: list[BrokerProcess]) -> float:
    """Milliseconds of processor time a second and broker, when nobody does anything."""
    await rested(brokers)
    before_s = sum(broker.processor_s() for broker in brokers)
    await asyncio.sleep(IDLE_S)
    return 1000 * (sum(broker.processor_s() for broker in brokers) - before_s) / IDLE_S / len(brokers)


async def performed(told: argparse.Namespace, folder: Path, steps: Steps) -> bool:
    names = [f"b{at:03d}" for at in range(told.brokers + told.add)]
    every = ring(names, spread_over_the_map(len(names), Random(told.seed)), folder)
    brokers, newcomers = every[: told.brokers], every[told.brokers :]
    stay_s = told.walkers / told.hops
    plan = Plan(
        seconds=told.seconds,
        walkers=told.walkers,
        seed=told.seed,
        down_s=3.0,
        events_per_s=told.events,
        stay_s=(0.5 * stay_s, 1.5 * stay_s),
    )
    play = RingPlay(plan, brokers, newcomers, told.kill)
    play.steps = steps
    try:
        steps.tell(f"{len(brokers)} brokers start")
        await started(brokers)
        await joined(brokers, steps)
        steps.tell("they rest")
        idle_ms = await idle(brokers)
        steps.tell(f"{idle_ms:.1f} ms of processor time a second and broker; {told.walkers} clients walk")
        if not await walked(play, steps):
            steps.tell(f"so far: {account(play)}")
            return False
        steps.tell("the account is drawn up")
        await joined(every, steps)
        reports = [await broker.report() for broker in every]
        links = [sum(peer.linked for peer in report.peers) for report in reports]
        memory_mb = [broker.memory_b() / 2**20 for broker in every]
        found = renewed(play.renewed()) if play.verdict().is_clean else await findings(play)
    except asyncio.CancelledError:
        steps.tell(f"so far: {account(play)}")
        raise
    finally:
        await asyncio.gather(*(broker.kill() for broker in every))
    print(account(play), *found, sep="\n  ")
    verdict = play.verdict()
    print("| brokers | links, median and most | idle ms/s a broker | MB a broker | lost | twice | out of order |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {len(every)} | {sorted(links)[len(links) // 2]}, {max(links)} | {idle_ms:.1f} "
        f"| {sum(memory_mb) / len(memory_mb):.0f} | {verdict.lost} | {verdict.duplicated} | {verdict.out_of_order} |"
    )
    return verdict.is_clean


async def walked(play: RingPlay, steps: Steps) -> bool:
    """Whether all clients have walked to the end. Where one gave up, some brokers may be down."""
    try:
        await play.run()
    except ClientError as error:
        steps.tell(f"a client has given up: {error}")
        return False
    return True


def account(play: RingPlay) -> str:
    verdict = play.verdict()
    handoffs = sorted(end_s - begin_s for begin_s, end_s in play.handoffs) or [0.0]
    return (
        f"{verdict.published} published, {verdict.matched} owed, {verdict.delivered} delivered, {verdict.lost} lost, "
        f"{verdict.duplicated} twice, {verdict.out_of_order} out of order, {verdict.unwanted} unwanted; "
        f"{len(handoffs)} handoffs, median {1000 * handoffs[len(handoffs) // 2]:.1f} ms, at most {handoffs[-1]:.1f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, value in (("brokers", 64), ("walkers", 500), ("kill", 10), ("add", 10), ("seconds", 60), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--hops", type=float, default=10.0, help="of all clients in a second; 10")
    parser.add_argument("--events", type=float, default=20.0, help="published in a second; 20")
    parser.add_argument("--minutes", type=float, default=15.0, help="give up after so long")
    parser.add_argument("--keep", type=Path, help="leave disks and logs of all brokers in this folder")
    told, steps = parser.parse_args(), Steps()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # else its brokers would go on without it
    with contextlib.ExitStack() as stack:
        folder = told.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="godwit-ring-")))
        try:
            limited = asyncio.wait_for(performed(told, folder, steps), 60 * told.minutes)
            return 0 if asyncio.run(limited) else 1
        except TimeoutError:
            steps.tell(f"given up after {told.minutes:g} minutes, while: {steps.last}")
            return 1


if __name__ == "__main__":
    sys.exit(main())

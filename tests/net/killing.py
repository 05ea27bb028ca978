"""Real brokers that are killed at random moments under load, and the account of what their clients got.

    python -m tests.net.killing --seeds 20          # seeds 1 to 20, one after the other
    python -m tests.net.killing --seed 7 --keep     # one of them again; what the brokers logged stays

The seed decides who talks, who walks and who dies when; the machine decides what is under way at that moment.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Container, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from godwit.client.client import Client, connect
from godwit.client.errors import UnreachableError
from godwit.client.received import Subscription
from godwit.commands.demo.ledger import Fact, Ledger, Verdict, judged
from godwit.events import Value
from godwit.filters.text import parse
from godwit.net.processes import BrokerProcess

PROBE_S = 0.2
QUIET_S = 1.0
"""All that is owed is there, and so long nothing came a second time."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    brokers: int = 3
    publishers: int = 4
    subscribers: int = 6
    events_per_s: float = 150.0
    seconds: float = 5.0
    kills: int = 3
    down_s: tuple[float, float] = (0.0, 0.6)
    stay_s: tuple[float, float] = (0.4, 2.0)
    """How long one who roams stays with one broker."""
    movers: int = 2
    """Publishers that go on at another broker when theirs dies; the others wait until it is back."""
    drain_s: float = 90.0
    """How long the rest may take when all is calm. Only a run that has lost something waits for so long."""


Trouble = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
"""What else happens while clients talk. It ends soon after the event is set, and leaves all brokers up."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    verdict: Verdict
    out_of_order: int
    """Where publisher or subscriber stays with its broker. Where both move at the same moment, all is heard once, and
    the order is that of each broker the publisher talked to (docs/broker.md)."""
    kills: int
    moves: int
    repeated: int
    """What came again where QoS 1 allows it."""
    sessions_lost: list[str]
    """Clients that were told that they have no session."""
    unacknowledged: int
    missing: list[str]
    """Who lacks what, in words."""
    drained_s: float
    """How long the rest took in the calm."""

    @property
    def is_clean(self) -> bool:
        found = self.verdict
        faults = found.lost + found.duplicated + found.unwanted + self.out_of_order + self.unacknowledged
        return not faults and not self.sessions_lost

    def __str__(self) -> str:
        found = self.verdict
        return (
            f"published {found.published}, owed {found.matched}, lost {found.lost}, duplicated {found.duplicated}, "
            f"out of order {self.out_of_order} ({found.out_of_order} where both move), "
            f"unwanted {found.unwanted}, repeated at QoS 1 {self.repeated}, "
            f"kills {self.kills}, moves {self.moves}, unacknowledged {self.unacknowledged}, "
            f"sessions lost {self.sessions_lost}, the rest in {self.drained_s:.1f} s"
        )


class PatientBroker(BrokerProcess):
    """Its clients wait for sessions as long as it takes: a session that is only late must not look like a lost one."""

    def _arguments(self) -> list[str]:
        config = self.folder / "godwit.toml"
        config.write_text("handoff_wait_s = 600.0\n")
        return [*super()._arguments(), "--config", str(config)]


class Member:
    """A client, and at which QoS it publishes or listens."""

    def __init__(self, name: str, qos: int, client: Client) -> None:
        self.name = name
        self.qos = qos
        self.client = client


class Killing:
    """One run. Subscribers have said what they want before anybody publishes, so that all is owed that fits."""

    def __init__(self, plan: Plan, brokers: Sequence[BrokerProcess], troubles: Sequence[Trouble] = ()) -> None:
        self.plan = plan
        self.brokers = brokers
        self.troubles = troubles
        self.ledger = Ledger()
        self.wishes = dict(self._wishes())
        self.publishing = True
        self.drained_s = 0.0
        self.kills = self.moves = self.repeated = self.acknowledged = 0
        publishers, subscribers = range(plan.movers, plan.publishers), range(0, plan.subscribers, 2)
        self._stayers = {*(f"p{number}" for number in publishers), *(f"s{number}" for number in subscribers)}
        self._qos: dict[str, int] = {}
        self._seen: set[tuple[str, str, int]] = set()
        self._probed: set[tuple[str, int]] = set()
        self._members: list[Member] = []
        self._wanted: list[Subscription] = []

    @property
    def _topic(self) -> str:
        """Of this run alone: what an earlier one with the same clients has left must not look like a part of it."""
        return f"load/{self.plan.seed}"

    def _wishes(self) -> list[tuple[str, str]]:
        dice = Random(f"{self.plan.seed}/wishes")
        conditions = ("n >= 0", "n >= 0", "kind = 'warm'", "kind = 'cold' AND n > 20", "kind IN ('warm', 'hot')")
        return [(f"s{number}", dice.choice(conditions)) for number in range(self.plan.subscribers)]

    async def run(self) -> Outcome:
        async with AsyncExitStack() as stack:
            publishers = [await self._enter(stack, f"p{n}", 1 + n % 2) for n in range(self.plan.publishers)]
            subscribers = [await self._enter(stack, name, 2 - n % 3 // 2) for n, name in enumerate(self.wishes)]
            for member in subscribers:
                stack.push_async_callback(ended, asyncio.create_task(self._listen(member)))
            await self._settled()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._kill())
                group.create_task(self._trouble())
                for number, member in enumerate(subscribers):
                    if number % 2:
                        group.create_task(self._roam(member))
                await asyncio.gather(*(self._publish(member) for member in publishers))
                self.publishing = False
            await self._drained()
            # Whoever comes next under these names wants something else.
            for subscription in self._wanted:
                await subscription.stop()
        return self._outcome()

    async def _trouble(self) -> None:
        """While there is load. What was acknowledged by then must arrive in the calm after it."""
        calm = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for trouble in self.troubles:
                group.create_task(trouble(calm))
            await asyncio.sleep(self.plan.seconds)
            calm.set()

    async def _enter(self, stack: AsyncExitStack, name: str, qos: int) -> Member:
        first = Random(f"{self.plan.seed}/{name}").randrange(len(self.brokers))
        known = [broker.address for broker in (*self.brokers[first:], *self.brokers[:first])]
        if name in self._stayers:
            known = known[:1]
        client = connect(*known, client=name, keep_s=600, connect_s=3.0, retry_max_s=0.5, inflight_max=200)
        self._qos[name] = qos
        member = Member(name, qos, await stack.enter_async_context(client))
        self._members.append(member)
        return member

    async def _settled(self) -> None:
        """Return when what is published at any broker reaches every subscriber: from then on all that fits is owed."""
        async with AsyncExitStack() as stack:
            probes = [await stack.enter_async_context(connect(one.address, keep_s=0)) for one in self.brokers]
            async with asyncio.timeout(self.plan.drain_s):
                while len(self._probed) < len(probes) * len(self.wishes):
                    for number, probe in enumerate(probes):
                        await probe.publish({"probe": number}, topic=f"{self._topic}/probe", qos=1)
                    await asyncio.sleep(PROBE_S)

    async def _listen(self, member: Member) -> None:
        condition = f"{self.wishes[member.name]} OR probe >= 0"
        subscription = await member.client.subscribe(condition, topics=f"{self._topic}/#", qos=member.qos)
        self._wanted.append(subscription)
        async for event in subscription:
            if "probe" in event.attributes:
                self._probed.add((member.name, int(event.attributes["probe"])))
                continue
            publisher, number = str(event.attributes["publisher"]), int(event.attributes["n"])
            taken = (member.name, publisher, number)
            if taken in self._seen and min(member.qos, self._qos[publisher]) < 2:
                self.repeated += 1
                continue
            self._seen.add(taken)
            self.ledger.delivered(time.monotonic(), member.name, publisher, number)

    async def _publish(self, member: Member) -> None:
        dice, each_s = Random(f"{self.plan.seed}/{member.name}"), self.plan.publishers / self.plan.events_per_s
        begun_s, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as group:
            while (due_s := begun_s + number * each_s) < begun_s + self.plan.seconds:
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                said: dict[str, Value] = {
                    "publisher": member.name,
                    "n": number,
                    "kind": dice.choice(("warm", "cold", "hot")),
                }
                self.ledger.published(time.monotonic(), member.name, number, said)
                group.create_task(self._say(member, said))
                number += 1

    async def _say(self, member: Member, said: dict[str, Value]) -> None:
        await member.client.publish(said, topic=f"{self._topic}/{member.name}", qos=member.qos)
        self.acknowledged += 1

    async def _roam(self, member: Member) -> None:
        dice = Random(f"{self.plan.seed}/{member.name}/ways")
        while self.publishing:
            await asyncio.sleep(dice.uniform(*self.plan.stay_s))
            try:
                await member.client.roam(dice.choice(self.brokers).address, away_s=dice.uniform(0.0, 0.2))
            except UnreachableError:
                await member.client.connected()
            self.moves += 1

    async def _kill(self) -> None:
        """As a power cut would, one after the other; now and then a second one while the first is down."""
        dice, plan = Random(f"{self.plan.seed}/kills"), self.plan
        for _ in range(plan.kills):
            await asyncio.sleep(dice.uniform(0.2, 1.6) * plan.seconds / plan.kills / 2)
            victims = dice.sample(list(self.brokers), 2 if dice.random() < 0.25 else 1)
            for victim in victims:
                await victim.kill()
                self.kills += 1
                await asyncio.sleep(dice.uniform(*plan.down_s))
            await asyncio.gather(*(victim.start() for victim in victims))

    async def _drained(self) -> None:
        owed, begun_s = self._verdict().matched, time.monotonic()
        while len(self._seen) < owed and time.monotonic() - begun_s < self.plan.drain_s:
            await asyncio.sleep(0.05)
        self.drained_s = time.monotonic() - begun_s
        await asyncio.sleep(QUIET_S)

    def _verdict(self, members: Container[str] | None = None) -> Verdict:
        """Of what these published or got; of all."""
        wishes = {name: parse(wish) for name, wish in self.wishes.items()}
        told = [fact for fact in self.ledger.facts if members is None or any(one in members for one in _of(fact))]
        return judged(told, self.ledger.contents, wishes)

    def _outcome(self) -> Outcome:
        return Outcome(
            verdict=self._verdict(),
            out_of_order=self._verdict(self._stayers).out_of_order,
            kills=self.kills,
            moves=self.moves,
            repeated=self.repeated,
            sessions_lost=[member.name for member in self._members if member.client._life > 1],
            unacknowledged=len(self.ledger.contents) - self.acknowledged,
            missing=list(self._missing()),
            drained_s=self.drained_s,
        )

    def _missing(self) -> Iterator[str]:
        for name, wish in self.wishes.items():
            wanted, lost = parse(wish), defaultdict[str, list[int]](list)
            for (publisher, number), values in self.ledger.contents.items():
                if wanted.matches(values) and (name, publisher, number) not in self._seen:
                    lost[publisher].append(number)
            for publisher, numbers in lost.items():
                yield f"{name} lacks {len(numbers)} of {publisher}, from {min(numbers)} to {max(numbers)}"


def _of(fact: Fact) -> tuple[str, str]:
    """Publisher and client."""
    record = fact[2]
    return (record.event[0] if record.event is not None else "", record.client)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def killed(plan: Plan, folder: Path) -> Outcome:
    """Start brokers, run the plan, stop them."""
    brokers = [PatientBroker(f"b{number}", folder / f"b{number}") for number in range(plan.brokers)]
    for broker in brokers:
        broker.peers = [other.peer_port for other in brokers if other is not broker]
    try:
        await asyncio.gather(*(broker.start() for broker in brokers))
        return await Killing(plan, brokers).run()
    finally:
        await asyncio.gather(*(broker.kill() for broker in brokers))


def main(arguments: Sequence[str], say: Callable[[str], object] = sys.stdout.write) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.net.killing", description="Kill brokers under load.")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="of load in each run")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--movers", type=int, default=2, help="publishers that move when their broker dies, of 4")
    parser.add_argument("--keep", action="store_true", help="keep the brokers' folders")
    told = parser.parse_args(arguments)
    failed = []
    for seed in range(told.seed, told.seed + told.seeds):
        plan = Plan(seed=seed, seconds=told.seconds, kills=told.kills, movers=told.movers)
        folder = Path(tempfile.mkdtemp(prefix=f"killing-{seed}-"))
        outcome = asyncio.run(killed(plan, folder))
        say(f"seed {seed}: {'clean' if outcome.is_clean else 'FAULTY'}: {outcome}\n")
        sys.stdout.flush()
        for line in outcome.missing:
            say(f"  {line}\n")
        if not outcome.is_clean:
            failed.append(seed)
        if told.keep:
            say(f"  {folder}\n")
        else:
            shutil.rmtree(folder)
    say(f"{told.seeds} seeds, faults in {failed or 'none'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""The run itself: taxis publish, people walk from broker to broker without a word, one broker dies and comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from random import Random

import msgspec

from godwit.client.client import NOT_YET, Client, connect
from godwit.client.errors import RefusedError, UnreachableError
from godwit.client.received import Subscription
from godwit.commands.demo.ledger import Ledger, Verdict, judged
from godwit.commands.demo.town import Person, Taxi, people
from godwit.filters.text import parse
from godwit.net.processes import WAIT_S, BrokerProcess, agreed

QUIET_S = 0.75
"""Nothing new for so long, and everything owed there: the run is over."""
PATIENCE_S = 1.5 * WAIT_S
"""Nothing new for so long though something is owed: longer than a broker makes a client wait for a killed one."""
TELL_S = 5.0

Span = tuple[float, float]
"""From when until when, in seconds of the run."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float = 20.0
    walkers: int = 20
    taxis: int = 48
    publishers: int = 4
    events_per_s: float = 240.0
    stay_s: tuple[float, float] = (1.0, 3.5)
    """How long a walker stays with one broker."""
    away_s: tuple[float, float] = (0.05, 0.4)
    """How long it is out of reach in between."""
    down_s: float = 2.0
    """How long the killed broker is down."""
    seed: int = 1


class Walker:
    """One person's device."""

    def __init__(self, person: Person, client: Client) -> None:
        self.person = person
        self.client = client
        self.got = 0
        self.moves = 0
        self.under_way = False
        self.listening = asyncio.Event()


class Play:
    """Everything that happens, with what a view needs to show it."""

    def __init__(self, plan: Plan, brokers: list[BrokerProcess]) -> None:
        self.plan = plan
        self.brokers = brokers
        self.random = Random(plan.seed)
        self.ledger = Ledger()
        self.walkers: list[Walker] = []
        self.happenings: list[tuple[float, str]] = []
        self.started_s = time.monotonic()
        self.handoffs: list[Span] = []
        self.wishes = {
            person.name: parse(person.wish) for person in people(plan.walkers, plan.taxis, Random(plan.seed))
        }
        self.late_s: dict[int, float] = {}
        """By second of the run: how much too late a report left, at most. So busy was the machine."""
        self.outage: tuple[str, Span] | None = None
        """Who was killed, and from when until when it was down."""
        self.findings: list[str] = []
        """What was seen where the account is not clean."""
        self._publishing = False
        self._published = asyncio.Event()
        """The last taxi has reported: nobody goes anywhere any more."""

    def now_s(self) -> float:
        return time.monotonic() - self.started_s

    def say(self, text: str) -> None:
        self.happenings.append((self.now_s(), text))

    async def run(self) -> Verdict:
        """All of it; a verdict also where something was lost."""
        async with asyncio.TaskGroup() as group:
            publishers = [group.create_task(self._enter(f"garage-{n}", n)) for n in range(self.plan.publishers)]
            members = people(self.plan.walkers, self.plan.taxis, Random(self.plan.seed))
            walkers = [group.create_task(self._enter(person.name, n)) for n, person in enumerate(members)]
        self.walkers = [Walker(person, task.result()) for person, task in zip(members, walkers, strict=True)]
        clients = [task.result() for task in publishers]
        try:
            await self._perform(clients)
        finally:
            await asyncio.gather(*(one.close() for one in [*clients, *(walker.client for walker in self.walkers)]))
        return self.verdict()

    def verdict(self) -> Verdict:
        return judged(self.ledger.facts, self.ledger.contents, self.wishes)

    def renewed(self) -> list[str]:
        """Those who were given a new session instead of their own."""
        return [walker.person.name for walker in self.walkers if walker.client.renewed]

    async def _enter(self, name: str, number: int) -> Client:
        first = number % len(self.brokers)
        addresses = [broker.address for broker in (*self.brokers[first:], *self.brokers[:first])]
        client = connect(*addresses, client=name, keep_s=600, connect_s=PATIENCE_S)
        await client.__aenter__()
        return client

    async def _perform(self, clients: list[Client]) -> None:
        listening = [asyncio.create_task(self._listen(walker)) for walker in self.walkers]
        self.say(f"{len(self.walkers)} walkers say what they want")
        await self._all_listen(listening)
        await agreed(self.brokers)
        self._publishing = True
        self.say(f"{self.plan.taxis} taxis start to report")
        walking = [asyncio.create_task(self._walk(walker)) for walker in self.walkers]
        trouble = asyncio.create_task(self._break_one())
        try:
            await asyncio.gather(*(self._publish(client, number) for number, client in enumerate(clients)))
            self._publishing = False
            self._published.set()
            self.say("the last taxi has reported")
            await asyncio.gather(trouble, *walking)
            await self._drained()
        finally:
            for task in (*listening, *walking, trouble):
                task.cancel()
            await asyncio.gather(*listening, *walking, trouble, return_exceptions=True)

    async def _all_listen(self, listening: list[asyncio.Task[None]]) -> None:
        """Whoever ends before that was refused."""

        async def everybody() -> None:
            for walker in self.walkers:
                await walker.listening.wait()

        tasks = [asyncio.create_task(everybody()), *listening]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def _subscribed(self, walker: Walker) -> Subscription:
        """In a ring with much to do its owners may answer too late: then it is asked for again."""
        while True:
            try:
                return await walker.client.subscribe(walker.person.wish, topics="taxi/#")
            except RefusedError as error:
                if error.reason != NOT_YET:
                    raise
                self.say(f"{walker.person.name} asks again: {error}")

    async def _listen(self, walker: Walker) -> None:
        subscription = await self._subscribed(walker)
        walker.listening.set()
        async for event in subscription:
            values = event.attributes
            publisher, sequence = str(values["garage"]), int(values["n"])
            self.ledger.delivered(self.now_s(), walker.person.name, publisher, sequence)
            walker.got += 1

    async def _publish(self, client: Client, number: int) -> None:
        """One garage: its taxis one after the other, each report safe before the run ends."""
        name, random = f"garage-{number}", Random(f"{self.plan.seed}/{number}")
        taxis = [Taxi(taxi, random) for taxi in range(number, self.plan.taxis, self.plan.publishers)]
        each_s = self.plan.publishers / self.plan.events_per_s
        begin_s, under_way, n = self.now_s(), set[asyncio.Task[None]](), 0
        while (due_s := begin_s + n * each_s) < begin_s + self.plan.seconds:
            await asyncio.sleep(max(0.0, due_s - self.now_s()))
            second, late_s = int(due_s), self.now_s() - due_s
            self.late_s[second] = max(self.late_s.get(second, 0.0), late_s)
            taxi = taxis[n % len(taxis)]
            report = taxi.drive(each_s * len(taxis)) | {"garage": name, "n": n}
            self.ledger.published(self.now_s(), name, n, report)
            task = asyncio.create_task(client.publish(report, topic=f"taxi/{taxi.number}"))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            n += 1
        await asyncio.gather(*under_way)

    async def _walk(self, walker: Walker) -> None:
        random = Random(f"{self.plan.seed}/{walker.person.name}")
        while self._publishing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._published.wait(), random.uniform(*self.plan.stay_s))
            if not self._publishing:
                return
            here = str(walker.client.broker)
            there = random.choice([broker.address for broker in self.brokers if broker.address != here])
            away_s = random.uniform(*self.plan.away_s)
            back_s = self.now_s() + away_s
            self.ledger.left(back_s, walker.person.name, here)
            walker.under_way = True
            try:
                await walker.client.roam(there, away_s=away_s)
            except UnreachableError:  # it was killed a moment ago: the client goes on at another one
                there = str(await walker.client.connected())
            self.ledger.arrived(self.now_s(), walker.person.name, there)
            self.handoffs.append((back_s, self.now_s()))
            walker.under_way = False
            walker.moves += 1

    async def _break_one(self) -> None:
        await asyncio.sleep(self.plan.seconds * 0.45)
        victim = self.random.choice(self.brokers)
        await victim.kill()
        killed_s = self.now_s()
        self.outage = victim.name, (killed_s, inf)
        self.say(f"broker {victim.name} is killed (kill -9)")
        await asyncio.sleep(self.plan.down_s)
        await victim.start()
        self.outage = victim.name, (killed_s, self.now_s())
        self.say(f"broker {victim.name} is back")

    async def _drained(self) -> None:
        owed, since_s, seen = self.verdict().matched, self.now_s(), -1
        told_s = since_s
        while self.now_s() - since_s < PATIENCE_S:
            got = sum(walker.got for walker in self.walkers)
            if got != seen:
                seen, since_s = got, self.now_s()
            if got < owed and self.now_s() - told_s > TELL_S:
                told_s = self.now_s()
                self.say(f"{owed - got:,} deliveries are still on their way")
            if got >= owed and self.now_s() - since_s > QUIET_S:
                return
            await asyncio.sleep(0.05)


async def performed(
    plan: Plan,
    brokers: list[BrokerProcess],
    watch: Callable[[Play], Awaitable[None]],
    look: Callable[[Play], Awaitable[list[str]]],
) -> Play:
    """Start the brokers, run the play beside `watch`, have `look` see what is wrong if something is, stop the
    brokers."""
    try:
        await asyncio.gather(*(broker.start() for broker in brokers))
        play = Play(plan, brokers)
        watching = asyncio.create_task(_until_cancelled(watch(play)))
        try:
            if not (await play.run()).is_clean:
                play.findings = await look(play)
        finally:
            watching.cancel()
            await watching
        return play
    finally:
        await asyncio.gather(*(broker.stop() for broker in brokers))


async def _until_cancelled(watching: Awaitable[None]) -> None:
    try:
        await watching
    except asyncio.CancelledError:
        return
